"""Where the injected library can go: containers that do not see it, under seccomp filters, into threads that
never make a system call, into commands from their first instruction; and where not, with the reason."""

import os
import re
import signal
import subprocess
import sys
import time

from containers import *
from harness import *
from injecting import *
from truth import *

INPROCESS = ("--alloc=exact", "--inject", "--only", "alloc")
KILLS = int(os.environ.get("MEMSCOPE_INJECT_KILLS", 6))
SYS_MEMFD_CREATE, SYS_PTRACE = "319", "101"

if os.uname().machine != "x86_64":
    print("1..0 # SKIP a library can be injected on x86-64 only")
    sys.exit(0)


def copies(pid):
    """Mappings of code of libraries that came by a memfd: their inodes."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        return {line.split()[4] for line in f if "/memfd:libmemscope-alloc.so" in line and " r-xp " in line}


class Elsewhere(Target):
    """A target that does not see the library: its folder is empty in there."""

    def __init__(self, name, *args, how="mount -t tmpfs none \"$BUILD\""):
        need("unshare", "mount")
        path = os.path.join(scratch("programs"), name)
        os.mkdir(os.path.dirname(path))
        os.chmod(os.path.dirname(path), 0o755)
        shutil.copy(os.path.join(TARGETS, name), path)
        Child.__init__(self, ["unshare", "-m", "sh", "-c", how + " && exec \"$0\" \"$@\"", path, *map(str, args)],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "BUILD": BUILD})
        try:
            self._line("ready", READY_SEC)
        except Broken:
            skip("no mount namespace of its own can be made here")


# --- by a memfd -------------------------------------------------------------------------------------


@fact
def a_process_that_does_not_see_the_library_is_recorded_and_has_it_once():
    t = Elsewhere("alloc_truth", 2, 3000)
    run, lines = record(("-p", t.pid, *INPROCESS), lambda: t.ask("run"))
    check_truth(run, lines, t.pid)
    first = copies(t.pid)
    equal(len(first), 1, "copies of the library")
    run, again = record(("-p", t.pid, *INPROCESS), lambda: t.ask("run"))
    grown = [b - a for a, b in zip(sites_of(lines)[1], sites_of(again)[1])]
    equal([run.profile("alloc").sum(of, pid=t.pid) for of in ALLOC], grown[:2], "calls and bytes of the second run")
    equal(copies(t.pid), first, "the library that came first")
    equal(os.listdir(f"/proc/{t.pid}/fd"), ["0", "1", "2"], "descriptors of the program")


@fact
def a_process_that_does_not_see_the_library_is_sampled():
    t = Elsewhere("alloc_truth", 4, 8000)
    run, lines = record(("-p", t.pid, "--inject", "--alloc-rate", "16K", "--only", "alloc", "--max-overhead", "100000"),
                        lambda: t.ask("run"))
    check_estimates(run, lines, t.pid)
    names = {f.name for s in run.profile("alloc").samples for f in s.frames}
    check("main" in names, f"no whole stack: {sorted(map(str, names))[:10]}")


@fact
def a_library_that_the_process_may_not_execute_comes_by_a_memfd():
    t = Elsewhere("alloc_truth", 1, 1000, how='cp "$BUILD"/libmemscope-alloc.so "$0".so && '
                  'mount -t tmpfs -o noexec none "$BUILD" && cp "$0".so "$BUILD"/libmemscope-alloc.so')
    run, lines = record(("-p", t.pid, *INPROCESS), lambda: t.ask("run"))
    check_truth(run, lines, t.pid)
    equal(len(copies(t.pid)), 1, "copies of the library")


@fact
def a_library_that_the_process_may_not_read_comes_by_a_memfd():
    private = scratch("private")
    os.mkdir(private, 0o700)
    library = os.path.join(private, "libmemscope-alloc.so")
    shutil.copy(LIBRARY, library)
    t = Child([shutil.which("sleep"), "1000"], user=65534)
    until(lambda: open(f"/proc/{t.pid}/comm", encoding="ascii").read() == "sleep\n", "it runs")
    got = subprocess.run([INJECT, str(t.pid), library, "3", "exact"], capture_output=True, text=True, timeout=60, check=False)
    equal(got.returncode, 0, f"cycles: {got.stderr}")
    equal(len(copies(t.pid)), 1, "copies of the library")


@fact
def a_process_without_proc_is_refused():
    root = root_of(os.path.join(TARGETS, "alloc_truth"))
    t = Child(["chroot", root, "/alloc_truth", "1", "10"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.process.stdout.readline()
    status, _, why = cycles(t.pid, 1)
    check(status == 1 and "has no /proc in its file system" in why, f"{status}: {why}")
    check(t.alive(), "it has ended")


@fact
def memscopes_that_are_killed_while_the_library_comes_leave_a_program_that_works():
    t = Elsewhere("inject_busy", "work", "work", "read", "poll")
    time.sleep(0.2)
    before = len(os.listdir(f"/proc/{t.pid}/task"))
    for i in range(KILLS):
        m = Child([INJECT, str(t.pid), LIBRARY, "1000", "exact" if i % 2 else "65536"], stdout=subprocess.DEVNULL,
                  stderr=subprocess.DEVNULL)
        time.sleep(0.005 + 0.05 * i / KILLS)
        m.process.send_signal(signal.SIGKILL)
        m.end()
        if not check(t.alive(), "the program has ended"):
            return
    # One that waits for its library gives up after 10 s.
    until(lambda: len(os.listdir(f"/proc/{t.pid}/task")) <= before, "no thread of the library")
    status, _, why = cycles(t.pid, 2)
    equal(status, 0, f"afterwards it can be injected again: {why}")
    report = {line[0]: line[1:] for line in t.ask("report")}
    equal(report["errors"], [0], "what the program found wrong")


# --- seccomp ----------------------------------------------------------------------------------------


def calls():
    return subprocess.run([INJECT, "calls"], capture_output=True, text=True, check=True).stdout.split()


def filtered(target, *args):
    t = target("filtered", *args)
    with open(f"/proc/{t.pid}/status", encoding="ascii") as f:
        if "Seccomp:\t2\n" not in f.read():
            skip("seccomp filters are not available here")
    return t


@fact
def what_is_asked_about_is_all_that_is_called():
    # Any other call ends the process.
    for target in (Target, Elsewhere):
        for how in ("exact", "65536"):
            t = filtered(target, "only", *calls())
            status, _, why = cycles(t.pid, 2, how)
            if "may not read it" in why or "does not say" in why:
                skip(why)
            equal(status, 0, f"cycles, {how}: {why}")
            t.ask("run")
            check(t.alive(), "the process has ended")
            t.end()


@fact
def a_filter_that_allows_it_is_no_obstacle():
    t = filtered(Elsewhere, "errno", SYS_PTRACE)
    run = Run("-p", t.pid, *INPROCESS)
    run.ready()
    t.ask("run")
    run.had_time(0.3)  # it looks again for filters that are new
    run.stop()
    run.must()
    a = run.summary()["alloc"]
    equal([a["objects"], a["bytes"], a["freed_objects"]], [1000, 96000, 500], "calls, bytes, frees")


@fact
def a_filter_that_denies_a_call_is_never_met():
    for action, words in (("errno", "would fail with EPERM"), ("kill", "would end the process"),
                          ("trap", "would raise SIGSYS"), ("trace", "handed to a tracer"),
                          ("notify", "another process would be asked")):
        t = filtered(Elsewhere, action, SYS_MEMFD_CREATE)
        status, _, why = cycles(t.pid, 1)
        check(status == 1 and "does not allow memfd_create" in why and words in why, f"{action}: {status} {why}")
        equal(copies(t.pid), set(), f"{action}: what was put into it")
        t.ask("run")
        check(t.alive(), f"{action}: the process has ended")
        t.end()


@fact
def a_call_that_ends_the_process_is_never_made():
    for number in sorted(set(calls()) - {"0", "1", "9", "39", "157"}, key=int):  # what the target itself makes
        t = filtered(Elsewhere, "kill", number)
        status, _, why = cycles(t.pid, 1, "exact")
        check(status == 1 and "does not allow" in why and "would end the process" in why, f"{number}: {status} {why}")
        check(t.alive(), f"{number}: the process has ended")
        t.end()


@fact
def the_only_thread_of_a_filtered_program_sees_no_wait_ended():
    busy = os.path.join(TARGETS, "inject_busy")
    for wait in ("read", "recv", "poll", "ppoll", "epoll", "select", "nanosleep", "absolute"):
        t = Target("filtered", "errno", SYS_PTRACE, "--", busy, "main", wait)
        sees_no_wait_ended(t, wait, 3, 65536)


@fact
def a_filtered_program_goes_on_when_memscopes_are_killed():
    t = Target("filtered", "errno", SYS_PTRACE, "--", os.path.join(TARGETS, "inject_busy"), "work", "work", "read", "poll")
    time.sleep(0.2)
    for i in range(KILLS):
        m = Child([INJECT, str(t.pid), LIBRARY, "1000", "65536"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.005 + 0.05 * i / KILLS)
        m.process.send_signal(signal.SIGKILL)
        m.end()
        if not check(t.alive(), "the program has ended"):
            return
    until(lambda: not agents(t.pid), "no thread of the library")
    equal({line[0]: line[1:] for line in t.ask("report")}["errors"], [0], "what the program found wrong")


@fact
def strict_mode_is_refused_and_doctor_says_what_a_filter_denies():
    t = Target("filtered", "strict")
    until(lambda: "Seccomp:\t1\n" in open(f"/proc/{t.pid}/status", encoding="ascii").read(), "strict mode")
    status, _, why = cycles(t.pid, 1)
    check(status == 1 and "strict mode" in why, f"{status} {why}")
    check(t.alive(), "the process has ended")
    t = filtered(Elsewhere, "kill", SYS_MEMFD_CREATE)
    got = subprocess.run([MEMSCOPE, "doctor", "-p", str(t.pid)], capture_output=True, text=True, timeout=FINISH_SEC,
                         check=False).stdout
    check(re.search("--inject cannot be used: .* does not allow memfd_create", got), f"doctor: {got[-400:]}")


# --- threads that make no system call -----------------------------------------------------------------


@fact
def a_program_that_only_computes_is_recorded():
    t = Target("alloc_calls", 10, "spin")
    run = Run("-p", t.pid, *INPROCESS)
    run.ready()
    with open(f"/proc/{t.pid}/task/{t.pid}/syscall", encoding="ascii") as f:
        check(f.read().split()[0] in ("running", "-1"), "it is in a system call")
    # One allocation in some milliseconds.
    run.had_time(1)
    run.stop()
    run.must()
    a = run.summary()["alloc"]
    check(a["objects"] > 0 and a["objects"] - a["freed_objects"] in (0, 1), f"calls, frees: {a['objects']}, {a['freed_objects']}")
    whole = [s for s in run.profile("alloc").samples if [f.name for f in s.frames].count("spin")]
    equal(sum(s.values[0] for s in whole), a["objects"], "calls of spin()")
    status, _, why = cycles(t.pid, 5)
    equal(status, 0, f"cycles: {why}")
    check(t.alive(), "the program has ended")


@fact
def a_program_that_only_computes_survives_memscopes_that_are_killed():
    t = Target("alloc_calls", 10, "spin")
    for i in range(KILLS):
        m = Child([INJECT, str(t.pid), LIBRARY, "1000", "65536"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.2 + 0.05 * i / KILLS)  # it looks for a thread that waits for 0.2 s
        m.process.send_signal(signal.SIGKILL)
        m.end()
        if not check(t.alive(), "the program has ended"):
            return
    until(lambda: not agents(t.pid), "no thread of the library")
    status, _, why = cycles(t.pid, 2)
    equal(status, 0, f"afterwards it can be injected again: {why}")


# --- commands -----------------------------------------------------------------------------------------


CALLS = os.path.join(TARGETS, "alloc_calls")


@fact
def a_command_is_recorded_from_its_first_instruction_on():
    run = Run(*INPROCESS, "--", CALLS, 5000)
    run.finish()
    run.must()
    a = run.summary()["alloc"]
    equal([a["objects"], a["bytes"], a["freed_objects"]], [5010, 5000 * 96 + 10 * 48, 2505], "calls, bytes, frees")
    names = {f.name for s in run.profile("alloc").samples for f in s.frames}
    check({"begin", "main"} <= names, f"functions: {sorted(map(str, names))}")
    check(not any("not exact" in note for note in run.summary()["notes"]), f"notes: {run.summary()['notes']}")


@fact
def what_a_command_starts_is_counted_and_not_recorded():
    run = Run(*INPROCESS, "--", CALLS, 1000, "fork")
    run.finish()
    a = run.summary()["alloc"]
    equal([a["objects"], a["freed_objects"]], [1010, 505], "calls and frees of the command alone")
    check(any("1 forked children were not recorded" in note for note in run.summary()["notes"]),
          f"not said: {run.summary()['notes']}")


@fact
def a_command_that_cannot_be_recorded_is_refused_before_its_first_instruction():
    need("busybox")
    done = scratch("done")
    run = Run(*INPROCESS, "--", "busybox", "touch", done)
    run.finish()
    if "is a static program" not in run.stderr and os.path.exists(done):
        skip("busybox is not a static program here")
    equal(run.status, 1, "exit status")
    check("is a static program" in run.stderr, f"not said: {run.stderr}")
    check(not os.path.exists(done), "it ran")


@fact
def a_command_goes_on_when_memscope_is_killed():
    done = scratch("done")
    m = Run(*INPROCESS, "--", CALLS, 1000, "wait", done)
    m.ready()
    time.sleep(0.3)
    m.process.send_signal(signal.SIGKILL)
    m.end()
    check(until(lambda: os.path.exists(done), "the command's end"), "it did not come to its end")


main()
