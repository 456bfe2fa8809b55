"""Python code in known places, from 3.8 on: prints each of them as it sees itself, then goes through all of
them again and again. For test_python.py.

    py_stacks.py [SECONDS]        a line of JSON for each place:  {"shape": …, "what": …, "frames": [[name, file, line], …]}

Frames are leaf first, all of Python. `what` is what happens there, in C, on the line that the first of them is in:
sleep (time.sleep), spin (zlib.crc32 of 2 MiB) or alloc (a bytearray of 100,000 bytes). After the last place comes
"ready". The loop ends after SECONDS (3,600), or when stdin is closed.
"""

import asyncio
import contextlib
import functools
import importlib
import json
import os
import sys
import tempfile
import threading
import time
import zlib

BIG = bytes(2 << 20)
seen = set()
lock = threading.Lock()
where = {}


def note(what):
    """Prints the stack of its caller's caller, the first time that it is so."""
    frames, frame = [], sys._getframe(2)
    while frame:
        code = frame.f_code
        frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno))
        frame = frame.f_back
    key = what, tuple(frames)
    with lock:
        if key not in seen:
            seen.add(key)
            shape = where[threading.get_ident()]
            print(json.dumps({"shape": shape, "what": what, "frames": frames}), flush=True)


def nap():
    note("sleep")
    return 0.02


def big():
    note("spin")
    return BIG


def size():
    note("alloc")
    return 100000


def work():
    time.sleep(nap())
    zlib.crc32(big())
    bytearray(size())


# --- shapes ---


def plain():
    work()


def recursion(depth=60):
    if depth:
        return recursion(depth - 1)
    time.sleep(nap())
    zlib.crc32(big())
    return bytearray(size())


def callback_of_sort():
    sorted([2, 1], key=lambda _: work() or 0)


def generator():
    def inner():
        work()
        yield 1

    def outer():
        yield from inner()

    return sum(outer())


def comprehension():
    return [work() for _ in range(1)]


def map_and_reduce():
    return functools.reduce(lambda a, b: list(map(lambda _: work(), [1])), [1, 2])


class Thing:
    def __init__(self, inner=None):
        self.inner = inner

    def method(self):
        return self.inner.method() if self.inner else work()

    @classmethod
    def of_class(cls):
        return cls.of_nobody()

    @staticmethod
    def of_nobody():
        work()

    @property
    def value(self):
        return work()

    def __enter__(self):
        work()

    def __exit__(self, *_):
        return False

    def __lt__(self, _other):
        work()
        return False


def methods():
    return Thing(Thing()).method()


def class_methods():
    return Thing.of_class()


def a_property():
    return Thing().value


def with_statement():
    with Thing():
        pass


def comparison():
    return max(Thing(), Thing()) and 0


def in_an_exception():
    try:
        raise ValueError("this one")
    except ValueError:
        work()
    finally:
        plain()


def decorated(f):
    @functools.wraps(f)
    def wrapper(*args):
        with contextlib.suppress(KeyError):
            return f(*args)
    return wrapper


@decorated
def with_decorator():
    work()


def größe_der_sprünge():
    work()


def compiled_later():
    code = compile("def made():\n\n    import_me()\n\n\nmade()\n", "<made later>", "exec")
    exec(code, {"import_me": work})


def an_import():
    sys.modules.pop("py_stacks_module", None)
    importlib.import_module("py_stacks_module")


def over_several_lines():
    return (
        1,
        work(),
        2,
    )


async def leaf_of_coroutines():
    work()


async def coroutine():
    await leaf_of_coroutines()


def coroutines():
    c = coroutine()
    try:
        c.send(None)
    except StopIteration:
        pass


async def two_tasks():
    async def task():
        await asyncio.sleep(0)
        await leaf_of_coroutines()

    await asyncio.gather(task(), task())


def tasks_of_asyncio():
    asyncio.run(two_tasks())


async def over_an_async_generator():
    async def numbers():
        work()
        yield 1

    async for _ in numbers():
        pass


def async_generator():
    asyncio.run(over_an_async_generator())


def partials():
    return functools.partial(map, lambda _: work(), [1])().__next__()


SHAPES = [plain, recursion, callback_of_sort, generator, comprehension, map_and_reduce, methods, class_methods,
          a_property, with_statement, comparison, in_an_exception, with_decorator, größe_der_sprünge,
          compiled_later, an_import, over_several_lines, coroutines, tasks_of_asyncio, async_generator, partials]


def turns(shapes, name, stop):
    while not stop.is_set():
        for shape in shapes:
            where[threading.get_ident()] = f"{name} {shape.__name__}"
            shape()
            if stop.is_set():
                break
        if name == "main" and not turns.said:
            turns.said = True
            print("ready", flush=True)


turns.said = False


def main():
    stop = threading.Event()
    with tempfile.TemporaryDirectory() as place:
        with open(os.path.join(place, "py_stacks_module.py"), "w", encoding="utf-8") as f:
            f.write("import __main__\n\n\nclass Body:\n    __main__.work()\n")
        sys.path.insert(0, place)
        sys.dont_write_bytecode = True
        threading.Thread(target=turns, args=([plain, generator, methods], "thread", stop), daemon=True).start()
        threading.Timer(float(sys.argv[1]) if len(sys.argv) > 1 else 3600, stop.set).start()
        threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
        turns(SHAPES, "main", stop)
    os._exit(0)


if __name__ == "__main__":
    main()
