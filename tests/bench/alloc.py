#!/usr/bin/python3
"""What tracing every malloc and free costs: CPU time of one pair, by tool.

    make bench-alloc [BENCHFLAGS="--rounds 9 --window 0.8"] [MEMLEAK=PATH]

MEMLEAK: memleak of libbpf-tools, which Debian does not package; without it that row is left out.

A program does nothing but malloc and free, from a shallow stack; then another one nothing but operator
new and delete. In each round every tool has a new one of its own: what attaches is attached to it, and its
CPU time for a pair is measured before and while it is; what must be there from the start (heaptrack,
massif, samplers of allocators, memscope's library) is compared with one that was started without, in the
same round. What a tool costs is the difference. The table has the median of the rounds, the middle half of
them, and how many times memscope's exact tracing that is. CPU time is the kernel's account of the program's
thread, so what else the machine does counts little, and what a tool's own processes do does not count; the
load is printed. Other allocators are preloaded: tools that know only libc's malloc see nothing there, and
their cost is then that of seeing nothing.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bench import (ARGS, FIRST_CPU, LAST_CPU, LIBC, NOTHING, WHERE, Counter, Target, Tool,  # noqa: E402
                   bcc, bcc_headers, bpftrace, memscope)
from harness import BUILD, TARGETS, Child, schedstat, tool  # noqa: E402

LIBRARIES = {"glibc": None, "jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4",
             "mimalloc": "libmimalloc.so.2.0"}


MEMLEAK = os.environ.get("MEMLEAK", "")
LIBBPF_MEMLEAK = "libbpf-tools memleak"


def no_memleak():
    if not MEMLEAK:
        return "MEMLEAK does not say where it is: Debian has no package of it"
    return None if os.access(MEMLEAK, os.X_OK) else f"{MEMLEAK} cannot be run"


def tools():
    return [
        NOTHING,
        memscope("--only", "alloc", "--alloc=exact"),
        memscope("--only", "alloc", "--alloc=exact", "--inject", name="memscope, by its library"),
        bcc("memleak", "-p", "{pid}", ready="Attaching", settle=4),
        Tool(LIBBPF_MEMLEAK, [MEMLEAK, "-p", "{pid}", "60"], settle=2),
        bpftrace("uprobe:{libc}:malloc { @[ustack] = count(); } "
                 "uprobe:{libc}:free { @frees = count(); }".replace("{libc}", LIBC)),
    ]


def library_of(name):
    return f"/usr/lib/{os.uname().machine}-linux-gnu/{name}"


class Launched:
    """What is there from the program's start: `prefix` before it, `env` beside it; `attached`, a tool
    that listens to that."""

    def __init__(self, name, allocator, prefix=(), env=None, attached=None):
        self.name, self.allocator, self.prefix, self.env = name, allocator, prefix, env or {}
        self.attached = attached

    def why_not(self):
        if self.prefix and not tool(self.prefix[0]):
            return f"{self.prefix[0]} is not installed"
        library = self.env.get("LD_PRELOAD", "")
        return f"{library} is not there" if library and not os.path.exists(library) else None


def launched():
    full = library_of("libtcmalloc.so.4")
    return [
        Launched("memscope, sampled every 512 KiB", "glibc",
                 env={"LD_PRELOAD": os.path.join(BUILD, "libmemscope-alloc.so")},
                 attached=memscope("--only", "alloc", "--alloc=sampled")),
        Launched("heaptrack", "glibc", ["heaptrack", "-o", f"{WHERE}/heaptrack"]),
        Launched("massif", "glibc", ["valgrind", "-q", "--tool=massif", f"--massif-out-file={WHERE}/massif"]),
        Launched("jemalloc, prof every 512 KiB", "jemalloc",
                 env={"LD_PRELOAD": library_of("libjemalloc.so.2"),
                      "MALLOC_CONF": f"prof:true,lg_prof_sample:19,prof_prefix:{WHERE}/je"}),
        Launched("the full tcmalloc, not sampling", "tcmalloc",
                 env={"LD_PRELOAD": full, "TCMALLOC_SAMPLE_PARAMETER": "0"}),
        Launched("the full tcmalloc, sampling every 512 KiB", "tcmalloc",
                 env={"LD_PRELOAD": full, "TCMALLOC_SAMPLE_PARAMETER": "524288"}),
    ]


class Program(Target):
    """Pinned, and at work; with what it is started by, its own pid is what it says."""

    def __init__(self, name, prefix=(), env=None):
        Child.__init__(self, [*prefix, os.path.join(TARGETS, name), "1"], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        words = []
        while words[:1] != ["ready"]:
            words = self._line("ready", 30)
        self.own_pid = int(words[1])
        os.sched_setaffinity(self.own_pid, {LAST_CPU})
        self.counter = Counter()
        self.say(f"rate {self.counter.path}")
        time.sleep(0.3)

    def pair_ns(self, window):
        pairs, spent_ns = self.counter.value(), schedstat(self.own_pid)
        time.sleep(window)
        return (schedstat(self.own_pid) - spent_ns) / max(self.counter.value() - pairs, 1)

    def end(self, close=True):
        try:
            os.kill(self.own_pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            self.process.wait(10)  # what started it ends by itself
        except subprocess.TimeoutExpired:
            pass
        super().end(close)


def round_of(program, allocator, library, window, costs, notes):
    env = {"LD_PRELOAD": library} if library else {}
    for t in tools():
        if t.name in notes:
            continue
        target = Program(program, env=env)
        alone = target.pair_ns(window / 2)
        if t.start(target.own_pid):
            costs.setdefault(t.name, []).append(target.pair_ns(window) - alone)
        else:
            notes[t.name] = f"does not start: {t.why()}"
        t.end()
        target.end()
    for way in launched():
        if way.allocator != allocator or way.name in notes:
            continue
        if way.why_not():
            notes[way.name] = way.why_not()
            continue
        target = Program(program, env=env)
        alone = target.pair_ns(window / 2)
        target.end()
        target = Program(program, way.prefix, way.env)
        if not way.attached or way.attached.start(target.own_pid):
            costs.setdefault(way.name, []).append(target.pair_ns(window) - alone)
        else:
            notes[way.name] = f"does not start: {way.attached.why()}"
        if way.attached:
            way.attached.end()
        target.end()


def measure(program, pair, allocator, library, rounds, window):
    costs, notes = {}, {}
    if no_memleak():
        notes[LIBBPF_MEMLEAK] = no_memleak()
    for _ in range(rounds):
        round_of(program, allocator, library, window, costs, notes)
    print(f"\n### {allocator}: CPU time that {pair} take more, ns\n")
    print("| tool | median | middle half | times memscope |")
    print("|---|---|---|---|")
    own = statistics.median(costs["memscope"])
    for name in [t.name for t in tools()] + [w.name for w in launched() if w.allocator == allocator]:
        c = sorted(costs.get(name, []))
        if not c:
            print(f"| {name} | – | {notes.get(name, '')} | |")
            continue
        times = "" if name == NOTHING.name else f"{statistics.median(c) / own:.1f}"
        print(f"| {name} | {statistics.median(c):,.0f} | {c[len(c) // 4]:,.0f} … "
              f"{c[-1 - len(c) // 4]:,.0f} | {times} |")
    sys.stdout.flush()


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--window", type=float, default=0.8, help="seconds with a tool")
    ap.add_argument("--only", default=",".join(LIBRARIES), help="of " + ", ".join(LIBRARIES))
    args = ap.parse_args(ARGS[1:])
    if os.geteuid() != 0:
        sys.exit("bench: needs root, as the tools do")
    bcc_headers()
    print(f"Measured {time.strftime('%Y-%m-%d')}, Linux {os.uname().release}, load "
          f"{os.getloadavg()[0]:.1f}; {args.rounds} rounds; programs on CPU {LAST_CPU}, tools on {FIRST_CPU}.")
    try:
        for name in args.only.split(","):
            path = LIBRARIES[name] and library_of(LIBRARIES[name])
            if path and not os.path.exists(path):
                print(f"\n### {name}: {LIBRARIES[name]} is not installed")
                continue
            measure("alloc_flat", "a malloc and its free", name, path, args.rounds, args.window)
            measure("new_flat", "an operator new and its delete", name, path, args.rounds, args.window)
    finally:
        shutil.rmtree(WHERE, ignore_errors=True)


if __name__ == "__main__":
    main()
