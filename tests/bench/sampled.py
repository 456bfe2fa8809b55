#!/usr/bin/python3
"""What sampled allocations cost, and how true they are, in interleaved runs.

    tests/bench/sampled.py [pairs] [redis] [truth] [counts] [--rounds N] [--seconds N] [--beside LIBRARY]

pairs   CPU time of a malloc and its free: alone, with libmemscope-alloc.so in front of it and nobody
        listening, and with memscope listening.
redis   CPU time of a redis-server for each request of redis-benchmark, watched by the sampled tier, by
        growth alone, by a default run, or by one that looks at every wait, beside another that is not;
        one request at a time, as redis-benchmark has it, and eight: then a request takes a fifth, and
        as many allocations. Two new servers for each figure, many short windows in turn, for CPUs change
        their speed. The mean of the ratios with its 95 % interval; rounds for --seconds (360).
counts  Instructions of a redis-server for each request, and misses of first-level caches of 32 KiB, by valgrind's
        callgrind: with the library in front of jemalloc, with another one (--beside), and without; nobody listens. Other
        work on the machine does not matter here.
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
CPUS = sorted(os.sched_getaffinity(0))
VARIANTS = ("alone", "library, nobody listens", "library, memscope listens")


def env_of(variant):
    return dict(os.environ) if variant == 0 else {**os.environ, "LD_PRELOAD": LIBRARY}


def listener(pid, out, options):
    """memscope on a process, attached."""
    m = subprocess.Popen([MEMSCOPE, "-p", str(pid), *options, "-o", out],
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


# Options of memscope beside -p PID; whether the library is in front of the allocator.
WATCHED = {
    "sampled": (["--alloc=sampled", "--only", "alloc"], True),
    "growth": (["--only", "growth"], False),
    "default": ([], False),
    "exact waits": (["--offcpu=exact"], False),
}
# Requests of a window, by how many are sent at a time; some 30 ms. What a run does when it begins (tables, pages
# of code that get a probe of their own, the first look at the allocator) would be most of few windows.
REQUESTS = {1: 5000, 8: 20000}
WINDOWS = 40


class Server:
    """A new redis-server on the last CPU, with a data set that no longer grows."""

    def __init__(self, where, name, library):
        self.sock = os.path.join(where, name)
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.sock, "--save", ""], stdout=DEVNULL,
            env=env_of(1 if library else 0), cwd=where, preexec_fn=lambda: os.sched_setaffinity(0, {CPUS[-1]}))
        while not os.path.exists(self.sock):
            time.sleep(0.005)
        self.work(20000, 8)

    def work(self, requests, at_a_time):
        """CPU time of the server for each, ns."""
        before = cpu_ns(self.process.pid)
        subprocess.run(["redis-benchmark", "-s", self.sock, "-n", str(requests), "-q", "-P", str(at_a_time), "-t", "set",
                        "-r", "5000", "-d", "200"], check=True, stdout=DEVNULL)
        return (cpu_ns(self.process.pid) - before) / requests

    def end(self):
        self.process.kill()
        self.process.wait()
        os.unlink(self.sock)


def redis_round(options, library, at_a_time):
    """Of two new servers, so that whatever one of them has by where its memory is, is in the scatter of rounds,
    not in their mean: logarithm of what the watched one takes by what the other takes; what that is of one CPU, in
    percent, over the time of watching; and what the other takes."""
    with tempfile.TemporaryDirectory() as d:
        plain, watched = Server(d, "plain", False), Server(d, "watched", library)
        m = listener(watched.process.pid, os.path.join(d, "o"), options)
        try:
            took, begin = {plain: 0.0, watched: 0.0}, time.monotonic()
            for i in range(WINDOWS):
                for server in (plain, watched) if i % 2 else (watched, plain):
                    took[server] += server.work(REQUESTS[at_a_time], at_a_time)
            more = (took[watched] - took[plain]) * REQUESTS[at_a_time] / (time.monotonic() - begin) / 1e7
            return math.log(took[watched] / took[plain]), more, took[plain] / WINDOWS
        finally:
            m.send_signal(2)
            m.wait()
            plain.end()
            watched.end()


def interval(values):
    """Mean, and its 95 % interval by Student's t, to a percent from four values on."""
    mean, n = statistics.fmean(values), len(values)
    half = (1.96 + 2.5 / max(n - 2, 1)) * statistics.stdev(values) / math.sqrt(n) if n > 2 else math.inf
    return mean, mean - half, mean + half


