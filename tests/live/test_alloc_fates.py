"""What becomes of allocations, against a program that keeps account of it: equal, not near."""

import csv

from harness import *
from truth import *

COUNTS = ("allocs", "alloc_bytes", "frees", "temporary", "cross_thread_frees", "live_blocks",
          "live_bytes", "peak_blocks", "peak_bytes")
LIVES = ("under_10us", "under_100us", "under_1ms", "under_10ms", "under_100ms", "under_1s",
         "under_10s", "longer")
PEAK = ["inuse_objects/count", "inuse_space/bytes"]


def told(lines):
    """{site: counts, in the order of COUNTS}."""
    sites = {}
    for line in lines:
        if line[0] == "site":
            calls, size, freed, temporary, cross, live, live_bytes, peak, peak_bytes = line[2:]
            sites[line[1]] = [calls, size, freed, temporary, cross, live, live_bytes, peak,
                              peak_bytes]
    return sites


def rows_of(run, pid):
    with open(run.path("sites.csv"), newline="", encoding="utf-8") as f:
        return [r for r in csv.DictReader(f) if int(r["pid"]) == pid]


def by_function(rows, columns):
    sums = {}
    for row in rows:
        # The leaf is malloc; who called it is the site.
        name = row["stack"].split(";")[-2]
        mine = sums.setdefault(name, [0] * len(columns))
        for i, c in enumerate(columns):
            mine[i] += int(row[c] or 0)
    return sums


def check_sites(run, lines, pid):
    got = by_function(rows_of(run, pid), COUNTS)
    for name, truth in told(lines).items():
        if truth[0]:
            equal(dict(zip(COUNTS, got.get(name, []))), dict(zip(COUNTS, truth)), name)
    equal(sorted(got), sorted(n for n, t in told(lines).items() if t[0]), "sites")


def line_of(lines, word):
    return next(line[1:] for line in lines if line[0] == word)


@once
def went():
    target = Target("alloc_fates")
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("go"))
    return target, run, lines


@fact
def every_block_is_counted_by_its_fate_and_what_was_live_at_the_peak():
    target, run, lines = went()
    check_sites(run, lines, target.pid)


@fact
def known_fates_are_as_they_were_made():
    _, _, lines = went()
    sites = told(lines)
    # calls, temporary, cross: what the target's own account must say for the rest to prove anything.
    for name, calls, temporary, cross in (("pair", 200, 200, 0), ("first_of_two", 50, 0, 0),
                                          ("second_of_two", 50, 50, 0), ("grow", 60, 60, 0),
                                          ("produce", 500, 0, 400)):
        equal([sites[name][0], sites[name][3], sites[name][4]], [calls, temporary, cross], name)
    equal(sites["tooth_a"][7:], [300, 300000], "tooth_a at the peak")
    equal(sites["tooth_b"][7:], [100, 300000], "tooth_b at the peak")
    equal(sites["chain"][7:], [10, 7000], "chain at the peak")


@fact
def profile_of_the_peak_adds_up_to_the_highest_point():
    target, run, lines = went()
    peak, [highest] = run.profile("peak"), line_of(lines, "peak")
    equal(peak.types, PEAK, "value types")
    equal(peak.sum(PEAK[1], pid=target.pid), highest, "bytes at the peak")
    for name, truth in told(lines).items():
        equal([peak.sum(t, name, pid=target.pid) for t in PEAK], truth[7:], name)
    equal(sum(run.folded("peak").values()), highest, "bytes in peak.folded")
    a = run.summary()["alloc"]["peak"]
    equal([a["bytes"], a["on_stacks_bytes"], a["images"]], [highest, highest, 1], "summary")


