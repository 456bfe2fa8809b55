#!/usr/bin/python3
"""Samplers that runtimes and allocators have of their own, beside the profiles that these write.

Both are of the very same samples, and weigh them by the same rule: figures are equal, but for what
rounding takes off each sample and each row (a byte, and an object). Against what the program did,
they are within chance: 5 sigma of at most sqrt(rate x bytes) (test_sampled.py).
"""

import math
import os
import subprocess
import time

import pprof_reader
from harness import *

RATE = 512 * 1024
OWN = ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"]
SIGMAS = 5
ROUNDS = 20000
FUNCTIONS = ("main.keepNodes", "main.keepWide", "main.keepSlabs", "main.churn")


class Commanded(Target):
    """A target by its path."""

    def __init__(self, path, *args, **kw):
        Child.__init__(self, [path, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       **kw)
        self._line("ready", 10)


@functools.lru_cache(None)
def go_build(name, *options):
    need("go")
    path = scratch(name)
    env = {**os.environ, "GOCACHE": os.path.join(BUILD, "go-cache"), "GO111MODULE": "off",
           "GOFLAGS": "", "CGO_ENABLED": "0"}
    source = os.path.join(TOP, "tests/targets", f"{name}.go")
    out = subprocess.run([tool("go"), "build", "-o", path, *options, source], env=env,
                         capture_output=True, check=False)
    if out.returncode:
        raise Broken(f"go build: {out.stderr.decode()[-500:]}")
    return path


def go_run(path, *commands, options=("--only", "alloc")):
    """Runs the commands while memscope listens: (the run, the answers, Go's own profile)."""
    own = scratch("own.pb.gz")
    t = Commanded(path)

    def during():
        lines = []
        for command in (*commands, f"profile {own}"):
            lines += t.ask(command)
        return lines
    r, lines = record(("-p", t.pid, *options), during)
    t.end()
    return r, lines, pprof_reader.read(own)


@once
def go_plain():
    return go_run(go_build("go_allocs"), f"run {ROUNDS}")


def total(profile, kind, name):
    """Of the function's own calls: what Go's runtime allocates for itself on the system's stack (a
    goroutine's record) is on our stacks below whoever set it off; Go's own end at that stack."""
    i = profile.types.index(kind)
    return sum(s.values[i] for s in profile.select(name)
               if all(f.name != "runtime.systemstack" for f in s.frames))


def same_samples(run, own):
    """By function: what was allocated, and what lives."""
    equal(own.types, OWN, "types of Go's own profile")
    alloc, heap = run.profile("alloc"), run.profile("heap")
    told = 0
    for name in FUNCTIONS:
        rows = len(list(own.select(name)))
        for kind in OWN:
            ours = total(heap if kind.startswith("inuse") else alloc, kind, name)
            theirs = total(own, kind, name)
            # Theirs is cut to whole bytes by row; ours is rounded by sample.
            slack = rows + theirs / 1000 if "objects" in kind else rows + 0.5 * theirs / RATE + 64
            near(ours, theirs, slack, f"{kind} of {name} beside Go's own profile")
        told += own.sum(OWN[1], name)
    check(told > 0, "Go's own profile has none of it")


@fact
def go_is_listened_to_by_default_and_named():
    run, _, _ = go_plain()
    a = run.summary()["alloc"]
    equal(a["tier"], "sampled", "tier")
    equal(a["sampler"], "Go's runtime", "sampler")
    equal(a["rate"], RATE, "rate")
    sites = {row["function"] for row in a["sites"]}
    check(set(FUNCTIONS) <= sites, f"sites of allocations: {sites}")


@fact
def go_figures_are_those_of_gos_own_heap_profile():
    run, _, own = go_plain()
    same_samples(run, own)
    notes = " ".join(run.summary()["notes"])
    check("address came again" not in notes, notes)


@fact
def go_figures_are_within_chance_of_the_truth():
    run, lines, _ = go_plain()
    alloc, heap = run.profile("alloc"), run.profile("heap")
    for _, name, _, size, live in (line for line in lines if line[0] == "site"):
        near(alloc.sum(OWN[1], name), size, SIGMAS * math.sqrt(RATE * max(size, RATE)),
             f"bytes of {name}")
        near(heap.sum(OWN[3], name), live, SIGMAS * math.sqrt(RATE * max(live, RATE)),
             f"live bytes of {name}")


@fact
def go_memory_that_was_collected_is_not_live():
    run, _, own = go_run(go_build("go_allocs"), f"run {ROUNDS}", "drop")
    same_samples(run, own)
    heap = run.profile("heap")
    equal(heap.sum(OWN[3], "main.keepSlabs") + heap.sum(OWN[3], "main.keepNodes"), 0,
          "live bytes of what was dropped")
    check(heap.sum(OWN[3], "main.keepWide") > 0, "what was kept is live")


@fact
def go_stripped_is_listened_to_and_its_rate_assumed():
    run, _, own = go_run(go_build("go_allocs", "-ldflags=-s -w"), f"run {ROUNDS}")
    same_samples(run, own)
    check(any("is assumed" in note for note in run.summary()["notes"]), "the rate is not known")


@fact
def go_position_independent_is_listened_to():
    run, _, own = go_run(go_build("go_allocs", "-buildmode=pie"), f"run {ROUNDS}")
    same_samples(run, own)


@fact
def go_command_is_listened_to_from_its_beginning():
    own = scratch("own.pb.gz")
    script = f"run {ROUNDS}\nprofile {own}\nquit\n"
    path = scratch("commands")
    with open(path, "w", encoding="ascii") as f:
        f.write(script)
    run = Run("--only", "alloc", "--", go_build("go_allocs"), path)
    run.must()
    equal(run.summary()["alloc"]["sampler"], "Go's runtime", "sampler")
    same_samples(run, pprof_reader.read(own))


@fact
def go_program_whose_linker_turned_it_off_is_told_so():
    t = Commanded(go_build("go_quiet"))
    run = Run("-p", t.pid, "--only", "alloc", "-d", 0.5)
    run.finish()
    a = run.summary()["alloc"]
    check("never asks for a heap profile" in (a.get("reason") or ""), f"it does not say why: {a}")
    out = subprocess.run([MEMSCOPE, "doctor", "-p", str(t.pid)], capture_output=True, check=False)
    check(b"net/http/pprof" in out.stdout, "doctor does not say what to do")


main()
