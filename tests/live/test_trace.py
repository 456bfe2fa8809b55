"""The log of system calls, line by line against strace -f -y of the same programs."""

import ctypes
import json
import os
import re
import signal
import subprocess
import time

from harness import *

SOCKETS = """
import os, socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1)
c = socket.create_connection(s.getsockname())
a, peer = s.accept()
c.sendall(b"hello\\x1b[31m world"); a.recv(100); a.shutdown(socket.SHUT_WR); c.recv(10)
a.close(); c.close()
u = socket.socket(socket.AF_UNIX)
try: u.connect("/nonexistent/socket")
except OSError: pass
try: os.link("/nonexistent/a\\n", "/nonexistent/b")
except OSError: pass
"""
PROGRAMS = (
    ["/usr/bin/sqlite3", ":memory:", "create table t(a); insert into t values (1), (2); select sum(a) from t;"],
    ["/usr/bin/python3", "-S", "-c", "import json, socket"],
    ["/usr/bin/git", "--version"],
    ["/bin/tar", "-C", "/etc", "-cf", "/dev/null", "apt"],
    ["/usr/bin/python3", "-S", "-c", SOCKETS],
    [os.path.join(BUILD, "targets", "call_forms")],
)
# Forms that differ, as `memscope help syscalls` says: of these calls names and results are compared, not arguments.
OTHER_FORM = {"execve", "rt_sigreturn", "futex", "getdents64", "clone3", "clone",
              "fcntl", "rseq", "uname", "sysinfo", "statfs", "select", "pselect6", "arch_prctl", "getrandom",
              "set_robust_list", "set_tid_address", "getrlimit", "prlimit64", "poll", "wait4", "statx", "getgroups", "utimensat"}
LINE = re.compile(r"^(\d+) +(?:[0-9:.]+ )?([a-z0-9_]+)\((.*)\) += (.*?)(?: <[0-9.]+>)?$")


def normal(text):
    """Without what differs from run to run: addresses, processes, ports, inodes, times."""
    text = re.sub(r"0x[0-9a-f]{5,}", "PTR", text)
    text = re.sub(r'(</dev/u?random>), "(?:[^"\\]|\\.)*"', r"\1, RANDOM", text)
    text = re.sub(r":\[\d+\]", ":[N]", text)
    text = re.sub(r"htons\(\d+\)", "htons(N)", text)
    text = re.sub(r"<(TCP|UDP|UNIX)[^ ]*>|<socket:\[N\]>", "<SOCKET>", text)
    text = re.sub(r"(?<=\d)<(?:SOCKET|pipe:\[N\])>(?=, \d|\])", "", text)  # of descriptors in structures
    return re.sub(r"tv_n?u?sec=\d+|tv_sec=\d+", "T", text)


def calls_of(text):
    """[(call, arguments, result)] from the first execve that succeeds on, in order, for programs of one thread."""
    rows = []
    for line in text.splitlines():
        m = LINE.match(line)
        if not m:
            continue
        if not rows and (m[2] != "execve" or not m[4].startswith("0")):
            continue
        result = "PID" if m[2] in ("set_tid_address", "getpid", "gettid", "getppid") else normal(m[4])
        rows.append((m[2], None if m[2] in OTHER_FORM else normal(m[3]), result))
    return rows


