"""What a service does for processes that are gone before anybody asks for them: nothing, and their stacks are whole all the same."""

import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import *  # noqa: E402
from serving import Serve  # noqa: E402

RATE = 200     # children a second, each of which ends at once
SECONDS = 8
ROOTS = {"clone3", "__clone3", "_start", "start_thread"}


def children(line):
    """How many, of a line of churn's."""
    return int(line.split()[0])


@fact
def children_that_end_at_once_are_not_followed():
    serve = Serve("-v", "-a", "--every", 30, "-F", 99, "--only", "oncpu").ready()
    churn = Child([os.path.join(TARGETS, "churn"), "processes", str(RATE)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    made = sum(children(churn.process.stdout.readline()) for _ in range(SECONDS))
    time.sleep(1)  # records are read five times a second
    serve.stop()
    churn.end()
    said = re.search(r"put (\d+) times at [\d.]+ us, (\d+) times not any more", serve.stderr)
    check(said, f"no word of lists: {serve.stderr[-1000:]}")
    put, gone = int(said[1]), int(said[2])
    # The parent is known by its first sample, and has 99 a second while it runs; what others on the host do is put as well.
    check(gone >= made / 2, f"of {made} children {gone} were seen to be gone before they were put")
    check(put < made / 4, f"{put} lists were put, while {made} children were made")
    samples = [s for w in serve.windows() for s in w.select(comm="churn")]
    users = [[f for f in s.frames if f.module != "[kernel]"] for s in samples]
    whole = sum(s.values[0] for s, u in zip(samples, users) if u and u[-1].name in ROOTS)
    of = sum(s.values[0] for s, u in zip(samples, users) if u)
    check(of >= 20 and whole >= 0.9 * of, f"{whole} of {of} user stacks reach the root: {[[f.name for f in u] for u in users if u and u[-1].name not in ROOTS][:3]}")


main()
