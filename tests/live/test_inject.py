"""memscope's library put into running processes, and taken out of their way again: what is sampled is
true, and the process does not notice.

`inject` (tests/bench/inject.c) makes the cycles without a run of memscope around each; the figures
for thousands of them are `make bench-inject`.
"""

import ctypes
import mmap
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time

from harness import *
from injecting import *
from programs import late_sqlite, redis
from truth import *

INJECTED = ("--inject", "--alloc-rate", "16K", "--only", "alloc", "--max-overhead", "100000")
SYS_WRITE, SYS_POLL = 1, 7
WAITS = ("read", "recv", "poll", "ppoll", "epoll", "select", "cond", "sem", "nanosleep", "absolute")
BUSY = ("work", "work", "fork", "load", "signal", *WAITS)
# 300 cycles and 100 kills a turn in `make soak`.
CYCLES = int(os.environ.get("MEMSCOPE_INJECT_CYCLES", 25))
KILLS = int(os.environ.get("MEMSCOPE_INJECT_KILLS", 10))

if os.uname().machine != "x86_64":
    print("1..0 # SKIP a library can be injected on x86-64 only")
    sys.exit(0)


def mapped(pid):
    """Mappings of files: [(range, protection, path)]; the library is not among them."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        rows = [line.split(maxsplit=5) for line in f]
    return [(row[0], row[1], row[5].strip()) for row in rows
            if len(row) > 5 and row[5].startswith("/") and "libmemscope" not in row[5] and "lib_late" not in row[5]]


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def settled(pid, n):
    """Whether a process comes to have no more than `n` threads."""
    try:
        return until(lambda: threads(pid) <= n, "fewer threads")
    except Broken:
        return False


def anonymous_code(pid):
    """Mappings of no file that can be executed."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        return [line.split()[0] for line in f if " r-xp " in line and len(line.split()) == 5]


def call_of(pid, task):
    """The number of the system call that a thread is blocked in; None."""
    with open(f"/proc/{pid}/task/{task}/syscall", encoding="ascii") as f:
        word = f.read().split()[0]
    return int(word) if word.isdecimal() else None


def agent_pipes(pid):
    """How many descriptors the library's thread has, and what it waits in."""
    for task in os.listdir(f"/proc/{pid}/task"):
        where = f"/proc/{pid}/task/{task}"
        try:
            with open(f"{where}/comm", encoding="ascii", errors="replace") as f:
                if f.read() != "memscope-alloc\n":
                    continue
            return len(os.listdir(f"{where}/fd")), call_of(pid, task)
        except FileNotFoundError:
            pass
    return 0, None


def healthy(t, what):
    report = {line[0]: line[1:] for line in t.ask("report")}
    equal(report["errors"], [0], f"{what}: what the program found wrong")
    equal(report["signals"][1], report["signals"][0], f"{what}: signals taken, of those sent")
    return report


@fact
def estimates_of_an_injected_process_are_within_chance_of_the_truth():
    t = Target("alloc_truth", 4, 8000)
    before = threads(t.pid)
    run, lines = record(("-p", t.pid, *INJECTED), lambda: t.ask("run"))
    check_estimates(run, lines, t.pid)
    a = run.summary()["alloc"]
    equal(a["sampler"], "libmemscope-alloc (injected)", "sampler")
    near(a["rate"], RATE, RATE * 0.01, "rate")
    check(any(f"injected into process {t.pid}" in note for note in run.summary()["notes"]),
          f"no note of what was done: {run.summary()['notes']}")
    check(settled(t.pid, before), "the thread of the library has not ended")
    # It is there still, and a second run finds it.
    run, again = record(("-p", t.pid, *INJECTED), lambda: t.ask("run"))
    total = [b - a for a, b in zip(sites_of(lines)[1], sites_of(again)[1])]
    near(run.profile("alloc").sum(ALLOC[1], pid=t.pid), total[1], tolerance(total[1]), "bytes of a second run")
    check(t.alive(), "the target has ended")


@fact
def operators_of_cxx_are_sampled_once():
    t = Target("new_truth", 10000)
    run, lines = record(("-p", t.pid, *INJECTED), lambda: t.ask("run"))
    check_estimates(run, lines, t.pid)


@fact
def a_library_that_is_loaded_during_the_run_is_sampled_too():
    p, turn = late_sqlite()

    def work():
        turn(b"ready")
        run.had_time(1)  # some ticks, at each of which it looks at new mappings
        turn(b"loaded")
        equal(p.process.stdout.readline().strip(), b"done", "the program's progress")

    run = Run("-p", p.pid, *INJECTED)
    run.ready()
    work()
    run.stop()
    run.must()
    got = sum(s.values[1] for s in run.profile("alloc").samples
              if any("sqlite" in (f.module or "") for f in s.frames))
    check(got > 20e6, f"bytes allocated by libsqlite3, of 30 MB and more: {got}")


