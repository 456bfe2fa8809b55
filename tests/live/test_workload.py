#!/usr/bin/python3
"""--series: growth held against the work that a program does, from a file and from a server."""

import http.server
import signal
import subprocess
import sys
import threading
import time

from harness import *

# Leaks so much with each line that it reads, or so much each 10 ms; says how many lines it has read.
PROGRAM = """
import sys, threading, time, mmap
kept, PER_REQUEST, PER_TICK = [], int(sys.argv[1]), int(sys.argv[2])
def take(n):
    m = mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.write(b"x" * n)
    kept.append(m)
def tick():
    begin, taken = time.monotonic(), 0
    while PER_TICK: # by the clock, however late it is
        time.sleep(0.01)
        while taken < (time.monotonic() - begin) * 100:
            take(PER_TICK)
            taken += 1
threading.Thread(target=tick, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    take(PER_REQUEST) if PER_REQUEST else None
"""


class Worker:
    """The program, and requests that come by turns."""

    def __init__(self, per_request, per_tick):
        self.child = Child([sys.executable, "-c", PROGRAM, str(per_request), str(per_tick)], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True)
        self.child.process.stdout.readline()
        self.pid, self.done = self.child.pid, 0

    def request(self, n):
        for _ in range(n):
            self.child.process.stdin.write("\n")
        self.child.process.stdin.flush()
        self.done += n


def serve(worker):
    """An address at which the worker's requests are exported in Prometheus's text format."""
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            half = worker.done // 2
            body = (f"# TYPE requests_total counter\nrequests_total{{code=\"200\"}} {half}\n"
                    f"requests_total{{code=\"500\"}} {worker.done - half}\nup 1\n").encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/metrics"


def load(workers, path, rounds=8):
    """A second of requests, and two of none, and again; those of the first are logged in a file."""
    for i in range(30 * rounds):
        for worker in workers if i % 30 < 10 else ():
            worker.request(30)
        time.sleep(0.06)
        with open(path, "a", encoding="ascii") as f:
            f.write(f"{time.time()},requests,{workers[0].done}\n")


@once
def both():
    """A program that grows with its requests, and beside it one that grows by itself: [(run, worker), …]."""
    workers, path = (Worker(8192, 0), Worker(0, 8192)), scratch("series.csv")
    with open(path, "w", encoding="ascii") as f:
        f.write(f"timestamp,name,value\n{time.time()},requests,0\n")
    server, url = serve(workers[1])
    try:
        runs = [Run("-p", worker.pid, "--only", "growth", "--interval", 0.2, "--series", series)
                for worker, series in zip(workers, (path, url + "#requests_total"))]
        for run in runs:
            run.ready()
        load(workers, path)
        for run in runs:
            run.rows(rows_of(run) + 1)
            run.send(signal.SIGINT)
        for run in runs:
            run.must()
    finally:
        server.shutdown()
    return list(zip(runs, workers))


def rows_of(run):
    with open(run.path("trend.csv"), encoding="ascii") as f:
        return f.read().count("\n")


def fits(run):
    return {row["name"]: row for row in run.summary()["workload"]}


@fact
@alone("growth by the clock, of a program that a busy machine holds up")
def growth_with_requests_is_told_from_a_file_that_grows():
    run, _ = both()[0]
    got = fits(run)["requests"]
    # What python itself takes meanwhile is little beside 8 KiB a request, in pages that it maps for each.
    if run.starved_ns() < 1e9:  # where nobody looked for so long, the two may be inseparable
        equal(got["grows_with"], "work", f"{got}")
        check("grows with work: " in open(run.path("summary.txt"), encoding="utf-8").read(), "the summary does not say so")
    within(got["bytes_per_unit"], 7500, 9500, "bytes for each request")
    check(got["bytes_per_unit_low"] < 8192 * 1.1 and got["bytes_per_unit_high"] > 8192 * 0.95, f"its interval: {got}")
    with open(run.path("workload.csv"), encoding="utf-8") as f:
        lines = f.read().splitlines()
    equal(lines[0], "timestamp,name,value", "first line of workload.csv")
    for name in ("requests", "cpu_seconds"):
        check(sum(f',"{name}",' in line for line in lines) > 10, f"workload.csv has no {name}")


@fact
@alone("growth by the clock, of a program that a busy machine holds up")
def growth_by_itself_is_told_from_a_page_of_prometheus():
    run, worker = both()[1]
    got = fits(run)
    check("up" not in got, "a series that was not asked for")
    row = got["requests_total"]
    check(row["units"] <= worker.done + 0.5, f"more requests than there were: {row}, {worker.done}")
    # 100 times 8 KiB a second, and what python takes for each of them.
    check(row["idle_bytes_s_low"] < 819200 * 1.05 and row["idle_bytes_s_high"] > 819200 * 0.95, f"its interval: {row}")
    if run.starved_ns() > 1e9:
        return  # where nobody looked for so long, the two may be inseparable
    equal(row["grows_with"], "idle", f"{row}")
    check("grows while idle: " in open(run.path("summary.txt"), encoding="utf-8").read(), "the summary does not say so")


@fact
def series_that_cannot_be_read_are_said():
    target = Target("cpu_split", 1000)
    for where, status, says in (("/no/such/file.csv", 1, "cannot read the series in '/no/such/file.csv'"),
                                ("ftp://127.0.0.1/x", 1, "--series takes a file, http:// or https://")):
        r = subprocess.run([MEMSCOPE, "-p", str(target.pid), "-d", "0.3", "--series", where, "-o", scratch("none")],
                           capture_output=True, text=True, check=False)
        equal(r.returncode, status, f"exit status of {where}")
        check(says in r.stderr, f"{where}: {r.stderr!r}")
    run = Run("-p", target.pid, "--only", "oncpu", "-d", 1.5, "--series", "http://127.0.0.1:9/metrics")
    run.finish()
    run.must(3)  # what was asked for is missing
    check(any("http://127.0.0.1:9/metrics: " in n and "not read" in n for n in run.summary()["notes"]),
          f"it is not said that nothing was read: {run.summary()['notes']}")


main()
