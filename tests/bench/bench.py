#!/usr/bin/python3
"""What being profiled costs a program: memscope beside perf, bcc and bpftrace, in one run.

    make bench [BENCHFLAGS="--pairs 9 --window 1.5 --only alloc"]

For each kind of work, windows alternate: without a tool, with the first, without, with the next,
and so on, --pairs times through. A tool's figure is the rate of work with it over the mean of the
windows without any just before and just after; the table gives the median of its pairs and the
smallest and largest. `no tool` is the same with nothing started: the noise to read the rest by.

The program under test is pinned to the last CPU, tools and load generators to the first. A tool is
given time to attach before its window opens. Nothing here passes or fails.
"""

import argparse
import glob
import os
import platform
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
ARGS, sys.argv = sys.argv, sys.argv[:1]  # harness reads sys.argv for tests
from harness import MEMSCOPE, Counter, Target, online_cpus, tool  # noqa: E402

DEVNULL = subprocess.DEVNULL
WHERE = tempfile.mkdtemp(prefix="memscope-bench-")
LIBC = next((p for p in ("/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6")
             if os.path.exists(p)), "libc")
LAST_CPU, FIRST_CPU = online_cpus()[-1], online_cpus()[0]


# --- tools: how to start one, and how to know that it has attached ------------------------------

def fill(text, **words):
    """"{pid}" and the like replaced; other braces, as bpftrace has many, stay."""
    for word, value in words.items():
        text = text.replace("{" + word + "}", str(value))
    return text


class Tool:
    """`argv` may hold {pid}, {out} and {where}. `ready` is a text its output shows once attached;
    `settle` is slept after that (or instead of it)."""

    def __init__(self, name, argv, ready=None, settle=0.3, stop=signal.SIGINT):
        self.name, self.argv, self.ready, self.settle, self.stop = name, argv, ready, settle, stop

    def start(self, pid):
        out = os.path.join(WHERE, "out")
        shutil.rmtree(out, ignore_errors=True)
        argv = [fill(a, pid=pid, out=out, where=WHERE) for a in self.argv]
        self.process = subprocess.Popen(
            argv, stdin=DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=WHERE,
            preexec_fn=lambda: os.sched_setaffinity(0, {FIRST_CPU}))
        self.output, self.seen = [], threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if self.ready:
            self.seen.wait(8)
        time.sleep(self.settle)
        return self.alive()

    def alive(self):
        """Without reaping it: end() wants its resource usage."""
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def _read(self):
        for line in self.process.stdout:
            self.output.append(line.decode("utf-8", "replace").rstrip())
            if self.ready and self.ready in self.output[-1]:
                self.seen.set()
        self.seen.set()

    def end(self):
        """(CPU seconds, peak RSS in MiB) of the tool from its start to its report."""
        if self.alive():
            os.kill(self.process.pid, self.stop)
        killer = threading.Timer(30, os.kill, (self.process.pid, signal.SIGKILL))
        killer.start()
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        killer.cancel()
        self.reader.join(2)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024

    def why(self):
        """The last lines of one that did not start."""
        return re.sub(r"\s+", " ", " ".join(self.output[-2:]))[:100] or "it ended without a word"


def memscope(*args, name="memscope"):
    return Tool(name, [MEMSCOPE, "-p", "{pid}", "-o", "{out}", *args],
                ready="memscope: profiling", settle=0.1)


def perf(*args, name="perf record"):
    return Tool(name, [tool("perf") or "perf", "record", "-g", "-q", "-o",
                                "{where}/perf.data", "-p", "{pid}", *args], settle=0.8)


def bpftrace(program):
    return Tool("bpftrace", [tool("bpftrace") or "bpftrace", "-p", "{pid}", "-e", program],
                ready="Attaching", settle=0.8)


def bcc_headers():
    """bcc compiles against kernel headers. Where the running kernel's are not installed, those of
    a packaged kernel do for its profile and memleak, which read no structure that has moved; Debian
    splits them in two directories, and bcc wants one."""
    installed = os.path.isdir(f"/lib/modules/{platform.release()}/build")
    if installed or "BCC_KERNEL_SOURCE" in os.environ:
        return
    for own in sorted(glob.glob("/usr/src/linux-headers-*-*")):
        common = re.sub(r"-[a-z]+-(amd64|arm64)$|-(amd64|arm64)$", "-common", own)
        if own == common or not os.path.isdir(common):
            continue
        arch = "arm64" if platform.machine() == "aarch64" else "x86"
        merged = os.path.join(WHERE, "headers")
        os.makedirs(os.path.join(merged, "arch", arch))
        for part in ("include", f"arch/{arch}/include"):
            for source in (common, own):
                subprocess.run(["cp", "-rsf", os.path.join(source, part),
                                os.path.dirname(os.path.join(merged, part))], check=False)
        os.environ["BCC_KERNEL_SOURCE"] = merged
        return


