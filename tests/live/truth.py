"""What the allocation targets say of themselves, against the profiles: equal, not near, where every call
is traced; where they are sampled, within what chance allows.

A figure of B bytes sampled every R on average has a variance of at most R x B (each block of S bytes
adds S^2 (1-p)/p, p = 1 - exp(-S/R), which is below R x S), and no block adds more than R to its own
size. Estimates are asked to be within what Bernstein's inequality makes of that: one figure in ten
million is not, however few samples it hangs on, where 5 sigma of so few would be passed more often.
"""

import math
import struct

from harness import Counter, Target, equal, near

ALLOC = ["alloc_objects/count", "alloc_space/bytes"]
HEAP = ALLOC + ["inuse_objects/count", "inuse_space/bytes"]
EXACT = ("--alloc=exact", "--only", "alloc")
RATE = 16384
LOG_CHANCE = math.log(2e7)
FIELDS = ("begun", "done", "begun_bytes", "done_bytes", "frees_begun", "frees", "freed_bytes", "inherited",
          "children", "execs")


class Truth(Counter):
    """What alloc_hard has counted so far."""

    def __init__(self):
        super().__init__()
        self.target = Target("alloc_hard")

    def __getattr__(self, name):
        return struct.unpack_from("<Q", self._map, 8 * FIELDS.index(name))[0]

    def command(self, what, *args):
        return " ".join([what, self.path, *map(str, args)])

    def ask(self, what, *args, timeout=240):
        return self.target.ask(self.command(what, *args), timeout)


def sites_of(lines):
    """{function: [calls, bytes, live calls, live bytes]} of a target's answer, and the total."""
    sites = {line[1]: line[2:] for line in lines if line[0] == "site"}
    return sites, next(line[1:] for line in lines if line[0] == "total")


def check_truth(run, lines, pid, total_is_all=True, by_function=lambda name: True):
    """Every count of the target, by function (those that `by_function` picks) and in total, in
    alloc and in heap."""
    alloc, heap = run.profile("alloc"), run.profile("heap")
    sites, total = sites_of(lines)
    for name, truth in sites.items():
        if not by_function(name):
            continue
        got = [alloc.sum(t, name, pid=pid) for t in ALLOC]
        equal(got, truth[:2], f"alloc: calls and bytes of {name}")
        got = [heap.sum(t, name, pid=pid) for t in HEAP]
        equal(got, truth, f"heap: calls, bytes, live calls, live bytes of {name}")
    if total_is_all:
        equal([alloc.sum(t, pid=pid) for t in ALLOC], total[:2], "alloc: total")
        got = [heap.sum(t, pid=pid) - heap.sum(t, "[before attach]", pid=pid) for t in HEAP]
        equal(got, total, "heap: total")
    return sites, total


def tolerance(truth, rate=RATE):
    part = LOG_CHANCE / 3 * rate
    return part + math.sqrt(part * part + 2 * LOG_CHANCE * rate * truth)


def check_estimates(run, lines, pid, rate=RATE, total_is_all=True):
    """Bytes and live bytes by function and in total. The numbers of blocks are not asked for by
    function: those of mixed sizes hang on a few small samples."""
    alloc, heap = run.profile("alloc"), run.profile("heap")
    sites, total = sites_of(lines)
    for name, (_, size, _, live) in sites.items():
        near(alloc.sum(ALLOC[1], name, pid=pid), size, tolerance(size, rate), f"bytes of {name}")
        near(heap.sum(HEAP[3], name, pid=pid), live, tolerance(live, rate), f"live bytes of {name}")
    if total_is_all:
        near(alloc.sum(ALLOC[1], pid=pid), total[1], tolerance(total[1], rate), "bytes in all")
        near(heap.sum(HEAP[3], pid=pid), total[3], tolerance(total[3], rate), "live bytes in all")
    return total
