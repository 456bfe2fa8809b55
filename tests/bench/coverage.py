#!/usr/bin/python3
"""How often the 95 % intervals of live runs hold the truth, by tier, and what diff says of equal runs.

    tests/bench/coverage.py [TIER …] [--runs N] [--pairs N] [--at-once N] [--seconds S]

Each run is a second or two on a target that logs what it did:

exact      alloc_truth in windows (--every): the sum of the windows is the truth, to the byte
oncpu      cpu_split: CPU time of its three functions, beside the clock of the thread
sampled    alloc_truth with a sampler every 16 KiB: bytes allocated, and live, of each function
bursts     alloc_flat, 300,000 pairs a second, in bursts: bytes allocated
live       live_truth in bursts: live bytes of each function
growth     leaks: resident bytes of the function that leaks (counted, no interval: right is within 5 %)

A row for each tier: how many intervals there are, the share that holds the truth with the interval of that share
(Wilson's; runs are what varies, so it is as if each had one interval), and the bias: the sum of estimates over the
sum of truths, less 1, with 95 % by resampling runs. What memscope does not list counts as 0.

Then `diff`, of runs of one_site, whose four functions do a fixed number of things (tests/targets/one_site.c): the
work is the same however long it takes, and one function, with three tenths of it, does --more percent more. For
each tier:

one a side   pairs of equal runs: functions named, of those compared (1 % by chance at most); and pairs of which the
             second does more: how many of them name that site, and how many another (by shares, what others have
             less of has changed, too, and is named)
more a side  --a-side runs a side (Welch's t-test between runs), as many of these as the pairs are enough for
noise        half the 95 % interval of the difference of one pair, of the site, in percent of it: the median. A change
             of 2.5 times that is named in 19 of 20 pairs (four functions at 1 % are beyond 3 standard errors, 1.65 more
             for the power). It falls with the root of the run's length

Bursts are compared by shares (--normalize): what tracing a call costs is known to some tens of percent where it takes
much of a burst, is common to all functions, and in a pair of runs differs by chance.

On a busy machine runs of bursts have fewer bursts, and wider intervals; all else is the same. Nothing here passes
or fails.
"""

import argparse
import glob
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "live"))

import pprof_reader  # noqa: E402
from harness import MEMSCOPE, TARGETS, Broken, Counter, Run, Target, record, scratch  # noqa: E402
from truth import sites_of  # noqa: E402

OPS = 6000


def memscope(*args):
    return json.loads(subprocess.run([MEMSCOPE, *map(str, args)], capture_output=True, timeout=120, check=True,
                                     stdin=subprocess.DEVNULL).stdout)


def rows_of(path, value, names):
    """[(function, estimate, low, high)]: 0 where it is not listed, or the profile has nothing of that value."""
    p = pprof_reader.read(path)
    got = {}
    if any(t.startswith(value + "/") and p.sum(t) for t in p.types):
        got = {r["function"]: r for r in memscope("report", "--json", "-n", 1000, "--value", value, path)["by_total"]}
    rows = []
    for name in names:
        r = got.get(name)
        rows.append((name, r["total"], r.get("total_low", r["total"]), r.get("total_high", r["total"])) if r
                    else (name, 0, 0, 0))
    return rows


def beside(path, value, truth):
    return [(*row, truth[row[0]]) for row in rows_of(path, value, truth)]


def exact(_seconds):
    target = Target("alloc_truth", 1, OPS)
    run, lines = record(["-p", target.pid, "--alloc=exact", "--only", "alloc", "--every", 0.2],
                        lambda: target.ask("run"))
    sites, _ = sites_of(lines)
    sums = dict.fromkeys(sites, 0)
    windows = glob.glob(os.path.join(run.out, "**", "alloc*.pb.gz"), recursive=True)
    for path in windows:
        window = pprof_reader.read(path)
        for name in sums:
            sums[name] += window.sum("alloc_space/bytes", name, pid=target.pid)
    return [(n, sums[n], sums[n], sums[n], s[1]) for n, s in sites.items() if s[1]]


