"""What the summary says of a run's stacks; for the suites about unwinding."""

from harness import *

WHOLE = 0.995  # the promise
# A program that is well within the promise has a tenth of what that allows. A short run has few stacks,
# and by chance more of those: what one such program in a million has is not held against it.
USUAL = 0.1


def verdicts(run, source):
    """{"complete": …, …} of a source's stacks."""
    for row in run.summary()["stacks"]:
        if row["source"] == source:
            return {k: v for k, v in row.items() if k != "source"}
    raise Broken(f"no verdicts about {source}")


def whole(run, source, at_least, what, share=WHOLE, spare=0, usual=None):
    """At least `share` of a source's stacks are complete; of few, all but those that chance may spoil
    where `usual` is the share of those that are not, and `spare` more whose reason is known."""
    found = verdicts(run, source)
    n = sum(found.values())
    print(f"# {what}: {source}: " + ", ".join(f"{v} {k}" for k, v in found.items() if v))
    check(n >= at_least, f"{what}: only {n} stacks {source}, wanted {at_least}")
    spoilt = max((1 - share) * n, chance((USUAL * (1 - share) if usual is None else usual) * n), spare)
    check(found["complete"] >= n - spoilt,
          f"{what}: {source}: not {share:.1%} complete: {found}")
