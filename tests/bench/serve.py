#!/usr/bin/python3
"""What `memscope serve -a` costs under loads, in percent of one CPU, and its memory; work left beside none.

    tests/bench/serve.py [--seconds N] [--settle N] [LOAD …]

Loads: idle, compilers, threads, processes, switches, switches-max, faults (LOADS below). For each, the load alone, then with
serve from its settling on, then alone again. Counted for serve: CPU time of its process and of its children (/proc/PID/stat),
run time of its BPF programs (kernel.bpf_stats_enabled), and what its way to a program costs beyond that time, as serve
itself measures it (summary.json: overhead). Memory: the largest Pss of process and children, sampled twice a second, and the maps' memory. Nothing here
passes or fails.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
ARGS, sys.argv = sys.argv[1:], sys.argv[:1]  # harness reads sys.argv for tests
from harness import BUILD, MEMSCOPE  # noqa: E402

CHURN = os.path.join(BUILD, "targets/churn")
LOADS = {
    "idle": None,
    "compilers": "compilers",
    "threads": [CHURN, "threads", "1400"],
    "processes": [CHURN, "processes", "1000"],
    "switches": [CHURN, "switches", "100000"],
    "switches-max": [CHURN, "switches", "0"],
    "faults": [CHURN, "faults", "0"],
}
TICK = os.sysconf("SC_CLK_TCK")


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
            found += [int(p) for p in f.read().split()]
    return found


def cpu_s(pid):
    """Of the process and of its children that were waited for."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return sum(int(x) for x in fields[11:15]) / TICK


def programs_s(pid):
    """Run time of the BPF programs whose descriptors the process has."""
    total = 0
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                text = f.read()
        except OSError:
            continue
        for line in text.splitlines():
            if line.startswith("run_time_ns:"):
                total += int(line.split()[1])
    return total / 1e9


def pss_kib(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def maps_kib(pid):
    seen, total = set(), 0
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                rows = dict(line.split(":", 1) for line in f.read().splitlines() if ":" in line)
        except (OSError, ValueError):
            continue
        if "map_id" in rows and rows["map_id"] not in seen:
            seen.add(rows["map_id"])
            total += int(rows["memlock"]) // 1024
    return total


class Load:
    """A load's process; its work is the sum of the lines that it printed."""

    def __init__(self, kind):
        self.lines, self.kind, self.p = [], kind, None
        self.stop = False
        if kind is None:
            return
        if kind == "compilers":
            self.t = threading.Thread(target=self.compile)
            self.t.start()
            return
        self.p = subprocess.Popen(kind, stdout=subprocess.PIPE, text=True)
        self.t = threading.Thread(target=self.read)
        self.t.start()

    def compile(self):
        """One small C file after the other."""
        with tempfile.TemporaryDirectory() as d:
            source = os.path.join(d, "a.c")
            with open(source, "w", encoding="ascii") as f:
                f.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" +
                        "".join(f"int f{i}(int a) {{ return printf(\"%d\", a * {i}); }}\n" for i in range(60)))
            env = dict(os.environ, CCACHE_DISABLE="1")
            while not self.stop:
                subprocess.run(["/usr/bin/gcc", "-O2", "-c", source, "-o", os.path.join(d, "a.o")], env=env, check=True)
                self.lines.append((time.monotonic(), 1, 0))

    def read(self):
        for line in self.p.stdout:
            n, ns = line.split()
            self.lines.append((time.monotonic(), int(n), int(ns)))

    def rate(self, since, until):
        """(events a second, events per second of CPU)."""
        rows = [r for r in self.lines if since < r[0] <= until]
        cpu = sum(r[2] for r in rows)
        n = sum(r[1] for r in rows)
        return n / (until - since), n / (cpu / 1e9) if cpu else 0

    def end(self):
        self.stop = True
        if self.p:
            self.p.kill()
        if self.kind is not None:
            self.t.join()


def serve(args, where):
    archive = os.path.join(where, "archive")
    shutil.rmtree(archive, ignore_errors=True)
    return subprocess.Popen([MEMSCOPE, "serve", "-a", "-q", "--archive", archive, "--every", str(args.every), *args.option],
                            stdout=subprocess.DEVNULL), archive


def overhead(archive):
    for folder, _, names in os.walk(archive):
        for name in names:
            if name.startswith("summary") and name.endswith(".json"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    return json.load(f).get("overhead", {})
    return {}


def measure(name, args, where):
    load = Load(LOADS[name])
    time.sleep(2)
    t0 = time.monotonic()
    time.sleep(args.seconds / 2)
    t1 = time.monotonic()
    p, archive = serve(args, where)
    time.sleep(args.settle)
    own, programs, since = cpu_s(p.pid), programs_s(p.pid), time.monotonic()
    peak, pss, until = 0, [], since + args.seconds
    while time.monotonic() < until:
        kib = pss_kib(p.pid) + sum(pss_kib(c) for c in children(p.pid))
        pss.append((time.monotonic(), kib))
        peak = max(peak, kib)
        time.sleep(0.5)
    t2 = time.monotonic()
    own, programs, maps = cpu_s(p.pid) - own, programs_s(p.pid) - programs, maps_kib(p.pid)
    p.send_signal(signal.SIGTERM)
    p.wait()
    time.sleep(1)
    t3 = time.monotonic()
    time.sleep(args.seconds / 2)
    t4 = time.monotonic()
    load.end()
    before, with_it, after = load.rate(t0, t1), load.rate(since, t2), load.rate(t3, t4)
    span = t2 - since
    base = [(b + a) / 2 for b, a in zip(before, after)]
    left = [w / b if b else float("nan") for w, b in zip(with_it, base)]
    half = len(pss) // 2
    print(f"{name:13} own {100 * own / span:5.2f} %  programs {100 * programs / span:5.2f} %  "
          f"rate {with_it[0]:9.0f}/s  work left {left[0]:.3f} by the clock, {left[1]:.3f} by CPU time  "
          f"Pss {peak / 1024:.0f} MiB (median of halves {statistics.median(k for _, k in pss[:half]) / 1024:.0f}, "
          f"{statistics.median(k for _, k in pss[half:]) / 1024:.0f})  maps {maps / 1024:.0f} MiB", flush=True)
    if args.json:
        print("  ", json.dumps(overhead(archive)), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=60)
    parser.add_argument("--every", type=float, default=120)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("loads", nargs="*")
    args = parser.parse_args(ARGS)
    with open("/proc/sys/kernel/bpf_stats_enabled", "r+", encoding="ascii") as f:
        was = f.read()
        f.seek(0)
        f.write("1")
    try:
        with tempfile.TemporaryDirectory() as where:
            for name in args.loads or LOADS:
                measure(name, args, where)
    finally:
        with open("/proc/sys/kernel/bpf_stats_enabled", "w", encoding="ascii") as f:
            f.write(was)


if __name__ == "__main__":
    main()
