#!/usr/bin/python3
"""What recording every allocation costs programs that live in their allocator, by way of recording it.

    make bench-inprocess [BENCHFLAGS="--rounds 9 --window 1 --only stl,python3 --ways library,heaptrack"]

As root. In each round every program runs alone, with its calls recorded by the injected library
(`--alloc=exact --inject`), traced by probes (`--alloc=exact`) and by bcc's memleak, and started by heaptrack, and
with jemalloc, whose profiler counts every call (lg_prof_sample:0): beside jemalloc that does not. What is not
installed is left out. The figure is the CPU time of a piece of its work, by the kernel's account of its
threads, divided by what it is alone in the same round: median and the middle half of the rounds. For a pair of
malloc and free it is the ns that a pair takes more, by the threads' own clocks. No round is begun that would
not end within --limit seconds.

Then what each way says of a program that knows what it has allocated: calls, bytes, live blocks and stacks.
"""

import argparse
import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench  # noqa: E402  puts ../live in front of the path
from harness import TARGETS, Broken, Child, Counter, Run, Target, children_of, record, tool  # noqa: E402
from truth import sites_of  # noqa: E402

WAYS = {"library": ("--alloc=exact", "--inject"), "probes": ("--alloc=exact",)}
LAUNCHED = ("heaptrack", "jemalloc prof")
EVERY = (*WAYS, "memleak", *LAUNCHED)
SCRATCH = f"/tmp/memscope-inprocess-{os.getpid()}"
JEMALLOC = next(iter(glob.glob("/usr/lib/*/libjemalloc.so.2")), None)
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
PYTHON = """
import mmap, os, struct, sys
f = open(sys.argv[1], "r+b")
m = mmap.mmap(f.fileno(), 4096)
n = 0
while True:
    x = [bytes(600 + i % 7) for i in range(100)]
    y = "".join(["y" * 700] * 9)
    n += 1
    os.getppid()  # in a system call it can be asked to load a library
    struct.pack_into("<Q", m, 0, n)
"""
QUERY = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 200) "
         "SELECT count(printf('%0200d', x) || x) FROM c;\n")


# --- programs -----------------------------------------------------------------------------------------------------

