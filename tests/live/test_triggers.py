#!/usr/bin/python3
"""--when: a window at the moment of a condition, with the time before it."""

import csv
import glob
import gzip
import os
import re
import signal
import subprocess
import time

import pprof_reader
from containers import *
from harness import *

MIB = 1 << 20


def fired(run, word, source="oncpu"):
    """The profiles of a trigger, in order."""
    found = [pprof_reader.read(path) for path in glob.glob(run.path(f"{source}_{word}-*.pb.gz"))]
    return sorted(found, key=lambda p: p.time_ns + p.duration_ns)


def notes(run, pattern):
    return [n for n in run.summary()["notes"] if re.search(pattern, n)]


def met(run, pattern):
    """Waits until stderr says that a condition was met."""
    until(lambda: re.search(pattern, run.stderr), f"a trigger {pattern}", 60)


@once
def growing():
    """100 MiB in two seconds; so much is allocated by another, which is also leaked."""
    grow, leak = Target("grow", 100, 20), Target("leaks", 100000, 2)
    run = Run("-p", f"{grow.pid},{leak.pid}", "--alloc=exact", "--before", 3, "--when", "rss>60M", "--when",
              "allocated+=20M", "--when", "rss>100G", "--when", "growth > 1 GB/s", "--rearm", 1, "-F", 499)
    run.ready()
    run.rows(7)  # longer than --before: what was then is in no window
    grow.say("go")
    leak.say("go")
    met(run, r"rss>60M at ")
    grow.answer()
    run.rows(10)
    run.stop()
    return run.must(), grow.pid, leak.pid


@fact
def window_of_a_bound_has_the_time_before_it_and_all_sources():
    run, grow, _ = growing()
    profiles = fired(run, "rss_60M")
    if not equal(len(profiles), 1, "windows of rss>60M"):
        return
    p = profiles[0]
    # --before is kept in parts of a sixth, of half a second at least.
    within(p.duration_ns / 1e9, 3, 4 + run.starved_ns() / 1e9, "seconds of the window")
    growth = fired(run, "rss_60M", "growth")[0].sum("resident/bytes", pid=grow)
    # What grew until then, the rest of the 60 MiB being what both had before, or that which leaked.
    within(growth, 10 * MIB, 100 * MIB, "bytes that grew in it")
    for source in ("oncpu", "offcpu", "alloc", "heap", "growth"):
        check(glob.glob(run.path(f"{source}_rss_60M-*.pb.gz")), f"no {source} profile")
    with gzip.open(glob.glob(run.path("growth_rss_60M-*.times.csv.gz"))[0], "rt", encoding="ascii") as f:
        rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
    equal(sum(int(row["resident/bytes"]) for row in rows), fired(run, "rss_60M", "growth")[0].sum("resident/bytes"),
          "bytes by the second in which they came")
    within(max(float(row["second"]) for row in rows), 0, p.duration_ns / 1e9 + 1, "last second of the window")
    heap = fired(run, "rss_60M", "heap")[0]
    check(heap.sum("inuse_space/bytes", "leak_here") > 0, "the heap has nothing that lives")
    check(heap.sum("inuse_space/bytes", "leak_here") <= run.profile("heap").sum("inuse_space/bytes", "leak_here"),
          "more lives in the window than at the end")
    check(notes(run, r"'rss>60M' was met at [0-9:]+ \(\d\d\.\d MiB resident\): profiles SOURCE_rss_60M-"),
          f"the summary does not say so: {run.summary()['notes']}")


