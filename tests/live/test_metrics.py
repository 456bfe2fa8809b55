"""/metrics beside the kernel's own files, and as promtool, a parser of OpenMetrics and Prometheus itself read it."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

from containers import *
from harness import *
from http_serving import Server, free_port

TEXT = re.compile(r'(\w+?)(?:\{(.*)\})? (\S+)')
HOLDS = 64 << 20  # what the program in the group takes
PROGRAM = f"""import time
block = bytearray({HOLDS})
for i in range(0, {HOLDS}, 4096): block[i] = 1
print("full", flush=True)
while True:
    end = time.monotonic() + 0.02
    while time.monotonic() < end: pass
    time.sleep(0.02)
"""


def read(text):
    """{(name, ((label, value), …)): value} of the text format."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, value = TEXT.fullmatch(line).groups()
            found[name, tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))] = float(value)
    return found


@once
def served():
    """memscope serve of one control group, in which a program holds memory and computes half of the time."""
    group = Group(f"memscope-live-{os.urandom(4).hex()}", "memory")
    child = Child(["/usr/bin/python3", "-c", PROGRAM], stdout=subprocess.PIPE,
                  preexec_fn=lambda: group.take(os.getpid()))
    check(child.process.stdout.readline() == b"full\n", "the program has not begun")
    server = Server("-G", group.dir, "--every", 60, "--interval", 1, "--only", "oncpu,offcpu", "-F", 199,
                    "--max-overhead", 5).ready()
    return server, group, child


def scrape(server, accept=None):
    status, headers, body = server.get("/metrics", headers={"Accept": accept} if accept else {})
    equal(status, 200, body[:300])
    return headers["Content-Type"], body.decode()


def of(group, name, **more):
    return name, (("container", os.path.basename(group.dir)), *more.items())


def number(group, file, word=None):
    with open(os.path.join(group.dir, file), encoding="ascii") as f:
        text = f.read()
    return int(re.search(rf"^{word} (\d+)$", text, re.M).group(1) if word else text)


@fact
def a_group_s_memory_is_what_the_kernel_charges_it():
    server, group, _ = served()
    end = time.monotonic() + READY_SEC
    while True:
        before = number(group, "memory.usage_in_bytes"), number(group, "memory.stat", "total_rss")
        got = read(scrape(server)[1])
        after = number(group, "memory.usage_in_bytes"), number(group, "memory.stat", "total_rss")
        if of(group, "memscope_container_charged_bytes") in got or time.monotonic() > end:
            break
        time.sleep(0.2)
    # The row is up to a second old; the program takes nothing any more. The kernel counts pages of a CPU in batches of 64.
    slack = 64 * 4096 * os.cpu_count() + (2 << 20)
    for name, low, high in (("memscope_container_charged_bytes", before[0], after[0]),):
        value = got[of(group, name)]
        check(min(low, high) - slack <= value <= max(low, high) + slack, f"{name}: {value}, {low} to {high}")
    anonymous = got[of(group, "memscope_container_memory_bytes", part="anonymous")]
    check(abs(anonymous - after[1]) <= slack, f"anonymous: {anonymous}, {after[1]}")
    check(anonymous >= HOLDS, f"anonymous: {anonymous}")
    check(of(group, "memscope_container_memory_limit_bytes") not in got, "a limit that is none")
    equal(got[of(group, "memscope_container_oom_kills_total")], number(group, "memory.oom_control", "oom_kill"), "OOM kills")


@fact
def counters_grow_as_the_program_works():
    server, group, child = served()
    name = of(group, "memscope_container_sampled_cpu_seconds_total")
    before, at = read(scrape(server)[1]), work_of(child)
    time.sleep(8)
    after, then = read(scrape(server)[1]), work_of(child)
    gained, worked = after[name] - before[name], then - at
    # Samples at 199 Hz, 5 sigma; and rows are up to a second and a scrape old at either end, in which it works for half of the time.
    check(abs(gained - worked) <= 0.75 + 5 * (worked / 199) ** 0.5, f"{gained} s sampled, {worked} s by the kernel")
    for key, value in before.items():
        check(not key[0].endswith("_total") or after[key] >= value, f"{key} fell from {value} to {after[key]}")
    check(after["memscope_events_total", (("event", "oncpu_samples"),)] > 0, "no samples")


