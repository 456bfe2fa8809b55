#!/usr/bin/python3
"""What a sample of frames of a language costs in the kernel, beside a native one of equal depth. As root.

    make bench-mixed, or: make BUILD=build/bench BPF_DEFS=-DMS_BENCH build/bench/memscope targets
                          BUILD=build python3 tests/bench/mixed.py [--rounds 8] [--seconds 0.5] [LANGUAGE…]
    --beside OTHER/memscope   another build samples the same programs at the same time

One program of each language that spins below some 30 frames, of its interpreter's and of its own in turns: calls that
go through C (sorted(key=…), Array.map, array_map, first {}, each {}), and in Java and JavaScript as many functions
that are called once, and are interpreted, as functions that were made hot. Beside it a native program, whose depth
is a multiple of 5, as near as can be to the number of frames that memscope found (--native keep). Both are
pinned to one CPU; they take turns, one is stopped while the other runs. What a sample takes is the program's own
account (bpf/bench.bpf.h), so what is printed are medians of durations; the ratio is that of each turn's medians.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import walk  # noqa: E402  (it chooses the build that keeps an account)
import harness  # noqa: E402
from harness import Child, Run, Target, schedstat, scratch, tool  # noqa: E402

HZ = 999
LANGS = {
    "python": ("l.py", """
def leaf():
    x = 0
    while True:
        x = (x * 31 + 1) % 1000003
def level(n):
    if not n:
        leaf()
    elif n % 2:
        level(n - 1)
    else:
        sorted([0], key=lambda _: level(n - 1))
level(4)
"""),
    "java": ("Level.java", """
public class Level {
    static volatile boolean end;
    static int sink;
    static int leaf() { int x = sink; do { x = (x * 31 + 1) % 1000003; } while (end); return x; }
    static int hot(int n) { return n == 0 ? leaf() : hot(n - 1) + 1; }
    static int cold(int n) { return n == 0 ? hot(9) : cold(n - 1) + 1; }
    public static void main(String[] a) throws Exception {
        for (int i = 0; i < 100000; i++) sink += hot(9);
        Thread.sleep(500);
        end = true;
        sink += cold(9);
    }
}
"""),
    "javascript": ("l.js", """
let end = false;
function leaf(x) { do { x = (x * 31 + 1) % 1000003; } while (end); return x; }
function hot(n) { return n === 0 ? leaf(1) : hot(n - 1) + 1; }
function cold(n) { return n === 0 ? hot(8) : n % 3 ? cold(n - 1) + 1 : [n].map(() => cold(n - 1))[0]; }
for (let i = 0; i < 300000; i++) hot(8);
setTimeout(() => { end = true; cold(6); }, 300);
"""),
    "ruby": ("l.rb", """
def leaf
  x = 0
  x = (x * 31 + 1) % 1000003 while true
end
def level(n)
  n == 0 ? leaf : [0].each { level(n - 1) }
end
level(4)
"""),
    "php": ("l.php", """<?php
function leaf() { $x = 0; while (true) $x = ($x * 31 + 1) % 1000003; }
function level($n) { if (!$n) leaf(); else array_map(function ($i) use ($n) { level($n - 1); }, [0]); }
level(4);
"""),
    "perl": ("l.pl", """
use List::Util 'first';
sub leaf { my $x = 0; while (1) { $x = ($x * 31 + 1) % 1000003 } }
sub level { my $n = shift; if (!$n) { leaf() } elsif ($n % 3) { level($n - 1) } else { first { level($n - 1) } 0 } }
level(12);
"""),
    "haskell": ("Level.hs", """
