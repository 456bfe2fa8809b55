"""Frames of Python: each stack that Python sees itself is the one in the profile, function by function, file by
file, line by line, for waits, samples and allocations; in CPython of each kind that is installed here (all with
MEMSCOPE_TEST_PYTHON=every)."""

import functools
import glob
import re

import programs
from harness import *
from languages import *
from stacks import whole

LANG = "[Python]"
PROGRAM = os.path.join(TOP, "tests/targets/py_stacks.py")
THREADS = 4        # of the program, at most
ALLOCATED = 100000  # bytes, by the program; CPython adds a few


@functools.cache
def interpreters():
    found = programs.pythons()
    if not found:
        skip("no CPython from 3.8 on is installed")
    return found


def one_of_each_kind():
    """Of those, one for each way in which runs of frames end: up to 3.10, 3.11, from 3.12 on."""
    kinds = {min(max(int(version.split(".")[1]), 10), 12): path for path, version in interpreters().items()}
    return {path: interpreters()[path] for path in kinds.values()}


def run_under(found, *args):
    """A run on the program under some interpreters at once."""
    children = [Printer(f"CPython {version}", [path, PROGRAM, "600"], json_line, stdin=subprocess.PIPE,
                        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}) for path, version in found.items()]
    for child in children:
        child.ready()
    run = Run("-p", ",".join(str(c.pid) for c in children), *args, "--max-overhead", 1000)
    run.ready()
    has_worked([child.pid for child in children], 0.2, 80)
    run.stop()
    for child in children:
        child.end()
    return run, children


@once
def everywhere():
    """Every interpreter."""
    return run_under(interpreters(), "--alloc=exact", "--offcpu=exact", "-F", 999)


@once
def recorded():
    if os.uname().machine != "x86_64":
        skip("a library can be injected on x86-64 only")
    return run_under(one_of_each_kind(), "--alloc=exact", "--inject", "--only", "alloc")


GONE = "[Python code that is gone]"


def is_place(frames, place):
    """What the profile has of a place: code that is run once may have been freed before it could be named, and its
    lines with it."""
    return len(frames) == len(place) and all(
        got[0] == GONE or got == want or (got[:2] == want[:2] and got[2] == 0) for got, want in zip(frames, place))


def is_gone(frames, truth):
    return any(is_place(frames, place) for place in truth if "<made later>" in str(place) or "py_stacks_module" in str(place))


compare = Comparison("Python", frames_of(LANG), is_gone=is_gone, unread_max=THREADS)


def sleeps(sample, _profile):
    return any(re.match("hrtimer_nanosleep|do_select$|core_sys_select", f.name) for f in sample.frames)


def spins(sample, _profile):
    return any(f.module.startswith("/") and "libz.so" in f.module for f in sample.frames)


@fact
def python_stacks_of_waits_are_those_that_python_prints():
    compare(*everywhere(), "offcpu", "sleep", sleeps, 1)


@fact
def python_stacks_of_allocations_are_those_that_python_prints():
    compare(*everywhere(), "alloc", "alloc", bytes_each(ALLOCATED, ALLOCATED + 100), 1)


@fact
def python_stacks_recorded_in_the_process_are_those_that_python_prints():
    # What is compiled and run once has been freed when memscope reads its name: 2 of the places.
    compare(*recorded(), "alloc", "alloc", bytes_each(ALLOCATED, ALLOCATED + 100), 0.9)
    run, _ = recorded()
    whole(run, "alloc", 100, "CPython")
    nothing_damaged(run)


@fact
def python_stacks_of_samples_are_those_that_python_prints():
    # In zlib's own code: what runs is the line that has called it.
    compare(*everywhere(), "oncpu", "spin", spins, 0.3)


@fact
def stacks_of_python_are_whole():
    run, _ = everywhere()
    for source in ("oncpu", "offcpu", "alloc"):
        whole(run, source, 100, "CPython")
    nothing_damaged(run)


def python(code, *args, interpreter="/usr/bin/python3"):
    """Debian's Python, or another, on a program of a few lines, at work."""
    return at_work_on(interpreter, code, ".py", *args)


# What each does is the same, and is all of Python: so many rounds are so much time.
SPLIT = """
def spin(n):
    x = 0
    for i in range(n):
        x = (x * 31 + i) % 1000003
    return x
def seventy():
    spin(7000)
def twenty():
    spin(2000)
def ten():
    spin(1000)
while True:
    seventy()
    twenty()
    ten()
"""


@fact
def a_split_of_70_20_10_between_functions_of_python_is_found():
    child = python(SPLIT)
    run = Run("-p", child.pid, "--only", "oncpu", "-F", 999)
    run.ready()
    has_worked(child.pid, 3)
    run.stop()
    split_of_70_20_10(run, LANG)


