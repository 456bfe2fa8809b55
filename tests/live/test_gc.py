#!/usr/bin/python3
"""Collections of garbage, counted from outside, against what the programs count themselves: one run of several programs, which collect when
they are asked to."""

import csv

from harness import *

PYTHON = """
import gc, sys
gc.disable()
def say(): print(*(s["collections"] for s in gc.get_stats()), flush=True)
say()
for line in sys.stdin:
    for i in range(int(line)):
        gc.collect(i % 3)
    say()
"""
COLLECTIONS = 30


class Collects:
    """A program that collects so often as a line says, and then says what it counts."""

    def __init__(self, *args):
        self.child = Child([*args], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.first = self.read()

    def read(self):
        return [int(word) for word in self.child.process.stdout.readline().split()]

    def collect(self, n):
        self.child.process.stdin.write(f"{n}\n".encode())
        self.child.process.stdin.flush()
        return self.read()


def haskell(path):
    subprocess.run([tool("ghc"), "-v0", "-O1", "-rtsopts", "-outputdir", scratch("objects"), "-o", path,
                    os.path.join(TOP, "tests/targets/Collects.hs")], check=True)
    return path


@once
def collected():
    """The run, and of each program what it counted in it."""
    programs = {"CPython": Collects(sys.executable, "-c", PYTHON)}
    if tool("ghc") and tool("strip") and os.uname().machine == "x86_64":
        path = haskell(scratch("collects"))
        subprocess.run(["strip", "-o", path + "-stripped", path], check=True)
        programs["GHC"] = Collects(path, "+RTS", "-T", "-I0")
        programs["GHC, stripped"] = Collects(path + "-stripped", "+RTS", "-I0")
    if tool("java") and tool("javac"):
        classes = scratch("classes")
        subprocess.run([tool("javac"), "-d", classes, os.path.join(TOP, "tests/targets/Collects.java")], check=True)
        programs["HotSpot"] = Collects(tool("java"), "-XX:+UseSerialGC", "-cp", classes, "Collects")
    run = Run("-p", ",".join(str(p.child.pid) for p in programs.values()), "--only", "oncpu", "--interval", 0.2)
    run.ready()
    run.rows(2)  # their counters were read
    before = {name: p.collect(0) for name, p in programs.items()}
    after = {name: p.collect(COLLECTIONS) for name, p in programs.items()}
    with open(run.path("trend.csv"), encoding="utf-8") as f:
        rows = f.read().count("\n") - 1
    run.rows(rows + 2)
    run.stop()
    run.must()
    return run, before, after


def row_of(runtime):
    run, before, after = collected()
    if runtime not in before:
        skip(f"there is nothing to make or run a program of {runtime} with")
    row, = [row for row in run.summary()["gc"] if row["runtime"] == runtime]
    return row, before, after


@fact
def cpython_has_collected_as_often_as_it_says_by_generation():
    row, before, after = row_of("CPython")
    kinds = {f"generation {i}": b - a for i, (a, b) in enumerate(zip(before["CPython"], after["CPython"]))}
    equal(row["kinds"], kinds, "collections")
    equal((row["count"], row["major_count"]), (COLLECTIONS, COLLECTIONS // 3), "of all and of the oldest generation")
    check(row["estimated"] and row["time_low_ns"] <= row["time_ns"] <= row["time_high_ns"], f"{row}")


@fact
def hotspots_collections_are_those_of_its_own_beans():
    row, before, after = row_of("HotSpot")
    equal(row["count"], after["HotSpot"][0] - before["HotSpot"][0], "collections")
    check(row["major_count"] >= COLLECTIONS, f"System.gc() collects all: {row}")
    check(row["time_ns"] >= row["longest_pause_ns"] > 0 and not row["estimated"], f"{row}")
    check(0 < row["live_bytes"] < row["heap_bytes"], f"{row}")


@fact
def ghcs_collections_and_what_is_alive_are_what_its_run_time_system_counts():
    row, before, after = row_of("GHC")
    (counted, major, _, live), first = after["GHC"], before["GHC"]
    # The stripped one does the same.
    equal(row["count"], 2 * (counted - first[0]), "collections of both programs")
    equal(row["major_count"], 2 * (major - first[1]), "… of the oldest generation")
    equal(row["processes"], 2, "programs")
    near(row["live_bytes"], 2 * live, 0.1 * live, "bytes alive after the last")


@fact
def the_time_of_a_program_that_takes_it_is_its_own_figure():
    run, before, after = collected()
    if "GHC" not in before:
        skip("ghc is not installed")
    with open(run.path("trend.csv"), encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    counts = [int(row["gc_count"]) for row in rows if row["gc_count"]]
    equal(counts, sorted(counts), "gc_count, row by row")
    equal(counts[-1], sum(row["count"] for row in run.summary()["gc"]), "the last gc_count, and that of the summary")
    check(all(row["gc_major_count"] and row["gc_live_kb"] for row in rows[-2:]), f"{rows[-1]}")
    took = after["GHC"][2] - before["GHC"][2]
    check(took > 0, "it took no time")
    row, = [row for row in run.summary()["gc"] if row["runtime"] == "GHC"]
    # Of the other of the two there are looks alone: what is counted is the least that it can be.
    check(row["time_high_ns"] >= took and row["time_ns"] >= took, f"{row}, of which one says {took} ns")


main()
