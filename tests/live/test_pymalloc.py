"""CPython's objects: in the RSS ledger, against what the interpreter says of its own arenas; and traced,
against a program that makes a known number."""

import fcntl
import glob
import os
import re
import subprocess
import time

from harness import *
from truth import *

# Half of 100,000 are released, and pools of a size that nothing is of any more are free.
PROGRAM = """
import sys
kept = [bytes(100) for i in range(100000)]
for i in range(0, len(kept), 2):
    kept[i] = None
gone = [bytes(300) for i in range(20000)]
del gone
sys._debugmallocstats()
"""


# Of n zeros sys.getsizeof() is n + 33, which is what is asked for: at most 512 from an arena. Before 3.11
# bytes() makes a name of its arguments once as well.
MAKES = """
import sys
print("ready", flush=True)
sys.stdin.readline()
kept = [bytes(100) for i in range(20000)]
large = [bytes(5000) for i in range(300)]
for i in range(10000):
    bytes(200)
for i in range(200):
    bytes(6000)
print("made", flush=True)
sys.stdin.readline()
"""
LARGE = [500, 300 * 5033 + 200 * 6033, 300, 300 * 5033]  # calls, bytes, live, live bytes
ALL = [LARGE[0] + 30000, LARGE[1] + 20000 * 133 + 10000 * 233, LARGE[2] + 20000,
       LARGE[3] + 20000 * 133]


def waits_for_room(pid):
    """Is it in write(2, …)?"""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
            return f.read().split()[:2] == ["1", "0x2"]
    except OSError:
        return False


def looked_at(python, **env):
    """The ledger of a python that tells of its arenas, and what it tells. It is looked at while it
    waits for a reader: nothing is made or released in between."""
    if os.uname().machine != "x86_64":
        skip("the number of write() is x86-64's here")
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    try:
        while os.write(writes, b"." * 4096):
            pass
    except BlockingIOError:
        pass
    os.set_blocking(writes, True)
    child = Child([python, "-S", "-c", PROGRAM], stderr=writes, stdin=subprocess.DEVNULL,
                  env={**os.environ, **env})
    os.close(writes)
    until = time.monotonic() + 60
    while not waits_for_room(child.pid):
        if time.monotonic() > until or not child.alive():
            raise Broken(f"{python} does not tell of its arenas")
        time.sleep(0.02)
    run = Run("-p", child.pid, "--only", "growth", "-d", 0.3)
    run.finish()
    run.must()
    check(waits_for_room(child.pid), "it went on meanwhile")
    with os.fdopen(reads, "rb") as f:
        said = f.read().decode().lstrip(".")
    child.end()
    return run, run.summary()["rss_breakdown"], said


def figure(said, pattern):
    return int(re.search(pattern, said).group(1).replace(",", ""))


def is_as_it_says(python):
    run, found, said = looked_at(python)
    objects = found["objects"]
    if not check(objects, f"{python}: its objects were not found: {found['walked']}"):
        return
    parts = objects["parts"]
    unused = re.search(r"(\d+) unused pools \* (\d+) bytes", said)
    equal(objects["arenas"], figure(said, r"# arenas allocated current *= *([\d,]+)"), "arenas")
    equal(parts["live"]["bytes"], figure(said, r"# bytes in allocated blocks *= *([\d,]+)"), "live")
    # class, size, pools, blocks in use, blocks that are free
    rows = re.findall(r"^ *\d+ +\d+ +\d+ +(\d+) +\d+$", said, re.M)
    equal(parts["live"]["blocks"], sum(map(int, rows)), "live blocks")
    equal(parts["free_retained"]["bytes"],
          figure(said, r"# bytes in available blocks *= *([\d,]+)") +
          int(unused.group(1)) * int(unused.group(2)), "free")
    equal(parts["metadata"]["bytes"],
          sum(figure(said, rf"# bytes lost to {what} *= *([\d,]+)")
              for what in ("pool headers", "quantization", "arena alignment")), "its own")
    equal(parts["heap_unwalked"]["bytes"], 0, "not walked")
    equal(found["walked"], "glibc, pymalloc", "allocators")
    check(parts["live"]["bytes"] > 50000 * 133, f"live: {parts['live']}")
    # It waits: RSS has nothing that is not in a part.
    near(found["unexplained_bytes"], 0, 0.005 * found["rss_bytes"], "unexplained")
    text = open(run.path("summary.txt"), encoding="utf-8").read()
    check(f"pymalloc's {objects['arenas']} arenas: " in text, "the summary has no line for it")


