"""What report.html says by itself of a program with three faults: which functions, and when."""

import json
import re

from harness import *

LEAK_S, LOCK_S, BURN_S, FAULT_S, END_S = 3, 5.5, 8.5, 1.2, 11


@once
def with_faults():
    """(the page's data, when each fault began and ended in seconds of the run)."""
    target = Target("faults", *(int(s * 1000) for s in (LEAK_S, LOCK_S, BURN_S, FAULT_S, END_S)))
    run = Run("-p", target.pid, "--alloc=exact", "-F", 499)
    run.ready()
    answer = {line[0]: line[1:] for line in target.ask("go")}
    run.stop()
    run.must()
    with open(run.path("report.html"), encoding="utf-8") as f:
        page = json.loads(re.search(r'<script type="application/json" id="run">(.*?)</script>', f.read(), re.S).group(1))
    begin = answer["began"][0] / 1e9 - page["started"]
    target.end()
    return page, {name: [begin + ns / 1e9 for ns in answer[name][:2]] for name in ("leak", "lock", "burn")}


def moment(profile, function):
    page, _ = with_faults()
    found = [m for m in page["moments"] if m["profile"] == profile and m["function"] == function]
    check(len(found) == 1, f"{len(found)} moments of {function} in {profile}: {page['moments']}")
    return found[0]


# Bins have a second: a moment begins up to one before what is in it, and ends up to one after it.

@fact
def a_burst_of_cpu_time_is_named_with_its_function_and_its_seconds():
    m, (begin, end) = moment("oncpu", "totals_recompute"), with_faults()[1]["burn"]
    check(m["burst"], f"it is no burst: {m}")
    # Four fifths of its samples are in it, which may leave out a second at either end.
    within(m["from"], begin - 1, end, "begin of the burst")
    within(m["to"], begin, end + 1, "end of the burst")


@fact
def a_lock_that_is_held_is_named_by_who_waits_and_when():
    page, when = with_faults()
    m, (begin, end) = moment("offcpu", "serve_request"), when["lock"]
    check(m["burst"] and "lock" in m["wait"], f"it is no burst of waiting for a lock: {m}")
    within(m["from"], begin - 1, end, "begin of the wait")
    within(m["to"], begin, end + 1, "end of the wait")
    lock = [row for row in page["summary"]["locks"] if row["name"] == "table_lock"]
    check(lock and lock[0]["held_caller"] == "log_rotate", f"who held it is not log_rotate: {lock}")


@fact
def a_leak_is_named_with_its_function_and_its_begin():
    page, when = with_faults()
    m, (begin, _) = moment("alloc", "index_grow"), when["leak"]
    check(not m["burst"], f"it is a burst: {m}")
    # Calls between two readings of their table, of a second each, are spread over the time between them.
    within(m["from"], begin - 2, begin + 1, "begin of the leak")
    first = [leak["function"] for leak in page["summary"]["alloc"]["leaks"]]
    equal(first, ["index_grow"], "leaks of the verdict")


@fact
def tables_over_time_have_exact_times_that_begin_with_the_run():
    page, _ = with_faults()
    for table in page["series"]:
        # The first look at the targets is when the run begins; the clock of the rows is read a little before or after it.
        within(table["times"][0], -0.05, 3, f"first time of {table['id']}")
        check(any(t % 1 for t in table["times"]), f"{table['id']} has whole seconds alone")


@fact
def nothing_else_of_the_program_stands_out():
    page, _ = with_faults()
    faults = {("oncpu", "totals_recompute"), ("offcpu", "serve_request"), ("alloc", "index_grow"), ("growth", "index_grow")}
    others = [m for m in page["moments"] if (m["profile"], m["function"]) not in faults and m["share"] >= 0.1]
    equal(others, [], "other moments with a tenth of their profile or more")


main()
