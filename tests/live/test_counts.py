"""Functions and USDT sites as events (-e), and calls that are counted and timed (--count), in programs that know how many there were."""

import csv
import os
import re
import signal
import subprocess

import programs
from events import *
from harness import *

GO_CALLS = """
package main
//go:noinline
func work(n int) int { if n == 0 { return 1 }; return work(n-1) + 1 }
func main() {
	done := make(chan int)
	for i := 0; i < 20; i++ { go func() { done <- work(500) }() }
	for i := 0; i < 20; i++ { <-done }
}
"""


@fact
def functions_are_counted_where_they_begin_and_where_they_return():
    """Also those that call themselves, and those that longjmp() leaves, which is no return."""
    run, _ = with_target("uprobe:events:work,uretprobe:events:work,uprobe:events:nest,r:events:nest,"
                         "p:events:leave,r:events:leave", "work 700 0", "nest 20 10", "leave 30")
    for name, calls, returns in (("work", 700, 700), ("nest", 200, 200), ("leave", 30, 0)):
        equal(value(run, name), calls, f"stacks of {name}")
        equal([events_of(run)[f"{kind}:events:{name}", ""]["count"] for kind in
               (("uprobe", "uretprobe") if name == "work" else ("uprobe" if name == "nest" else "p", "r"))],
              [calls, returns], name)
    equal(value(run, "work", "work_n"), 700, "of work_n")
    equal(value(run, "work_return", "work"), 700, "at its return it is the leaf")


@fact
def each_call_is_counted_and_timed():
    """Against the program's own clock, which has the traps of the probes as well: each call is a part of what it took."""
    run, answers = with_target("work,nest", "work 300 2000", option="--count")
    took = answers[0][0][1]
    row = calls_of(run)["work"]
    equal([row[k] for k in ("calls", "returned", "left", "in_progress", "lost")], [300, 300, 0, 0, 0], "calls")
    check(300 * 2000000 <= row["time_ns"] <= took, f"{row['time_ns']} ns of calls within {took} ns")
    check(2000000 <= row["shortest_ns"] <= row["p50_ns"] <= row["longest_ns"], f"each took 2 ms or more: {row}")
    equal(sum(h["calls"] for h in row["histogram"]), 300, "the histogram has them all")
    check(all(h["from_ns"] >= 1 << 20 for h in row["histogram"]), f"from 2 ms on, in parts by powers of 2: {row['histogram']}")
    equal(calls_of(run)["nest"]["calls"], 0, "a function that was not called")
    equal(run.profile("work").types, ["calls/count"], "value types")
    equal(value(run, "work", "work_n"), 300, "every call has its stack")


TRACE = """
uprobe:{0}:work {{ @begin[tid] = nsecs; }}
uretprobe:{0}:work /@begin[tid]/ {{ @h = hist(nsecs - @begin[tid]); delete(@begin[tid]); }}
interval:ms:100 {{ printf("ready\\n"); }}
END {{ clear(@begin); }}
"""


@fact
def the_histogram_is_bpftraces_of_the_same_run():
    """Of the same calls. Both have parts by powers of 2; what traps add to one and not to the other is far from their bounds: 300 us
    lies 224 us below the next, 3 ms 1.2 ms. Calls that the machine held up may lie on one: 5 of each 100."""
    need("bpftrace")
    target, out = Target("events"), scratch("bpftrace")
    with open(out, "w", encoding="utf-8") as f:
        theirs = Child(["bpftrace", "-e", TRACE.format(os.path.join(BUILD, "targets", "events")), "-p", str(target.pid)], stdout=f, stderr=subprocess.STDOUT)
        until(lambda: "ready" in open(out, encoding="utf-8").read() or theirs.process.poll() is not None, "bpftrace traces")
        if theirs.process.poll() is not None:
            skip(f"bpftrace cannot trace here: {open(out, encoding='utf-8').read()[:200]}")
        run = Run("-p", target.pid, "--count", "work", "--max-overhead", "1000")
        run.ready()
        for command in ("work 100 300", "work 100 3000"):
            target.ask(command)
        run.stop()
        run.must()
        theirs.process.send_signal(signal.SIGINT)
        theirs.process.wait(FINISH_SEC)
    target.end()
    unit = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    of_bpftrace = {int(n) * unit[u]: int(calls) for n, u, calls in re.findall(r"^\[(\d+)([KMG]?), .*?\) +(\d+) \|", open(out, encoding="utf-8").read(), re.M)}
    ours = {h["from_ns"]: h["calls"] for h in calls_of(run)["work"]["histogram"]}
    equal((sum(ours.values()), sum(of_bpftrace.values())), (200, 200), "calls of both")
    for part in (1 << 18, 1 << 21):
        near(ours.get(part, 0), of_bpftrace.get(part, 0), 5, f"calls of {part} ns to twice that: {ours}, {of_bpftrace}")
        check(of_bpftrace.get(part, 0) > 50, f"most of them took as long as they should: {of_bpftrace}")


