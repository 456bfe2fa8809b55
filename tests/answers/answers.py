"""Runs scenarios and judges the last sentence: is it the cause, and does it name the function?

    answers.py [--all | --quick | --held-out | --tuned | NAME | PATTERN…] [--load idle|busy|both]
               [--repeat N] [--jobs N] [--keep DIR]

PATTERN is one of the shell: 'java-*', '*-gc'. Prints a line a run and, at the end, as Markdown, the confusion matrix (the
true cause against the first that was named), what was right by language, and which healthy ones were accused. As root.

--load busy: beside as many programs that compute as there are CPUs, with less priority than the service has. Without them,
"short of CPU" is judged only where other programs left the machine alone, for elsewhere it is true of any program that
computes: such a run is called disturbed, and counted apart. BUILD and MEMSCOPE as for live tests.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import faults  # noqa: E402
import programs  # noqa: E402
import scenarios  # noqa: E402
from faults import Missing  # noqa: E402,F401

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(HERE, "../../build")))
MEMSCOPE = os.path.abspath(os.environ.get("MEMSCOPE", os.path.join(BUILD, "memscope")))
BUILT = os.path.join(BUILD, "answers")
READY_S = 60
# Services run before what else the machine does, but for those that are to be short of CPU: so their trouble is the
# one that is declared, and no other.
FIRST = -20
OTHERS_CPUS = 0.4  # of other programs, from here on a run is disturbed
PREDICTED = ("leak", "growing", "gc", "lock", "starved", "quota", "stopped", "disk", "peer", "waiting", "cpu", "mixed", "idle",
             "nothing")
KINDS = {"leaking": "leak", "growing": "growing", "gc-bound": "gc", "contended": "lock", "cpu-bound": "cpu",
         "memory-bound": "cpu", "mixed": "mixed", "idle": "idle", "nothing": "nothing"}
# What it waits for, as the sentence has it.
WAITS = (("for disk", "disk"), ("for a socket", "peer"), ("for a file lock", "lock"), ("stopped", "stopped"))
HEALTHY = ("idle", "mixed", "cpu")
SAME = {"growing": "leak"}  # memory that goes on growing, whoever keeps it

Answer = collections.namedtuple("Answer", "row load first right named disturbed sentence")


def build():
    """Services, each where its compiler is installed."""
    os.makedirs(BUILT, exist_ok=True)
    for out, source, command in (
            ("service", "service.c", ["gcc", "-O2", "-g", "-pthread", "-o", "OUT", "IN"]),
            ("service_cxx", "service_cxx.cc", ["g++", "-O2", "-g", "-pthread", "-o", "OUT", "IN"]),
            ("service_go", "service.go", ["go", "build", "-o", "OUT", "IN"]),
            ("service_rust", "service.rs", ["rustc", "-O", "-g", "-o", "OUT", "IN"]),
            ("service_hs", "Service.hs", ["ghc", "-O", "-threaded", "-rtsopts", "-outputdir", BUILT + "/hs", "-o", "OUT", "IN"]),
            ("Service.class", "Service.java", ["javac", "-d", BUILT, "IN"])):
        out, source = os.path.join(BUILT, out), os.path.join(HERE, source)
        if not shutil.which(command[0]):
            continue
        if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(source):
            r = subprocess.run([out if w == "OUT" else source if w == "IN" else w for w in command], capture_output=True,
                               text=True, env={**os.environ, "GOCACHE": os.path.join(BUILD, "go-cache")})
            if r.returncode:
                print(f"# {source} cannot be built: {r.stdout}{r.stderr}", file=sys.stderr)
            elif os.path.exists(out):
                os.utime(out)


def raise_priority(pid=0):
    """Before other programs, all its threads. A session is a group of the scheduler, where the kernel makes those
    (autogroup)."""
    for tid in os.listdir(f"/proc/{pid}/task") if pid else [0]:
        os.setpriority(os.PRIO_PROCESS, int(tid), FIRST)
    try:
        with open(f"/proc/{pid or os.getpid()}/autogroup", "w") as f:
            f.write(str(FIRST))
    except OSError:
        pass  # priorities are then the threads' own


def cpu_seconds():
    """Of the whole machine, busy; stolen time counts as other programs'."""
    with open("/proc/stat") as f:
        t = [int(x) for x in f.readline().split()[1:9]]
    return (sum(t) - t[3] - t[4]) / os.sysconf("SC_CLK_TCK")


def own_seconds(pid):
    """Of a process, its children and those that it had; 0: it has ended."""
    used = 0
    for p in [pid] + faults.children(pid):
        try:
            with open(f"/proc/{p}/stat") as f:
                used += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:15])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass
    return used


