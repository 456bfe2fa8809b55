"""Who ends waits in programs that we did not write: by what these are known to do."""

import os
import subprocess
import sys

import programs
from harness import *
from programs import QUIET, free_port, listens

MARK = "[woken by]"
INTERRUPT = "[interrupt]"

QUEUE = """
import queue, threading, time
q = queue.SimpleQueue()
def produce():
    while True:
        time.sleep(0.002)
        q.put(1)
def consume():
    while True:
        q.get()
threading.Thread(target=produce, daemon=True).start()
consume()
"""


def ended(run, wait):
    """Of waits with such a function in their stack, that threads ended: [(functions of the waker, its name, how many)]."""
    p, found = run.profile("wakers"), []
    for s in p.samples:
        names = [f.name for f in reversed(s.frames)]
        at = names.index(MARK)
        if any(n.split(" ")[0] == wait for n in names[:at]) and names[-1] not in (INTERRUPT, "[unknown]"):
            found.append(([n.split(" ")[0] for n in names[at + 1:-1]], names[-1], s.values[0]))
    return found


def mostly(found, holds, share, least, what):
    n = sum(x[2] for x in found)
    by = sum(x[2] for x in found if holds(x))
    check(n >= least, f"{n} waits {what}")
    check(by >= share * n, f"{by} of {n} {what}: {[x for x in sorted(found, key=lambda x: -x[2]) if not holds(x)][:2]}")


@fact
def a_consumer_of_python_is_woken_by_who_puts_into_its_queue():
    child = Child([sys.executable, "-c", QUEUE])
    run = Run("-p", child.pid, "-d", 1.5, "--only", "offcpu").must()
    child.process.kill()
    child.end()
    mostly(ended(run, "consume"), lambda x: "produce" in x[0], 0.95, 200, "of the consumer ended by the producer")


@fact
def who_wants_the_gil_gets_it_from_who_has_it():
    child = Child([sys.executable, os.path.join(TOP, "tests/targets/py_gil.py")], stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE)
    child.process.stdout.readline()
    run = Run("-p", child.pid, "-d", 1.5, "--only", "offcpu").must()
    child.process.kill()
    child.end()
    # After 5 ms who waits asks for it, and a timer ends the wait: those are interrupts.
    mostly(ended(run, "serve"), lambda x: "crunch" in x[0] or "serve" in x[0], 0.95, 100, "for the GIL ended by who has it")


@fact
def redis_is_woken_by_its_client():
    need("redis-server", "redis-benchmark")
    port = free_port()
    where = scratch("redis")
    os.mkdir(where)
    server = Child(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", where],
                   **QUIET)
    listens(port)
    client = Child(["redis-benchmark", "-p", str(port), "-n", "100000000", "-t", "set", "-q", "-c", "1"], **QUIET)
    has_worked(server.pid, 0.1)
    run = Run("-p", f"{server.pid},{client.pid}", "-d", 1.5, "--only", "offcpu").must()
    for child in (client, server):
        child.process.kill()
        child.end()
    found = ended(run, "aeMain")
    mostly(found, lambda x: x[1] in ("redis-benchmark", "redis-server", "redis-check-rdb"), 0.95, 200, "of redis and its client ended by the other")
    mostly([x for x in found if x[1] == "redis-benchmark"], lambda x: "tcp_sendmsg" in x[0] and "aeMain" in x[0],
           0.9, 100, "ended by what the client writes")


@fact
def a_backend_of_postgres_that_waits_for_a_row_is_woken_by_another():
    server = programs.postgres_server()
    run = Run("-p", server.pid, "-d", 1.5, "--only", "offcpu").must()
    found = ended(run, "ProcSleep")
    mostly(found, lambda x: x[1] == "postgres" and {"ProcLockWakeup", "LWLockRelease"} & set(x[0]), 0.9, 20, "of ProcSleep() ended by another that releases its lock")


main()
