#!/usr/bin/python3
"""Objects by type, counted again and again while a program runs, against what it says that it has."""

import csv
import re

from harness import *

PROGRAM = """
import sys
class Known:
    __slots__ = ("first", "second")
kept = []
for line in sys.stdin:
    kept.extend([Known() for _ in range(int(line))])
    print(len(kept), flush=True)
"""


def censuses(run):
    return len(re.findall(r"census \d+ of process", run.stderr))


@fact
def each_census_counts_the_objects_that_the_program_has():
    child = Child([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def grow(n):
        child.process.stdin.write(f"{n}\n".encode())
        child.process.stdin.flush()
        return int(child.process.stdout.readline())

    first = grow(20000)
    # Half of the time may go into pauses: a busy machine makes them long.
    run = Run("-v", "-p", child.pid, "--only", "oncpu", "--census", 0.3, "--max-overhead", 50)
    run.ready()
    until(lambda: censuses(run) >= 1, "a census")
    last = grow(30000)
    before = censuses(run)
    # One may have begun before they were all there.
    until(lambda: censuses(run) >= before + 2, "two further censuses")
    run.stop()
    run.must()
    with open(run.path("census.csv"), encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    counts = [int(row["__main__.Known objects"]) for row in rows]
    equal((counts[0], counts[-1]), (first, last), "objects at the first and at the last census")
    equal(counts, sorted(counts), "objects at each")
    for row, count in zip(rows, counts):
        equal(int(row["__main__.Known"]) % count, 0, f"bytes of {count} objects that are alike")
    note, = [note for note in run.summary()["notes"] if note.startswith("census: ") and "of process" in note]
    check(f"of process {child.pid};" in note and "__main__.Known by " in note and f"({last - first} objects)" in note, note)


@fact
def containers_are_named_as_a_census_on_request_names_them():
    target = Target("heap_containers", 500)
    run = Run("-v", "-p", target.pid, "--only", "oncpu", "--census", 1)
    run.ready()
    until(lambda: censuses(run) >= 1, "a census")
    run.stop()
    run.must()
    with open(run.path("census.csv"), encoding="utf-8", newline="") as f:
        row = list(csv.DictReader(f))[0]
    equal([int(row[f"{name} objects"]) for name in ("std::map node", "std::list node", "std::string buffer")], [1000, 500, 1000], "objects")


main()
