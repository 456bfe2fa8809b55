#!/usr/bin/python3
"""What one sample costs in the kernel, by the depth of its stack. As root.

    make bench, or: make BUILD=build/bench BPF_DEFS=-DMS_BENCH build/bench/memscope targets
                    BUILD=build python3 tests/bench/walk.py [--runs 5] [--seconds 1]

Two accounts of the same runs. The program's own, in the build that keeps one (bpf/bench.bpf.h): a
distribution of the durations of those samples that found the target, by the clock at the program's
beginning and end. And the kernel's of BPF programs (kernel.bpf_stats_enabled), which is a mean over
all runs, those that find somebody else on the CPU too: what such a run costs is measured first, and
taken off by the share of runs that the target was not on the CPU (its CPU time by schedstat). The
target is pinned to the last CPU, and events are opened on that one alone. The interrupt itself is in
neither. On a busy machine the figures are larger: the load is printed with them.
"""

import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("MEMSCOPE", os.path.join(os.environ.get("BUILD", os.path.join(TOP, "build")),
                                               "bench", "memscope"))
sys.path.insert(0, os.path.join(TOP, "tests", "live"))
ARGS, sys.argv = sys.argv, sys.argv[:1]  # harness reads sys.argv for tests
from harness import Child, Run, Target, online_cpus, schedstat, tool  # noqa: E402

SWITCH = "/proc/sys/kernel/bpf_stats_enabled"
CPU = online_cpus()[-1]
SOURCES = ("oncpu", "offcpu")
PARTS = 512  # of bpf/bench.bpf.h
PERF_EVENT = "7"  # BPF_PROG_TYPE_PERF_EVENT

PYTHON = """
def f(n, x):
    return f(n - 1, x) + 1 if n else sum(i * i % 7 for i in range(x))
while True:
    f(8, 200)
"""
SQL = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) "
       "SELECT count(*) FROM n WHERE (i * 7919) % 1000 < 3;")


def depth(how, frames):
    """unwind_depth has no frame pointers and takes multiples of 5."""
    def start():
        target = Target("unwind_depth", how, frames)
        target.say("go")
        return target
    return start


def command(program, *args):
    def start():
        path = tool(program)
        return path and Child([path, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    return start


# What runs, source, Hz, stacks, how to start it.
CASES = [(f"{n} frames", "oncpu", 999, "user", depth("burn", n)) for n in (5, 30, 200, 1000, 2000)] + [
    ("30 frames", "oncpu", 99, "user", depth("burn", 30)),
    ("30 frames", "oncpu", 4999, "user", depth("burn", 30)),
    ("30 frames", "oncpu", 999, "user and kernel", depth("burn", 30)),
    ("python3", "oncpu", 999, "user", command("python3", "-c", PYTHON)),
    ("sqlite3", "oncpu", 999, "user", command("sqlite3", ":memory:", SQL)),
    ("30 frames", "offcpu", 0, "user", depth("sleep", 30)),
    ("200 frames", "offcpu", 0, "user", depth("sleep", 200)),
]


def descriptors(pid):
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                yield dict(re.findall(r"^(\w+):\s*(\d+)", f.read(), re.M))
        except OSError:
            continue


def account(pid):
    """(ns, runs) of the on_cpu program that memscope's process holds."""
    for row in descriptors(pid):
        if row.get("prog_type") == PERF_EVENT and int(row.get("run_cnt", 0)):
            return int(row["run_time_ns"]), int(row["run_cnt"])
    return 0, 0


def bpftool(*args):
    return json.loads(subprocess.run([tool("bpftool"), "-j", *args], capture_output=True,
                                     check=True).stdout)


def durations(pid, source):
    """What bench_ns holds: {shortest ns of a part: how many}."""
    own = {row["map_id"] for row in descriptors(pid) if "map_id" in row}
    ids = [m["id"] for m in bpftool("map", "show") if m.get("name") == "bench_ns"]
    number = next((str(i) for i in ids if str(i) in own), None)
    if not number:
        sys.exit("bench: this memscope keeps no account; make BUILD=build/bench BPF_DEFS=-DMS_BENCH")
    counts = {}
    for row in bpftool("map", "dump", "id", number):
        key, n = row["formatted"]["key"], row["formatted"]["value"]
        if n and key // PARTS == SOURCES.index(source):
            e, part = divmod(key % PARTS, 16)
            counts[2 ** e * (1 + part / 16)] = n
    return counts


def quantile(counts, share):
    """The middle of the part that holds it."""
    left = share * sum(counts.values())
    for ns in sorted(counts):
        left -= counts[ns]
        if left <= 0:
            return ns * (1 + 1 / 32)
    return 0


def window(pid, source, hz, stacks, seconds):
    """(ns, runs, runs that found the target, durations) of some time of profiling it."""
    run = Run("-p", pid, "--only", source, *(["-C", CPU, "-F", hz] if hz else []),
              *(["-U"] if stacks == "user" else []))
    try:
        run.ready()
        time.sleep(0.3)
        (ns, runs), cpu = account(run.pid), schedstat(pid)
        old = durations(run.pid, source)
        time.sleep(seconds)
        (ns_after, runs_after), cpu_after = account(run.pid), schedstat(pid)
        new = durations(run.pid, source)
        run.stop()
    finally:
        run.end()
    hits = min((cpu_after - cpu) / 1e9 * hz, runs_after - runs)
    return (ns_after - ns, runs_after - runs, hits,
            {k: n - old.get(k, 0) for k, n in new.items() if n > old.get(k, 0)})


def nobody(hz, args):
    """ns of a run that finds somebody else; the rarer they are, the colder the caches."""
    idle = subprocess.Popen(["sleep", "1000"])
    try:
        rows = [window(idle.pid, "oncpu", hz, "user", args.seconds) for _ in range(args.runs)]
    finally:
        idle.kill()
        idle.wait()
    return sum(row[0] for row in rows) / max(sum(row[1] for row in rows), 1)


def measure(args):
    others = {hz: nobody(hz, args) for hz in sorted({hz for _, _, hz, _, _ in CASES if hz})}
    print("\n### One sample in the kernel, by the depth of its stack, µs\n")
    print("A sample that finds nobody of interest: "
          + ", ".join(f"{ns:.0f} ns at {hz} Hz" for hz, ns in others.items())
          + f". {args.runs} runs of {args.seconds} s.\n")
    print("| what | source | stacks | samples | median | 90 % | 99 % | mean by bpf_stats "
          "(smallest … largest run) | load |")
    print("|---|---|---|---|---|---|---|---|---|")
    for what, source, hz, stacks, start in CASES:
        name = f"| {what} | {source}{f' {hz} Hz' if hz else ''} | {stacks} |"
        target = start()
        if not target:
            print(f"{name} – | it is not installed | | | | |")
            continue
        os.sched_setaffinity(target.pid, {CPU})
        time.sleep(0.2)
        means, counts = [], {}
        for _ in range(args.runs):
            ns, runs, hits, found = window(target.pid, source, hz, stacks, args.seconds)
            for k, n in found.items():
                counts[k] = counts.get(k, 0) + n
            if hz and hits >= 10:
                means.append((ns - (runs - hits) * others[hz]) / hits / 1000)
        target.end()
        mean = (f"{statistics.median(means):.2f} ({min(means):.2f} … {max(means):.2f})"
                if means else "–")
        print(f"{name} {sum(counts.values())} | "
              + " | ".join(f"{quantile(counts, q) / 1000:.2f}" for q in (0.5, 0.9, 0.99))
              + f" | {mean} | {os.getloadavg()[0]:.1f} |", flush=True)


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


if __name__ == "__main__":
    main()
