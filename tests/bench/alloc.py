#!/usr/bin/python3
"""What tracing every malloc and free costs: CPU time of one pair, by tool.

    make bench-alloc [BENCHFLAGS="--rounds 9 --window 0.8"]

A program does nothing but malloc and free, from a shallow stack. In each round every tool is attached to
a new one of its own, and its CPU time for a pair is measured before and while it is attached; what a tool
costs is the difference. The table has the median of the rounds, the middle half of them, and how many
times memscope's that is. CPU time is the kernel's account of the program's thread, so what else the
machine does counts little; the load is printed. Other allocators are preloaded: tools that know only libc's
malloc see nothing there, and their cost is then that of seeing nothing.
"""

import argparse
import os
import shutil
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bench import (ARGS, FIRST_CPU, LAST_CPU, LIBC, NOTHING, WHERE, Counter, Target,  # noqa: E402
                   bcc, bcc_headers, bpftrace, memscope)
from harness import schedstat  # noqa: E402

LIBRARIES = {"glibc": None, "jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4",
             "mimalloc": "libmimalloc.so.2.0"}


def tools():
    return [
        NOTHING,
        memscope("--only", "alloc", "--alloc=exact"),
        bcc("memleak", "-p", "{pid}", ready="Attaching", settle=4),
        bpftrace("uprobe:{libc}:malloc { @[ustack] = count(); } "
                 "uprobe:{libc}:free { @frees = count(); }".replace("{libc}", LIBC)),
    ]


def start(library):
    if library:
        os.environ["LD_PRELOAD"] = library
    try:
        target = Target("alloc_flat", 1)
    finally:
        os.environ.pop("LD_PRELOAD", None)
    os.sched_setaffinity(target.pid, {LAST_CPU})
    counter = Counter()
    target.say(f"rate {counter.path}")
    time.sleep(0.2)
    return target, counter


def pair_ns(target, counter, window):
    pairs, spent_ns = counter.value(), schedstat(target.pid)
    time.sleep(window)
    return (schedstat(target.pid) - spent_ns) / max(counter.value() - pairs, 1)


def measure(allocator, library, rounds, window):
    costs, notes = {}, {}
    for _ in range(rounds):
        for t in tools():
            if t.name in notes:
                continue
            target, counter = start(library)
            alone = pair_ns(target, counter, window / 2)
            if t.start(target.pid):
                costs.setdefault(t.name, []).append(pair_ns(target, counter, window) - alone)
            else:
                notes[t.name] = f"does not start: {t.why()}"
            t.end()
            target.end()
    print(f"\n### {allocator}: CPU time that a malloc and its free take more, ns\n")
    print("| tool | median | middle half | times memscope |")
    print("|---|---|---|---|")
    own = statistics.median(costs["memscope"])
    for t in tools():
        c = sorted(costs.get(t.name, []))
        if not c:
            print(f"| {t.name} | – | {notes.get(t.name, '')} | |")
            continue
        times = "" if t.name == NOTHING.name else f"{statistics.median(c) / own:.1f}"
        print(f"| {t.name} | {statistics.median(c):,.0f} | {c[len(c) // 4]:,.0f} … "
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
            path = LIBRARIES[name] and f"/usr/lib/{os.uname().machine}-linux-gnu/{LIBRARIES[name]}"
            if path and not os.path.exists(path):
                print(f"\n### {name}: {LIBRARIES[name]} is not installed")
                continue
            measure(name, path, args.rounds, args.window)
    finally:
        shutil.rmtree(WHERE, ignore_errors=True)


if __name__ == "__main__":
    main()
