"""--every: windows that add up to the run, stay when memscope is killed, and are cleaned away."""

import glob
import math
import os
import re
import signal
import subprocess
import time

import pprof_reader
from harness import *

SOURCES = ("oncpu", "offcpu", "alloc", "growth")


def windows(where, source):
    """The profiles of a source, in the order of their windows."""
    found = [pprof_reader.read(path) for path in glob.glob(os.path.join(where, f"{source}-*.pb.gz"))]
    return sorted(found, key=lambda p: p.time_ns)


def total(profiles, value_type, **labels):
    return sum(p.sum(value_type, **labels) for p in profiles)


def said(run):
    return re.findall(r"memscope: window (\S+): ", run.stderr)


@once
def busy():
    """Windows of a tenth of a second over a program that allocates, spins and waits."""
    allocs, spins, waits = Target("alloc_truth", 2, 4000), Target("cpu_split", 600), \
        Target("waits", 2, 300)

    def during():
        for t, word in ((allocs, "run"), (spins, "go"), (waits, "go")):
            t.say(word)
        answers = allocs.answer(), spins.answer(), waits.answer()
        time.sleep(0.5)
        return answers
    run, answers = record(("-p", f"{allocs.pid},{spins.pid},{waits.pid}", "--every", 0.1, "-F", 999,
                           "--alloc=exact"), during)
    return run, answers, (allocs.pid, spins.pid, waits.pid)


@fact
def allocations_of_all_windows_are_those_that_the_target_made():
    run, (lines, _, _), (pid, _, _) = busy()
    truth = next(line for line in lines if line[0] == "total")
    profiles = windows(run.out, "alloc")
    check(len(profiles) >= 5, f"{len(profiles)} windows")
    equal(total(profiles, "alloc_objects/count", pid=pid), truth[1], "allocations")
    equal(total(profiles, "alloc_space/bytes", pid=pid), truth[2], "bytes")
    # The target has come to rest half a second before the end: the last window but one says what is
    # live as the last does.
    heaps = windows(run.out, "heap")
    for p in heaps[-2:]:
        live = p.sum("inuse_space/bytes", pid=pid)
        before = p.sum("inuse_space/bytes", "[before attach]", pid=pid)
        equal(live - before, truth[4], "bytes live at the end of a window")


@fact
def samples_of_all_windows_are_those_of_the_run():
    run, (_, lines, _), (_, pid, _) = busy()
    profiles = windows(run.out, "oncpu")
    equal(total(profiles, "samples/count"), run.summary()["oncpu"]["samples"], "samples")
    n = lines[0][2] / 1e9 * 999
    near(total(profiles, "samples/count", pid=pid), n, 4 * math.sqrt(n) + 2, "samples of a target")


@fact
def waits_are_cut_at_the_boundaries_and_add_up():
    run, (_, _, lines), (_, _, pid) = busy()
    profiles = windows(run.out, "offcpu")
    s = run.summary()
    lost = [d["name"] for d in s["drops"] if d["count"]]
    if lost:
        skip(f"events were lost, and counted: {lost}")
    for kind in ("blocked", "runnable"):
        # A wait whose stack comes a moment later than its end is in the next window; at the end all
        # are in. What is not is counted as lost.
        equal(total(profiles, f"{kind}/nanoseconds"), s["time"][f"{kind}_ns"],
              f"{kind} ns of all windows")
    # The thread that was blocked all the time has the length of each window, and no more.
    before = next(line[2] for line in lines if line[1] == "do_before")
    for p in profiles[1:-1]:
        # Both ends are read, not set: a busy machine may hold up the one who reads.
        near(sum(s.values[1] + s.values[3] for s in p.select(pid=pid, tid=before)), p.duration_ns,
             50e6, "the wait of a thread that never got work, ns")


@fact
def windows_follow_each_other_without_a_gap():
    run, _, _ = busy()
    profiles = windows(run.out, "oncpu")
    for a, b in zip(profiles, profiles[1:]):
        # Begin by the wall clock, length by the monotonic one.
        near(b.time_ns - a.time_ns, a.duration_ns, 20e6, "from one begin to the next, ns")
    near(sum(p.duration_ns for p in profiles), run.summary()["duration_ns"], 1e6,
         "length of all windows, ns")


