"""Allocation tracing can slow a program 30 times: a default run looks before it leaps."""

import statistics
import time

from harness import *


def slices(counter, pid, n, seconds=0.1):
    return [counter.rate(seconds, pid) for _ in range(n)]


@once
def heavy():
    """A flat-out allocator: its rate before, and during, a default run."""
    target, counter = Target("alloc_flat", 1), Counter()
    target.say(f"rate {counter.path}")
    time.sleep(0.3)
    before = slices(counter, target.pid, 10)
    run = Run("-p", target.pid)
    run.ready()
    during = slices(counter, target.pid, 20)
    run.stop()
    after = slices(counter, target.pid, 10)
    target.end()
    return run, before, during, after


@fact
def default_run_leaves_tracing_of_a_heavy_allocator_off_and_says_so():
    run, *_ = heavy()
    run.must()
    a = run.summary()["alloc"]
    equal(a["tier"], "declined", "tier")
    check("--alloc=exact" in a.get("reason", ""), f"the reason names no way out: {a.get('reason')}")
    check(a["calls_per_s"] > 100000, f"call rate measured: {a['calls_per_s']}")
    sentences = [x for x in run.stderr.splitlines() if "--alloc=exact" in x]
    equal(len(sentences), 1, "sentences on stderr that name --alloc=exact")


@fact
def heavy_allocator_keeps_its_rate_in_a_default_run():
    _, before, during, after = heavy()
    # 20 slices of 0.1 s: at most one may hold the look of 20 ms. Slices of the same program alone
    # differ by 10 % on a shared machine; the median of 20 leaves that behind. Traced, it would
    # run at a thirtieth. 80 %: between, nearer to the top.
    base = statistics.median(before + after)
    check(statistics.median(during) > 0.8 * base,
          f"rate {statistics.median(during):.0f}/s in the run, {base:.0f}/s without")
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
