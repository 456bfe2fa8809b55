"""System calls, against strace."""

import csv
import json
import os
import re
import subprocess
import tempfile

from harness import *

# Each command, after its shell: what execs it makes itself is not compared.
COMMANDS = (["/bin/cat", "/etc/passwd", "/nonexistent"], ["/bin/gzip", "-c", "/etc/services"], ["/bin/ls", "-lR", "/etc/apt"])
# A command of ours begins with the calls that exec it; strace's with execve alone. exit_group never returns.
OF_START = {"execve", "rt_sigaction", "rt_sigprocmask", "exit_group"}


def by_strace(command):
    """{call: (calls, errors)} by strace -c."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strace", "-f", "-c", "-w", "-o", out.name, *command], capture_output=True, check=False)
        text = open(out.name, encoding="ascii").read()
    rows = {}
    for line in text.splitlines():
        m = re.match(r"\s*[0-9.]+\s+[0-9.]+\s+[0-9]+\s+([0-9]+)\s+([0-9]*)\s+([a-z0-9_]+)$", line)
        if m and m[3] != "total":
            rows[m[3]] = (int(m[1]), int(m[2] or 0))
    return rows


def by_perf_trace(command):
    """The same by perf trace -s, which adds up by thread; None: it says that it has lost some, or cannot."""
    with tempfile.NamedTemporaryFile() as out:
        p = subprocess.run(["perf", "trace", "-s", "-o", out.name, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        text = open(out.name, encoding="utf-8", errors="replace").read()
    if "LOST" in text or b"LOST" in p.stderr or "Summary of events" not in text:
        return None
    rows = {}
    for line in text.splitlines():
        m = re.match(r" +([a-z0-9_]+) +([0-9]+) +([0-9]+) +[0-9.]+ +[0-9.]+ ", line)
        if m:
            calls, errors = rows.get(m[1], (0, 0))
            rows[m[1]] = (calls + int(m[2]), errors + int(m[3]))
    return rows


def by_us(command, *args):
    run = Run("--only", "syscalls", *args, "--", *command)
    run.must()
    rows = {}
    for row in csv.DictReader(open(os.path.join(run.out, "syscalls.csv"), encoding="utf-8")):
        calls, errors = rows.get(row["call"], (0, 0))
        rows[row["call"]] = (calls + int(row["calls"]), errors + int(row["errors"]))
    return run, rows


def without(rows):
    return {k: v for k, v in rows.items() if k not in OF_START}


@fact
def counts_and_errors_are_those_of_perf_trace():
    need("perf")
    for command in COMMANDS:
        theirs = by_perf_trace(command) or by_perf_trace(command)
        if theirs is None:
            skip("perf trace -s adds nothing up here, or loses calls")
        _, ours = by_us(command)
        # As below; and of execve perf has the end alone.
        for own in ("read", "set_robust_list"):
            if own in ours and ours[own] == (theirs.get(own, (0, 0))[0] + 1, theirs.get(own, (0, 0))[1]):
                ours[own] = theirs.get(own, (0, 0))
        equal({k: v for k, v in without(ours).items() if v[0]}, without(theirs), f"calls and errors of {command[0]}")


@fact
def counts_and_errors_are_those_of_strace():
    for command in COMMANDS:
        theirs, (run, ours) = by_strace(command), by_us(command)
        # Between fork and exec our child waits until it is watched: a read, and the end of the fork, may be seen.
        for own in ("read", "set_robust_list"):
            if ours[own] == (theirs[own][0] + 1, theirs[own][1]):
                ours[own] = theirs[own]
        equal(without(ours), without(theirs), f"calls and errors of {command[0]}")
        s = json.load(open(os.path.join(run.out, "summary.json"), encoding="utf-8"))["syscalls"]
        check(s["calls"] >= sum(c for c, _ in ours.values()) >= s["calls"] - 2, "the sum of rows")
        equal(s["calls_error"], 0, "all were counted")


CALLS = """
import os, time, ctypes
for i in range(20): time.sleep(0.01)
r, w = os.pipe()
libc = ctypes.CDLL(None)
getppid = libc.getppid
for i in range(500): getppid()
for i in range(70):
    try: os.open("/nonexistent", 0)
    except FileNotFoundError: pass
"""


@fact
def times_and_stacks_are_right():
    run, ours = by_us(["/usr/bin/python3", "-c", CALLS])
    s = run.summary()["syscalls"]
    rows = {r["call"]: r for r in s["by_call"]}
    equal(ours["getppid"], (500, 0), "getppid")
    sleeps = rows.get("clock_nanosleep") or rows["select"]
    near(sleeps["time_ns"], 200e6, 60e6, "20 sleeps of 10 ms")
    check(10e6 <= sleeps["longest_ns"] < 60e6, f"the longest: {sleeps}")
    check(any(e["name"] == "ENOENT" and e["count"] >= 70 for e in rows["openat"]["errnos"]), f"{rows['openat']}")
    p = run.profile("syscalls")
    i = p.types.index("time/nanoseconds")
    ns = sum(x.values[i] for x in p.samples if x.frames[0].name == "syscall:" + sleeps["call"])
    near(ns, sleeps["time_ns"], 1e6, "time by stack, of calls that are long: all of it")


@fact
def calls_in_flight_are_counted_apart():
    target = Child(["/bin/sleep", "100"])
    until(lambda: open(f"/proc/{target.pid}/wchan", encoding="ascii").read().startswith("hrtimer"), "it sleeps")
    run = Run("-p", target.pid, "--only", "syscalls", "-d", "0.5")
    run.must()
    s = run.summary()["syscalls"]
    equal((s["calls"], s["in_flight_before"]), (0, 0), "nothing begins or returns")
    target.process.kill()
    target.end()


main()