@fact
def languages_can_be_left_out_and_the_interpreter_kept():
    child = python(SPLIT)
    found = {}
    for option in (["--lang", "off"], ["--native", "keep"], []):
        run = Run("-p", child.pid, "--only", "oncpu", "-F", 499, *option)
        run.ready()
        has_worked(child.pid, 0.4)
        run.stop()
        found[" ".join(option)] = [[(f.name, f.module) for f in s.frames] for s in run.profile("oncpu").samples]
    for option, stacks in found.items():
        lang = [s for s in stacks if any(module == LANG for _, module in s)]
        evals = [s for s in stacks if any(name == "_PyEval_EvalFrameDefault" for name, _ in s)]
        if option == "--lang off":
            check(not lang and evals, f"{option}: {len(lang)} stacks have frames of Python, {len(evals)} the interpreter's")
        elif option == "--native keep":
            check(len(lang) > 0.9 * len(stacks) and len(evals) > 0.9 * len(stacks),
                  f"{option}: of {len(stacks)} stacks {len(lang)} have frames of Python, {len(evals)} the interpreter's")
        else:
            check(len(lang) > 0.9 * len(stacks) and len(evals) < 0.2 * len(stacks),
                  f"by default: of {len(stacks)} stacks {len(lang)} have frames of Python, {len(evals)} the interpreter's")


# Code of a file is mapped over what was there, again and again: while memscope does not know what, stacks are walked later.
REMAPS = """
import mmap
file = open("/bin/true", "rb")
def spin():
    x = 0
    for i in range(60000):
        x = (x * 31 + i) % 1000003
def turn():
    m = mmap.mmap(file.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    spin()
    m.close()
    spin()
def main():
    while True:
        turn()
main()
"""


@fact
def stacks_of_python_that_are_walked_later_have_its_frames_of_then():
    children = {python(REMAPS, interpreter=path): version for path, version in one_of_each_kind().items()}
    run = stopped_meanwhile(list(children), 49, 0.3, 5 * len(children))
    whole_chain = ["spin", "turn", "main", "<module>"]
    p = run.profile("oncpu")
    for child, version in children.items():
        stacks = [functions_of(s, LANG) for s in p.samples
                  if s.labels.get("pid") == child.pid]
        odd = [s for s in stacks if not s or s != whole_chain[-len(s):]]
        check(stacks and not odd, f"CPython {version}: {len(odd)} of {len(stacks)} stacks do not have their frames: {odd[:2]}")


# Half of the time in another interpreter of the same thread, or in a greenlet.
ELSEWHERE = """
import sys
def spin():
    x = 0
    for i in range(200000):
        x = (x * 31 + i) % 1000003
CODE = '''
def in_other():
    x = 0
    for i in range(200000):
        x = (x * 31 + i) % 1000003
def other():
    in_other()
other()
'''
def interpreters():
    try:
        import _interpreters as m
    except ImportError:
        import _xxsubinterpreters as m
    which = m.create()
    while True:
        getattr(m, "exec", getattr(m, "run_string", None))(which, CODE)
        spin()
def greenlets():
    import greenlet
    def child():
        while True:
            spin()
            here.parent.switch()
    here = greenlet.greenlet(child)
    while True:
        here.switch()
        spin()
globals()[sys.argv[1]]()
"""
RIGHT = {"interpreters": ["spin interpreters <module>", "in_other other <module>"],
         "greenlets": ["spin greenlets <module>"]}  # and of the greenlet its own frames alone, as Python has it


@fact
def frames_of_other_interpreters_and_greenlets_are_right_or_the_stack_is_guessed():
    children = {python(ELSEWHERE, "interpreters", interpreter=path): ("interpreters", version)
                for path, version in one_of_each_kind().items()}
    if subprocess.run(["/usr/bin/python3", "-c", "import greenlet"], capture_output=True, check=False).returncode == 0:
        children[python(ELSEWHERE, "greenlets")] = ("greenlets", "Debian's")
    for child, (what, version) in children.items():
        run = Run("-p", child.pid, "--only", "oncpu", "-F", 499)
        run.ready()
        has_worked(child.pid, 0.5)
        run.stop()
        p, s = run.profile("oncpu"), run.summary()
        other, n = 0, 0
        for sample in p.samples:
            weight = sample.values[p.types.index("samples/count")]
            n += weight
            if " ".join(functions_of(sample, LANG)) not in RIGHT[what]:
                other += weight
        guessed = sum(row["guessed"] for row in s["stacks"])
        # In functions of the one that is not seen, or between the two that are: the call from one to the other.
        check(n > 50 and other <= guessed + 0.1 * n, f"{what}, CPython {version}: of {n} samples {other} have other frames, "
              f"but only {guessed} count as guessed: {s['languages']}")
        check(guessed >= 0.3 * n, f"{what}, CPython {version}: only {guessed} of {n} samples count as guessed")


