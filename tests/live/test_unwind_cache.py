"""Stacks that are not walked again because all that the walk before depended on is as it was: they are the
ones that a walk finds, and those that differ in a single word are told apart."""

import re

import programs
from harness import *

# A busy machine makes a default run sample waits.
ALLOC = ("--only", "alloc,offcpu", "--alloc=exact", "--offcpu=exact")
TWINS = ("first", "second", "third", "fourth", "fifth")


def cached(run):
    found = re.search(r"stacks not walked again: (\d+)", run.stderr)
    return int(found.group(1)) if found else 0


def both_made(child, during=None, args=()):
    """A run in which what need not be walked again is, and compared."""
    run = Run("-p", child.pid, "-v", *ALLOC, *args, env={**os.environ, "MEMSCOPE_UNWIND_CACHE": "check"})
    run.ready()
    if during:
        during()
    else:
        has_worked(child.pid, 0.5)
    run.stop()
    check(run.status in (0, 3), f"exit status {run.status}: {run.stderr[-300:]}")
    n = cached(run)
    print(f"# {n} stacks were walked though they need not be, of "
          f"{sum(sum(s[v] for v in s if v != 'source') for s in run.summary()['stacks'])}")
    equal(run.lost("stacks_cached_wrong"), {}, "of them, those that were others")
    check(n > 0, "no stack needed not be walked")


def twins():
    target = Target("unwind_twins")
    run, lines = record(("-p", target.pid, "-v", *ALLOC), lambda: target.ask("go 40000"))
    told = {line[0]: [int(x) for x in line[1:]] for line in lines}
    return run, told


@fact
def stacks_that_differ_in_one_return_address_are_distinguished():
    run, told = twins()
    alloc, off = run.profile("alloc"), run.profile("offcpu")
    check(cached(run) > 1000, f"only {cached(run)} stacks were not walked again")
    for name in TWINS:
        calls, waits = told[name]
        check(calls > 5000 and waits > 100, f"{name} did little: {told[name]}")
        equal(alloc.sum("alloc_objects/count", name), calls, f"allocations below {name}")
        # A switch that the tracepoint was passed over for is in nobody's stack.
        near(off.sum("blocked/count", name), waits, 2 + waits / 100, f"waits below {name}")


@fact
def stacks_of_switches_exceptions_and_jumps_are_what_a_walk_finds():
    target = Target("alloc_jumps")
    target.ask("go")
    both_made(target)


@fact
def stacks_of_handlers_are_what_a_walk_finds():
    target = Target("unwind_jumps", "signal")
    both_made(target, lambda: target.ask("go"))


@fact
def stacks_whose_frames_have_all_shapes_are_what_a_walk_finds():
    both_made(programs.target("unwind_depth", "malloc", "15"))


@fact
def stacks_of_python_are_what_a_walk_finds():
    both_made(programs.python(), args=("--lang", "off"))  # with its frames, none is remembered


@fact
def stacks_of_sqlite_are_what_a_walk_finds():
    both_made(programs.sqlite())


@fact
def stacks_of_redis_are_what_a_walk_finds():
    both_made(programs.redis())


main()
