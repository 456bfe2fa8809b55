#!/usr/bin/python3
"""The hard targets of live/test_alloc_hard.py at full size: what is shown, what is said to be lost, and
what happened by the target's own count.

    make bench-hard [BENCHFLAGS="--only live,stacks"]

    live       10,000,000 blocks at one time, with the --mem that holds them; kernel memory of each
    stacks     100,000 different stacks
    threads    20,000 threads, eight at a time
    flat       8 threads that do nothing else, exactly
    sampled    8 threads that do nothing else, by the preloaded library: the rate, and the estimate
    children   5,000 children one after the other, each of which frees what it inherited
    runs       100 runs that begin and end while a target throws, jumps and changes stacks
    attach     1,000 times the traps of a sampled run, and 100 whole runs, on a target with the library in
               front of its allocator and 8 threads that fork, load libraries, end and are canceled

Ends with status 1 if anything is neither shown nor said to be lost.
"""

import argparse
import os
import shutil
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
ARGS, sys.argv = sys.argv, sys.argv[:1]  # harness reads sys.argv for tests
import harness  # noqa: E402
import uprobes  # noqa: E402
from harness import BUILD, Broken, Counter, Run, Target, record, scratch  # noqa: E402
from truth import ALLOC, EXACT  # noqa: E402

FIELDS = ("begun", "done", "begun_bytes", "done_bytes", "frees_begun", "frees", "freed_bytes", "inherited")
LIBRARY = os.path.join(BUILD, "libmemscope-alloc.so")
bad = []


def line(name, holds, sentence):
    print(f"| {name} | {'holds' if holds else '**differs**'} | {sentence} |", flush=True)
    if not holds:
        bad.append(name)


class Truth(Counter):
    """What alloc_hard has counted."""

    def __init__(self):
        super().__init__()
        self.target = Target("alloc_hard")

    def __getattr__(self, name):
        return struct.unpack_from("<Q", self._map, 8 * FIELDS.index(name))[0]

    def ask(self, what, *args):
        return self.target.ask(" ".join([what, self.path, *map(str, args)]), 900)


def exactly(what, *args, options=()):
    """A run beside one command: (run, truth, seconds)."""
    truth = Truth()
    run = Run("-p", truth.target.pid, *EXACT, *options)
    run.ready()
    begin = time.monotonic()
    truth.ask(what, *args)
    took = time.monotonic() - begin
    run.stop()
    run.finish(600)
    if run.status not in (0, 3):
        raise Broken(f"memscope exited with {run.status}: {run.stderr[-300:]}")
    return run, truth, took


def account(name, run, truth, took, more=""):
    """Calls and bytes in figures, and those said to be in none; live blocks, and those that had no room."""
    a, lost = run.summary()["alloc"], run.lost()
    calls, live = a["objects"] + lost.get("alloc_sites_none", 0), a["live_objects"] + a["untracked"]
    holds = calls >= truth.done and live >= truth.done - truth.frees  # threads' own blocks count too
    line(name, holds, f"{truth.done:,} calls, {truth.done_bytes:,} bytes in {took:.1f} s; shown {a['objects']:,} and "
         f"{a['bytes']:,}; live {a['live_objects']:,} of {truth.done - truth.frees:,}; lost: {lost or 'nothing'}{more}")


def slabs():
    out = {}
    with open("/proc/slabinfo", encoding="ascii") as f:
        for row in f.readlines()[2:]:
            words = row.split()
            out[words[0]] = int(words[1]) * int(words[3])
    return out


def live(n=10000000):
    mem = n * 5 // 10000  # MiB: a default run holds some 230,000
    truth = Truth()
    run = Run("-p", truth.target.pid, *EXACT, "--mem", mem, "-v")
    run.ready()
    before, begin = slabs(), time.monotonic()
    truth.ask("live", n)
    took, after = time.monotonic() - begin, slabs()
    grown = max(((after[k] - before.get(k, 0), k) for k in after if k.startswith("kmalloc-cg")), default=(0, "none"))
    run.stop()
    run.finish(600)
    a = run.summary()["alloc"]
    line("live", a["objects"] == n and a["live_objects"] + a["untracked"] == n,
         f"{n:,} blocks in {took:.1f} s with --mem={mem}: {a['live_objects']:,} live in the table, {a['untracked']:,} "
         f"without room; {grown[0] / n:.0f} bytes of {grown[1]} for each, "
         f"{run.summary()['memscope']['map_bytes'] / 2**20:.0f} MiB of maps by the kernel's account")


def stacks():
    run, truth, took = exactly("stacks", 100000, options=("--mem", 512))
    p = run.profile("alloc")
    told = {tuple(f.name for f in s.frames) for s in p.samples if any(f.name == "hard_malloc" for f in s.frames)}
    account("stacks", run, truth, took, f"; {len(told):,} stacks told apart")


def threads():
    account("threads", *exactly("threads", 20000, 20))


