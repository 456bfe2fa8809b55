"""What live tests are made of: targets, runs of memscope, readers of what it wrote, TAP; checks.py and probes.py with it.

A test file holds functions marked @fact, named as the fact they prove, and ends with main().
Each test calls check(), near() and equal(); all of its checks are made, and each that does not
hold is one diagnostic line. skip(reason) ends a test that cannot be made here.

    python3 tests/live/test_x.py [-l] [-k] [-a | -b] [PATTERN | =NAME…]
    -l lists; -k keeps the output directories; -a takes the facts marked @alone, -b the others

@alone("why") marks a fact that must have the machine to itself: one that measures time, a cost, or what is there
once on a machine. All others hold beside another test, and tests/run runs them so.

Environment: BUILD (build directory, default `build`), MEMSCOPE (program, default BUILD/memscope).
"""

import collections
import csv
import ctypes
import fnmatch
import functools
import json
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import machine
import pprof_reader
from checks import *
from probes import *

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build")))
MEMSCOPE = os.path.abspath(os.environ.get("MEMSCOPE", os.path.join(BUILD, "memscope")))
TARGETS = os.path.join(BUILD, "targets")
# What tests make is not left in the host's cache, and what is there does not matter to them.
os.environ.setdefault("MEMSCOPE_CACHE_DIR", os.path.join(BUILD, "cache"))

SOURCES = ("oncpu", "offcpu", "alloc", "heap", "peak", "growth")

_facts = []
_own = False  # whether what is started now ends with the running fact
_keep = "-k" in sys.argv
_scratch = None
_given = set()


def fact(f):
    _facts.append(f)
    return f


def alone(why):
    """Below @fact: no other test runs at the same time. `why` is for who reads."""
    def mark(f):
        f.alone = why
        return f
    return mark


def once(f):
    """A run that several facts are read from: made once, and if it breaks, broken for all. Processes that it starts live
    until the last fact."""
    result = []

    @functools.wraps(f)
    def wrapper():
        global _own
        if not result:
            own, _own = _own, False
            try:
                result.append((f(), None))
            except (Skip, Broken) as e:
                result.append((None, e))
            finally:
                _own = own
        value, error = result[0]
        if error:
            raise error
        return value
    return wrapper


QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def scratch(name):
    """A new directory or file name below this program's own temporary directory, also where those that were given before
    are not there yet."""
    global _scratch
    if _scratch is None:
        _scratch = tempfile.mkdtemp(prefix="memscope-live-")
        os.chmod(_scratch, 0o711)
    for i in range(1, 10000):
        path = os.path.join(_scratch, f"{name}-{i}")
        if path not in _given and not os.path.lexists(path):
            _given.add(path)
            return path
    raise Broken("too many scratch names")


def online_cpus():
    return sorted(os.sched_getaffinity(0))


def kernel():
    return tuple(int(x) for x in os.uname().release.split("-")[0].split(".")[:2])


def rss_off_by():
    """Since 6.16 /proc adds up what the CPUs have of each of three counters; from 6.2 on it leaves that
    out, and before each thread had up to 64 pages of its own. So many bytes may be missing from
    what it tells of a process."""
    if kernel() >= (6, 16):
        return 0
    return 3 * os.sysconf("SC_PAGESIZE") * max(64, 2 * len(online_cpus())) * len(online_cpus())


# --- targets ------------------------------------------------------------------------------------

class Child:
    """A process this test started; ended with the fact that started it, whatever happens: one that computes would take
    the CPU of all facts that follow."""

    living = []

    def __init__(self, argv, **kw):
        self.argv = argv
        self.own = _own  # of one fact
        self.process = subprocess.Popen(argv, **kw)
        Child.living.append(self)

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        """Does not reap it: what /proc says of one that has ended can be read until finish() or end()."""
        if self.process.returncode is not None:
            return False
        try:
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:  # reaped: by another thread, or by the kernel where SIGCHLD is ignored
            return False

    def how_it_ended(self):
        """Its exit status, for a sentence; reaps it."""
        return self.process.poll()

    def end(self, close=True):
        if self.alive():
            self.process.kill()
        self.process.wait()
        for f in (self.process.stdin, self.process.stdout, self.process.stderr):
            if f and close:
                try:
                    f.close()
                except OSError:
                    pass
        if self in Child.living:
            Child.living.remove(self)


