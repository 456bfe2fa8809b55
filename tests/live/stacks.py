"""What the summary says of a run's stacks; for the suites about unwinding."""

from harness import *

WHOLE = 0.995  # the promise


def verdicts(run, source):
    """{"complete": …, …} of a source's stacks."""
    for row in run.summary()["stacks"]:
        if row["source"] == source:
            return {k: v for k, v in row.items() if k != "source"}
    raise Broken(f"no verdicts about {source}")


def whole(run, source, at_least, what, share=WHOLE, spare=0):
    """At least `share` of a source's stacks are complete; of few, all but `spare`."""
    found = verdicts(run, source)
    n = sum(found.values())
    print(f"# {what}: {source}: " + ", ".join(f"{v} {k}" for k, v in found.items() if v))
    check(n >= at_least, f"{what}: only {n} stacks {source}, wanted {at_least}")
    check(found["complete"] >= min(share * n, n - spare),
          f"{what}: {source}: not {share:.1%} complete: {found}")