# bcc 0.26 of Debian 12 calls a function of its library without the last argument, a reference counter's
# offset, which then is whatever is in its place: its uprobes can be attached or not, by chance.
BCC_SHIM = """
import runpy, sys
from bcc.libbcc import lib
attach = lib.bpf_attach_uprobe
attach.argtypes = None
import ctypes as c
lib.bpf_attach_uprobe = lambda fd, kind, name, path, off, pid, *counter: attach(
    c.c_int(fd), c.c_int(kind), c.c_char_p(name), c.c_char_p(path), c.c_uint64(off), c.c_int(pid),
    c.c_uint32(0))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def bcc(name, *args, ready=None, settle=0.5):
    program = f"{name}-bpfcc"
    # Python tools buffer what they print to a pipe: without -u the ready line comes too late.
    return Tool(f"bcc {name}", ["/usr/bin/python3", "-u", "-c", BCC_SHIM, tool(program) or program,
                                *args], ready=ready, settle=settle)


NOTHING = Tool("no tool", ["/bin/sleep", "60"], settle=0.1, stop=signal.SIGTERM)


def on_cpu_tools(hz):
    return [
        memscope("--only", "oncpu", "-F", str(hz)),
        perf("-F", str(hz), "-e", "cpu-clock"),
        bcc("profile", "-F", str(hz), "-p", "{pid}", "-f", ready="Sampling"),
        bpftrace(f"profile:hz:{hz} " + "/pid == {pid}/ { @[ustack, kstack] = count(); }"),
    ]


def fast_tools():
    """At a rate at which one sample's cost can be told: beside it, the cheapest stacks that perf can
    take of a program with frame pointers, and its whole stacks of one without."""
    return [
        memscope("--only", "oncpu", "-F", "4999"),
        perf("-F", "4999", "-e", "cpu-clock"),
        perf("-F", "4999", "-e", "cpu-clock", "--call-graph", "dwarf", name="perf, dwarf"),
        bcc("profile", "-F", "4999", "-p", "{pid}", "-f", ready="Sampling"),
        bpftrace("profile:hz:4999 /pid == {pid}/ { @[ustack, kstack] = count(); }"),
    ]


def off_cpu_tools():
    # libbpf-tools has no package in Debian 12: one that was built is named by OFFCPUTIME.
    offcputime = os.environ.get("OFFCPUTIME")
    built = [Tool("libbpf-tools offcputime", [offcputime, "-p", "{pid}"], settle=0.8)]
    return [
        memscope("--only", "offcpu"),
        memscope("--only", "offcpu", "--offcpu=exact", name="memscope, exact"),
        memscope("--only", "offcpu", "--offcpu=sampled", name="memscope, sampled"),
        *(built if offcputime else []),
        perf("-e", "sched:sched_switch"),
        bcc("offcputime", "-p", "{pid}", "-f", settle=2.5),
        bpftrace("""tracepoint:sched:sched_switch {
                if (pid == {pid}) { @at[tid] = nsecs; @stack[tid] = ustack; }
                $start = @at[args->next_pid];
                if ($start) {
                    @ns[args->next_pid, @stack[args->next_pid]] = sum(nsecs - $start);
                    delete(@at[args->next_pid]);
                } }"""),
    ]


def alloc_tools():
    return [
        memscope("--only", "alloc", "--alloc=exact"),
        bcc("memleak", "-p", "{pid}", ready="Attaching", settle=4),
        bpftrace("uprobe:{libc}:malloc { @[ustack] = count(); } "
                 "uprobe:{libc}:free { @frees = count(); }".replace("{libc}", LIBC)),
    ]


def trace_tools():
    return [
        Tool("memscope trace", [MEMSCOPE, "trace", "-p", "{pid}", "-o", "{where}/trace.txt"], ready="memscope: ", settle=0.3),
        Tool("strace -f -tt -T", [tool("strace") or "strace", "-f", "-tt", "-T", "-p", "{pid}", "-o", "{where}/strace.txt"],
             ready="attached"),
        Tool("perf trace", [tool("perf") or "perf", "trace", "-p", "{pid}", "-o", "{where}/perf.txt"], settle=1),
    ]


def redis_tools():
    return [
        memscope(name="memscope, all sources"),
        memscope("--only", "oncpu,offcpu", name="memscope, on- and off-CPU"),
        perf("-F", "99", "-e", "cpu-clock"),
        bcc("profile", "-F", "99", "-p", "{pid}", "-f", ready="Sampling"),
        bpftrace("profile:hz:99 /pid == {pid}/ { @[ustack, kstack] = count(); }"),
    ]


# --- work: something with a pid and a count that grows ------------------------------------------

class Work:
    def __init__(self, target, command):
        self.target, self.counter = target, Counter()
        os.sched_setaffinity(target.pid, {LAST_CPU})
        target.say(fill(command, file=self.counter.path))
        time.sleep(0.3)

    pid = property(lambda self: self.target.pid)

    def count(self):
        return self.counter.value()

    def end(self):
        self.target.end()


class Redis:
    """redis-server on the last CPU, redis-benchmark on the first; commands processed."""

    def __init__(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        quiet = {"stdin": DEVNULL, "stdout": DEVNULL, "stderr": DEVNULL}
        self.server = subprocess.Popen(
            [tool("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no", "--dir", WHERE], **quiet,
            preexec_fn=lambda: os.sched_setaffinity(0, {LAST_CPU}))
        for _ in range(100):
            try:
                self.link = socket.create_connection(("127.0.0.1", port), 1)
                break
            except OSError:
                time.sleep(0.05)
        self.load = subprocess.Popen(
            [tool("redis-benchmark"), "-p", str(port), "-n", "2000000000", "-t", "set", "-q",
             "-c", "20", "-P", "16", "-r", "10000"], **quiet,
            preexec_fn=lambda: os.sched_setaffinity(0, {FIRST_CPU}))
        self.pid = self.server.pid
        time.sleep(0.7)

    def count(self):
        self.link.sendall(b"INFO stats\r\n")
        text = b""
        while b"total_commands_processed:" not in text or not text.endswith(b"\r\n"):
            text += self.link.recv(65536)
        return int(re.search(rb"total_commands_processed:(\d+)", text).group(1))

    def end(self):
        for child in (self.load, self.server):
            child.kill()
            child.wait()


BENCHES = {
    "oncpu99": ("on-CPU at 99 Hz, 30 frames deep", lambda: Work(Target("deep", 30), "rate {file}"),
                lambda: on_cpu_tools(99)),
    "oncpu999": ("on-CPU at 999 Hz, 30 frames deep",
                 lambda: Work(Target("deep", 30), "rate {file}"), lambda: on_cpu_tools(999)),
    "oncpu4999": ("on-CPU at 4,999 Hz, 30 frames deep",
                  lambda: Work(Target("deep", 30), "rate {file}"), fast_tools),
    "offcpu": ("off-CPU: pipe ping-pong on one CPU",
               lambda: Work(Target("pingpong", LAST_CPU), "rate {file}"), off_cpu_tools),
    "alloc": ("allocations: 100,000 malloc+free pairs/s with work between",
              lambda: Work(Target("alloc_flat", 1), "mix {file} 100000"), alloc_tools),
    "trace": ("a log of each system call: reads, writes and seeks of devices", lambda: Work(Target("system_calls"), "rate {file}"),
              trace_tools),
    "redis": ("redis-server under redis-benchmark (SET, 20 clients, pipeline of 16)", Redis,
              redis_tools),
}


# --- measuring ----------------------------------------------------------------------------------

def rate(work, window):
    a, t = work.count(), time.monotonic()
    time.sleep(window)
    return (work.count() - a) / (time.monotonic() - t)


def measure(name, pairs, window, wanted):
    title, make, tools = BENCHES[name]
    work = make()
    tools = [NOTHING] + [t for t in tools() if re.search(wanted, t.name)]
    ratios, costs, notes = ({t.name: [] for t in tools} for _ in range(3))
    bases = []
    try:
        for _ in range(pairs):
            before = rate(work, window / 2)
            for t in tools:
                if notes[t.name]:
                    continue
                if not t.start(work.pid):
                    t.end()
                    notes[t.name] = f"does not start: {t.why()}"
                    continue
                with_tool = rate(work, window)
                costs[t.name].append(t.end())
                time.sleep(0.2)
                after = rate(work, window / 2)
                ratios[t.name].append(with_tool / ((before + after) / 2))
                bases.append(before)
                before = after
    finally:
        work.end()
    print(f"\n### {title}\n")
    print(f"{statistics.median(bases):,.0f} units of work a second without a tool; "
          f"{pairs} pairs of {window} s.\n")
    print("| tool | rate with it (median) | smallest … largest | its CPU, s | its RSS, MiB |")
    print("|---|---|---|---|---|")
    for t in tools:
        if not ratios[t.name]:
            print(f"| {t.name} | – | {notes[t.name]} | | |")
            continue
        r, c = sorted(ratios[t.name]), costs[t.name]
        cost = "| |" if t is NOTHING else (f"{statistics.median(x[0] for x in c):.2f} | "
                                           f"{statistics.median(x[1] for x in c):.0f} |")
        print(f"| {t.name} | {statistics.median(r):.3f} | {r[0]:.3f} … {r[-1]:.3f} | {cost}")
    if name == "oncpu4999" and "perf record" in ratios:
        sample_cost(ratios, 4999)
    sys.stdout.flush()


def sample_cost(ratios, hz):
    """A sample's cost over that of perf's frame pointers: what is left of the rate of work in one's
    window less what is left in the other's of the same turn, by the rate; with a 95 % interval by
    Student's t (1.96 to 2.1 from 20 turns on; 2.05 is taken)."""
    own = next(name for name in ratios if name.startswith("memscope"))
    costs = [(b - a) / hz * 1e6 for a, b in zip(ratios[own], ratios["perf record"])]
    if len(costs) < 20:
        print(f"\n{len(costs)} turns are too few for the cost of one sample (--pairs 30).")
        return
    half = 2.05 * statistics.stdev(costs) / len(costs) ** 0.5
    print(f"\nOne sample of {own} costs {statistics.mean(costs):+.2f} µs more than one of perf with "
          f"frame pointers (95 % interval {statistics.mean(costs) - half:+.2f} … "
          f"{statistics.mean(costs) + half:+.2f}, {len(costs)} turns).")


