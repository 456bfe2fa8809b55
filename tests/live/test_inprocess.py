"""Every call recorded in the process itself, by the injected library: equal to what the target logs, with
the stacks that probes see; nothing that happens to either side harms the other."""

import os
import random
import signal
import subprocess
import sys
import time

from harness import *
from injecting import *
from programs import late_sqlite
from truth import *

INPROCESS = ("--alloc=exact", "--inject", "--only", "alloc")
CYCLES = int(os.environ.get("MEMSCOPE_INJECT_CYCLES", 30))
KILLS = int(os.environ.get("MEMSCOPE_INJECT_KILLS", 6))

if os.uname().machine != "x86_64":
    print("1..0 # SKIP a library can be injected on x86-64 only")
    sys.exit(0)


def areas(pid):
    """Mappings of memory that was shared with memscope."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        return [line for line in f if "memfd:memscope" in line]


def is_idle(pid):
    return until(lambda: not areas(pid) and not agents(pid), "nothing of memscope in the target")


def healthy(t, what):
    report = {line[0]: line[1:] for line in t.ask("report")}
    equal(report["errors"], [0], f"{what}: what the program found wrong")


@once
def single():
    t = Target("alloc_truth", 1, 6000)
    run, lines = record(("-p", t.pid, *INPROCESS), lambda: t.ask("run"))
    return t, run, lines


@fact
def every_call_byte_and_live_byte_of_one_thread_is_recorded():
    t, run, lines = single()
    check_truth(run, lines, t.pid)
    a = run.summary()["alloc"]
    frees = next(line[1] for line in lines if line[0] == "frees")
    equal(a["tier"], "exact", "tier")
    # 32 of the pre-existing blocks are freed and 16 grown by realloc in the run.
    equal(a["earlier_frees"], 48, "frees of older blocks")
    equal(a["freed_objects"], frees - 48, "frees of blocks of the run")
    check(is_idle(t.pid), "")


@once
def probed():
    """The same, seen by probes."""
    t = Target("alloc_truth", 1, 6000)
    return record(("-p", t.pid, *EXACT), lambda: t.ask("run"))[0]


@fact
def fates_are_those_that_probes_see():
    run = single()[1]
    a, b = run.summary()["alloc"], probed().summary()["alloc"]
    for key in ("objects", "bytes", "freed_objects", "freed_bytes", "live_objects", "live_bytes", "failed",
                "earlier_frees", "temporary", "cross_thread_frees", "sizes", "peak"):
        if isinstance(a[key], dict):
            for part in ("bytes", "objects"):
                if part in a[key]:
                    equal(a[key][part], b[key][part], f"{key}: {part}")
        else:
            equal(a[key], b[key], key)


@fact
def stacks_are_those_that_probes_see():
    def functions(run):
        """By function of the program: which of them, from the outermost on, and how many calls."""
        calls = {}
        for s in run.profile("alloc").samples:
            names = [f.name for f in s.frames]
            if "main" in names:
                names = tuple(names[1:names.index("main") + 1])
                calls[names] = calls.get(names, 0) + s.values[0]
        return calls
    got, want = functions(single()[1]), functions(probed())
    equal(got, want, "calls by stack")
    equal(sum(got.values()), single()[1].summary()["alloc"]["objects"], "calls below main()")


@fact
def four_threads_with_cross_thread_frees_are_recorded():
    t = Target("alloc_truth", 4, 3000)
    run, lines = record(("-p", t.pid, *INPROCESS), lambda: t.ask("run"))
    check_truth(run, lines, t.pid)
    check(run.summary()["alloc"]["cross_thread_frees"] > 0, "no frees by other threads")


@fact
def a_second_run_begins_with_nothing():
    t = Target("alloc_truth", 2, 3000)
    record(("-p", t.pid, *INPROCESS), lambda: t.ask("run"))
    before = t.ask("run")
    run, lines = record(("-p", t.pid, *INPROCESS), lambda: t.ask("run"))
    grown = [b - a for a, b in zip(sites_of(before)[1], sites_of(lines)[1])]
    equal([run.profile("alloc").sum(of, pid=t.pid) for of in ALLOC], grown[:2], "calls and bytes of the second run")


@fact
def deep_and_changing_stacks_of_many_threads_are_whole():
    t = Child([os.path.join(TARGETS, "alloc_depth"), "30", "600", "7"], stdout=subprocess.PIPE)
    t.process.stdout.readline()
    run = Run("-p", t.pid, *INPROCESS)
    run.ready()
    has_worked(t.pid, 1.5)
    t.process.terminate()  # its threads free what they hold
    t.process.wait()
    run.finish()
    run.must()
    alloc, heap = run.profile("alloc"), run.profile("heap")
    deep = [s for s in alloc.samples if any(f.name in ("pair", "held") for f in s.frames)]
    calls = sum(s.values[0] for s in deep)
    whole = sum(s.values[0] for s in deep
                if [f.name for f in s.frames].count("enter") == 31 and any(f.name == "run" for f in s.frames))
    check(calls > 10000, f"calls: {calls}")
    equal(whole, calls, "calls whose stack has all 31 frames of its recursion, and the thread's first function")
    equal(heap.sum(HEAP[2], "pair", pid=t.pid), 0, "live blocks of pair()")
    equal(heap.sum(HEAP[2], "held", pid=t.pid), 0, "live blocks of held(), all of which were freed in the end")
    a = run.summary()["alloc"]
    equal(a["objects"] - a["freed_objects"], a["live_objects"], "allocated less freed")
    stacks = next(s for s in run.summary()["stacks"] if s["source"] == "alloc")
    equal(stacks["complete"], a["objects"], "stacks that are complete, by the summary")


@fact
def a_forked_child_is_not_recorded_and_that_is_said():
    t = Target("alloc_truth", 1, 2000)

    def during():
        t.ask("run")
        return t.ask("fork")
    run, lines = record(("-p", t.pid, *INPROCESS), during, status=None)
    at = next(i for i, line in enumerate(lines) if line[0] == "parent")
    check_truth(run, lines[at + 1:], t.pid)
    check(any("forked children were not recorded" in note for note in run.summary()["notes"]),
          f"not said: {run.summary()['notes']}")
    check(t.alive(), "the target has ended")


@fact
def a_full_table_of_blocks_is_counted_and_named():
    code = ("import ctypes, sys\nmalloc = ctypes.CDLL(None).malloc\nmalloc.restype = ctypes.c_void_p\n"
            "print('ready', flush=True)\nsys.stdin.readline()\n"
            "for i in range(300000): malloc(24)\n"
            "print('done', flush=True)\nsys.stdin.readline()\n")
    p = Child(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.process.stdout.readline()
    run = Run("-p", p.pid, *INPROCESS, "--mem", "16")
    run.ready()
    p.process.stdin.write(b"\n")
    p.process.stdin.flush()
    equal(p.process.stdout.readline().strip(), b"done", "the program's progress")
    run.stop()
    a = run.summary()["alloc"]
    check(a["objects"] >= 300000, f"allocations counted: {a['objects']}")
    check(a["untracked"] > 0, "no block was left out")
    equal(a["objects"] - a["freed_objects"] - a["untracked"], a["live_objects"], "live blocks, and those left out")
    check(any("the table of live blocks" in note for note in run.summary()["notes"]),
          f"not said: {run.summary()['notes']}")


@fact
def a_library_that_is_loaded_during_the_run_is_recorded_with_whole_stacks():
    p, turn = late_sqlite()
    run = Run("-p", p.pid, *INPROCESS)
    run.ready()
    turn(b"ready")
    run.had_time(2.5)  # tables are not exchanged more than once a second
    turn(b"loaded")
    equal(p.process.stdout.readline().strip(), b"done", "the program's progress")
    run.stop()
    run.must()
    inside = [s for s in run.profile("alloc").samples if any("sqlite" in (f.module or "") for f in s.frames)]
    size = sum(s.values[1] for s in inside)
    whole = sum(s.values[1] for s in inside if any(f.name == "_start" for f in s.frames))
    check(size > 20e6, f"bytes allocated by libsqlite3, of 30 MB and more: {size}")
    check(whole > 0.9 * size, f"bytes of them whose stack is whole: {whole} of {size}")


@fact
def a_target_that_is_killed_leaves_what_it_had_recorded():
    t = Child([os.path.join(TARGETS, "alloc_depth"), "20", "60"], stdout=subprocess.PIPE)
    t.process.stdout.readline()
    run = Run("-p", t.pid, *INPROCESS)
    run.ready()
    time.sleep(0.5)
    t.process.send_signal(signal.SIGKILL)
    run.finish()
    run.must()
    a = run.summary()["alloc"]
    check(a["objects"] > 1000, f"allocations recorded before the end: {a['objects']}")
    near(a["objects"] - a["freed_objects"], a["live_objects"], 1, "allocated less freed, but for one in progress")


@fact
def a_memscope_that_is_killed_leaves_a_program_that_works():
    t = Target("inject_busy", "work", "work", "fork", "load", "churn", "read", "poll")
    time.sleep(0.3)
    random_s = random.Random(7)
    for _ in range(KILLS):
        m = Run("-p", t.pid, *INPROCESS)
        time.sleep(random_s.uniform(0.1, 1.2))
        m.process.send_signal(signal.SIGKILL)
        m.end()
        if not check(t.alive(), "the program has ended"):
            return
    check(is_idle(t.pid), "")
    healthy(t, "kills")
    run, _ = record(("-p", t.pid, *INPROCESS), lambda: time.sleep(0.5), status=None)
    check(run.summary()["alloc"]["objects"] > 0, "nothing is recorded afterwards")
    healthy(t, "a run after kills")


@fact
def a_busy_program_does_not_notice_many_cycles():
    t = Target("inject_busy", "work", "work", "fork", "load", "signal", "churn", "read", "poll")
    time.sleep(0.3)
    got = subprocess.run([INJECT, str(t.pid), LIBRARY, str(CYCLES), "exact"], capture_output=True, text=True,
                         timeout=60 + CYCLES, check=False)
    equal(got.returncode, 0, f"cycles: {got.stderr}")
    healthy(t, "cycles")
    check(is_idle(t.pid), "")


@fact
def a_preloaded_process_is_recorded_too():
    os.environ.update(LD_PRELOAD=LIBRARY)
    try:
        t = Target("alloc_truth", 1, 4000)
    finally:
        del os.environ["LD_PRELOAD"]
    run, lines = record(("-p", t.pid, *INPROCESS), lambda: t.ask("run"))
    check_truth(run, lines, t.pid)


def by_innermost(profile, of, names, pid):
    """{function: values}: of stacks with several of these, since a handler has interrupted one, the innermost's."""
    got = {name: [0] * len(of) for name in names}
    at = [profile.types.index(t) for t in of]
    for s in profile.select(pid=pid):
        name = next((f.name for f in s.frames if f.name in names), None)
        if name:
            got[name] = [g + s.values[i] for g, i in zip(got[name], at)]
    return got


