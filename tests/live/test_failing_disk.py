"""Each call that changes a file fails in turn: the disk is full, it is broken, a signal comes, a write does a part.

targets/lib_faults.c, preloaded, fails the nth call on files of the output folder. After each: the exit status is one of those of
`memscope help`, and says what happened; one sentence tells why; each file is whole, or absent; what was there before is as it was;
nothing else is left. Where a recording is disturbed, some calls are drawn; MEMSCOPE_TEST_DISK=all takes each of them, and
MEMSCOPE_TEST_SEED=N draws the same again.
"""

import collections
import errno
import glob
import json
import os
import random
import re
import shutil
import struct
import subprocess
import time

from harness import *
from whole import whole_file

SHIM = os.path.join(TARGETS, "lib_faults.so")
GOLDEN = os.path.join(TOP, "tests/golden")
DONE, NOTHING, USAGE, PARTIAL = 0, 1, 2, 3
SEED = int(os.environ.get("MEMSCOPE_TEST_SEED", time.time_ns() % 1000000))
ALL = os.environ.get("MEMSCOPE_TEST_DISK") == "all"
DRAWN = 12  # faults of a recording in a check

Fault = collections.namedtuple("Fault", "name error follow part", defaults=[False, False])
FULL = Fault("full from then on", errno.ENOSPC, follow=True)
FAULTS = (FULL, Fault("full once", errno.ENOSPC), Fault("broken once", errno.EIO), Fault("broken from then on", errno.EIO, follow=True),
          Fault("interrupted", errno.EINTR), Fault("in part", 0, part=True), Fault("in parts from then on", 0, follow=True, part=True))


class Shim:
    """The page that it and its programs share."""

    def __init__(self, folder):
        self.path, self.folder = scratch("faults"), folder
        self.set(0, FULL)

    def set(self, at, fault):
        with open(self.path, "wb") as f:
            f.write(struct.pack("<QQQQQQ256s", 0, at, fault.error, fault.follow, 0, fault.part, self.folder.encode()).ljust(4096, b"\0"))

    def read(self):
        """(calls so far, how many failed, which one failed first)"""
        with open(self.path, "rb") as f:
            page = f.read()
        n, _, _, _, failed, _ = struct.unpack_from("<6Q", page)
        return n, failed, page[304:336].split(b"\0", 1)[0].decode()

    def run(self, args, at, fault, cwd=GOLDEN):
        self.set(at, fault)
        return subprocess.run([MEMSCOPE, *map(str, args)], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=FINISH_SEC, check=False,
                              env={**os.environ, "LD_PRELOAD": SHIM, "MEMSCOPE_TEST_FAULTS": self.path})


def shim(folder):
    if not os.path.exists(SHIM):
        raise Broken(f"{SHIM} is not built (make targets)")
    linked = subprocess.run(["ldd", MEMSCOPE], capture_output=True, text=True, check=False).stdout
    if "libasan" in linked:
        skip("AddressSanitizer has to be the first library")
    return Shim(folder)


def contents(folder):
    found = {}
    for top, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(top, name), "rb") as f:
                found[os.path.relpath(os.path.join(top, name), folder)] = f.read()
    return found


def is_one_sentence(said, what):
    check(said.startswith("memscope: ") and said.count("\n") == 1 and said.endswith("\n"), f"{what}: not one sentence: {said!r}")


# --- files that are made of files -------------------------------------------------------------------


COMMANDS = (
    ("flame", "usual/input.folded", "-o", "{}/flame.svg"),
    ("flame", "oncpu/input.pb.gz", "--names", "{}/{{source}}.svg"),
    ("convert", "oncpu/input.pb.gz", "-o", "{}/profile.pb.gz"),
    ("convert", "oncpu/input.pb.gz", "--format", "speedscope", "-o", "{}/profile.json"),
    ("convert", "report-run/run", "--names", "{}/{{source}}.folded"),
    ("merge", "oncpu/input.pb.gz", "two-files/input-2.pb.gz", "-o", "{}/sum.pb.gz"),
    ("diff", "diff/before.folded", "diff/after.folded", "-o", "{}/difference.svg"),
    ("diff", "diff/before.folded", "diff/after.folded", "-o", "{}/difference.html"),
    ("report", "report-run/run", "-o", "{}/report.html"),
    ("trend", "trend-leak/input.csv", "--svg", "{}/trend.svg"),
)