@fact
def a_busy_program_does_not_notice_many_cycles():
    t = Target("inject_busy", *BUSY)
    time.sleep(0.3)
    files, before = mapped(t.pid), threads(t.pid)
    status, said, why = cycles(t.pid, CYCLES, 65536)
    equal(status, 0, f"cycles: {why}")
    if status == 0:
        equal(said[0], CYCLES, "cycles")
        equal(said[2], said[1], "words put back, of those exchanged")
        equal(said[3], 0, "words that could not be exchanged")
    report = healthy(t, "cycles")
    check(report["work"][0] > 1000 and report["fork"][0] > 1, f"it did not work: {report}")
    check(settled(t.pid, before), "threads are left")
    missing = set(files) - set(mapped(t.pid))
    check(not missing, f"mappings that are not as they were: {sorted(missing)[:5]}")
    print(f"# {said}")


@fact
def a_program_that_forks_with_the_dynamic_linker_in_its_hands_goes_on():
    t = Target("inject_busy", "work", "fork-within")
    status, _, why = cycles(t.pid, 20, 65536)
    equal(status, 0, f"cycles: {why}")
    before = healthy(t, "cycles")["fork"][0]
    for _ in range(100):
        if healthy(t, "afterwards")["fork"][0] > before + 2:
            return
        time.sleep(0.1)
    check(False, "it forks no more")


@fact
def a_program_whose_threads_come_and_go_is_reached():
    t = Target("inject_busy", "work", "churn", "churn", "churn", "churn")
    status, said, why = cycles(t.pid, CYCLES, 65536)
    equal(status, 0, f"cycles: {why}")
    if status == 0:
        equal(said[2], said[1], "words put back, of those exchanged")
    healthy(t, "cycles")


@fact
def a_memscope_that_is_killed_at_any_moment_leaves_a_program_that_works():
    t = Target("inject_busy", *BUSY)
    time.sleep(0.3)
    before, random_ms = threads(t.pid), random.Random(4)
    for _ in range(KILLS):
        m = Child([INJECT, str(t.pid), LIBRARY, "1000", "65536"], stdout=subprocess.DEVNULL,
                  stderr=subprocess.DEVNULL)
        time.sleep(random_ms.uniform(0.001, 0.12))
        m.process.send_signal(signal.SIGKILL)
        m.end()
        if not check(t.alive(), "the program has ended"):
            return
    check(settled(t.pid, before), "the library does not end its thread when memscope is gone")
    healthy(t, "kills")
    equal(cycles(t.pid, 3)[0], 0, "afterwards it can be injected again")
    healthy(t, "a cycle after kills")


@fact
def the_only_thread_of_a_program_sees_no_wait_ended():
    for wait in (w for w in WAITS if w not in ("cond", "sem")):  # who would wake them?
        t = Target("inject_busy", "main", wait)
        sees_no_wait_ended(t, wait, 5, 65536)


@fact
def a_thread_under_seccomp_is_left_alone():
    t = Target("inject_busy", "main", "nanosleep", "filtered")
    t._line("alone", READY_SEC)
    with open(f"/proc/{t.pid}/status", encoding="ascii") as f:
        if "Seccomp:\t0\n" not in f.read():
            skip("everything is under a seccomp filter here")
    status, _, why = cycles(t.pid, 5, 65536)
    equal(status, 0, f"beside a thread with a filter: {why}")
    check(t.alive(), "the program has ended")


@fact
def a_write_that_is_under_way_is_not_cut_short():
    t = Target("inject_busy", "main", "nanosleep", "writing")
    for _ in range(1000):
        if any(call_of(t.pid, task) == SYS_WRITE for task in os.listdir(f"/proc/{t.pid}/task")):
            break
        time.sleep(0.01)
    status, _, why = cycles(t.pid, 5, 65536)
    equal(status, 0, f"beside a thread that writes: {why}")
    for _ in range(3):
        line = t._line("alone", READY_SEC)
    equal(line[1], "0", "errors")


@fact
def a_memscope_that_is_killed_leaves_no_memory_behind():
    t = Target("inject_busy", "work")
    before = anonymous_code(t.pid)
    m = Child([INJECT, str(t.pid), LIBRARY, "1", "65536", "20000000"], stdout=subprocess.DEVNULL)
    # It has taken its ends of the two pipes, so that the thread has closed them.
    for _ in range(1000):
        if agent_pipes(t.pid) == (2, SYS_POLL):
            break
        time.sleep(0.01)
    equal(len(anonymous_code(t.pid)), len(before) + 1, "mappings that code was put into")
    m.process.send_signal(signal.SIGKILL)
    m.end()
    check(settled(t.pid, 3), "the library does not end its thread when memscope is gone")
    equal(anonymous_code(t.pid), before, "mappings that code was put into, afterwards")
    healthy(t, "a kill")