class Program:
    """`child` may be what has started the program: that has the name `comm`."""
    comm = None

    def __init__(self, argv, **kw):
        self.child = Child(argv, **kw)

    def pid(self):
        until = time.monotonic() + 15
        while time.monotonic() < until:
            for pid in (self.child.pid, *children_of(self.child.pid)):
                with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii") as f:
                    if f.read().strip() == self.comm:
                        return pid
            time.sleep(0.05)
        raise Broken(f"{self.comm} has not been started")

    def end(self):
        for pid in children_of(self.child.pid) if self.child.alive() else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.child.end()

    def cpu_ns(self):
        total = 0
        for task in os.listdir(f"/proc/{self.pid()}/task"):
            with contextlib.suppress(FileNotFoundError), \
                    open(f"/proc/{self.pid()}/task/{task}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
        return total

    def figures(self, seconds):
        """{row: CPU ns of a piece of work}"""
        pieces, ns = self.value(), self.cpu_ns()
        time.sleep(seconds)
        done = self.value() - pieces
        return {None: (self.cpu_ns() - ns) / done} if done > 0 else {}


class Pairs(Program):
    """ns of a pair by its own account: the last lines that it has said, after those that are under way."""
    comm = "alloc_depth"

    def __init__(self, threads, prefix, env):
        self.threads = threads
        super().__init__([*prefix, os.path.join(TARGETS, "alloc_depth"), "24", "1000", str(threads)],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        os.set_blocking(self.child.process.stdout.fileno(), False)

    def figures(self, seconds):
        got, text, until = [], b"", time.monotonic() + 4 * seconds + 2
        skip, wanted = (1, 3) if self.threads == 1 else (self.threads, self.threads)
        self.child.process.stdout.read()
        while len(got) < skip + wanted and time.monotonic() < until:
            time.sleep(0.1)
            text += self.child.process.stdout.read() or b""
            lines = [line.split() for line in text.decode().splitlines(keepends=True) if line.endswith("\n")]
            got = [list(map(float, words[1::2])) for words in lines if len(words) == 6 and words[0] == "same"]
        if len(got) <= skip:
            return {}
        middle = [statistics.median(column) for column in zip(*got[skip:])]
        return {0: middle[0]} if self.threads > 1 else dict(enumerate(middle))


class Stl(Program):
    comm = "alloc_stl"

    def __init__(self, prefix, env):
        self.counter = Counter()
        super().__init__([*prefix, os.path.join(TARGETS, "alloc_stl")], stdin=subprocess.PIPE,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        self.child.process.stdin.write(f"go {self.counter.path}\n".encode())
        self.child.process.stdin.flush()

    def value(self):
        return self.counter.value()


class Python(Program):
    comm = "python3"

    def __init__(self, prefix, env):
        self.counter = Counter()
        super().__init__([*prefix, "/usr/bin/python3", "-c", PYTHON, self.counter.path], env=env, **QUIET)

    def value(self):
        return self.counter.value()


class Sqlite(Program):
    """One query at a time: waiting for the next one, it can be asked to load a library."""
    comm = "sqlite3"

    def __init__(self, prefix, env):
        self.answers = 0
        super().__init__([*prefix, tool("sqlite3"), ":memory:"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, env=env)
        threading.Thread(target=self._ask, daemon=True).start()

    def _ask(self):
        with contextlib.suppress(OSError, ValueError):
            while True:
                self.child.process.stdin.write(QUERY.encode())
                self.child.process.stdin.flush()
                while not self.child.process.stdout.readline().strip().isdigit():  # heaptrack speaks first
                    if self.child.process.poll() is not None:
                        return
                self.answers += 1

    def value(self):
        return self.answers


class Redis(Program):
    comm = "redis-server"

    def __init__(self, prefix, env):
        path = f"{SCRATCH}/redis.sock"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        super().__init__([*prefix, tool("redis-server"), "--port", "0", "--unixsocket", path, "--save", "",
                          "--appendonly", "no", "--dir", SCRATCH], env=env, **QUIET)
        until = time.monotonic() + 15
        while not os.path.exists(path):
            if time.monotonic() > until:
                raise Broken("redis-server has not opened its socket")
            time.sleep(0.05)
        self.link = socket.socket(socket.AF_UNIX)
        self.link.settimeout(30)
        self.link.connect(path)
        self.load = Child([tool("redis-benchmark"), "-s", path, "-n", "2000000000", "-t", "set", "-q", "-c", "20",
                           "-P", "16", "-r", "10000"], **QUIET)

    def value(self):
        self.link.sendall(b"INFO stats\r\n")
        text = b""
        while b"total_commands_processed:" not in text or not text.endswith(b"\r\n"):
            text += self.link.recv(65536)
        return int(re.search(rb"total_commands_processed:(\d+)", text).group(1))

    def end(self):
        self.load.end()
        self.link.close()
        super().end()


PAIR_ROWS = ("a pair, 30 frames deep, from one place", "… some frames elsewhere each time",
             "… with 4,096 blocks that live on")
PROGRAMS = {
    "pairs": (PAIR_ROWS, lambda p, e: Pairs(1, p, e)),
    "threads": (("a pair from one place, 8 threads",), lambda p, e: Pairs(8, p, e)),
    "stl": (("C++ with the STL",), Stl),
    "python3": (("python3",), Python),
    "sqlite3": (("sqlite3",), Sqlite),
    "redis": (("redis-server, SET",), Redis),
}


# --- ways ---------------------------------------------------------------------------------------------------------

def environment(way):
    env = dict(os.environ)
    if way.startswith("jemalloc"):
        env["LD_PRELOAD"] = JEMALLOC
        env["MALLOC_CONF"] = (f"prof:true,lg_prof_sample:0,prof_accum:true,prof_final:true,prof_prefix:{SCRATCH}/je"
                              if way == "jemalloc prof" else "prof:false")
    return env


def prefix(way):
    return ("heaptrack", "-o", f"{SCRATCH}/heaptrack") if way == "heaptrack" else ()


def memleak():
    return bench.bcc("memleak", "-p", "{pid}", "600", ready="Attaching", settle=3)


def why_not(way):
    if way == "heaptrack":
        return None if tool("heaptrack") else "is not installed"
    if way == "jemalloc prof":
        return None if JEMALLOC else "is not installed"
    if way != "memleak":
        return None
    if not tool("memleak-bpfcc"):
        return "is not installed"
    bench.bcc_headers()
    program, t = Stl((), None), memleak()
    works = t.start(program.pid())
    why = None if works else f"does not start: {t.why()}"
    t.end()
    program.end()
    return why


def figures(make, way, seconds):
    """{row: figure} of a new program; on a busy machine it may take a second one."""
    return try_figures(make, way, seconds) or try_figures(make, way, seconds)


def try_figures(make, way, seconds):
    program = run = t = None
    try:
        program = make(prefix(way), environment(way))
        program.pid()
        time.sleep(0.5)
        if way in WAYS:
            run = Run("-p", program.pid(), "--only", "alloc", *WAYS[way])
            run.ready()
        if way == "memleak":
            t = memleak()
            if not t.start(program.pid()):
                raise Broken(t.why())
        return program.figures(seconds)
    except (Broken, OSError) as e:
        print(f"{way}: {e}", file=sys.stderr)
        return {}
    finally:
        if run:
            run.send(signal.SIGINT)
            run.finish()
            shutil.rmtree(run.out, ignore_errors=True)
        if t:
            if t.alive():
                os.kill(t.process.pid, signal.SIGKILL)  # it would print all that is live first
            t.end()
        if program:
            program.end()


def rounds(args, ways):
    """{(program, row): {way: [figure of each round]}}, and how many rounds."""
    got, until, longest = {}, time.monotonic() + args.limit, 0.0
    for done in range(args.rounds):
        begin = time.monotonic()
        if begin + longest > until:
            return got, done
        for name in args.only.split(","):
            rows, make = PROGRAMS[name]
            base = figures(make, "alone", args.window)
            own = {"jemalloc prof": figures(make, "jemalloc", args.window)} if "jemalloc prof" in ways else {}
            for row, value in base.items():
                got.setdefault((name, row or 0), {}).setdefault("alone", []).append(value)
            for way in ways:
                for row, value in figures(make, way, args.window).items():
                    beside = own.get(way, base).get(row)
                    if beside:
                        more = value - beside if name in ("pairs", "threads") else value / beside
                        got.setdefault((name, row or 0), {}).setdefault(way, []).append(more)
        longest = max(longest, time.monotonic() - begin)
    return got, args.rounds


def cell(values, is_pair):
    if not values:
        return "–"
    v = sorted(values)
    low, high = v[len(v) // 4], v[-1 - len(v) // 4]
    return (f"+ {statistics.median(v):,.0f} ns ({low:,.0f} … {high:,.0f})" if is_pair else
            f"{statistics.median(v):.2f} ({low:.2f} … {high:.2f})")


# --- truth --------------------------------------------------------------------------------------------------------

OPS = 20000


def of_memscope(way):
    t = Target("alloc_truth", 1, OPS)
    run, lines = record(("-p", t.pid, "--only", "alloc", *WAYS[way]), lambda: t.ask("run"))
    a = run.summary()["alloc"]
    t.end()
    return sites_of(lines)[1], (a["objects"], a["bytes"], a["live_objects"], len(run.profile("alloc").samples))


def by_itself(way):
    said = f"{SCRATCH}/truth"
    out = subprocess.run([*prefix(way), os.path.join(TARGETS, "alloc_truth"), "now", said, str(OPS)],
                         env={**environment(way), "ALLOC_TRUTH_OTHER": "1"}, capture_output=True, text=True,
                         timeout=60, check=True)
    with open(said, encoding="ascii") as f:
        lines = [[int(w) if w.isdigit() else w for w in line.split()] for line in f]
    return sites_of(lines)[1], out.stdout + out.stderr


def of_heaptrack():
    truth, out = by_itself("heaptrack")
    def number(what):
        found = re.search(rf"{what}:\s*(\d+)", out)
        return int(found.group(1)) if found else None
    return truth, (number("allocations"), None, number("leaked allocations"), None)


def of_jemalloc():
    truth, _ = by_itself("jemalloc prof")
    path = max(glob.glob(f"{SCRATCH}/je*.heap"), key=os.path.getmtime)
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    live, _, calls, size = map(int, re.search(r"t\*: (\d+): (\d+) \[(\d+): (\d+)\]", text).groups())
    return truth, (calls, size, live, len(re.findall("^@", text, re.MULTILINE)))


def truths(ways):
    print(f"\nWhat each says of a program that counts what it allocates ({OPS:,} steps), less what that counts:\n\n"
          "| way | calls | bytes | live blocks | stacks |\n|---|--:|--:|--:|--:|")
    for way in ways:
        if way == "memleak":
            continue  # prints what is live, not what was allocated
        try:
            truth, got = (of_memscope(way) if way in WAYS else of_heaptrack() if way == "heaptrack" else of_jemalloc())
        except (Broken, OSError, subprocess.SubprocessError, AttributeError, ValueError) as e:
            print(f"| {way} | {e} | | | |")
            continue
        cells = ["–" if g is None else "exact" if g == t else f"{g - t:+,} of {t:,}"
                 for g, t in zip(got, truth[:3])]
        print(f"| {way} | {' | '.join(cells)} | {'–' if got[3] is None else got[3]} |", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--window", type=float, default=0.8, help="seconds")
    ap.add_argument("--limit", type=float, default=400, help="seconds for all rounds")
    ap.add_argument("--only", default=",".join(PROGRAMS), help="of " + ", ".join(PROGRAMS))
    ap.add_argument("--ways", default=",".join(EVERY), help="of " + ", ".join(EVERY))
    args = ap.parse_args(bench.ARGS[1:])
    os.makedirs(SCRATCH, exist_ok=True)
    try:
        missing = {w: why_not(w) for w in args.ways.split(",")}
        ways = [w for w in missing if not missing[w]]
        got, done = rounds(args, ways)
        print(f"Measured {time.strftime('%Y-%m-%d')}, Linux {os.uname().release}, load {os.getloadavg()[0]:.1f}; "
              f"{done} rounds of {args.window:g} s.\n")
        for way, why in missing.items():
            if why:
                print(f"{way} {why}\n")
        print(f"| program | alone | {' | '.join(ways)} |\n|---|--:|" + "--:|" * len(ways))
        for (name, row), cells in got.items():
            alone = f"{statistics.median(cells['alone']):,.0f} ns" if cells.get("alone") else "–"
            print(f"| {PROGRAMS[name][0][row]} | {alone} | "
                  f"{' | '.join(cell(cells.get(w), name in ('pairs', 'threads')) for w in ways)} |", flush=True)
        truths(ways)
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    finally:
        for child in list(Child.living):
            child.end()
