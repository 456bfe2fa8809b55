#!/usr/bin/python3
"""Readers of files that are taken over by what they read: nothing comes of it but that the file has no names, and that is said.

No file here breaks a reader, as the faults that are known are mended. So a library is preloaded that does, in each cell of a kind, what a
file would that had broken its reader (tests/targets/lib_taken_over.c): it tries some thirty ways out, and ends, never ends, or lies. For each kind
of cell there is a command that has one.
"""

import os
import re
import socket
import subprocess
import threading
import time

from harness import *

LIBRARY = os.path.join(BUILD, "targets/lib_taken_over.so")
NOTHING_WORKED = 100 << 8  # exit status 100, as waitpid(2) has it
KILLED = (9, 24)           # by who asked, or at its limit of CPU time


def kinds():
    """How many kinds of cells memscope has: a pointer each, in a section of theirs."""
    listed = subprocess.run(["readelf", "-SW", MEMSCOPE], capture_output=True, text=True, check=True).stdout
    size = re.search(r" cell_kinds +PROGBITS +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", listed)
    return int(size.group(1), 16) // 8


class Attack:
    """A folder that nothing may come out of, or into."""

    def __init__(self, mode, kind):
        self.dir, self.log = scratch("taken"), scratch("ends")
        os.mkdir(self.dir)
        os.chmod(self.dir, 0o777)
        self.secret = os.urandom(12).hex()
        with open(os.path.join(self.dir, "secret"), "w", encoding="utf-8") as f:
            f.write(self.secret)
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(os.path.join(self.dir, "socket"))
        self.server.listen()
        self.server.settimeout(0)
        open(self.log, "w", encoding="utf-8").close()
        self.env = {**os.environ, "LD_PRELOAD": LIBRARY, "TAKEN_OVER": mode, "TAKEN_OVER_KIND": str(kind), "TAKEN_OVER_LOG": self.log,
                    "TAKEN_OVER_DIR": self.dir, "MEMSCOPE_CACHE_DIR": scratch("cache")}

    def run(self, argv, timeout=200):
        begin = time.monotonic()
        got = subprocess.run([MEMSCOPE, *map(str, argv)], env=self.env, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                             timeout=timeout, check=False)
        self.seconds = time.monotonic() - begin
        return got

    def logged(self):
        with open(self.log, encoding="utf-8") as f:
            return [int(line) for line in f]

    def came_to_nothing(self, mode, text):
        wrong = [status for status in self.logged() if not (status == NOTHING_WORKED and mode in ("leaves", "lies") or
                                                       status in KILLED and mode != "leaves")]
        equal(wrong, [], "how its cells ended (status >> 8, less 100: which of the ways out worked)")
        equal(sorted(os.listdir(self.dir)), ["secret", "socket"], "what is in the folder")
        check(self.secret not in text, "the secret is out")
        try:
            self.server.accept()
            check(False, "somebody was connected to")
        except BlockingIOError:
            pass
        self.server.close()


@once
def work():
    """(processes with debug info: one that works, one with objects of classes, one that allocates structures, one whose threads wait for a
    lock; one of Python; a foreign profile)"""
    spins, heap, sites, locks = Target("cpu_split", 300000), Target("heap_graph", 500, 30, 4, 3), Target("heap_sites", 10), Target("locks", "mutex", 50)
    python = Child(["/usr/bin/python3", "-c", "import time\nwhile True: time.sleep(0.01)"])
    spins.say("go")
    locks.say("go")

    def allocate():
        while sites.alive():
            sites.say("sessions 1")
            time.sleep(0.05)

    threading.Thread(target=allocate, daemon=True).start()
    profile = scratch("foreign.folded")
    with open(profile, "w", encoding="utf-8") as f:
        f.write("main;work 3\n")
    return spins, heap, sites, locks, python, profile


def commands():
    """Each with whether there is a result without what its cells read; what then is missing is an exit status of 3."""
    spins, heap, sites, locks, python, profile = work()
    out = scratch("out")
    yield ["flame", profile, "-o", os.path.join(os.path.dirname(profile), "flame.svg")], False
    yield ["-p", spins.pid, "--only", "oncpu", "-F", 999, "-d", 0.3, "-o", out], True
    yield ["-p", sites.pid, "-d", 0.3, "-o", scratch("out")], True
    yield ["-p", spins.pid, "--only", "oncpu", "--count", "burn", "-d", 0.3, "-o", scratch("out")], False
    yield ["heap", "census", "-p", heap.pid], True
    yield ["heap", "census", "--trace", 1, "-p", sites.pid], True
    yield ["doctor", "-p", spins.pid], True
    yield ["-p", locks.pid, "--only", "offcpu", "-d", 1, "-o", scratch("out")], True
    yield ["-p", python.pid, "-d", 0.5, "-o", scratch("out")], True


def text_of(argv, got):
    """What was said, and what was written."""
    text = got.stdout + got.stderr
    for at in (str(a) for a in argv):
        files = [os.path.join(at, name) for name in os.listdir(at)] if os.path.isdir(at) else [at]
        for path in files:
            if at.startswith("/tmp") and os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as f:
                    text += f.read()
    return text


@once
def found():
    """{kind: the number of the first command that has such cells}"""
    kinds_of = {}
    for number, (argv, _) in enumerate(commands()):
        look = Attack("looks", 0)
        look.run(argv)
        look.server.close()
        for kind in look.logged():
            kinds_of.setdefault(kind, number)
    equal(sorted(set(range(kinds())) - set(kinds_of)), [], "kinds of cells that no command here has")
    return kinds_of


def taken_over(mode, kind):
    """(the command's words, the attack)"""
    argv, well = list(commands())[found()[kind]]
    attack = Attack(mode, kind)
    got = attack.run(argv)
    end = time.monotonic() + 0.5  # who makes cells may end after memscope
    while not attack.logged() and time.monotonic() < end:
        time.sleep(0.02)
    check(attack.logged(), f"{argv[0]} had no cell of kind {kind}")
    text = text_of(argv, got)
    attack.came_to_nothing(mode, text)
    check(got.returncode in (0, 3) + (() if well else (1,)), f"{argv[0]}: exit status {got.returncode}: {got.stderr[-300:]}")
    check(len(got.stderr.strip().splitlines()) >= 1 or well, f"{argv[0]}: no sentence")
    return argv, attack


@fact
def readers_of_every_kind_are_taken_over_and_nothing_comes_of_it():
    for kind in found():
        print(f"# kind {kind}: {taken_over('leaves', kind)[0][:1]}")


@fact
def answers_of_noise_are_no_answers():
    for kind in found():
        taken_over("lies", kind)


@fact
def a_reader_that_never_ends_is_ended():
    """Whether it takes CPU time or none, or answers a byte at a time. Members of types are had in a few seconds or not at all; others may take a minute for a file."""
    every = os.environ.get("MEMSCOPE_TEST_NEVER_END") == "every"
    for kind, number in found().items():
        argv = list(commands())[number][0]
        if argv[0] != "flame" if every else "census" in argv and "--trace" not in argv:
            for mode in ("hangs", "waits", "drips"):
                seconds = taken_over(mode, kind)[1].seconds
                print(f"# kind {kind}, {mode}: ended after {seconds:.1f} s")
                # A message's head alone takes 0.8 s: it was believed, and waited for until the time was over.
                check(mode != "drips" or seconds > 1.5, f"kind {kind}: what drips was given up after {seconds:.1f} s")


main()
