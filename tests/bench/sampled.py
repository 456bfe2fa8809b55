#!/usr/bin/python3
"""What sampled allocations cost, and how true they are, in interleaved runs.

    tests/bench/sampled.py [pairs] [redis] [truth] [--rounds N]

pairs   CPU time of a malloc and its free: alone, with libmemscope-alloc.so in front of it and nobody
        listening, and with memscope listening.
redis   CPU time of a redis-server for each request of redis-benchmark, the same three.
truth   200 runs of a program that knows what it allocates: how often the 95 % interval of the total
        and of each function holds the truth, and how many estimates are further off than chance
        allows in one of a thousand.

Rounds alternate between the variants; figures are medians of the rounds, differences are taken within
a round. With other work on the machine CPU times are too high, differences less so: the load is
printed. Nothing here passes or fails.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build")))
MEMSCOPE = os.path.join(BUILD, "memscope")
LIBRARY = os.path.join(BUILD, "libmemscope-alloc.so")
TARGETS = os.path.join(BUILD, "targets")
DEVNULL = subprocess.DEVNULL
VARIANTS = ("alone", "library, nobody listens", "library, memscope listens")


def env_of(variant):
    return dict(os.environ) if variant == 0 else {**os.environ, "LD_PRELOAD": LIBRARY}


def listener(pid, out):
    """memscope on a process, attached."""
    m = subprocess.Popen([MEMSCOPE, "-p", str(pid), "--alloc=sampled", "--only", "alloc", "-o", out],
                         stdout=DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in m.stderr:
        if line.startswith("memscope: profiling"):
            return m
    raise SystemExit("memscope did not attach")


def show(name, rows, unit):
    """rows: [[figure of each variant], …], a round each."""
    print(f"{name} ({len(rows)} rounds, load {os.getloadavg()[0]:.1f})")
    base = statistics.median(r[0] for r in rows)
    for v, label in enumerate(VARIANTS):
        figures = sorted(r[v] for r in rows)
        more = sorted(r[v] - r[0] for r in rows)
        # The middle half of the rounds.
        low, high = more[len(more) // 4], more[-1 - len(more) // 4]
        print(f"  {label:28} {statistics.median(figures):10.3f} {unit}   least {figures[0]:10.3f}   "
              f"+{statistics.median(more):.3f} ({low:.3f} to {high:.3f}), "
              f"{statistics.median(more) / base * 100:+.2f} %")


def pairs(rounds):
    program, n = os.path.join(TARGETS, "alloc_pairs"), "4000000"
    one, many = [], []
    for _ in range(rounds):
        got = []
        for variant in range(3):
            if variant < 2:
                out = subprocess.run([program, n], env=env_of(variant), capture_output=True, check=True).stdout
            else:
                with tempfile.TemporaryDirectory() as d:
                    out = subprocess.run([MEMSCOPE, "-q", "--alloc=sampled", "--only", "alloc", "-o",
                                          os.path.join(d, "o"), "--", program, n],
                                         capture_output=True, check=True).stdout
            got.append([float(x) for x in out.split()[-2:]])
        one.append([g[0] for g in got])
        many.append([g[1] for g in got])
    show("malloc and free of one block", one, "ns a pair")
    show("malloc and free of 64 blocks in another order", many, "ns a pair")


def cpu_ns(pid):
    """Of all its threads, by the scheduler's own account."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


def redis(rounds):
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        print("redis is not installed")
        return
    requests = 200000
    rows = []
    with tempfile.TemporaryDirectory() as d:
        servers = []
        for variant in range(3):
            sock = os.path.join(d, f"s{variant}")
            servers.append((subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", sock, "--save", ""],
                                             stdout=DEVNULL, env=env_of(variant), cwd=d), sock))
        while not all(os.path.exists(s) for _, s in servers):
            time.sleep(0.05)
        m = listener(servers[2][0].pid, os.path.join(d, "o"))
        try:
            for _ in range(rounds):
                row = []
                for server, sock in servers:
                    before = cpu_ns(server.pid)
                    subprocess.run(["redis-benchmark", "-s", sock, "-n", str(requests), "-q", "-P", "8", "-t",
                                    "set", "-r", "10000", "-d", "200"], check=True, stdout=DEVNULL)
                    row.append((cpu_ns(server.pid) - before) / requests)
                rows.append(row)
        finally:
            m.send_signal(2)
            m.wait()
            for server, _ in servers:
                server.kill()
                server.wait()
    show("redis-server under redis-benchmark -t set", rows, "ns a request")


def truth(runs):
    rate, program = 16384, os.path.join(TARGETS, "alloc_truth")
    total_held = site_held = sites = far = judged = 0
    bias, weight = 0.0, 0.0
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as d:
            log = os.path.join(d, "truth")
            done = subprocess.run([MEMSCOPE, "--json", "--alloc=sampled", "--only", "alloc", "--alloc-rate",
                                   str(rate), "-o", os.path.join(d, "o"), "--", program, "now", log, "20000"],
                                  capture_output=True, check=True)
            # The command's own output comes first.
            a = json.loads(done.stdout[done.stdout.index(b"{"):])["alloc"]
            with open(log, encoding="ascii") as f:
                lines = [line.split() for line in f]
        truths = {w[1]: int(w[3]) for w in lines if w[0] == "site"}
        total = next(int(w[2]) for w in lines if w[0] == "total")
        total_held += a["bytes_interval"]["low"] <= total <= a["bytes_interval"]["high"]
        bias += a["bytes"] - total
        weight += total
        for row in a["sites"]:
            want = truths.get(row["function"])
            if want is None or want < 20 * rate:
                continue
            sites += 1
            site_held += row["low"] <= want <= row["high"]
            judged += 1
            # No estimate's variance is above rate times bytes; 3.29 sigma: one in a thousand.
            far += abs(row["bytes"] - want) > 3.29 * math.sqrt(rate * want)

    def band(n, p):
        return 3.29 * math.sqrt(p * (1 - p) / n) * 100
    print(f"{runs} runs at one sample in {rate} bytes, {sites} functions with 20 expected samples and more")
    print(f"  total: {total_held / runs * 100:.1f} % of the intervals hold the truth (95 ± {band(runs, 0.95):.1f} "
          f"in 99.9 of 100 such benches); bias {bias / weight * 100:+.3f} %")
    print(f"  functions: {site_held / max(sites, 1) * 100:.1f} % (95 ± {band(sites, 0.95):.1f}); "
          f"{far} of {judged} estimates beyond the 99.9 % band of a sum of blocks that small")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", nargs="*", default=["pairs", "redis", "truth"])
    p.add_argument("--rounds", type=int, default=0)
    a = p.parse_args()
    for what in a.what:
        {"pairs": lambda: pairs(a.rounds or 15), "redis": lambda: redis(a.rounds or 15),
         "truth": lambda: truth(a.rounds or 200)}[what]()
        sys.stdout.flush()
    return 0


sys.exit(main())