@fact
def each_further_step_has_a_window_and_what_was_never_met_has_none():
    run, _, _ = growing()
    total = run.summary()["alloc"]["bytes"]
    windows = len(fired(run, "allocated_20M"))
    suppressed = sum(int(re.search(r"met (\d+) more times", n)[1]) for n in notes(run, "allocated.*suppressed"))
    check(windows >= 1, "no window of allocated+=20M")
    # Steps that are passed between two looks, a quarter of a second, are one.
    check(windows + suppressed <= total // (20 * MIB), f"{windows} windows and {suppressed} suppressed of {total} bytes")
    equal(len(fired(run, "rss_100G")), 0, "windows of rss>100G")
    check(notes(run, r"'rss>100G' was never met"), "it is not said")
    equal(len(fired(run, "growth_1_GB_s")), 0, "windows of growth")
    check(notes(run, r"windows that --when asked for; what came before was kept in up to .* \(limit 8.0 MiB\)"),
          f"memory of what came before: {run.summary()['notes']}")


@fact
def profiles_of_the_run_have_everything_still():
    run, grow, leak = growing()
    s = run.summary()
    equal(run.profile("alloc").sum("alloc_space/bytes"), s["alloc"]["bytes"], "bytes")
    equal(run.profile("oncpu").sum("samples/count"), s["oncpu"]["samples"], "samples")
    # Stacks are taken of one page in 127: all but what is left over is on them.
    check(run.profile("growth").sum("resident/bytes", pid=grow) > 98 * MIB, "growth of the run")


@fact
def busy_program_fires_cpu_once_until_it_was_idle():
    target = Target("cpu_split", 60000)
    run = Run("-p", target.pid, "--only", "oncpu", "-F", 499, "--when", "cpu>20%", "--rearm", 0, "--before", 2)
    run.ready()
    target.say("go")
    met(run, "cpu>20% at ")
    run.rows(8)
    run.stop()
    run.must()
    equal(len(fired(run, "cpu_20")), 1, "windows while it went on")
    check(fired(run, "cpu_20")[0].sum("samples/count", pid=target.pid) > 0, "no samples in it")


@fact
def windows_of_triggers_and_of_every_lie_in_one_archive():
    target, tree = at_a_fifth(), scratch("tree")
    child = Child([MEMSCOPE, "-p", str(target.pid), "--only", "oncpu", "-F", "199", "--every", "0.5", "--archive", tree,
                   "--when", "rss>1K", "--before", "2", "-d", "3"], stdin=subprocess.DEVNULL,
                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    equal(child.process.wait(60), 0, f"exit status: {child.process.stderr.read()}")
    where = os.path.join(tree, "cpu_split")
    plain = [pprof_reader.read(p) for p in glob.glob(os.path.join(where, "oncpu-*.pb.gz"))]
    mine = glob.glob(os.path.join(where, "oncpu_rss_1K-*.pb.gz"))
    if not equal(len(mine), 1, "windows of the trigger"):
        return
    with open(glob.glob(os.path.join(where, "summary-*.json"))[0], encoding="utf-8") as f:
        samples = json.load(f)["oncpu"]["samples"]
    equal(sum(p.sum("samples/count") for p in plain), samples, "samples of the other windows")
    with open(os.path.join(where, ".memscope"), encoding="utf-8") as f:
        listed = f.read().splitlines()
    stamp = os.path.basename(mine[0]).removeprefix("oncpu_rss_1K-").removesuffix(".pb.gz")
    check(any(line.startswith(f"*{stamp} ") and "oncpu_rss_1K-.pb.gz" in line for line in listed),
          "it is not listed: memscope clean would not see it")


@fact
@grouped
def target_that_runs_out_of_memory_leaves_a_window_of_its_end():
    group = Group(f"memscope-oom-{os.getpid()}", "memory" if "memory" in mounts() else "")
    knob = "memory.limit_in_bytes" if "memory" in mounts() else "memory.max"
    try:
        with open(os.path.join(group.dir, knob), "w", encoding="ascii") as f:
            f.write(str(64 * MIB))
    except OSError:
        skip("no control group that limits memory can be made here")
    # 62 of 64 MiB are taken by the first, whom the kernel kills when another wants 20.
    target, another = Inside(group, "grow", 62, 5), Inside(group, "grow", 20, 5)
    run = Run("-p", target.pid, "--only", "growth", "--when", "oom", "--before", 5)
    run.ready()
    target.say("go")
    target.answer()
    met(run, r"oom at .*: (9[5-9]|100) % of the limit is in use")
    another.say("go")
    run.finish()
    run.must()
    check(notes(run, "'oom' was met .*killed"), f"the summary does not say so: {run.summary()['notes']}")
    profiles = fired(run, "oom", "growth")
    if equal(len(profiles), 2, "windows: one before, one of the end"):
        within(profiles[0].sum("resident/bytes", pid=target.pid), 30 * MIB, 65 * MIB, "bytes that grew before")


@fact
@grouped
def control_group_is_looked_at_by_its_own_figures():
    name = "memory" if "memory" in mounts() else ""
    group = Group(f"memscope-when-{os.getpid()}", name)
    target = Inside(group, "grow", 60, 10)
    if not os.path.exists(os.path.join(group.dir, "memory.stat")):
        skip("no control group that counts memory can be made here")
    run = Run("-G", group.dir, "--only", "growth", "--when", "rss>40M", "--before", 3)
    run.ready()
    target.say("go")
    met(run, "rss>40M at ")
    run.stop()
    run.must()
    check(len(fired(run, "rss_40M", "growth")) == 1, "no window of the group's memory")


@fact
def host_is_looked_at_as_a_whole():
    spin = Target("cpu_split", 60000)
    spin.say("go")
    run = Run("-a", "--only", "oncpu", "-F", 99, "--when", "cpu>10%", "--before", 2)
    run.ready()
    met(run, "cpu>10% at ")
    run.stop()
    run.must()
    check(len(fired(run, "cpu_10")) >= 1, "no window")


@fact
def conditions_that_cannot_be_read_are_refused():
    for args, says in ((["--when", "rss>4X"], "--when rss takes bytes"), (["--when", "load>3"], "--when takes rss"),
                       (["--when", "allocated>1G", "--only", "oncpu"], "needs allocations"),
                       (["--before", "5"], "go with --when")):
        r = subprocess.run([MEMSCOPE, "-p", str(os.getpid()), *args], capture_output=True, text=True, check=False)
        equal(r.returncode, 2, f"exit status of {args}")
        check(says in r.stderr and r.stderr.count("\n") == 1, f"{args}: {r.stderr!r}")


main()
