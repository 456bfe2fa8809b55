"""--every: windows that add up to the run, stay when memscope is killed, and are cleaned away."""

import base64
import glob
import gzip
import json
import os
import random
import re
import signal
import struct
import subprocess
import threading
import time
import zlib
import xml.etree.ElementTree as ET

import pprof_reader
from containers import *
from harness import *
from truth import ALLOC, Truth

# How many windows are added up, and how often memscope is killed: 200 and 30 when asked for.
WINDOWS = int(os.environ.get("MEMSCOPE_TEST_WINDOWS", 30))
KILLS = int(os.environ.get("MEMSCOPE_TEST_KILLS", 5))


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
        # The one that is open, one that is whole, and one more: then comes that of the end.
        until(lambda n=len(said(run)): len(said(run)) >= n + 3, "three windows more")
        return answers
    run = Run("-p", f"{allocs.pid},{spins.pid},{waits.pid}", "--every", 0.1, "-F", 999, "--alloc=exact",
              "--offcpu=exact")
    run.ready()
    answers = during()
    run.starved = run.starved_ns()  # of one look at two clocks no more can be between them
    run.stop()
    run.must()
    return run, answers, (allocs.pid, spins.pid, waits.pid)


def page_data(path):
    """What a page says of its run, and what the sites of allocations have in all, by its own statistics."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    page = json.loads(re.search(r'<script type="application/json" id="run">(.*?)</script>', text, re.S).group(1))
    packed = re.search(r'id="detail-alloc">(.*?)</script>', text, re.S)
    return page, packed and sum(integrals(zlib.decompress(base64.b64decode(packed.group(1)), -15)))


def integrals(data):
    """The first column of a page's statistics (user/render/html/page_data.h)."""
    at = 0

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    equal(number(), 2, "version of the statistics")
    for _ in range(number()):
        length = number()
        at += length
    rows = number()
    for _ in range(3 * rows):
        number()
    return struct.unpack_from(f"<{rows}f", data, at)


@fact
def a_page_of_the_run_has_all_windows_and_when_they_were():
    run, *_ = busy()
    path = os.path.join(run.out, "all.html")
    subprocess.run([MEMSCOPE, "report", run.out, "-o", path], check=True, timeout=60)
    page, allocated = page_data(path)
    last = windows(run.out, "alloc")[-200:]  # as many as a page is made of
    # Statistics are kept as numbers of 24 bits: each site's is as near as that.
    within(allocated, total(last, "alloc_space/bytes") * (1 - 1e-6), total(last, "alloc_space/bytes") * (1 + 1e-6), "allocated, by the page")
    check({"oncpu", "offcpu", "alloc"} <= {d["profile"] for d in page["details"]}, f"what has times: {page['details']}")
    seconds = (last[-1].time_ns + last[-1].duration_ns - last[0].time_ns) / 1e9
    within(page["n_bins"] * page["bin_seconds"], seconds / 2, seconds + 2 * page["bin_seconds"], "time of the bins")
    heap = [p for p in page["profiles"] if p["id"] == "heap"]
    check(heap, "the page has no live heap")
    # The run's own page has the stacks of all windows, without their times.
    own, _ = page_data(run.path("report.html"))
    check({"oncpu", "offcpu", "alloc", "heap"} <= {p["id"] for p in own["profiles"]}, f"profiles of the run's page: {own['profiles']}")


@fact
def allocations_of_all_windows_are_those_that_the_target_made():
    run, (lines, _, _), (pid, _, _) = busy()
    truth = next(line for line in lines if line[0] == "total")
    profiles = windows(run.out, "alloc")
    check(len(profiles) >= 5, f"{len(profiles)} windows")
    equal(total(profiles, "alloc_objects/count", pid=pid), truth[1], "allocations")
    equal(total(profiles, "alloc_space/bytes", pid=pid), truth[2], "bytes")
    # The target had come to rest two windows before the end: the last but one says what is live as the
    # last does.
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
    samples_of(total(profiles, "samples/count", pid=pid), lines[0][2], lines[0][6], 999, "samples of a target")


@fact
def waits_are_cut_at_the_boundaries_and_add_up():
    run, (_, _, lines), (_, _, pid) = busy()
    profiles = windows(run.out, "offcpu")
    s = run.summary()
    lost = list(run.lost())
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
             50e6 + run.starved, "the wait of a thread that never got work, ns")