class Target(Child):
    """A program of tests/targets/, ready for commands."""

    def __init__(self, name, *args):
        path = os.path.join(TARGETS, name)
        if not os.path.exists(path):
            raise Broken(f"{path} is not built (make targets)")
        super().__init__([path, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._line("ready", READY_SEC)

    def _line(self, until, timeout):
        # Lines come in short bursts over a pipe; a thread that reads them keeps the time limit.
        out = []
        t = threading.Thread(target=lambda: out.append(self.process.stdout.readline()), daemon=True)
        t.start()
        t.join(timeout)
        if not out or not out[0]:
            raise Broken(f"{os.path.basename(self.argv[0])} said nothing ({until}) in {timeout} s")
        return out[0].decode().split()

    def say(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, timeout=2 * FINISH_SEC):
        """The lines up to `end`: [[word, …], …], with numbers as int."""
        lines = []
        while True:
            words = self._line("end", timeout)
            if words == ["end"]:
                return lines
            lines.append([int(w) if w.isdigit() else w for w in words])

    def weigh(self):
        """Three times what an ordinary program gets of a busy machine. No more: what runs before all others,
        or weighs ninety times as much, keeps the kernel's own threads from its CPU, and each grace
        period of attaching and detaching then takes a tenth of a second and more."""
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(tid), -5)

    def ask(self, command, timeout=2 * FINISH_SEC):
        self.say(command)
        return self.answer(timeout)


def at_a_fifth(ms=600000):
    """A program that works for a fifth of the time: for tests that need samples in each window, and no busy CPU."""
    target = Target("cpu_split", ms)
    target.say("go 20")
    return target


def schedstat(pid):
    """CPU ns of all living threads of a process, from the kernel's own account."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


def switches(pid):
    """{tid: (voluntary, involuntary)} of its living threads so far: the kernel's own count of the
    times each blocked, and was pushed off."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8", errors="replace") as f:
            rows = dict(line.split(":", 1) for line in f)
        found[int(tid)] = (int(rows["voluntary_ctxt_switches"]),
                           int(rows["nonvoluntary_ctxt_switches"]))
    return found


def of_threads(read, pid):
    """What `read` says of a process, of which a thread may end while it is read."""
    for _ in range(100):
        try:
            return read(pid)
        except (FileNotFoundError, ProcessLookupError):
            if not os.path.exists(f"/proc/{pid}"):
                raise
    return read(pid)


def has_worked(pid, cpu_s, waits=0, seconds=0, most=40):
    """Waits for `seconds`, and then until the threads of a process have had so much more CPU time and
    have waited so often since: how long that takes is the machine's affair. `most` is where a test
    stops waiting: the check that follows says what is missing then. Of several processes: until each has."""
    pids = pid if isinstance(pid, (list, tuple)) else [pid]

    def now():
        return [(of_threads(schedstat, p), sum(voluntary for voluntary, _ in of_threads(switches, p).values()))
                for p in pids]
    begin, before = time.monotonic(), now()
    while True:
        time.sleep(0.02)
        passed = time.monotonic() - begin
        if passed > most or (passed >= seconds and all(
                cpu - cpu_before >= cpu_s * 1e9 and waited - waited_before >= waits
                for (cpu, waited), (cpu_before, waited_before) in zip(now(), before))):
            return


def until(holds, what, seconds=READY_SEC):
    """Waits for what happens, and gives it."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise Broken(f"not within {seconds} s: {what}")
        time.sleep(0.01)
    return found


def name_of(pid):
    """As the kernel has it; "": it is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().rstrip("\n")
    except OSError:
        return ""


