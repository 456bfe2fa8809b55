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

Then pairs: `diff` of two equal runs names a function by chance in 1 % at most of those it compares; and of two runs
in the second of which one site does 10 % more, how often it is named, of one run a side and of all against all.

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


def exact(_seconds, more):
    target = Target("alloc_truth", 1, OPS + OPS * more // 100)
    run, lines = record(["-p", target.pid, "--alloc=exact", "--only", "alloc", "--every", 0.2],
                        lambda: target.ask("run"))
    sites, _ = sites_of(lines)
    sums = dict.fromkeys(sites, 0)
    windows = glob.glob(os.path.join(run.out, "**", "alloc*.pb.gz"), recursive=True)
    for path in windows:
        window = pprof_reader.read(path)
        for name in sums:
            sums[name] += window.sum("alloc_space/bytes", name, pid=target.pid)
    whole = scratch("whole") + ".pb.gz"
    subprocess.run([MEMSCOPE, "merge", *windows, "-o", whole], check=True, capture_output=True, timeout=120)
    return [(n, sums[n], sums[n], sums[n], s[1]) for n, s in sites.items() if s[1]], whole


def oncpu(seconds, more):
    target = Target("cpu_split", int(1000 * seconds * (100 + more) / 100))
    run, lines = record(["-p", target.pid, "--only", "oncpu", "-F", 499], lambda: target.ask("go", timeout=120))
    threads = [line for line in lines if line[0] == "thread"]
    truth = {name: sum(int(t[k]) for t in threads) for k, name in ((3, "hot_70"), (4, "hot_20"), (5, "hot_10"))}
    return beside(run.path("oncpu.pb.gz"), "cpu", truth), run.path("oncpu.pb.gz")


def sampled(_seconds, more):
    log = scratch("truth")
    run = Run("--alloc=sampled", "--alloc-rate", "16K", "--only", "alloc", "--max-overhead", "100000", "--",
              os.path.join(TARGETS, "alloc_truth"), "now", log, OPS + OPS * more // 100)
    run.finish()
    run.must()
    with open(log, encoding="ascii") as f:
        sites, _ = sites_of([[int(w) if w.isdigit() else w for w in line.split()] for line in f])
    path = run.path("alloc.pb.gz")
    # Of what is too little to be sampled five times there is no interval that could be held to it (model/estimate.h).
    enough = 5 * 16384
    return (beside(path, "alloc_space", {n: s[1] for n, s in sites.items() if s[1] > enough}) +
            beside(run.path("heap.pb.gz"), "inuse_space", {n: s[3] for n, s in sites.items() if s[3] > enough})), path


def bursts(seconds, more):
    target, counter = Target("alloc_flat", 1), Counter()
    target.weigh()
    run = Run("-p", target.pid, "--alloc=bursts", "--only", "alloc", "--max-overhead", 20)
    run.ready()
    target.say(f"mix {counter.path} {300000 + 3000 * more}")
    while not counter.value():
        time.sleep(0.001)
    time.sleep(seconds)
    target.process.send_signal(signal.SIGSTOP)
    run.stop()
    run.must()
    truth = {"malloc_and_free": 48 * counter.value()}
    target.end()
    return beside(run.path("alloc.pb.gz"), "alloc_space", truth), run.path("alloc.pb.gz")


def live(seconds, more):
    target = Target("live_truth", int(1000 * seconds), 1500, 100000 + 1000 * more)
    run, lines = record(["-p", target.pid, "--alloc=bursts", "--only", "alloc", "--max-overhead", 20],
                        lambda: target.ask("go", timeout=120))
    truth = {line[1]: int(line[2]) for line in lines if line[0] == "site" and line[1] != "before_here"}
    if not run.summary()["alloc"]["live_estimate"]["known"]:
        raise Broken("live memory is not known")
    return beside(run.path("heap.pb.gz"), "inuse_space", truth), run.path("heap.pb.gz")


def growth(seconds, more):
    target = Target("leaks", int(100 * seconds * (100 + more) / 100), 10)
    run, lines = record(["-p", target.pid, "--only", "growth"], lambda: target.ask("go", timeout=120))
    truth = {"leak_here": next(int(line[1]) for line in lines if line[0] == "leaked")}
    rows = beside(run.path("growth.pb.gz"), "resident", truth)
    return [(n, v, v - 0.05 * t, v + 0.05 * t, t) for n, v, _, _, t in rows], run.path("growth.pb.gz")


TIERS = {f.__name__: f for f in (exact, oncpu, sampled, bursts, live, growth)}


def one(tier, seconds, more, keep):
    """(rows, where its profile is kept) or why there is none."""
    try:
        rows, path = TIERS[tier](seconds, more)
        shutil.copy(path, keep)
        return rows, keep
    except (Exception, SystemExit) as e:  # a run that failed is counted, and the others go on
        return f"{type(e).__name__}: {e}"[:300], None


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


def named(before, after):
    """Functions that changed, and how many were compared; --normalize where CPUs set the pace."""
    got = memscope("diff", "--json", "-n", 1000, *before, "--", *after)
    rows = [r for p in got["profiles"] for r in p["rows"]]
    return {r["function"] for r in rows if r["changed"]}, len(rows)


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


def show_pairs(tier, equal, changed, site):
    names = total = 0
    for a, b in zip(equal[::2], equal[1::2]):
        got, n = named([a], [b])
        names, total = names + len(got), total + n
    line = f"| {tier} | {len(equal) // 2} | {names} of {total} |"
    if changed:
        hits = [site in named([a], [b])[0] for a, b in zip(equal, changed)]
        all_of = site in named(equal[:len(changed)], changed)[0]
        line += f" {site}: {sum(hits)} of {len(hits)}; all {len(changed)} a side: {'yes' if all_of else 'no'} |"
    print(line, flush=True)


# Whose part is 10 % more in the changed runs.
SITES = {"exact": "do_malloc", "oncpu": "hot_70", "sampled": "do_malloc", "bursts": "malloc_and_free",
         "live": "leak_here", "growth": "leak_here"}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tiers", nargs="*", metavar="TIER", help=", ".join(TIERS))
    p.add_argument("--runs", type=int, default=200)
    p.add_argument("--pairs", type=int, default=20)
    p.add_argument("--at-once", type=int, default=2 * len(os.sched_getaffinity(0)))
    p.add_argument("--seconds", type=float, default=1.5)
    args = p.parse_args()
    tiers = args.tiers or list(TIERS)
    if set(tiers) - set(TIERS):
        p.error(f"tiers are {', '.join(TIERS)}")
    with tempfile.TemporaryDirectory(prefix="memscope-coverage-") as keep, \
            ProcessPoolExecutor(args.at_once) as pool:
        print(f"{args.runs} runs of {args.seconds} s a tier, {args.at_once} at once, load {os.getloadavg()[0]:.1f}\n\n"
              "| tier | intervals | hold the truth | bias | |\n|---|---|---|---|---|", flush=True)
        pairs = []
        for tier in tiers:
            jobs = [pool.submit(one, tier, args.seconds, 0, os.path.join(keep, f"{tier}-{i}.pb.gz"))
                    for i in range(args.runs)]
            more = [pool.submit(one, tier, args.seconds, 10, os.path.join(keep, f"{tier}-more-{i}.pb.gz"))
                    for i in range(args.pairs)]
            done, changed = [j.result() for j in jobs], [j.result() for j in more]
            failed = [d for d in done + changed if d[1] is None]
            show(tier, [d[0] for d in done if d[1]], len(failed))
            for why in sorted({f[0] for f in failed})[:3]:
                print(f"|   {why} | | | | |")
            pairs.append((tier, [d[1] for d in done if d[1]][:2 * args.pairs], [d[1] for d in changed if d[1]]))
        print("\n| tier | equal pairs | functions named, of those compared | 10 % more of one site |\n|---|---|---|---|")
        for tier, equal, changed in pairs:
            show_pairs(tier, equal, changed, SITES[tier])
        print(f"\nload {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
