#!/usr/bin/python3
"""A leak among functions that only use memory: named with its rate, and no other."""

import csv

from harness import *


@once
def leaks():
    target = Target("leaks", 80, 50)
    run, lines = record(["-p", target.pid, "--only", "alloc", "--alloc=exact", "--interval", 0.1,
                         "--json"], lambda: target.ask("go"))
    leaked = next(line for line in lines if line[0] == "leaked")
    return run, leaked[1], leaked[2]


@fact
def only_the_stack_that_keeps_what_it_takes_is_called_a_leak():
    run, leaked, rate = leaks()
    found = run.summary()["alloc"]["leaks"]
    equal([x["function"] for x in found], ["leak_here"], "leaks")
    leak = found[0]
    equal(leak["live_bytes"], leaked, "bytes of the leak")
    # The line is through rows 0.1 s apart, of rounds 50 ms apart: a round more or less in each.
    near(leak["bytes_s"], rate, 0.1 * rate, "bytes a second")
    within(leak["retained"], 0.9, 1, "share of its older blocks that are kept")
    check(leak["low"] <= leak["bytes_s"] <= leak["high"], f"interval: {leak}")


@fact
def bands_add_up_to_what_is_live():
    run, leaked, _ = leaks()
    with open(os.path.join(run.out, "live_series.csv"), newline="", encoding="utf-8") as f:
        rows = list(csv.reader(f))
    header, last = rows[0], rows[-1]
    check(len(rows) > 12, f"only {len(rows)} rows, too few for a verdict")
    equal(header[0], "timestamp", "first column")
    equal(header[-1], "OTHER", "last column")
    equal(sum(map(int, last[1:])), run.summary()["alloc"]["live_bytes"], "sum of the last row")
    of_leak = [i for i, name in enumerate(header) if ";leak_here" in name]
    equal(sum(int(last[i]) for i in of_leak), leaked, "the leak's last value")
    at = [int(row[of_leak[0]]) for row in rows[1:]]
    check(at == sorted(at), "the leak only grows")


main()
