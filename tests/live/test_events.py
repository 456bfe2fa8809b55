"""Events that were asked for (-e), against programs that know how many there were."""

import csv
import os
import re
import signal
import subprocess
import time

from events import *
from harness import *

PATTERN = "syscalls:sys_enter_get[dxpr]*"
CALLS = "syscalls:sys_enter_openat"


@fact
def page_faults_are_those_of_getrusage():
    """The counter of the process, read before and after; the pages that two functions touch, by stack."""
    run, answers = with_target("minor-faults,page-faults", "faults", "touch 700 a", "touch 300 b", "faults")
    before, after = (answers[i][0][1] for i in (0, 3))  # "minor N"
    # What comes between the opening of the gate and the first look, and behind the second, is of stdin and stdout.
    near(count_of(run, "minor-faults"), after - before, 4, "minor faults, against ru_minflt")
    equal(count_of(run, "minor-faults"), value(run, "minor-faults"), "every one has a stack")
    equal(value(run, "minor-faults", "touch_a"), 700, "pages of touch_a")
    equal(value(run, "page-faults", "touch_b"), 300, "pages of touch_b")
    equal(run.profile("page-faults").types, ["page_faults/count"], "value types")


@fact
def what_came_before_the_gate_opened_was_not_missed():
    """Another program faults all the time, also while memscope attaches and waits for its unwind tables."""
    storm = Child(["/bin/sh", "-c", "while :; do /bin/true; done"])
    run, _ = with_target("page-faults", "touch 500")
    storm.end()
    row = events_of(run)["page-faults", ""]
    # A program of this kind that runs within another one on a CPU is rare: of the storm's some 10,000 faults not one in 100.
    check(row["missed"] < 100, f"missed {row['missed']} events")


@fact
def tracepoints_count_every_event():
    run, _ = with_target(f"sched:sched_process_fork,{CALLS}", "fork 37", "call 500", "threads 3 100")
    equal(count_of(run, "sched:sched_process_fork"), 40, "37 children and 3 threads")
    equal(value(run, "sched_process_fork", "fork_n"), 37, "of them in fork_n")
    equal(value(run, "sys_enter_openat", "call_n"), 800, "calls in call_n, of 4 threads")
    equal(events_of(run)[CALLS, ""]["on_stacks_error"], 0, "nothing is an estimate")


@fact
def others_who_count_a_tracepoint_count_it_beside_us():
    """A program at a tracepoint that returns 0 takes the event from every perf event of it: perf stat then says 0 of 37, as it did."""
    need("perf")
    target, out = Target("events"), scratch("perf")
    run = Run("-p", target.pid, "-e", "sched:sched_process_fork", "--max-overhead", "1000")
    run.ready()
    perf = Child(["perf", "stat", "-x", ";", "-o", out, "-e", "sched:sched_process_fork,context-switches", "-p", str(target.pid)])
    # perf has opened its events when it has a descriptor for each.
    until(lambda: sum("perf_event" in os.readlink(f.path) for f in os.scandir(f"/proc/{perf.pid}/fd")) >= 2, "perf counts")
    time.sleep(0.5)
    target.ask("fork 37")
    perf.process.send_signal(signal.SIGINT)
    perf.process.wait(FINISH_SEC)
    run.stop()
    run.must()
    target.end()
    theirs = re.search(r"^(\d+);.*sched:sched_process_fork", open(out, encoding="ascii").read(), re.M)
    check(theirs, open(out, encoding="ascii").read())
    equal((count_of(run, "sched:sched_process_fork"), int(theirs[1])), (37, 37), "ours, and perf's of the same run")


@fact
def calls_of_a_command_are_counted_from_its_first():
    """A program of some milliseconds, whose library is mapped after the run began, against perf's own probe of that function."""
    need("perf")
    command, name = ["/bin/ls", "-I*", "/"], f"memscope_{os.getpid()}"  # prints nothing
    libc = next(line.split()[-1] for line in open("/proc/self/maps", encoding="ascii") if "/libc.so" in line or "/libc-" in line)
    if subprocess.run(["perf", "probe", "-q", "-x", libc, f"{name}=malloc"], capture_output=True, check=False).returncode:
        skip("perf makes no probe here")
    try:
        said = subprocess.run(["perf", "stat", "-x", ";", "-e", f"probe_libc:{name}", "--", *command], capture_output=True, text=True, check=False).stderr
    finally:
        subprocess.run(["perf", "probe", "-q", "-d", f"probe_libc:{name}"], capture_output=True, check=False)
    theirs = re.search(r"^(\d+);", said, re.M)
    check(theirs, f"perf stat said: {said}")
    for _ in range(5):
        run = Run("-e", "uprobe:c:malloc", "--", *command)
        run.must()
        equal(count_of(run, "uprobe:c:malloc"), int(theirs[1]), "calls of malloc, against perf stat")