@fact
def killed_memscope_loses_the_open_window_only():
    target = Target("cpu_split", 60000)
    run = Run("-p", target.pid, "--every", 0.3, "-F", 999, "--only", "oncpu")
    run.ready()
    target.say("go")
    deadline = time.monotonic() + 30
    while len(said(run)) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.037)
    run.send(signal.SIGKILL)
    run.finish(10)
    names = said(run)
    if not check(len(names) >= 4, f"{len(names)} windows in 30 s"):
        return
    paths = [run.path(f"oncpu-{name}.pb.gz") for name in names]
    deadline = time.monotonic() + 20  # those in the making are finished by their writers
    while not all(map(os.path.exists, paths)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for path in paths:
        if check(os.path.exists(path), f"{path} is not there"):
            p = pprof_reader.read(path)
            check(p.sum("samples/count", pid=target.pid) > 0, f"{path} is empty")


@fact
def full_disk_is_said_and_the_windows_before_it_are_whole():
    where = scratch("disk")
    os.makedirs(where, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", where],
                      capture_output=True).returncode:
        skip("cannot mount a small file system")
    try:
        target = Target("cpu_split", 60000)
        target.say("go")
        run = Run("-p", target.pid, "--every", 0.3, "-F", 999, "--only", "oncpu", "-d", 4,
                  out=os.path.join(where, "run"))
        run.finish()
        check(run.status in (1, 3), f"exit status {run.status} with a full disk")
        check(re.search(r"No space left", run.stderr), f"it said {run.stderr!r}")
        whole = windows(run.out, "oncpu")
        check(whole, "no window is there")
        check(all(p.sum("samples/count") > 0 for p in whole), "an empty window")
        check(not glob.glob(os.path.join(run.out, "*.tmp*")), "half-written files are left")
    finally:
        target.end()
        subprocess.run(["umount", "-l", where], check=False)


@fact
def tree_keeps_what_was_asked_for_and_clean_touches_only_ours():
    tree = scratch("tree")
    os.makedirs(os.path.join(tree, "cpu_split"))
    foreign = {os.path.join(tree, "cpu_split", name): name for name in
               ("oncpu-20200101-000000.pb.gz", "notes.txt", "offcpu-20200101-000000.folded")}
    foreign[os.path.join(tree, "oncpu-20200101-000000.svg")] = "top"
    for path, text in foreign.items():
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.utime(path, (1e9, 1e9))
    target = Target("cpu_split", 60000)
    target.say("go")
    run = Run("-p", target.pid, "--every", 0.3, "--tree", tree, "--keep", 3, "-F", 199, "--only",
              "oncpu", "-d", 3)
    # Run gives -o; --tree says the same.
    run.finish()
    equal(run.status, 2, "exit status of -o with --tree")
    argv = [MEMSCOPE, "--json", "-p", str(target.pid), "--every", "0.3", "--tree", tree, "--keep",
            "3", "-F", "199", "--only", "oncpu", "-d", "3"]
    r = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    equal(r.returncode, 0, f"exit status ({r.stderr[-300:]})")
    where = os.path.join(tree, "cpu_split")
    mine = sorted(glob.glob(os.path.join(where, "oncpu-2*.pb.gz")))
    mine = [p for p in mine if p not in foreign]
    closed = len(re.findall(r"memscope: window ", r.stderr)) + 1
    check(closed >= 5, f"{closed} windows in 3 s")
    # The last is written after the last look; one that was still in the making then may stay too.
    within(len(mine), 3, 7, "windows that were kept")
    # On a busy machine the oldest may be one that was cleaned away while it was written: in part.
    old = [[path.replace(".pb.gz", ext) for ext in (".pb.gz", ".folded", ".svg")] for path in mine]
    old = [paths for paths in old if all(map(os.path.exists, paths))][:2]
    equal(len(old), 2, "windows that are whole")
    for path in sum(old, []):
        os.utime(path, (1e9, 1e9))
    r = subprocess.run([MEMSCOPE, "clean", "--older-than", "1d", tree], capture_output=True,
                       text=True, check=False)
    equal(r.returncode, 0, f"exit status of clean ({r.stderr})")
    check(r.stdout.startswith("removed 6 files, "), f"it said {r.stdout!r}")
    equal([p for p in mine if not os.path.exists(p)], [paths[0] for paths in old], "windows removed")
    for path, text in foreign.items():
        with open(path, encoding="utf-8") as f:
            equal(f.read(), text, path)
    r = subprocess.run([MEMSCOPE, "clean", "--older-than", "1d", scratch("")], capture_output=True,
                       text=True, check=False)
    equal(r.returncode, 1, "exit status of clean where no window is")


main()