@fact
def recursive_calls_and_calls_that_never_return_are_told_apart():
    run, _ = with_target("events:nest,events:leave", "nest 20 10", "leave 30", "nest 5 1", option="--count")
    nest, leave = calls_of(run)["nest"], calls_of(run)["leave"]
    equal([nest[k] for k in ("calls", "returned", "outermost")], [205, 205, 25], "nest: those of the outermost are a part")
    check(nest["outermost_ns"] < nest["time_ns"], "whose time has the others' in it")
    # Each is left by longjmp(), and the next one has its place on the stack; of the last one nobody knows better.
    equal([leave[k] for k in ("calls", "returned", "left", "in_progress")], [30, 0, 29, 1], "leave")
    rows = list(csv.DictReader(open(os.path.join(run.out, "counts.csv"), encoding="utf-8")))
    equal({r["function"]: int(r["calls"]) for r in rows}, {"nest": 205, "leave": 30}, "counts.csv")
    r = subprocess.run([MEMSCOPE, "convert", os.path.join(run.out, "nest.pb.gz"), "-o", os.path.join(run.out, "x.callgrind")],
                       capture_output=True, text=True, check=False)
    equal(r.returncode, 0, r.stderr)
    text = open(os.path.join(run.out, "x.callgrind"), encoding="utf-8").read()
    equal(sum(int(n) for n in re.findall(r"^calls=(\d+)", text, re.M) if int(n) > 1), 205, "calls in callgrind's file")


@fact
def what_longjmp_left_is_not_around_calls_further_down_the_stack():
    run, _ = with_target("leave", "below 40", option="--count")
    leave = calls_of(run)["leave"]
    equal([leave[k] for k in ("calls", "returned", "outermost")], [41, 40, 40], "each of the 40 is an outermost one")


@fact
def a_thread_that_ends_in_a_call_has_left_it():
    run, _ = with_target("finish", "end 25", option="--count")
    finish = calls_of(run)["finish"]
    equal([finish[k] for k in ("calls", "returned", "left", "in_progress")], [25, 0, 25, 0], "finish")


@fact
def calls_of_a_library_by_a_program_nobody_rebuilt_are_as_many_as_it_makes():
    """CPython's zlib.crc32() is a call of the library's."""
    code = "import zlib\nfor i in range(400): zlib.crc32(b'x' * 1000)"
    run = Run("--count", "z:crc32", "--max-overhead", "1000", "--", "/usr/bin/python3", "-c", code)
    run.must()
    row = calls_of(run)["crc32"]
    equal([row["calls"], row["returned"]], [400, 400], "calls")


@fact
def calls_of_go_are_counted_once_where_their_stack_has_to_grow():
    """Then a function begins anew. Its time is not known: stacks are moved."""
    run = Run("--count", "program:main.work", "--max-overhead", "1000", "--", programs.go_built(source=GO_CALLS))
    run.must()
    row = calls_of(run)["main.work"]
    equal([row["calls"], row["returned"]], [20 * 501, 0], "calls")
    check("moves stacks" in row["untimed"], f"why they are not timed: {row}")


@fact
def timing_ends_before_counting_where_it_costs_too_much():
    target = Target("events")
    run = Run("-p", target.pid, "--count", "work", "--max-overhead", "3")
    run.ready()
    # For longer than it takes to see what they cost, on a quick machine, too.
    target.ask("work 600000 0", timeout=120)
    run.stop()
    check(run.status in (0, 3), "3 where counting was given up as well")
    row = calls_of(run)["work"]
    check(row["timed_s"] > 0, f"it says so: {row}")
    check(row["counted_s"] > row["timed_s"] or row["calls"] == 600000, f"calls are counted on: {row}")
    check(row["returned"] < row["calls"], f"and not timed: {row}")
    target.end()


@fact
def sites_of_usdt_are_counted_and_their_semaphores_raised():
    """The program counts what it told while somebody listened."""
    run, answers = with_target("usdt:otel_memory:*,usdt:other_sampler:otel_memory:alloc", "run 3000",
                               program="other_sampler")
    allocs, frees = answers[0][0][1:3]
    check(allocs > 0, "it was asked to tell")
    rows = events_of(run)
    equal(rows["usdt:otel_memory:*", "otel_memory:alloc"]["count"], allocs, "allocations")
    equal(rows["usdt:otel_memory:*", "otel_memory:free"]["count"], frees, "frees")
    equal(value(run, "alloc_b", "other_alloc"), allocs, "a file's site, by name")


@fact
def sites_of_python_are_found_in_the_program_that_is_started():
    code = "import gc\nfor i in range(70): gc.collect(0)"
    path = os.path.realpath("/usr/bin/python3")
    if b"gc__start" not in open(path, "rb").read():
        skip(f"{path} has no sites")
    run = Run("-e", "usdt:/usr/bin/python3:python:gc__start", "--max-overhead", "1000", "--", "/usr/bin/python3", "-X",
              "gc", "-c", code)
    run.must()
    # Besides, the interpreter collects by itself while it starts and ends.
    check(70 <= count_of(run, "usdt:/usr/bin/python3:python:gc__start") <= 90, "collections")


@fact
def what_no_file_of_the_target_has_is_said_so():
    target = Target("events")
    for events in ("usdt:no:such", "uprobe:events:no_such", "uprobe:/no/such:main"):
        r = subprocess.run([MEMSCOPE, "-p", str(target.pid), "-e", events, "-d", "0.5", "-o", scratch("none")],
                           capture_output=True, text=True, check=False)
        equal(r.returncode, 1, events)
        check("no file that is mapped" in r.stderr and r.stderr.count("\n") == 1, f"one sentence: {r.stderr}")
    target.end()

main()
