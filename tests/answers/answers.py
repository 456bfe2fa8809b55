"""Runs scenarios and judges the last sentence: is it the cause, and does it name the function?

    answers.py [--all | --quick | --held-out | --tuned | NAME…] [--keep DIR] [--repeat N] [--jobs N]

Prints a line a run and, at the end, the confusion matrix: the true cause against the first that was named. As root.
"Short of CPU" is judged only where other programs left the machine alone, for elsewhere it is true of any program that
computes: such a run is shown as disturbed, and counted apart. BUILD and MEMSCOPE as for live tests.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import scenarios  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(HERE, "../../build")))
MEMSCOPE = os.path.abspath(os.environ.get("MEMSCOPE", os.path.join(BUILD, "memscope")))
BUILT = os.path.join(BUILD, "answers")
READY_S = 60
# Services run before what else the machine does, but for those that are to be short of CPU: so their trouble is the
# one that is declared, and no other.
FIRST = -10
OTHERS_CPUS = 0.4  # of other programs, from here on a run is disturbed
PREDICTED = ("leak", "growing", "gc", "lock", "starved", "quota", "disk", "peer", "waiting", "cpu", "mixed", "idle",
             "nothing")
KINDS = {"leaking": "leak", "growing": "growing", "gc-bound": "gc", "contended": "lock", "cpu-bound": "cpu",
         "memory-bound": "cpu", "mixed": "mixed", "idle": "idle", "nothing": "nothing"}
HEALTHY = ("idle", "mixed", "cpu")

Answer = collections.namedtuple("Answer", "row first right named disturbed sentence")


class Missing(Exception):
    """What a scenario needs is not installed."""


def build():
    """Services, each where its compiler is installed."""
    os.makedirs(BUILT, exist_ok=True)
    for out, source, command in (
            ("service", "service.c", ["gcc", "-O2", "-g", "-pthread", "-o", "OUT", "IN"]),
            ("service_cxx", "service_cxx.cc", ["g++", "-O2", "-g", "-pthread", "-o", "OUT", "IN"]),
            ("service_go", "service.go", ["go", "build", "-o", "OUT", "IN"]),
            ("service_rust", "service.rs", ["rustc", "-O", "-g", "-o", "OUT", "IN"]),
            ("Service.class", "Service.java", ["javac", "-d", BUILT, "IN"])):
        out, source = os.path.join(BUILT, out), os.path.join(HERE, source)
        if not shutil.which(command[0]):
            continue
        if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(source):
            subprocess.run([out if w == "OUT" else source if w == "IN" else w for w in command], check=True)


class Peer(threading.Thread):
    """Answers each request after 20 ms."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    @staticmethod
    def answer(client):
        try:
            while client.recv(64):
                time.sleep(0.02)
                client.sendall(b"price 42")
        except OSError:
            pass


class Group:
    """A control group with limits: those of a v1 controller, or of the unified hierarchy."""

    def __init__(self, controller, v1, unified):
        name = f"memscope-answers-{os.getpid()}-{threading.get_ident()}"
        old = os.path.isdir(f"/sys/fs/cgroup/{controller}")
        self.dir = os.path.join(f"/sys/fs/cgroup/{controller}" if old else "/sys/fs/cgroup", name)
        try:
            os.mkdir(self.dir)
            for file, text in (v1 if old else unified).items():
                self.put(file, text)
        except OSError as e:
            self.end()
            raise Missing(f"no limit of {controller} can be set: {e}") from e

    def put(self, file, text):
        with open(os.path.join(self.dir, file), "w") as f:
            f.write(text)

    def end(self):
        for _ in range(50):
            try:
                return os.rmdir(self.dir) if os.path.isdir(self.dir) else None
            except OSError:
                time.sleep(0.1)


def fifth_of_a_cpu():
    return Group("cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"}, {"cpu.max": "20000 100000"})


