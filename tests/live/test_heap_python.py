"""Heaps of CPython: each object is kept by what keeps it, whatever that is, and traces of objects that are gone keep nothing. One
CPython of each kind of frames (every one that pyenv has: MEMSCOPE_TEST_PYTHON=every)."""

import functools
import re

import programs
from harness import *

PROGRAM = os.path.join(TOP, "tests/targets/heap_python.py")

# How a chain ends before the object, in a Python program's words; behind `__main__.THINGS`, a dict.
KEEPER = {"Slot": ["__main__.Slots.second"], "Attribute": ["__main__.Attributes.cart"], "DictOfInstance": ["__main__.Attributes.late"],
          "AttributeOfDict": ["__main__.Named.attribute"], "Deque": ["collections.deque[…]"], "Set": ["set{…}"], "SmallSet": ["set{…}"],
          "Class": ["class Class.value"], "Exception": ["ValueError.args", "tuple[…]"], "List": ["list[…]"], "Tuple": ["tuple[…]"],
          "Key": ["a key of dict"], "FrozenSet": ["frozenset{…}"], "OrderedDict": ["collections.OrderedDict[…]"],
          "DefaultDict": ["collections.defaultdict[…]"], "Closure": ["function.__closure__", "tuple[…]", "cell.cell_contents"],
          "Partial": ["functools.partial.args", "tuple[…]"], "Method": ["method.__self__"], "Slice": ["slice.stop"]}


@functools.cache
def interpreters():
    found = programs.pythons()
    if not found:
        skip("no CPython from 3.8 on is installed")
    return found


def ask(*args):
    done = subprocess.run([MEMSCOPE, "heap", *map(str, args), "--json", "--top", "100000"], capture_output=True, text=True,
                          timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Broken(f"memscope heap {' '.join(map(str, args))}: status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


@fact
def objects_of_python_are_kept_by_what_keeps_them():
    for path, version in interpreters().items():
        child = Child([path, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        classes = json.loads(child.process.stdout.readline())
        rows = {}
        answer = ask("retainers", "-p", child.pid, r'type ~ "^keep\.By"')
        for row in answer["retainers"]:
            rows.setdefault(row["chain"][-1], []).append(row)
        equal(sorted(rows), [name for name in classes if "Gone" not in name], f"{version}: classes whose objects something keeps")
        equal(answer["unreached_objects"], 0, f"{version}: objects that seem lost")
        for name, keeper in KEEPER.items():
            row, = rows["keep.By" + name]
            equal(row["chain"], ["__main__.THINGS", "dict[…]", *keeper, "keep.By" + name], f"{version}: the chain to {name}")
        generator = rows["keep.ByGenerator"][0]["chain"][-2]
        check(re.match(r"(generator|frame) generate \(heap_python\.py:\d+\): value$", generator), f"{version}: a local is {generator}")
        equal(rows["keep.ByModule"][0]["chain"][0], "made.value", f"{version}: a variable of a module")
        # What refers to it weakly is in the module, and keeps nothing.
        through = rows["keep.ByLocal"][0]["through"]
        check(through.startswith("the running function main (heap_python.py:") and through.endswith("): watched"),
              f"{version}: the local variable is kept through {through}")
        census = {row["type"]: row for row in ask("census", "-p", child.pid)["types"]}
        for name, objects, length in ("Items", 2, 37), ("Letters", 1, 5), ("Entries", 2, 2):
            row = census["__main__." + name]
            equal((row["objects"], row["length"]), (objects, length), f"{version}: objects of {name}, and their lengths")
        held = ask("refcounts", "-p", child.pid)
        row, = [row for row in held["held"] if row["type"] == "__main__.OfC"]
        equal((row["references"], row["held"], row["objects"]), (4, 2, 2), f"{version}: references that C has to two objects")
        # What else C has are a few of the interpreter's own, among ten thousand objects.
        check(held["equal"] > 50 * held["more"], f"{version}: of reference counts {held['equal']} are as found, {held['more']} are more")
        child.process.stdin.close()


def notes(*args):
    return " ".join(ask(*args)["notes"])


@fact
def a_file_says_what_was_missing_as_the_process_does():
    target = Target("heap_free_threaded")
    sentence = "this CPython was built without a global lock (free-threaded): how it lays out objects is not known"
    check(sentence in notes("leaks", "-p", target.pid), "of the process")
    path = scratch("free-threaded")
    subprocess.run([MEMSCOPE, "heap", "snapshot", "-p", str(target.pid), "-o", path], timeout=FINISH_SEC, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)
    equal(notes("leaks", path).count(sentence), 1, "of the file")


COLLECTS = """
import gc, sys
def at(phase, info):
    if phase == "start":
        gc.callbacks.clear()
        print("collects", flush=True)
        sys.stdin.readline()
gc.callbacks.append(at)
gc.collect()
print("collected", flush=True)
sys.stdin.read()
"""


@fact
def a_collection_under_way_is_said():
    path = next(iter(interpreters()))
    child = Child([path, "-c", COLLECTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(child.process.stdout.readline(), b"collects\n", "the program says")
    sentence = "CPython's garbage collector was at work"
    check(sentence in notes("census", "-p", child.pid), "nothing is said while it collects")
    child.process.stdin.write(b"\n")
    child.process.stdin.flush()
    equal(child.process.stdout.readline(), b"collected\n", "the program says")
    check(sentence not in notes("census", "-p", child.pid), "something is said although it does not collect")


INTERPRETERS = """
try:
    import _interpreters as interpreters
    create = lambda: interpreters.create("isolated", reqrefs=True)
except ImportError:
    import _xxsubinterpreters as interpreters
    create = interpreters.create
made = [create() for i in range(3)]
for i, one in enumerate(made):
    interpreters.run_string(one, f"class Of{i}: pass\\nkept = [Of{i}() for i in range(2000)]")
print("ready", flush=True)
input()
"""


@fact
def objects_of_interpreters_with_a_lock_of_their_own_are_known():
    found = {path: version for path, version in interpreters().items() if tuple(map(int, version.split(".")[:2])) >= (3, 12)}
    if not found:
        skip("no CPython from 3.12 on is installed")
    for path, version in found.items():
        child = Child([path, "-c", INTERPRETERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        equal(child.process.stdout.readline(), b"ready\n", f"{version}: the program says")
        rows = {row["type"]: row["objects"] for row in ask("census", "-p", child.pid)["types"]}
        for i in range(3):
            equal(rows.get(f"__main__.Of{i}"), 2000, f"{version}: objects of interpreter {i + 1}")
        kept, = ask("retainers", "-p", child.pid, "type:__main__.Of1")["retainers"]
        equal(kept["chain"][0], "__main__.kept", f"{version}: what keeps them")


main()
