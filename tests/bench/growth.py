#!/usr/bin/python3
"""What counting resident pages costs a program that does nothing but touch fresh memory.

    make bench-growth [BENCHFLAGS="--rounds 21 --mib 32"]

As root. Rounds without memscope and with it alternate; each is the fastest of several turns over the
same memory, in pages of 4 KiB, by the thread's own CPU clock. The difference is of the two rounds of
a pair: median, and the interval that holds it with 95 % confidence (order statistics, binomial).
"""

import argparse
import math
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
ARGS, sys.argv = sys.argv[1:], sys.argv[:1]

from harness import *  # noqa: E402

TURNS = 10
KINDS = {"memscope --only growth": (), "… without kernel stacks": ("-U",),
         "… of the whole host": ("-a",)}


def median_interval(values):
    """The pair of order statistics around the median whose coverage is 95 % or more."""
    values, n = sorted(values), len(values)
    tail, k = 0.0, 0
    while k < n // 2 and tail + math.comb(n, k) / 2 ** n <= 0.025:
        tail += math.comb(n, k) / 2 ** n
        k += 1
    k = max(k - 1, 0)
    return values[k], values[n - 1 - k]


def round_ns(target, mib):
    """ns for each page touched for the first time."""
    ns = target.ask(f"speed {mib} {TURNS}")[0][1] / (mib * 256)
    target.ask("unmap")
    return ns


def pairs(target, rounds, mib, args):
    for _ in range(rounds):
        without = round_ns(target, mib)
        run = Run(*(("-a",) if "-a" in args else ("-p", target.pid)), "--only", "growth",
                  *(a for a in args if a != "-a"))
        run.ready()
        with_it = round_ns(target, mib)
        run.stop()
        run.must()
        yield without, with_it


def main_():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--mib", type=int, default=32)
    args = parser.parse_args(ARGS)
    target = Target("growth")
    round_ns(target, args.mib)
    print("| | a page without, ns | with, ns | difference, ns (95 %) | of it |")
    print("|---|---|---|---|---|")
    for name, flags in KINDS.items():
        got = list(pairs(target, args.rounds, args.mib, flags))
        base = statistics.median(a for a, _ in got)
        diffs = [b - a for a, b in got]
        low, high = median_interval(diffs)
        print(f"| {name} | {base:.0f} | {statistics.median(b for _, b in got):.0f} | "
              f"{statistics.median(diffs):.0f} ({low:.0f} … {high:.0f}) | "
              f"{100 * statistics.median(diffs) / base:.1f} % |", flush=True)
    target.end()
    print(f"\nload {os.getloadavg()[0]:.1f}, {len(online_cpus())} CPUs, Linux {os.uname().release}")


main_()
