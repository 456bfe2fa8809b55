"""Runs inside a guest: what a kernel can be set to refuse to everybody, and what memscope reports then."""

import os
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))

from harness import *  # noqa: E402

USER = 1000
NUMBERS = {"dac_read_search": 2, "sys_ptrace": 19, "sys_admin": 21, "syslog": 34, "perfmon": 38, "bpf": 39}
LOCKED = "lockdown=" in open("/proc/cmdline", encoding="ascii").read()


def with_capabilities(names):
    """A copy of memscope that a user may run with these, as setcap(8) leaves it (capability.h: struct vfs_cap_data)."""
    path = os.path.join(scratch("bin"), "memscope")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(MEMSCOPE, path)
    os.chmod(path, 0o755)
    for folder in (os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
        os.chmod(folder, 0o755)
    bits = sum(1 << NUMBERS[n] for n in names)
    os.setxattr(path, "security.capability", struct.pack("<IIIII", 0x02000001, bits & 0xffffffff, 0, bits >> 32, 0))
    return path


def as_user(names, *args):
    return subprocess.run([with_capabilities(names), *map(str, args)], user=USER, group=USER, extra_groups=[], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=150, check=False)


def knob(path, value):
    """Sets it, or skips."""
    try:
        with open(path, encoding="ascii") as f:
            before = f.read().strip()
        with open(path, "w", encoding="ascii") as f:
            f.write(value)
    except OSError as e:
        raise Skip(f"{path}: {e.strerror}") from e
    return before


def record_as(names, target):
    out = scratch("out")
    os.mkdir(out)
    os.chown(out, USER, USER)
    return as_user(names, "-p", target.pid, "-d", 2, "-F", 99, "--only", "oncpu", "-o", os.path.join(out, "run")), out


def profiles(names, what):
    """Root's process, by a user with these capabilities."""
    target = Target("cpu_split", 600000)
    target.say("go")
    got, out = record_as(names, target)
    target.end()
    equal(got.returncode, 0, f"{what}: exit status ({got.stderr})")
    with open(os.path.join(out, "run/oncpu.folded"), encoding="utf-8") as f:
        check("hot_" in f.read(), f"{what}: no stacks of the program: {got.stdout[-500:]} {got.stderr}")


ENOUGH = ["bpf", "perfmon", "sys_ptrace", "dac_read_search", "syslog"]
PARANOID = "/proc/sys/kernel/perf_event_paranoid"


@fact
def perf_event_paranoid_does_not_matter_to_who_has_the_right():
    """Debian's kernels ask for CAP_SYS_ADMIN from 3 on, mainline ones for CAP_PERFMON: the former is named where it is missing."""
    if LOCKED:
        raise Skip("this kernel is locked down")
    before = knob(PARANOID, "2")
    print("# perf_event_paranoid was", before)
    profiles(ENOUGH, "perf_event_paranoid 2")
    target = Target("cpu_split", 600000)
    for level in ("3", "4"):
        knob(PARANOID, level)
        got = record_as(ENOUGH, target)[0]
        print("# perf_event_paranoid", level, got.returncode, got.stderr.strip())
        if got.returncode:
            equal((got.returncode, got.stderr.count("\n")), (1, 1), f"exit status and lines: {got.stderr}")
            check("CAP_SYS_ADMIN" in got.stderr and "perf_event_paranoid" in got.stderr, f"the sentence: {got.stderr}")
            said = as_user(ENOUGH, "doctor")
            check("CAP_SYS_ADMIN where kernel.perf_event_paranoid is 3" in said.stdout, f"doctor: {said.stdout}")
        profiles(ENOUGH + ["sys_admin"], f"perf_event_paranoid {level}, with CAP_SYS_ADMIN")
    target.end()
    knob(PARANOID, "2")


@fact
def a_proc_that_hides_processes_shows_them_to_who_has_the_right():
    if LOCKED:
        raise Skip("this kernel is locked down")
    got = subprocess.run(["mount", "-o", "remount,hidepid=2", "/proc"], capture_output=True, text=True, check=False)
    if got.returncode:
        raise Skip("hidepid: " + got.stderr.strip())
    knob(PARANOID, "2")
    profiles(ENOUGH, "hidepid=2")
    target = Target("cpu_split", 600000)
    got = as_user(["bpf", "perfmon"], "-p", target.pid, "-d", 1)
    target.end()
    subprocess.run(["mount", "-o", "remount,hidepid=0", "/proc"], check=True)
    equal((got.returncode, got.stderr.count("\n")), (1, 1), f"without CAP_SYS_PTRACE: {got.stderr}")
    check("hidepid" in got.stderr, f"the sentence: {got.stderr}")


@fact
def bpf_for_nobody_does_not_matter_to_who_has_the_right():
    if LOCKED:
        raise Skip("this kernel is locked down")
    knob(PARANOID, "2")
    knob("/proc/sys/kernel/unprivileged_bpf_disabled", "1")
    profiles(ENOUGH, "unprivileged_bpf_disabled 1")


@fact
def where_nobody_may_trace_it_is_said():
    if LOCKED:
        raise Skip("this kernel is locked down")
    knob("/proc/sys/kernel/yama/ptrace_scope", "3")
    target = Target("cpu_split", 600000)
    got = subprocess.run([MEMSCOPE, "heap", "census", "-p", str(target.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=False)
    target.end()
    print("# yama:", got.returncode, got.stderr.strip())
    check("ptrace_scope" in got.stderr, f"the sentence: {got.stderr}")
    equal((got.returncode, got.stderr.count("\n")), (1, 1), f"exit status and lines: {got.stderr}")


@fact
def a_kernel_that_is_locked_down_is_named():
    if not LOCKED:
        raise Skip("this kernel is not locked down")
    subprocess.run(["mount", "-t", "securityfs", "none", "/sys/kernel/security"], check=False)
    target = Target("cpu_split", 600000)
    target.say("go")
    got = subprocess.run([MEMSCOPE, "-p", str(target.pid), "-d", "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=False)
    target.end()
    print("# lockdown:", got.returncode, got.stderr.strip()[:600])
    equal((got.returncode, got.stderr.count("\n")), (1, 1), f"exit status and lines: {got.stderr}")
    check("locked down" in got.stderr, f"the sentence: {got.stderr}")
    said = subprocess.run([MEMSCOPE, "doctor"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=False)
    print("# doctor:", " | ".join(line for line in said.stdout.splitlines() if "lock" in line))
    check("locked down" in said.stdout, "doctor says nothing of it")


if __name__ == "__main__":
    main()
