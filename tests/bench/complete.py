#!/usr/bin/python3
"""How many stacks of programs that nobody rebuilt are proven complete, with counts that prove it.

    make bench-complete, or: BUILD=build python3 tests/bench/complete.py [--seconds 20] [PROGRAM…]

Each program runs for itself; it is sampled at 99 and at 999 Hz at one time, with its switches in the
second run, and then its allocations are traced, every one. Per source: the stacks that were taken, how
many of them are proven complete, and the 95 % interval of that share by Wilson's formula. Its lower
end can only pass 99.5 % where there are at least 765 stacks, all of them complete. Stacks that user
space finished are counted as those walked in place. With --keep, the files of each run stay.
"""

import argparse
import math
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
ARGS, sys.argv = sys.argv, sys.argv[:1]  # harness reads sys.argv for tests
import harness  # noqa: E402
import programs  # noqa: E402
from harness import Broken, Child, Run, Skip  # noqa: E402

Z = 1.96
PROMISE = 0.995


def target(name, *args):
    return lambda: programs.target(name, *args)


def depth(mode, name="unwind_depth"):
    return target(name, mode, 1500 if name == "unwind_depth" else 300)


# (name, what starts it, {source: what starts it for that one}).
PROGRAMS = [
    ("python3", programs.python, {}),
    ("sqlite3", programs.sqlite, {}),
    ("redis-server", programs.redis, {}),
    ("xz -T2", programs.xz, {}),
    ("gcc: cc1", programs.gcc, {}),
    ("git log -p", programs.git, {}),
    ("postgres, pgbench", programs.postgres_server, {}),
    ("postgres, one query", programs.postgres, {}),
    ("postgres, with LLVM's JIT", lambda: programs.postgres("on"), {}),
    ("node --perf-basic-prof", programs.node, {}),
    ("java +PreserveFramePointer", lambda: programs.java("-XX:+PreserveFramePointer"), {}),
    ("java, no frame pointers", lambda: programs.java("-XX:-PreserveFramePointer"), {}),
    ("C++ recursion of 1500", depth("burn"), {"offcpu": depth("sleep"), "alloc": depth("malloc")}),
    ("Rust", programs.rust, {}),
    ("Go", programs.go, {}),
    ("Go with C's malloc", lambda: programs.go("", programs.CGO), {}),
    ("threads", target("unwind_mix", "threads"), {}),
    ("signals", target("unwind_mix", "signals"), {}),
    ("static", target("unwind_mix_static", "threads"), {}),
]


def wilson(good, n):
    """The 95 % interval of a share."""
    if not n:
        return 0.0, 1.0
    p, d = good / n, 1 + Z * Z / n
    mid, half = p + Z * Z / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    return max((mid - half) / d, 0.0), min((mid + half) / d, 1.0)


def row(name, source, run, wanted):
    found = {}
    for r in run.summary().get("stacks", []):
        if r["source"] == wanted:
            found = {k: v for k, v in r.items() if k != "source"}
    n, good = sum(found.values()), found.get("complete", 0)
    if not n:
        print(f"| {name} | {source} | 0 | – | – | |", flush=True)
        return
    low, high = wilson(good, n)
    others = ", ".join(f"{v} {k}" for k, v in found.items() if v and k != "complete")
    mark = "**" if low >= PROMISE else ""
    print(f"| {name} | {source} | {n} | {good / n:.2%} | {mark}{low:.2%} … {high:.2%}{mark} | "
          f"{others} |", flush=True)


def gather(pid, seconds, *runs):
    """Runs of memscope on one process at the same time."""
    made = [Run("-p", pid, "--json", *args) for args in runs]
    for run in made:
        run.ready()
    time.sleep(seconds)
    for run in made:
        run.send(harness.signal.SIGINT)
    for run in made:
        run.finish()
        if run.status not in (0, 3):
            raise Broken(f"memscope exited with {run.status}: {run.stderr[-300:]}")
    return made


def end_all():
    for child in list(Child.living):
        child.end()


def measure(name, start, others, args):
    both = "offcpu" not in others
    fast = ("-F", 999, "--only", "oncpu,offcpu" if both else "oncpu")
    child = start()
    low, high = gather(child.pid, args.seconds, ("-F", 99, "--only", "oncpu"), fast)
    row(name, "on CPU, 99 Hz", low, "oncpu")
    row(name, "on CPU, 999 Hz", high, "oncpu")
    if not both:
        end_all()
        child = others["offcpu"]()
        high, = gather(child.pid, min(args.seconds, 5), ("--only", "offcpu"))
    row(name, "at a switch", high, "offcpu")
    if "alloc" in others:
        end_all()
        child = others["alloc"]()
    run, = gather(child.pid, args.alloc_seconds, ("--only", "alloc", "--alloc=exact"))
    row(name, "inside malloc", run, "alloc")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--seconds", type=float, default=20, help="of samples (default 20)")
    ap.add_argument("--alloc-seconds", type=float, default=3, help="of allocations (default 3)")
    ap.add_argument("--keep", action="store_true", help="leave the files of each run")
    ap.add_argument("program", nargs="*", help="part of a name (default: all)")
    args = ap.parse_args(ARGS[1:])
    if os.geteuid():
        sys.exit("bench: needs root")
    print("\n### Stacks proven complete\n\n| program | source | stacks | complete | 95 % interval | "
          "others |\n|---|---|---|---|---|---|")
    try:
        for name, start, others in PROGRAMS:
            if args.program and not any(p in name for p in args.program):
                continue
            try:
                measure(name, start, others, args)
            except (Skip, Broken) as e:
                print(f"| {name} | {e} | | | | |", flush=True)
            finally:
                end_all()
        print(f"\n{args.seconds:g} s each, inside malloc {args.alloc_seconds:g} s; load "
              f"{os.getloadavg()[0]:.1f}; bold: the interval lies above {PROMISE:.1%}.")
    finally:
        end_all()
        if harness._scratch and not args.keep:
            shutil.rmtree(harness._scratch, ignore_errors=True)
        elif harness._scratch:
            print(f"kept: {harness._scratch}")


main()
