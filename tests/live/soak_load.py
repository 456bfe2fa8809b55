"""What a host does to a service in an hour: load in turns, clients that hang, stores that come and go, work that is measured."""

import os
import random
import re
import signal
import socket
import subprocess
import threading
import time

from harness import TARGETS, Child
from containers import Group, mounts

TURN_S = 30
# Each some fifth of a CPU: what a service must bear is the number of events, not a machine that has no time.
TURNS = [("threads", 1400), ("processes", 100), ("commands", 20), ("faults", 4000), ("switches", 15000), ("groups", 3), None]
COMMANDS = "import subprocess, time\nwhile True:\n  subprocess.run(['/bin/true'])\n  time.sleep(1 / {})"
FILLS = "b = bytearray(8 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nimport time\nt = time.monotonic() + {}\nwhile time.monotonic() < t: time.sleep(0.02); sum(range(20000))"
# Its pace is its own: a share of a CPU; a line each second: work done, CPU ns of it.
COMPUTES = """import time
done = 0
at = time.monotonic()
while True:
    end = time.thread_time_ns() + 4000000
    while time.thread_time_ns() < end:
        x = 0
        for i in range(2000): x ^= i * 7
        done += 1
    time.sleep(0.04)
    if time.monotonic() - at >= 1:
        at = time.monotonic()
        print(done, time.process_time_ns(), flush=True)
"""
SWITCHES = """import os, time
there, back = os.pipe(), os.pipe()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
if not os.fork():
    os.close(there[1])
    while os.read(there[0], 1): os.write(back[1], b"x")
    os._exit(0)
os.close(there[0])
done, at = 0, time.monotonic()
while True:
    for _ in range(150):
        os.write(there[1], b"x")
        os.read(back[0], 1)
        done += 1
    time.sleep(0.04)
    if time.monotonic() - at >= 1:
        at = time.monotonic()
        print(done, time.process_time_ns(), flush=True)
"""


def nice():
    os.setsid()
    os.nice(10)


class Background(threading.Thread):
    """Something that goes on until stop(); what broke it is in `broke`."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over, self.broke = threading.Event(), None
        self.start()

    def run(self):
        try:
            self.work()
        except Exception as e:  # pylint: disable=broad-except
            self.broke = repr(e)

    def stop(self):
        self.over.set()
        self.join(20)


class Load(Background):
    """The turns, one after the other; `now` is the one at work."""

    now = None

    def work(self):
        while True:
            for turn in TURNS:
                self.now = turn and turn[0]
                end = time.monotonic() + TURN_S
                if turn and turn[0] == "groups":
                    self.groups(turn[1], end)
                    if self.over.is_set():
                        return
                    continue
                argv = turn and (["/usr/bin/python3", "-c", COMMANDS.format(turn[1])] if turn[0] == "commands" else
                                 [os.path.join(TARGETS, "churn"), turn[0], str(turn[1])])
                child = argv and Child(argv, stdout=subprocess.DEVNULL, preexec_fn=nice)
                self.over.wait(max(0, end - time.monotonic()))
                if child:
                    child.end()
                if self.over.is_set():
                    return

    def groups(self, n, end):
        """Containers that are started again: groups are made, filled, empty and removed, by the same names."""
        while time.monotonic() < end and not self.over.is_set():
            # One that was killed has left groups of its own.
            made = [Group(f"memscope-soak-{os.getpid()}-{i}", "memory" if "memory" in mounts() else "") for i in range(n)]

            def enter(group):
                group.take(os.getpid())
                nice()
            inside = [Child(["/usr/bin/python3", "-c", FILLS.format(random.uniform(0.5, 4))],
                            preexec_fn=lambda g=group: enter(g)) for group in made]
            for child in inside:
                child.process.wait()
                child.end()
            for group in made:
                group.remove()


class Hanging(Background):
    """Clients that open connections and say nothing, half a header, a byte a second, or do not read what they asked for."""

    KINDS = (b"", b"GET /metrics HTTP/1.1\r\nHost: local", None, b"GET /debug/pprof/profile?seconds=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
             b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx")

    def __init__(self, addresses, number):
        self.addresses, self.number, self.opened, self.ended = addresses, number, 0, 0
        super().__init__()

    def begin(self, i):
        address = self.addresses[i % len(self.addresses)]
        s = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        s.settimeout(2)
        s.connect(address)
        s.setblocking(False)
        kind = self.KINDS[i % len(self.KINDS)]
        if kind:
            s.send(kind)
        self.opened += 1
        return s

    def work(self):
        held = [None] * self.number
        line = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-Slow: 1\r\n" * 1000
        while not self.over.wait(1):
            for i, s in enumerate(held):
                try:
                    if s is None:
                        held[i] = self.begin(i)
                        continue
                    if self.KINDS[i % len(self.KINDS)] is None:
                        s.send(line[:1])
                    elif i % 2 and s.recv(1) == b"":
                        raise OSError("ended")
                except BlockingIOError:
                    pass
                except OSError:
                    if s is not None:
                        s.close()
                        self.ended += 1
                    held[i] = None
        for s in held:
            if s is not None:
                s.close()


class Comes(Background):
    """A store that is stopped and started again, does not answer for a while, or says that it has no time."""

    def __init__(self, store):
        self.store = store
        super().__init__()

    def work(self):
        while not self.over.wait(random.uniform(25, 45)):
            how = random.choice(("stopped", "never", "busy"))
            if how == "stopped":
                self.store.end()
                self.over.wait(random.uniform(5, 40))
                self.store.begin()
            else:
                self.store.always = "never" if how == "never" else (503, {"Retry-After": "1"})
                self.over.wait(15)
                self.store.always = None


class Worker:
    """A program with work of its own; each second's [(when, work, CPU ns)]."""

    def __init__(self, program):
        self.child = Child(["/usr/bin/python3", "-c", program], stdout=subprocess.PIPE, preexec_fn=nice)
        self.rows = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.child.process.stdout:
            work, ns = map(int, line.split())
            self.rows.append((time.monotonic(), work, ns))

    def between(self, begin, end):
        """Work by CPU second, by second; None where there is too little of it."""
        rows = [r for r in self.rows if begin <= r[0] <= end]
        if len(rows) < 4:
            return None
        (t0, w0, c0), (t1, w1, c1) = rows[0], rows[-1]
        return (w1 - w0) / ((c1 - c0) / 1e9), (w1 - w0) / (t1 - t0)


def tree(pid):
    """A process and its children, theirs too."""
    found = [pid]
    for p in found:
        try:
            for task in os.listdir(f"/proc/{p}/task"):
                with open(f"/proc/{p}/task/{task}/children", encoding="ascii") as f:
                    found += map(int, f.read().split())
        except OSError:
            pass
    return found


def held(pid):
    """(lasting descriptors, threads, RSS bytes of it and its children, of its own those of no file and of files, CPU seconds with reaped children)"""
    fds = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:  # what clients and single processes have is as many as there are
            fds += not re.match(r"socket:|/proc/|.*\(deleted\)$", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass
    rss = []
    for p in tree(pid):
        try:
            with open(f"/proc/{p}/status", encoding="ascii", errors="replace") as f:
                rss.append([1024 * int(kb) for kb in re.findall(r"(?:VmRSS|RssAnon|RssFile):\s+(\d+)", f.read())] or [0, 0, 0])
        except OSError:
            pass
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        words = f.read().rpartition(")")[2].split()
    return fds, len(os.listdir(f"/proc/{pid}/task")), sum(all_of_it for all_of_it, *_ in rss), *rss[0][1:], sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")
