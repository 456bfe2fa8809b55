"""memscope serve as a service: what its manager hears, SIGHUP, SIGTERM, and the windows it leaves."""

import glob
import os
import re
import signal
import socket
import subprocess
import threading
import time

from containers import *
from harness import *


class Manager:
    """What systemd is to a service: the socket of $NOTIFY_SOCKET, and what came there."""

    def __init__(self):
        self.name = os.path.join(scratch("notify"), "socket")
        os.makedirs(os.path.dirname(self.name), exist_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.name)
        self.messages = []
        self._news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            message = self.socket.recv(4096).decode()
            with self._news:
                self.messages.append(message)
                self._news.notify_all()

    def count(self, line):
        return sum(line in m.split("\n") for m in self.messages)

    def wait(self, line, times=1, timeout=READY_SEC):
        with self._news:
            if not self._news.wait_for(lambda: self.count(line) >= times, timeout):
                raise Broken(f"the manager heard {line} {self.count(line)} times, not {times}: {self.messages[-5:]}")


class Serve(Child):
    """memscope serve at work, under a manager."""

    def __init__(self, *args, env=None, prefix=()):
        self.manager = Manager()
        self.archive = scratch("archive")
        self.errors = scratch("stderr")
        with open(self.errors, "wb") as stderr:
            super().__init__([*prefix, MEMSCOPE, "serve", "--archive", self.archive, *map(str, args)],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
                             env={**os.environ, "NOTIFY_SOCKET": self.manager.name, **(env or {})})

    @property
    def stderr(self):
        with open(self.errors, encoding="utf-8", errors="replace") as f:
            return f.read()

    def ready(self, times=1):
        self.manager.wait("READY=1", times)
        return self

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(FINISH_SEC)
        equal(status, 0, f"exit status after signal {number}: {self.stderr[-500:]}")
        return self

    def windows(self, source="oncpu"):
        """All of a source, in the order of their begins, from every folder of a target."""
        paths = glob.glob(os.path.join(self.archive, "*", f"{source}-*.pb.gz"))
        return sorted((pprof_reader.read(p) for p in paths), key=lambda p: p.time_ns)

    def leavings(self):
        return [f for top, dirs, files in os.walk(self.archive) for f in dirs + files
                if f.startswith(".memscope-") or f.endswith((".tmp", ".part"))]


def group_name():
    return f"memscope-live-{os.getpid()}-{os.urandom(4).hex()}"


