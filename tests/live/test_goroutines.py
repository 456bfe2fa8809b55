#!/usr/bin/python3
"""Goroutines of Go programs: beside the program's own profile of them, stack by stack; what they wait for, how long."""

import collections
import socket

import pprof_reader
from harness import *

WAIT_SEC = 3
TURNS = 6  # of tests/targets/goroutines.go


def build(*options):
    need("go")
    path = scratch("goroutines" + "".join(options).replace(" ", "").replace("=", ""))
    env = {**os.environ, "GOCACHE": os.path.join(BUILD, "go-cache"), "GO111MODULE": "off", "GOFLAGS": "", "CGO_ENABLED": "0"}
    out = subprocess.run([tool("go"), "build", "-o", path, *options, os.path.join(TOP, "tests/targets/goroutines.go")],
                         env=env, capture_output=True, check=False)
    if out.returncode:
        raise Broken(f"go build: {out.stderr.decode()[-500:]}")
    return path


class Said:
    """A run on the program, and its own profile taken right after it."""

    def __init__(self, *options, seconds=WAIT_SEC, many=0):
        listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        child = Child([build(*options), str(listener.getsockname()[1]), str(many)], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE)
        self.peer = "127.0.0.1:%d" % listener.getsockname()[1]
        child.process.stdout.readline()
        self.run, _ = record(["-p", child.pid], lambda: time.sleep(seconds), "--only", "offcpu")
        own = scratch("goroutine.own")
        child.process.stdin.write(own.encode() + b"\n")
        child.process.stdin.flush()
        child.process.stdout.readline()
        self.own = pprof_reader.read(own)
        child.end()
        listener.close()
        self.summary = self.run.summary()["goroutines"]


@once
def plain():
    return Said()


OWN_FRAMES = 32  # that Go's own profile has of a stack, from the leaf on


def names(sample):
    """Root first, without what Go leaves out of its own profile."""
    return tuple(f.name for f in reversed(sample.frames) if f.name != "runtime.goexit")


def counts(profile):
    found = collections.Counter()
    for s in profile.samples:
        if s.values[0] and "main.main" not in names(s) and "main.takeTurns" not in names(s):
            found[names(s)[-OWN_FRAMES:]] += s.values[0]
    return found


@fact
def the_profile_is_the_programs_own_stack_by_stack():
    said = plain()
    ours, own = counts(said.run.profile("goroutine")), counts(said.own)
    equal(ours, own, "goroutines by stack")
    equal(sum(own.values()), 17, "goroutines that wait without end")
    [deep] = [names(s) for s in said.run.profile("goroutine").samples if "main.deep" in names(s)]
    equal(deep.count("main.deep"), 301, "calls of the deep one")


@fact
def those_that_take_turns_wait_for_all_but_one_turn():
    rows = [r for r in plain().summary["rows"] if r["function"] == "main.takeTurns"]
    waiting = sum(r["time_ns"] for r in rows if r["role"] == "mutex")
    asleep = sum(r["time_ns"] for r in rows if r["state"] == "sleep")
    total = plain().run.summary()["duration_ns"] * TURNS
    # One sleeps, five wait: at each look, but for the moment of a change, which is short against 20 ms.
    near(waiting / total, (TURNS - 1) / TURNS, 0.08, "waiting for the mutex")
    near(asleep / total, 1 / TURNS, 0.08, "asleep with the mutex")
    turns = sum(r["stops"] for r in rows if r["role"] == "mutex")
    check(turns > 20, f"{turns} stops in {WAIT_SEC} s of turns of 20 ms")


@fact
def a_peer_is_named_and_idle_goroutines_are_none_of_the_trouble():
    said = plain()
    [row] = [r for r in said.summary["rows"] if r["function"] == "main.ask"]
    equal((row["state"], row["peer"], row["now"]), ("IO wait", said.peer, 5), "who waits for the network")
    verdict = said.run.summary()["verdict"]
    equal(verdict["kind"], "contended", verdict["sentence"])
    check("main.takeTurns" in verdict["sentence"] and "sync.Mutex" in verdict["sentence"], verdict["sentence"])


@fact
def a_stripped_program_has_the_same():
    said = Said("-ldflags=-s -w", seconds=1)

    def main_only(profile):
        found = collections.Counter()
        for stack, n in counts(profile).items():
            found[tuple(name for name in stack if name.startswith("main."))[-20:]] += n
        return found

    equal(main_only(said.run.profile("goroutine")), main_only(said.own), "goroutines by the program's functions")


@fact
def of_many_a_part_is_looked_at_and_the_sum_is_an_estimate():
    many = 20000
    said = Said(seconds=2, many=many)
    s = said.summary
    part = s["one_in"]
    check(part >= 16, f"one in {part} was looked at")
    # A binomial's 5 sigma.
    near(s["now"], many, 5 * (many * (part - 1)) ** 0.5, "goroutines")
    check(s["looks"] >= 2, f"{s['looks']} looks")


main()