@fact
def windows_follow_each_other_without_a_gap():
    run, _, _ = busy()
    profiles = windows(run.out, "oncpu")
    for a, b in zip(profiles, profiles[1:]):
        # Begin by the wall clock, length by the monotonic one.
        near(b.time_ns - a.time_ns, a.duration_ns, 20e6 + run.starved, "from one begin to the next, ns")
    near(sum(p.duration_ns for p in profiles), run.summary()["duration_ns"], 1e6,
         "length of all windows, ns")


@once
def many():
    """Windows of a tenth of a second while threads, children and programs come and go."""
    threads, children, waits = Truth(), Truth(), Target("waits", 3, 20)
    pids = ",".join(str(t.pid) for t in (threads.target, children.target, waits))
    run = Run("-p", pids, "--every", 0.1, "-F", 999, "--alloc=exact", "--offcpu=exact")
    run.ready()
    waits.say("go")
    deadline = time.monotonic() + 300
    while len(said(run)) < WINDOWS and time.monotonic() < deadline:
        threads.ask("threads", 8, 50)
        if children.children < 40:
            children.ask("children", 2, 50)
        time.sleep(0.03)
    waits.answer()
    run.stop()
    return run.must(), threads, children


@fact
def sums_of_many_windows_under_load_are_those_of_the_run():
    run, threads, children = many()
    s = run.summary()
    lost = [name for name in run.lost() if not name.startswith("alloc")]
    profiles = {source: windows(run.out, source) for source in ("oncpu", "offcpu", "alloc", "growth")}
    for source, of in profiles.items():
        check(len(of) >= WINDOWS, f"{len(of)} windows of {source}")
    check(children.children >= 4 and children.execs >= 2, f"{children.children} children")
    equal(total(profiles["oncpu"], "samples/count"), s["oncpu"]["samples"], "samples")
    equal([total(profiles["alloc"], t) for t in ALLOC], [s["alloc"][k] for k in ("objects", "bytes")],
          "calls and bytes")
    equal([sum(p.sum(t, "hard_malloc", pid=threads.target.pid) for p in profiles["alloc"]) for t in ALLOC],
          [threads.done, threads.done_bytes], "calls and bytes of threads, by their own count")
    growth = s["growth"]
    equal([total(profiles["growth"], t) for t in profiles["growth"][0].types],
          [growth["on_stacks_bytes"], growth["released_on_stacks_bytes"]], "bytes of growth")
    for kind in ("blocked", "runnable"):
        of, ns = total(profiles["offcpu"], f"{kind}/nanoseconds"), s["time"][f"{kind}_ns"]
        # What of it has no stack was lost, and counted.
        check(of == ns or (lost and of < ns), f"{kind} ns: {of}, expected {ns} ({lost} lost)")


def sites_equal(profiles, alloc):
    """Windows' sums by site are those of the run; a stack's figures are rounded once."""
    for row in alloc["sites"]:
        equal(sum(p.sum(ALLOC[1], row["function"]) for p in profiles), row["bytes"], f"bytes of {row['function']}")


@once
def sampled():
    """(run, the answer of its target): a sampler's samples in windows, some of which see no work."""
    library = os.path.join(BUILD, "libmemscope-alloc.so")
    os.environ.update(LD_PRELOAD=library, MEMSCOPE_ALLOC_RATE="16384")
    try:
        target = Target("alloc_truth", 2, 20000)
    finally:
        del os.environ["LD_PRELOAD"], os.environ["MEMSCOPE_ALLOC_RATE"]
    run = Run("-p", target.pid, "--every", 0.2, "--alloc=sampled", "--only", "alloc", "--max-overhead", 100000)
    run.ready()
    lines = target.ask("run")
    heard = len(said(run))
    until(lambda: len(said(run)) >= heard + 3, "windows after the work")
    run.stop()
    return run.must(), lines, target.pid


