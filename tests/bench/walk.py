#!/usr/bin/python3
"""What one on-CPU sample costs in the kernel, by the depth of its stack. As root.

    make bench, or: BUILD=build python3 tests/bench/walk.py [--runs 5] [--seconds 1]

The kernel's own account of BPF programs (kernel.bpf_stats_enabled): time and runs of on_cpu. It is a
mean over all runs, and those that find somebody else on the CPU are cheap; so the program under test
is pinned to the last CPU and the events are opened on that one alone, what a run costs that finds
nobody is measured first, and taken off by the share of runs that the target was not on the CPU (its
CPU time by schedstat). The interrupt itself is not in it. On a busy machine the figures are several
times too large: the load is printed with them.
"""

import argparse
import glob
import os
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
ARGS, sys.argv = sys.argv, sys.argv[:1]  # harness reads sys.argv for tests
from harness import Run, Target, online_cpus, schedstat  # noqa: E402

SWITCH = "/proc/sys/kernel/bpf_stats_enabled"
CPU = online_cpus()[-1]
# unwind_depth has no frame pointers and takes multiples of 5: (depth, rate, options).
CASES = [(depth, 999, ("-U",)) for depth in (5, 30, 200, 1000, 2000)] + [
    (30, 99, ("-U",)), (30, 4999, ("-U",)), (30, 999, ()), (200, 999, ())]


def account(pid):
    """(ns, runs) of the on_cpu program that memscope's process holds."""
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                text = f.read()
        except OSError:
            continue
        row = dict(re.findall(r"^(\w+):\s*(\d+)", text, re.M))
        if row.get("prog_type") == "7" and int(row.get("run_cnt", 0)):  # BPF_PROG_TYPE_PERF_EVENT
            return int(row["run_time_ns"]), int(row["run_cnt"])
    return 0, 0


def window(pid, hz, options, seconds):
    """(ns, runs, runs that found the target) of some time of profiling it."""
    run = Run("-p", pid, "-C", CPU, "-F", hz, "--only", "oncpu", *options)
    try:
        run.ready()
        time.sleep(0.3)
        (ns, runs), cpu = account(run.pid), schedstat(pid)
        time.sleep(seconds)
        (ns_after, runs_after), cpu_after = account(run.pid), schedstat(pid)
        run.stop()
    finally:
        run.end()
    return ns_after - ns, runs_after - runs, min((cpu_after - cpu) / 1e9 * hz, runs_after - runs)


def nobody(hz, args):
    """ns of a run that finds somebody else; the rarer they are, the colder the caches."""
    idle = subprocess.Popen(["sleep", "1000"])
    try:
        rows = [window(idle.pid, hz, ("-U",), args.seconds) for _ in range(args.runs)]
    finally:
        idle.kill()
        idle.wait()
    return sum(row[0] for row in rows) / max(sum(row[1] for row in rows), 1)


def measure(args):
    rates = sorted({hz for _, hz, _ in CASES})
    others = {hz: nobody(hz, args) for hz in rates}
    print("\n### One on-CPU sample in the kernel, by the depth of its stack\n")
    print("A sample that finds nobody of interest: "
          + ", ".join(f"{others[hz]:.0f} ns at {hz} Hz" for hz in rates)
          + f". {args.runs} runs of {args.seconds} s.\n")
    print("| frames | rate | stacks | µs a sample (median) | smallest … largest | of the CPU | load |")
    print("|---|---|---|---|---|---|---|")
    for depth, hz, options in CASES:
        target = Target("unwind_depth", "burn", depth)
        os.sched_setaffinity(target.pid, {CPU})
        target.say("go")
        costs, shares = [], []
        for _ in range(args.runs):
            ns, runs, hits = window(target.pid, hz, options, args.seconds)
            if hits >= 10:
                costs.append((ns - (runs - hits) * others[hz]) / hits / 1000)
                shares.append(hits / runs)
        target.end()
        what = "user" if options else "user and kernel"
        if not costs:
            print(f"| {depth} | {hz} Hz | {what} | – | too few samples | | |")
            continue
        print(f"| {depth} | {hz} Hz | {what} | {statistics.median(costs):.2f} | "
              f"{min(costs):.2f} … {max(costs):.2f} | {statistics.median(shares):.0%} | "
              f"{os.getloadavg()[0]:.1f} |", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--runs", type=int, default=5, help="runs of each row (default 5)")
    ap.add_argument("--seconds", type=float, default=1.0, help="seconds of each (default 1)")
    args = ap.parse_args(ARGS[1:])
    if os.geteuid():
        sys.exit("bench: needs root")
    with open(SWITCH, encoding="ascii") as f:
        before = f.read()
    try:
        with open(SWITCH, "w", encoding="ascii") as f:
            f.write("1")
        measure(args)
    finally:
        with open(SWITCH, "w", encoding="ascii") as f:
            f.write(before)


main()