def disturb(disk, args, folder, at, fault, whole, what):
    """One run of which a call fails. `whole`: {file: content} of one that is left alone."""
    # Every other time there is an older file.
    older = {name: b"an older one" for name in whole} if at % 2 else {}
    shutil.rmtree(folder)
    os.mkdir(folder)
    for name, content in older.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content)
    got = disk.run(args, at, fault)
    _, failed, call = disk.read()
    what = f"{what}, call {at} ({call}) {fault.name}"
    there = contents(folder)
    if not failed:
        return False
    new = {name: content for name, content in there.items() if content != older.get(name)}
    equal(sorted(set(there) - set(whole)), [], f"{what}: files that are left beside")
    equal([name for name, content in new.items() if content != whole[name]], [], f"{what}: files that are not whole")
    equal(sorted(set(older) - set(there)), [], f"{what}: older files that are gone")
    if got.returncode == DONE:
        equal(sorted(new), sorted(whole), f"{what}: files, with exit status 0")
        equal(got.stderr, "", f"{what}: stderr, with exit status 0")
    else:
        equal(got.returncode, NOTHING, f"{what}: exit status ({got.stderr!r})")
        is_one_sentence(got.stderr, what)
        # A write goes on where it was, and one that was interrupted begins again.
        check(not fault.part and not (fault.error == errno.EINTR and call in ("write", "pwrite")), f"{what}: it gave up: {got.stderr!r}")
        check(fault.error == errno.EINTR or os.strerror(fault.error) in got.stderr, f"{what}: the reason is not in {got.stderr!r}")
        check(len(new) < len(whole), f"{what}: all files are there, with exit status {got.returncode}")
    return True


@fact
def files_made_of_files_are_whole_or_absent_whichever_call_fails():
    folder = scratch("disk")
    disk, tried = shim(folder), collections.Counter()
    for command in COMMANDS:
        args = [word.format(folder) for word in command]
        what = " ".join(command[:1] + command[-2:])
        os.makedirs(folder, exist_ok=True)
        shutil.rmtree(folder)
        os.mkdir(folder)
        got = disk.run(args, 0, FULL)
        whole, (calls, _, _) = contents(folder), disk.read()
        equal(got.returncode, DONE, f"{what}: exit status where nothing fails ({got.stderr[-300:]})")
        if not check(calls >= 4 and whole, f"{what}: {calls} calls on {sorted(whole)}"):
            continue
        for fault in FAULTS:
            at = 1
            while disturb(disk, args, folder, at, fault, whole, what) and at < 200:
                tried[fault.name] += 1
                at += 1
    print(f"# {sum(tried.values())} calls failed: {dict(tried)}")


@fact
def what_is_printed_to_a_full_device_is_said_not_to_be_there():
    run = os.path.join(GOLDEN, "report-run/run")
    for args in (("flame", "usual/input.folded", "-o", "-"), ("convert", "oncpu/input.pb.gz", "--format", "folded", "-o", "-"),
                 ("merge", "oncpu/input.pb.gz", "oncpu/input.pb.gz", "-o", "-"), ("report", "oncpu/input.pb.gz"), ("report", run, "--json"),
                 ("diff", "diff/before.folded", "diff/after.folded"), ("trend", "trend-leak/input.csv"), ("ls", run), ("-e", "list"),
                 ("--help",), ("--version",), ("help",), ("help", "memory"), ("doctor",), ("flame", "--help"), ("--completion", "bash"),
                 ("--man",)):
        with open("/dev/full", "wb") as full:
            got = subprocess.run([MEMSCOPE, *args], cwd=GOLDEN, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True,
                                 timeout=FINISH_SEC, check=False)
        what = f"memscope {' '.join(args)} > /dev/full"
        check(got.returncode in (NOTHING, PARTIAL), f"{what}: exit status {got.returncode}")
        check(os.strerror(errno.ENOSPC) in got.stderr, f"{what}: it says {got.stderr!r}")


# --- recordings -------------------------------------------------------------------------------------


def faults_of(calls, dice, drawn):
    """(call, fault): all of them, or some, spread over the calls."""
    found = [(at, fault) for at in range(1, calls + 1) for fault in FAULTS if fault.error != errno.EINTR]
    if not ALL and len(found) > drawn:
        step = calls / drawn
        found = [(min(calls, int(i * step + dice.uniform(0, step)) + 1), dice.choice([f for f in FAULTS if f.error != errno.EINTR]))
                 for i in range(drawn)]
    return found


def needs_root():
    if os.geteuid():
        skip("needs root: probes and BPF programs")


def look(folder, what, hidden):
    for top, folders, files in os.walk(folder):
        for name in files:
            whole_file(os.path.join(top, name), what)
        left = [f for f in folders + files if f.startswith(".") and f not in hidden]
        equal(left, [], f"{what}: files that are left beside")


