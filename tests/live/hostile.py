"""What facts about hostile targets share: a cage of their own, ELF files that lie, and what no output may have in it."""

import base64
import os
import re
import struct
import subprocess
import threading
import time
import zlib

import containers
from harness import *

HZ = 999
# In files of this machine that no cage may look into.
SECRET = "hunter2_of_the_host"
PAGE = 4096
CODE = {"x86_64": bytes.fromhex("48ffcf75fbc3"),             # 1: dec %rdi; jne 1b; ret
        "aarch64": bytes.fromhex("000400f1e1ffff54c0035fd6")}[os.uname().machine]


class Cage(Target):
    """A target in mount and pid namespaces of its own, and a root of its own that we can write to: its pid there is 1."""

    def __init__(self, name, before="", program=None):
        need("unshare", "chroot")
        self.name = name
        self.root = containers.root_of(program or os.path.join(TARGETS, name))
        for folder in ("tmp", "proc"):
            os.mkdir(f"{self.root}/{folder}")
        script = f'mount -t proc none "$0/proc" && {{ {before or ":"}; }} && exec chroot "$0" "/{name}"'
        Child.__init__(self, ["unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", script, self.root],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._line("ready", READY_SEC)
        self.inner = children_of(self.process.pid)[0]

    @property
    def pid(self):
        return getattr(self, "inner", self.process.pid)

    def path(self, name):
        return self.root + name

    def code(self, elf, name="/code"):
        """Has this file and runs what is in it."""
        elf.write(self.path(name))
        self.ask(f"code {name} {PAGE}")

    def loops(self):
        """Of `jit`: the addresses and sizes of its loops, as hex."""
        return [word[1:] for line in self.ask("where") for word in line[1:]]


class AsNobody(Target):
    """A target of this machine that another user than root runs."""

    def __init__(self, name):
        need("setpriv")
        Child.__init__(self, ["setpriv", "--reuid=65534", "--clear-groups", os.path.join(TARGETS, name)],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self._line("ready", READY_SEC)
        except Broken:
            skip("nobody may not run the targets here")
        self.name = name

    loops = Cage.loops


def hexed(text):
    return (text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text).hex()


class Elf:
    """A file of one page of code, at one page's offset, which is one function of that name; a test spoils what it likes of
    it before it is written. All offsets are pages: note, code, symbols, strings, names of sections, sections."""

    NOTE, TEXT, SYMBOLS, STRINGS, NAMES, SECTIONS = (PAGE * n for n in range(6))

    def __init__(self, symbol, build_id=None):
        symbol = symbol.encode("utf-8", "surrogateescape") if isinstance(symbol, str) else symbol
        self.build_id = build_id or os.urandom(20)
        self.strings = b"\0" + symbol + b"\0"
        # type, flags, address, offset, size, link, size of an entry
        self.sections = {"": [0] * 7,
                         ".text": [1, 6, self.TEXT, self.TEXT, PAGE, 0, 0],
                         ".symtab": [2, 0, 0, self.SYMBOLS, 48, 3, 24],
                         ".strtab": [3, 0, 0, self.STRINGS, len(self.strings), 0, 0],
                         ".shstrtab": [3, 0, 0, self.NAMES, 0, 0, 0]}
        self.note_bytes = 16 + len(self.build_id)
        self.sections_at, self.n_sections, self.n_segments = self.SECTIONS, None, 2
        self.more = []  # (offset, bytes)
        self.size = None

    def add(self, name, content, kind=1, flags=0):
        at = 7 * PAGE + PAGE * len(self.more)
        self.more.append((at, content))
        self.sections[name] = [kind, flags, 0, at, len(content), 0, 0]
        return self

    def write(self, path):
        names = b"\0".join(n.encode() for n in self.sections) + b"\0"
        self.sections[".shstrtab"][4] = len(names)
        order = list(self.sections)
        n = len(order) if self.n_sections is None else self.n_sections
        machine = 62 if os.uname().machine == "x86_64" else 183
        with open(path, "wb") as f:
            f.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, machine, 1, 0, 64, self.sections_at, 0, 64, 56,
                                self.n_segments, 64, n, order.index(".shstrtab")))
            f.write(struct.pack("<IIQQQQQQ", 1, 5, self.TEXT, self.TEXT, self.TEXT, PAGE, PAGE, PAGE))
            f.write(struct.pack("<IIQQQQQQ", 4, 4, 512, 512, 512, self.note_bytes, self.note_bytes, 4))
            parts = [(512, struct.pack("<III4s", 4, len(self.build_id), 3, b"GNU\0") + self.build_id),
                     (self.TEXT, CODE), (self.TEXT + PAGE - 1, b"\0"),
                     (self.SYMBOLS, bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, self.TEXT, len(CODE))),
                     (self.STRINGS, self.strings), (self.NAMES, names),
                     (self.sections_at, b"".join(
                         struct.pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0") if name else 0, *s[:5], s[5], 0, 1, s[6])
                         for name, s in self.sections.items()))]
            for at, content in parts + self.more:
                f.seek(at)
                f.write(content)
            if self.size:
                f.truncate(self.size)
        os.chmod(path, 0o755)
        return path


