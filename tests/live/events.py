"""What the tests of events share: runs on a target, what their summaries and profiles have of events."""

from harness import *


def events_of(run):
    """{(event, part): row} of the summary."""
    return {(r["event"], r["part"]): r for r in run.summary()["events"]["rows"]}


def count_of(run, event, part=""):
    row = events_of(run)[event, part]
    equal(row["why"], "", f"{event} is there")
    return row["count"]


def value(run, profile, frame=None):
    """The sum of a profile, of stacks with this frame."""
    p = run.profile(profile)
    return sum(s.values[0] for s in p.samples if not frame or any(f.name == frame for f in s.frames))


def with_target(events, *commands, args=(), program="events", option="-e", status=0):
    """A target that does what it is told while its events are gathered."""
    target = Target(program)
    run = Run("-p", target.pid, option, events, *(args or ("--max-overhead", "1000")))
    run.ready()
    answers = [target.ask(c) for c in commands]
    run.stop()
    run.must(status)
    target.end()
    return run, answers


def calls_of(run):
    return {r["function"]: r for r in run.summary()["counts"]}