def oncpu(seconds):
    target = Target("cpu_split", int(1000 * seconds))
    run, lines = record(["-p", target.pid, "--only", "oncpu", "-F", 499], lambda: target.ask("go", timeout=120))
    threads = [line for line in lines if line[0] == "thread"]
    truth = {name: sum(int(t[k]) for t in threads) for k, name in ((3, "hot_70"), (4, "hot_20"), (5, "hot_10"))}
    return beside(run.path("oncpu.pb.gz"), "cpu", truth)


def sampled(_seconds):
    log = scratch("truth")
    run = Run("--alloc=sampled", "--alloc-rate", "16K", "--only", "alloc", "--max-overhead", "100000", "--",
              os.path.join(TARGETS, "alloc_truth"), "now", log, OPS)
    run.finish()
    run.must()
    with open(log, encoding="ascii") as f:
        sites, _ = sites_of([[int(w) if w.isdigit() else w for w in line.split()] for line in f])
    # Of what is too little to be sampled five times there is no interval that could be held to it (model/estimate.h).
    enough = 5 * 16384
    return (beside(run.path("alloc.pb.gz"), "alloc_space", {n: s[1] for n, s in sites.items() if s[1] > enough}) +
            beside(run.path("heap.pb.gz"), "inuse_space", {n: s[3] for n, s in sites.items() if s[3] > enough}))


def bursts(seconds):
    target, counter = Target("alloc_flat", 1), Counter()
    target.weigh()
    run = Run("-p", target.pid, "--alloc=bursts", "--only", "alloc", "--max-overhead", 20)
    run.ready()
    target.say(f"mix {counter.path} 300000")
    while not counter.value():
        time.sleep(0.001)
    time.sleep(seconds)
    target.process.send_signal(signal.SIGSTOP)
    run.stop()
    run.must()
    truth = {"malloc_and_free": 48 * counter.value()}
    target.end()
    return beside(run.path("alloc.pb.gz"), "alloc_space", truth)


def live(seconds):
    target = Target("live_truth", int(1000 * seconds), 1500, 100000)
    run, lines = record(["-p", target.pid, "--alloc=bursts", "--only", "alloc", "--max-overhead", 20],
                        lambda: target.ask("go", timeout=120))
    truth = {line[1]: int(line[2]) for line in lines if line[0] == "site" and line[1] != "before_here"}
    if not run.summary()["alloc"]["live_estimate"]["known"]:
        raise Broken("live memory is not known")
    return beside(run.path("heap.pb.gz"), "inuse_space", truth)


def growth(seconds):
    target = Target("leaks", int(100 * seconds), 10)
    run, lines = record(["-p", target.pid, "--only", "growth"], lambda: target.ask("go", timeout=120))
    truth = {"leak_here": next(int(line[1]) for line in lines if line[0] == "leaked")}
    rows = beside(run.path("growth.pb.gz"), "resident", truth)
    return [(n, v, v - 0.05 * t, v + 0.05 * t, t) for n, v, _, _, t in rows]


TIERS = {f.__name__: f for f in (exact, oncpu, sampled, bursts, live, growth)}


def one(tier, seconds):
    """(rows, None), or (None, why there are none)."""
    try:
        return TIERS[tier](seconds), None
    except (Exception, SystemExit) as e:  # a run that failed is counted, and the others go on
        return None, f"{type(e).__name__}: {e}"[:300]


# --- pairs ---

class Pairs:
    """What one_site does, in how many rounds for each second of --pair-seconds, what records it, and how it is compared."""

    def __init__(self, does, rounds, options, source, value, by=()):
        self.does, self.rounds, self.options, self.source = does, rounds, options, source
        self.diff = ["--value", value, *by]


