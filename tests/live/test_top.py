"""memscope top: the screen as a terminal shows it, by a pseudo-terminal and pyte; and the same as text."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

from containers import Group, grouped
from harness import *

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, also for another python3
try:
    import pyte
except ImportError:
    pyte = None


class Terminal:
    """memscope top in a terminal of a size, as pyte sees it."""

    def __init__(self, *args, rows=24, columns=80, env=None, cwd=None):
        if not pyte:
            skip("python3-pyte is not installed")
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.Stream(self.screen)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.raw = b""
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.p = subprocess.Popen([MEMSCOPE, "top", *map(str, args)], stdin=slave, stdout=slave, stderr=slave, cwd=cwd,
                                  start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                  env={**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(env or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()
        os.close(self.master)
        os.close(self.slave)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def read(self, seconds=0.1):
        """True when something came."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.raw += data
        # pyte takes the cursor's return to its own screen and some private modes for nothing.
        self.stream.feed(self.decoder.decode(data))
        return bool(data)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, pattern, what, seconds=READY_SEC):
        """Waits until the screen has it."""
        until = time.monotonic() + seconds
        while not re.search(pattern, self.text()):
            if time.monotonic() > until or (self.p.poll() is not None and not self.read()):
                check(False, f"{what}: {pattern!r} is not on the screen:\n{self.text()}")
                raise Broken("the screen is not as expected")
            self.read()
        return re.search(pattern, self.text())

    def type(self, keys):
        os.write(self.master, keys.encode())

    def ended(self, what):
        """It ends, and the terminal is as it was: its modes, the cursor, the other screen."""
        until = time.monotonic() + FINISH_SEC
        while self.p.poll() is None and time.monotonic() < until:
            self.read()
        while self.read():
            pass
        check(self.p.poll() is not None, f"{what}: it goes on")
        equal(termios.tcgetattr(self.slave)[:4], self.before[:4], f"{what}: modes of the terminal")
        for sequence in (b"\x1b[?1049l", b"\x1b[?25h"):
            last = self.raw.rfind(sequence)
            check(last > self.raw.rfind(sequence[:-1] + (b"h" if sequence.endswith(b"l") else b"l")),
                  f"{what}: {sequence!r} was not sent in the end")
        return self.p.returncode


def batch(*args, **kw):
    return subprocess.run([MEMSCOPE, "top", *map(str, args)], capture_output=True, text=True, timeout=FINISH_SEC,
                          check=False, stdin=subprocess.DEVNULL, **kw)


@fact
def batch_lists_processes_with_their_runtime_and_memory():
    target = Target("maps")
    got = batch("-b", "-n", 1, "-d", 0.2)
    equal((got.returncode, got.stderr), (0, ""), "exit status and stderr")
    rows = [line for line in got.stdout.split("\n") if re.match(rf" *{target.pid} ", line)]
    equal(len(rows), 1, "rows of the target")
    with open(f"/proc/{target.pid}/status", encoding="utf-8") as f:
        rss = int(re.search(r"VmRSS:\s*(\d+)", f.read())[1]) / 1024
    check("native" in rows[0] and "glibc" in rows[0], rows[0])
    # The kernel's sum of pages may be behind by 64 pages a thread (mm/percpu counters).
    shown = re.search(r" ([0-9.]+) ([KM])iB", rows[0])
    near(float(shown[1]) / (1024 if shown[2] == "K" else 1), rss, 2, "RSS in MiB")


@fact
@grouped
def a_containers_processes_are_below_it():
    """By the control group alone: no engine knows it."""
    group = Group("libpod-" + os.urandom(32).hex())
    target = Target("maps")
    group.take(target.pid)
    got = batch("-b", "-n", 1, "-d", 0.2)
    name = os.path.basename(group.dir).split("-")[1][:12]
    check(re.search(rf" {name}: 1 process \(container\)\n *{target.pid} ", got.stdout), got.stdout)


@fact
def what_is_no_terminal_is_refused_with_what_to_do():
    got = batch()
    equal((got.returncode, got.stdout), (2, ""), "exit status and output")
    check("--batch" in got.stderr and got.stderr.count("\n") == 1, got.stderr)
    for kind in ("dumb", "no-such-terminal"):
        with Terminal(columns=160, env={"TERM": kind}) as t:
            t.shows(r"--batch", "what to do")
            equal(t.p.wait(FINISH_SEC), 1, f"exit status with TERM={kind}")


@fact
def the_picker_answers_keys_and_leaves_the_terminal_as_it_was():
    target = Target("maps")
    with Terminal("-d", 0.5) as t:
        t.shows(r"CPU%▼", "the list")
        t.type("f" + str(target.pid) + "\r")
        t.shows(rf"(?m)^ *{target.pid} .*native +glibc", "the target's row")
        t.resize(40, 130)
        t.shows(r"THR", "a wide screen has more columns")
        t.type("?")
        t.shows(r"keys: Processes and containers", "the page of keys")
        t.type("q")
        t.shows(r"Enter profile", "the list again")
        t.type("q")
        equal(t.ended("q"), 0, "exit status")


