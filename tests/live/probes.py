"""What a process holds of BPF, by the kernel's own account, and the probes that are left in others."""

import glob
import json
import os
import re
import subprocess
import sys
import time

from checks import READY_SEC, equal, tool


def bpf_ids_of(pid):
    """The kernel's ids of the BPF programs and links that a process holds: {("prog", 12), …}."""
    found = set()
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                for line in f:
                    key, _, value = line.partition(":")
                    if key in ("prog_id", "link_id"):
                        found.add((key[:4], int(value)))
        except OSError:
            pass
    return found


def uprobe_links(pid):
    """How many BPF links to functions of other programs a process holds, of any kind that the kernel has."""
    found = 0
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                found += re.search(r"^link_type:\s+(uprobe_multi|perf)", f.read(), re.M) is not None
        except OSError:
            pass
    return found


def bpftool(*args):
    out = subprocess.run([tool("bpftool"), "-j", *args], capture_output=True, check=False)
    return json.loads(out.stdout or b"[]")


def bpf_programs_of(pid):
    """The names of the BPF programs that a process holds."""
    ids = {number for kind, number in bpf_ids_of(pid) if kind == "prog"}
    return {row.get("name") for row in bpftool("prog", "show") if row["id"] in ids}


def bpf_map_keys(pid, name):
    """The keys, numbers, of a BPF map of those that a process holds; none where there is no such map."""
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with open(path, encoding="ascii", errors="replace") as f:
            number = re.search(r"^map_id:\s+(\d+)", f.read(), re.M)
        if number and bpftool("map", "show", "id", number.group(1))["name"] == name:
            return {int.from_bytes(bytes(int(x, 16) for x in row["key"]), sys.byteorder)
                    for row in bpftool("map", "dump", "id", number.group(1))}
    return set()


def bpf_ids_now():
    return {(kind, row["id"]) for kind in ("prog", "link") for row in bpftool(kind, "show")}


def text_differences(pid):
    """Bytes of the process's file-backed executable mappings that differ from their files, as
    (path, file offset): what a probe in the process looks like from outside."""
    different = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        maps = [line.split(None, 5) for line in f]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for m in maps:
            if len(m) < 6 or not m[5].startswith("/") or "x" not in m[1]:
                continue
            low, high = (int(x, 16) for x in m[0].split("-"))
            # maps fills short addresses up with zeros, map_files does not.
            with open(f"/proc/{pid}/map_files/{low:x}-{high:x}", "rb") as image:
                image.seek(int(m[2], 16))
                want = image.read(high - low)
            mem.seek(low)
            got = mem.read(high - low)
            if got[:len(want)] != want:
                different += [(m[5].strip(), int(m[2], 16) + i)
                              for i, (x, y) in enumerate(zip(got, want)) if x != y]
    return different


def text_is_as_its_files(pid, what="bytes of the target's text left changed"):
    """No probe is left in the process. Where another test traces all processes that map a file, that one's probes are in
    this process too, until its run has ended."""
    deadline = time.monotonic() + READY_SEC
    while (left := text_differences(pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    equal(left, [], what)
