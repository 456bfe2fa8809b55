#!/usr/bin/python3
"""busy_sites.c, in CPython: what grows are bytearrays, and what is only used are strings, lists and numbers.

    busy_sites.py ROLE BYTES_S FILL_S CALLS_S [BLOCK=700]

ROLE: leak, lru, random, queue or table; the other arguments, commands and answers are busy_sites.c's. Blocks of
more than 512 bytes are malloc's, others pymalloc's. CALLS_S: objects that are made.
"""

import collections
import random
import select
import sys
import time

LATE_S, TICK_S, LOGGED = 0.02, 0.001, 512


class Growing:
    """What grows, and how much it holds."""

    def __init__(self, role, capacity, block):
        self.step, self.capacity, self.block = getattr(self, role + "_here"), capacity, block
        self.entries, self.live, self.made, self.turn = [], 0, 0, 0
        self.queue, self.table = collections.deque(), {}

    def take(self):
        n = self.block // 2 + random.randrange(self.block + 1)
        self.live += n
        self.made += 1
        return bytearray(n)

    def leak_here(self):
        self.entries.append(self.take())

    def replace(self, at):
        if len(self.entries) < self.capacity:
            self.entries.append(self.take())
            return
        self.live -= len(self.entries[at])
        self.entries[at] = self.take()

    def lru_here(self):
        self.replace(self.made % self.capacity)

    def random_here(self):
        self.replace(random.randrange(self.capacity))

    def queue_here(self):
        self.turn += 1
        if len(self.queue) == self.capacity or self.turn % 3 == 0:
            self.live -= len(self.queue.popleft())
        self.queue.append(self.take())

    def table_here(self):
        if len(self.table) < self.capacity:
            self.table[f"key {self.made}"] = self.take()


def churn(n):
    """About so many objects, and as many calls of malloc as there are lists of 100 among them."""
    for i in range(n // 110 + 1):
        text = [str(k * 1000003) for k in range(i % 7, 100 + i % 7)]
        kept = ",".join(text)
        del text, kept


def main():
    role, bytes_s, fill_s, calls_s = sys.argv[1], *map(float, sys.argv[2:5])
    block = int(sys.argv[5]) if len(sys.argv) > 5 else 700
    grows = Growing(role, int(bytes_s * fill_s / block) + 1, block)
    logged, objects, grew, given = [], 0, 0.0, 0.0
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "quit":
            return
        if not line.startswith("run"):
            continue
        begin = now = paid = time.monotonic()
        end, next_log = begin + int(line.split()[1]) / 1e3, begin
        while now < end and not select.select([0], [], [], 0)[0]:
            late = min(now - paid, LATE_S)
            grew += late if role == "leak" else now - paid
            while given < bytes_s * grew:
                grows.step()
                given += block
            n = int(calls_s * late)
            churn(n)
            objects += n
            paid = now
            if now >= next_log:
                logged.append((time.monotonic_ns(), grows.live))
                next_log += 0.1
                if len(logged) == 2 * LOGGED:
                    del logged[::2]
            now = time.monotonic()
            time.sleep(max(TICK_S - (now - paid), 0))
            now = time.monotonic()
        logged.append((time.monotonic_ns(), grows.live))
        print(f"site {role}_here {grows.live} {grows.made}")
        print(f"calls {objects} {int((now - begin) * 1e9)}")
        for t, live in logged:
            print(f"live {t} {live}")
        print("end", flush=True)


main()