@fact
def a_signal_leaves_the_terminal_as_it_was():
    for number in (signal.SIGTERM, signal.SIGSEGV):
        with Terminal("-d", 0.5) as t:
            t.shows(r"CPU%▼", "the list")
            t.p.send_signal(number)
            t.ended(signal.Signals(number).name)


@fact
def terminals_of_few_means_get_plain_text():
    with Terminal("-d", 0.5, env={"NO_COLOR": "1"}) as t:
        t.shows(r"CPU%▼", "the list")
        check(not re.search(rb"\x1b\[[0-9;]*(3|4)[0-8]([;m])", t.raw), "colours were sent despite NO_COLOR")
    with Terminal("-d", 0.5, env={"LC_ALL": "C"}) as t:
        t.shows(r"CPU%v", "the list")
        check(all(c < 0x80 for c in t.raw), "characters beyond ASCII were sent")


@fact
def a_process_is_profiled_live_and_saved():
    """One run of memscope for the tree, the flame view, Ctrl-S and the way out."""
    target = at_a_fifth()
    with tempfile.TemporaryDirectory() as d, Terminal("-p", target.pid, rows=40, columns=150, cwd=d) as t:
        t.shows(rf"cpu_split \(pid {target.pid}\)", "the process")
        t.shows(r"CPU%▼.*WAIT%.*IMAGE", "figures of CPU time and waits")
        t.type("e")
        t.shows(r"(?m)^ *[0-9.]+ +[0-9.]+ .* hot_70", "the hot function, unfolded")
        t.type("m")
        t.shows(r"marked at", "the mark")
        time.sleep(1.5)  # two more readings
        t.type("d")
        t.shows(r"CHANGE: last .* less .* before", "the difference")
        t.type("d")
        t.type("F")
        t.shows(r"Enter zoom", "the flame view")
        t.shows(r"hot_70", "a block of the hot function")
        t.type("\x1b")
        t.shows(r"Enter unfold", "the list again")
        t.type("\x13")
        where = t.shows(r"written to (\S+)", "what Ctrl-S writes")[1]
        t.type("q")
        equal(t.ended("q"), 0, "exit status")
        files = os.listdir(os.path.join(d, where))
        check("oncpu.pb.gz" in files and "oncpu.svg" in files, f"{files} of {where}")
        # The same tree of files, as text.
        got = batch("-b", os.path.join(d, where))
        equal((got.returncode, got.stderr), (0, ""), "exit status and stderr of --batch DIR")
        check(re.search(rf"CPU%▼.*\n.*cpu_split \(pid {target.pid}\)", got.stdout), got.stdout[:2000])


KEEPER = """
import sys
class Session:
    def __init__(self, i):
        self.data = [i] * 10
KEPT = [Session(i) for i in range(1000)]
print("ready", flush=True)
sys.stdin.readline()
"""


@fact
def the_heap_of_a_chosen_process_is_explored():
    """From the list to the class to what keeps it, and the copy as a file."""
    with tempfile.TemporaryDirectory() as d, \
            subprocess.Popen([sys.executable, "-c", KEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        with Terminal("-d", 0.5, rows=40, columns=120, cwd=d) as t:
            t.shows(r"CPU%▼", "the list")
            t.type(f"f{target.pid}\r")
            t.shows(rf"(?m)^ *{target.pid} .*CPython +CPython", "the target's row")
            t.type("h")
            t.shows(r"1,000 .*Session", "a row of the census")
            t.type("/Session\r")
            t.type("\r")
            t.shows(r"(?s)retainers type:.*Session.*1,000 .*KEPT", "the list that keeps them")
            t.type(":type ~ \"Session$\" and references > 0\r")
            t.shows(r"1,000 objects, ", "the answer to a typed condition")
            t.type(":sizes > 4K\r")
            t.shows(r"no such field", "what is wrong with another")
            t.type("C")
            t.shows(r"(?s)caches\n.*1,000 elements [^\n]* list +dict \(keys\)", "containers")
            t.type("\x13")
            name = t.shows(r"(heap-\S+\.snapshot)", "the file that Ctrl-S writes")[1]
            t.type("q")
            equal(t.ended("q"), 0, "exit status")
        got = batch("-b", os.path.join(d, name))
        equal((got.returncode, got.stderr), (0, ""), "exit status and stderr of --batch FILE")
        check(re.search(r"1,000 .*Session", got.stdout), got.stdout[:2000])
        target.kill()


main()