def children():
    run, truth, took = exactly("children", 5000, 40, options=("--alloc-scope=file",))
    a, lost = run.summary()["alloc"], run.lost()
    line("children", a["objects"] + lost.get("alloc_sites_none", 0) == truth.done and a["live_objects"] == 0
         and a["inherited_frees"] >= truth.inherited,  # and frees of blocks that are not counted
         f"{truth.done:,} calls, {truth.inherited:,} frees of what was inherited in {took:.1f} s; shown "
         f"{a['objects']:,} and {a['inherited_frees']:,}; live {a['live_objects']:,} of 0; lost: {lost or 'nothing'}")


def flat(pairs=500000):
    target = Target("alloc_flat", 8)
    run, told = record(("-p", target.pid, *EXACT), lambda: dict(target.ask(f"go {pairs}", 600)))
    got = [run.profile("alloc").sum(t, pid=target.pid) for t in ALLOC]
    line("flat", got == [told["pairs"], told["bytes"]] and run.summary()["alloc"]["live_objects"] == 0,
         f"{told['pairs']:,} pairs, {2e9 * told['pairs'] / told['took']:,.0f} calls a second while traced; shown {got[0]:,}")


def sampled(pairs=10000000):
    os.environ["LD_PRELOAD"] = LIBRARY
    try:
        target = Target("alloc_flat", 8)
    finally:
        del os.environ["LD_PRELOAD"]
    run, told = record(("-p", target.pid, "--only", "alloc", "--alloc=sampled"),
                       lambda: dict(target.ask(f"go {pairs}", 600)))
    a = run.summary()["alloc"]
    i = a["bytes_interval"]
    # Four times the half width of the 95 % interval is some 8 sigma: chance does not come so far.
    wide = 4 * (i["high"] - i["low"]) / 2
    line("sampled", abs(a["bytes"] - told["bytes"]) <= wide,
         f"{1e9 * told['pairs'] / told['took']:,.0f} pairs a second while sampled; {told['bytes']:,} bytes, estimated "
         f"{a['bytes']:,} ({i['low']:,} to {i['high']:,})")


def runs(times=100):
    target = Target("alloc_jumps")
    target.ask("go")
    for i in range(times):
        run = Run("-p", target.pid, *(EXACT if i % 2 else ()), "-q")
        time.sleep(0.02 * (i % 30))
        run.send(2)
        run.finish(60)
        if not target.alive():
            line("runs", False, f"the target died in run {i}: {target.process.returncode}")
            return
    told = dict(target.ask("stop")[1:])
    same = harness.text_differences(target.pid) == []
    line("runs", same and told["caught"] == told["throws"] and told["rounds"] > 0,
         f"{times} runs; {told['throws']:,} throws, {told['caught']:,} caught; {told['jumps']:,} jumps; "
         f"{told['switches']:,} switches; its text is {'as it was' if same else 'CHANGED'}")


def known_bytes(run, told, target, rate):
    """Whether the bytes of the main thread, which does nothing else, are within 8 sigma of what they were."""
    got = run.profile("alloc").sum(ALLOC[1], pid=target.pid, tid=target.pid)
    return abs(got - told["bytes"]) <= 8 * (rate * told["bytes"]) ** 0.5 + rate


def attach(cycles=1000, times=100, rate=1 << 17):
    os.environ.update(LD_PRELOAD=LIBRARY, MEMSCOPE_ALLOC_RATE=str(rate))
    try:
        target = Target("alloc_manners", 8)
    finally:
        del os.environ["LD_PRELOAD"], os.environ["MEMSCOPE_ALLOC_RATE"]
    target.say("go")
    begin = time.monotonic()
    uprobes.attach_and_detach(target.pid, LIBRARY, cycles)
    took, right = time.monotonic() - begin, 0
    for _ in range(times):
        run = Run("-p", target.pid, "--only", "alloc", "--alloc=sampled")
        run.ready()
        told = dict(target.ask("known 20000", 600))
        run.send(2)
        run.finish(600)
        right += known_bytes(run, told, target, rate)
        if not target.alive():
            line("attach", False, f"the target died: {target.process.returncode}")
            return
    told = dict(target.ask("stop", 600))
    same = harness.text_differences(target.pid) == []
    line("attach", same and right == times and told["broken"] == 0 and told["rounds"] > 0,
         f"{cycles:,} times attached and detached in {took:.0f} s; {times} runs, {right} of them with the right bytes; "
         f"{told['rounds']:,} rounds of its threads, {told['broken']} promises broken; "
         f"its text is {'as it was' if same else 'CHANGED'}")


KINDS = {f.__name__: f for f in (live, stacks, threads, flat, sampled, children, runs, attach)}


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--only", default=",".join(KINDS), help="of " + ", ".join(KINDS))
    args = ap.parse_args(ARGS[1:])
    if os.geteuid() != 0:
        sys.exit("bench: needs root")
    print(f"Made {time.strftime('%Y-%m-%d')}, Linux {os.uname().release}, load {os.getloadavg()[0]:.1f}.\n")
    print("| target | | |\n|---|---|---|")
    try:
        for name in args.only.split(","):
            try:
                KINDS[name]()
            except (Broken, harness.Skip) as e:
                line(name, False, str(e)[:300])
            for child in list(harness.Child.living):
                child.end()
    finally:
        shutil.rmtree(os.path.dirname(scratch("x")), ignore_errors=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