def redis_says(name, logs, more):
    """What is promised: 1 % of a request where a tier is always on; else --max-overhead, which is of one CPU."""
    request = [math.expm1(min(x, 5)) * 100 for x in interval(logs)]
    cpu = interval(more)
    limit, of, (_, low, high) = (1, "", request) if name in ("sampled", "growth") else (5, " of one CPU", cpu)
    says = "at most {}" if high <= limit else "more than {}" if low > limit else "{} is not resolved"
    print("  {:11} {:+.2f} % ({:+.2f} to {:+.2f}, 95 %)".format(name, *request), end="")
    print("; {:+.2f} % ({:+.2f} to {:+.2f}) of one CPU".format(*cpu), end="")
    print(":", says.format(f"{limit} %{of}"))


def redis(rounds, seconds):
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        print("redis is not installed")
        return
    os.sched_setaffinity(0, {CPUS[0]})  # and all that is started here, but the servers
    ratios, cpu = ({(n, name): [] for n in REQUESTS for name in WATCHED} for _ in range(2))
    base = {n: [] for n in REQUESTS}
    begin = time.monotonic()
    while len(base[1]) < len(WATCHED) * (rounds or 1000) and (rounds or time.monotonic() - begin < seconds):
        for n, name in ratios:
            ratio, more, plain = redis_round(*WATCHED[name], n)
            ratios[n, name].append(ratio)
            cpu[n, name].append(more)
            base[n].append(plain)
    for n in REQUESTS:
        print(f"redis-server under redis-benchmark -P {n} -t set: {statistics.median(base[n]):.0f} ns of CPU a request "
              f"unwatched ({len(ratios[n, 'default'])} rounds, load {os.getloadavg()[0]:.1f}); watched, more:")
        for name in WATCHED:
            redis_says(name, ratios[n, name], cpu[n, name])


def counts_of(library):
    """Of a request: instructions, misses of code, of data read and of data written."""
    requests, control = 50000, ["callgrind_control", "-i"]
    with tempfile.TemporaryDirectory() as d:
        sock, out = os.path.join(d, "s"), os.path.join(d, "counts")
        env = {**os.environ, "LD_PRELOAD": library} if library else dict(os.environ)
        server = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--instr-atstart=no",
             f"--callgrind-out-file={out}", "redis-server", "--port", "0", "--unixsocket", sock, "--save", ""],
            stdout=DEVNULL, stderr=DEVNULL, env=env, cwd=d)
        try:
            while not os.path.exists(sock):
                time.sleep(0.1)
            for n, switch in ((20000, "on"), (requests, "off")):
                subprocess.run(["redis-benchmark", "-s", sock, "-n", str(n), "-q", "-P", "8", "-t", "set", "-r", "5000", "-d", "200"],
                               check=True, stdout=DEVNULL)
                subprocess.run([*control, switch, str(server.pid)], check=True, stdout=DEVNULL, stderr=DEVNULL)
            subprocess.run(["redis-cli", "-s", sock, "shutdown", "nosave"], stdout=DEVNULL, stderr=DEVNULL)
            server.wait()
        finally:
            server.kill()
            server.wait()
        with open(out, encoding="ascii") as f:
            lines = {line.split(":")[0]: line.split()[1:] for line in f if line.startswith(("events:", "totals:"))}
    got = dict(zip(lines["events"], map(int, lines["totals"])))
    return [got[k] / requests for k in ("Ir", "I1mr", "D1mr", "D1mw")]


def counts(beside):
    if not shutil.which("valgrind") or not shutil.which("redis-server"):
        print("valgrind or redis is not installed")
        return
    print("redis-server under redis-benchmark -P 8 -t set, of each request:")
    print(f"  {'':24} {'instructions':>12} {'code misses':>12} {'read misses':>12} {'write misses':>12}")
    for name, library in (("no library", None), ("the library", LIBRARY), ("the other one", beside)):
        if library or name == "no library":
            print(f"  {name:24}", *(f"{v:12.2f}" for v in counts_of(library)), flush=True)


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
    p.add_argument("--seconds", type=float, default=360)
    p.add_argument("--beside")
    a = p.parse_args()
    for what in a.what:
        {"pairs": lambda: pairs(a.rounds or 15), "redis": lambda: redis(a.rounds, a.seconds),
         "counts": lambda: counts(a.beside and os.path.abspath(a.beside)),
         "truth": lambda: truth(a.rounds or 200)}[what]()
        sys.stdout.flush()
    return 0


sys.exit(main())