@fact
def processes_that_are_named_have_the_memory_that_the_kernel_says():
    child = Child(["/usr/bin/python3", "-c", PROGRAM], stdout=subprocess.PIPE)
    check(child.process.stdout.readline() == b"full\n", "the program has not begun")
    server = Server("-p", child.pid, "--every", 60, "--interval", 1, "--only", "oncpu", "-F", 199, "--max-overhead", 5).ready()
    got, end = {}, time.monotonic() + READY_SEC
    while ("memscope_target_oncpu_samples_total", ()) not in got or not got["memscope_target_oncpu_samples_total", ()]:
        check(time.monotonic() < end, f"no samples of it: {sorted(got)}")
        time.sleep(0.3)
        got = read(scrape(server)[1])
    with open(f"/proc/{child.pid}/status", encoding="ascii") as f:
        anonymous = 1024 * int(re.search(r"RssAnon:\s+(\d+) kB", f.read()).group(1))
    # It takes nothing any more; the kernel counts pages of a thread in batches of 64.
    value = got["memscope_target_memory_bytes", (("part", "anonymous"),)]
    check(abs(value - anonymous) <= 64 * 4096, f"anonymous: {value}, {anonymous}")
    equal(got["memscope_target_processes", ()], 1, "processes")
    check(got["memscope_target_cpu_seconds_total", ()] > 0, "no CPU time")
    check(not any(name.startswith("memscope_container_") for name, _ in got), "series of containers")


@fact
def waits_are_told_apart_by_what_was_waited_for():
    """The program sleeps until a time, and for nothing else."""
    server, group, _ = served()
    got, end = {}, time.monotonic() + READY_SEC
    key = of(group, "memscope_container_waited_seconds_total", kind="timer")
    while got.get(key, 0) < 0.5 and time.monotonic() < end:
        time.sleep(0.5)
        got = read(scrape(server)[1])
    waits = {k: v for k, v in got.items() if k[0] == key[0] and k[1][0] == key[1][0]}
    blocked = got[of(group, "memscope_container_blocked_seconds_total")]
    check(abs(sum(waits.values()) - blocked) <= 1e-6 * blocked, f"{waits} are not {blocked}")
    check(waits[key] >= 0.9 * blocked, f"{waits} of {blocked}")


@fact
def the_rss_breakdown_has_what_the_program_holds():
    server, group, _ = served()
    name, end, got = "memscope_container_rss_breakdown_bytes", time.monotonic() + READY_SEC, {}
    while of(group, name, part="live") not in got and time.monotonic() < end:
        time.sleep(0.5)
        got = read(scrape(server)[1])
    parts = {dict(k[1])["part"]: v for k, v in got.items() if k[0] == name and k[1][0][1] == os.path.basename(group.dir)}
    # 64 MiB in one block of the heap's, mapped alone.
    check(sum(parts[p] for p in parts if p.startswith("live")) >= HOLDS, f"{parts}")
    anonymous = got[of(group, "memscope_container_memory_bytes", part="anonymous")]
    check(sum(parts.values()) >= 0.9 * anonymous, f"{parts}, {anonymous} anonymous")


def work_of(child):
    with open(f"/proc/{child.process.pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


@fact
def promtool_and_the_parser_of_openmetrics_take_it():
    server, _, _ = served()
    kind, text = scrape(server)
    equal(kind, "text/plain; version=0.0.4; charset=utf-8", "type")
    if not shutil.which("promtool"):
        skip("no promtool")
    r = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    equal((r.returncode, r.stdout + r.stderr), (0, ""), "promtool")
    kind, text = scrape(server, "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
    equal(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8", "type")
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
    except ImportError:
        skip("no python3-prometheus-client")
    found = {f.name: f for f in text_string_to_metric_families(text)}
    equal(found["memscope_lost"].type, "counter", "type")
    check(len(found) > 20, f"{len(found)} families")


@fact
def prometheus_scrapes_it():
    server, group, _ = served()
    if not shutil.which("prometheus"):
        skip("no prometheus")
    port, home = free_port(), tempfile.mkdtemp(prefix="memscope-prometheus-")
    with open(f"{home}/config.json", "w", encoding="ascii") as f:  # JSON is YAML
        json.dump({"scrape_configs": [{"job_name": "memscope", "scrape_interval": "1s", "scrape_timeout": "1s",
                                       "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}]}]}, f)
    prometheus = Child(["prometheus", f"--config.file={home}/config.json", f"--storage.tsdb.path={home}/data",
                        f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(query):
        url = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.request.quote(query)}"
        with urllib.request.urlopen(url, timeout=5) as r:
            return json.load(r)["data"]["result"]

    end, got = time.monotonic() + READY_SEC, []
    while not got and time.monotonic() < end:
        try:
            got = ask("memscope_container_charged_bytes > 0")
        except OSError:
            pass
        time.sleep(0.3)
    equal([r["metric"]["container"] for r in got], [os.path.basename(group.dir)], "containers")
    equal([r["value"][1] for r in ask("up")], ["1"], "up")
    prometheus.end()
    shutil.rmtree(home)


@fact
def the_service_ends_as_it_should():
    server, group, child = served()
    server.stop()
    child.end()
    group.remove()
    Group.made.remove(group)


main()
