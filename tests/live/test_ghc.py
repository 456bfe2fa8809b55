"""Stacks of Haskell in a program that nobody here wrote and that is stripped: Debian's pandoc."""

import math
import random
import re
import signal

from harness import *

RATE_HZ = 499
WORDS = "lorem ipsum dolor *sit* amet **consectetur** [adipiscing](http://a.b) elit `sed` do".split()


def document():
    """Some 1.5 s of work."""
    path, draw = scratch("document.md"), random.Random(1)
    with open(path, "w", encoding="ascii") as f:
        for i in range(600):
            f.write(f"# Head {i}\n\n{' '.join(draw.choice(WORDS) for _ in range(60))}\n\n")
    return path


@once
def recorded():
    if os.uname().machine != "x86_64":
        skip("Haskell's stacks are walked on x86-64 only")
    need("pandoc")
    pandoc = Child([tool("pandoc"), "-f", "markdown", "-t", "html", "-o", "/dev/null", document()])
    at_work(pandoc, 0.2)
    os.kill(pandoc.pid, signal.SIGSTOP)  # until it is watched: nothing is left of it on a machine that is busy
    run = Run("-p", pandoc.pid, "--only", "oncpu", "-F", RATE_HZ, "--max-overhead", 1000)
    run.ready()
    os.kill(pandoc.pid, signal.SIGCONT)
    run.finish()
    run.must()
    return run


def samples(run):
    """[(names root first, how often)] of the main thread in user space."""
    out = []
    for s in run.profile("oncpu").samples:
        names = [f.name for f in reversed(s.frames) if f.module != "[kernel]"]
        if names:
            out.append((names, s.values[0]))
    return out


def most(part, n):
    """So many of n samples may be what one in 1 / `part` is expected to be at most."""
    return part * n + SIGMAS * math.sqrt(part * n)


@fact
def haskell_stacks_of_a_stripped_program_are_complete():
    run = recorded()
    s = run.summary()
    row = next(row for row in s["stacks"] if row["source"] == "oncpu")
    n = sum(v for v in row.values() if isinstance(v, int))
    check(n >= 200, f"too few samples to say anything: {row}")
    check(n - row["complete"] <= most(0.01, n), f"{row}")
    check(s["languages"]["runtime"].startswith("GHC "), f"{s['languages']}")


@fact
def haskell_code_is_below_main_and_the_scheduler_that_runs_it():
    run = recorded()
    found = samples(run)
    all_ = sum(n for _, n in found)
    # One of the program's many functions, by its module's name.
    haskell = [(names, n) for names, n in found if any("Text.Pandoc" in name for name in names)]
    there = sum(n for _, n in haskell)
    check(there >= 0.1 * all_, f"{there} of {all_} samples have a function of pandoc's own")
    rootless = sum(n for names, n in haskell if not ("main" in names and "scheduleWaitThread" in names and
                                                     names.index("main") < names.index("scheduleWaitThread")))
    check(rootless <= most(0.01, there), f"{rootless} of {there} are not below main()")
    deep = max(len(names) for names, _ in haskell)
    check(deep >= 20, f"the deepest has {deep} frames")


@fact
def names_of_a_large_program_are_not_all_in_memory():
    """It exports 413,000 functions: copies of their names alone would be 37 MB."""
    need("readelf")
    out = subprocess.run(["readelf", "-SW", tool("pandoc")], capture_output=True, text=True, check=True).stdout
    names = int(re.search(r"\.dynstr\s+STRTAB\s+\w+\s+\w+\s+(\w+)", out).group(1), 16)
    own = recorded().summary()["memscope"]
    check((own["peak_kb"] - own["rss_kb"]) * 1024 < names, f"a peak of {own['peak_kb']} KiB, {own['rss_kb']} at the end")


main()
