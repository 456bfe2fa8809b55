"""Who ends waits, against programs that know it."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from harness import *

MARK = "[woken by]"
COUNT, NS = "wakeups/count", "blocked/nanoseconds"
KINDS = ("pipe", "eventfd", "unix", "tcp", "sem", "cond", "futex", "signal", "mutex", "rwlock", "flock")


def parts(sample):
    """Function names of the wait, root first, and of who ended it, leaf first."""
    names = [f.name for f in reversed(sample.frames)]
    check(names.count(MARK) == 1, f"{names.count(MARK)} marks in {names}")
    at = names.index(MARK)
    return names[:at], names[at + 1:]


def ended(p, wait, wake=None, name=None, value=COUNT):
    """Of waits in function `wait`: those ended by `wake`, by who is called `name`."""
    i, total = p.types.index(value), 0
    for s in p.samples:
        of_wait, of_waker = parts(s)
        if wait in of_wait and (wake is None or wake in of_waker) and (name is None or of_waker[-1] == name):
            total += s.values[i]
    return total


def tally(target):
    return {x[1]: int(x[2]) for x in target.ask("tally") if x[0] == "kind"}


@once
def pairs():
    target = Target("wakers")
    target.ask("go")
    run = Run("-p", target.pid, "--only", "offcpu", "--offcpu=exact")
    run.ready()
    before = tally(target)
    until(lambda: all(n - before[k] >= 200 for k, n in tally(target).items()), "each kind was woken 200 times")
    after = tally(target)
    run.stop()
    run.must()
    target.end()
    return run, before, after


@fact
def each_wait_is_ended_by_the_function_that_ended_it():
    run, _, _ = pairs()
    p, offcpu = run.profile("wakers"), run.profile("offcpu")
    for kind in KINDS:
        wait, wake = f"wait_{kind}", f"wake_{kind}"
        n = ended(p, wait)
        # All that the off-CPU profile has, but for one that goes on at the end. On a busy machine some need not wait.
        within(n, 0.99 * offcpu.sum("blocked/count", wait) - 2, offcpu.sum("blocked/count", wait), f"waits in {wait}")
        check(n >= 50, f"{kind}: {n} waits")
        by = ended(p, wait, wake, f"wakes-{kind}")
        # The lock of a condition variable, too, is the other one's. Of one wait in a thousand the kernel may hide the waker.
        check(by >= 0.98 * n - 1, f"{kind}: {by} of {n} waits ended by {wake}: {[(parts(s)[1], s.values) for s in p.select(wait)][:3]}")


@fact
def timers_are_interrupts_and_nobodys_doing():
    p = pairs()[0].profile("wakers")
    n, by = ended(p, "nap"), ended(p, "nap", name="[interrupt]")
    check(by >= 0.98 * n > 0, f"{by} of {n} naps ended by an interrupt")
    for s in p.samples:
        of_waker = parts(s)[1]
        if of_waker[-1] == "[interrupt]":
            # Neither functions of whoever was interrupted nor a way from user space.
            check(not any(f.startswith(("wait_", "wake_", "main", "entry_SYSCALL")) for f in of_waker), f"{of_waker}")


@fact
def blocked_time_is_that_of_the_off_cpu_profile():
    run, _, _ = pairs()
    wakers, offcpu = run.profile("wakers"), run.profile("offcpu")
    for function in [f"wait_{k}" for k in KINDS] + ["nap"]:
        # Waits that go on when the run ends have no waker yet: one of a thread, of 3 ms and what a busy machine adds.
        threads = len(KINDS) if function == "nap" else 1
        ns, all_ns = ended(wakers, function, value=NS), offcpu.sum(NS, function)
        within(ns, 0.99 * all_ns - threads * 20e6, all_ns, f"ns blocked in {function}")
    left_out = run.lost("waits_left_out_of_wakers")
    equal(left_out, {}, "left out")


@fact
def a_wakers_labels_have_its_name_and_process():
    run, _, _ = pairs()
    p = run.profile("wakers")
    for s in p.samples:
        equal(s.labels.get("waker"), parts(s)[1][-1], "the label")
        if s.labels["waker"].startswith("wakes-"):
            equal(s.labels.get("waker_pid"), s.labels["pid"], "its process")


@fact
def a_waker_of_another_process_is_named_and_has_its_kernel_stack():
    # A pipe from a shell's other command: only the reader is profiled.
    code = "import os, sys\nwhile os.read(0, 1): pass"
    writer = "import os, time\nwhile 1:\n  os.write(1, b'x')\n  time.sleep(0.005)"
    r, w = os.pipe()
    feeding = Child([sys.executable, "-c", writer], stdout=w)
    reader = Child([sys.executable, "-c", code], stdin=r)
    os.close(r)
    os.close(w)
    run = Run("-p", reader.pid, "-d", 1.5, "--only", "offcpu")
    run.must()
    for child in (feeding, reader):
        child.process.kill()
        child.end()
    p, n = run.profile("wakers"), 0
    for s in p.samples:
        of_wait, of_waker = parts(s)
        if s.labels.get("waker_pid") == feeding.pid:
            n += s.values[0]
            check("try_to_wake_up" in of_waker and any("pipe_write" in f for f in of_waker), f"{of_waker}")
            equal(of_waker[-1], "python3", "its name")
    check(n >= 100, f"{n} wake-ups by the writer: {[(parts(s)[1], s.values) for s in p.samples]}")


@fact
def sampled_waits_have_wakers_in_the_same_proportion():
    if kernel() < (5, 15):
        skip("tracing programs of this kernel cannot read a task's user registers (5.15)")
    target = Target("pingpong", online_cpus()[-1])
    run = Run("-p", target.pid, "--only", "offcpu", "--offcpu=sampled")
    run.ready()
    target.ask("go 20000")
    target.ask("go 100000")
    run.stop()
    run.must()
    target.end()
    wakers, offcpu = run.profile("wakers"), run.profile("offcpu")
    stacks = run.summary()["offcpu"]["stacks_sampled"]
    check(run.summary()["offcpu"]["sampled"] and stacks < 120000, f"{stacks} stacks of 240,000 waits")
    n, by = ended(wakers, "wait_for_byte"), ended(wakers, "wait_for_byte", "send_byte")
    check(by >= 0.98 * n > 0, f"{by} of {n} waits ended by send_byte")
    # An estimate from independent samples of weight n / samples: its standard deviation is below weight * sqrt(samples), and a
    # site's first samples are certain. Weights double and halve meanwhile: the largest is at most four times the mean.
    most = 5 * 4 * n / stacks ** 0.5
    near(n, offcpu.sum("blocked/count", "wait_for_byte"), most, "waits estimated by those with a waker")


def waits_by_perf(path):
    """(waits that another thread of the process ended, their time until the waker sets out to wake, until it has done that) by the
    tracepoints of the scheduler. bcc's offwaketime, which counts the same, wants kprobes that not every kernel has."""
    text = subprocess.run(["perf", "script", "-i", path, "-F", "tid,time,event,trace"], capture_output=True, text=True, check=True).stdout
    left, waking, n, begun_ns, done_ns = {}, {}, 0, 0, 0
    for line in text.splitlines():
        tid, at = re.match(r" *(\d+) +(\d+\.\d+):", line).groups()
        out, woken = re.search(r"prev_state=S", line), re.search(r"sched_waking:.* pid=(\d+)", line)
        done = re.search(r"sched_wakeup:.* pid=(\d+)", line)
        if out:
            left[tid] = float(at)
        elif woken and woken[1] in left and woken[1] != tid:
            waking[woken[1]] = left.pop(woken[1])
            begun_ns += (float(at) - waking[woken[1]]) * 1e9
            n += 1
        elif done and done[1] in waking:
            done_ns += (float(at) - waking.pop(done[1])) * 1e9
    return n, begun_ns, done_ns


