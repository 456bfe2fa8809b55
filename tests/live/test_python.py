"""Frames of Python: each stack that Python sees itself is the one in the profile, function by function, file by
file, line by line, for waits, samples and allocations; in CPython of each kind that is installed here (all with
MEMSCOPE_TEST_PYTHON=every)."""

import functools
import glob
import json
import re
import threading

import programs
from harness import *
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


class Python(Child):
    """The program under one interpreter, when it has been everywhere once."""

    def __init__(self, path, version):
        self.version = version
        self.truth = {}  # (what, frames): shape
        super().__init__([path, PROGRAM, "600"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        self.is_ready = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line == b"ready\n":
                self.is_ready.set()
                continue
            row = json.loads(line)
            frames = tuple((f"{name} ({os.path.basename(file)})", file, at) for name, file, at in row["frames"])
            self.truth[row["what"], frames] = row["shape"]


def lang_frames(sample):
    return tuple((f.name, f.file, f.line) for f in sample.frames if f.module == LANG)


def run_under(found, *args):
    """A run on the program under some interpreters at once."""
    children = [Python(path, version) for path, version in found.items()]
    for child in children:
        check(child.is_ready.wait(READY_SEC), f"{child.version} was not ready in time")
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


def compare(source, what, of_interest, at_least, runs=everywhere):
    """The stacks of samples of interest are among those that the program printed, and nearly all of those are met."""
    run, children = runs()
    p = run.profile(source)
    for child in children:
        truth = {frames for kind, frames in child.truth if kind == what}
        once_run = [f for f in truth if "<made later>" in str(f) or "py_stacks_module" in str(f)]
        met, wrong, gone, unread, n = set(), [], 0, 0, 0
        for s in p.samples:
            if s.labels.get("pid") != child.pid or not of_interest(s):
                continue
            n += 1
            frames = lang_frames(s)
            if not frames and source == "offcpu" and sum(f.module != "[kernel]" for f in s.frames) == 1:
                unread += 1  # it waited before the run began, and had gone on before its stack could be read
            elif frames in truth:
                met.add(frames)
            elif any(is_place(frames, place) for place in once_run):
                gone += 1
            else:
                wrong.append(frames)
        print(f"# CPython {child.version}: {source}: {len(met)} of {len(truth)} places met; of {n} stacks {gone} have code "
              f"that was gone, {len(wrong)} differ")
        check(unread <= THREADS, f"{child.version}: {unread} waits have no stack, but for {THREADS} threads")
        check(not wrong, f"{child.version}: {source}: {len(wrong)} of {n} stacks are none that Python printed: "
              f"{wrong[:1]}")
        check(len(met) >= at_least * len(truth), f"{child.version}: {source}: of {len(truth)} places only {len(met)} "
              f"were met: not {sorted(set(child.truth[what, t] for t in truth - met))}")


def sleeps(sample):
    return any(re.match("hrtimer_nanosleep|do_select$|core_sys_select", f.name) for f in sample.frames)


def spins(sample):
    return any(f.module.startswith("/") and "libz.so" in f.module for f in sample.frames)


@fact
def python_stacks_of_waits_are_those_that_python_prints():
    compare("offcpu", "sleep", sleeps, 1)


def compare_allocations(runs, at_least=1):
    run, _ = runs()
    types = [t.split("/")[0] for t in run.profile("alloc").types]
    objects, space = types.index("alloc_objects"), types.index("alloc_space")
    compare("alloc", "alloc", lambda s: s.values[objects] and
            ALLOCATED <= s.values[space] / s.values[objects] < ALLOCATED + 100, at_least, runs)


@fact
def python_stacks_of_allocations_are_those_that_python_prints():
    compare_allocations(everywhere)


@fact
def python_stacks_recorded_in_the_process_are_those_that_python_prints():
    # What is compiled and run once has been freed when memscope reads its name: 2 of the places.
    compare_allocations(recorded, 0.9)
    run, _ = recorded()
    whole(run, "alloc", 100, "CPython")
    langs = run.summary()["languages"]
    equal((langs["damaged"], langs["unreadable"]), (0, 0), "damaged frames, unreadable runtimes")


@fact
def python_stacks_of_samples_are_those_that_python_prints():
    # In zlib's own code: what runs is the line that has called it.
    compare("oncpu", "spin", spins, 0.3)


@fact
def stacks_of_python_are_whole():
    run, _ = everywhere()
    for source in ("oncpu", "offcpu", "alloc"):
        whole(run, source, 100, "CPython")
    langs = run.summary()["languages"]
    equal((langs["damaged"], langs["unreadable"]), (0, 0), "damaged frames, unreadable runtimes")


def python(code, *args, interpreter="/usr/bin/python3"):
    """Debian's Python, or another, on a program of a few lines, at work."""
    if not os.path.exists(interpreter):
        skip(f"{interpreter} is not installed")
    path = scratch("program") + ".py"
    with open(path, "w", encoding="utf-8") as f:
        f.write(code)
    return at_work(Child([interpreter, path, *args], **QUIET))


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
    p = run.profile("oncpu")
    n, by = 0, {}
    for s in p.samples:
        called = [f.name.split(" ")[0] for f in s.frames if f.module == LANG]
        weight = s.values[p.types.index("samples/count")]
        n += weight
        for name in {"seventy", "twenty", "ten"} & set(called):
            by[name] = by.get(name, 0) + weight
    check(n > 1000, f"only {n} samples")
    for name, share in (("seventy", 0.7), ("twenty", 0.2), ("ten", 0.1)):
        # Calls and the loop around them take a little, of each the same: of 10,000 rounds some 10.
        share_of(by.get(name, 0) / n, share, n, name)


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
    run = Run("-p", ",".join(str(c.pid) for c in children), "--only", "oncpu", "-F", 49, "-v")
    run.ready()
    os.kill(run.pid, signal.SIGSTOP)  # it cannot keep up
    has_worked([child.pid for child in children], 0.3)
    os.kill(run.pid, signal.SIGCONT)
    run.stop()
    later = re.search(r"walked in user space: (\d+) sent.* (\d+) for want of room", run.stderr)
    check(later and int(later[1]) >= 5 * len(children) and later[2] == "0",
          f"at 49 Hz, {len(children)} times 0.3 s of CPU time were to be walked later: {later and later[0]}")
    whole_chain = ["spin", "turn", "main", "<module>"]
    p = run.profile("oncpu")
    for child, version in children.items():
        stacks = [[f.name.split(" ")[0] for f in s.frames if f.module == LANG] for s in p.samples
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
            if " ".join(f.name.split(" ")[0] for f in sample.frames if f.module == LANG) not in RIGHT[what]:
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
        names = {f.name.split(" ")[0] for f in s.frames if f.module == LANG}
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