PAIRS = {
    "exact": Pairs("fast", 20, ["--alloc=exact", "--only", "alloc", "--max-overhead", 100000], "alloc", "alloc_space"),
    "oncpu": Pairs("cpu", 2700, ["--only", "oncpu", "-F", 4999], "oncpu", "cpu"),
    "sampled": Pairs("fast", 3000, ["--alloc=sampled", "--alloc-rate", "16K", "--only", "alloc",
                                    "--max-overhead", 100000], "alloc", "alloc_space"),
    "bursts": Pairs("alloc", 1000, ["--alloc=bursts", "--only", "alloc", "--max-overhead", 20], "alloc", "alloc_space",
                    ["--normalize"]),
    "live": Pairs("keep", 1000, ["--alloc=bursts", "--only", "alloc", "--max-overhead", 20], "heap", "inuse_space",
                  ["--normalize"]),
    "growth": Pairs("touch", 800, ["--only", "growth"], "growth", "resident"),
}
SITE = "scaled_here"


def one_of_pair(tier, seconds, more, keep):
    """Where its profile is kept, and how long it took; or why there is none."""
    how = PAIRS[tier]
    try:
        argv = [how.does, int(how.rounds * seconds), more]
        if tier == "sampled":  # its library comes with the start
            log = scratch("log")
            run = Run(*how.options, "--", os.path.join(TARGETS, "one_site"), *argv, log)
            run.finish()
            run.must()
            with open(log, encoding="ascii") as f:
                lines = [line.split() for line in f]
        else:  # it stays to the end: what lives in it is looked at then
            target = Target("one_site", *argv)
            run, lines = record(["-p", target.pid, *how.options], lambda: target.ask("go", timeout=200))
            target.end()
        calls = {line[1]: int(line[2]) for line in lines if line[0] == "site"}
        if calls[SITE] != int(how.rounds * seconds) * (100 + more):
            raise Broken(f"the target made {calls}")
        shutil.copy(run.path(f"{how.source}.pb.gz"), keep)
        return keep, run.summary()["duration_ns"] / 1e9
    except (Exception, SystemExit) as e:
        return None, f"{type(e).__name__}: {e}"[:300]


def compared(tier, before, after):
    got = memscope("diff", "--json", "-n", 1000, *PAIRS[tier].diff, *before, "--", *after)
    return [r for p in got["profiles"] for r in p["rows"]], sum(p["compared"] for p in got["profiles"])


def named(tier, before, after):
    """Functions that changed, how many were compared, and the site's noise in percent."""
    rows, n = compared(tier, before, after)
    noise = [100 * (r["self_noise"] or 0) / r["self"][0] for r in rows if r["function"] == SITE and r["self"][0]]
    return {r["function"] for r in rows if r["changed"]}, n, noise


def sides(n, runs):
    return [runs[i:i + n] for i in range(0, len(runs) - n + 1, n)]


def show_side(tier, equal, other, changed, n):
    """Cells of `n` runs a side."""
    names = total = 0
    for a, b in zip(sides(n, equal), sides(n, other)):
        got, of, _ = named(tier, a, b)
        names, total = names + len(got), total + of
    hits, others, noises, pairs = 0, 0, [], 0
    for a, b in zip(sides(n, equal), sides(n, changed)):
        got, _, noise = named(tier, a, b)
        hits, others, pairs, noises = hits + (SITE in got), others + bool(got - {SITE}), pairs + 1, noises + noise
    noise = f"{sorted(noises)[len(noises) // 2]:.1f} %" if noises else "-"
    return f"{names} of {total} | {hits} of {pairs} | {others} | {noise} |"


def show_pairs(tier, done, more, n):
    equal, other, changed = ([d[0] for d in some if d[0]] for some in done)
    took = sorted(d[1] for some in done for d in some if d[0])
    failed = [d[1] for some in done for d in some if not d[0]]
    for a_side in (1, n):
        if len(equal) < a_side or len(other) < a_side or len(changed) < a_side:
            continue
        print(f"| {tier}, {took[len(took) // 2]:.1f} s, {more} % | {a_side} | "
              f"{show_side(tier, equal, other, changed, a_side)}", flush=True)
    for why in sorted(set(failed))[:3]:
        print(f"|   {len(failed)} failed: {why} | | | | | |", flush=True)


