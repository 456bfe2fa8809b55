#!/usr/bin/python3
"""What recording every allocation costs programs that live in their allocator, by way of recording it.

    make bench-inprocess [BENCHFLAGS="--rounds 9 --window 1 --only stl,python3"]

As root. In each round every program runs alone, with its calls recorded by the injected library
(`--alloc=exact --inject`), traced by probes (`--alloc=exact`), and once more started by heaptrack, where that
is installed. The figure is the CPU time of a piece of its work, by the kernel's account of its threads,
divided by what it is alone in the same round: median and the middle half of the rounds. For the programs of
one pair of malloc and free it is the ns that a pair takes more, and for `8 threads` all of their CPU time counts.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import governor  # noqa: E402  puts ../live in front of the path
from harness import TARGETS, Broken, Child, Run, children_of, tool  # noqa: E402

WAYS = {"library": ("--alloc=exact", "--inject"), "probes": ("--alloc=exact",)}
SCRATCH = f"/tmp/memscope-inprocess-{os.getpid()}"


def cpu_ns(pid):
    return sum(thread_ns(pid, t) for t in os.listdir(f"/proc/{pid}/task"))


def thread_ns(pid, task):
    try:
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0])
    except FileNotFoundError:
        return 0


class Pairs(governor.Work):
    """ns of a pair by its own account: the last lines that it has said."""
    def __init__(self, what, threads, prefix=()):
        super().__init__()
        self.what, self.skip = what, 1 if threads == 1 else 2 * threads
        self.child = Child([*prefix, os.path.join(TARGETS, "alloc_depth"), "24", "1000", str(threads)],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        os.set_blocking(self.child.process.stdout.fileno(), False)

    def figure(self, _seconds):
        """The median of three lines, each of a fifth of a second of CPU time, after those that are under way."""
        got, text, until = [], b"", time.monotonic() + 90
        self.child.process.stdout.read()
        while len(got) < self.skip + 3 and time.monotonic() < until:
            time.sleep(0.1)
            text += self.child.process.stdout.read() or b""
            lines = [line.split() for line in text.decode().splitlines()]
            got = [float(words[words.index(self.what) + 1]) for words in lines[:self.skip + 3] if len(words) == 6]
        return statistics.median(got[self.skip:]) if len(got) >= self.skip + 3 else None


class Pieces:
    comms = ("alloc_stl", "python3")

    def __init__(self, work):
        self.work, self.child = work, work.child

    def figure(self, seconds):
        pieces, ns = self.work.value(), cpu_ns(self.pid())
        time.sleep(seconds)
        done = self.work.value() - pieces
        return (cpu_ns(self.pid()) - ns) / done if done else None

    def pid(self):
        """What was started by heaptrack is not the child itself."""
        for pid in (self.child.pid, *children_of(self.child.pid)):
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                if f.read().strip() in self.comms:
                    return pid
        raise Broken("heaptrack has not started the program")


class StlTarget(governor.Work):
    def __init__(self, prefix=()):
        super().__init__()
        self.child = Child([*prefix, os.path.join(TARGETS, "alloc_stl")], stdin=subprocess.PIPE,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.child.process.stdin.write(f"go {self.counter.path}\n".encode())
        self.child.process.stdin.flush()


class PythonTarget(governor.Work):
    def __init__(self, prefix=()):
        super().__init__()
        code = governor.PYTHON.replace("import mmap", "import os, mmap").replace(
            "n += 1\n", "n += 1\n    os.getppid()  # in a system call it can be asked to load a library\n")
        self.child = Child([*prefix, "/usr/bin/python3", "-c", code, self.counter.path],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


PROGRAMS = {
    "same": ("a pair, 30 frames deep, from one place", lambda p: Pairs("same", 1, p)),
    "changing": ("… some frames elsewhere each time", lambda p: Pairs("changing", 1, p)),
    "spread": ("… with 4,096 blocks that live on", lambda p: Pairs("spread", 1, p)),
    "threads": ("a pair from one place, 8 threads", lambda p: Pairs("same", 8, p)),
    "stl": ("C++ with the STL", lambda p: Pieces(StlTarget(p))),
    "python3": ("python3", lambda p: Pieces(PythonTarget(p))),
}


def figure(make, way, seconds):
    heaptrack = way == "heaptrack"
    program = make(("heaptrack", "-o", f"{SCRATCH}/heaptrack") if heaptrack else ())
    time.sleep(0.7 if heaptrack else 0.3)
    run = Run("-p", program.child.pid, "--only", "alloc", *WAYS[way]) if way in WAYS else None
    try:
        if run:
            run.ready()
        got = program.figure(seconds)
    except Broken as e:
        print(f"{way}: {e}", file=sys.stderr)
        got = None
    if run:
        run.send(signal.SIGINT)
        run.finish()
        shutil.rmtree(run.out, ignore_errors=True)
    for pid in children_of(program.child.pid) if heaptrack else ():
        os.kill(pid, signal.SIGKILL)
    program.child.end()
    return got


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--window", type=float, default=1.0, help="seconds")
    ap.add_argument("--only", default=",".join(PROGRAMS), help="of " + ", ".join(PROGRAMS))
    ap.add_argument("--ways", default=",".join([*WAYS, "heaptrack"]))
    args = ap.parse_args(governor.ARGS)
    ways = [w for w in args.ways.split(",") if w in WAYS or tool(w)]
    os.makedirs(SCRATCH, exist_ok=True)
    print(f"Measured {time.strftime('%Y-%m-%d')}, Linux {os.uname().release}, load {os.getloadavg()[0]:.1f}; "
          f"{args.rounds} rounds of {args.window:g} s.\n\n| program | alone | {' | '.join(ways)} |\n|---|--:|"
          + "--:|" * len(ways))
    try:
        for name in args.only.split(","):
            title, make = PROGRAMS[name]
            got = {way: [] for way in ways}
            alone = []
            for _ in range(args.rounds):
                base = figure(make, "alone", args.window)
                alone.append(base)
                for way in ways:
                    value = figure(make, way, args.window)
                    if value and base:
                        got[way].append(value - base if name in ("same", "changing", "spread", "threads")
                                        else value / base)
            cells = []
            for way in ways:
                c = sorted(got[way])
                pairs = name in ("same", "changing", "spread", "threads")
                cells.append("–" if not c else
                             f"+ {statistics.median(c):,.0f} ns ({c[len(c) // 4]:,.0f} … {c[-1 - len(c) // 4]:,.0f})"
                             if pairs else
                             f"{statistics.median(c):.2f} ({c[len(c) // 4]:.2f} … {c[-1 - len(c) // 4]:.2f})")
            print(f"| {title} | {statistics.median([a for a in alone if a]):,.0f} ns | {' | '.join(cells)} |",
                  flush=True)
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    finally:
        for child in list(Child.living):
            child.end()