@fact
def a_pattern_is_one_profile_with_the_event_as_leaf():
    """System calls by their own tracepoints, against strace -c."""
    command = ["/bin/sh", "-c", "exec /bin/ls -lR /etc/apt >/dev/null"]
    run = Run("-e", PATTERN, "--max-overhead", "1000", "--", *command)
    run.must()
    text = subprocess.run(["strace", "-f", "-c", *command], capture_output=True, text=True, check=False).stderr
    theirs = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 5 and words[0].replace(".", "").isdigit() and words[-1] != "total":
            theirs[words[-1]] = int(words[3])
    rows = events_of(run)
    for call in ("getdents64", "getxattr", "getpid", "get_robust_list"):
        ours = rows.get((PATTERN, f"syscalls:sys_enter_{call}"))
        equal(ours["count"] if ours else 0, theirs.get(call, 0), call)
    p = run.profile("sys_enter_get_dxpr")
    listed = sum(s.values[0] for s in p.samples if s.frames[0].name == "syscalls:sys_enter_getdents64")
    equal(listed, theirs["getdents64"], "by the leaf of stacks")


@fact
def one_in_a_period_is_an_estimate_with_its_interval():
    n = 20000
    run, _ = with_target(f"{CALLS}/period=50/", f"call {n}")
    row = events_of(run)[CALLS, ""]
    equal(row["count"], n, "all are counted")
    # n draws of 1 in 50, each standing for 50: 5 sigma.
    near(row["on_stacks"], n, 5 * (n * 49) ** 0.5, "the estimate")
    near(row["on_stacks_error"], 1.96 * (row["samples"] * 50 * 49) ** 0.5, 2, "its interval")
    equal(value(run, "sys_enter_openat"), row["on_stacks"], "the sum of the profile")


@fact
def a_storm_is_thinned_and_the_count_stays_exact():
    n = 400000
    # Half a million a second and more: without stacks they cost some 10 % of a CPU, with all of them more than one.
    run, _ = with_target(CALLS, f"call {n}", args=("--max-overhead", "40"))
    row = events_of(run)[CALLS, ""]
    equal(row["count"], n, "the count")
    check(row["samples"] < n and row["one_in"] > 1, f"stacks were thinned: {row}")
    check(row["on_stacks_error"] > 0, "and the profile is an estimate")
    near(row["on_stacks"], n, 3 * row["on_stacks_error"], "within its interval, 5.9 sigma")


@fact
def what_costs_too_much_is_given_up():
    run, _ = with_target(CALLS, "call 1000000", args=("--max-overhead", "0.01"), status=3)
    row = events_of(run)[CALLS, ""]
    check(row["stopped_s"] > 0 and any("given up" in n for n in run.summary()["notes"]), f"it says so: {row}")


@fact
def the_whole_host_is_gathered_with_containers_names():
    target = Target("events")
    run = Run("-a", "-e", "sched:sched_process_fork")
    run.ready()
    target.ask("fork 20")
    run.stop()
    run.must()
    equal(value(run, "sched_process_fork", "fork_n"), 20, "the target's")
    target.end()


@fact
def an_event_that_is_not_here_is_said_so():
    target = Target("events")
    for option, events, status, says in (("-e", "no-such-event", 2, "no event"), ("-e", "sched:no_such", 1, "no such tracepoint"),
                                         ("-e", "", 2, "one is empty"), ("--count", "", 2, "one is empty"),
                                         ("-e", "./prog:main", 2, "uprobe:./prog:main"), ("-e", "*:*", 1, "1024 at most")):
        r = subprocess.run([MEMSCOPE, "-p", str(target.pid), option, events, "-d", "0.5", "-o", scratch("none")],
                           capture_output=True, text=True, check=False)
        equal(r.returncode, status, events)
        check(says in r.stderr and r.stderr.count("\n") == 1, f"one sentence: {r.stderr}")
    run, _ = with_target("page-faults", "touch 10")
    equal(value(run, "page-faults", "touch_a"), 10, "and what is here is there")
    both = Run("-p", target.pid, "-e", "*:*,page-faults", "-d", "0.5")
    both.must(3)
    check(any("1024 at most" in n for n in both.summary()["notes"]), "what is too much leaves room for the others")
    equal(events_of(both)["page-faults", ""]["why"], "", "which are there")
    rows = list(csv.DictReader(open(os.path.join(run.out, "events.csv"), encoding="utf-8")))
    equal([(r["event"], r["profile"]) for r in rows], [("page-faults", "page-faults")], "events.csv")
    target.end()


@fact
def what_the_kernel_refuses_of_a_pattern_is_named_and_the_rest_is_gathered():
    """ftrace:function is not for programs; sched:sched_process_fork is."""
    pattern = "[fs][tc][rh][ae]*:*[cr][tk]*"
    run, _ = with_target(pattern, "fork 20", status=3)
    equal(events_of(run)[pattern, "sched:sched_process_fork"]["count"], 20, "children")
    check(any("ftrace:function" in n for n in run.summary()["notes"]), f"{run.summary()['notes']}")


@fact
def other_commands_find_the_profiles():
    run, _ = with_target("page-faults,sched:sched_process_fork", "touch 64 a", "fork 3")
    for argv in (["flame", run.out, "--source", "page-faults", "-o", os.path.join(run.out, "x.svg")],
                 ["report", run.out, "--source", "page-faults"], ["report", run.out, "-o", os.path.join(run.out, "x.html")]):
        r = subprocess.run([MEMSCOPE, *argv], capture_output=True, text=True, check=False)
        equal(r.returncode, 0, f"{argv}: {r.stderr}")
    check("touch_a" in open(os.path.join(run.out, "x.html"), encoding="utf-8").read(), "the page has it")

main()