@fact
def waits_and_their_times_are_those_of_the_schedulers_tracepoints():
    need("perf")
    target = Target("pingpong", online_cpus()[-1])
    path = scratch("sched") + ".data"
    perf = Child(["perf", "record", "-q", "-m", "2048", "-e", "sched:sched_switch", "-e", "sched:sched_waking", "-e", "sched:sched_wakeup", "-p", str(target.pid), "-o", path],
                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    run = Run("-p", target.pid, "--only", "offcpu", "--offcpu=exact")
    run.ready()
    until(lambda: os.path.exists(path), "perf has begun")
    target.ask("go 4000")
    run.stop()
    run.must()
    perf.process.send_signal(signal.SIGINT)
    perf.process.wait(30)
    target.end()
    if "ost" in perf.process.stderr.read():
        skip("perf has lost events")
    theirs, begun_ns, done_ns = waits_by_perf(path)
    ours = [s for s in run.profile("wakers").samples if s.labels.get("waker_pid") == target.pid]
    values = run.profile("wakers").types
    check(theirs > 4000, f"{theirs} waits seen by perf")
    # perf's window is longer by the commands before and behind: a few waits, and none in a pipe of the game.
    near(sum(s.values[values.index(COUNT)] for s in ours), theirs, 0.01 * theirs + 4, "waits that a thread of the program ended")
    # Ours end where the thread is queued, between the two of perf. Both begin at the switch, but who comes first there is not known: the
    # stacks that our program takes then may be between the two begins, up to 10 us on the slowest kernel that was seen.
    within(sum(s.values[values.index(NS)] for s in ours), 0.95 * begun_ns, 1.05 * done_ns + 10e3 * theirs,
           "ns blocked until then")


@fact
def without_wakers_there_is_no_such_profile():
    target = Target("wakers")
    target.ask("go")
    run = Run("-p", target.pid, "-d", 0.5, "--only", "offcpu", "--no-wakers")
    run.must()
    target.end()
    check(not os.path.exists(run.path("wakers.pb.gz")), "wakers.pb.gz was written")


main()