def wilson(held, n):
    z2 = 1.96 ** 2
    mid, half = (held + z2 / 2) / (n + z2), 1.96 / (n + z2) * math.sqrt(held * (n - held) / n + z2 / 4)
    return mid - half, mid + half


def bias(runs):
    def of(some):
        return sum(r[1] for rows in some for r in rows) / max(sum(r[4] for rows in some for r in rows), 1) - 1
    draw = random.Random(1)
    many = sorted(of(draw.choices(runs, k=len(runs))) for _ in range(500))
    return of(runs), many[12], many[487]


def show(tier, runs, failed):
    rows = [r for one_run in runs for r in one_run]
    if not rows:
        print(f"| {tier} | 0 | | | {failed} failed |", flush=True)
        return
    held = sum(low <= truth <= high for _, _, low, high, truth in rows)
    # As if each run had one interval: those of a run are not independent.
    low, high = wilson(held / len(rows) * len(runs), len(runs))
    b = bias(runs)
    print(f"| {tier} | {len(rows)} of {len(runs)} runs | {held / len(rows):.1%} ({low:.1%} to {high:.1%}) | "
          f"{b[0]:+.2%} ({b[1]:+.2%} to {b[2]:+.2%}) | {failed} failed |", flush=True)
    for name in sorted({r[0] for r in rows}):
        mine = [r for r in rows if r[0] == name]
        off = sum(r[1] for r in mine) / max(sum(r[4] for r in mine), 1) - 1
        print(f"|   {name} | {len(mine)} | {sum(r[2] <= r[4] <= r[3] for r in mine) / len(mine):.1%} | {off:+.2%} | |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tiers", nargs="*", metavar="TIER", help=", ".join(TIERS))
    p.add_argument("--runs", type=int, default=200, help="runs of each tier, for intervals")
    p.add_argument("--pairs", type=int, default=20, help="pairs of equal runs, and pairs of unequal ones")
    p.add_argument("--at-once", type=int, default=2 * len(os.sched_getaffinity(0)))
    p.add_argument("--seconds", type=float, default=1.5, help="of each run for intervals")
    p.add_argument("--pair-seconds", type=float, default=5, help="of a run of a pair, about, undisturbed")
    p.add_argument("--more", type=int, default=10, help="percent that one site does more")
    p.add_argument("--a-side", type=int, default=5, help="runs a side of several")
    args = p.parse_args()
    tiers = args.tiers or list(TIERS)
    if set(tiers) - set(TIERS):
        p.error(f"tiers are {', '.join(TIERS)}")
    with tempfile.TemporaryDirectory(prefix="memscope-coverage-") as keep, \
            ProcessPoolExecutor(args.at_once) as pool:
        if args.runs:
            print(f"{args.runs} runs of {args.seconds} s a tier, {args.at_once} at once, load {os.getloadavg()[0]:.1f}\n\n"
                  "| tier | intervals | hold the truth | bias | |\n|---|---|---|---|---|", flush=True)
        for tier in tiers if args.runs else ():
            jobs = [pool.submit(one, tier, args.seconds) for _ in range(args.runs)]
            done = [j.result() for j in jobs]
            failed = [d[1] for d in done if d[1]]
            show(tier, [d[0] for d in done if d[0]], len(failed))
            for why in sorted(set(failed))[:3]:
                print(f"|   {why} | | | | |")
        if args.pairs:
            print(f"\nload {os.getloadavg()[0]:.1f}\n\n"
                  "| tier, a run, more of one site | runs a side | equal: named, of those compared | the site is named | "
                  "with another | noise |\n|---|---|---|---|---|---|")
        for tier in tiers if args.pairs else ():
            # In turn, so that the machine's changes meet all three alike.
            jobs = [[pool.submit(one_of_pair, tier, args.pair_seconds, more, os.path.join(keep, f"{tier}-{k}-{i}.pb.gz"))
                     for k, more in enumerate((0, 0, args.more))] for i in range(args.pairs)]
            done = [[j[k].result() for j in jobs] for k in range(3)]
            show_pairs(tier, done, args.more, args.a_side)
        print(f"\nload {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