@fact
def windows_of_a_sampled_run_add_up_to_it_and_say_what_they_are_worth():
    run, lines, pid = sampled()
    a = run.summary()["alloc"]
    equal(a["tier"], "sampled", "tier")
    profiles = windows(run.out, "alloc")
    check(len(profiles) >= 4, f"{len(profiles)} windows")
    # Of each stack the estimate is rounded; the summary rounds the sum.
    near(total(profiles, ALLOC[1]), a["bytes"], len([s for p in profiles for s in p.samples]), "bytes of all windows")
    sites_equal(profiles, a)
    truth = next(line for line in lines if line[0] == "total")
    heaps = windows(run.out, "heap")
    # The target has come to rest before the last windows: they know what is live as the last does.
    equal(len({p.sum("inuse_space/bytes", pid=pid) for p in heaps[-2:]}), 1, "live bytes of the last two windows")
    near(heaps[-1].sum("inuse_space/bytes"), a["live_bytes"], 1000, "live bytes at the end")
    check(truth[2] > 0, "the target has not worked")
    samples = 0
    for p in profiles:
        said_by = next((c for c in p.comments if c.startswith("Estimate: ")), "")
        m = re.search(r"Estimate: (\d+) samples of .* alloc_space (\d+) to (\d+)", said_by)
        if check(m, f"a window says of itself {p.comments}"):
            samples += int(m[1])
            size = p.sum(ALLOC[1])
            check(int(m[2]) <= size + 1000 and size <= int(m[3]) + 1000, f"{size} is not in {said_by}")
        near(p.period, 16384, 200, "bytes between samples")
    equal(samples, a["bytes_interval"]["samples"], "samples of all windows")


@fact
def windows_of_bursts_add_up_to_the_run_and_say_what_they_are_worth():
    target = Target("alloc_flat", 1)
    run = Run("-p", target.pid, "--every", 1, "--alloc=bursts", "--only", "alloc", "--max-overhead", 20)
    run.ready()
    target.say(f"rate {Counter().path}")
    until(lambda: len(said(run)) >= 5, "five windows", 60)
    run.stop()
    run.must()
    a = run.summary()["alloc"]
    equal(a["tier"], "bursts", "tier")
    profiles = windows(run.out, "alloc")
    check(profiles, "no window of allocations")
    near(total(profiles, ALLOC[1]), a["bytes"], len([s for p in profiles for s in p.samples]), "bytes of all windows")
    sites_equal(profiles, a)
    bursts = 0
    for p in profiles:
        said_by = next((c for c in p.comments if c.startswith("Estimate: ")), "")
        m = re.search(r"every call in (\d+) bursts, .* interval: (\d+) to (\d+); cost", said_by)
        if m:
            bursts += int(m[1])
            check(int(m[2]) - 1000 <= p.sum(ALLOC[1]) <= int(m[3]) + 1000, f"{p.sum(ALLOC[1])} is not in {said_by}")
        else:
            check("they are in the next" in said_by and not p.samples, f"a window says of itself {p.comments}")
    equal(bursts, a["bursts"]["bursts"], "bursts of all windows")
    check(not glob.glob(os.path.join(run.out, "heap-*")), "heap was written: bursts do not tell it")


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
    run.finish()
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


def files_of(where):
    """{stamp: {"oncpu.pb.gz", …}} of the windows that are in place; each file is read."""
    found = {}
    for name in os.listdir(where):
        m = re.fullmatch(r"(\w+)-(\d{8}-\d{6}(?:-\d+)?)(\..*)", name)
        if not m or m[1] in ("trend", "rss_breakdown", "live_series", "alloc_series", "sites", "summary", "report"):
            check(m or name.startswith(".memscope"), f"a file named {name}")
            continue
        path = os.path.join(where, name)
        try:
            if m[3] == ".pb.gz":
                pprof_reader.read(path)
            elif m[3] == ".svg":
                ET.parse(path)
            elif m[3] == ".times.csv.gz":
                with gzip.open(path, "rt", encoding="ascii") as f:
                    check(f.readline().endswith(" s\n") and f.readline().startswith("sample,second,"),
                          f"{name} is no table of times")
            else:
                with open(path, encoding="utf-8") as f:
                    check(all(re.search(r" \d+$", line) for line in f), f"{name} is no folded text")
        except FileNotFoundError:
            continue  # made way for one that came meanwhile
        found.setdefault(m[2], set()).add(m[1] + m[3])
    return found


