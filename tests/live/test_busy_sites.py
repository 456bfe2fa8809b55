#!/usr/bin/python3
"""Busy allocators in which one thing leaks, or fills and stays: the leak's site is named and no other, and of
caches, queues and tables no leak is said. Of each one program for some seconds; with MEMSCOPE_TEST_BUSY_S=600
all of them, for so long, side by side, and with MEMSCOPE_TEST_BUSY_AT=N two at a time of the Nth on."""

import glob
import threading

from harness import *

SECONDS = float(os.environ.get("MEMSCOPE_TEST_BUSY_S", 0))
CALLS_S = int(os.environ.get("MEMSCOPE_TEST_BUSY_CALLS", 1000000 if SECONDS else 60000))
ARGS = os.environ.get("MEMSCOPE_TEST_BUSY_ARGS", "--alloc=bursts").split()
FEW = int(os.environ.get("MEMSCOPE_TEST_BUSY_AT", 0)) # programs of a turn; 0: all
SHORT_S = 9

Program = collections.namedtuple("Program", "name argv preload")


def program(name, role, bytes_s, fill_s, block=64, preload=None):
    """A row of the tables below; `name`: "glibc", or a target."""
    path = os.path.join(TARGETS, "busy_sites" if name in ("glibc", "jemalloc", "mimalloc") else name)
    if name == "python":
        path = os.path.join(TOP, "tests/targets/busy_sites.py")
    return Program(f"{role}-{name}", (path, role, bytes_s, fill_s, CALLS_S, block), preload)


def leaks():
    """1 KB to 1 MB a second."""
    return [program("glibc", "leak", 1000, 1), program("busy_sites_rjem", "leak", 10000, 1),
            program("jemalloc", "leak", 100000, 1, preload="libjemalloc.so.2"),
            program("mimalloc", "leak", 1000000, 1, preload="libmimalloc.so.2"),
            program("python", "leak", 30000, 1, 700)]


def caches():
    """Full after a quarter of the time, at most three eighths."""
    return [program("glibc", "lru", 100000, SECONDS / 4), program("busy_sites_rjem", "random", 30000, SECONDS / 4),
            program("jemalloc", "queue", 50000, SECONDS / 4, preload="libjemalloc.so.2"),
            program("mimalloc", "buffers", 20000, SECONDS / 4, 400, preload="libmimalloc.so.2"),
            program("python", "table", 30000, SECONDS / 4, 700)]


class Busy(Target):
    def __init__(self, p):
        library = next(iter(glob.glob(f"/usr/lib/*/{p.preload}")), None)
        if p.preload and not library:
            skip(f"{p.preload} is not installed")
        if not os.path.exists(p.argv[0]):
            skip(f"{p.argv[0]} is not built")
        env = dict(os.environ, **({"LD_PRELOAD": library} if library else {}))
        Child.__init__(self, list(map(str, p.argv)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self._line("ready", READY_SEC)


def watch(programs, seconds):
    """{program: (summary, the target's answer)}, all at the same time."""
    targets = {p: Busy(p) for p in programs}
    # A row for each 1/256 of the time, not more often than twice a second: as many as series keep.
    runs = {p: Run("-p", t.pid, *ARGS, "--interval", max(0.5, seconds / 256), out=scratch(p.name))
            for p, t in targets.items()}
    for run in runs.values():
        run.ready()
    answers = {}

    def one(p):  # it works until memscope has seen enough: a leak that has stopped is none
        targets[p].say(f"run {int(seconds * 1000 + 600000)}")
        runs[p].had_time(seconds)
        runs[p].stop()
        targets[p].say("enough")
        answers[p] = targets[p].answer()
    threads = [threading.Thread(target=one, args=(p,)) for p in programs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    found = {}
    for p, run in runs.items():
        run.must()
        found[p] = run.summary(), answers[p]
        say(p, run, answers[p])
        targets[p].end()
    return found


def say(p, run, answer):
    """What memscope says of it, and what it says that it took."""
    s = run.summary()
    calls, ns = next(line[1:] for line in answer if line[0] == "calls")
    live = s["alloc"].get("live_estimate", {})
    cost = s["alloc"].get("bursts", {}).get("cost_percent")
    print(f"# {p.name}: {calls * 1e6 / ns:.0f} thousand calls a second; tier {s['alloc']['tier']}, live "
          f"{'known' if live.get('known') else live.get('why_not')}; bursts {cost} % of a CPU, looks "
          f"{live.get('look_ns', 0) / 1e7 / (ns / 1e9):.2f} %, all of memscope {s['memscope']['cpu_ns'] / 1e7 / (ns / 1e9):.2f} %")
    for d in s["diagnoses"]:
        print(f"#   {d['kind']}: {d['evidence']}")
    for x in s["alloc"]["live_sites"][:3]:
        print(f"#   live {x['bytes']} ({x['low']} to {x['high']}) {x['function']}")
    for line in answer:
        if line[0] == "site":
            print(f"#   truth {line[1]} {line[2]}")


def cost_percent(s):
    """Of a CPU: what the target lost, and memscope's own time."""
    seconds = s["duration_ns"] / 1e9
    return (s["alloc"].get("bursts", {}).get("target_ns", 0) + s["memscope"]["cpu_ns"]) / 1e7 / seconds


def some(programs):
    return programs[-FEW:] if FEW else programs


@fact
def a_leak_in_a_busy_allocator_is_named_and_nothing_else():
    programs = some(leaks()) if SECONDS else [program("glibc", "leak", 300000, 1)]
    for p, (s, _) in watch(programs, SECONDS or SHORT_S).items():
        names = [x["function"] for x in s["alloc"]["leaks"]]
        site = "Growing.take (busy_sites.py)" if p.name == "leak-python" else "leak_here"
        equal(names, [site], f"{p.name}: leaks")
        equal([d["kind"] for d in s["diagnoses"] if d["kind"] == "leak"], ["leak"], f"{p.name}: diagnoses")


@fact
def what_fills_and_stays_is_no_leak():
    programs = some(caches()) if SECONDS else [program("glibc", "lru", 400000, SHORT_S / 4)]
    for p, (s, _) in watch(programs, SECONDS or SHORT_S).items():
        equal([x["function"] for x in s["alloc"]["leaks"]], [], f"{p.name}: leaks")
        equal([d["evidence"] for d in s["diagnoses"] if d["kind"] == "leak"], [], f"{p.name}: diagnoses")


main()
