"""Figures that are estimates say how sure they are: intervals that hold the truth, comparisons that name nothing
by chance, whichever tier they are of.

MEMSCOPE_TEST_ESTIMATES=N: N runs of each, of whose 95 % intervals 95 % are to hold it (make soak). One run is asked
for no more than chance gives one time in a million.
"""

import json
import math
import os
import signal
import subprocess
import time

import pprof_reader
from harness import *
from truth import *

RUNS = int(os.environ.get("MEMSCOPE_TEST_ESTIMATES", 1))


def memscope(*args):
    got = subprocess.run([MEMSCOPE, *map(str, args)], capture_output=True, timeout=120, check=False,
                         stdin=subprocess.DEVNULL)
    equal(got.returncode, 0, f"exit status of memscope {args}: {got.stderr.decode()}")
    return got.stdout.decode()


def report(*args):
    return json.loads(memscope("report", "--json", "-n", 1000, *args))


def five_sigma(value, low, high, samples):
    """The interval of a sum of samples as it is at SIGMAS instead of 1.96. It solves (T - x)^2 = z^2 (V + c (x - T)), so
    its half widths h above and l below have h - l = z^2 c and h l = z^2 V. Where `low` was moved up to what was seen, l
    is smaller, c comes out larger and so does the upper end; and nothing is below what was seen. Of fewer than 30
    samples the law is Poisson's, whose tail is longer than the normal one that z stands for: as if V were 0 and all of
    the width c's, which grows with z^2, as far down as up."""
    h, l, by = high - value, value - low, (SIGMAS / 1.96) ** 2
    if samples < 30:
        return value - by * max(h, l), value + by * h
    c, v = max(0, h - l) / 1.96 ** 2, h * l / 1.96 ** 2
    half = SIGMAS * math.sqrt(SIGMAS ** 2 * c * c / 4 + v)
    return value + SIGMAS ** 2 * c / 2 - half, value + SIGMAS ** 2 * c / 2 + half


class Held:
    """Intervals beside the truth."""

    def __init__(self):
        self.n = self.held = 0

    def look(self, value, low, high, truth, what, samples=None, wider=SIGMAS / 1.96):
        self.n += 1
        self.held += low <= truth <= high
        if RUNS == 1:
            ends = five_sigma(value, low, high, samples) if samples is not None else (
                value - wider * (value - low), value + wider * (high - value))
            within(truth, *ends, f"{what}: {low:.6g} … {high:.6g}")

    def must(self):
        if RUNS > 1:
            print(f"# {self.held} of {self.n} hold the truth")
        # Those of one run are not independent: as if each third one were.
        if self.n >= 50:
            off = SIGMAS * math.sqrt(self.n * 3 * 0.05 * 0.95)
            within(self.held, 0.95 * self.n - off, self.n, f"intervals of {self.n} that hold the truth")


def sampled(n):
    truth_file = scratch("truth")
    run = Run("--alloc=sampled", "--alloc-rate", "16K", "--only", "alloc", "--max-overhead", "100000", "--",
              os.path.join(TARGETS, "alloc_truth"), "now", truth_file, n)
    run.finish()
    run.must()
    with open(truth_file, encoding="ascii") as f:
        return run, [[int(w) if w.isdigit() else w for w in line.split()] for line in f]


def same_intervals(run, source):
    """What the summary says of each site is what report says of the file, to the digit; and of all."""
    alloc, live = run.summary()["alloc"], source == "heap"
    got = report(run.path(f"{source}.pb.gz"), "--value", "inuse_space" if live else "alloc_space")
    rows = {(r["function"], r["module"]): r for r in got["by_self"]}
    sites = alloc["live_sites" if live else "sites"]
    check(sites, f"the summary has no sites of {source}")
    for site in sites:
        r, what = rows[site["function"], site["module"]], f"{source} of {site['function']}"
        equal(site["bytes"], r["self"], f"{what}: bytes")
        equal(site["samples"], r["samples"], f"{what}: samples")
        near(site["low"], r["self_low"], 0.5001, f"{what}: lower end")
        near(site["high"], r["self_high"], 0.5001, f"{what}: upper end")
    total = alloc["live_interval" if live else "bytes_interval"]
    near(total["low"], got["total_low"], 0.5001, f"{source} in all: lower end")
    near(total["high"], got["total_high"], 0.5001, f"{source} in all: upper end")


@once
def sampled_pair():
    return sampled(20000), sampled(20000)