module Main where
leaf :: Int -> Int
leaf x = if x == -1 then x else leaf ((x * 31 + 1) `mod` 1000003)
{-# NOINLINE leaf #-}
level :: Int -> Int -> Int
level 0 x = leaf x
level n x = 1 + level (n - 1) x
{-# NOINLINE level #-}
main :: IO ()
main = print (level 20 1)
"""),
}
COMMANDS = {"python": ["python3"], "ruby": ["ruby"], "perl": ["perl"], "php": ["php"], "javascript": ["node"],
            "java": ["java", "-XX:-Inline", "-XX:+UseSerialGC", "-Xmx64m", "-cp"]}


def on_cpu():
    os.sched_setaffinity(0, {walk.CPU})


def start(lang):
    """The program at work, pinned; None and why not."""
    name, text = LANGS[lang]
    work = scratch(lang)
    os.makedirs(work)
    path = os.path.join(work, name)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    if lang in ("java", "haskell"):
        make = ["javac", "-d", work, path] if lang == "java" else \
            ["ghc", "-v0", "-O1", "-outputdir", work, "-o", os.path.join(work, "level"), path]
        if not tool(make[0]):
            return None, f"{make[0]} is not installed"
        subprocess.run(make, check=True)
    argv = [os.path.join(work, "level")] if lang == "haskell" else \
        [shutil.which(COMMANDS[lang][0]), *COMMANDS[lang][1:], *([work, "Level"] if lang == "java" else [path])]
    if not argv[0]:
        return None, f"{COMMANDS[lang][0]} is not installed"
    child = Child(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                  preexec_fn=on_cpu)
    time.sleep(2)
    return (child, None) if child.alive() else (None, f"{argv[0]} ended with {child.how_it_ended()}")


def depths(pid):
    """Frames of its most frequent stack: how many, and of a language."""
    run = Run("-p", pid, "--only", "oncpu", "-U", "-F", HZ, "--native", "keep")
    run.ready()
    time.sleep(0.5)
    run.stop()
    best = max(run.profile("oncpu").samples, key=lambda s: s.values[0], default=None)
    if not best:
        return 0, 0
    of_lang = sum(f.module.startswith("[") for f in best.frames)
    native = [f.address for f in best.frames if not f.module.startswith("[")]
    return of_lang + sum(a != b for a, b in zip(native, native[1:] + [None])), of_lang


class Session:
    """A build of memscope beside one program."""

    def __init__(self, memscope, pid):
        harness.MEMSCOPE = memscope
        self.run = Run("-p", pid, "--only", "oncpu", "-U", "-C", walk.CPU, "-F", HZ)
        self.run.ready()
        self.before = {}

    def begin(self):
        self.before = walk.durations(self.run.pid, "oncpu")

    def median(self):
        now = walk.durations(self.run.pid, "oncpu")
        return walk.quantile({ns: n - self.before.get(ns, 0) for ns, n in now.items() if n > self.before.get(ns, 0)}, 0.5)


def turns(programs, builds, args):
    """{(program, build): [median ns of each turn]}"""
    sessions = {(p, b): Session(b, child.pid) for p, child in programs.items() for b in builds}
    found = {key: [] for key in sessions}
    for child in programs.values():
        os.kill(child.pid, signal.SIGSTOP)
    time.sleep(0.3)
    for _ in range(args.rounds):
        for name, child in programs.items():
            mine = [(key, s) for key, s in sessions.items() if key[0] == name]
            os.kill(child.pid, signal.SIGCONT)
            time.sleep(0.1)
            for _, s in mine:
                s.begin()
            time.sleep(args.seconds)
            for key, s in mine:
                found[key].append(s.median())
            os.kill(child.pid, signal.SIGSTOP)
    for child in programs.values():
        os.kill(child.pid, signal.SIGCONT)
    for s in sessions.values():
        s.run.stop()
        s.run.end()
    return found


def spread(values):
    values = [v for v in values if v]
    return f"{statistics.median(values):.2f} ({min(values):.2f} … {max(values):.2f})" if values else "–"


def native(frames):
    """The one whose stack is as deep."""
    last = None
    for n in range(5, 200, 5):
        child = Target("unwind_depth", "burn", n)
        child.say("go")
        os.sched_setaffinity(child.pid, {walk.CPU})
        # main, what calls it, and the function at the bottom
        if last and n + 4 > frames:
            closer = abs(n + 4 - frames) < abs(n - 1 - frames)
            (last if closer else child).end()
            return child if closer else last
        if last:
            last.end()
        last = child
    return last


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("languages", nargs="*", metavar="LANGUAGE", help="of: " + " ".join(LANGS))
    ap.add_argument("--rounds", type=int, default=8, help="turns of each program (default 8)")
    ap.add_argument("--seconds", type=float, default=0.5, help="seconds of each (default 0.5)")
    ap.add_argument("--beside", action="append", default=[], help="another build of memscope")
    args = ap.parse_args(walk.ARGS[1:])
    if os.geteuid():
        sys.exit("bench: needs root")
    builds = [harness.MEMSCOPE, *args.beside]
    print("\n### One sample of mixed frames, µs: medians of turns (smallest … largest)\n")
    print("| language | frames, of them its own | build | mixed | native frames | native | ratio | load |")
    print("|---|---|---|---|---|---|---|---|")
    for lang in args.languages or LANGS:
        child, why = start(lang)
        if not child:
            print(f"| {lang} | {why} | | | | | | |")
            continue
        harness.MEMSCOPE = builds[0]
        frames, of_lang = depths(child.pid)
        beside = native(frames)
        there, _ = depths(beside.pid)
        found = turns({lang: child, "native": beside}, builds, args)
        for build in builds:
            mixed, plain = found[lang, build], found["native", build]
            print(f"| {lang} | {frames}, {of_lang} | {os.path.relpath(build, TOP)} | "
                  f"{spread([ns / 1000 for ns in mixed])} | {there} | {spread([ns / 1000 for ns in plain])} | "
                  f"{spread([m / n for m, n in zip(mixed, plain) if m and n])} | {os.getloadavg()[0]:.1f} |", flush=True)
        child.end()
        beside.end()


main()