def children_of(pid):
    """But for the process that makes memscope's cells, which each command has."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(child) for child in f.read().split() if name_of(child) != "memscope-cells"]


def at_work(child, cpu_s=0.1):
    """The child, when its main thread has had so much CPU time: what it is made of is mapped by then, which
    takes a few ms of it."""
    while schedstat(child.pid) < cpu_s * 1e9:
        if not child.alive():
            raise Broken(f"{child.argv[0]} ended with {child.how_it_ended()}")
        time.sleep(0.02)
    return child


def cpu_clock(pid):
    """CPU ns of all threads of a process, those on a CPU now included; schedstat() has them as of
    their last tick."""
    return time.clock_gettime_ns(~pid << 3 | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)


class OnCpu:
    """Wall time that the threads of processes are on a CPU, by perf's account of when they are
    switched in and out; only of threads that live now. The CPU clock (schedstat) leaves out what
    the hypervisor stole, and with it what interrupts took where the kernel keeps that account."""

    _SYSCALL = {"x86_64": 298, "aarch64": 241}
    _SOFTWARE, _TASK_CLOCK, _TIME_RUNNING, _CLOEXEC = 1, 1, 2, 8

    def __init__(self, *pids):
        number = self._SYSCALL.get(os.uname().machine)
        if number is None:
            skip(f"perf_event_open has no number here for {os.uname().machine}")
        call = ctypes.CDLL(None, use_errno=True).syscall
        self._fds = []
        # struct perf_event_attr of 64 bytes: type, size, config, period, sample type, read format.
        attr = ctypes.create_string_buffer(struct.pack(
            "<IIQQQQ24x", self._SOFTWARE, 64, self._TASK_CLOCK, 0, 0, self._TIME_RUNNING), 64)
        for pid in pids:
            for tid in os.listdir(f"/proc/{pid}/task"):
                fd = call(number, attr, int(tid), -1, -1, ctypes.c_ulong(self._CLOEXEC))
                if fd < 0:
                    raise Broken(f"perf_event_open: {os.strerror(ctypes.get_errno())}")
                self._fds.append(fd)

    def ns(self):
        return sum(struct.unpack("<QQ", os.read(fd, 16))[1] for fd in self._fds)

    def close(self):
        while self._fds:
            os.close(self._fds.pop())


def stolen_ns():
    """Time that interrupts and the hypervisor took from all CPUs, since boot (proc(5): irq, softirq,
    steal), in ticks of 10 ms. What is in no account of the kernel's (STOLEN) is added as its mean."""
    with open("/proc/stat", encoding="ascii") as f:
        ticks = [int(x) for x in f.readline().split()[6:9]]
    unseen = STOLEN * time.monotonic_ns() * len(online_cpus())
    return sum(ticks) * 1000000000 // os.sysconf("SC_CLK_TCK") + int(unseen)


class Counter:
    """Eight bytes shared with a target, which adds to them without a system call."""

    def __init__(self):
        self.path = scratch("counter")
        with open(self.path, "wb") as f:
            f.write(bytes(4096))
        with open(self.path, "r+b") as f:
            self._map = mmap.mmap(f.fileno(), 4096)

    def value(self):
        return struct.unpack_from("<Q", self._map, 0)[0]


# --- memscope -----------------------------------------------------------------------------------