def listed(where):
    """Files of the list; of windows without folders (user/base/archive.h)."""
    found = set()
    with open(os.path.join(where, ".memscope"), encoding="utf-8") as f:
        for line in f.read().splitlines():
            window = re.fullmatch(r"\*(\S+) \d+ \d+ \d+ (\S+):0;", line)
            found |= {re.sub("-(?=[.]|$)", f"-{window[1]}", name, count=1) for name in window[2].split(",")} if window else {line}
    return found


def make_old(where, stamps):
    """Of the windows, when they were written."""
    path = os.path.join(where, ".memscope")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for stamp in stamps:
        text, n = re.subn(rf"(?m)^(\*{stamp}) \d+ ", r"\1 1000000000 ", text)
        equal(n, 1, f"lines of {stamp}")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


@fact
def memscope_killed_at_any_moment_leaves_whole_windows_and_the_next_goes_on():
    target, tree = at_a_fifth(), scratch("killed")
    dice = random.Random(5)
    where = os.path.join(tree, "cpu_split")

    def start(keep, *args):
        return Child([MEMSCOPE, "-q", "-p", str(target.pid), "--every", "0.1", "--archive", tree, "--keep",
                      keep, "-F", "499", "--only", "oncpu", *args], start_new_session=True,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for i in range(KILLS):
        before = set(files_of(where)) if os.path.isdir(where) else set()
        child = start(("4", "300K", "2s")[i % 3])
        deadline = time.monotonic() + 30
        # Its first window, and then any moment.
        while time.monotonic() < deadline and child.alive() and \
                not (os.path.isdir(where) and set(files_of(where)) - before):
            time.sleep(0.02)
        check(child.alive(), "memscope ended by itself")
        time.sleep(dice.uniform(0, 0.4))
        if i % 2:
            os.killpg(child.pid, signal.SIGKILL)  # its writers too, as when a machine goes down
        else:
            child.process.kill()
        child.process.wait()
        files_of(where)
    last = start("4", "-d", "1")
    equal(last.process.wait(FINISH_SEC), 0, f"exit status of the last: {last.process.stderr.read()}")
    # Writers of those before it may have been at work meanwhile: a cleaner waits for none of them.
    deadline = time.monotonic() + 20
    while True:
        at_work_still = glob.glob(os.path.join(where, ".memscope-*"))
        subprocess.run([MEMSCOPE, "clean", "--keep", "4", tree], capture_output=True, check=False)
        if not at_work_still or time.monotonic() > deadline:
            break
    equal(glob.glob(os.path.join(where, ".memscope-*")), [], "what killed runs have left")
    found = files_of(where)
    equal(len(found), 4, "windows that were kept")
    for stamp, files in found.items():
        # There is no picture of no samples, which a busy machine may leave a window with, and no table of their times.
        none = not pprof_reader.read(os.path.join(where, f"oncpu-{stamp}.pb.gz")).samples
        equal(files | ({"oncpu.svg", "oncpu.times.csv.gz"} if none else set()),
              {"oncpu.pb.gz", "oncpu.folded", "oncpu.svg", "oncpu.times.csv.gz"}, f"files of the window {stamp}")
    here = {name for name in os.listdir(where) if not name.startswith(".")}
    equal(here - {name.lstrip("=") for name in listed(where)}, set(), "files that are not listed")


@fact
def runs_that_begin_in_the_same_second_share_an_archive():
    targets, tree = [at_a_fifth() for _ in range(2)], scratch("shared")
    where, together, told = os.path.join(tree, "cpu_split"), 0, 0
    for _ in range(5):  # until both have begun in one second
        children = [Child([MEMSCOPE, "-p", str(t.pid), "--every", "0.2", "--archive", tree, "-F", "499",
                           "--only", "oncpu", "-d", "1"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for t in targets]
        equal([c.process.wait(FINISH_SEC) for c in children], [0, 0], "exit status")
        told += sum(c.process.stderr.read().count("memscope: window ") for c in children)
        together += any(re.search(r"summary-\d{8}-\d{6}-2.json", n) for n in os.listdir(where))
        if together:
            break
    if not together:
        skip("the machine never began two runs in one second")
    owners = [{x.labels["pid"] for x in pprof_reader.read(path).samples}
              for path in glob.glob(os.path.join(where, "oncpu-*.pb.gz"))]
    check(all(len(pids) <= 1 for pids in owners), f"processes of each window: {owners}")
    for pid in (t.pid for t in targets):
        check({pid} in owners, f"no window is of process {pid}: {owners}")
    check(len(owners) >= told, f"{len(owners)} windows are there, of {told} that the runs told of")
    equal(len(glob.glob(os.path.join(where, "summary-*.json"))),
          len(glob.glob(os.path.join(where, "trend-*.csv"))), "summaries and trends")


class Followed:
    """How much CPU time a process has had by when."""

    def __init__(self, pid):
        self.pid, self.seen, self.over = pid, [], threading.Event()
        self.thread = threading.Thread(target=self._look)
        self.thread.start()

    def _look(self):
        while not self.over.wait(0.02):
            self.seen.append((time.time_ns(), cpu_clock(self.pid)))

    def end(self):
        self.over.set()
        self.thread.join()

    def cpu_ns(self, window):
        """At least so much in a window: between the looks that are in it."""
        of = [cpu for ns, cpu in self.seen if window.time_ns <= ns <= window.time_ns + window.duration_ns]
        return of[-1] - of[0] if of else 0


@fact
def full_disk_is_said_and_the_windows_before_it_are_whole():
    where = scratch("disk")
    os.makedirs(where, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", where],
                      capture_output=True).returncode:
        skip("cannot mount a small file system")
    try:
        target = at_a_fifth()
        followed = Followed(target.pid)
        run = Run("-p", target.pid, "--every", 0.3, "-F", 999, "--only", "oncpu", "-d", 4,
                  out=os.path.join(where, "run"))
        run.finish()
        followed.end()
        check(run.status in (1, 3), f"exit status {run.status} with a full disk")
        check(re.search(r"No space left", run.stderr), f"it said {run.stderr!r}")
        whole = windows(run.out, "oncpu")
        check(whole, "no window is there")
        # The target's 50 ms at 999 Hz are 50 samples; of less there may be none, where a hypervisor had the CPU.
        empty = [p for p in whole if not p.sum("samples/count") and followed.cpu_ns(p) > 50e6]
        check(not empty and any(p.sum("samples/count") for p in whole),
              f"{len(empty)} of {len(whole)} windows have no sample of a target that computed in them")
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
    target = at_a_fifth()
    run = Run("-p", target.pid, "--every", 0.3, "--archive", tree, "--keep", 3, "-F", 199, "--only",
              "oncpu", "-d", 3)
    # Run gives -o; --archive says the same.
    run.finish()
    equal(run.status, 2, "exit status of -o with --archive")
    argv = [MEMSCOPE, "--json", "-p", str(target.pid), "--every", "0.3", "--archive", tree, "--keep",
            "3", "-F", "199", "--only", "oncpu", "-d", "3"]
    r = subprocess.run(argv, capture_output=True, text=True, timeout=FINISH_SEC, check=False)
    equal(r.returncode, 0, f"exit status ({r.stderr[-300:]})")
    where = os.path.join(tree, "cpu_split")
    mine = sorted(glob.glob(os.path.join(where, "oncpu-2*.pb.gz")))
    mine = [p for p in mine if p not in foreign]
    closed = len(re.findall(r"memscope: window ", r.stderr)) + 1
    check(closed > 3, f"{closed} windows in 3 s: none had to go")
    equal(len(mine), 3, "windows that were kept")
    # A window in which the target got no CPU has no picture.
    old = [[path.replace(".pb.gz", ext) for ext in (".pb.gz", ".folded", ".svg", ".times.csv.gz")
            if os.path.exists(path.replace(".pb.gz", ext))] for path in mine][:2]
    make_old(where, [re.search(r"-(\d{8}-.*)\.pb\.gz", paths[0])[1] for paths in old])
    os.makedirs(os.path.join(tree, "another", ".memscope"))  # no list: it cannot be read
    r = subprocess.run([MEMSCOPE, "clean", "--older-than", "1d", tree], capture_output=True,
                       text=True, check=False)
    equal(r.returncode, 3, f"exit status of clean where one directory cannot be read ({r.stderr})")
    check("another" in r.stderr and r.stderr.count("\n") == 1, f"it says {r.stderr!r}")
    check(r.stdout.startswith(f"removed {len(sum(old, []))} files, "), f"it said {r.stdout!r}")
    equal([p for p in mine if not os.path.exists(p)], [paths[0] for paths in old], "windows removed")
    for path, text in foreign.items():
        with open(path, encoding="utf-8") as f:
            equal(f.read(), text, path)
    r = subprocess.run([MEMSCOPE, "clean", "--older-than", "1d", scratch("")], capture_output=True,
                       text=True, check=False)
    equal(r.returncode, 1, "exit status of clean where no window is")


@fact
def single_runs_of_an_archive_and_run_directories_are_cleaned_as_a_whole():
    tree, target = scratch("tree"), at_a_fifth()
    os.mkdir(tree)

    def record_into(where, *args):
        time.sleep(1.02 - time.time() % 1)  # runs are known, and ordered, by the second in which they began
        r = subprocess.run([MEMSCOPE, "-q", "-p", str(target.pid), *args, "-F", "199", "--only", "oncpu", "-d", "0.3"],
                           capture_output=True, text=True, timeout=FINISH_SEC, check=False, cwd=tree)
        equal(r.returncode, 0, f"exit status ({r.stderr[-300:]})")
        return sorted(glob.glob(os.path.join(tree, where)))

    def clean(*args):
        r = subprocess.run([MEMSCOPE, "clean", *args], capture_output=True, text=True, check=False, cwd=tree)
        equal(r.returncode, 0, f"exit status of clean ({r.stderr})")
        return int(re.match(r"removed ([\d,]+) files", r.stdout)[1])

    first, = record_into("archive/cpu_split/*", "--archive", "archive")
    check(re.fullmatch(r"\d{8}-\d{6}", os.path.basename(first)), f"the run's directory is {first}")
    check(os.path.exists(os.path.join(first, "oncpu.pb.gz")), "no oncpu.pb.gz in the archive")
    n = len([name for name in os.listdir(first) if name != ".memscope"])
    second, = set(record_into("archive/cpu_split/*", "--archive", "archive")) - {first}
    os.utime(os.path.join(first, "summary.txt"), (1e9, 1e9))
    equal(clean("--keep", "2,1d", "archive"), 0, "files removed of runs that may stay")
    equal(clean("--keep", "1,20G", "archive"), n, "files removed of the older run")
    equal(os.listdir(os.path.dirname(second)), [os.path.basename(second)], "runs that are left")
    third, = set(record_into("archive/cpu_split/*", "--archive", "archive", "--keep", "1")) - {second}
    equal(os.listdir(os.path.dirname(third)), [os.path.basename(third)], "runs that --keep has left")

    plain, = record_into("memscope-*")
    notes = os.path.join(plain, "notes.txt")
    with open(notes, "w", encoding="utf-8") as f:
        f.write("mine")
    for path in glob.glob(os.path.join(plain, "*")):
        os.utime(path, (1e9, 1e9))
    equal(clean("--older-than", "1d", "."), n, "files removed of a plain run directory")
    equal(os.listdir(plain), ["notes.txt"], "what is left in it")


def trees_of(*how, env=None):
    tree = scratch("tree")
    r = subprocess.run([MEMSCOPE, *map(str, how), "--every", "1", "--tree", tree, "--only", "oncpu", "-q", "-d",
                        "0.3"], capture_output=True, text=True, timeout=FINISH_SEC, check=False, env=env)
    equal(r.returncode, 0, f"exit status of {how} ({r.stderr[-300:]})")
    return os.listdir(tree)


@fact
@grouped
def archive_is_named_after_container_unit_pattern_or_command():
    engines, ident, word = Engines(), new_id(), f"pattern{os.getpid()}"
    engines.add_podman(ident, "web")
    unit = f"memscope-live-{os.getpid()}.service"
    box, service = Group(f"libpod-{ident}.scope"), Group(unit)
    inside = Child(entering(box, ["sleep", "600"]))
    served = Child(entering(service, ["sleep", "600"]))
    # A name that would lead out of the tree.
    plain = Child(["python3", "-c", "open('/proc/self/comm', 'w').write('..'); print(flush=True); input()", word],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    plain.process.stdout.readline()
    for group, child in ((box, inside), (service, served)):
        while group.pids() != [child.pid]:
            time.sleep(0.01)
    for how, name in ((("-p", inside.pid), "web"), (("-p", served.pid), unit), (("-n", word + "$"), word),
                      (("-p", plain.pid), "_.")):
        equal(trees_of(*how, env=engines.env), [name], f"the tree's directory of {how}")


main()
