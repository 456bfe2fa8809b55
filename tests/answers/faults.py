"""What goes wrong around a service: a slow peer, a slow disk, a quota, other programs on its CPUs, a stop."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import threading
import time


class Missing(Exception):
    """What a scenario needs is not installed."""


class Peer(threading.Thread):
    """Answers each request after 20 ms."""

    ANSWER = b"price 42"
    DELAY_S = 0.02
    WATCH_S = 30  # who asks for what is new, and there is nothing

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

    def answer(self, client):
        try:
            while True:
                request = client.recv(4096)
                if not request:
                    return
                time.sleep(self.WATCH_S if request == b"watch" else self.DELAY_S)
                client.sendall(self.ANSWER)
        except OSError:
            pass

    def end(self):
        self.listener.close()


class QuickPeer(Peer):
    """A database that is not the trouble."""

    DELAY_S = 0


class QueuePeer(Peer):
    """Who asks for the next job waits for a second, and the answer is that there is none."""

    DELAY_S = 1


class NewsPeer(Peer):
    """Who asks once is sent news ever after, twice a second."""

    def answer(self, client):
        try:
            client.recv(4096)
            while True:
                client.sendall(b"news")
                time.sleep(0.5)
        except OSError:
            pass


class HttpPeer(Peer):
    ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n42"


# By the mode of a server.
PEERS = {"front": HttpPeer, "keepalive": QuickPeer, "news": NewsPeer, "worker": QueuePeer}


class Clients:
    """Ask 127.0.0.1:port again and again, each `pause` seconds after its answer; an answer ends with an "!"."""

    def __init__(self, port, n, pause=0):
        self.over = threading.Event()
        for _ in range(n):
            threading.Thread(target=self.ask, args=(port, pause), daemon=True).start()

    def ask(self, port, pause):
        try:
            with socket.create_connection(("127.0.0.1", port)) as s:
                while not self.over.wait(pause):
                    s.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
                    got = b""
                    while not got.endswith(b"!"):
                        got = s.recv(4096)
                        if not got:
                            return
        except OSError:
            pass

    def end(self):
        self.over.set()


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

    def add(self, pid):
        try:
            self.put("cgroup.procs", str(pid))
        except ProcessLookupError:
            pass  # it has ended

    def end(self):
        for _ in range(50):
            try:
                return os.rmdir(self.dir) if os.path.isdir(self.dir) else None
            except OSError:
                time.sleep(0.1)


def fifth_of_a_cpu():
    """Before other programs, as long as there is some left: so that it is the quota that holds it back."""
    return Group("cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000", "cpu.shares": "262144"},
                 {"cpu.max": "20000 100000", "cpu.weight": "10000"})


def slow_disk(path):
    """50 writes a second to the disk that `path` is on: 20 ms each."""
    device = os.stat(path).st_dev
    with open(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/uevent") as f:
        disk = f"{os.major(device)}:{os.minor(device)}"
        if "DEVTYPE=partition" in f.read():
            with open(f"/sys/dev/block/{disk}/../dev") as whole:
                disk = whole.read().strip()
    return Group("blkio", {"blkio.throttle.write_iops_device": f"{disk} 50"}, {"io.max": f"{disk} wiops=50"})


class Hogs:
    """Programs that compute, twice as many as there are CPUs, or one for each."""

    def __init__(self, service, each=2):
        self.all = [subprocess.Popen([service, "hot"], stdout=subprocess.DEVNULL, start_new_session=True)
                    for _ in range(each * os.cpu_count())]

    def end(self):
        for p in self.all:
            p.kill()
            p.wait()


class Stop(threading.Thread):
    """Stops a process a second after start(), and continues it after 60 % of the run."""

    def __init__(self, pid, seconds):
        super().__init__(daemon=True)
        self.pid, self.seconds, self.over = pid, seconds, threading.Event()

    def run(self):
        self.over.wait(1)
        os.kill(self.pid, signal.SIGSTOP)
        self.over.wait(0.6 * self.seconds)
        os.kill(self.pid, signal.SIGCONT)

    def end(self):
        self.over.set()
        self.join()


class FileLock:
    """Of a file, exclusive, until end()."""

    def __init__(self, path):
        self.file = open(path, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def end(self):
        self.file.close()


def children(pid):
    """All of them, and theirs."""
    found_ones = []
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/children") as f:
                for child in map(int, f.read().split()):
                    found_ones += [child] + children(child)
    except OSError:
        pass  # it has ended
    return found_ones


def kill_all(process):
    """With its children: PostgreSQL's have sessions of their own."""
    pids = [process.pid] + children(process.pid)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    process.wait()


def found(program, path=None):
    """Where it is; Missing, if it is not installed."""
    at = shutil.which(program) or shutil.which(program, path=path or "/usr/sbin:/usr/lib/postgresql/15/bin")
    if not at:
        raise Missing(f"{program} is not installed")
    return at
