"""How a run ends: by time, by signals, by force. Whole files, no probe left, a healthy target."""

import os
import signal
import time

from harness import *


def whole_files(run):
    for source in SOURCES:
        path = run.path(f"{source}.pb.gz")
        if os.path.exists(path):
            pprof_reader.read(path)
    left = [f for f in os.listdir(run.out) if f.endswith((".tmp", ".part")) or (f.startswith(".") and f != ".memscope")]
    equal(left, [], "temporary files left behind")


@fact
def duration_ends_the_run():
    target = Target("waits", 1, 1)
    begin = time.monotonic()
    run = Run("-p", target.pid, "-d", 1)
    run.ready()
    starved = before = run.starved_ns()
    while run.alive():
        starved = run.starved_ns() or starved
        time.sleep(0.01)
    run.finish()
    run.must()
    took = time.monotonic() - begin
    check(took >= 1, f"it ended after {took:.2f} s")
    # The time it takes to attach and to write is its own; the run itself is 1 s, and what memscope is
    # kept from the CPU.
    within(run.profile("oncpu").duration_ns, 0.99e9, 1.1e9 + starved - before, "duration_ns of the profile")


@fact
def first_interrupt_finishes_and_writes():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        target = Target("cpu_split", 200)
        run = Run("-p", target.pid, "-F", 999)
        run.ready()
        target.ask("go")
        equal(run.stop(number), 0, f"exit status after {number.name}")
        check(run.profile("oncpu").sum("samples/count", "hot_70") > 0, f"{number.name}: no samples")
        check(os.path.exists(run.path("summary.txt")), f"{number.name}: no summary.txt")
        whole_files(run)


def interrupted(number=signal.SIGINT):
    target = Target("cpu_split", 300)
    run = Run("-p", target.pid, "-F", 999)
    run.ready()
    target.ask("go")
    run.send(number)
    return target, run


@fact
def signal_that_comes_twice_at_once_is_one():
    # A shell and the terminal both say SIGHUP; sudo and timeout pass on what the target got too.
    for number in (signal.SIGINT, signal.SIGHUP):
        for delay in (0, 0.005, 0.02):
            for _ in range(5):
                target, run = interrupted(number)
                starved = run.starved_ns()
                time.sleep(delay)
                if run.alive():
                    run.send(number)
                run.finish()
                # Half a second makes it another press: a machine that holds it up for so long has made it one.
                if run.status == 0 or run.starved_ns() - starved < 0.4e9:
                    break
            run.must()
            equal(run.profile("oncpu").sum("samples/count", "hot_70") > 0, True,
                  f"{number.name} twice, {delay} s apart: samples with names")
            check(os.path.exists(run.path("oncpu.svg")), "no oncpu.svg")
            whole_files(run)


def is_writing(run):
    """The signals that end a run are let through when it has ended and is written down."""
    with open(f"/proc/{run.pid}/status", encoding="utf-8") as f:
        blocked = next(int(line.split()[1], 16) for line in f if line.startswith("SigBlk:"))
    return not blocked >> (signal.SIGINT - 1) & 1


@fact
def second_interrupt_writes_what_there_is_and_leaves():
    target, run = interrupted()
    deadline = time.monotonic() + 10
    while run.alive() and not is_writing(run):  # for a few tens of ms: no sleep here
        if time.monotonic() > deadline:
            raise Broken("the run did not end at a signal")
    run.send(signal.SIGSTOP)
    time.sleep(0.6)  # half a second makes it another press
    run.send(signal.SIGINT)
    run.send(signal.SIGCONT)
    took = run.ended_in()
    run.finish()
    # A fifth of a second, most of it grace periods of the kernel; of those each takes ten times as long among 15
    # programs that spin on two CPUs, and a program as many times more where half of that is stolen.
    check(took < 4, f"it did not leave at once, but after {took:.2f} s")
    if run.status == 0:
        skip("the files were written before the second signal")
    equal(run.status, 3, "exit status")
    check("once more leaves at once" in run.stderr, f"stderr: {run.stderr[-300:]}")
    check(run.profile("oncpu").sum("samples/count", pid=target.pid) > 0, "no samples")
    check(run.folded("oncpu") and os.path.exists(run.path("summary.txt")), "files are missing")
    check(any("second signal" in x for x in run.summary()["notes"]), "the summary does not say so")
    whole_files(run)
    check(target.alive(), "the target died")


@fact
def interrupt_before_anything_is_attached_is_no_crash():
    target = Target("cpu_split", 100)
    for delay in (0.0, 0.02, 0.05, 0.1):
        run = Run("-p", target.pid)
        time.sleep(delay)
        run.send(signal.SIGINT)
        run.finish()
        # Before its handler is in place the signal itself ends it: that is no crash either.
        check(run.status in (0, 1, 3, -signal.SIGINT), f"exit status {run.status} after {delay} s")
    check(target.alive(), "the target died")


@fact
def terminated_run_leaves_the_targets_text_as_it_was():
    target = Target("alloc_truth", 1, 500)
    run = Run("-p", target.pid, "--alloc=exact")
    run.ready()
    check(text_differences(target.pid), "no probe is in the target's text during the run")
    target.ask("run")
    run.stop(signal.SIGTERM)
    text_is_as_its_files(target.pid)


@fact
def memscope_killed_by_9_leaves_no_probe_and_a_healthy_target():
    need("bpftool")
    target = Target("alloc_truth", 2, 2000)
    run = Run("-p", target.pid, "--alloc=exact")
    run.ready()
    ours = bpf_ids_of(run.pid)
    check(any(kind == "prog" for kind, _ in ours), "no BPF program of memscope was found")
    check(text_differences(target.pid), "no probe is in the target's text during the run")
    target.say("run")
    time.sleep(0.01)
    run.send(signal.SIGKILL)
    run.finish()
    target.answer()  # it finishes its work
    deadline = time.monotonic() + 30  # the kernel frees programs after a grace period
    while bpf_ids_now() & ours and time.monotonic() < deadline:
        time.sleep(0.1)
    equal(bpf_ids_now() & ours, set(), "BPF programs and links left in the kernel")
    text_is_as_its_files(target.pid)
    target.ask("run")
    check(target.alive(), "the target died")


@fact
def target_killed_by_9_ends_the_run_with_whole_files():
    target = Target("cpu_split", 60000)
    run = Run("-p", target.pid, "-F", 999, "--alloc=exact")
    run.ready()
    target.say("go")
    has_worked(target.pid, 0.2)
    target.process.kill()
    run.finish()
    run.must()
    whole_files(run)
    check(run.profile("oncpu").sum("samples/count", "hot_70", pid=target.pid) > 0, "no samples")


main()
