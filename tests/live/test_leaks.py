#!/usr/bin/python3
"""A leak among functions that only use memory: named with its rate, and no other."""

import csv

from harness import *

ROUNDS, ROUND_MS = 80, 50


@once
def leaks():
    """The run, the bytes of the leak, [begin, end of each round's leak by the target's clock], and when
    the run began and ended by that clock."""
    target = Target("leaks", ROUNDS, ROUND_MS)
    run, lines = record(["-p", target.pid, "--only", "alloc", "--alloc=exact", "--interval", 0.1,
                         "--json"], lambda: target.ask("go"))
    leaked = next(line[1] for line in lines if line[0] == "leaked")
    p = run.profile("alloc")
    begin_ns = p.time_ns - (time.time_ns() - time.monotonic_ns())
    return run, leaked, [line[1:] for line in lines if line[0] == "round"], begin_ns, begin_ns + p.duration_ns


def series(run):
    """Column names and rows of live_series.csv, and the column of the leak."""
    with open(os.path.join(run.out, "live_series.csv"), newline="", encoding="utf-8") as f:
        header, *rows = csv.reader(f)
    return header, rows, next(i for i, name in enumerate(header) if ";leak_here" in name)


def when(live, leaked, rounds, end_ns):
    """The first and the last moment at which the leak held so many bytes, in seconds, by the target's log."""
    of_round = leaked // len(rounds)
    begun, whole = -(-live // of_round), live // of_round  # rounds
    first = rounds[begun - 1][0]
    last = rounds[whole][1] if whole < len(rounds) else max(end_ns, rounds[-1][1])
    return first / 1e9, last / 1e9


def slope(points):
    """The least-squares slope of [(first and last moment, bytes)], and by how much it may be another
    where each moment is another one between its two: to first order, by what moving one point does."""
    t = [(first + last) / 2 for (first, last), _ in points]
    y = [live for _, live in points]
    mt, my = sum(t) / len(t), sum(y) / len(y)
    sxx = sum((a - mt) ** 2 for a in t)
    b = sum((a - mt) * (v - my) for a, v in zip(t, y)) / sxx
    moved = sum((abs(b * (a - mt)) + abs(v - my - b * (a - mt))) * (last - first) / 2
                for a, v, ((first, last), _) in zip(t, y, points))
    return b, moved / sxx


@fact
def only_the_stack_that_keeps_what_it_takes_is_called_a_leak():
    run, leaked, rounds, begin_ns, end_ns = leaks()
    found = run.summary()["alloc"]["leaks"]
    if not equal([x["function"] for x in found], ["leak_here"], "leaks"):
        return
    leak = found[0]
    equal(leak["live_bytes"], leaked, "bytes of the leak")
    # Its slope is that of a line through rows, those of the last piece of the series. Each row says by its
    # bytes when it was made, in the target's log, wherever the machine has put rows and rounds; it may be
    # late as the target itself was for a round.
    _, rows, column = series(run)
    live = [int(row[column]) for row in rows if int(row[column])]
    late = max(0, max(b[0] - a[0] for a, b in zip(rounds, rounds[1:])) / 1e9 - ROUND_MS / 1e3)
    points = [((first - late, last + late), n) for n in live for first, last in [when(n, leaked, rounds, end_ns)]]
    # The piece begins so long after the first row, which was before the leak, or is the leak's first.
    begins = [i for i, ((first, last), _) in enumerate(points[:-2])
              if begin_ns / 1e9 <= last - leak["since_s"] and first - leak["since_s"] <= points[0][0][1]]
    slopes = [slope(points[i:]) for i in begins]
    if not check(slopes, f"no row is {leak['since_s']} s after the first"):
        return
    within(leak["bytes_s"], min(b - d for b, d in slopes), max(b + d for b, d in slopes), "bytes a second")
    # Blocks of before some moment, of those that were made by then: the former are known one by one, the
    # latter from the rows on either side.
    step = max(b - a for a, b in zip([0, *live], live))
    before = sum(end <= end_ns - leak["retained_age_s"] * 1e9 for _, end in rounds) * leaked // len(rounds)
    within(leak["retained"], min(0.9, 1 - step / max(before, 1)), 1, "share of its older blocks that are kept")
    check(leak["low"] <= leak["bytes_s"] <= leak["high"], f"interval: {leak}")
    print(f"# {leak['bytes_s']:.0f} bytes a second, {min(b - d for b, d in slopes):.0f} … "
          f"{max(b + d for b, d in slopes):.0f}; {leaked * 1e3 / ROUNDS / ROUND_MS:.0f} asked for")


@fact
def series_add_up_to_what_is_live():
    run, leaked, *_ = leaks()
    header, rows, of_leak = series(run)
    check(len(rows) > 12, f"only {len(rows)} rows, too few for a verdict")
    equal(header[0], "timestamp", "first column")
    equal(header[-1], "OTHER", "last column")
    equal(sum(map(int, rows[-1][1:])), run.summary()["alloc"]["live_bytes"], "sum of the last row")
    every = [i for i, name in enumerate(header) if ";leak_here" in name]
    equal(sum(int(rows[-1][i]) for i in every), leaked, "the leak's last value")
    at = [int(row[of_leak]) for row in rows]
    check(at == sorted(at), "the leak only grows")


main()