def slow_disk(path):
    """50 writes a second to the disk that `path` is on: 20 ms each."""
    device = os.stat(path).st_dev
    with open(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/uevent") as f:
        disk = f"{os.major(device)}:{os.minor(device)}"
        if "DEVTYPE=partition" in f.read():
            with open(f"/sys/dev/block/{disk}/../dev") as whole:
                disk = whole.read().strip()
    return Group("blkio", {"blkio.throttle.write_iops_device": f"{disk} 50"}, {"io.max": f"{disk} wiops=50"})


def raise_priority(pid=0):
    """Before other programs. A session is a group of the scheduler, where the kernel makes those (autogroup)."""
    os.setpriority(os.PRIO_PROCESS, pid, FIRST)
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
    with open(f"/proc/{pid}/stat") as f:
        t = f.read().rsplit(")", 1)[1].split()
    return (int(t[11]) + int(t[12])) / os.sysconf("SC_CLK_TCK")


def postgres(scratch):
    """A cluster of its own, made by its own user: it refuses to run as root."""
    found = shutil.which("initdb") or shutil.which("initdb", path="/usr/lib/postgresql/15/bin")
    if not found:
        raise Missing("initdb is not installed")
    data, tools = os.path.join(scratch, "data"), os.path.dirname(os.path.realpath(found))
    os.chmod(scratch, 0o755)
    os.mkdir(data)
    shutil.chown(data, "nobody")
    r = subprocess.run([os.path.join(tools, "initdb"), "-D", data, "-A", "trust", "-N"], user="nobody", cwd=data,
                       env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, capture_output=True, text=True)
    if r.returncode:
        raise Missing(f"initdb: {r.stderr.strip()[-200:]}")
    return [os.path.join(tools, "postgres"), "-D", data, "-k", data, "-c", "listen_addresses="]


class Service:
    """A scenario's program, working; with what disturbs it."""

    def __init__(self, row, scratch):
        self.hogs, self.group, self.peer, self.process = [], None, None, None
        argument = os.path.join(scratch, "journal")
        if row.mode == "peer":
            self.peer = Peer()
            argument = str(self.peer.port)
        command = [w.replace("BUILT", BUILT).replace("SOURCES", HERE) if w != "ARGUMENT" else argument
                   for w in row.command]
        options = {}
        if row.language == "postgres":
            command, options = postgres(scratch), {"user": "nobody", "cwd": scratch}
        if not shutil.which(command[0]):
            raise Missing(f"{os.path.basename(command[0])} is not there")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        stdin=subprocess.DEVNULL, start_new_session=True, **options)
        if row.mode != "starved":
            raise_priority(self.process.pid)
        if row.language in ("redis", "postgres"):
            time.sleep(3)
        else:
            self.wait_ready(row)
        if row.mode == "starved":
            self.hogs = [subprocess.Popen([os.path.join(BUILT, "service"), "hot"], stdout=subprocess.DEVNULL)
                         for _ in range(2 * os.cpu_count())]
        try:
            if row.mode == "quota":
                self.group = fifth_of_a_cpu()
            elif row.mode == "disk":
                self.group = slow_disk(scratch)
        except (OSError, Missing) as e:
            self.end()
            raise Missing(str(e)) from e
        if self.group:
            self.group.put("cgroup.procs", str(self.process.pid))

    def wait_ready(self, row):
        line = []
        reader = threading.Thread(target=lambda: line.append(self.process.stdout.readline()), daemon=True)
        reader.start()
        reader.join(READY_S)
        if line != [b"ready\n"]:
            self.end()
            raise RuntimeError(f"{row.name}: did not become ready")

    def end(self):
        for p in self.hogs + [self.process]:
            p.kill() if p in self.hogs else os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        if self.group:
            self.group.end()
        if self.peer:
            self.peer.listener.close()


def predicted(verdict):
    sentence, kind = verdict["sentence"], verdict["kind"]
    if kind == "starved":
        return "quota" if "quota" in sentence else "starved"
    if kind == "waiting":
        return "disk" if "for disk" in sentence else "peer" if "for a socket" in sentence else "waiting"
    return KINDS[kind]


