#!/usr/bin/python3
"""What the metrics of many nodes take of Prometheus: series, samples, memory, disk, CPU.

    tests/bench/fleet.py [--nodes N] [--containers N] [--scrapes N] [--interval SEC]

memscope serves this host with two containers of its making; its /metrics is read twice, and every series goes on as it went between
the two, with a fifth more or less by chance. A container's series are given to N containers. One server answers for all nodes: each is an
address of 127.0.0.0/8, so that Prometheus has as many targets. An hour at an interval of a minute is 60 scrapes; with a shorter
interval it takes less time, and what depends on the number of samples is the same: CPU time is therefore printed for a scrape.
At the end Prometheus writes what it has as a block, whose bytes are those of an hour on its disk. Nothing here passes or fails.
"""

import argparse
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
ARGS, sys.argv = sys.argv[1:], sys.argv[:1]  # harness reads sys.argv for tests
from containers import Group, mounts  # noqa: E402
from harness import MEMSCOPE, Child  # noqa: E402
from http_serving import free_port  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
CONTAINER = re.compile(r'container="([^"]*)"')


def get(url, timeout=60):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read().decode()


def recorded(apart_s=12):
    """[(line without its value, value, growth a second)], and the comments, of a host with containers that work."""
    port, archive = free_port(), tempfile.mkdtemp(prefix="memscope-fleet-")
    names, groups, children = [f"docker-{os.urandom(32).hex()}.scope" for _ in range(2)], [], []
    for name in names:
        groups.append([Group(name, h) for h in mounts() if h in ("", "memory", "cpu", "cpuacct", "blkio")])
        def enter(mine=tuple(groups[-1])):
            for g in mine:
                g.take(os.getpid())
        children.append(Child(["sh", "-c", "while :; do :; done"], preexec_fn=enter))
    serve = subprocess.Popen([MEMSCOPE, "serve", "-a", "-q", "--own-memory", "0", "--archive", archive, "--interval", "2",
                              "--listen", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
    try:
        texts, end = [], time.monotonic() + 120
        while len(texts) < 2 and time.monotonic() < end:
            time.sleep(apart_s if texts or serve.poll() is not None else 1)
            try:
                text = get(f"http://127.0.0.1:{port}/metrics")
            except OSError:
                continue
            if sum(name.split("-")[1][:12] in text for name in names) == 2 or texts:
                texts.append(text)
    finally:
        serve.send_signal(signal.SIGKILL)
        serve.wait()
        for child in children:
            child.end()
        for group in (g for both in groups for g in both):
            group.remove()
        shutil.rmtree(archive)
    if len(texts) < 2:
        sys.exit("memscope does not say anything of its containers")
    first, last = ({k: float(v) for k, v in (line.rsplit(" ", 1) for line in t.splitlines() if not line.startswith("#"))} for t in texts)
    return [(k, v, (v - first.get(k, v)) / apart_s) for k, v in last.items()], [l for l in texts[1].splitlines() if l.startswith("#")]


def bodies(containers, scrapes, seconds):
    """The text of a node for each scrape, as if they were `seconds` apart; series of the host, and of each container."""
    rows, comments = recorded()
    ours = {m.group(1) for k, _, _ in rows if (m := CONTAINER.search(k))} - {"host", ""}
    one = max(ours, key=lambda name: sum(f'container="{name}"' in k for k, _, _ in rows))
    own = [r for r in rows if not (m := CONTAINER.search(r[0])) or m.group(1) == "host"]
    of_one = [r for r in rows if f'container="{one}"' in r[0]]
    many = [(k.replace(one, f"shop-{i}"), v, d) for i in range(containers) for k, v, d in of_one]
    random.seed(1)
    values, texts, help_of = [[k, v, d] for k, v, d in own + many], [], {}
    for line in comments:
        help_of.setdefault(line.split()[2], []).append(line)
    for _ in range(scrapes):
        families = {}
        for row in values:
            row[1] += row[2] * seconds * random.uniform(0.8, 1.2)
            value = round(row[1]) if float(row[1]).is_integer() or abs(row[1]) > 1e6 else round(row[1], 6)
            families.setdefault(re.match(r"\w+", row[0]).group(), []).append(f"{row[0]} {value}")
        texts.append("".join("\n".join([*help_of.get(name, []), *lines]) + "\n" for name, lines in families.items()).encode())
    return texts, len(own), len(of_one)


class Nodes(ThreadingHTTPServer):
    """Answers for every address of 127.0.0.0/8, each with its own next text."""
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, texts):
        self.texts, self.asked, self.lock = texts, {}, threading.Lock()
        super().__init__(("0.0.0.0", 0), Node)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # Prometheus did not wait any longer: `up` says so


class Node(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        server, name = self.server, self.connection.getsockname()[0]
        with server.lock:
            n = server.asked[name] = server.asked.get(name, -1) + 1
        body = server.texts[min(n, len(server.texts) - 1)]
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def address(i):
    return f"127.{1 + i // 62500}.{i // 250 % 250}.{1 + i % 250}"


def proc(pid):
    """(CPU seconds, resident bytes)"""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICK, int(words[21]) * os.sysconf("SC_PAGE_SIZE")


def size_of(path):
    return sum(os.path.getsize(os.path.join(top, f)) for top, _, files in os.walk(path) for f in files)


def metric(base, name):
    return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)$", get(base + "/metrics"), re.M)))


def measure(args, work):
    texts, own, of_one = bodies(args.containers, args.scrapes + 5, 60)
    nodes, port = Nodes(texts), free_port()
    with open(work + "/prometheus.yml", "w", encoding="ascii") as f:
        json.dump({"global": {"scrape_interval": f"{args.interval}s", "scrape_timeout": f"{min(args.interval, 20)}s"}, "scrape_configs": [
            {"job_name": "memscope", "static_configs": [{"targets": [f"{address(i)}:{nodes.server_port}" for i in range(args.nodes)]}]}]}, f)
    base = f"http://127.0.0.1:{port}"
    with open(work + "/log", "wb") as log:
        prometheus = Child(["prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/data", "--web.enable-admin-api",
                            f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    peak, end = 0, time.monotonic() + args.interval * args.scrapes
    while time.monotonic() < end:
        time.sleep(1)
        peak = max(peak, proc(prometheus.pid)[1])
    cpu_s, rss = proc(prometheus.pid)
    series, samples = metric(base, "prometheus_tsdb_head_series"), metric(base, "prometheus_tsdb_head_samples_appended_total")
    answer = json.loads(get(base + "/api/v1/query?query=avg(avg_over_time(up[1h]))"))["data"]["result"]
    up = float(answer[0]["value"][1]) if answer else 0
    wal = size_of(work + "/data/wal")
    urllib.request.urlopen(urllib.request.Request(base + "/api/v1/admin/tsdb/snapshot", method="POST"), timeout=900).read()
    block = size_of(work + "/data/snapshots")
    with open(glob.glob(work + "/data/snapshots/*/*/meta.json")[0], encoding="ascii") as f:
        in_block = json.load(f)["stats"]["numSamples"]
    prometheus.end()
    scraped = samples / (series or 1)
    print(f"nodes {args.nodes}, containers on each {args.containers}; a target has {own} series of itself and {of_one} of each container, "
          f"{len(texts[0])} bytes of text")
    print(f"{scraped:.1f} scrapes, {args.interval} s apart (an hour has 60); {100 * up:.1f} % of all were answered in time")
    print(f"series {series:.0f}; samples {samples:.0f}: {samples / scraped / 60:.0f} a second at one scrape a minute")
    print(f"resident {rss / 2**20:.0f} MiB at the end, {peak / 2**20:.0f} at most: {peak / series:.0f} bytes a series")
    print(f"write-ahead log {wal / 2**20:.0f} MiB, {wal / samples:.1f} bytes a sample; block {block / 2**20:.0f} MiB, {block / in_block:.2f} bytes a sample")
    print(f"CPU {cpu_s:.0f} s: {cpu_s / samples * 1e6:.1f} us a sample, {100 * cpu_s / scraped / 60:.1f} % of a CPU at one scrape a minute")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--containers", type=int, default=10)
    parser.add_argument("--scrapes", type=int, default=60)
    parser.add_argument("--interval", type=int, default=10)
    args = parser.parse_args(ARGS)
    if not shutil.which("prometheus"):
        sys.exit("prometheus is not installed")
    work = tempfile.mkdtemp(prefix="memscope-fleet-")
    try:
        measure(args, work)
    finally:
        for child in list(Child.living):
            child.end()
        shutil.rmtree(work)


main()
