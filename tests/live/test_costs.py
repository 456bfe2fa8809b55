"""What a run costs, by its own account and by the clock of the target's thread."""

import statistics
import time

from harness import *

SOURCES = ["on-CPU", "off-CPU", "allocations", "growth", "process events"]


def flat():
    """A program that does nothing but malloc and free, and its count of pairs."""
    target, counter = Target("alloc_flat", 1), Counter()
    target.say(f"rate {counter.path}")
    time.sleep(0.2)
    return target, counter


def pair_ns(target, counter, seconds=0.3):
    """CPU time of a pair: what else runs on the machine takes little of that."""
    count, cpu_ns = counter.value(), schedstat(target.pid)
    time.sleep(seconds)
    return (schedstat(target.pid) - cpu_ns) / max(counter.value() - count, 1)


class Stolen:
    """The share of all CPUs that was stolen since."""

    def __init__(self):
        self._ns, self._begin = stolen_ns(), time.monotonic_ns()

    def ns(self):
        return stolen_ns() - self._ns

    def share(self):
        return min(self.ns() / (time.monotonic_ns() - self._begin) / len(online_cpus()), 0.9)


@fact
@alone("what a run costs")
def each_source_says_what_it_costs():
    target, counter = flat()
    stolen = Stolen()
    run = Run("-p", target.pid, "-d", 2)
    run.finish()
    run.must()
    s, stolen_in_it = run.summary(), stolen.ns() if stolen.share() > 0.01 else 0
    if "cost" not in s:
        skip("this kernel does not tell what BPF programs take (BPF_ENABLE_STATS, 5.8)")
    cost = s["cost"]
    equal([c["name"] for c in cost["sources"]], SOURCES, "sources")
    for c in cost["sources"]:
        for key, kind in (("events", int), ("program_ns", (int, float)), ("trap_ns", (int, float)),
                          ("ns", int), ("percent", (int, float))):
            check(isinstance(c[key], kind), f"{c['name']}: {key} is {c[key]!r}")
        check(c["ns"] >= 0 and c["events"] >= 0, f"{c}")
    equal(cost["ns"], sum(c["ns"] for c in cost["sources"]), "the sum")
    near(cost["percent"], cost["ns"] * 100 / s["duration_ns"], 0.01, "percent of one CPU")
    check(0 < cost["window_ns"] <= s["duration_ns"], f"windows of {cost['window_ns']} ns")
    # The target runs, so it is sampled and switched; each of those takes some time.
    # Programs are timed by a clock that goes on while time is stolen.
    for c in cost["sources"][:3]:
        check(c["events"] and 20 < c["program_ns"] < 100_000 + stolen_in_it / c["events"], f"{c}")
    equal(cost["limit_percent"], 5, "limit of a run of which nothing was forced")
    check("Overhead " in open(run.path("summary.txt")).read(), "summary.txt does not say it")


@fact
@alone("what a run costs")
def what_exact_tracing_costs_is_what_the_target_lost():
    target, counter = flat()
    ratios, stolen = [], Stolen()
    for _ in range(3):
        before = pair_ns(target, counter)
        run = Run("-p", target.pid, "--alloc=exact", "--only", "alloc")
        run.ready()
        during = [pair_ns(target, counter) for _ in range(3)]
        run.stop()
        run.must()
        lost = statistics.median(during) - statistics.median((before, pair_ns(target, counter)))
        s = run.summary()
        if "cost" not in s:
            skip("this kernel does not tell what BPF programs take (BPF_ENABLE_STATS, 5.8)")
        equal(s["cost"]["limit_percent"], None, "limit of a run that was to trace every call")
        alloc = [c for c in s["cost"]["sources"] if c["name"] == "allocations"][0]
        said = alloc["ns"] / s["alloc"]["objects"]
        print(f"# {said:.0f} ns a pair said, of {lost:.0f} lost")
        ratios.append(said / lost)
        near(s["alloc"]["cost_percent"], alloc["percent"], alloc["percent"] / 4, "cost_percent")
    # Three traps of a third more or less by the moment, a tenth for the target's colder caches. What a trap
    # costs is measured in one moment at the end, in which the machine may be twice as fast or as slow as
    # it was: not in two runs of three.
    # Programs and traps are timed by a clock that goes on while time is stolen, and the target's does not.
    within(statistics.median(ratios), 0.6, 1.5 / (1 - stolen.share()),
           "ns said, of those lost, in the middle one of three runs")


main()