def judge(row, verdict, disturbed):
    first = predicted(verdict)
    right = first in HEALTHY if row.cause == "healthy" else first == row.cause
    if row.cause == "idle" and "waited" in verdict["sentence"] and "events" not in verdict["sentence"] \
            and "timer" not in verdict["sentence"]:
        right = False  # it accuses a wait of a program at rest
    named = not row.function or row.function in verdict["sentence"]
    return Answer(row, first, right, named, disturbed, verdict["sentence"])


def run(row, keep=None):
    """One answer. Missing: what it needs is not there."""
    scratch = tempfile.mkdtemp(prefix="memscope-answers-")
    out = os.path.join(keep or scratch, row.name)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    try:
        service = Service(row, scratch)
        try:
            begin = cpu_seconds(), own_seconds(service.process.pid), time.monotonic()
            r = subprocess.run([MEMSCOPE, "-q", "-p", str(service.process.pid), "-d", str(row.seconds), "-o", out],
                               capture_output=True, text=True, timeout=300, preexec_fn=raise_priority, start_new_session=True)
            used = cpu_seconds() - begin[0] - (own_seconds(service.process.pid) - begin[1])
            others = used / (time.monotonic() - begin[2])
        finally:
            service.end()
        if not os.path.exists(os.path.join(out, "summary.json")):
            raise RuntimeError(f"{row.name}: memscope exited with {r.returncode}: {r.stderr[-300:]}")
        with open(os.path.join(out, "summary.json")) as f:
            summary = json.load(f)
        # memscope's own CPU time is most of what others used where the machine is quiet.
        own = summary["own"]["cpu_ns"] / 1e9 / row.seconds if summary.get("own") else 0
        return judge(row, summary["verdict"], row.mode != "starved" and others - own > OTHERS_CPUS)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def matrix(answers):
    causes = list(dict.fromkeys(list(scenarios.MODES.values())))
    columns = [p for p in PREDICTED if any(a.first == p for a in answers)]
    lines = ["true cause " + "".join(f"{c:>9}" for c in columns) + "   right  and function"]
    for cause in causes:
        of = [a for a in answers if a.row.cause == cause]
        if of:
            counts = collections.Counter(a.first for a in of)
            lines.append(f"{cause:<11}" + "".join(f"{counts[c] or '.':>9}" for c in columns) +
                         f"{sum(a.right for a in of):>5}/{len(of)}{sum(a.right and a.named for a in of):>9}/{len(of)}")
    return "\n".join(lines)


def report(answers):
    for title, of in (("undisturbed", [a for a in answers if not a.disturbed]),
                      ("disturbed: other programs had CPUs", [a for a in answers if a.disturbed])):
        if of:
            held = [a for a in of if a.row.held_out]
            print(f"\n{title}: {sum(a.right and a.named for a in of)} of {len(of)} right; of those held out "
                  f"{sum(a.right and a.named for a in held)} of {len(held)}\n{matrix(of)}")


def shown(row, keep):
    """One answer, and its line; None where there is none."""
    try:
        a = run(row, keep)
    except (Missing, RuntimeError, subprocess.TimeoutExpired) as e:
        print(f"{'skipped' if isinstance(e, Missing) else 'FAILED':<10}{row.name:<16}{e}", flush=True)
        return None
    verdict = "right" if a.right and a.named else "function" if a.right else "WRONG"
    print(f"{verdict:<10}{row.name:<16}{a.first:<9}{'disturbed ' if a.disturbed else ''}{a.sentence}", flush=True)
    return a


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*")
    p.add_argument("--all", action="store_true")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--held-out", action="store_true")
    p.add_argument("--tuned", action="store_true", help="those that are not held out")
    p.add_argument("--keep")
    p.add_argument("--repeat", type=int, default=1)
    p.add_argument("--jobs", type=int, default=1, help="so many at a time, where the machine has the CPUs")
    args = p.parse_args()
    rows = [r for r in scenarios.scenarios()
            if args.all or r.name in args.names or args.quick and r.quick or args.held_out and r.held_out or
            args.tuned and not r.held_out]
    build()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        answers = [a for a in pool.map(lambda row: shown(row, args.keep), rows * args.repeat) if a]
    report(answers)
    return 0 if answers else 1


if __name__ == "__main__":
    sys.exit(main())
