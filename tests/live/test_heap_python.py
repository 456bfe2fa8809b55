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


main()
