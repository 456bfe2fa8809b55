#!/usr/bin/python3
"""What a default run costs a program that lives in its allocator, against --max-overhead.

    make bench-governor [BENCHFLAGS="--rounds 15 --window 3 --max-overhead 5"]

As root. Windows without memscope and with `memscope -p PID` alternate; each tells how much CPU time a
piece of the program's work took, by the kernel's account of its threads, so that what else the machine
does counts little. The figure is the CPU time that the program used more in a window with memscope than
its work takes by the mean of the two windows around it, in percent of one CPU, which is what the limit
is of: median, and the interval that holds it with 95 % confidence (order statistics, binomial). All
sources are on, not the bursts alone. `nobody` is the same with nothing started: the noise to read the
rest by. Beside it what memscope says that its bursts cost, its own CPU time for them included; what it
says that all of its programs cost, in whatever process, which on a busy machine is more than the target's
share; and how much of the time bursts were.
"""

import argparse
import math
import os
import shutil
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
ARGS, sys.argv = sys.argv[1:], sys.argv[:1]

from harness import *  # noqa: E402

PYTHON = """
import mmap, struct, sys
f = open(sys.argv[1], "r+b")
m = mmap.mmap(f.fileno(), 4096)
n = 0
while True:
    x = [bytes(600 + i % 7) for i in range(100)]
    y = "".join(["y" * 700] * 9)
    n += 1
    struct.pack_into("<Q", m, 0, n)
"""
QUERY = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 200) "
         "SELECT count(printf('%0200d', x) || x) FROM c;\n")


class Work:
    """A program that runs, and how much of its work it has done."""

    def __init__(self):
        self.counter = Counter()
        self.child = None

    def value(self):
        return self.counter.value()


class Cxx(Work):
    name = "C++ STL"

    def __init__(self):
        super().__init__()
        self.child = Target("alloc_stl")
        self.child.say(f"go {self.counter.path}")


class Python(Work):
    name = "python3"

    def __init__(self):
        super().__init__()
        self.child = Child(["/usr/bin/python3", "-c", PYTHON, self.counter.path], **QUIET)


class Sqlite(Work):
    name = "sqlite3"

    def __init__(self):
        super().__init__()
        self.answers = 0
        self.child = Child([tool("sqlite3"), ":memory:"], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        threading.Thread(target=self._ask, daemon=True).start()
        threading.Thread(target=self._read, daemon=True).start()

    def _ask(self):
        try:
            while True:
                self.child.process.stdin.write(QUERY.encode() * 50)
                self.child.process.stdin.flush()
        except (OSError, ValueError):
            pass

    def _read(self):
        try:
            for _ in self.child.process.stdout:
                self.answers += 1
        except ValueError:
            pass

    def value(self):
        return self.answers


def median_interval(values):
    values, n = sorted(values), len(values)
    tail, k = 0.0, 0
    while k < n // 2 and tail + math.comb(n, k) / 2 ** n <= 0.025:
        tail += math.comb(n, k) / 2 ** n
        k += 1
    k = max(k - 1, 0)
    return values[k], values[n - 1 - k]


class Window:
    """What the program did in a stretch of time: pieces of work, CPU ns and wall ns."""

    def __init__(self, work, seconds):
        pieces, ns, begin = work.value(), schedstat(work.child.pid), time.monotonic_ns()
        time.sleep(seconds)
        self.wall_ns = time.monotonic_ns() - begin
        self.cpu_ns = schedstat(work.child.pid) - ns
        self.pieces = work.value() - pieces
        if not work.child.alive() or not self.pieces:
            sys.exit(f"bench-governor: {work.name} did nothing in {seconds:g} s")

    def lost(self, before, after):
        """Of one CPU: what its work took more than in the windows around it."""
        piece_ns = (before.cpu_ns + after.cpu_ns) / (before.pieces + after.pieces)
        return (self.cpu_ns - self.pieces * piece_ns) / self.wall_ns


def with_memscope(work, seconds, limit, told):
    run = Run("-p", work.child.pid, "--max-overhead", limit)
    run.ready()
    window = Window(work, seconds)
    run.stop()
    run.must()
    told.append(run.summary())
    shutil.rmtree(run.out, ignore_errors=True)
    return window


def rounds(work, n, seconds, limit):
    """[(lost with nobody, lost with memscope)], [what memscope said]"""
    rows, told = [], []
    first = Window(work, seconds)
    for _ in range(n):
        nobody, second = Window(work, seconds), Window(work, seconds)
        watched, third = with_memscope(work, seconds, limit, told), Window(work, seconds)
        rows.append((nobody.lost(first, second), watched.lost(second, third)))
        first = third
    return rows, told


def text(values):
    low, high = median_interval(values)
    return f"{statistics.median(values):.1%} ({low:.1%} … {high:.1%})"


def main_():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--window", type=float, default=3, help="seconds")
    parser.add_argument("--max-overhead", type=float, default=5)
    opts = parser.parse_args(ARGS)
    if os.geteuid():
        sys.exit("bench-governor: needs root")
    print(f"Measured {time.strftime('%Y-%m-%d')}, Linux {os.uname().release}, load "
          f"{os.getloadavg()[0]:.1f} at the begin; {opts.rounds} rounds of {opts.window:g} s; limit "
          f"{opts.max_overhead:g} % of one CPU\n")
    print("| program | nobody | memscope -p | it says, bursts | it says, all | in bursts | tier |")
    print("|---|---|---|---|---|---|---|")
    for kind in (Cxx, Python, Sqlite):
        if kind is Sqlite and not tool("sqlite3"):
            print(f"| {kind.name} | sqlite3 is not installed | | | | | |")
            continue
        work = kind()
        time.sleep(0.5)
        rows, told = rounds(work, opts.rounds, opts.window, opts.max_overhead)
        work.child.end()
        allocs = [s["alloc"] for s in told]
        costs = [a["bursts"]["cost_percent"] / 100 for a in allocs if "bursts" in a]
        all_costs = [s["cost"]["percent"] / 100 for s in told if "cost" in s]
        parts = [a["bursts"]["covered_ns"] / max(a["bursts"]["span_ns"], 1)
                 for a in allocs if "bursts" in a]
        tiers = ", ".join(sorted({a["tier"] for a in allocs}))
        print(f"| {kind.name} | {text([r[0] for r in rows])} | {text([r[1] for r in rows])} | "
              f"{text(costs) if costs else ''} | {text(all_costs) if all_costs else ''} | "
              f"{text(parts) if parts else ''} | {tiers} |",
              flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    try:
        main_()
    finally:
        for child in list(Child.living):
            child.end()