def check_innermost(run, lines, pid):
    truth = sites_of(lines)[0]
    equal(by_innermost(run.profile("heap"), HEAP, truth, pid), truth, "calls, bytes, live calls and bytes by function")
    equal(by_innermost(run.profile("alloc"), ALLOC, truth, pid), {n: v[:2] for n, v in truth.items()},
          "calls and bytes by function")


def of_signals(mode, ms=300):
    """A run on alloc_signals: it, what the program says, and the calls that were not recorded."""
    t = Target("alloc_signals")
    run, lines = record(("-p", t.pid, *INPROCESS), lambda: t.ask(f"run {mode} {ms}"), status=None)
    said = {line[0]: line[1] for line in lines if line[0] in ("begun", "signals", "errors")}
    equal(said["errors"], 0, f"{mode}: what the program found wrong")
    check(said["signals"] > 100, f"{mode}: signals: {said['signals']}")
    until(lambda: not agents(t.pid), "no thread of memscope in the target")
    missed = [int(word.replace(",", "")) for note in run.summary()["notes"] if "calls were not recorded" in note
              for word in note.split() if word.replace(",", "").isdigit()]
    return t, run, lines, said, sum(missed)


@fact
def calls_in_signal_handlers_are_recorded_wherever_handlers_run():
    for mode in ("same", "below", "above", "within", "fork"):
        t, run, lines, _, missed = of_signals(mode)
        equal(missed, 0, f"{mode}: calls that were not recorded")
        check(is_idle(t.pid), "")
        check_innermost(run, lines, t.pid)


