"""Which files, devices and peers threads waited for, against programs that know it."""

import os
import subprocess
import sys
import tempfile

from harness import *

PROGRAM = """
import os, socket, sys, threading, time
def answer(s, late):
    while s.recv(1):
        time.sleep(late)
        s.send(b"y")
def ask(s):
    while True:
        s.send(b"x")
        s.recv(1)
def accept(server):
    while True:
        threading.Thread(target=answer, args=(server.accept()[0], 0.01), daemon=True).start()
def start(f, *args):
    threading.Thread(target=f, args=args, daemon=True).start()
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
start(accept, server)
for _ in range(2):
    start(ask, socket.create_connection(("127.0.0.1", port)))
a, b = socket.socketpair()
start(answer, a, 0.01)
start(ask, b)
log = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
print(port, flush=True)
while True:
    os.pwrite(log, b"x" * 65536, 0)
    os.fsync(log)
"""


@once
def mixed():
    folder = tempfile.mkdtemp(prefix="memscope-io-", dir="/var/tmp")
    log = os.path.join(folder, "the.log")
    child = Child([sys.executable, "-c", PROGRAM, log], stdout=subprocess.PIPE, text=True)
    port = int(child.process.stdout.readline())
    run = Run("-p", child.pid, "-d", 2, "--only", "offcpu", "--offcpu=exact")
    run.must()
    dev = os.stat(log).st_dev
    child.process.kill()
    child.end()
    os.unlink(log)
    os.rmdir(folder)
    return run, port, log, dev


def row(kind, name):
    rows = [r for r in mixed()[0].summary()["io_waits"] if (r["kind"], r["name"]) == (kind, name)]
    check(len(rows) == 1, f"{len(rows)} rows of {kind} {name}: {mixed()[0].summary()['io_waits']}")
    return rows[0]



@fact
def a_peer_is_named_by_its_address():
    r, ns = row("peer", f"127.0.0.1:{mixed()[1]}"), mixed()[0].summary()["duration_ns"]
    # Two threads wait for it all the time, but for what a busy machine takes.
    within(r["blocked_ns"], 0.5 * 2 * ns, 2 * ns, "ns that both wait for the peer")
    check(r["function"].startswith("ask"), f"in {r['function']}")


@fact
def who_connects_to_a_port_is_a_client_of_that():
    r = row("client", f"port {mixed()[1]}")
    check(r["function"].startswith("answer") and r["count"] > 10, f"{r}")


@fact
def a_file_is_named_with_its_device():
    _, _, log, dev = mixed()
    path = f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}"
    r = row("file", log)
    if os.path.exists(path):
        equal(r["device"], os.path.basename(os.readlink(path)), "its device")
    check(r["function"].startswith("<module>") and r["blocked_ns"] > 0, f"{r}")


@fact
def sockets_within_the_machine_are_sockets():
    ns = mixed()[0].summary()["duration_ns"]
    # Two threads take turns: one of them waits.
    check(row("socket", "unix")["blocked_ns"] >= 0.4 * ns, f"{row('socket', 'unix')}")


@fact
def no_more_is_waited_for_objects_than_is_blocked_in_all():
    run = mixed()[0]
    total = sum(r["blocked_ns"] for r in run.summary()["io_waits"])
    check(total <= 1.01 * run.summary()["time"]["blocked_ns"], f"{total} ns of {run.summary()['time']['blocked_ns']}")
    equal(run.lost("waits_object_lost"), {}, "lost")


main()