@fact
def intervals_of_sampled_allocations_hold_what_the_target_counted():
    held = Held()
    for i in range(RUNS):
        run, lines = sampled_pair()[i] if i < 2 else sampled(20000)
        sites, total = sites_of(lines)
        for source, value, at in (("alloc", "alloc_space", 1), ("heap", "inuse_space", 3)):
            got = report(run.path(f"{source}.pb.gz"), "--value", value)
            check(got["estimated"], f"{source} is said to be counted")
            check(got["estimates"][0].endswith("by libmemscope-alloc (preload)"), f"{got['estimates']}")
            rows = {r["function"]: r for r in got["by_total"]}
            for name, truth in sites.items():
                if truth[at] and name in rows:
                    r = rows[name]
                    held.look(r["total"], r["total_low"], r["total_high"], truth[at], f"{value} of {name}", r["samples"])
            if total[at] and "total_low" in got:
                held.look(got["total"], got["total_low"], got["total_high"], total[at], f"{value} in all",
                          max(r["samples"] for r in got["by_total"]))
    held.must()


@fact
def intervals_in_the_summary_are_those_of_the_file():
    for source in ("alloc", "heap"):
        same_intervals(sampled_pair()[0][0], source)


@fact
def equal_runs_whose_allocations_are_sampled_differ_by_nothing_and_a_merged_one_is_surer():
    (first, _), (second, _) = sampled_pair()
    one = report(first.path("alloc.pb.gz"))
    out = scratch("sum") + ".pb.gz"
    memscope("merge", first.path("alloc.pb.gz"), second.path("alloc.pb.gz"), "-o", out)
    both = report(out)
    equal(len(both["estimates"]), 2 - (both["estimates"][:1] == both["estimates"][1:]), "estimates that were merged")
    width = [(r["total_high"] - r["total_low"]) / r["total"] for r in (one, both)]
    check(width[1] < 0.85 * width[0], f"twice as many samples are not surer: {width}")
    # One in a hundred pairs may: two of them name nothing, or not the same.
    names = [changed([a], [b]) for a, b in ((first, second), (second, first))]
    text = memscope("diff", first.path("alloc.pb.gz"), second.path("alloc.pb.gz"))
    check("against sampling noise" in text, f"what noise it is is not said: {text}")
    check(len(names[0]) <= 1, f"changes of two equal runs: {names}")


def changed(before, after, source="alloc", *more):
    files = [[run.path(f"{source}.pb.gz") for run in side] for side in (before, after)]
    got = json.loads(memscope("diff", "--json", "-n", 1000, *more, *files[0], "--", *files[1]))
    return {r["function"]: r["what"] for p in got["profiles"] for r in p["rows"] if r["changed"]}


def in_bursts(seconds=3):
    """A program with 3 us of work between pairs: (the run, pairs made in it)."""
    target, counter = Target("alloc_flat", 1), Counter()
    target.weigh()
    run = Run("-p", target.pid, "--alloc=bursts", "--only", "alloc", "--max-overhead", 20)
    run.ready()
    target.say(f"mix {counter.path} 300000")
    while not counter.value():  # first it finds out how long its work takes
        time.sleep(0.001)
    time.sleep(seconds)
    target.process.send_signal(signal.SIGSTOP)  # what it has counted is what it has made in the run
    run.stop()
    run.must()
    pairs = counter.value()
    target.end()
    equal(run.summary()["alloc"]["tier"], "bursts", "tier")
    return run, pairs


@once
def burst_pair():
    return in_bursts(), in_bursts()


def student(df, tail=5.7e-7):
    """As in test_governor: how far from the mean, in standard errors, one in so many is (both sides)."""
    def beyond(t):
        n, step, total, x = df, 0.001, 0.0, t
        norm = math.gamma((n + 1) / 2) / math.sqrt(n * math.pi) / math.gamma(n / 2)
        while x < 400:
            h = step * max(1, x)
            total += norm * (1 + (x + h / 2) ** 2 / n) ** (-(n + 1) / 2) * h
            x += h
        return 2 * total
    low, high = 0.0, 400.0
    for _ in range(60):
        mid = (low + high) / 2
        low, high = (mid, high) if beyond(mid) > tail else (low, mid)
    return high


@fact
@alone("CPU time of a call")
def intervals_of_bursts_hold_what_the_target_counted():
    held = Held()
    for i in range(RUNS):
        run, pairs = burst_pair()[i] if i < 2 else in_bursts()
        got, n = report(run.path("alloc.pb.gz")), run.summary()["alloc"]["bursts"]["bursts"]
        check(got["estimates"][0].startswith("every call in "), f"{got['estimates']}")
        check(n >= 5, f"{n} bursts")
        df = min(n, 16) - 1
        held.look(got["total"], got["total_low"], got["total_high"], 48 * pairs, f"bytes by {n} bursts",
                  wider=student(df) / student(df, 0.05))
        same_intervals(run, "alloc")
    held.must()


