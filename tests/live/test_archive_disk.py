"""The archive of `memscope serve` on disks that are full or lose power, and after kill -9: windows are whole, or not there."""

import contextlib
import glob
import json
import os
import random
import shutil
import subprocess
import time

import pprof_reader
from archives import *
from harness import *
from stores import Store


@fact
def an_archive_is_one_service_s_and_whole_after_kill_9():
    where = scratch("killed")
    target = at_a_fifth()
    args = ("-p", target.pid, "--every", 1, "--only", "oncpu", "-F", 199, "--max-overhead", 50)
    first = serve(where, *args)
    wait_until(lambda: glob.glob(f"{where}/*/oncpu-*.pb.gz"), "a window")
    second = serve(where, *args)
    said = second.communicate(timeout=FINISH_SEC)[1]
    check(second.returncode == 1 and f"another memscope serve (process {first.pid})" in said, f"{second.returncode}: {said}")
    ended(first)
    for _ in range(3):
        before = len(glob.glob(f"{where}/*/oncpu-*.pb.gz"))
        service = serve(where, *args)
        wait_until(lambda: len(glob.glob(f"{where}/*/oncpu-*.pb.gz")) >= before + 2, "two more windows")
        service.kill()
        service.communicate()
        time.sleep(1)  # half a second between two windows is no gap
    service = serve(where, *args)
    n = len(glob.glob(f"{where}/*/oncpu-*.pb.gz"))
    wait_until(lambda: len(glob.glob(f"{where}/*/oncpu-*.pb.gz")) > n, "another window")
    ended(service)
    target.end()
    found = listed(where, "--check")
    check(len(found["windows"]) >= 7, f"{len(found['windows'])} windows")
    check(len(found["gaps"]) >= 3, f"gaps where the service was killed: {found['gaps']}")
    equal(glob.glob(f"{where}/*/.memscope-*"), [], "left by those that were killed")


def small_disk():
    """A file system of 384 KiB: room for some dozen windows of one process."""
    where = scratch("full")
    os.mkdir(where)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=384k", "none", where], capture_output=True, check=False).returncode:
        raise Skip("no file system can be mounted here")
    return where


def full_disk(where):
    """A service that writes to a small disk, which then fills up; `where` is unmounted at the end."""
    target, journal = at_a_fifth(), scratch("journal")
    ballast = os.path.join(where, "ballast")

    def fill(left):
        room = os.statvfs(where)
        with contextlib.suppress(OSError), open(ballast, "ab", buffering=0) as f:  # the service may have been faster
            f.write(b"x" * max(0, room.f_bavail * room.f_bsize - left))

    def windows():
        return sorted(glob.glob(f"{where}/*/oncpu-*.pb.gz"))

    def said():
        with open(journal, encoding="utf-8") as f:
            return f.read()

    with open(journal, "w", encoding="utf-8") as f:
        service = serve(where, "-p", target.pid, "--every", 1, "--only", "oncpu", "-F", 199, "--max-overhead", 50, stderr=f)
    try:
        wait_until(lambda: len(windows()) >= 2, "two windows")
        first = windows()[0]
        fill(16 << 10)
        wait_until(lambda: not os.path.exists(first), "end of the oldest")


        def paused():
            fill(0)  # what they leave, others take
            return "the disk is full" in said()

        wait_until(paused, "pause")
        kept = windows()
        check(kept, "the newest window is gone")
        found = listed(where, "--check")
        equal((found["missing"], found["damaged"]), ([], []), "missing, damaged")
        os.unlink(ballast)
        wait_until(lambda: len(windows()) > len(kept) + 1, "windows after it")
    finally:
        service.terminate()
        service.wait(timeout=FINISH_SEC)
        found = listed(where, "--check")
        left = glob.glob(f"{where}/*/.memscope-*")
        subprocess.run(["umount", where], check=False)
        target.end()
    equal(service.returncode, 0, f"exit status ({said()[-300:]})")
    equal((found["missing"], found["damaged"]), ([], []), "missing, damaged at the end")
    equal(left, [], "where windows were made")
    equal(said().count("the disk is full"), 1, f"sentences of the full disk in: {said()}")
    equal(said().count("windows are written again"), 1, f"sentences of its end in: {said()}")


@fact
def on_a_full_disk_the_oldest_go_or_it_pauses_and_goes_on():
    where = small_disk()
    full_disk(where)


@fact
def on_a_full_disk_that_finds_room_when_it_writes_the_same_holds():
    """ext4, which has data in memory before it has blocks for them, and says ENOSPC at write() or at fsync()."""
    where, image = scratch("full"), scratch("image")
    os.mkdir(where)
    device = loop_device(image, 4 << 20, "-m", "0")
    try:
        if subprocess.run(["mount", device, where], capture_output=True, check=False).returncode:
            raise Skip("no ext4 can be mounted here")
        full_disk(where)
    finally:
        subprocess.run(["losetup", "-d", device], check=False)


