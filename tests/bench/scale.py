#!/usr/bin/python3
"""What `memscope serve -a` takes of a large host: by CPUs by calculation, by processes and floods by running it.

    tests/bench/scale.py maps [CPUS …]                         (2 16 64 128 256 512)
    tests/bench/scale.py processes [--seconds N] [PROCESSES …] (0 1000 10000 20000)
    tests/bench/scale.py floods [--seconds N] [--steps N] [LOAD …] (threads processes)

maps: the maps of a running service, as bpftool lists them, each scaled from this machine's possible CPUs to others: what
is per CPU by its type (BYTES of kernel/bpf/{arraymap,hashtab}.c), and what sizes itself by CPUs by the same rule as
collect/session/map_sizes.c has it; the rings of collect/stream/sideband.c besides. processes: processes that sleep beside a
service; how long it takes to begin, memory, CPU time. floods: the same beside churn, in steps, so that what grows is seen.
Nothing here passes or fails.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import serve
from serve import BUILD, CHURN, MEMSCOPE, children, cpu_s, maps_kib, programs_s, pss_kib

SLEEPERS = os.path.join(BUILD, "targets/sleepers")
MIB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


class Service:
    """`memscope serve -a` on the whole host; `begin_s`: until it said that it profiles."""

    def __init__(self, where, options):
        self.socket, self.said = os.path.join(where, "s"), []
        began = time.monotonic()
        self.p = subprocess.Popen([MEMSCOPE, "serve", "-a", "-v", "-F", "19", "--archive", os.path.join(where, "archive"),
                                   "--listen", "unix:" + self.socket, *options], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        for line in self.p.stderr:
            self.said.append(line)
            if line.startswith("memscope: profiling"):
                break
        else:
            raise SystemExit("".join(self.said))
        self.begin_s = time.monotonic() - began
        self.thread = serve.threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        self.said += self.p.stderr

    def metrics(self):
        text = subprocess.run(["curl", "-s", "--max-time", "10", "--unix-socket", self.socket, "http://localhost/metrics"],
                              stdout=subprocess.PIPE, text=True, check=False).stdout
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#") and " " in line)

    def cpu(self):
        """(of the process, of its children, of programs in the kernel), seconds."""
        with open(f"/proc/{self.p.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        own = sum(int(x) for x in fields[11:13]) / serve.TICK
        return own, cpu_s(self.p.pid) - own, programs_s(self.p.pid)

    def memory_kib(self):
        """(Pss of process and children, anonymous memory of the process, maps)."""
        with open(f"/proc/{self.p.pid}/smaps_rollup", encoding="ascii") as f:
            anon = next(int(line.split()[1]) for line in f if line.startswith("Pss_Anon:"))
        return pss_kib(self.p.pid) + sum(pss_kib(c) for c in children(self.p.pid)), anon, maps_kib(self.p.pid)

    def end(self):
        self.p.send_signal(signal.SIGTERM)
        self.p.wait()
        self.thread.join()


def step(service, seconds):
    """(percent of one CPU of process, children and programs, the largest Pss, anonymous memory and maps at the end, KiB)."""
    began, t0 = service.cpu(), time.monotonic()
    peak = 0
    while time.monotonic() < t0 + seconds:
        time.sleep(1)
        peak = max(peak, service.memory_kib()[0])
    ended, span = service.cpu(), time.monotonic() - t0
    return [100 * (b - a) / span for a, b in zip(began, ended)], (peak, *service.memory_kib()[1:])


# --- maps, by calculation ---

def service_maps(pid):
    ids = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                ids |= {int(n) for n in re.findall(r"^map_id:\s+(\d+)", f.read(), re.M)}
        except OSError:
            pass
    shown = subprocess.run(["bpftool", "map", "show", "-j"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [m for m in json.loads(shown) if m["id"] in ids]


def at_cpus(name, kind, m, here, cpus):
    """Bytes of a map on so many possible CPUs. What the kernel adds to it does not depend on them, nearly."""
    now = m["bytes_memlock"]
    value = (m["bytes_value"] + 7) & ~7
    n = m["max_entries"]
    if name == "unwind_caches":  # unwind_maps_caches(): 1 MiB at most on all CPUs, from 8 to 64 for each of two types
        each = min(64, max(8, min(MEM // 64, MIB) // m["bytes_value"] // cpus // 2))
        return 2 * each * (value + 8) * cpus
    if name == "memory_cpus":  # size_growth_maps(): a 16th of --mem, with `memories`
        most = min(4096, MEM // 16 // (cpus * m["bytes_value"] + 80 + 2 * 56))
        return most * (value * cpus + 48 + 8) + most * 8
    if name in ("irq_totals_a", "irq_totals_b", "irq_seen"):  # irq_totals(): 8 s of two totals a sample, and not more than others
        return now // n * min(max(19 * cpus * 16, 1024), TOTALS)
    if kind == "percpu_array":
        return now + n * value * (cpus - here)
    if kind == "percpu_hash":
        return now + n * value * (cpus - here)
    return now


MEM = 48 * MIB  # --mem of serve
TOTALS = MEM // 16 // (64 + 32 + 48)  # map_sizes_set(): totals, with -a


def rings(cpus):
    """sideband_pages(): two rings a CPU with a control page each."""
    prompt, calm = 64, 32
    while prompt > 4 and cpus * (prompt + calm) * PAGE > 16 * MIB:
        prompt, calm = prompt // 2, max(4, calm // 2)
    return cpus * (prompt + calm + 2) * PAGE


def maps(args):
    with open("/sys/devices/system/cpu/possible", encoding="ascii") as f:
        here = int(f.read().strip().rsplit("-", 1)[-1]) + 1
    counts = [int(a) for a in args.what] or [2, 16, 64, 128, 256, 512]
    with tempfile.TemporaryDirectory() as where:
        service = Service(where, args.option)
        found = service_maps(service.p.pid)
        service.end()
    rows = {m.get("name", str(m["id"])): [at_cpus(m.get("name"), m["type"], m, here, c) for c in counts] for m in found}
    total = [sum(r[i] for r in rows.values()) for i in range(len(counts))]
    rows = {k: r for k, r in rows.items() if r[-1] > MIB}
    print(f"{len(found)} maps, MiB, from what they take on {here} CPUs; below 1 MiB: only in the sum\n")
    print("| CPUs | " + " | ".join(str(c) for c in counts) + " |\n|---|" + "--:|" * len(counts))
    for name, sizes in sorted(rows.items(), key=lambda row: -row[1][-1]):
        print(f"| {name} | " + " | ".join(f"{b / MIB:.1f}" for b in sizes) + " |")
    print("| all maps | " + " | ".join(f"{b / MIB:.1f}" for b in total) + " |")
    print("| perf rings | " + " | ".join(f"{rings(c) / MIB:.1f}" for c in counts) + " |")
    print("| both | " + " | ".join(f"{(b + rings(c)) / MIB:.1f}" for b, c in zip(total, counts)) + " |")


def floods(args):
    print("| load | of it, a second | time | process | children | programs | Pss at most | anonymous | maps | lost |\n" + "|---|" + "--:|" * 9)
    for name in args.what or ["threads", "processes"]:
        with tempfile.TemporaryDirectory() as where:
            service = Service(where, ["--every", str(args.every), *args.option])
            time.sleep(args.settle)
            load = serve.Load(serve.LOADS[name])
            for i in range(args.steps):
                t0 = time.monotonic()
                percent, (pss, anon, maps_of) = step(service, args.seconds)
                lost = {k: int(float(v)) for k, v in service.metrics().items() if k.startswith("memscope_lost_total") and float(v)}
                print(f"| {name} | {load.rate(t0, time.monotonic())[0]:.0f} | {(i + 1) * args.seconds:.0f} s | " +
                      " | ".join(f"{p:.1f} %" for p in percent) +
                      f" | {pss / 1024:.0f} MiB | {anon / 1024:.0f} MiB | {maps_of / 1024:.0f} MiB | " +
                      ", ".join(f"{re.search('cause=.(.*).}', k)[1]} {v}" for k, v in lost.items()) + " |", flush=True)
            load.end()
            service.end()
            if args.tell:
                print("".join(service.said))


def processes(args):
    print("| processes | begins after | process | children | programs | in all, by itself | Pss at most | anonymous | maps |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for n in [int(a) for a in args.what] or [0, 1000, 10000, 20000]:
        with tempfile.TemporaryDirectory() as where:
            sleepers = subprocess.Popen([SLEEPERS, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            there = int(sleepers.stdout.readline())
            service = Service(where, ["--every", str(args.every), *args.option])
            if args.tell:
                print(f"serve {service.p.pid}", flush=True)
            time.sleep(args.settle)
            percent, (pss, anon, maps) = step(service, args.seconds)
            own = float(service.metrics().get("memscope_own_cpu_ratio", "nan"))
            print(f"| {there} | {service.begin_s:.1f} s | " + " | ".join(f"{p:.2f} %" for p in percent) +
                  f" | {100 * own:.2f} % | {pss / 1024:.0f} MiB | {anon / 1024:.0f} MiB | {maps / 1024:.0f} MiB |", flush=True)
            service.end()
            sleepers.stdin.close()
            sleepers.wait()
            time.sleep(2)
            if args.tell:
                print("".join(service.said))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["maps", "processes", "floods"])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=20)
    parser.add_argument("--every", type=float, default=30)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--tell", action="store_true", help="the service's pid and journal, too")
    parser.add_argument("what", nargs="*")
    args = parser.parse_intermixed_args(serve.ARGS)
    with open("/proc/sys/kernel/bpf_stats_enabled", "r+", encoding="ascii") as f:
        was = f.read()
        f.seek(0)
        f.write("1")
    try:
        {"maps": maps, "processes": processes, "floods": floods}[args.part](args)
    finally:
        with open("/proc/sys/kernel/bpf_stats_enabled", "w", encoding="ascii") as f:
            f.write(was)


main()