@fact
def arenas_of_the_stripped_interpreter_are_as_it_says_to_the_byte():
    need("python3.11")
    is_as_it_says("/usr/bin/python3.11")


def of_versions(*versions):
    """One of these, built from source."""
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for version in versions:
        for found in sorted(glob.glob(f"{root}/versions/{version}.*/bin/python{version}")):
            return found
    return skip(f"none of python {', '.join(versions)} is below {root}/versions")


@fact
def arenas_in_the_interpreters_state_are_found_as_well():
    is_as_it_says(of_versions("3.13", "3.12"))


@fact
def arenas_of_256_kib_are_found_as_well():
    is_as_it_says(of_versions("3.9", "3.8"))


def traced(python, *args):
    child = Child([python, "-S", "-c", MAKES], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdout.readline()
    run = Run("-p", child.pid, "--only", "alloc", "--alloc=exact", *args)
    run.ready()
    child.process.stdin.write(b"go\n")
    child.process.stdin.flush()
    child.process.stdout.readline()
    run.stop()
    child.end()
    return run, open(run.path("summary.txt"), encoding="utf-8").read()


def made(run):
    """Where bytes are made, and nothing else is."""
    profile = run.profile("heap")
    return [profile.sum(t, "bytes_new") for t in HEAP]


@fact
def every_object_is_traced_where_that_is_asked_for():
    python = of_versions("3.11", "3.12", "3.13")
    run, text = traced(python, "--python-objects")
    run.must()
    # What is larger than 512 bytes comes from malloc beneath, and counts once.
    equal(made(run), ALL, "calls, bytes, live, live bytes of bytes()")
    check(run.summary()["alloc"]["earlier_frees"] < 100, "frees of unknown blocks")
    check("--python-objects" not in text, "something was not traced")


def injected(python):
    if os.uname().machine != "x86_64":
        skip("a library can be injected on x86-64 only")
    run, text = traced(python, "--inject")
    run.must()
    profile = run.profile("heap")
    sites = {tuple(s.values[profile.types.index(t)] for t in HEAP) for s in profile.samples}
    # By line, as each interpreter calls bytes() from other functions, which Debian's has no names of.
    for n, size, lives in ((20000, 133, True), (300, 5033, True), (10000, 233, False), (200, 6033, False)):
        want = (n, n * size, *((n, n * size) if lives else (0, 0)))
        check(want in sites, f"no site with {want}: {sorted(sites)[-8:]}")
    check("small objects" not in text, "objects were not seen")


@fact
def every_object_is_recorded_in_the_process_of_the_stripped_interpreter():
    need("python3.11")
    injected("/usr/bin/python3.11")


@fact
def every_object_is_recorded_in_the_process_of_others():
    injected(of_versions("3.8", "3.9"))
    injected(of_versions("3.13", "3.12"))


# Objects of many kinds, each on a line of its own; tracemalloc comes in above our hooks, and goes.
COUNTED = """
import sys, threading, time, tracemalloc
class Thing:
    def __init__(self, n):
        self.n = n
        self.name = "thing %d" % n
def make(kept):
    for i in range(3000):
        kept.append([i, i + 1])
        kept.append({"n": i, "m": 1.5})
        kept.append(Thing(i))
        kept.append("text " + str(i))
        kept.append((float(i), i * 1000003))
        if i % 3 == 0:
            del kept[-2:]
print("ready", flush=True)
sys.stdin.readline()
for _ in range(100):
    time.sleep(0.01)
tracemalloc.start()
kept = []
make(kept)
lines = {}
for trace in tracemalloc.take_snapshot().traces:
    at = trace.traceback[0]
    if at.filename == __file__:
        n, size = lines.get(at.lineno, (0, 0))
        lines[at.lineno] = n + 1, size + trace.size
tracemalloc.stop()
print(lines, flush=True)
sys.stdin.readline()
make([])
print("ended", flush=True)
"""


def counted(python):
    if os.uname().machine != "x86_64":
        skip("a library can be injected on x86-64 only")
    path = scratch("counted") + ".py"
    with open(path, "w", encoding="utf-8") as f:
        f.write(COUNTED)
    child = Child([python, "-S", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdout.readline()
    run = Run("-p", child.pid, "--only", "alloc", "--alloc=exact", "--inject", "--max-overhead", 1000)
    run.ready()
    child.process.stdin.write(b"go\n")
    child.process.stdin.flush()
    want = eval(child.process.stdout.readline())
    run.stop()
    run.must()
    # As before without us, and with what tracemalloc has put back.
    child.process.stdin.write(b"go\n")
    child.process.stdin.flush()
    equal(child.process.stdout.readline(), b"ended\n", "the program's end")
    equal(child.process.wait(30), 0, "exit status")
    profile, got = run.profile("heap"), {}
    count, size = (profile.types.index(t) for t in HEAP[2:])
    for s in profile.samples:
        at = next((f.line for f in s.frames if f.module == "[Python]"), None)
        # Of each line tracemalloc itself keeps 24 bytes, which it takes from malloc, as no object of that size is.
        own = s.frames[0].name == "malloc" and s.values[size] <= 512 * s.values[count]
        if at in want and not own and any(f.file == path for f in s.frames):
            n, total = got.get(at, (0, 0))
            got[at] = n + s.values[count], total + s.values[size]
    check(len(want) >= 6 and sum(n for n, _ in want.values()) > 20000, f"tracemalloc: {want}")
    equal(got, want, f"{python}: live blocks and bytes by line, as tracemalloc has them")


@fact
def live_objects_by_line_are_those_of_tracemalloc():
    need("python3.11")
    counted("/usr/bin/python3.11")
    counted(of_versions("3.13", "3.12"))


SAMPLED = """
import sys
def keep(n):
    kept = [None] * n
    for i in range(n):
        kept[i] = bytes(100)
    return kept
def drop(n):
    for i in range(n):
        bytes(200)
print("ready", flush=True)
sys.stdin.readline()
kept = keep(200000)
drop(100000)
print("made", flush=True)
sys.stdin.readline()
"""


@fact
def samples_of_small_objects_estimate_what_was_made():
    if os.uname().machine != "x86_64":
        skip("a library can be injected on x86-64 only")
    need("python3.11")
    rate = 16384
    child = Child(["/usr/bin/python3.11", "-S", "-c", SAMPLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdout.readline()
    run = Run("-p", child.pid, "--only", "alloc", "--alloc=sampled", "--inject", "--alloc-rate", "16K", "--max-overhead", 100000)
    run.ready()
    child.process.stdin.write(b"go\n")
    child.process.stdin.flush()
    child.process.stdout.readline()
    run.stop()
    run.must()
    child.end()
    profile = run.profile("heap")
    # With the number that counts them, of 28 bytes, and the list.
    for name, space, live in (("keep", 200000 * (133 + 28 + 8), 200000 * (133 + 8)), ("drop", 100000 * (233 + 28), 0)):
        of = [s for s in profile.samples if any(f.module == "[Python]" and f.name.startswith(name) for f in s.frames)]
        for t, want in ((HEAP[1], space), (HEAP[3], live)):
            got = sum(s.values[profile.types.index(t)] for s in of)
            # A Poisson number of samples of `rate` bytes, 5 sigma.
            near(got, want, 5 * (rate * want) ** 0.5 + 2 * rate, f"{name}: {t}")


# Threads that are in malloc without the interpreter's lock when it is finalized, and children that go on.
ENDS = """
import os, sys, threading, zlib
data = os.urandom(1 << 20)
def work():
    while True:
        zlib.decompress(zlib.compress(data, 1))
        [[i] for i in range(1000)]
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
children = []
for _ in range(4):
    child = os.fork()
    if not child:
        x = [[i] for i in range(100000)]
        sys.exit(7)
    children.append(child)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children], flush=True)
if sys.argv[1] == "end":
    sys.exit(5)
sys.stdin.readline()
[[i] for i in range(100000)]
sys.exit(5)
"""


def ends(python, how, *args):
    if os.uname().machine != "x86_64":
        skip("a library can be injected on x86-64 only")
    child = Child([python, "-S", "-c", ENDS, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdout.readline()
    run = Run("-p", child.pid, "--only", "alloc", "--inject", "--max-overhead", 1000, *args)
    run.ready()
    time.sleep(0.3)
    child.process.stdin.write(b"go\n")
    child.process.stdin.flush()
    equal(child.process.stdout.readline(), b"[7, 7, 7, 7]\n", f"{python}: {how}: exit statuses of forked children")
    if how == "kill":
        run.process.kill()
        child.process.stdin.write(b"go\n")
        child.process.stdin.flush()
    equal(child.process.wait(30), 5, f"{python}: {how}: exit status")
    if how == "end":
        run.finish()


@fact
def interpreters_that_fork_and_end_or_lose_us_do_as_before():
    need("python3.11")
    for python in ("/usr/bin/python3.11", of_versions("3.13", "3.12"), of_versions("3.9", "3.8")):
        ends(python, "end", "--alloc=exact")
    ends("/usr/bin/python3.11", "kill", "--alloc=exact")
    ends("/usr/bin/python3.11", "end", "--alloc=sampled", "--alloc-rate", "16K")


@fact
def without_being_asked_only_what_malloc_gives_is_traced():
    run, _ = traced(of_versions("3.11", "3.12", "3.13"))
    run.must()
    equal(made(run), LARGE, "calls, bytes, live, live bytes of bytes()")


@fact
def objects_whose_calls_cannot_all_be_seen_are_refused_by_name():
    need("python3.11")
    run, text = traced("/usr/bin/python3.11", "--python-objects")
    check(re.search(r"--python-objects: not all calls of\s+/usr/bin/python3.11's\s+object\s+allocator",
                    text), "the summary does not say so")
    within(run.profile("heap").sum(HEAP[0]), LARGE[0], LARGE[0] + 10000, "calls of malloc alone")


LEAKS = """
import time
kept, pairs = [], 0
print("ready", flush=True)
input()
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    for i in range(50):
        x = [i, (i, i + 1)]
    kept.append(1.5 * len(kept))
    pairs += 1
print(pairs, flush=True)
input()
"""


def in_bursts(python, *args, seconds=7):
    child = Child([python, "-S", "-c", LEAKS.replace("SECONDS", str(seconds))], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdout.readline()
    run = Run("-p", child.pid, "--only", "alloc,offcpu", "--alloc=bursts", "--interval", 0.5, *args)
    run.ready()
    child.process.stdin.write(b"go\n")
    child.process.stdin.flush()
    leaked = int(child.process.stdout.readline())
    run.stop()
    child.end()
    return run, leaked


@fact
def objects_that_leak_are_found_in_bursts():
    # By the interpreter's functions: in Python's terms it is all one line.
    # Of fewer than 20 blocks of a site nobody knows which were reused (live_heap.h): a machine on which bursts are rare runs for longer.
    # One block in a hundred is kept, so that a burst of 600 sees some: the numbers that are freed leave their memory to them, and of who
    # never is seen to end all is taken to live (of one in 400 on such a machine, the leak was 36 % too small).
    for seconds in (7, 30):
        run, leaked = in_bursts(of_versions("3.11", "3.12", "3.13"), "--python-objects", "--lang", "off", seconds=seconds)
        run.must()
        alloc = run.summary()["alloc"]
        check("pymalloc" in alloc["live_estimate"]["allocators"], f"walked: {alloc['live_estimate']}")
        floats = [x for x in alloc["live_sites"] if x["function"] == "PyFloat_FromDouble"]
        check(floats, f"sites: {[x['function'] for x in alloc['live_sites']]}")
        if sum(x["samples"] for x in floats) >= 20:
            break
    # Of 24 bytes each. Where stacks were taken before memscope had the interpreter's table they are cut, and a site of their
    # own: all together, 2.6 times the 95 % interval on either side, which is 5 sigma.
    got = sum(x["bytes"] for x in floats)
    below, above = (math.hypot(*(x[end] - x["bytes"] for x in floats)) for end in ("low", "high"))
    within(24 * leaked, got - 2.6 * below, got + 2.6 * above, f"leaked: {floats}")


@fact
def objects_that_are_not_traced_are_not_among_what_bursts_estimate():
    need("python3.11")
    run, leaked = in_bursts("/usr/bin/python3.11", "--python-objects")
    estimate = run.summary()["alloc"]["live_estimate"]
    check(estimate["objects_bytes"] > 24 * leaked, f"objects: {estimate}")
    equal(estimate["allocators"], "glibc", "walked")


@fact
def interpreter_that_takes_all_from_malloc_has_no_arenas():
    need("python3")
    _, found, _ = looked_at("/usr/bin/python3", PYTHONMALLOC="malloc")
    equal(found["objects"], None, "objects")
    equal(found["walked"], "glibc", "allocators")


main()
