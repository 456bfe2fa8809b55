#!/usr/bin/python3
"""What a run leaves of the work of a program that does nothing but switch, in its first second and after.

    tests/bench/floods.py [TURNS] [NAME=MEMSCOPE …]

A pipe ping-pong on one CPU; memscope, and whatever other builds of it are named, in turns: a default run, one
with --offcpu=sampled, and both with off-CPU times alone. Work left is the CPU time that the ping-pong takes for a
round without memscope (0.35 s before and after) over that with it: for 0.9 s from "profiling" on, and for
0.5 s more. CPU time and not the clock, for other programs may have the CPUs. Nothing here passes or fails.
"""

import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
ARGS, sys.argv = sys.argv, sys.argv[:1]  # harness reads sys.argv for tests
from harness import MEMSCOPE, Counter, Target, online_cpus  # noqa: E402

DEVNULL = subprocess.DEVNULL
RUNS = {"default": (), "--offcpu=sampled": ("--offcpu=sampled",), "off-CPU alone": ("--only", "offcpu"),
        "off-CPU alone, sampled": ("--only", "offcpu", "--offcpu=sampled")}


class PingPong:
    def __init__(self):
        self.target, self.counter = Target("pingpong", online_cpus()[-1]), Counter()
        self.target.say(f"rate {self.counter.path}")
        time.sleep(0.3)

    def cpu_ns(self):
        total = 0
        for tid in os.listdir(f"/proc/{self.target.pid}/task"):
            with open(f"/proc/{self.target.pid}/task/{tid}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
        return total

    def round_ns(self, seconds):
        """CPU time of a round, of two switches."""
        ns, rounds = self.cpu_ns(), self.counter.value()
        time.sleep(seconds)
        return (self.cpu_ns() - ns) / max(self.counter.value() - rounds, 1)


def watched(work, program, options, where):
    """The two windows with memscope."""
    out = os.path.join(where, "out")
    shutil.rmtree(out, ignore_errors=True)
    m = subprocess.Popen([program, "-p", str(work.target.pid), "-o", out, *options], stdin=DEVNULL, stdout=DEVNULL,
                         stderr=subprocess.PIPE, text=True)
    for line in m.stderr:
        if line.startswith("memscope: profiling"):
            break
    times = work.round_ns(0.9), work.round_ns(0.5)
    m.send_signal(signal.SIGINT)
    m.stderr.read()
    m.wait()
    return times


def show(name, ratios):
    logs = [math.log(r) for r in ratios]
    half = 2.1 * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    mean = statistics.fmean(logs)
    print(f"| {name} | {statistics.median(ratios):.2f} | {math.exp(mean - half):.2f} … {math.exp(mean + half):.2f} |")


def main():
    turns = int(ARGS[1]) if len(ARGS) > 1 else 8
    programs = dict(a.split("=", 1) for a in ARGS[2:]) | {"memscope": MEMSCOPE}
    os.sched_setaffinity(0, {online_cpus()[0]})
    work, bases = PingPong(), []
    left = {(p, o, w): [] for p in programs for o in RUNS for w in ("first second", "after")}
    with tempfile.TemporaryDirectory() as where:
        for _ in range(turns):
            before = work.round_ns(0.35)
            for p, program in programs.items():
                for o, options in RUNS.items():
                    first, later = watched(work, program, options, where)
                    after = work.round_ns(0.35)
                    base = (before + after) / 2
                    left[p, o, "first second"].append(base / first)
                    left[p, o, "after"].append(base / later)
                    bases.append(base)
                    before = after
    work.target.end()
    print(f"{statistics.median(bases):.0f} ns of CPU a round without memscope, {turns} turns, load {os.getloadavg()[0]:.1f}\n")
    print("| run | work left, median | mean, 95 % |\n|---|---|---|")
    for key, ratios in left.items():
        show(", ".join(key), ratios)


main()