@fact
def a_program_that_executes_itself_all_the_time_is_never_called_where_it_was():
    # Each time its C library is elsewhere.
    need("bash")
    code = 'read -t 0.003; exec bash -c "$0" "$0"'
    t = Child(["bash", "-c", code, code], stdin=subprocess.PIPE)
    for _ in range(40):
        why = cycles(t.pid, 1)[2]
        if not check("a call made in thread" not in why, f"called at an address of before: {why}"):
            return
    check(t.alive(), "the program has ended")


@fact
def redis_under_load_is_sampled_and_goes_on():
    server = redis()
    run, _ = record(("-p", server.pid, "--inject", "--alloc-rate", "64K", "--only", "alloc"),
                    lambda: has_worked(server.pid, 0.3, seconds=1))
    check(server.alive(), "redis has ended")
    a = run.summary()["alloc"]
    equal(a["sampler"], "libmemscope-alloc (injected)", "sampler")
    check(a["bytes"] > 1 << 20, f"bytes allocated by a redis under load: {a['bytes']}")
    equal(cycles(server.pid, 5)[0], 0, "cycles under load")
    check(server.alive(), "redis has ended")


def refused(pid, words, library=LIBRARY):
    status, _, said = cycles(pid, 1, library=library)
    check(status == 1 and words in said, f"not refused with \"{words}\": {status} {said}")


def asleep(child):
    """The child, when it is in nanosleep() or clock_nanosleep(): all that it does before is done."""
    def sleeps():
        with open(f"/proc/{child.pid}/syscall", encoding="ascii") as f:
            return f.read().split()[0] in ("35", "230")
    until(lambda: not child.alive() or sleeps(), f"{child.argv[0]} sleeps")
    return child


def sleeper(*prefix, **kw):
    return asleep(Child([*prefix, shutil.which("sleep"), "1000"], **kw))


@fact
def a_static_program_is_refused():
    refused(Target("alloc_truth_static", 1, 10).pid, "is a static program")


@fact
def another_c_library_is_refused():
    if not os.path.exists(os.path.join(TARGETS, "alloc_truth_musl_shared")):
        skip("musl-tools is not installed")
    refused(Target("alloc_truth_musl_shared", 1, 10).pid, "has another C library than glibc")


@fact
def a_process_that_has_ended_is_refused():
    child = Child(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    refused(child.pid, "has ended")


@fact
def a_process_with_more_capabilities_than_memscope_is_refused_as_that():
    need("setpriv")
    child = sleeper()
    got = subprocess.run(["setpriv", "--bounding-set=-sys_ptrace", MEMSCOPE, "-p", str(child.pid), "--inject", "-d",
                          "0.3", "-o", scratch("out")], capture_output=True, timeout=FINISH_SEC, check=False, text=True)
    check(got.returncode == 1 and "may not be looked into" in got.stderr, f"{got.returncode}: {got.stderr!r}")


@fact
def a_stopped_process_is_refused():
    child = sleeper()
    os.kill(child.pid, signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)
    refused(child.pid, "is stopped")
    os.kill(child.pid, signal.SIGCONT)


@fact
def a_traced_process_is_refused():
    libc, child = ctypes.CDLL(None, use_errno=True), sleeper()
    if libc.ptrace(0x4206, child.pid, 0, 0) != 0:  # PTRACE_SEIZE
        skip(f"ptrace is not permitted here: {os.strerror(ctypes.get_errno())}")
    refused(child.pid, f"is traced by process {os.getpid()}")


@fact
def a_program_with_other_privileges_is_refused():
    where = scratch("suid")
    os.mkdir(where)
    os.chmod(where, 0o755)
    path = os.path.join(where, "sleep")
    shutil.copy(shutil.which("sleep"), path)
    os.chmod(path, 0o4755)
    child = asleep(Child([path, "1000"], user=65534))
    with open(f"/proc/{child.pid}/auxv", "rb") as f:
        words = memoryview(f.read()).cast("Q").tolist()
    if dict(zip(words[::2], words[1::2])).get(23) != 1:
        skip("programs do not change their user here (nosuid)")
    refused(child.pid, "runs with other privileges")


@fact
def a_sanitized_program_is_refused():
    asan = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False)
    path = asan.stdout.strip()
    if not os.path.isabs(path):
        skip("libasan is not installed")
    refused(sleeper(env={**os.environ, "LD_PRELOAD": path, "ASAN_OPTIONS": "detect_leaks=0"}).pid,
            "runs under a sanitizer")