@fact
def lifetimes_are_those_that_the_target_measured():
    target, run, lines = went()
    rows = rows_of(run, target.pid)
    means = {}
    for row in rows:
        frees, name = int(row["frees"]), row["stack"].split(";")[-2]
        equal(sum(int(row[c]) for c in LIVES), frees, f"classes of {name} add up to its frees")
        if frees:
            ns, n = means.get(name, (0, 0))
            means[name] = (ns + int(row["mean_lifetime_ns"]) * frees, n + frees)
    for line in lines:
        if line[0] == "life":
            name, freed, at_least, at_most = line[1:]
            equal(means[name][1], freed, f"frees of {name}")
            # The mean is cut to a whole ns for each row.
            within(means[name][0], at_least - freed, at_most, f"lifetimes of {name}, sum")
    held = by_function(rows, LIVES)["keep_a_while"]
    equal(sum(held[:4]), 0, "blocks held for 30 ms that count as less than 10 ms")


@fact
def summary_has_shares_sizes_and_first_sites():
    target, run, lines = went()
    a, sites = run.summary()["alloc"], told(lines)
    equal([a["objects"], a["temporary"], a["cross_thread_frees"]],
          [sum(t[i] for t in sites.values()) for i in (0, 3, 4)], "totals")
    want = {8 << int(c): int(n) for c, n in (w.split(":") for w in line_of(lines, "sizes"))}
    equal({s["up_to_bytes"]: s["blocks"] for s in a["sizes"]}, want, "sizes")
    first = max(sites, key=lambda n: sites[n][0])
    equal([a["call_sites"][0]["function"], a["call_sites"][0]["calls"]], [first, sites[first][0]],
          "most calls")
    first = max(sites, key=lambda n: sites[n][3])
    equal([a["temporary_sites"][0]["function"], a["temporary_sites"][0]["temporary"]],
          [first, sites[first][3]], "most temporary")
    threads = {line[1]: line[2:] for line in lines if line[0] == "thread"}
    equal({t["tid"]: [t["objects"], t["bytes"]] for t in a["threads"]}, threads, "threads")
    equal(a["n_threads"], len(threads), "how many threads")


@fact
def what_threads_hold_together_is_reported_by_stack_but_for_what_was_in_the_making():
    target = Target("alloc_fates")
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("threads"))
    [highest], a = line_of(lines, "peak"), run.summary()["alloc"]["peak"]
    # Each of the three other threads may be in the middle of one block.
    blur = 3 * 2048
    near(a["bytes"], highest, blur, "highest point")
    near(a["on_stacks_bytes"], highest, blur, "what stacks tell of it")
    near(run.profile("peak").sum(PEAK[1], "together", pid=target.pid), highest, blur, "together")
    rows = by_function(rows_of(run, target.pid), COUNTS)["together"]
    equal(rows[:5], told(lines)["together"][:5], "counts of together")
    equal([rows[5], rows[6]], [0, 0], "live at the end")


@fact
def a_forked_child_and_an_image_after_exec_have_highest_points_of_their_own():
    target = Target("alloc_fates")
    run = Run("-p", target.pid, *EXACT)
    run.ready()
    probes = uprobe_links(run.pid)
    first = target.ask("go")
    target.say("fork")
    child_pid = int(target._line("child", READY_SEC)[1])
    # Those of the child come after memscope has heard of it; another image keeps its process's.
    until(lambda: uprobe_links(run.pid) == 2 * probes, "the child has its probes")
    child = target.ask("go")
    after = target.ask("exec")
    run.stop()
    run.must()
    check_sites(run, child, child_pid)
    peak = run.profile("peak")
    own = told(first)
    equal(peak.sum(PEAK[1], "child_tooth", pid=target.pid), line_of(after, "peak")[0],
          "peak of the image after exec")
    equal(peak.sum(PEAK[1], "tooth_b", pid=target.pid), own["tooth_b"][8],
          "peak of the image before exec")
    equal(peak.sum(PEAK[1], pid=child_pid), line_of(child, "peak")[0], "peak of the child")
    a = run.summary()["alloc"]["peak"]
    sums = [line_of(x, "peak")[0] for x in (first, child, after)]
    equal([a["images"], a["bytes"]], [3, sum(sums)], "images, and the sum of their highest points")


main()
