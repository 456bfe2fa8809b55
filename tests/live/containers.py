"""Control groups, and what looks like containers: a group with an id in its name, a root of its own, a
namespace of pids, and state files of an engine below a scratch root."""

import glob
import json
import os
import re
import shutil
import subprocess

from harness import *


def mounts():
    """{name: directory} of the hierarchies that are mounted: "" is the unified one."""
    found = {}
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            words, tail = line.split(" - ")
            kind, _, options = tail.split()[:3]
            if words.split()[3] != "/":
                continue
            if kind == "cgroup2":
                found[""] = words.split()[4]
            elif kind == "cgroup":
                found[options.split(",")[-1]] = words.split()[4]
    return found


class Group:
    """A control group, made here; gone with the test."""

    made = []

    def __init__(self, name, hierarchy=None):
        found = mounts()
        if hierarchy is None:  # any will do: the unified one, or that of processes' numbers on a host that has none
            hierarchy = "" if "" in found else "pids"
        base = found.get(hierarchy)
        if base is None:
            skip(f"no hierarchy of control groups {hierarchy or '(unified)'} is mounted")
        self.dir = os.path.join(base, name)
        try:
            self.make()
        except OSError as e:
            skip(f"a control group cannot be made: {e}")
        Group.made.append(self)

    def make(self):
        os.mkdir(self.dir)

    def pids(self):
        with open(os.path.join(self.dir, "cgroup.procs"), encoding="ascii") as f:
            return [int(x) for x in f.read().split()]

    def take(self, pid):
        with open(os.path.join(self.dir, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(pid))

    def remove(self):
        """Those in it have ended; the kernel lets go of them a little later."""
        deadline = time.monotonic() + READY_SEC
        while os.path.isdir(self.dir):
            try:
                os.rmdir(self.dir)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def memory_group(limit):
    """A control group that allows so many bytes of memory; skips where none can be made."""
    for top, knob in ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"):
        group = os.path.join(top, f"memscope-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(os.path.join(group, knob), "w", encoding="ascii") as f:
                f.write(str(limit))
            return group
        except OSError:
            os.rmdir(group)
    return skip("no control group that limits memory can be made here")


def grouped(f):
    """A fact whose groups are removed, and the processes in them ended first."""
    @functools.wraps(f)
    def wrapper():
        try:
            f()
        finally:
            for child in list(Child.living):
                child.end()
            for group in Group.made:
                group.remove()
            Group.made.clear()
    return wrapper


def entering(group, argv, root=None, pids=False, before=()):
    """argv in a group; with a root and a pid namespace of its own."""
    script = 'echo 0 > "$0"/cgroup.procs && exec "$@"'
    argv = ["sh", "-c", script, group.dir, *before, *(["chroot", root] if root else []), *map(str, argv)]
    return ["unshare", "-pf", "--kill-child", *argv] if pids else argv


class Inside(Target):
    """A target in a group; `inside`: its pid there."""

    def __init__(self, group, name, *args, root=None, pids=False, before=()):
        path = f"/{name}" if root else os.path.join(TARGETS, name)
        if not root and not os.path.exists(path):
            raise Broken(f"{path} is not built (make targets)")
        Child.__init__(self, entering(group, [path, *args], root, pids, before),
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._line("ready", READY_SEC)
        self.inner = group.pids()[0]

    @property
    def pid(self):
        return getattr(self, "inner", self.process.pid)


def root_of(path):
    """A root with one program and the libraries that it needs. Its own directory: gone with the test."""
    root = scratch("root")
    os.mkdir(root)
    os.chmod(root, 0o755)
    shutil.copy(path, root)
    out = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    for lib in re.findall(r"(/\S+) \(0x", out):
        os.makedirs(root + os.path.dirname(lib), exist_ok=True)
        shutil.copy(os.path.realpath(lib), root + lib)
    return root


class Engines:
    """State files of engines, below a root of their own."""

    def __init__(self):
        self.root = scratch("engines")
        self.env = dict(os.environ, MEMSCOPE_ENGINES_ROOT=self.root)
        self.podman, self.tasks = [], 0
        os.mkdir(self.root)

    def _put(self, path, what):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(what, f)

    def add_podman(self, ident, name):
        self.podman = [c for c in self.podman if c["names"] != [name]]
        self.podman.append({"id": ident, "names": [name], "metadata": '{"image-name":"localhost/t:1"}'})
        self._put("var/lib/containers/storage/overlay-containers/containers.json", self.podman)

    def add_docker(self, ident, name, service=None):
        labels = {"com.docker.compose.service": service} if service else {}
        self._put(f"var/lib/docker/containers/{ident}/config.v2.json",
                  {"Name": "/" + name, "Config": {"Image": "t:1", "Labels": labels}})

    def add_containerd(self, ident, path):
        self._put(f"run/containerd/io.containerd.runtime.v2.task/default/{ident}/config.json",
                  {"linux": {"cgroupsPath": path}})


def new_id():
    return os.urandom(32).hex()


# --- real engines -------------------------------------------------------------------------------

# A busy loop and sleeps of 20 ms: all that is in the image is busybox, as the programs that it is called by.
BUSY = ("/bin/sh", "-c", "while :; do :; done")
BRIEF = ("/bin/sh", "-c", "while :; do sleep 0.02; done")


# What an image has beside it: they say of themselves what they did.
MEASURED = ("alloc_truth", "cpu_split")


def image():
    """A root with a static busybox, and the targets that measure themselves."""
    busybox = tool("busybox")
    if not busybox or "statically" not in subprocess.run(
            ["file", "-L", busybox], capture_output=True, text=True, check=False).stdout + "statically" * (
                not tool("file")):
        skip("busybox-static is not installed")
    root = scratch("image")
    os.makedirs(root + "/bin")
    for name in ("busybox", "sh", "sleep"):
        shutil.copy(busybox, f"{root}/bin/{name}")
    for name in MEASURED:
        shutil.copytree(root_of(os.path.join(TARGETS, name)), root, dirs_exist_ok=True)
    return root


def image_tar():
    root, tar = image(), scratch("image") + ".tar"
    subprocess.run(["tar", "-cf", tar, "-C", root, *os.listdir(root)], check=True)
    return tar


class Engine:
    """A command line of an engine with its state below a scratch root."""

    # A container that may ask the kernel for perf's account of itself.
    MEASURES = ("--security-opt", "seccomp=unconfined", "--cap-add", "SYS_ADMIN")

    def __init__(self):
        self.root = scratch("engine")
        self.env = dict(os.environ, MEMSCOPE_ENGINES_ROOT=self.root)
        os.makedirs(self.root + "/run")
        self.daemons = []

    def call(self, *args, check=True):
        done = subprocess.run([*self.command, *args], capture_output=True, text=True, env=self.env,
                              check=False, timeout=FINISH_SEC)
        if check and done.returncode:
            # What an engine needs and has not got here is the machine's affair.
            skip(f"{self.command[0]} {args[0]} does not work here: {done.stderr.strip()[-200:]}")
        return done.stdout.strip()

    def run(self, name, argv, *options):
        return self.call(*self.start("-d", name, argv, *options))

    def pid_of(self, name):
        return int(self.call("inspect", "-f", "{{.State.Pid}}", name))

    def daemon(self, argv, ready):
        log = open(self.root + "/log", "ab")
        child = Child(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)
        self.daemons.append(child)
        deadline = time.monotonic() + READY_SEC
        while not ready():
            if not child.alive() or time.monotonic() > deadline:
                with open(self.root + "/log", encoding="utf-8", errors="replace") as f:
                    skip(f"{argv[0]} does not start here: {f.read().strip()[-200:]}")
            time.sleep(0.05)


class Podman(Engine):
    def __init__(self):
        need("podman", "runc", "conmon")
        super().__init__()
        r = self.root
        self.command = ["podman", "--root", r + "/var/lib/containers/storage", "--runroot", r + "/run",
                        "--tmpdir", r + "/tmp", "--storage-driver", "overlay", "--cgroup-manager", "cgroupfs",
                        "--events-backend", "file", "--runtime", "runc"]
        self.call("import", "-q", image_tar(), "localhost/box:1")

    @staticmethod
    def start(how, name, argv, *options):
        return ("run", how, "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096", "--network", "none",
                "--name", name, *options, "localhost/box:1", *argv)

    def restart(self, name):
        self.call("restart", "-t", "0", name)

    def remove(self, name):
        self.call("rm", "-f", "-t", "0", name)

    def end(self):
        self.call("rm", "-f", "-t", "0", "-a", check=False)
        # Its store is mounted below itself.
        subprocess.run(["umount", self.root + "/var/lib/containers/storage/overlay"], check=False,
                       capture_output=True)


class Containerd(Engine):
    MEASURES = ("--privileged",)

    def __init__(self):
        need("containerd", "ctr", "runc")
        super().__init__()
        self.image, socket = image(), self.root + "/run/containerd.sock"
        config = self.root + "/config.toml"
        # State is where it is on a host, below this root.
        with open(config, "w", encoding="ascii") as f:
            f.write(f'version = 2\nroot = "{self.root}/lib"\nstate = "{self.root}/run/containerd"\n'
                    f'[grpc]\naddress = "{socket}"\n')
        self.command = ["ctr", "--address", socket]
        self.daemon(["containerd", "-c", config], lambda: subprocess.run(
            [*self.command, "version"], capture_output=True, check=False).returncode == 0)

    def start(self, how, name, argv, *options):
        # Attached is what it does unless it is told otherwise.
        return ("run", *([how] if how == "-d" else []), *options, "--rootfs", self.image, name, *argv)

    def run(self, name, argv):
        super().run(name, argv)
        return name

    def pid_of(self, name):
        return next(int(line.split()[1]) for line in self.call("task", "ls").splitlines()[1:]
                    if line.split()[0] == name)

    def remove(self, name):
        self.call("task", "kill", "-s", "9", name, check=False)
        self.call("task", "rm", "-f", name, check=False)
        self.call("container", "rm", name, check=False)

    def end(self):
        for name in self.call("container", "ls", "-q", check=False).split():
            self.remove(name)
        for child in self.daemons:
            child.process.terminate()
            child.process.wait(FINISH_SEC)


class Docker(Engine):
    def __init__(self):
        need("dockerd", "docker", "containerd", "runc")
        super().__init__()
        r = self.root
        with open(r + "/daemon.json", "w", encoding="ascii") as f:
            f.write("{}")
        self.command = ["docker", "-H", f"unix://{r}/docker.sock"]
        self.daemon(["dockerd", "--data-root", r + "/var/lib/docker", "--exec-root", r + "/exec", "-H",
                     f"unix://{r}/docker.sock", "-p", r + "/pid", "--iptables=false", "--ip6tables=false",
                     "--bridge=none", "--storage-driver", "overlay2", "--config-file", r + "/daemon.json"],
                    lambda: subprocess.run([*self.command, "ps"], capture_output=True, check=False).returncode == 0)
        self.call("import", image_tar(), "box:1")

    @staticmethod
    def start(how, name, argv, *options):
        return ("run", how, "--network", "none", "--name", name, *options, "box:1", *argv)

    def restart(self, name):
        self.call("restart", "-t", "0", name)

    def remove(self, name):
        self.call("rm", "-f", name)

    def end(self):
        ids = self.call("ps", "-aq", check=False).split()
        if ids:
            self.call("rm", "-f", *ids, check=False)
        for child in self.daemons:
            child.process.terminate()
            child.process.wait(FINISH_SEC)


class Served(Target):
    """A target in a container of an engine."""

    def __init__(self, engine, name, *argv, options=()):
        argv = engine.start("-i", name, [f"/{argv[0]}", *map(str, argv[1:])], *options)
        Child.__init__(self, [*engine.command, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=engine.env)
        self._line("ready", READY_SEC)
        self.inner = engine.pid_of(name)

    @property
    def pid(self):
        return getattr(self, "inner", self.process.pid)


def two_containers():
    """Two, and what each way of naming them calls their folders; a target in each, and one in neither."""
    engines, ids, names = Engines(), [new_id(), new_id()], ("web", "db")
    for ident, name in zip(ids, names):
        engines.add_podman(ident, name)
    groups = [Group(f"libpod-{ident}.scope") for ident in ids]
    return engines, groups, {"-c": names, "-G": [os.path.basename(g.dir)[:48] for g in groups]}  # cut, as files are named


def named(how, groups):
    return {"-c": ("-c", "web,db"), "-G": ("-G", ",".join(g.dir for g in groups)), "-a": ("-a",)}[how]


def rows_in(path):
    """Of a table that has a line of names."""
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8") as f:
        return f.read().count("\n") - 1