@fact
def calls_of_coroutines_that_handlers_change_to_are_recorded():
    for mode in ("swap", "task"):
        t, run, lines, _, missed = of_signals(mode)
        equal(missed, 0, f"{mode}: calls that were not recorded")
        check(is_idle(t.pid), "")
        check_innermost(run, lines, t.pid)


@fact
def calls_that_a_handler_jumps_out_of_are_counted():
    t, run, lines, said, missed = of_signals("jump")
    done = sites_of(lines)[1][0]
    got = sum(v[0] for v in by_innermost(run.profile("alloc"), ALLOC[:1], sites_of(lines)[0], t.pid).values())
    check(missed < done / 2, f"left out {missed}, of {done} that returned")
    check(done <= got + missed, f"calls recorded {got}, left out {missed}, of {done} that returned")
    check(got <= said["begun"], f"calls recorded {got}, of {said['begun']} begun")


@fact
def operators_of_cxx_are_recorded_once():
    t = Target("new_truth", 10000)
    run, lines = record(("-p", t.pid, *INPROCESS), lambda: t.ask("run"))
    check_truth(run, lines, t.pid, total_is_all=False)


@fact
def other_allocators_are_recorded_and_their_operators_once():
    found = 0
    for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"):
        path = f"/usr/lib/x86_64-linux-gnu/{name}"
        if not os.path.exists(path):
            continue
        found += 1
        os.environ.update(LD_PRELOAD=path, ALLOC_TRUTH_OTHER="1")
        try:
            targets = Target("alloc_truth", 2, 2000), Target("new_truth", 4000)
        finally:
            del os.environ["LD_PRELOAD"], os.environ["ALLOC_TRUTH_OTHER"]
        for t in targets:
            run, lines = record(("-p", t.pid, *INPROCESS), lambda t=t: t.ask("run"))
            check_truth(run, lines, t.pid, total_is_all=False)
    if not found:
        skip("no other allocator is installed")


