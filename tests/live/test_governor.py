"""Allocation tracing can slow a program 30 times: a default run looks before it leaps."""

import statistics
import time

from harness import *


def slices(pairs, n, seconds=0.1):
    """n times: the rate of the first (counter, pid) of two, in rates of the second. What else the
    machine does, on the other half of a core or in the shared cache, slows both; and CPU time it
    takes from either is left out."""
    ratios = []
    for _ in range(n):
        before = [(counter.value(), schedstat(pid)) for counter, pid in pairs]
        time.sleep(seconds)
        rates, spent_ns = [], []
        for (counter, pid), (count, cpu_ns) in zip(pairs, before):
            spent_ns.append(schedstat(pid) - cpu_ns)
            rates.append((counter.value() - count) / max(spent_ns[-1], 1))
        # A thread's account is brought up to date by a tick of 4 ms: below 20 ms it tells little.
        if min(spent_ns) >= 20e6:
            ratios.append(rates[0] / max(rates[1], 1e-9))
    return ratios


@once
def heavy():
    """A flat-out allocator: its rate before, and during, a default run, against one beside it that
    is never looked at."""
    target, beside = Target("alloc_flat", 1), Target("alloc_flat", 1)
    pairs = []
    for t in (target, beside):
        counter = Counter()
        t.say(f"rate {counter.path}")
        pairs.append((counter, t.pid))
    time.sleep(0.3)
    before = slices(pairs, 15)
    run = Run("-p", target.pid)
    run.ready()
    during = slices(pairs, 20)
    run.stop()
    after = slices(pairs, 15)
    target.end()
    beside.end()
    return run, before, during, after


@fact
def default_run_leaves_tracing_of_a_heavy_allocator_off_and_says_so():
    run, *_ = heavy()
    run.must()
    a = run.summary()["alloc"]
    check("--alloc=exact" in (a["reason"] or ""), f"the reason names no way out: {a['reason']}")
    if a["tier"] == "exact" and not a["calls_per_s"]:
        # A busy machine gave it no CPU in the 20 ms of the look: it is stopped when it runs.
        check("stopped" in a["reason"], f"exact tracing was not stopped: {a['reason']}")
        check(a["covered_to_ns"] - a["covered_from_ns"] < 1.5e9, f"stopped late: {a}")
        return
    equal(a["tier"], "declined", "tier")
    # 5 % of a CPU at 10 µs a call, the dearest that probes were seen to be.
    check(a["calls_per_s"] > 5000, f"call rate measured: {a['calls_per_s']}")
    sentences = [x for x in run.stderr.splitlines() if "--alloc=exact" in x]
    equal(len(sentences), 1, "sentences on stderr that name --alloc=exact")


@fact
def heavy_allocator_keeps_its_rate_in_a_default_run():
    _, before, during, after = heavy()
    # 20 slices of 0.1 s: at most one may hold the look of 20 ms. Slices of two programs alone
    # differ by 10 % on a shared machine; the median of 20 leaves that behind. Traced, it would
    # run at a thirtieth. 80 %: between, nearer to the top.
    if len(during) < 5 or len(before + after) < 5:
        skip(f"the machine is too busy: {len(during)} of 20 slices with 20 ms of CPU for each")
    base = statistics.median(before + after)
    check(statistics.median(during) > 0.8 * base,
          f"{statistics.median(during):.2f} of the other's rate in the run, {base:.2f} without")
    slow = sum(1 for x in during if x < 0.5 * base)
    check(slow <= 2, f"{slow} of 20 slices at less than half the rate")


@fact
def modest_allocator_is_traced_exactly_by_default():
    target, counter = Target("alloc_flat", 1), Counter()
    run = Run("-p", target.pid)
    run.ready()
    # 2,000 pairs a second at a few µs each are some 1 % of a CPU: inside the 5 % of the default.
    target.say(f"rate {counter.path} 2000")
    time.sleep(1.5)
    target.end()
    run.finish()
    run.must()
    equal(run.summary()["alloc"]["tier"], "exact", "tier")
    # Its mapped counter was last written after the last whole millisecond's burst of 2.
    near(run.profile("alloc").sum("alloc_objects/count", "malloc_and_free", pid=target.pid),
         counter.value(), 2, "allocations")


@fact
def max_overhead_decides_what_is_too_much():
    target, counter = Target("alloc_flat", 1), Counter()
    target.say(f"rate {counter.path} 20000")
    time.sleep(0.2)
    tiers = {}
    # 20,000 pairs/s cost between 2 % (two empty probes, 0.5 µs each) and 40 % (10 µs each).
    for limit in (0.1, 90):
        run = Run("-p", target.pid, "--max-overhead", limit, "-d", 1)
        run.finish()
        run.must()
        tiers[limit] = run.summary()["alloc"]["tier"]
    equal(tiers, {0.1: "declined", 90: "exact"}, "tier by --max-overhead")


@fact
def alloc_off_looks_at_nothing():
    target = Target("alloc_truth", 1, 500)
    run, _ = record(("-p", target.pid, "--alloc=off"), lambda: target.ask("run"))
    equal(run.summary()["alloc"]["tier"], "off", "tier")


main()
