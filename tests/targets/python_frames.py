"""Threads that wait at known lines, each with a stack of another shape, and what the interpreter says of them.

    python_frames.py DIRECTORY

prints one line of JSON (with faulthandler's text in DIRECTORY/fault), then waits for a line on stdin. Each thread
waits in a lock's acquire(), which is a function of C.
"""

import contextlib
import faulthandler
import functools
import json
import os
import sys
import threading

DIR = sys.argv[1]
lock = threading.Lock()
lock.acquire()
gate = lock.acquire
scenarios = []


def scenario(f):
    scenarios.append(f)
    return f


@scenario
def recursion(n=7):
    if n:
        return recursion(n - 1)
    gate()


@scenario
def deep(n=1000):
    if n == 0:
        gate()
        return 0
    return 1 + \
        deep(n - 1)


@scenario
def generators():
    def inner():
        yield 1
        gate()
        yield 2

    def outer():
        yield 0
        yield from inner()
    for value in outer():
        str(value)


@scenario
def key_of_sort():
    def key(x):
        if x == 2:
            gate()
        return -x
    sorted([1,
            2, 3],
           key=key)


@scenario
def callbacks_of_callbacks():
    def add(a, b):
        return max([a, b], key=lambda x: gate() if x == 3 else x)
    functools.reduce(add, map(lambda x: x, [1, 2, 3]))


class Base:
    @classmethod
    def make(cls):
        return cls.helper(1)

    @staticmethod
    def helper(x):
        return Base().value

    @property
    def value(self):
        gate()

    class Inner:
        def __call__(self):
            return Base.make()

        def __len__(self):
            self()
            return 1


@scenario
def methods():
    def local():
        class Local(Base.Inner):
            pass
        return len(Local())
    local()


@scenario
def comprehensions():
    return [[gate() for _ in range(1)] for y in (1, 2)
            if {k: v for k, v in [(1, 2)]}]


@scenario
def handlers():
    try:
        try:
            raise ValueError("first")
        except ValueError:
            {}["missing"]
        finally:
            str(1)
    except KeyError as e:
        for _ in range(3):
            str(e)
        gate()


@scenario
def contexts():
    class Waits:
        def __enter__(self):
            return self

        def __exit__(self, *exc):
            gate()

    @contextlib.contextmanager
    def wrapped():
        yield 1

    with wrapped(), \
            Waits():
        str(1)
        str(2)


def twice(*args):
    def decorate(f):
        @functools.wraps(f)
        def wrapper(*a):
            return f(*a)
        return wrapper
    return decorate


@scenario
@twice(
    1,
    2,
)
@twice(
    3
)
def decorated(
        x=lambda: gate(
        ),
        y=2):
    return (
        1,
        x(
        ),
        y)


@scenario
def imports():
    with open(os.path.join(DIR, "waits_in_import.py"), "w") as f:
        f.write("import threading\n\n\nclass Body:\n    import python_frames_gate\n"
                "    python_frames_gate.gate()\n")
    sys.path.insert(0, DIR)
    sys.modules["python_frames_gate"] = type(sys)("python_frames_gate")
    sys.modules["python_frames_gate"].gate = gate
    import waits_in_import
    return waits_in_import


@scenario
def executed():
    exec("def f():\n\n    g['gate']()\n\nf()", {"g": globals()})


@scenario
def hostile_file():
    exec(compile("x = 1\ngate()", "line\n\x1b[31mred\u202e\udc80\x7f\"\\", "exec"), {"gate": gate})


@scenario
def long_names():
    name = "f" * 700
    space = {"gate": gate}
    exec(compile("def %s():\n gate()\n%s()" % (name, name), "/" + "d" * 2000, "exec"), space)


@scenario
def noms_d_été():
    def 漢字():
        def 𐌀𐌁():
            gate()
        𐌀𐌁()
    漢字()


@scenario
def far_down():
    lines = ["def far(x):"]
    for i in range(3000):
        lines.append("    x = [x, %d, (x,\n    %s)][0]" % (i, "\n" * (i % 300) + "x" if i % 40 == 0 else "x"))
    lines += ["    if x:", "        for y in (1,", "                  gate()):", "            str(y)", "far(1)"]
    exec(compile("\n".join(lines), "far.py", "exec"), {"gate": gate})


@scenario
def coroutines():
    async def leaf():
        gate()

    async def root():
        return await leaf()
    try:
        root().send(None)
    except StopIteration:
        pass


@scenario
def finalizer():
    class Dies:
        def __del__(self):
            gate()
    Dies()


@scenario
def class_body():
    class Meta(type):
        def __new__(mcs, *args):
            gate()
            return type.__new__(mcs, *args)

    class Made(metaclass=Meta):
        pass
    return Made


@scenario
def operators():
    class Number:
        def __add__(self, other):
            gate()

        def __getattr__(self, name):
            return self + 1

        def __eq__(self, other):
            return self.something
    return Number() in (
        Number(),
    )


def qualified(code):
    return getattr(code, "co_qualname", code.co_name)


def tell(idents):
    """The stacks, once all are where they stay."""
    before = None
    while True:
        now = {}
        for ident, frame in sys._current_frames().items():
            stack = []
            while frame:
                code = frame.f_code
                stack.append([qualified(code), code.co_filename, frame.f_lineno, code.co_firstlineno])
                frame = frame.f_back
            now[ident] = stack
        del frame
        now.pop(threading.get_ident())
        if now == before and len(now) == len(idents):
            break
        before = now
        threading.Event().wait(0.2)
    with open(os.path.join(DIR, "fault"), "w") as f:
        faulthandler.dump_traceback(f, all_threads=True)
    print(json.dumps({"version": sys.version.split()[0], "qualified": hasattr(tell.__code__, "co_qualname"),
                      "threads": [{"tid": tid, "ident": ident, "name": name, "frames": now[ident]}
                                  for ident, (tid, name) in idents.items()]}), flush=True)
    sys.stdin.readline()
    os._exit(0)


def main():
    sys.setrecursionlimit(20000)
    threading.stack_size(64 << 20)
    idents = {}
    threads = [threading.Thread(target=f, name=f.__name__, daemon=True) for f in scenarios]
    for t in threads:
        t.start()
        while t.native_id is None:
            threading.Event().wait(0.001)
        idents[t.ident] = (t.native_id, t.name)
    idents[threading.get_ident()] = (threading.get_native_id(), "main")
    teller = threading.Thread(target=tell, args=(idents,), daemon=True)
    teller.start()
    gate()


main()
