"""When samples came: SOURCE.times.csv.gz, and --from and --to, against a target that logs when it did what."""

import csv
import gzip
import subprocess

from harness import *

MS = 1200  # of each phase; the wait that follows lasts for 2.5 times that
SOURCES = {"oncpu": ("cpu/nanoseconds", "samples/count"), "offcpu": ("blocked/nanoseconds", "runnable/nanoseconds"),
           "alloc": ("alloc_space/bytes", "alloc_objects/count"), "growth": ("resident/bytes", "returned/bytes")}


@once
def moved():
    target = Target("phases")
    run = Run("-p", target.pid, "--alloc=exact", "--offcpu=exact", "-F", 199)
    run.ready()
    answer = target.ask(f"go {MS}")
    run.starved = run.starved_ns() / 1e9
    run.stop()
    run.must()
    begin_ns = run.profile("oncpu").time_ns
    return run, [(ns - begin_ns) / 1e9 for ns in answer[0][1:]]


def times(run, source, width="1"):
    """(columns, rows): sample, second, then values by their columns."""
    with gzip.open(run.path(f"{source}.times.csv.gz"), "rt", encoding="ascii") as f:
        check(next(f).endswith(f"samples, in bins of {width} s\n"), "the first line does not say how wide bins are")
        rows = csv.reader(f)
        columns = next(rows)
        return columns, [[int(row[0]), float(row[1]), *map(int, row[2:])] for row in rows]


def seconds_of(run, source, function):
    """{second: value of the first column} of the samples that have this function."""
    samples = run.profile(source).samples
    out = {}
    for sample, second, value, *_ in times(run, source)[1]:
        if any(f.name == function for f in samples[sample].frames) and value:
            out[int(second)] = out.get(int(second), 0) + value
    return out


@fact
def bins_of_each_sample_add_up_to_it():
    run, _ = moved()
    for source, types in SOURCES.items():
        p, (columns, rows) = run.profile(source), times(run, source)
        equal(tuple(columns), ("sample", "second", *types), f"columns of {source}")
        check(rows and rows == sorted(rows, key=lambda r: (r[1], r[0])), f"{source} is not in the order of time")
        for k, name in enumerate(types):
            sums = [0] * len(p.samples)
            for row in rows:
                sums[row[0]] += row[2 + k]
            equal(sums, [s.values[p.types.index(name)] for s in p.samples], f"{name} of each sample by its bins")


@fact
def work_that_moves_from_one_function_to_another_does_so_in_its_second():
    run, (begin, switch, end, _) = moved()
    for source, word in (("oncpu", "burn"), ("offcpu", "wait"), ("growth", "touch")):
        for phase, first, last in (("a", begin, switch), ("b", switch, end)):
            found = seconds_of(run, source, f"{word}_{phase}")
            check(found, f"{word}_{phase} is in no second of {source}")
            # Two clocks were read one after the other for the profile's begin: 1 ms.
            within(min(found), int(first - 0.001), int(first + 1), f"first second of {word}_{phase}")
            within(max(found), int(last - 1), int(last + 0.001), f"last second of {word}_{phase}")
    # Allocations are of the time between two readings of their table: of a second, and as late as memscope was kept
    # from a CPU.
    late = 1.2 + run.starved
    for phase, first, last in (("a", begin, switch), ("b", switch, end)):
        found = seconds_of(run, "alloc", f"alloc_{phase}")
        within(min(found), int(max(first - late, 0)), int(first + 1), f"first second of alloc_{phase}")
        within(max(found), int(last - 1), int(last + late), f"last second of alloc_{phase}")


@fact
def a_wait_is_in_every_second_that_it_spans():
    run, (_, _, begin, end) = moved()
    found = seconds_of(run, "offcpu", "wait_long")
    inside = range(int(begin + 0.001) + 1, int(end - 0.001))
    check(len(inside) >= 2, f"the wait from {begin} to {end} has no two seconds inside")
    for second in inside:
        # It is one wait; what the thread was runnable at its end is not in this column.
        if second + 1 < begin + 2.5 * MS / 1000:
            equal(found[second], 10**9, f"of second {second}, in a wait from {begin} to {end}")
    within(sum(found.values()), 2.5 * MS * 10**6, (end - begin) * 10**9, "the whole wait")


@fact
def from_and_to_restrict_a_report_to_a_time():
    run, (_, switch, end, waited) = moved()

    def report(*args):
        return subprocess.run([MEMSCOPE, *map(str, args)], capture_output=True, text=True, check=False)
    # The second in which it moved has both.
    second = int(switch)
    check("burn_a" in report("report", run.out, "--to", second + 1).stdout, f"no burn_a up to {second + 1} s")
    check("burn_b" in report("report", run.out, "--from", second).stdout, f"no burn_b from {second} s on")
    a = report("report", run.out, "--to", second).stdout
    check("burn_b" not in a, f"up to {second} s: {a}")
    b = report("report", run.out, "--from", second + 1).stdout
    check("burn_a" not in b, f"from {second + 1} s on: {b}")
    folded = report("flame", run.out, "--source", "offcpu", "--from", int(end) + 1, "--to", int(waited), "-o", "-",
                    "--format", "folded").stdout
    check("wait_long" in folded and "wait_b" not in folded, f"folded: {folded}")
    page = scratch("page") + ".html"
    # Nothing is allocated in the long wait: the page goes without that profile, and without those that have no times.
    equal(report("report", run.out, "--from", int(end) + 1, "--to", int(waited), "-o", page).stderr, "", "what it says of a page")
    with open(page, encoding="utf-8") as f:
        check('id="run"' in f.read(), "no page")
    none = report("report", run.out, "--source", "heap", "--to", 3)
    equal(none.returncode, 1, "status where there are no times")
    check("heap.times.csv.gz" in none.stderr, none.stderr)
    late = report("report", run.out, "--from", 1000)
    check("nothing came in that time" in late.stderr, late.stderr)


@once
def pingpong():
    """Two threads on one CPU that switch all the time: of most waits the stack is not taken."""
    target, rate = Target("pingpong", online_cpus()[0]), scratch("rate")
    with open(rate, "wb") as f:
        f.truncate(4096)
    target.say(f"rate {rate}")
    run = Run("-p", target.pid, "--only", "oncpu,offcpu", "--offcpu=sampled", "--fine", "-F", 499, "-d", 3.2)
    run.finish()
    return run.must()


@fact
def waits_of_threads_that_switch_often_are_in_their_second():
    run = pingpong()
    samples, off = run.profile("offcpu").samples, {}
    for sample, second, *values in times(run, "offcpu")[1]:
        key = samples[sample].labels["tid"], int(second)
        off[key] = off.get(key, 0) + sum(values)
    tids = {tid for tid, _ in off}
    equal(len(tids), 2, "threads")
    for tid in tids:
        for second in (1, 2):
            # Two share a CPU, so each is off it for half of the time at the least, but for the switches' own; what is
            # attributed to a second by the scheduler's clock and by ours differs by less than a hundredth.
            within(off.get((tid, second), 0) / 1e9, 0.4, 1.01, f"off the CPU in second {second}")


@fact
def option_fine_keeps_times_of_milliseconds():
    rows = times(pingpong(), "oncpu", "0.0078125")[1]
    check(all(row[1] * 128 == int(row[1] * 128) for row in rows), "a bin begins within another")
    # At 499 Hz there is one in each bin of a CPU; a busy machine has half of them.
    within(len({row[1] for row in rows}), 40, 3.3 * 128, "bins with a sample")


main()
