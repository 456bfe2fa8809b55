"""memscope serve at work, and what a service's manager hears of it."""

import glob
import os
import signal
import socket
import subprocess
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
        equal(status, 0, f"exit status after signal {number}: {self.stderr[-500:]}")
        return self

    def windows(self, source="oncpu"):
        """All of a source, in the order of their begins, from every folder of a target."""
        paths = glob.glob(os.path.join(self.archive, "*", f"{source}-*.pb.gz"))
        return sorted((pprof_reader.read(p) for p in paths), key=lambda p: p.time_ns)

    def leavings(self):
        return [f for top, dirs, files in os.walk(self.archive) for f in dirs + files
                if f.startswith(".memscope-") or f.endswith((".tmp", ".part"))]
