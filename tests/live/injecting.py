"""What facts about the injected library share: the program that injects it, and what of it is in a target."""

import os
import subprocess

from harness import *

LIBRARY = os.path.join(BUILD, "libmemscope-alloc.so")
INJECT = os.path.join(BUILD, "tests/bench/inject")


def cycles(pid, n, *args, library=LIBRARY):
    """The library goes in and out `n` times -> exit status, figures of what was done, sentence on stderr."""
    got = subprocess.run([INJECT, str(pid), library, str(n), *map(str, args)], capture_output=True, text=True,
                         timeout=60 + n, check=False)
    return got.returncode, [int(w) for w in got.stdout.split()], got.stderr.strip()


def agents(pid):
    """How many threads of the library a process has."""
    names = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm", encoding="ascii", errors="replace") as f:
                names.append(f.read())
        except FileNotFoundError:
            pass
    return names.count("memscope-alloc\n")


def sees_no_wait_ended(target, wait, n, *args):
    """A target whose only thread waits in `wait` and counts waits that ended early sees none in `n` cycles."""
    begun = target._line("alone", READY_SEC)
    status, _, why = cycles(target.pid, n, *args)
    equal(status, 0, f"a thread in {wait}: {why}")
    line = begun
    for _ in range(100):  # what it says after the last cycle
        line = target._line("alone", READY_SEC)
        if int(line[2]) > int(begun[2]) + 20:
            break
    equal(line[1], "0", f"errors of a thread in {wait}")
    target.end()
