"""What else happens to a target while memscope is at it: another memscope, a debugger, strace, a library that is replaced on disk."""

import os
import re
import shutil
import signal
import subprocess
import time

from events import calls_of
from harness import *
from truth import *

# Calls of a function of a library, which is not looked up again once it is loaded.
CALLER = """
import ctypes, sys
work = ctypes.CDLL(sys.argv[1]).library_work
work.argtypes = [ctypes.c_uint64]
print("ready", flush=True)
for line in sys.stdin:
    calls, length = map(int, line.split())
    for _ in range(calls):
        work(length)
    print("done", flush=True)
"""


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def tracer_of(pid):
    return int(status_of(pid)["TracerPid"])


def exact(pid):
    run = Run("-p", pid, *EXACT)
    run.ready()
    return run


# --- two memscopes ----------------------------------------------------------------------------------


@fact
def two_memscopes_count_every_call_and_one_ends_without_the_other():
    """The target's counts go on from work to work. One run sees the first work, one both, and the third, which comes when the first
    has ended, the second alone."""
    target = Target("alloc_truth", 2, 2000)
    first, both = exact(target.pid), exact(target.pid)
    one = target.ask("run")
    first.stop()
    first.must()
    check_truth(first, one, target.pid)
    last = exact(target.pid)
    two = target.ask("run")
    last.stop()
    last.must()
    both.stop()
    both.must()
    begun, ended = sites_of(one)[1], sites_of(two)[1]
    equal([both.profile("alloc").sum(t, pid=target.pid) for t in ALLOC], ended[:2], "of the one that saw both: calls and bytes")
    equal([last.profile("alloc").sum(t, pid=target.pid) for t in ALLOC], [b - a for a, b in zip(begun[:2], ended[:2])],
          "of the one that saw the second: calls and bytes")
    for run in (first, both, last):
        equal(run.lost(), {}, "what was lost")
    text_is_as_its_files(target.pid)
    check(target.alive(), "the target has ended")


@fact
def a_memscope_that_is_killed_does_not_disturb_another_one():
    target = Target("alloc_truth", 2, 2000)
    killed, goes_on = exact(target.pid), exact(target.pid)
    target.say("run")
    time.sleep(0.01)
    killed.process.kill()
    killed.finish()
    lines = target.answer()
    check(text_differences(target.pid), "the probes of the other one have gone")
    goes_on.stop()
    goes_on.must()
    check_truth(goes_on, lines, target.pid)
    equal(goes_on.lost(), {}, "what was lost")
    text_is_as_its_files(target.pid)


@fact
def two_memscopes_of_the_same_process_see_the_same_of_its_cpu_time():
    target = Target("cpu_split", 1000)
    runs = [Run("-p", target.pid, "--only", "oncpu,offcpu", "-F", hz) for hz in (499, 997)]
    for run in runs:
        run.ready()
    target.ask("go")
    for run in runs:
        run.stop()
        run.must()
        p = run.profile("oncpu")
        n = p.sum("samples/count", pid=target.pid)
        share_of(p.sum("samples/count", "hot_70", pid=target.pid) / max(n, 1), 0.7, n, "share of hot_70")


@fact
def the_second_memscope_that_injects_is_refused_and_the_first_goes_on():
    if os.uname().machine != "x86_64":
        skip("a library can be injected on x86-64 only")
    target = Target("alloc_truth", 2, 4000)
    args = ("-p", target.pid, "--inject", "--alloc=exact", "--only", "alloc", "--max-overhead", "100000")
    first = Run(*args)
    first.ready()
    second = Run(*args, "-d", "1")
    second.finish()
    check(second.status in (1, 3), f"exit status of the second: {second.status} ({second.stderr[-300:]})")
    check(re.search(r"already|another|other", second.stderr), f"it is not said why: {second.stderr[-300:]}")
    lines = target.ask("run")
    first.stop()
    first.must()
    check_truth(first, lines, target.pid)
    check(target.alive(), "the target has ended")


# --- a library that is replaced ---------------------------------------------------------------------


