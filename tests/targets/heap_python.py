"""Objects that each something else of CPython keeps, each of a class of its own, named for what keeps it; and objects that are gone,
of which traces are left. Says which it has, and lives until its input ends."""

import collections
import ctypes
import functools
import gc
import json
import sys
import threading
import types
import weakref

KEPT = {}


def kept(name):
    """A new object of a new class."""
    cls = type("By" + name, (), {"__module__": "keep"})
    KEPT["keep.By" + name] = cls
    return cls()


class Slots:
    __slots__ = ("first", "second")


class Attributes:
    pass


class Named(dict):
    pass


def closure(value):
    return lambda: value


def generate(value):
    yield 1
    yield value


def worker(value, ready, end):
    ready.set()
    end.wait()
    return value


class Waits:
    """The thread that frees it waits."""

    def __init__(self, ready, end):
        self.ready, self.end = ready, end

    def __del__(self):
        self.ready.set()
        self.end.wait()


def free(ready, end):
    """A list in the middle of being freed, from its end on: nothing counts a reference to it any more."""
    things = [kept("Freed"), Waits(ready, end)]
    del things


def fill():
    slots, attributes, late, subclass = Slots(), Attributes(), Attributes(), Named()
    slots.second = kept("Slot")
    attributes.number, attributes.cart = 1, kept("Attribute")
    late.number = 1
    late.__dict__["late"] = kept("DictOfInstance")
    subclass.attribute = kept("AttributeOfDict")
    generator = generate(kept("Generator"))
    next(generator)
    long_deque = collections.deque(range(200))
    long_deque.append(kept("Deque"))
    for _ in range(100):
        long_deque.popleft()
    large_set = {kept("Set")} | {(i, i) for i in range(100)}
    few = {kept("SmallSet")}
    module = types.ModuleType("made")
    module.value = kept("Module")
    cls = type("Class", (), {"value": kept("Class")})
    error = ValueError(kept("Exception"))
    found = dict(locals())
    found.update({"list": [0, kept("List")], "tuple": (0, kept("Tuple")), "dict": {"key": kept("Dict")},
                  "numbers": {1: kept("DictOfNumbers")}, "keys": {kept("Key"): 1}, "frozen": frozenset([kept("FrozenSet")]),
                  "ordered": collections.OrderedDict(a=kept("OrderedDict")),
                  "default": collections.defaultdict(list, a=kept("DefaultDict")), "closure": closure(kept("Closure")),
                  "partial": functools.partial(print, kept("Partial")), "method": types.MethodType(print, kept("Method")),
                  "slice": slice(kept("Slice"))})
    return found


def gone():
    """Traces of objects that are no more, and of one that only a function that runs keeps."""
    room = [kept("GoneList") for _ in range(100)]
    del room[1:]
    room[0] = None
    grown = set()
    grown.add(kept("GoneSet"))
    grown |= set(range(100))
    grown = {x for x in grown if isinstance(x, int)}
    queue = collections.deque(kept("GoneDeque") for _ in range(3))
    queue.clear()
    done = generate(kept("GoneGenerator"))
    list(done)
    return room, grown, queue, done


class Items(list):
    pass


class Letters(str):
    pass


class Entries(dict):
    pass


class OfC:
    pass


def lengths():
    return [Items(range(10)), Items(range(27)), Letters("12345"), Entries(a=1, b=2), Entries(), collections.deque(range(100), 70), OfC(), OfC()]


def hold(objects):
    """As an extension does that forgets to give references back: two of each."""
    for thing in objects:
        for _ in range(2):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def main():
    things, traces = fill(), gone()
    ready, end = threading.Event(), threading.Event()
    threading.Thread(target=worker, args=(kept("Thread"), ready, end), daemon=True).start()
    ready.wait()
    freeing = threading.Event()
    threading.Thread(target=free, args=(freeing, end), daemon=True).start()
    freeing.wait()
    watched = kept("Local")
    weak = weakref.ref(watched), weakref.WeakValueDictionary(a=watched)
    sized = lengths()
    hold(sized[-2:])
    globals().update(THINGS=things, TRACES=traces, WEAK=weak, SIZED=sized)
    gc.collect()
    print(json.dumps(sorted(KEPT)), flush=True)
    sys.stdin.read()
    return watched


main()
