"""How a launched command is started: held until its entry point so that probes come before its first
allocation, whatever the constructors of its libraries do there, and never for long."""

import os
import signal
import time

from harness import *

BEFORE, AFTER, BLOCK = 300, 200, 48  # of lib_starts.c
PROGRAM = os.path.join(TARGETS, "starts")
EXACT = ("--only", "alloc", "--alloc=exact")


def begin(how, *args, **kw):
    run = Run(*EXACT, *args, "--", PROGRAM, how, scratch("answer"), **kw)
    run.answer_file = run.argv[-1]
    return run


def answer(run):
    try:
        with open(run.answer_file, encoding="ascii") as f:
            return {k: int(v) for k, v in (line.split() for line in f)}
    except OSError:
        return None


def wait_until(holds, seconds):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rpartition(")")[2].split()[0]


def check_run(run, how, before=BEFORE, after=AFTER):
    run.must()
    equal(answer(run), {"result": 7, "tracer": 0, "chld_ignored": 0}, f"{how}: the program's answer")
    child = run.summary().get("child") or {}
    equal((child.get("exited"), child.get("code")), (True, 5), f"{how}: child in the summary")
    alloc = run.profile("alloc")
    for function, blocks in (("ctor_before", before), ("ctor_after", after)):
        equal([alloc.sum(t, function) for t in ("alloc_objects/count", "alloc_space/bytes")],
              [blocks, blocks * BLOCK], f"{how}: blocks and bytes of {function}")


@fact
def constructor_of_a_library_is_counted_from_its_first_allocation():
    run = begin("nothing")
    run.finish()
    check_run(run, "nothing")


@fact
def time_that_memscope_holds_the_command_is_nobodys_wait():
    run = Run("--only", "offcpu,alloc", "--alloc=exact", "--", PROGRAM, "nothing", scratch("answer"))
    run.finish()
    run.must()
    t, p = run.summary()["time"], run.profile("offcpu")
    check(t["held_ns"] > 0, "it was not held: nothing is proved")
    equal(p.sum("blocked/count", "ptrace_stop"), 0, "waits for a tracer")
    near(t["oncpu_ns"] + t["blocked_ns"] + t["runnable_ns"], t["wall_ns"], 0.01 * t["wall_ns"],
         "on-CPU + blocked + runnable, without what was held")
    check(t["wall_ns"] + t["held_ns"] <= p.duration_ns + 20e6,
          f"{t['wall_ns']} ns of its own and {t['held_ns']} held in a run of {p.duration_ns}")


@fact
def forked_child_of_a_constructor_reaches_its_main():
    run = begin("fork")
    run.finish()
    check_run(run, "fork")


@fact
def constructor_may_make_tasks_that_share_its_memory():
    for how in ("shared", "vfork", "spawn", "thread"):
        run = begin(how)
        run.finish()
        check_run(run, how)


@fact
def constructor_that_execs_is_counted_in_both_images():
    run = begin("exec")
    run.finish()
    check_run(run, "exec", before=2 * BEFORE)


@fact
def signal_of_a_constructor_reaches_it():
    run = begin("signal")
    run.finish()
    check_run(run, "signal")


@fact
def signal_before_the_exec_is_delivered():
    for _ in range(10):
        run = begin("sleep")
        deadline = time.monotonic() + READY_SEC
        while not children_of(run.pid):  # a few ms are all there is: no sleep here
            if time.monotonic() > deadline:
                raise Broken("the command was not started")
        child = children_of(run.pid)[0]
        os.kill(child, signal.SIGTERM)  # blocked until just before its exec
        in_time = os.readlink(f"/proc/{child}/exe") == MEMSCOPE
        run.finish()
        if in_time:
            break
    else:
        skip("in ten runs the command was past its exec when the signal was sent")
    run.must()
    ended = run.summary().get("child") or {}
    equal((ended.get("exited"), ended.get("signal")), (False, signal.SIGTERM), "child in the summary")


@fact
def constructor_that_stops_itself_is_stopped_and_not_held():
    run = begin("stop")
    run.ready()
    children = children_of(run.pid)
    equal(len(children), 1, "children of memscope")
    # T: stopped by job control; t: by a tracer.
    check(wait_until(lambda: state_of(children[0]) == "T", READY_SEC),
          f"state {state_of(children[0])}, expected T")
    os.kill(children[0], signal.SIGCONT)
    run.finish()
    check_run(run, "stop")


@fact
def constructor_that_sleeps_is_let_go_and_sleeps_on():
    run = begin("sleep")
    run.ready()
    # 2 s of hold; it sleeps for 4 s, and writes its answer behind that. A machine that keeps memscope from
    # its CPUs for the 2 s in between proves nothing.
    late, starved_ns = answer(run) is not None, run.starved_ns()
    if late and starved_ns > 1e9:
        skip(f"others had the CPUs for {starved_ns / 1e9:.1f} s")
    check(not late, "the constructor was waited for")
    run.finish()
    check_run(run, "sleep")


@once
def ended_early():
    """Runs on commands in whose constructor a sleep of 4 s is under way: [(signal, run, seconds to its end)] of those that
    a signal ends, and of one that ends by itself, with the time it was kept from a CPU. A command has memscope's own
    stderr, so who reads to the end of that waits for the command: that is done last."""
    by_signal = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        run = begin("sleep")
        check(wait_until(lambda: children_of(run.pid), READY_SEC), "the command was not started")
        child = children_of(run.pid)[0]
        check(wait_until(lambda: os.readlink(f"/proc/{child}/exe") == PROGRAM, READY_SEC),
              "the command did not exec")
        time.sleep(0.3)
        run.send(number)
        by_signal.append((number, run, run.ended_in()))
    start_ns = time.monotonic_ns()
    timed = begin("sleep", "-d", 0.5)
    took, starved_ns = timed.ended_in(start_ns), timed.starved_ns()
    for run in (*(run for _, run, _ in by_signal), timed):
        run.finish()
    return by_signal, timed, took, starved_ns


@fact
@alone("how long an end takes")
def signal_to_memscope_does_not_wait_for_a_constructor():
    for number, run, took in ended_early()[0]:
        run.must()
        check(took < 1.5, f"{number.name}: ended after {took:.2f} s")
        equal(run.profile("alloc").sum("alloc_objects/count", "ctor_before"), BEFORE,
              f"{number.name}: blocks")
        check(wait_until(lambda: answer(run) is not None, READY_SEC), f"{number.name}: the program died")
        equal((answer(run) or {}).get("result"), 7, f"{number.name}: the sleep of 4 s")


@fact
@alone("how long an end takes")
def duration_does_not_wait_for_a_constructor():
    _, run, took, starved_ns = ended_early()
    check(took < 2.4, f"-d 0.5 took {took:.2f} s, to attach and to write included")
    run.must()
    within(run.profile("alloc").duration_ns, 0.49e9, 0.8e9 + starved_ns, "duration_ns of the profile")
    check(wait_until(lambda: answer(run) is not None, READY_SEC), "the program died")


@fact
def exit_status_is_known_where_sigchld_was_ignored():
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        # Popen restores only SIGPIPE and its like: an ignored SIGCHLD goes through to memscope.
        run = begin("fork")
    finally:
        signal.signal(signal.SIGCHLD, before)
    run.finish()
    run.must()
    child = run.summary().get("child") or {}
    equal((child.get("exited"), child.get("code")), (True, 5), "child in the summary")
    # Its own children were reaped by the kernel: the constructor's wait has no status to give.
    equal(answer(run), {"result": -1, "tracer": 0, "chld_ignored": 1}, "the program's answer")


main()