def config(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


@fact
def a_reload_is_a_new_run_in_the_same_process_or_nothing_at_all():
    target = Target("cpu_split", 10000)
    target.say("go")
    conf = scratch("memscope.conf")
    config(conf, f"# of a test\npid = {target.pid}\nevery = 2\nonly = oncpu\n")
    serve = Serve("--config", conf, "-F", 199, env={"WATCHDOG_USEC": "20000000"}).ready()
    pid = serve.pid
    config(conf, f"pid = {target.pid}\nevry = 3\n")
    serve.process.send_signal(signal.SIGHUP)
    serve.ready(2)
    check(f"{conf}:2: there is no option \"evry\"" in serve.stderr, f"no word of the mistake: {serve.stderr}")
    check("the run goes on as it was" in serve.stderr, serve.stderr)
    config(conf, f"pid = {target.pid}\nevery = 1\nonly = oncpu\n")
    serve.process.send_signal(signal.SIGHUP)
    serve.ready(3)
    check(serve.alive() and serve.pid == pid, "another process")
    time.sleep(2.2)
    serve.stop()
    heard = serve.manager
    check(heard.count("RELOADING=1") >= 2 and heard.count("STOPPING=1") == 1, f"{heard.messages}")
    windows = serve.windows()
    # What lies between two windows: nothing, but once for the time in which one run followed the other.
    gaps = [b.time_ns - a.time_ns - a.duration_ns for a, b in zip(windows, windows[1:])]
    said = re.search(r"nothing was gathered for ([0-9.]+) (m?s)", serve.stderr)
    check(said, serve.stderr)
    longest = float(said.group(1)) * (1e9 if said.group(2) == "s" else 1e6)
    equal(sum(gap > 50e6 for gap in gaps), 1, f"gaps {gaps}")
    within(max(gaps), 0.8 * longest, 1.2 * longest, "the gap and what is said of it")
    check(windows[-2].duration_ns < 1.5e9, "the new length of windows is not in force")
    equal(serve.leavings(), [], "what is left")
    equal(serve.process.stdout.read(), b"", "stdout")


@fact
def mistakes_in_the_file_are_named_by_line_and_end_with_status_2():
    conf = scratch("memscope.conf")

    def says(text, mode=0o600):
        config(conf, text, mode)
        done = subprocess.run([MEMSCOPE, "serve", "--config", conf, "--check-config"], capture_output=True, text=True,
                              timeout=20)
        return done.returncode, done.stderr

    equal(says("archive = /tmp/x\nkeep = 7d,20G\n"), (0, ""), "a good one")
    for text, line, words in (("archive = /tmp/x\nevery = soon\n", 2, "is not a number"),
                              ("archive = /tmp/x\n\nonly = oncpu,of\n", 3, "--only takes"),
                              ("archive = /tmp/x\nkeep = much\n", 2, "--keep"),
                              ("archiv = /tmp/x\n", 1, "did you mean archive?")):
        status, stderr = says(text)
        equal(status, 2, text)
        check(f"{conf}:{line}: " in stderr and words in stderr, f"{text!r}: {stderr}")
    status, stderr = says("archive = /tmp/x\n", 0o666)
    check(status == 2 and "chmod go-w" in stderr, stderr)


@fact
def the_journal_has_few_lines_and_their_priority():
    target = Target("cpu_split", 10000)
    target.say("go")
    serve = Serve("-p", target.pid, "--every", 1, "--only", "oncpu", "-q").ready()
    serve.process.send_signal(signal.SIGHUP)
    time.sleep(1.5)
    serve.process.send_signal(signal.SIGUSR1)
    time.sleep(0.7)
    serve.stop(signal.SIGINT)
    equal(serve.stderr, "memscope: SIGHUP: there is no --config FILE to read again: the run goes on\n", "stderr")
    check(len(serve.windows()) >= 3, "windows are missing")
    # Priorities only where stderr is the journal's.
    read, write = os.pipe()
    stream = os.fstat(write)
    done = subprocess.Popen([MEMSCOPE, "serve"], stderr=write,
                            env={**os.environ, "JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino}"})
    os.close(write)
    equal(done.wait(20), 2, "exit status")
    check(os.read(read, 1000).startswith(b"<3>memscope: serve needs --archive"), "no priority")
    os.close(read)



@fact
@grouped
def targets_are_waited_for_and_found_again():
    # By a pattern that nothing matches yet; then twice in a row.
    word = f"memscope-live-{os.urandom(4).hex()}"
    serve = Serve("-n", word, "--every", 1, "--only", "oncpu", "-F", 199).ready()
    check("STATUS=Waiting: no running process" in serve.manager.messages[0], f"{serve.manager.messages}")
    for times in (2, 3):
        spin = Child(["python3", "-c", f"'{word}'\nwhile True: pass"])
        serve.ready(2 * times - 2)
        has_worked(spin.pid, 0.3)
        spin.end()
        serve.ready(2 * times - 1)
    serve.stop()
    equal(serve.stderr.count("memscope: waiting: no running process"), 3, serve.stderr)
    pids = {s.labels["pid"] for p in serve.windows() for s in p.samples}
    equal(len(pids), 2, "processes in the windows")


@fact
@grouped
def a_run_begins_with_the_groups_that_are_there_and_takes_up_the_others():
    early, late = Group(group_name()), group_name()
    first = Inside(early, "cpu_split", 20000)
    first.say("go")
    serve = Serve("-G", f"{early.dir},/{late}", "--every", 1, "--only", "oncpu", "-F", 199).ready()
    check(f"waiting for /{late}, too" in serve.stderr, serve.stderr)
    group = Group(late)
    second = Inside(group, "cpu_split", 20000)
    second.say("go")
    serve.ready(2)
    has_worked([first.pid, second.pid], 0.3)
    first.end()
    second.end()
    time.sleep(0.5)
    check(serve.alive(), "it ended with its targets")
    serve.stop()
    pids = {s.labels["pid"] for p in serve.windows() for s in p.samples}
    equal(pids, {first.pid, second.pid}, "processes in the windows")


main()