@fact
def an_interpreter_that_is_unloaded_or_exchanged_for_another_is_found_again():
    libraries = []
    for path, version in interpreters().items():
        minor = version.split(".")[1]
        libraries += [(minor, lib) for lib in glob.glob(os.path.join(os.path.dirname(path), f"../lib/libpython3.{minor}.so.1.0"))]
    if len(libraries) < 2:
        skip("no two shared libraries of CPython are installed")
    two = [libraries[0], libraries[-1]]
    pairs = [text for minor, lib in two for text in (
        os.path.realpath(lib), f"def in_{minor}():\n x = 0\n for i in range(4000000):\n  x = (x * 31 + i) % 1000003\nin_{minor}()\n")]
    run = Run("--only", "oncpu", "-F", 499, "--", os.path.join(BUILD, "targets/py_exchange"), 4, *pairs)
    run.finish()
    p, n, native = run.profile("oncpu"), {minor: 0 for minor, _ in two}, 0
    for s in p.samples:
        names = set(functions_of(s, LANG))
        weight = s.values[p.types.index("samples/count")]
        for minor in n:
            n[minor] += weight * (f"in_{minor}" in names)
        native += weight * (not names and any(f.name.startswith("_PyEval_EvalFrameDefault") for f in s.frames))
    total = sum(n.values()) + native
    print(f"# {n}, {native} in an interpreter that was not known yet")
    # memscope looks every 20 or 100 ms, when it has a CPU: a turn is some 400 ms of CPU time.
    check(total > 200 and all(k >= 0.1 * total for k in n.values()), f"of {total} samples these are in functions: {n}")
    counted = run.summary()["languages"]["native_events"]
    check(counted >= 0.95 * native, f"{native} samples have the interpreter alone, {counted} are counted")


@fact
def an_interpreter_of_another_name_is_known_and_doctor_says_which_it_is():
    if not os.path.exists("/usr/bin/python3"):
        skip("/usr/bin/python3 is not installed")
    path = scratch("service")
    shutil.copy("/usr/bin/python3", path)
    child = python(SPLIT, interpreter=path)
    said = subprocess.run([MEMSCOPE, "doctor", "-p", str(child.pid)], capture_output=True, text=True, timeout=FINISH_SEC,
                          check=False).stdout
    version = subprocess.run([path, "-c", "import sys; print(sys.version.split()[0])"], capture_output=True, text=True,
                             check=True).stdout.strip()
    check(re.search(rf"^  language +CPython {version}: [1-9]\d* places named", said, re.M), f"doctor says: {said}")


CHILDREN = """
import os, sys
def in_child():
    x = 0
    while True:
        x = (x * 31 + 1) % 1000003
def exchange():
    os.execv("/usr/bin/python3", ["python3", "-c", "def in_exec():\\n while True: pass\\nin_exec()"])
def in_parent():
    for work in (in_child, exchange):
        if not os.fork():
            work()
    os.wait()
in_parent()
"""


@fact
def children_of_python_have_their_frames_too():
    if not os.path.exists("/usr/bin/python3"):
        skip("/usr/bin/python3 is not installed")
    path = scratch("program") + ".py"
    with open(path, "w", encoding="utf-8") as f:
        f.write(CHILDREN)
    run = Run("--only", "oncpu", "-F", 499, "--", "/usr/bin/python3", path)
    run.ready()
    children = until(lambda: len(found := children_of(run.command_pid())) == 2 and found, "it has two children")
    for child in children:
        has_worked(child, 0.5)
    run.stop()
    for pid in (*children, run.command_pid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    p = run.profile("oncpu")
    for child, name in zip(sorted(children), ("in_child", "in_exec")):
        stacks = [(s.values[p.types.index("samples/count")],
                   [f.name.split(" ")[0] for f in s.frames if f.module == LANG])
                  for s in p.samples if s.labels.get("pid") == child]
        n, named = sum(count for count, _ in stacks), sum(count for count, names in stacks if name in names)
        # The rest is its start, and what it was before.
        check(n > 100 and named >= 0.7 * n, f"{name}: of {n} samples of the child {named} have it: {stacks[:3]}")
        # What the forked child came from is its parent's code.
        if name == "in_child":
            check(any("in_parent" in names for _, names in stacks), f"{name}: none has in_parent: {stacks[:2]}")


main()