def state_of(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0]


class Watched:
    """A FIFO: whoever opens it for reading is noticed."""

    def __init__(self, path):
        os.mkfifo(path)
        os.chmod(path, 0o666)
        self.path, self.opened, self._end = path, False, False
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._end and not self.opened:
            try:
                os.close(os.open(self.path, os.O_WRONLY | os.O_NONBLOCK))
                self.opened = True
            except OSError:
                time.sleep(0.001)

    def check(self, what):
        self._end = True
        self._thread.join()
        check(not self.opened, f"memscope opened a FIFO: {what}")


# --- runs ---------------------------------------------------------------------------------------

# A run of an honest program ends after 0.2 s of CPU time: so long, where forty programs want the same CPU. What hangs takes for ever.
END_S = 8


def ended(run, more=0.0, status=0):
    """It ends as others do, and in the same time; `more`: what it may take beside that, in seconds."""
    run.send(signal.SIGINT)
    took = run.ended_in()
    run.must(status)
    check(took <= END_S + more, f"it took {took:.2f} s to end, {END_S + more:.2f} s were allowed")
    return run


def profiled(targets, during, *args, more=0.0):
    """A run on these targets, which are well behind it."""
    run = Run("-p", ",".join(str(t.pid) for t in targets), *(args or ("-F", HZ, "--only", "oncpu")))
    run.ready()
    during()
    ended(run, more)
    for t in targets:
        check(t.alive(), f"{t.argv[0]} has ended")
    clean(run)
    return run


def burn(*targets, ms=300):
    def during():
        for t in targets:
            t.say("burn" if "jit" in os.path.basename(t.argv[0]) + getattr(t, "name", "") else f"burn {ms}")
        for t in targets:
            t.answer()
    return during


def leaves(run, pid=None):
    """{name: samples} of the leaves of a process that are not the kernel's."""
    found = {}
    for s in run.profile("oncpu").samples:
        if pid is not None and s.labels.get("pid") != pid:
            continue
        names = [f.name for f in s.frames if f.module != "[kernel]"]
        if names:
            found[names[0]] = found.get(names[0], 0) + s.values[0]
    return found


def unnamed(found, file):
    """Of leaves: samples in a file that are counted by their addresses."""
    return sum(n for leaf, n in found.items() if leaf.lstrip("[").startswith(f"{file}+0x"))


def reasons(run):
    return {w["module"]: w["reason"] for w in run.summary()["symbols"]["worst"]}


# --- what no output may have in it ---------------------------------------------------------------

CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


def unpacked(content):
    """What a page has in it, as it is and unpacked."""
    yield content
    for packed in re.findall(rb">([A-Za-z0-9+/]{40,}=*)<", content):
        try:
            yield zlib.decompress(base64.b64decode(packed), -15)
        except (ValueError, zlib.error):
            pass


def outputs(run):
    """(name, bytes) of all that it wrote and said."""
    yield "stderr", run.stderr.encode("utf-8", "surrogateescape")
    yield "stdout", run.stdout
    for folder, _, files in os.walk(run.out):
        for name in files:
            with open(os.path.join(folder, name), "rb") as f:
                content = f.read()
            if name.endswith(".gz"):
                content = zlib.decompress(content, 47)
            yield name, content


def clean(run):
    """No text that controls a terminal, and no secret."""
    for name, content in outputs(run):
        for part in unpacked(content):
            check(SECRET.encode() not in part, f"{name} has what only the host has")
        if not name.endswith(".gz"):
            for found in list(CONTROL.finditer(content))[:3]:
                check(False, f"{name} has {content[max(0, found.start() - 40):found.end() + 10]!r}")


def has_secret(run):
    return any(SECRET.encode() in part for _, content in outputs(run) for part in unpacked(content))


class Knob:
    """A number of /proc/sys, raised for a while."""

    def __init__(self, name, least):
        self.path = "/proc/sys/" + name.replace(".", "/")
        self.least = least

    def _write(self, value):
        with open(self.path, "w", encoding="ascii") as f:
            f.write(str(value))

    def __enter__(self):
        with open(self.path, encoding="ascii") as f:
            self.before = int(f.read())
        try:
            self._write(max(self.before, self.least))
        except OSError as e:
            skip(f"{self.path} cannot be raised to {self.least}: {e}")

    def __exit__(self, *_):
        self._write(self.before)
