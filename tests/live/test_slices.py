"""What a service gathers in slices of the time (bpf/slices.h) stands for all of it: against what the kernel counts."""

import os
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import *  # noqa: E402
from serving import Serve  # noqa: E402

STRATUM = 2.0  # seconds (collect/overhead/slices.h)


def counts_of(pid):
    """(monotonic seconds, times that its threads blocked, CPU seconds of all of them)."""
    blocked, cpu_ns = 0, 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as f:
            blocked += next(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt_switches"))
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            cpu_ns += int(f.read().split()[0])
    return time.monotonic(), blocked, cpu_ns / 1e9


class Watch(threading.Thread):
    """The counts of a process, ten times a second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.rows, self.done = pid, [counts_of(pid)], threading.Event()
        self.start()

    def run(self):
        while not self.done.wait(0.1):
            self.rows.append(counts_of(self.pid))

    def stop(self):
        self.done.set()
        self.join()
        self.rows.append(counts_of(self.pid))
        return self.rows


def slices_stand_for_all(pid, threads, begin):
    serve = Serve("-p", pid, "--every", 6, "--max-overhead", 0.2).ready()
    begin()
    watch = Watch(pid)
    serve.says("waits: gathered in 1/", 60)
    time.sleep(12)
    rows = watch.stop()
    serve.stop()
    windows = serve.windows("offcpu")
    check(any("estimates: gathered in" in c for w in windows for c in w.comments), "no window says that it is an estimate")

    seconds, blocks, cpu = (b - a for a, b in zip(rows[0], rows[-1]))
    rates = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(rows, rows[1:])]
    strata = seconds / STRATUM
    # A slice stands for its stratum: what the rate varies by within one, by chance of the draw in each, four standard
    # errors; and the stratum that the run's end cuts is there as a whole or not at all.
    allowed = 4 * statistics.stdev(rates) * STRATUM * strata ** 0.5 + max(rates) * STRATUM
    found = sum(w.sum("blocked/count") for w in windows)
    within(found, blocks - allowed, blocks + allowed, f"waits, of {blocks} in {seconds:.1f} s, {statistics.mean(rates):.0f} a second")
    # By the slices' clock the threads are off CPUs for what they are not on them.
    off = sum(w.sum(name) for w in windows for name in ("blocked/nanoseconds", "runnable/nanoseconds")) / 1e9
    within(off, threads * (seconds - STRATUM) - cpu, threads * (seconds + STRATUM) - cpu + 1,
           f"seconds off CPUs, of {threads * seconds:.1f} less {cpu:.1f} on them")


@fact
@alone("a rate that is even within a slice")
def waits_of_a_flood_are_gathered_in_slices_that_stand_for_all_of_them():
    target, counter = Target("pingpong", online_cpus()[-1]), Counter()
    slices_stand_for_all(target.pid, 2, lambda: target.say(f"rate {counter.path}"))


@fact
@alone("a rate that is even within a slice")
def so_are_they_where_programs_rest_between_slices():
    # Some 20,000 runs a second: where attaching and detaching takes 4 ms or more, as in many virtual machines.
    target = Child([os.path.join(TARGETS, "churn"), "switches", "3000"], stdout=subprocess.DEVNULL)
    slices_stand_for_all(target.pid, 3, lambda: None)
    target.end()


main()