def version(program, *args):
    path = tool(program)
    if not path:
        return f"{program}: not installed"
    out = subprocess.run([path, *args], capture_output=True, check=False, stdin=DEVNULL)
    lines = (out.stdout or out.stderr).decode().split("\n")
    return lines[0].strip() or program


def cpu_model():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        m = re.search(r"model name\s*: (.*)", f.read())
    return m.group(1) if m else platform.machine()


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--pairs", type=int, default=3, help="times through all tools (default 3)")
    ap.add_argument("--window", type=float, default=0.8, help="seconds with a tool (default 0.8)")
    ap.add_argument("--tools", default="", help="those whose name this pattern finds (all)")
    ap.add_argument("--only", default=",".join(BENCHES), help="of " + ", ".join(BENCHES))
    args = ap.parse_args(ARGS[1:])
    if os.geteuid() != 0:
        sys.exit("bench: needs root, as the tools do")
    if not os.path.exists(MEMSCOPE):
        sys.exit(f"bench: {MEMSCOPE} is not built")
    unknown = set(args.only.split(",")) - set(BENCHES)
    if unknown:
        sys.exit(f"bench: no such benchmark: {', '.join(sorted(unknown))}")
    # perf writes its data, bcc and bpftrace want locked memory: take what may be had.
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))

    bcc_headers()
    print(f"Measured {time.strftime('%Y-%m-%d')}: {len(online_cpus())} CPUs ({cpu_model()}), "
          f"Linux {platform.release()}; {version('perf', '--version')}, "
          f"{version('bpftrace', '--version')}, bcc from the distribution.")
    print("Rates are relative to the same program alone in the same run: 1.000 is no slowdown.")
    try:
        for name in args.only.split(","):
            if name == "redis" and not (tool("redis-server") and tool("redis-benchmark")):
                print("\n### redis: not installed")
                continue
            measure(name, args.pairs, args.window, args.tools)
    finally:
        shutil.rmtree(WHERE, ignore_errors=True)


if __name__ == "__main__":
    main()