class Run(Child):
    """memscope at work. stderr is gathered as it comes; ready() waits for the line that says
    that everything is attached; finish() waits for the end and keeps status and stdout."""

    def __init__(self, *args, out=None, quiet_json=True, prefix=(), **kw):
        if not os.path.exists(MEMSCOPE):
            raise Broken(f"{MEMSCOPE} is not built")
        self.out = out or scratch("out")
        argv = [*prefix, MEMSCOPE]
        if quiet_json:
            argv.append("--json")
        argv += ["-o", self.out, *map(str, args)]
        super().__init__(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, **kw)
        self.status = None
        self.stdout = b""
        self._waited_ns, self._stolen_ns = 0, stolen_ns()
        self._lines = []
        self._news = threading.Condition()
        self._threads = [threading.Thread(target=self._read_stderr, daemon=True),
                         threading.Thread(target=self._read_stdout, daemon=True)]
        for t in self._threads:
            t.start()
        _runs.append(self)

    def end(self, close=True):
        # What it launched may live on and hold the other end: a close would wait for the readers.
        super().end(close=not any(t.is_alive() for t in self._threads))

    def command_pid(self):
        """The process that it launched, by what it says when it is ready."""
        return int(re.search(r"\(process (\d+)\)", self.stderr).group(1))

    def _read_stderr(self):
        for line in self.process.stderr:
            with self._news:
                self._lines.append((time.monotonic_ns(), line.decode("utf-8", "replace").rstrip()))
                self._news.notify_all()
        with self._news:
            self._lines.append((time.monotonic_ns(), None))
            self._news.notify_all()

    def _read_stdout(self):
        self.stdout = self.process.stdout.read()

    @property
    def stderr(self):
        return "\n".join(line for _, line in self._lines if line is not None)

    def ready(self):
        """When everything was attached, as CLOCK_MONOTONIC ns."""
        deadline = time.monotonic() + READY_SEC
        with self._news:
            while True:
                for ns, line in self._lines:
                    if line is None:
                        raise Broken(f"memscope ended before it was ready: {self.stderr[-500:]}")
                    if line.startswith("memscope: profiling"):
                        return ns
                if time.monotonic() > deadline or not self._news.wait(READY_SEC):
                    raise Broken(f"memscope not ready in {READY_SEC} s: {self.stderr[-500:]}")

    def send(self, number):
        self.process.send_signal(number)

    def waited_ns(self):
        """How long its main thread has waited for a CPU that other threads had (schedstat), so far."""
        try:
            with open(f"/proc/{self.pid}/schedstat", encoding="ascii") as f:
                self._waited_ns = max(self._waited_ns, int(f.read().split()[1]))
        except (OSError, IndexError):
            pass  # reaped: it stays as it was last seen
        return self._waited_ns

    def starved_ns(self):
        """How long its main thread has been kept from a CPU at most, so far: by other threads, and by a
        hypervisor or interrupts. Nobody says from whom these took a CPU: all that they took may have been
        while this thread needed that CPU, for it is on one at a time."""
        return self.waited_ns() + stolen_ns() - self._stolen_ns

    def had_time(self, seconds):
        """Waits until it has had so much time in which nothing kept its main thread from a CPU: of that in
        which no other thread had it, a hypervisor is taken to have had the part that it had of all."""
        begin, waited, stolen = time.monotonic_ns(), self.waited_ns(), stolen_ns()
        while self.alive():
            time.sleep(0.02)
            passed = time.monotonic_ns() - begin
            left = 1 - (stolen_ns() - stolen) / len(online_cpus()) / passed
            if (passed - self.waited_ns() + waited) * max(left, 0.1) >= seconds * 1e9:
                return

    def ended_in(self, begin_ns=None, timeout=FINISH_SEC):
        """Waits for its end: seconds from now (or from when it was started), less those in which its main
        thread was kept from a CPU."""
        starved_ns, begin_ns = (0, begin_ns) if begin_ns else (self.starved_ns(), time.monotonic_ns())
        deadline = time.monotonic() + timeout
        while self.alive():
            self.waited_ns()
            if time.monotonic() > deadline:
                raise Broken(f"memscope did not end within {timeout} s: {self.stderr[-500:]}")
            time.sleep(0.01)
        return (time.monotonic_ns() - begin_ns - self.starved_ns() + starved_ns) / 1e9

    def rows(self, n, seconds=FINISH_SEC):
        """Waits until trend.csv has so many rows."""
        deadline = time.monotonic() + seconds
        while True:
            found = [f for f in os.listdir(self.out) if "trend.csv" in f] if os.path.isdir(self.out) else []
            if found:
                with open(self.path(found[0]), encoding="utf-8") as f:
                    lines = f.read().count("\n")
                if lines > n:
                    return
            if time.monotonic() > deadline or not self.alive():
                raise Broken(f"trend.csv has not come to {n} rows in {seconds} s: {self.stderr[-300:]}")
            time.sleep(0.02)

    def finish(self, timeout=FINISH_SEC):
        """Waits for the end; the exit status (negative: killed by that signal)."""
        try:
            self.status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Broken(f"memscope did not end within {timeout} s: {self.stderr[-500:]}")
        for t in self._threads:
            t.join(5)
        return self.status

    def stop(self, number=signal.SIGINT):
        self.send(number)
        return self.finish()

    def must(self, status=0):
        """finish(), where any other status ends the test."""
        if self.status is None:
            self.finish()
        if self.status != status:
            raise Broken(f"memscope exited with {self.status}, expected {status}: "
                         f"{self.stderr[-800:]}")
        return self

    def path(self, name):
        return os.path.join(self.out, name)

    def profile(self, source):
        path = self.path(f"{source}.pb.gz")
        if not os.path.exists(path):
            raise Broken(f"{source}.pb.gz was not written; {self.stderr[-300:]}")
        return pprof_reader.read(path)

    def folded(self, source):
        """{"a;b;c": value}"""
        out = collections.OrderedDict()
        with open(self.path(f"{source}.folded"), encoding="utf-8") as f:
            for line in f:
                stack, _, value = line.rstrip("\n").rpartition(" ")
                out[stack] = out.get(stack, 0) + int(value)
        return out

    def trend(self):
        """(column names, rows as dicts of text)"""
        with open(self.path("trend.csv"), encoding="utf-8", newline="") as f:
            reader = csv.DictReader(f)
            rows = list(reader)
            return reader.fieldnames, rows

    def lost(self, begins="", but="process_records"):
        """What was lost, by the names of its counters: those that begin so, but not so."""
        return {d["name"]: d["count"] for d in self.summary()["drops"]
                if d["count"] and d["name"].startswith(begins) and not d["name"].startswith(but)}

    def summary(self):
        """The summary as --json printed it."""
        try:
            return json.loads(self.stdout)
        except ValueError as e:
            raise Broken(f"--json printed no JSON ({e}): {self.stdout[:300]!r}")


