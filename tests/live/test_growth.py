"""Growth: pages that become resident and are released, against programs of known growth."""

import os
import time

from harness import *

RESIDENT, RETURNED = "resident/bytes", "returned/bytes"
MIB = 1 << 20
PAGE = os.sysconf("SC_PAGESIZE")
# bpf/growth.bpf.c takes a stack of every 127th page that comes on a CPU: what a function does in one
# go is short of one or has one too many for each CPU that it was on.
PERIOD = 127 * PAGE
OFF_BY = PERIOD * len(online_cpus())


# Before 6.2 each thread keeps what it faults in to itself, and tells after every 64th page fault, one
# of which may map 16 pages around it: whoever makes the 64th is charged with all of them.
TELLS_ALL = kernel() >= (6, 2)
if not TELLS_ALL:
    OFF_BY += 64 * 16 * PAGE


def rss(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS"))


def on_tmpfs(path):
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        mounts = {line.split()[4]: line.split(" - ")[1].split()[0] for line in f}
    return mounts.get(path, mounts["/"]) in ("tmpfs", "rootfs")


def grown(*commands, args=(), pid_of=None):
    """A target that does what it is told while it is profiled: (run, change of its RSS, answers)."""
    target = Target("growth")
    run = Run("-p", target.pid, "--only", "growth", *args)
    run.ready()
    # What came between the opening of the gate and that line is nothing: it waits for commands.
    before = rss(target.pid)
    answers = [target.ask(command) for command in commands]
    change = rss(target.pid) - before
    run.stop()
    run.must()
    target.end()
    return run, change, answers


def total(run, key):
    return sum(run.summary()["growth"][key].values())


def check_sums(run, change):
    """What the events tell is what /proc tells, by our own look and by memscope's."""
    reported = total(run, "resident") - total(run, "released")
    near(reported, change, rss_off_by(), "resident less returned, against the change of RSS")
    own = run.summary()["growth"]["check"]
    equal(own["processes"], 1, "processes compared with /proc")
    near(own["reported_bytes"], own["rss_bytes"], rss_off_by(), "its own comparison with /proc")
    for key, value_type in (("resident", RESIDENT), ("released", RETURNED)):
        # Each CPU begins with a part of a period that is drawn, and ends with another.
        near(run.profile("growth").sum(value_type), total(run, key), OFF_BY, f"stacks of {key}")


@once
def usual():
    return grown("a 48", "b 24", "populate 16", "file 16", "shared 8", "give-back")


@fact
def bytes_are_the_change_of_rss():
    run, change, _ = usual()
    check(change > 20 * MIB, f"the target grew by {change} bytes only")
    check_sums(run, change)


@fact
def kinds_of_memory_are_distinguished():
    run, _, _ = usual()
    g = run.summary()["growth"]
    # Besides, the target has some pages of its own: stacks, libc.
    near(g["resident"]["anonymous_bytes"], 88 * MIB, MIB, "anonymous bytes")
    file, shared = g["resident"]["file_bytes"], g["resident"]["shared_bytes"]
    files_are_shared = on_tmpfs("/tmp")  # the target's file is there
    slack = 3 * MIB  # of its libraries
    near(file, 0 if files_are_shared else 16 * MIB, slack, "bytes of files")
    near(shared, 24 * MIB if files_are_shared else 8 * MIB, slack if files_are_shared else rss_off_by(),
         "shared bytes")
    near(g["released"]["anonymous_bytes"], 88 * MIB, MIB, "anonymous bytes released")
    p = run.profile("growth")
    near(p.sum(RESIDENT, memory="shared"), shared, OFF_BY, "bytes labelled as shared")
    near(p.sum(RESIDENT, memory="file"), file, OFF_BY, "bytes labelled as of files")
    near(p.sum(RESIDENT, "touch_file", memory="shared" if files_are_shared else "file"), 16 * MIB, OFF_BY,
         "bytes of touch_file labelled as what they are")


@fact
def stacks_name_who_touched_it():
    p = usual()[0].profile("growth")
    for function, mib in (("touch_a", 48), ("touch_b", 24), ("populate_d", 16), ("touch_file", 16),
                          ("touch_shared", 8)):
        near(p.sum(RESIDENT, function), mib * MIB, OFF_BY, f"bytes of {function}")
    near(p.sum(RETURNED, "give_back_c"), 88 * MIB, OFF_BY, "bytes released by give_back_c")
    equal(p.types, [RESIDENT, RETURNED], "value types")
    equal(p.default_type, "resident", "default value type")


@fact
def kernel_frames_begin_with_who_changed_the_count():
    folded = usual()[0].folded("growth")
    ours = [line for line in folded if "rss_stat" in line or "bpf_" in line]
    check(not ours, f"memscope's own way into the stack is shown: {ours[:1]}")
    check(any("touch_a;" in line and "fault" in line for line in folded), "no page fault above touch_a")


@fact
def two_functions_that_take_turns_are_distinguished():
    if not TELLS_ALL:
        skip("this kernel tells every 64th page fault only: it may always be the same function's")
    run, change, _ = grown("mixed 96")
    check_sums(run, change)
    p = run.profile("growth")
    a, b = p.sum(RESIDENT, "touch_a"), p.sum(RESIDENT, "touch_b")
    # 4 sigma, were the samples independent; one of three pages is as likely to be met as another.
    near(a / (a + b), 0.25, 4 * (0.25 * 0.75 / (96 * MIB / PERIOD)) ** 0.5, "the share of touch_a")


@fact
def huge_pages_count_with_all_their_bytes():
    with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as f:
        if "[never]" in f.read():
            skip("transparent huge pages are off here")
    run, change, _ = grown("a 8", "huge 32", "unmap")
    check_sums(run, change)
    p = run.profile("growth")
    # Its first bytes up to the next 2 MiB are in small pages.
    near(p.sum(RESIDENT, "touch_huge"), 32 * MIB, OFF_BY, "bytes of touch_huge")
    near(p.sum(RETURNED, "unmap_c"), 40 * MIB, OFF_BY, "bytes released by unmap_c")


@fact
def threads_on_two_cpus_are_each_charged_with_their_own():
    if len(online_cpus()) < 2:
        skip("needs two CPUs")
    run, change, _ = grown("threads 48")
    check_sums(run, change)
    p = run.profile("growth")
    for function in ("touch_a", "touch_b"):
        near(p.sum(RESIDENT, function), 48 * MIB, OFF_BY, f"bytes of {function}")


@fact
def a_child_is_charged_with_what_it_touches_and_not_with_what_it_inherits():
    target = Target("growth")
    run = Run("-p", target.pid, "--only", "growth")
    run.ready()
    os.sched_setaffinity(target.pid, {online_cpus()[0]})
    target.ask("a 32")
    before = rss(target.pid)
    child = target.ask("fork 24")[0][1]
    child_rss = rss(child)
    os.sched_setaffinity(child, {online_cpus()[-1]})  # where its memory has not been seen yet
    target.ask("stop-child")
    time.sleep(0.2)
    change = rss(target.pid) - before
    run.stop()
    run.must()
    target.end()
    p = run.profile("growth")
    near(p.sum(RESIDENT, "touch_child", pid=child), 24 * MIB, OFF_BY, "what the child touched")
    near(p.sum(RESIDENT, "touch_inherited", pid=child), 0, OFF_BY, "copies of inherited pages")
    within(p.sum(RESIDENT, pid=child), 0, 28 * MIB, "all that the child is charged with")
    # The kill has taken the child's memory: nobody has given it back.
    within(p.sum(RETURNED, pid=child), 0, OFF_BY, "bytes released by the child")
    within(total(run, "released"), 0, MIB, "bytes released")
    check(abs(change) < MIB, f"the parent itself grew by {change} bytes")
    near(p.sum(RESIDENT, pid=target.pid), 32 * MIB, MIB + OFF_BY, "what the parent touched")
    # What it had when it was killed; of what a CPU has not folded, only one CPU's part is looked at.
    near(run.summary()["growth"]["ended_bytes"], child_rss, 2 * MIB + rss_off_by(), "what went with it")
    # 32 MiB and what else the parent had were copied for the child.
    made = run.summary()["growth"]["fork_exec_bytes"]
    near(made + total(run, "resident") - 32 * MIB, child_rss, 2 * MIB + rss_off_by(),
         "inherited and touched, against the child's RSS")


@fact
def what_another_process_touches_is_charged_to_whose_memory_it_is():
    target = Target("growth")
    run = Run("-p", target.pid, "--only", "growth")
    run.ready()
    before = rss(target.pid)
    address = target.ask("map 16")[0][1]
    with open(f"/proc/{target.pid}/mem", "r+b", buffering=0) as mem:
        for off in range(0, 16 * MIB, PAGE):
            mem.seek(address + off)
            mem.write(b"x")
    change = rss(target.pid) - before
    run.stop()
    run.must()
    target.end()
    check_sums(run, change)
    p = run.profile("growth")
    near(p.sum(RESIDENT, "mem_rw", pid=target.pid), 16 * MIB, OFF_BY, "bytes that a write to its mem touched")
    ours = [s for s in run.folded("growth") if "mem_rw" in s and not all(f.endswith("_[k]") for f in s.split(";")[1:])]
    check(not ours, f"a user stack that is not the target's: {ours[:1]}")


@fact
def without_children_the_child_is_not_counted():
    target = Target("growth")
    run = Run("-p", target.pid, "--only", "growth", "--no-children")
    run.ready()
    target.ask("a 8")
    child = target.ask("fork 24")[0][1]
    run.stop()
    run.must()
    target.end()
    p = run.profile("growth")
    equal(p.sum(RESIDENT, pid=child), 0, "bytes of the child")
    within(total(run, "resident"), 8 * MIB, 10 * MIB, "bytes of all that was watched")


@fact
def growth_of_a_command_counts_from_its_beginning():
    run = Run("--only", "growth", "--", tool("python3"), "-c",
              "import ctypes, time; x = [0] * (32 << 17); y = bytearray(16 << 20); time.sleep(0.2)")
    run.must()
    g = run.summary()["growth"]
    within(total(run, "resident"), 48 * MIB, 120 * MIB, "bytes of python3 with 48 MiB of data")
    # The list is made in the program's one line.
    # What it has at its end goes with it; what memscope's own image had before the exec is not of it.
    near(g["ended_bytes"], total(run, "resident") - total(run, "released") + g["fork_exec_bytes"],
         MIB + rss_off_by(), "what went with the command")
    site = g["sites"][0]
    check(site["bytes"] >= 30 * MIB, f"the top site has {site['bytes']} bytes only: {site}")
    equal((site["module"], site["function"]), ("[Python]", "<module> (<string>)"), "the top site")


@fact
@alone("the whole machine")
def of_the_whole_host_each_process_is_charged_with_its_own():
    target = Target("growth")
    run = Run("-a", "--only", "growth", "-d", 20)
    run.ready()
    target.ask("a 4")  # with it the target is met; what it had before is not known
    target.ask("b 32")
    run.stop()
    run.must()
    target.end()
    p = run.profile("growth")
    near(p.sum(RESIDENT, "touch_b", pid=target.pid), 32 * MIB, OFF_BY, "bytes of touch_b")


main()
