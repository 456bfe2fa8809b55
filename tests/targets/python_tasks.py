"""Tasks of asyncio that await in many ways. Prints, as JSON, what each one awaits, as the interpreter says it; then the loop stands
still, so that they stay as they are."""

import asyncio
import gc
import json
import sys
import time


class Awaitable:
    def __init__(self, future):
        self.future = future

    def __await__(self):
        return (yield from self.future)


class Wrapped:
    def __init__(self, coroutine):
        self.coroutine = coroutine

    def __await__(self):
        return self.coroutine.__await__()


async def leaf(future):
    values = [1, 2, 3]
    for _ in values:
        await future


async def nested(future, depth):
    if depth:
        return await nested(future, depth - 1)
    return await leaf(future)


async def ticks(future):
    yield 1
    await future
    yield 2


async def reads_ticks(future):
    async for _ in ticks(future):
        pass


async def holds(lock, future):
    async with lock:
        await future


async def awaits(what):
    return await what


async def waits_long(future):
    await asyncio.wait_for(leaf(future), 3600)


def chain_of(awaited):
    """By the attributes of coroutines and generators; what two kinds of wrapper are of, the garbage collector says."""
    frames = []
    while awaited is not None:
        for prefix, after in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
            if hasattr(awaited, prefix + "_frame"):
                frame, code = getattr(awaited, prefix + "_frame"), getattr(awaited, prefix + "_code")
                frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno, code.co_firstlineno])
                awaited = getattr(awaited, after)
                break
        else:
            if type(awaited).__name__ not in ("coroutine_wrapper", "async_generator_asend"):
                break
            awaited = gc.get_referents(awaited)[0]
    return frames


async def main():
    loop = asyncio.get_running_loop()
    future, lock = loop.create_future(), asyncio.Lock()
    reader = asyncio.StreamReader()
    coroutines = [leaf(future), nested(future, 3), nested(future, 20), reads_ticks(future), holds(lock, future), holds(lock, future),
                  holds(lock, future), awaits(Awaitable(future)), awaits(Wrapped(leaf(future))), asyncio.sleep(3600),
                  awaits(reader.readline()), awaits(asyncio.Event().wait()), awaits(asyncio.Queue().get()), waits_long(future)]
    coroutines += [leaf(future) for _ in range(300)]
    tasks = [asyncio.ensure_future(c) for c in coroutines]
    tasks.append(asyncio.ensure_future(awaits(tasks[0])))
    done = [asyncio.ensure_future(asyncio.sleep(0)) for _ in range(40)]
    await asyncio.sleep(0.05)
    assert all(t.done() for t in done)
    me = asyncio.current_task()
    waiting = [t for t in asyncio.all_tasks() if t is not me]
    # task.get_stack() has the outermost frame of what is suspended: nobody here wrote that.
    for task in waiting:
        (frame,) = task.get_stack()
        assert [frame.f_code.co_filename, frame.f_lineno] == chain_of(task.get_coro())[0][1:3]
    print(json.dumps({"version": sys.version.split()[0], "tasks": {id(t): chain_of(t.get_coro()) for t in waiting},
                      "of_task": id(tasks[-1])}), flush=True)
    time.sleep(600)


asyncio.run(main())