_runs = []


def record(target_args, during, *args, status=0, **kw):
    """A whole run: start, wait until ready, during(), stop by Ctrl-C, read. Returns (run, what
    during() returned). `status`: what it must exit with; None: any."""
    run = Run(*target_args, *args, **kw)
    run.ready()
    got = during()
    run.stop()
    if status is not None:
        run.must(status)
    return run, got


# --- TAP ----------------------------------------------------------------------------------------

def _diagnose(lines):
    for line in lines:
        for part in str(line).splitlines():
            print(f"# {part}")


def _describe_runs(since):
    for run in _runs[since:] or _runs[-2:]:
        print(f"# $ {' '.join(run.argv)}")
        _diagnose((run.stderr or "(nothing on stderr)").splitlines()[-12:])


def _clean():
    for child in list(Child.living):
        child.end()
    _runs.clear()


def _end_own():
    """Those of the fact: runs before what they look at."""
    for child in sorted((c for c in Child.living if c.own), key=lambda c: not isinstance(c, Run)):
        child.end()


def _run_one(number, f):
    global _own
    _own = True
    failures.clear()
    name = f.__name__
    start, runs, watch = time.monotonic(), len(_runs), machine.Watch()
    try:
        f()
    except Skip as e:
        print(f"ok {number} - {name} # SKIP {e}", flush=True)
        return True
    except Broken as e:
        failures.append(str(e))
    except Exception:
        failures.append(traceback.format_exc())
    if failures:
        print(f"not ok {number} - {name}")
        _diagnose(failures)
        _diagnose([watch.sentence()])
        _describe_runs(runs)
    else:
        print(f"ok {number} - {name}")
    print(f"# {time.monotonic() - start:.1f} s", flush=True)
    return not failures


def _run_and_end(number, f):
    global _own
    try:
        return _run_one(number, f)
    finally:
        _own = False
        _end_own()


def main(needs_root=True):
    # What began us may ignore signals (nohup, a script's background); what we run must not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    patterns = [a for a in sys.argv[1:] if not a.startswith("-")]
    facts = [f for f in _facts if not patterns or
             any(f.__name__ == p[1:] if p[0] == "=" else fnmatch.fnmatch(f.__name__, f"*{p}*")
                 for p in patterns if p)]
    for option, wanted in (("-a", True), ("-b", False)):
        if option in sys.argv:
            facts = [f for f in facts if hasattr(f, "alone") == wanted]
    if "-l" in sys.argv:
        print("\n".join(f.__name__ for f in facts))
        return
    print(f"1..{len(facts)}")
    why_not = "needs root: probes and BPF programs" if needs_root and os.geteuid() else None
    good = True
    try:
        for number, f in enumerate(facts, 1):
            if why_not:
                print(f"ok {number} - {f.__name__} # SKIP {why_not}")
            else:
                good = _run_and_end(number, f) and good
    finally:
        _clean()
        if _scratch and good and not _keep:
            shutil.rmtree(_scratch, ignore_errors=True)
        elif _scratch:
            print(f"# kept: {_scratch}")
    sys.exit(0 if good else 1)