@fact
def bursts_compared_are_tested_against_the_variation_between_them():
    (first, _), (second, _) = burst_pair()
    # Of one run nothing has changed.
    text = memscope("diff", first.path("alloc.pb.gz"), first.path("alloc.pb.gz"))
    check("No function changed" in text and "against the variation between bursts" in text, text)
    check("is a count" not in text, text)
    # CPUs of a busy machine are not equally fast: rates differ, shares do not.
    equal(changed([first], [second], "alloc", "--normalize"), {}, "shares that differ between equal runs")


@fact
def a_profile_of_bursts_has_one_sample_per_stack_and_its_value_for_those_who_know_no_errors():
    run = burst_pair()[0][0]
    p = run.profile("alloc")
    stacks = [(tuple((f.name, f.line) for f in s.frames), s.labels.get("tid")) for s in p.samples]
    equal(len(set(stacks)), len(stacks), "stacks of different samples")
    near(p.sum("alloc_space/bytes"), run.summary()["alloc"]["bytes"], len(p.samples) + 1, "bytes")
    for s in p.samples:
        check(s.labels.get("alloc_space_samples", 0) > 0, f"a sample without its number of calls: {s.labels}")
    # Another tool that writes it again may turn its labels round, and drops those of 0.
    again = pprof_reader.read(run.path("alloc.pb.gz"))
    equal(len(again.samples), len(p.samples), "samples")


@fact
def shares_of_on_cpu_samples_are_within_their_intervals():
    held = Held()
    for _ in range(RUNS):
        target = Target("cpu_split", 700)
        run = Run("-p", target.pid, "-F", 499, "--only", "oncpu")
        run.ready()
        lines = target.ask("go")
        run.stop()
        run.must()
        target.end()
        got = report(run.path("oncpu.pb.gz"), "--value", "samples")
        rows = {r["function"]: r for r in got["by_total"]}
        _, _, _, *ns = [line for line in lines if line[0] == "thread"][0]
        hot = sum(rows[name]["total"] for name in ("hot_70", "hot_20", "hot_10"))
        for name, its in zip(("hot_70", "hot_20", "hot_10"), ns):
            r = rows[name]
            # Beside the three there is next to nothing: their share of all is that of the three.
            truth = its / sum(ns[:3]) * hot
            held.look(r["total"], r["total_low"], r["total_high"], truth, f"samples of {name}")
    held.must()


@fact
def one_site_that_does_more_is_named_of_one_run_a_side():
    def one_site(rounds, more, *options):
        run = Run(*options, "--only", "alloc", "--max-overhead", 100000, "--", os.path.join(TARGETS, "one_site"),
                  "fast", rounds, more, scratch("log"))
        run.finish()
        run.must()
        return run

    before, equals, after = [one_site(50, more, "--alloc=exact") for more in (0, 0, 10)]
    equal(changed([before], [equals]), {}, "changes of equal exact runs")
    equal(changed([before], [after]), {"scaled_here": "more"}, "changes by a tenth of one site")
    text = memscope("diff", before.path("alloc.pb.gz"), after.path("alloc.pb.gz"))
    check("the differences of these two profiles are exact" in text and
          "One run a side cannot tell a change of the program from variation between runs" in text, text)
    # 14,600 samples of it and 17,600: 16 standard errors of the difference apart. Another may be named by chance.
    before, after = [one_site(10000, more, "--alloc=sampled", "--alloc-rate", "16K") for more in (0, 20)]
    equal(changed([before], [after]).get("scaled_here"), "more", "a fifth more, sampled")


@fact
def a_tenth_more_in_three_exact_runs_is_named_and_nothing_in_equal_ones():
    def exact(pairs):
        run = Run("--alloc=exact", "--only", "alloc", "--", os.path.join(TARGETS, "alloc_pairs"), pairs)
        run.finish()
        run.must()
        return run

    before, equals = [exact(20000) for _ in range(3)], [exact(20000) for _ in range(3)]
    equal(changed(before, equals), {}, "changes of equal runs")
    equal(changed(before, [exact(22000) for _ in range(3)]), {"main": "more"}, "changes by a tenth")
    text = memscope("diff", *(r.out for r in before), "--", *(r.out for r in equals))
    check("between runs (3 before, 3 after; Welch's t-test)" in text and "and 2 more" in text, text)
    check("One run a side" not in text, text)
    check("Every value is a count" in memscope("report", before[0].path("alloc.pb.gz")), "counts are said to be estimates")


main()