class Service:
    """A scenario's program, working; with what disturbs it."""

    def __init__(self, row, scratch):
        self.faults, self.group, self.process, self.program = [], None, None, None
        self.endpoint = ""
        try:
            self.start(row, scratch)
            self.put_faults(row, scratch)
        except BaseException:
            self.end()
            raise

    def start(self, row, scratch):
        if row.program:
            self.program = programs.start(row.program, row.mode, scratch)
            self.process = self.program.process
        else:
            argument = os.path.join(scratch, "journal")
            if row.mode == "peer":
                self.faults.append(faults.Peer())
                argument = str(self.faults[0].port)
            elif row.mode in faults.PEERS:
                with socket.create_server(("127.0.0.1", 0)) as free:
                    port = free.getsockname()[1]
                self.faults.append(faults.PEERS[row.mode]())
                argument = f"{self.faults[0].port}:{port}"
                if row.mode == "front":
                    self.endpoint = f"127.0.0.1:{self.faults[0].port}"
            if row.mode == "peer" or row.mode in ("disk", "commit") and row.language in ("c", "c++", "python"):
                self.endpoint = f"127.0.0.1:{argument}" if row.mode == "peer" else argument
            command = [w.replace("BUILT", BUILT).replace("SOURCES", HERE) if w != "ARGUMENT" else argument
                       for w in row.command]
            faults.found(command[0])
            if "Service" in command and not os.path.exists(os.path.join(BUILT, "Service.class")):
                raise Missing("javac is not installed")
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                            stdin=subprocess.DEVNULL, start_new_session=True)
            self.wait_ready(row)
            if row.mode in ("front", "keepalive"):
                self.faults.append(faults.Clients(port, 3 if row.mode == "front" else 1, 0 if row.mode == "front" else 0.3))
        self.raise_all(row)

    def raise_all(self, row):
        """Children, too: those of PostgreSQL have sessions of their own."""
        if self.process and row.mode != "starved":
            for pid in [self.process.pid] + faults.children(self.process.pid):
                try:
                    raise_priority(pid)
                except (ProcessLookupError, FileNotFoundError):
                    pass  # it has ended

    def put_faults(self, row, scratch):
        if row.mode == "starved":
            self.faults.append(faults.Hogs(os.path.join(BUILT, "service")))
        elif row.mode == "stopped":
            self.faults.append(faults.Stop(self.process.pid, row.seconds))
        elif row.mode in ("quota", "disk", "commit", "mix"):
            self.group = faults.fifth_of_a_cpu() if row.mode == "quota" else faults.slow_disk(scratch)
            for pid in [self.process.pid] + faults.children(self.process.pid):
                self.group.add(pid)
        if self.program and self.program.after_group:
            self.program.after_group()
            time.sleep(1)
            self.raise_all(row)

    def wait_ready(self, row):
        line = []
        reader = threading.Thread(target=lambda: line.append(self.process.stdout.readline()), daemon=True)
        reader.start()
        reader.join(READY_S)
        if line != [b"ready\n"]:
            raise RuntimeError(f"{row.name}: did not become ready")

    def recording(self):
        """Call when memscope starts."""
        for f in self.faults:
            if isinstance(f, faults.Stop):
                f.start()

    def target(self, row):
        """What of memscope's arguments says whom to profile, and how long."""
        if self.process:
            return ["-p", str(self.process.pid), "-d", str(row.seconds)], []
        return [], ["--"] + self.program.command

    def end(self):
        for f in self.faults:
            f.end()
        if self.process:
            faults.kill_all(self.process)
        if self.program:
            self.program.end()
        if self.group:
            self.group.end()


def predicted(verdict):
    sentence, kind = verdict["sentence"], verdict["kind"]
    if kind == "starved":
        return "quota" if "quota" in sentence else "starved"
    if kind == "waiting":
        return next((cause for words, cause in WAITS if words in sentence), "waiting")
    return KINDS[kind]


def judge(row, verdict, load="idle", disturbed=False, endpoint=""):
    """`endpoint`: the file or peer that has to be named, too."""
    first = predicted(verdict)
    causes = scenarios.MIXES[row.language][0] if row.mode == "mix" else (row.cause,)
    right = first in HEALTHY if row.cause == "healthy" else SAME.get(first, first) in causes
    if row.cause == "idle" and "waited" in verdict["sentence"] and "events" not in verdict["sentence"] \
            and "timer" not in verdict["sentence"]:
        right = False  # it accuses a wait of a program at rest
    named = (not row.function or re.search(row.function, verdict["sentence"]) is not None) and endpoint in verdict["sentence"]
    return Answer(row, load, first, right, named, disturbed, verdict["sentence"])