@fact
def a_recording_whose_disk_fails_has_whole_files_and_names_those_that_are_missing():
    needs_root()
    folder, dice, tried = scratch("disk"), random.Random(SEED), collections.Counter()
    target = at_a_fifth()
    disk = shim(folder)
    args = ("--json", "-p", target.pid, "-d", "0.5", "-F", "499", "--only", "oncpu,offcpu", "-o", folder)
    got = disk.run(args, 0, FULL)
    whole, (calls, _, _) = contents(folder), disk.read()
    equal(got.returncode, DONE, f"exit status where nothing fails ({got.stderr[-300:]})")
    for at, fault in faults_of(calls, dice, DRAWN):
        shutil.rmtree(folder, ignore_errors=True)
        got = disk.run(args, at, fault)
        _, failed, call = disk.read()
        if not failed:  # it made fewer calls this time
            continue
        tried[fault.name] += 1
        what = f"call {at} of {calls} ({call}) {fault.name} (seed {SEED})"
        there = contents(folder)
        look(folder, what, {".memscope"})
        missing = set(whole) - set(there) - {".memscope"}
        check(got.returncode in (DONE, NOTHING, PARTIAL), f"{what}: exit status {got.returncode} ({got.stderr[-300:]})")
        if got.returncode == DONE:
            equal(sorted(missing), [], f"{what}: missing, with exit status 0")
        else:
            check("memscope: " in got.stderr, f"{what}: nothing is said: {got.stderr!r}")
            check(not fault.part, f"{what}: it gave up: {got.stderr[-300:]}")
        if there:  # else it did not begin
            said = got.stderr + got.stdout
            equal([name for name in sorted(missing) if name not in said], [], f"{what}: missing, and not named ({got.stderr[-400:]})")
    check(target.alive(), "the target has ended")
    print(f"# of {calls} calls, with seed {SEED}: {sum(tried.values())} runs, {dict(tried)}")


@fact
def an_archive_whose_disk_fails_has_whole_windows_and_the_next_run_goes_on():
    needs_root()
    folder, dice, tried = scratch("disk"), random.Random(SEED), collections.Counter()
    target = at_a_fifth()
    disk = shim(folder)
    args = ("-p", target.pid, "--every", "0.2", "-d", "0.5", "-F", "499", "--only", "oncpu", "--keep", "3", "--archive", folder)
    os.mkdir(folder)
    got = disk.run(args, 0, FULL)
    calls = disk.read()[0]
    equal(got.returncode, DONE, f"exit status where nothing fails ({got.stderr[-300:]})")
    for at, fault in faults_of(calls, dice, DRAWN // 2):
        got = disk.run(args, at, fault)
        _, failed, call = disk.read()
        if not failed:
            continue
        tried[fault.name] += 1
        what = f"call {at} of {calls} ({call}) {fault.name} (seed {SEED})"
        check(got.returncode in (DONE, NOTHING, PARTIAL), f"{what}: exit status {got.returncode} ({got.stderr[-300:]})")
        for top, _, files in os.walk(folder):
            for name in files:
                whole_file(os.path.join(top, name), what)
        got = disk.run(args, 0, FULL)
        equal(got.returncode, DONE, f"{what}: exit status of the next run ({got.stderr[-300:]})")
        said = json.loads(disk.run(("ls", folder, "--check", "--json"), 0, FULL).stdout)
        equal((said["missing"], said["damaged"]), ([], []), f"{what}: missing and damaged after the next run")
        equal(glob.glob(f"{folder}/*/.memscope-*"), [], f"{what}: where windows were made")
    check(target.alive(), "the target has ended")
    print(f"# of {calls} calls, with seed {SEED}: {sum(tried.values())} runs, {dict(tried)}")


@fact
def a_snapshot_whose_disk_fails_is_whole_or_absent():
    needs_root()
    folder, tried = scratch("disk"), collections.Counter()
    target = Target("heap_restless", 1)
    disk = shim(folder)
    os.mkdir(folder)
    path = os.path.join(folder, "heap.snapshot")
    args = ("heap", "snapshot", "--contents", "all", "-p", target.pid, "-o", path)
    got = disk.run(args, 0, FULL)
    calls = disk.read()[0]
    equal(got.returncode, DONE, f"exit status where nothing fails ({got.stderr[-300:]})")
    for fault in FAULTS:
        # All of the first and of the last, and some of those between, which are alike.
        for at in sorted({*range(1, min(calls, 4) + 1), *range(max(1, calls - 4), calls + 1), calls // 2}):
            if os.path.exists(path):
                os.unlink(path)
            got = disk.run(args, at, fault)
            _, failed, call = disk.read()
            if not failed:
                continue
            tried[fault.name] += 1
            what = f"call {at} of {calls} ({call}) {fault.name}"
            look(folder, what, set())
            if got.returncode == DONE:
                check(os.path.exists(path), f"{what}: no snapshot, with exit status 0")
            else:
                equal((got.returncode, os.listdir(folder)), (NOTHING, []), f"{what}: exit status, and files ({got.stderr[-300:]})")
                is_one_sentence(got.stderr, what)
                check(not fault.part, f"{what}: it gave up: {got.stderr!r}")
    check(target.alive(), "the target has ended")
    print(f"# {sum(tried.values())} runs, {dict(tried)}")


@fact
def a_log_on_a_full_disk_ends_with_the_reason():
    needs_root()
    target = Target("inject_busy", "work", "read")
    got = subprocess.run([MEMSCOPE, "trace", "-p", str(target.pid), "-d", "2", "-o", "/dev/full"], stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, timeout=FINISH_SEC, check=False)
    equal(got.returncode, NOTHING, f"exit status ({got.stderr!r})")
    check(re.search(r"memscope: .*No space left on device", got.stderr), f"the reason is not said: {got.stderr!r}")
    check(target.alive(), "the target has ended")


main(needs_root=False)
