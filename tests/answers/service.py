"""The same service in Python: threads, locks, sockets and a pool of its standard library."""

import concurrent.futures
import gc
import os
import socket
import sys
import threading
import time

totals_lock = threading.Lock()
sessions, cache, catalogue = [], {}, []


def parse(n):
    return sum(i * 31 for i in range(200)) + n


def score_documents(n):
    best = 0
    for i in range(5000):
        best = max(best, (n * i) % 977)
    return best


def remember_session(n):
    sessions.append(bytearray(b"x") * (16384 + n % 2))


def update_totals(n):
    with totals_lock:
        time.sleep(0.003)
    return n


def write_journal(fd, n):
    os.pwrite(fd, b"%c" % (97 + n % 26) * 4096, n % 64 * 4096)
    os.fsync(fd)


def commit_order(fd, n):
    with totals_lock:
        write_journal(fd, n)


def ask_backend(peer, n):
    peer.sendall(b"%8d" % n)
    return peer.recv(64)


class Item:
    def __init__(self, n):
        self.n, self.me = n, self


def build_answer(n):
    """Cycles, and a collection after each answer: it looks at all of the catalogue."""
    for i in range(50):
        Item(n + i)
    gc.collect()


def cache_put(n):
    cache[n % 4096] = bytearray(b"x") * (16384 + n % 2)


def forever(work, pause=0):
    def loop():
        n = 0
        while True:
            work(parse(n) + n)
            n += 1
            if pause:
                time.sleep(pause)
    threading.Thread(target=loop, daemon=True).start()


def main():
    mode, arg = sys.argv[1], (sys.argv[2:] or [""])[0]
    pool = concurrent.futures.ThreadPoolExecutor(4)
    for _ in range(8):
        pool.submit(time.sleep, 0.01)
    if mode == "hot":
        forever(score_documents)
    elif mode == "leak":
        forever(remember_session, 0.002)
    elif mode == "lock":
        for _ in range(6):
            forever(update_totals)
    elif mode == "disk":
        fd = os.open(arg, os.O_RDWR | os.O_CREAT, 0o600)
        forever(lambda n: write_journal(fd, n))
    elif mode == "commit":
        fd = os.open(arg, os.O_RDWR | os.O_CREAT, 0o600)
        for _ in range(6):
            forever(lambda n: commit_order(fd, n))
    elif mode == "peer":
        peer = socket.create_connection(("127.0.0.1", int(arg)))
        forever(lambda n: ask_backend(peer, n))
    elif mode == "gc":
        catalogue.extend([i] for i in range(400000))
        forever(build_answer)
    elif mode == "cache":
        for n in range(4096):
            cache_put(n)
        forever(cache_put, 0.001)
    elif mode != "idle":
        sys.exit(2)
    print("ready", flush=True)
    threading.Event().wait()


main()