def strace(command):
    out = scratch("strace")
    subprocess.run(["strace", "-f", "-y", "-o", out, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    return open(out, encoding="utf-8").read()


def trace(*args):
    out = scratch("trace")
    p = subprocess.run([MEMSCOPE, "trace", "-o", out, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False)
    return p, open(out, encoding="utf-8").read() if os.path.exists(out) else ""


@fact
def names_arguments_and_results_are_those_of_strace():
    for command in PROGRAMS:
        theirs = calls_of(strace(command))
        p, log = trace("--", *command)
        ours = calls_of(log)
        equal((p.returncode, p.stderr), (0, ""), f"a run of {command[0]}")
        check(len(theirs) > 30, f"strace saw {len(theirs)} calls")
        equal(len(ours), len(theirs), f"calls of {command[0]}")
        for i, (a, b) in enumerate(zip(ours, theirs)):
            if a != b:
                equal(a, b, f"call {i} of {command[0]}")
                break


@fact
def what_calls_add_up_to_is_in_the_end():
    code = "import os\nfor i in range(7):\n  try: os.rmdir('/nonexistent')\n  except OSError: pass"
    p, log = trace("-C", "-e", "rmdir,openat", "--", "/usr/bin/python3", "-S", "-c", code)
    opened = log.count(" openat(")
    failed = len(re.findall(r" openat\(.* = -1 ENOENT", log))
    rows = {x.split(":")[0].split()[-1]: x.split() for x in log[log.index("% time"):].splitlines()[2:-2]}
    equal((p.returncode, rows["rmdir"][3:5], rows["rmdir"][5:]), (0, ["7", "7"], ["rmdir:", "7", "ENOENT"]), "of rmdir")
    equal(rows["openat"][3:], [str(opened)] + ([str(failed), "openat:", str(failed), "ENOENT"] if failed else ["openat"]), "of openat")
    _, log = trace("-C", "--json", "-e", "rmdir", "--", "/usr/bin/python3", "-S", "-c", code)
    equal([(r["call"], r["calls"], r["errors"]) for r in json.loads(log.splitlines()[-1])["summary"]], [("rmdir", 7, {"ENOENT": 7})], "as JSON")


@fact
def a_log_that_is_there_stays_until_the_run_begins():
    there, absent = scratch("there"), scratch("absent")
    gone = Child(["/bin/true"])
    gone.process.wait()
    for args in ["-e", "nothing", "--", "/bin/true"], ["-p", str(gone.pid)], ["-c", "no-such-container"]:
        with open(there, "w", encoding="ascii") as f:
            f.write("old")
        for path in (there, absent):
            p = subprocess.run([MEMSCOPE, "trace", "-o", path, *args], capture_output=True, text=True, check=False)
            check(p.returncode != 0, f"{args}: status {p.returncode}, {p.stderr}")
        equal((open(there, encoding="ascii").read(), os.path.exists(absent)), ("old", False), f"the files after {args}")
    p = subprocess.run([MEMSCOPE, "trace", "-e", "execve", "-o", there, "--", "/bin/true"], capture_output=True, text=True, check=False)
    text = open(there, encoding="ascii").read()
    check("execve(" in text and "old" not in text, f"the log of a run that began: {text} {p.stderr}")


FRAME = re.compile(r"^ > (.+?)\((.*)\) \[0x([0-9a-f]+)\]$")


def stacks_of(text, moved):
    """[(call, [(image, address)])] behind the first execve. `moved`: addresses lie in the call, not behind it, but for the innermost."""
    rows = []
    for line in text.splitlines():
        frame, call = FRAME.match(line), re.match(r"^\d+ +(?:[0-9:.]+ )?([a-z0-9_]+)\(", line)
        if frame and rows:
            at = int(frame[3], 16)
            rows[-1][1].append((frame[1], at + bool(moved and rows[-1][1])))
        elif line.startswith(" > ") and rows:
            rows[-1][1].append((line, 0))
        elif call:
            rows.append((call[1], []))
    return rows[[name for name, _ in rows].index("execve") + 1:]


@fact
def stacks_are_those_of_strace_frame_by_frame():
    """Its own, by libunwind, of programs nobody rebuilt, from the loader's first call to exit_group."""
    for command in (PROGRAMS[0], PROGRAMS[2], PROGRAMS[3]):
        out = scratch("strace")
        subprocess.run(["strace", "-f", "-k", "-o", out, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False)
        theirs = stacks_of(open(out, encoding="utf-8").read(), False)
        p, log = trace("--stack", "--", *command)
        ours = stacks_of(log, True)
        equal((p.returncode, p.stderr), (0, ""), f"a run of {command[0]}")
        check(len(theirs) > 60 and all(frames for _, frames in theirs), f"strace has stacks of {len(theirs)} calls")
        equal(len(ours), len(theirs), f"calls of {command[0]}")
        cut = 0
        for i, (a, b) in enumerate(zip(ours, theirs)):
            # Beside load, tables of what was just mapped may come later than many calls: such a stack says so, and is a part.
            if a[1] and a[1][-1][0].startswith(" > (incomplete: no table)"):
                cut += 1
                a, b = (a[0], a[1][:1]), (b[0], b[1][:1])
            equal(a, b, f"stack of call {i} of {command[0]}")
        check(cut <= len(ours) / 4, f"{cut} of {len(ours)} stacks of {command[0]} are not whole")


@fact
def stacks_have_functions_of_languages_and_are_in_json():
    code = "import os\ndef inner():\n  os.rmdir('/nonexistent')\ndef outer():\n  try: inner()\n  except OSError: pass\nfor i in range(3): outer()\nimport time; time.sleep(0.3)  # names are read from its memory"
    script = scratch("callers.py")
    with open(script, "w", encoding="ascii") as f:
        f.write(code)
    p, log = trace("-k", "-e", "rmdir", "--", "/usr/bin/python3", "-S", script)
    equal(p.stderr, "", "stderr")
    lines = log.splitlines()
    for k in [i for i, x in enumerate(lines) if " rmdir(" in x]:
        of_python = [x for x in lines[k + 1:k + 40] if x.startswith(" > " + script)]
        equal(of_python[:3], [f" > {script}:{n}({f} ({os.path.basename(script)}))" for n, f in ((3, "inner"), (5, "outer"), (7, "<module>"))], "frames of Python")
    equal(log.count(" rmdir("), 3, "calls")
    _, log = trace("-k", "--json", "-e", "rmdir,exit_group", "--", "/usr/bin/python3", "-S", script)
    rows = [json.loads(x) for x in log.splitlines()]
    equal([r["call"] for r in rows], ["rmdir"] * 3 + ["exit_group"], "calls")
    check(all([x["function"].split()[0] for x in r["stack"] if x.get("file") == script] == ["inner", "outer", "<module>"] for r in rows[:3]), str(rows[0]))
    equal(rows[3]["stack"][-1]["function"], "_start", "the outermost function")


@fact
def filters_are_applied():
    _, log = trace("-e", "trace=openat,%network", "--", *PROGRAMS[4])
    names = {LINE.match(x)[2] for x in log.splitlines() if LINE.match(x)}
    check({"openat", "socket", "bind", "connect", "accept4"} <= names, f"those asked for: {names}")
    check(not names & {"read", "close", "mmap"}, f"no others: {names}")
    _, log = trace("-Z", "--", *PROGRAMS[4])
    rows = [LINE.match(x) for x in log.splitlines()]
    check(rows and all(m and m[4].startswith(("-1 E", "? E")) for m in rows), "only calls that failed")
    _, log = trace("--min-us", "20000", "--", "/bin/sleep", "0.05")
    check("clock_nanosleep(" in log and "brk(" not in log, f"only slow calls: {log}")


@fact
def a_long_call_is_unfinished_and_resumed():
    _, log = trace("--", "/bin/sleep", "1")
    lines = [x for x in log.splitlines() if "nanosleep" in x]
    equal(len(lines), 2, "two lines")
    check("{tv_sec=1, tv_nsec=0}, " in lines[0] and lines[0].endswith(" <unfinished ...>"), lines[0])
    check("<... clock_nanosleep resumed>) = 0 <1." in lines[1], lines[1])


@fact
def what_a_program_writes_cannot_harm_a_terminal_or_json():
    evil = "a\x1b]0;x\x07\"\\\n\u202e"
    _, log = trace("--", "/bin/cat", evil)
    check(all(c == "\n" or " " <= c <= "~" for c in log), "printable ASCII alone")
    _, log = trace("--json", "--", "/bin/cat", evil)
    rows = [json.loads(x) for x in log.splitlines()]
    check(any(r["call"] == "openat" and r.get("error") == "ENOENT" and "\\33]0;x\\7" in r["args"][1] for r in rows), "the call is there")


@fact
def what_is_lost_is_counted_in_its_place():
    loop = ["/usr/bin/python3", "-S", "-c", "import os\nfor i in range(100000): os.getppid()"]
    p, log = trace("--max-rate", "1000", "-e", "getppid", "--", *loop)
    lost = sum(int(m) for m in re.findall(r"--- (\d+) calls lost here ---", log))
    seen = log.count("getppid()")
    said = re.search(r"memscope: (\d+) calls in the log, (\d+) lost for want of room, (\d+) left out", p.stderr)
    check(said, p.stderr)
    equal((int(said[1]), seen + int(said[2]) + int(said[3])), (seen, 100000), "shown and lost add up")
    check(0 < lost <= 100000 - seen, f"in place: {lost}")


@fact
def calls_that_find_no_room_are_counted_one_by_one():
    """Nobody reads the log while a program makes many times as many calls as the ring has room for."""
    made = 400000
    code = f"import os\nfor i in range({made}): os.getppid()"
    tracer = subprocess.Popen([MEMSCOPE, "trace", "--mem", "16", "-e", "getppid", "--", "/usr/bin/python3", "-S", "-c", code],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = tracer.stdout.readline()
    time.sleep(4)
    log, said = first + tracer.stdout.read(), tracer.stderr.read()
    tracer.wait(FINISH_SEC)
    seen = log.count("getppid()")
    in_place = sum(int(m) for m in re.findall(r"--- (\d+) calls lost here ---", log))
    m = re.search(r"memscope: (\d+) calls in the log, (\d+) lost for want of room, 0 left out", said)
    check(m and tracer.returncode == 3, f"status {tracer.returncode}: {said}")
    equal((int(m[1]), seen + int(m[2])), (seen, made), "shown and lost add up")
    equal(in_place, int(m[2]), "in their place")
    check(in_place, "none was lost")


@fact
def a_program_that_never_stops_calling_keeps_nobody_from_ending_it():
    """As fast as the log is read, on a CPU of its own where there are two."""
    cpus = online_cpus()
    target = Target("system_calls")
    os.sched_setaffinity(target.pid, {cpus[-1]})
    target.say(f"rate {Counter().path}")
    log = scratch("log")
    tracer = Child([MEMSCOPE, "trace", "-p", str(target.pid), "-o", log],
                   preexec_fn=lambda: os.sched_setaffinity(0, {cpus[0]}))
    end = time.monotonic() + READY_SEC
    while time.monotonic() < end and not (os.path.exists(log) and os.path.getsize(log) > 1 << 20):
        time.sleep(0.1)
    check(os.path.getsize(log) > 1 << 20, "calls are not written while they come")
    tracer.process.send_signal(signal.SIGINT)
    # 3: faster than it is read, and some were lost.
    check(tracer.process.wait(FINISH_SEC) in (0, 3), "exit status")
    target.end()


@fact
def mistakes_are_named():
    for args, word in ((["-e", "opanat", "--", "/bin/true"], "opanat"), (["-e", "%fiel", "--", "/bin/true"], "%fiel"), ([], "-p PID"), (["-p", "0"], "-p")):
        p = subprocess.run([MEMSCOPE, "trace", *args], capture_output=True, text=True, check=False)
        equal(p.returncode, 2, f"status of {args}")
        check(word in p.stderr and p.stderr.count("\n") == 1, p.stderr)


# Where memory lies decides when python3 asks for more of it.
ctypes.CDLL(None).personality(0x0040000)
os.environ["PYTHONHASHSEED"] = "0"
main()
