"""Uprobes without memscope: at the USDT sites of a file, for one process, by perf_event_open alone. They
put and take away the same traps as a profiler does, without the rest of a run.
"""

import ctypes
import os
import re
import struct
import subprocess

from harness import Broken, skip

SYSCALL = {"x86_64": 298, "aarch64": 241}
CLOEXEC = 8
TYPE = "/sys/bus/event_source/devices/uprobe/type"


def sites(path):
    """{provider:name: file offset} of the first site of each name."""
    def readelf(option):
        return subprocess.run(["readelf", option, path], capture_output=True, text=True, check=True).stdout
    loads = [[int(x, 16) for x in m] for m in
             re.findall(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", readelf("-lW"))]
    found = {}
    for provider, name, vaddr in re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+Location: 0x(\w+)", readelf("-nW")):
        for offset, start, size in loads:
            if start <= int(vaddr, 16) < start + size:
                found.setdefault(f"{provider}:{name}", int(vaddr, 16) - start + offset)
    return found


class Uprobes:
    """Traps at `offsets` of `path` in the process `pid`, from here until close()."""

    def __init__(self, pid, path, offsets):
        number = SYSCALL.get(os.uname().machine)
        if number is None or not os.path.exists(TYPE):
            skip("no uprobes by perf_event_open here")
        with open(TYPE, encoding="ascii") as f:
            kind = int(f.read())
        name = ctypes.create_string_buffer(path.encode())
        call = ctypes.CDLL(None, use_errno=True).syscall
        self._fds = []
        for offset in offsets:
            # struct perf_event_attr, its first 72 bytes: type, size, …, config1: path, config2: offset.
            attr = ctypes.create_string_buffer(
                struct.pack("<II48xQQ", kind, 72, ctypes.addressof(name), offset), 72)
            fd = call(number, attr, pid, -1, -1, ctypes.c_ulong(CLOEXEC))
            if fd < 0:
                self.close()
                raise Broken(f"uprobe at {path}+{offset:#x}: {os.strerror(ctypes.get_errno())}")
            self._fds.append(fd)

    def close(self):
        while self._fds:
            os.close(self._fds.pop())


def attach_and_detach(pid, path, cycles):
    """So often, one site after the other. What takes time is the kernel's wait at each end, until no
    CPU can be in the trap any more: a tenth of a second and more."""
    offsets = list(sites(path).values())
    for i in range(cycles):
        Uprobes(pid, path, offsets[i % len(offsets):][:1]).close()