@fact
def a_language_whose_frames_are_not_read_is_named():
    child = at_work(Child(["perl", "-e", 'sub eat { my @x = map { "x" x 5000 } 1 .. 9; } while (1) { eat(); select undef, undef, undef, .001 }'],
                          **QUIET), 0.02)
    run = Run("-p", child.pid, *INPROCESS)
    run.ready()
    has_worked(child.pid, 0.02)
    run.stop()
    child.end()
    check("frames of Perl are not in these stacks" in run.stderr, "the frames of Perl that are missing are not said")
    frames = {f.module for s in run.profile("alloc").samples for f in s.frames}
    check(frames and "[Perl]" not in frames, f"frames are of {frames}")


@fact
def windows_add_up_to_the_run():
    t = Target("alloc_truth", 2, 3000)
    run = Run("-p", t.pid, *INPROCESS, "--every", 0.5)
    run.ready()
    lines = t.ask("run")
    run.had_time(1.2)
    run.stop()
    run.must()
    windows = [pprof_reader.read(run.path(name)) for name in os.listdir(run.out)
               if name.startswith("alloc-") and name.endswith(".pb.gz")]
    check(len(windows) > 1, f"windows: {len(windows)}")
    equal([sum(w.sum(of, pid=t.pid) for w in windows) for of in ALLOC], sites_of(lines)[1][:2],
          "calls and bytes of all windows")


main()