@fact
def a_service_begins_on_a_full_disk_where_the_list_has_to_be_written_anew():
    where = small_disk()
    target = at_a_fifth()
    args = ("-p", target.pid, "--every", 1, "--only", "oncpu", "-F", 199, "--max-overhead", 50)
    try:
        killed = serve(where, *args)
        wait_until(lambda: len(glob.glob(f"{where}/*/oncpu-*.pb.gz")) >= 10, "ten windows")  # the summary takes the room of some
        killed.kill()
        killed.communicate()
        old = sorted(glob.glob(f"{where}/*/oncpu-*.pb.gz"))
        os.unlink(old[-2])
        with contextlib.suppress(OSError), open(os.path.join(where, "ballast"), "wb", buffering=0) as f:
            while f.write(b"x" * 4096):
                pass
        service = serve(where, *args)
        wait_until(lambda: service.poll() is not None or any(w > old[-1] for w in glob.glob(f"{where}/*/oncpu-*.pb.gz")), "a window of the next service")
        check(service.poll() is None, f"the next service has ended: {service.poll()}")
        check(not os.path.exists(old[0]), "the oldest window has not made room")
        ended(service)
        found = listed(where, "--check")
        equal((found["missing"], found["damaged"]), ([], []), "missing, damaged")
    finally:
        target.end()
        subprocess.run(["umount", where], check=False)


@fact
def on_a_full_disk_windows_come_to_a_store_all_the_same():
    """The spool is on the archive's disk: where nothing waits that could go, the archive's oldest windows make room."""
    where = small_disk()
    target, store = at_a_fifth(), Store("pyroscope").begin()
    try:
        service = serve(where, "-p", target.pid, "--every", 1, "--only", "oncpu", "-F", 199, "--max-overhead", 50, "--push", f"pyroscope={store.url}")
        wait_until(lambda: len(glob.glob(f"{where}/*/oncpu-*.pb.gz")) >= 4, "four windows")
        with contextlib.suppress(OSError), open(os.path.join(where, "ballast"), "wb", buffering=0) as f:
            while f.write(b"x" * 4096):
                pass
        before = len(store.items)
        oldest = sorted(glob.glob(f"{where}/*/oncpu-*.pb.gz"))[0]
        store.wait(lambda: len(store.items) >= before + 8, "eight more windows in the store")
        check(not os.path.exists(oldest), "the disk is full, and the oldest window is there")
        said = ended(service)
        equal(store.wrong, [], "what the store found wrong")
        check("did not come to" not in said, said)
    finally:
        target.end()
        store.end()
        subprocess.run(["umount", where], check=False)


CUTS = int(os.environ.get("MEMSCOPE_TEST_CUTS", "5"))


def loop_device(image, size=32 << 20, *options):
    """Of an ext4 in the file. Direct I/O: the file has what the file system has written to its disk, and nothing else."""
    if not (shutil.which("mkfs.ext4") and shutil.which("losetup")):
        raise Skip("no mkfs.ext4 or losetup")
    with open(image, "wb") as f:
        f.truncate(size)
    if subprocess.run(["mkfs.ext4", "-q", *options, image], capture_output=True, check=False).returncode:
        raise Skip("no ext4 can be made")
    got = subprocess.run(["losetup", "-f", "--show", "--direct-io=on", image], capture_output=True, text=True, check=False)
    if got.returncode:
        raise Skip("no loop device with direct I/O")
    return got.stdout.strip()


def cut(image, to):
    """A copy of the disk as it was at one moment: nothing was written to it meanwhile."""
    end = time.monotonic() + FINISH_SEC
    while time.monotonic() < end:
        before = os.stat(image)
        subprocess.run(["cp", "--sparse=always", image, to], check=True)
        after = os.stat(image)
        if (before.st_mtime_ns, before.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns):
            return
    raise Broken(f"the disk was not at rest in {FINISH_SEC} s")


def listed_windows(where):
    """As the list has them, without looking at any file."""
    found = set()
    with open(f"{where}/.memscope", encoding="utf-8", errors="replace") as f:
        for line in f:
            if line[0] == "*":
                found.add(line[1:].split()[0])
    return found


def check_after_cut(disk):
    """What is listed is there, or lies ready for the next start; nothing is there that is not listed."""
    lists = glob.glob(f"{disk}/a/*/.memscope")
    if not lists:
        return 0
    where = os.path.dirname(lists[0])
    before = listed_windows(where)
    got = json.loads(memscope("ls", where, "--check", "--json").stdout)
    equal(got["damaged"], [], "damaged")
    for name in got["missing"]:
        check(glob.glob(f"{where}/.memscope-*/{name}"), f"{name} is listed, and nowhere")
    equal(memscope("clean", "--keep", "1d", where).returncode, 0, "exit status of clean")  # as the next start does
    got = json.loads(memscope("ls", where, "--check", "--json").stdout)
    equal((got["missing"], got["damaged"]), ([], []), "missing and damaged after the next start")
    equal({w["name"] for w in got["windows"]}, before, "windows after the next start")
    return len(before)


@fact
def windows_are_whole_after_a_cut_of_power_at_any_moment():
    image, disk, target = scratch("image"), scratch("disk"), at_a_fifth()
    os.mkdir(disk)
    device = loop_device(image)
    windows, copies = 0, [f"{image}-{i}" for i in range(CUTS)]
    try:
        subprocess.run(["mount", device, disk], check=True)
        service = serve(f"{disk}/a", "-p", target.pid, "--every", 1, "--only", "oncpu", "-F", 49, "--max-overhead", 50)
        try:
            wait_until(lambda: glob.glob(f"{disk}/a/*/oncpu-*.pb.gz"), "a window")
            for copy in copies:
                cut(image, copy)
                time.sleep(random.uniform(0, 1))
        finally:
            ended(service)
            subprocess.run(["umount", disk], check=True)
        for copy in copies:
            subprocess.run(["mount", "-o", "loop", copy, disk], check=True)
            try:
                windows += check_after_cut(disk)
            finally:
                subprocess.run(["umount", disk], check=True)
            os.unlink(copy)
    finally:
        subprocess.run(["losetup", "-d", device], check=False)
        target.end()
    check(windows >= CUTS, f"{windows} windows in {CUTS} disks")


main()
