"""memscope serve at work, and what a service's manager hears of it."""

import glob
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from harness import *


class Manager:
    """What systemd is to a service: the socket of $NOTIFY_SOCKET, and what came there."""

    def __init__(self):
        self.name = os.path.join(scratch("notify"), "socket")
        os.makedirs(os.path.dirname(self.name), exist_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.name)
        self.messages = []
        self.times = []  # when each came, of the clock of time.monotonic()
        self._news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            message = self.socket.recv(4096).decode()
            with self._news:
                self.messages.append(message)
                self.times.append(time.monotonic())
                self._news.notify_all()

    def count(self, line):
        return sum(line in m.split("\n") for m in self.messages)

    def heard(self, line):
        """[(when, its lines as a dict)] of the messages that have a line."""
        return [(at, dict(x.split("=", 1) for x in m.split("\n"))) for at, m in zip(self.times, self.messages) if line in m.split("\n")]

    def wait(self, line, times=1, timeout=READY_SEC):
        with self._news:
            if not self._news.wait_for(lambda: self.count(line) >= times, timeout):
                raise Broken(f"the manager heard {line} {self.count(line)} times, not {times}: {self.messages[-5:]}")


    def catch_up(self):
        """What was sent before is in `messages`: they come in their order."""
        mark = f"mark {len(self.messages)} {time.monotonic()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(mark.encode(), self.name)
        self.wait(mark)


class Serve(Child):
    """memscope serve at work, under a manager."""

    def __init__(self, *args, env=None, prefix=(), archive=None):
        self.manager = Manager()
        self.archive = archive or scratch("archive")
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

    def says(self, words, timeout=READY_SEC):
        deadline = time.monotonic() + timeout
        while words not in self.stderr:
            if time.monotonic() > deadline:
                raise Broken(f"no word of \"{words}\" on stderr: {self.stderr[-500:]}")
            time.sleep(0.02)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(FINISH_SEC)
        self.manager.catch_up()
        equal(status, 0, f"exit status after signal {number}: {self.stderr[-500:]}")
        return self

    def windows(self, source="oncpu"):
        """All of a source, in the order of their begins, from every folder of a target."""
        paths = glob.glob(os.path.join(self.archive, "*", f"{source}-*.pb.gz"))
        return sorted((pprof_reader.read(p) for p in paths), key=lambda p: p.time_ns)

    def leavings(self):
        return [f for top, dirs, files in os.walk(self.archive) for f in dirs + files
                if f.startswith(".memscope-") or f.endswith((".tmp", ".part"))]


def capability_numbers(names):
    with open("/usr/include/linux/capability.h", encoding="utf-8") as f:
        numbers = dict(re.findall(r"#define (CAP_\w+)\s+(\d+)", f.read()))
    return {int(numbers[name]) for name in names}


def call_numbers(words):
    """Of system calls and groups of them (@system-service), as systemd has them."""
    names, todo = set(), list(words)
    while todo:
        word = todo.pop()
        if not word.startswith("@"):
            names.add(word)
            continue
        said = subprocess.run(["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True)
        todo += [w for line in said.stdout.splitlines()[1:] for w in line.split("#")[0].split()]
    for header in (f"/usr/include/{os.uname().machine}-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h"):
        if os.path.exists(header):
            with open(header, encoding="utf-8") as f:
                numbers = dict(re.findall(r"#define __NR_(\w+)\s+(\d+)", f.read()))
            return {int(numbers[n]) for n in names if n in numbers}
    skip("there is no header with the numbers of system calls")


# What systemd does to a process for CapabilityBoundingSet=, NoNewPrivileges= and SystemCallFilter=, before its program.
CONFINED = """
import ctypes, os, struct, sys
capabilities, calls = ({int(n) for n in word.split(",")} for word in sys.argv[1:3])
allow, eperm = 0x7fff0000, 0x00050000 | 1
code = [(0x20, 0, 0, 0)]  # load the number; for each that is allowed: equal? then allow
for number in sorted(calls):
    code += [(0x15, 0, 1, number), (0x06, 0, 0, allow)]
code.append((0x06, 0, 0, eperm))
program = b"".join(struct.pack("<HBBI", *c) for c in code)
buffer = ctypes.create_string_buffer(program, len(program))
header = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(buffer)), 16)
libc = ctypes.CDLL(None)
for number in range(64):
    if number not in capabilities:
        libc.prctl(24, number, 0, 0, 0)  # PR_CAPBSET_DROP
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, header, 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
    sys.exit("the filter of system calls was refused")
os.execv(sys.argv[3], sys.argv[3:])
"""


def confined(capabilities, calls):
    return [sys.executable, "-c", CONFINED, ",".join(map(str, capabilities)), ",".join(map(str, calls))]