@fact
def a_thread_that_cannot_be_started_leaves_the_process_as_it_was():
    t = Target("inject_busy", "main", "read")
    t._line("alone", READY_SEC)
    before = mapped(t.pid)
    with open(f"/proc/{t.pid}/statm", encoding="ascii") as f:
        size = int(f.read().split()[0]) * mmap.PAGESIZE
    resource.prlimit(t.pid, resource.RLIMIT_AS, (size + (4 << 20), size + (4 << 20)))
    refused(t.pid, "could not start a thread")
    equal(mapped(t.pid), before, "mappings")
    equal(t._line("alone", READY_SEC)[1], "0", "errors")
    with open(f"/proc/{t.pid}/statm", encoding="ascii") as f:
        near(int(f.read().split()[0]) * mmap.PAGESIZE, size, 100 << 10, "bytes mapped")


@fact
def a_long_sleep_goes_on_to_its_time():
    begun = time.monotonic()
    t = asleep(Child([shutil.which("sleep"), "5"]))
    while time.monotonic() - begun < 2:
        equal(cycles(t.pid, 2)[0], 0, "cycles in a sleep")
    if time.monotonic() - begun > 4.5:
        skip("the machine is too busy: the cycles took all of the sleep's time")
    equal(t.process.wait(), 0, "exit status")
    # Begun anew, it would have slept for 5 s after the last cycle, which began no earlier than at 1.5 s.
    within(time.monotonic() - begun, 5, 6.5, "seconds that it slept")


@fact
def two_at_a_time_are_refused():
    t = Target("inject_busy", "work", "read")
    first = Child([INJECT, str(t.pid), LIBRARY, "1", "65536", "20000000"], stdout=subprocess.DEVNULL)
    until(lambda: threads(t.pid) > 4, "the first one's thread")
    refused(t.pid, "another memscope has its library")
    first.end()
    check(settled(t.pid, 4), "the first one's thread does not end with it")
    healthy(t, "after a refusal")


@fact
def a_library_that_cannot_be_loaded_leaves_the_process_as_it_was():
    path = os.path.join(scratch("broken"), "libbroken.so")
    os.mkdir(os.path.dirname(path))
    os.chmod(os.path.dirname(path), 0o755)
    with open(path, "wb") as f:
        f.write(b"no library" * 100)
    t = Target("inject_busy", *BUSY)
    time.sleep(0.3)
    before = threads(t.pid)
    refused(t.pid, "cannot load the library: " + path + ": invalid ELF header", library=path)
    check(settled(t.pid, before), "threads are left")
    healthy(t, "a library that is none")


@fact
def a_preloaded_process_is_only_listened_to():
    os.environ.update(LD_PRELOAD=LIBRARY, MEMSCOPE_ALLOC_RATE=str(RATE))
    try:
        t = Target("alloc_truth", 1, 8000)
    finally:
        del os.environ["LD_PRELOAD"], os.environ["MEMSCOPE_ALLOC_RATE"]
    run, lines = record(("-p", t.pid, *INJECTED), lambda: t.ask("run"))
    check_estimates(run, lines, t.pid)
    equal(run.summary()["alloc"]["sampler"], "libmemscope-alloc (preload)", "sampler")


@fact
def memscope_refuses_before_it_begins_and_says_why():
    t = Target("alloc_truth_static", 1, 10)
    run = Run("-p", t.pid, *INJECTED, "-d", "1")
    run.finish()
    equal(run.status, 1, "exit status")
    check("is a static program" in run.stderr, f"not said: {run.stderr}")
    for args, word in ((("--inject", "--", "true"), "--inject"), (("--inject", "-a"), "--inject"),
                       (("--inject", "--alloc=bursts", "-p", "1"), "--inject")):
        run = Run(*args)
        run.finish()
        equal(run.status, 2, f"exit status of {' '.join(args)}")
        check(word in run.stderr, f"not named: {run.stderr}")


@fact
def doctor_says_whether_a_process_can_be_injected():
    def doctor(t):
        return subprocess.run([MEMSCOPE, "doctor", "-p", str(t.pid)], capture_output=True, text=True, timeout=FINISH_SEC,
                              check=False).stdout
    check("--inject can put memscope's library into it" in doctor(Target("alloc_truth", 1, 10)), "it can")
    check(re.search("--inject cannot be used: .* is a static program", doctor(Target("alloc_truth_static", 1, 10))),
          "it cannot")


main()