def run(row, keep=None, load="idle"):
    """One answer. Missing: what it needs is not there."""
    scratch = tempfile.mkdtemp(prefix="memscope-answers-")
    out = os.path.join(keep or scratch, f"{row.name}{'-busy' if load == 'busy' else ''}.{time.monotonic_ns()}")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    try:
        service = Service(row, scratch)
        pid = service.process.pid if service.process else 0
        try:
            whom, command = service.target(row)
            begin = cpu_seconds(), own_seconds(pid), time.monotonic(), children_seconds()
            service.recording()
            r = subprocess.run([MEMSCOPE, "-q"] + whom + ["-o", out] + command, capture_output=True, text=True, timeout=300,
                               preexec_fn=raise_priority, start_new_session=True)
            used = cpu_seconds() - begin[0] - (own_seconds(pid) - begin[1]) - (children_seconds() - begin[3] if command else 0)
            others = used / (time.monotonic() - begin[2])
        finally:
            service.end()
        if not os.path.exists(os.path.join(out, "summary.json")):
            raise RuntimeError(f"{row.name}: memscope exited with {r.returncode}: {r.stderr[-300:]}")
        with open(os.path.join(out, "summary.json")) as f:
            summary = json.load(f)
        # memscope's own CPU time is most of what others used where the machine is quiet.
        own = summary["own"]["cpu_ns"] / 1e9 / row.seconds if summary.get("own") and not command else 0
        return judge(row, summary["verdict"], load, row.mode != "starved" and load == "idle" and others - own > OTHERS_CPUS,
                     service.endpoint)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- the report, in Markdown -----------------------------------------------------------------------------------------------


def good(a):
    return a.right and a.named


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


def fraction(answers, test):
    return f"{sum(map(test, answers))}/{len(answers)}"


def matrix(answers):
    columns = [p for p in PREDICTED if any(a.first == p for a in answers)]
    rows = []
    for cause in dict.fromkeys(scenarios.CAUSES.values()):
        of = [a for a in answers if a.row.cause == cause]
        if of:
            counts = collections.Counter(a.first for a in of)
            rows.append([cause] + [counts[c] or "" for c in columns] + [fraction(of, lambda a: a.right), fraction(of, good)])
    return table(["true cause"] + columns + ["right", "and function"], rows)


def by_language(answers):
    languages = sorted({a.row.language for a in answers})
    return table(["language"] + languages, [
        ["right, and function"] + [fraction([a for a in answers if a.row.language == x], good) for x in languages]])


def report(answers):
    for title, of in (("undisturbed", [a for a in answers if a.load == "idle" and not a.disturbed]),
                      ("disturbed: other programs had CPUs", [a for a in answers if a.load == "idle" and a.disturbed]),
                      ("beside programs that compute", [a for a in answers if a.load == "busy"])):
        if not of:
            continue
        accused = [a for a in of if a.row.cause in ("idle", "healthy") and not a.right]
        print(f"\n### {title}: {fraction(of, good)} right with the function, {fraction(of, lambda a: a.right)} by the cause; "
              f"of those held out {fraction([a for a in of if a.row.held_out], good)}\n\n{matrix(of)}\n\n{by_language(of)}\n")
        print(f"Healthy, and accused: {', '.join(f'{a.row.name} ({a.first})' for a in accused) or 'none'}.")


def shown(row, keep, load):
    """One answer, and its line; None where there is none."""
    try:
        a = run(row, keep, load)
    except (Missing, RuntimeError, OSError, subprocess.TimeoutExpired) as e:
        print(f"{'skipped' if isinstance(e, Missing) else 'FAILED':<10}{row.name:<16}{e}", flush=True)
        return None
    verdict = "right" if good(a) else "function" if a.right else "WRONG"
    print(f"{verdict:<10}{row.name:<16}{a.first:<9}{'busy ' if load == 'busy' else ''}{'disturbed ' if a.disturbed else ''}"
          f"{a.sentence}", flush=True)
    return a


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*")
    p.add_argument("--all", action="store_true")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--held-out", action="store_true")
    p.add_argument("--tuned", action="store_true", help="those that are not held out")
    p.add_argument("--load", choices=("idle", "busy", "both"), default="idle")
    p.add_argument("--keep")
    p.add_argument("--list", action="store_true", help="their names, causes and functions; runs nothing")
    p.add_argument("--repeat", type=int, default=1)
    p.add_argument("--jobs", type=int, default=1, help="so many at a time, where the machine has the CPUs")
    args = p.parse_args()
    rows = [r for r in scenarios.scenarios()
            if args.all or any(fnmatch.fnmatch(r.name, n) for n in args.names) or args.quick and r.quick or
            args.held_out and r.held_out or args.tuned and not r.held_out]
    if args.list:
        for r in rows:
            print(f"{r.name:<18}{r.cause:<9}{'held out ' if r.held_out else '':<9}{r.function}")
        return 0
    build()
    answers = []
    for load in ("idle", "busy") if args.load == "both" else (args.load,):
        hogs = faults.Hogs(os.path.join(BUILT, "service"), 1) if load == "busy" else None
        try:
            with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
                answers += [a for a in pool.map(lambda row: shown(row, args.keep, load), rows * args.repeat) if a]
        finally:
            if hogs:
                hogs.end()
    report(answers)
    return 0 if answers else 1


if __name__ == "__main__":
    sys.exit(main())