class Caller(Child):
    def __init__(self, path):
        super().__init__(["/usr/bin/python3", "-c", CALLER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        equal(self.process.stdout.readline(), "ready\n", "what it says first")

    def calls(self, n, length=1000):
        self.process.stdin.write(f"{n} {length}\n")
        self.process.stdin.flush()
        equal(self.process.stdout.readline(), "done\n", f"what it says after {n} calls")


def renamed_over(path):
    """As packages are installed: another file, which has the name from now on."""
    shutil.copy(os.path.join(TARGETS, "lib_second.so"), path + ".new")
    os.rename(path + ".new", path)


def written_in_place(path):
    """As rsync --inplace does: the same bytes into the same file, which processes have mapped."""
    with open(path, "r+b", buffering=0) as f:
        content = f.read()
        f.seek(0)
        f.write(content)
        os.fsync(f.fileno())


@fact
def a_library_that_is_replaced_while_it_is_probed_is_counted_and_named_as_what_runs():
    need("python3")
    for replace in (renamed_over, written_in_place):
        what = replace.__name__.replace("_", " ")
        path = scratch("lib") + ".so"
        shutil.copy(os.path.join(TARGETS, "lib_first.so"), path)
        child = Caller(path)
        run = Run("-p", child.pid, "--count", f"{path}:library_work", "--only", "oncpu", "-F", 499)
        run.ready()
        child.calls(300)
        replace(path)
        child.calls(400)
        child.calls(50, 10000000)
        check(child.alive(), f"{what}: the target has ended")
        run.stop()
        check(run.status in (0, 3), f"{what}: exit status {run.status}: {run.stderr[-300:]}")
        row = calls_of(run)["library_work"]
        equal([row["calls"], row["lost"]], [750, 0], f"{what}: calls, and lost ones")
        names = {f.name for s in run.profile("oncpu").samples for f in s.frames}
        check("work_of_first" in names, f"{what}: the function that runs is not named: {sorted(map(str, names))[:20]}")
        check("work_of_second" not in names, f"{what}: it is named as the file that is there now")
        text_is_as_its_files(child.pid)
        child.calls(10)
        check(child.alive(), f"{what}: the target has ended after the run")


@fact
def allocations_of_a_library_that_is_replaced_are_counted_to_the_last():
    """libc itself, by its own copy: probes are in the file that is mapped, whatever its name stands for now."""
    libc = next((os.path.realpath(line.split()[-1]) for line in open("/proc/self/maps", encoding="utf-8") if "/libc.so.6" in line), None)
    loader = next((os.path.realpath(line.split()[-1]) for line in open("/proc/self/maps", encoding="utf-8") if "/ld-linux" in line), None)
    if not libc or not loader:
        skip("there is no glibc here")
    where = scratch("libs")
    os.mkdir(where)
    path = os.path.join(where, "libc.so.6")
    shutil.copy(libc, path)
    program = os.path.join(TARGETS, "alloc_truth")
    child = Child([loader, "--library-path", where, program, "2", "2000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(child.process.stdout.readline().split()[:1], [b"ready"], "what it says first")
    with open(f"/proc/{child.pid}/maps", encoding="utf-8") as f:
        check(path in f.read(), f"{path} is not mapped")
    run = exact(child.pid)
    shutil.copy(libc, path + ".new")
    os.rename(path + ".new", path)
    child.process.stdin.write(b"run\n")
    child.process.stdin.flush()
    lines = []
    while not lines or lines[-1] != ["end"]:
        line = child.process.stdout.readline()
        if not line:
            raise Broken("the target has ended")
        lines.append([int(w) if w.isdigit() else w for w in line.decode().split()])
    run.stop()
    run.must()
    check_truth(run, lines[:-1], child.pid)
    text_is_as_its_files(child.pid)


# --- a debugger, and strace -------------------------------------------------------------------------


def under_gdb(pid, *commands):
    """gdb that lets the process go on."""
    need("gdb")
    said = scratch("gdb")
    with open(said, "wb") as f:
        gdb = Child(["gdb", "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", "-p", str(pid),
                     *(word for command in commands for word in ("-ex", command))],
                    stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.STDOUT)
    gdb.said = lambda: open(said, encoding="utf-8", errors="replace").read()
    until(lambda: not gdb.alive() or tracer_of(pid) == gdb.pid, "gdb has the process")
    if not gdb.alive():
        skip(f"gdb cannot have a process here: {gdb.said()[-200:]}")
    return gdb


def goes_on(pid, gdb):
    """All its threads run or wait, and have for a while: gdb stops a process several times before it lets it go on."""
    since = time.monotonic()

    def runs():
        nonlocal since
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8") as f:
                if f.read().rpartition(")")[2].split()[0] in "tT":
                    since = time.monotonic()
        return time.monotonic() - since > 1
    until(runs, f"gdb lets it go on ({gdb.said()[-200:]})")


@fact
def a_target_under_gdb_is_counted_to_the_last_call_and_gdb_sees_nothing():
    target = Target("alloc_truth", 2, 2000)
    gdb = under_gdb(target.pid, "continue")
    goes_on(target.pid, gdb)
    before = text_differences(target.pid)  # gdb has breakpoints of its own
    run = exact(target.pid)
    equal(tracer_of(target.pid), gdb.pid, "who traces it")
    lines = target.ask("run")
    run.stop()
    run.must()
    check_truth(run, lines, target.pid)
    equal(run.lost(), {}, "what was lost")
    until(lambda: text_differences(target.pid) == before, "only gdb's breakpoints are in its text")
    equal(tracer_of(target.pid), gdb.pid, "who traces it afterwards")
    check("SIG" not in gdb.said(), f"gdb says {gdb.said()[-300:]}")
    gdb.end()
    target.ask("run")
    check(target.alive(), "the target has ended")


@fact
def a_target_that_gdb_holds_is_no_reason_to_hang():
    target = Target("cpu_split", 600000)
    target.say("go")
    # gdb waits for somebody to write into this, and has the process stopped meanwhile.
    gate = scratch("gate")
    os.mkfifo(gate)
    gdb = under_gdb(target.pid, f"shell cat '{gate}'")
    until(lambda: status_of(target.pid)["State"][0] == "t", "gdb holds the process")
    run = Run("-p", target.pid, "-d", 1, "-F", 499)
    run.finish()
    check(run.status in (0, 3), f"exit status {run.status}: {run.stderr[-300:]}")
    equal((tracer_of(target.pid), status_of(target.pid)["State"][0]), (gdb.pid, "t"), "who traces it, and how it stands, after the run")
    check(os.path.exists(run.path("summary.txt")), f"no summary: {run.stderr[-300:]}")
    if os.path.exists(run.path("oncpu.pb.gz")):
        equal(run.profile("oncpu").sum("samples/count", pid=target.pid), 0, "samples of a process that stands still")
    gdb.end()
    subprocess.run(["kill", "-CONT", str(target.pid)], check=False)
    has_worked(target.pid, 0.1)
    check(target.alive(), "the target has ended")


@fact
def what_needs_to_stop_a_target_is_refused_under_gdb_with_the_tracer_named():
    target = Target("alloc_truth", 1, 200)
    gdb = under_gdb(target.pid, "continue")
    goes_on(target.pid, gdb)
    asked = [("heap", "census", "-p", target.pid), ("heap", "snapshot", "-p", target.pid, "-o", scratch("snapshot"))]
    if os.uname().machine == "x86_64":
        asked.append(("-p", target.pid, "--inject", "--alloc=exact", "--only", "alloc", "-d", 1, "-o", scratch("out")))
    for args in asked:
        got = subprocess.run([MEMSCOPE, *map(str, args)], capture_output=True, text=True, timeout=FINISH_SEC, check=False)
        what = " ".join(map(str, args[:2]))
        equal(got.returncode, 1, f"exit status of {what} ({got.stderr[-300:]})")
        check(str(gdb.pid) in got.stderr and "trace" in got.stderr, f"{what} does not name the tracer: {got.stderr[-300:]}")
    equal(tracer_of(target.pid), gdb.pid, "who traces it")
    gdb.end()
    target.ask("run")
    check(target.alive(), "the target has ended")


@fact
def a_target_under_strace_is_counted_to_the_last_call_and_strace_goes_on():
    need("strace")
    target, log, ours = Target("alloc_truth", 2, 2000), scratch("strace"), scratch("trace")
    strace = Child(["strace", "-f", "-o", log, "-p", str(target.pid)], **QUIET)
    until(lambda: tracer_of(target.pid) == strace.pid or not strace.alive(), "strace has the process")
    if not strace.alive():
        skip("strace cannot have a process here")
    run = exact(target.pid)
    trace = Child([MEMSCOPE, "trace", "-p", str(target.pid), "-e", "write", "-o", ours], **QUIET)
    until(lambda: os.path.exists(ours), "the log is there")
    time.sleep(1)  # until it is attached: it says nothing of that
    target.ask("run")
    lines = target.ask("run")
    trace.process.send_signal(signal.SIGINT)
    equal(trace.process.wait(FINISH_SEC), 0, "exit status of trace")
    run.stop()
    run.must()
    equal([run.profile("alloc").sum(t, pid=target.pid) for t in ALLOC], sites_of(lines)[1][:2], "calls and bytes of both works")
    equal(run.lost(), {}, "what was lost")
    text_is_as_its_files(target.pid)
    equal(tracer_of(target.pid), strace.pid, "who traces it")
    check(strace.alive(), "strace has ended")
    strace.process.send_signal(signal.SIGINT)
    strace.process.wait(FINISH_SEC)
    theirs = [text.count("write(1") for text in (open(log, encoding="utf-8", errors="replace").read(),
                                                 open(ours, encoding="utf-8", errors="replace").read())]
    check(theirs[0] > 0, f"strace saw no write: {theirs}")
    equal(theirs[1], theirs[0], "writes of the target, by memscope and by strace")
    check("SIGTRAP" not in open(log, encoding="utf-8", errors="replace").read(), "strace saw a trap")
    target.ask("run")
    check(target.alive(), "the target has ended")


main()
