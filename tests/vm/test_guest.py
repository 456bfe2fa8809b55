"""Runs inside a guest: what holds on an emulated machine too, where a timer that ticks too often
loses ticks and everything takes ten times as long."""

import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))

from harness import *  # noqa: E402

DEPTH = 30


def whole_chain(name, mode, source, *args):
    """Every stack of the run is complete, and has the chain of functions up to main, which jumps to
    the first of them."""
    target = Target(name, mode, DEPTH)
    functions = target._line("chain", 10)[1:-1]
    target.say("go")
    run = Run("-p", target.pid, "-d", 1, "--only", source, *args)
    run.must()
    chain = ";" + ";".join(reversed(functions))
    stacks = [re.sub(r"\([^;]*\)", "", stack) for stack in run.folded(source)]
    check(stacks, f"{name}: no {source} stack at all")
    # The wait in which the run found it has the kernel's frames alone, seen from outside; none if it
    # was for a CPU.
    early = [s for s in stacks
             if all(f.endswith("_[k]") or f == "[no stack]" for f in s.split(";")[1:])]
    check(len(early) <= (source == "offcpu"), f"{name}: without user frames: {early}")
    for stack in set(stacks) - set(early):
        check(chain in stack, f"{name}: not {chain[1:]}: {stack}")
    for row in run.summary()["stacks"]:
        verdicts = {k: n for k, n in row.items() if n and k not in ("source", "complete")}
        equal(verdicts, {}, f"{name}: stacks of {row['source']} that are not complete")


@fact
def stacks_without_frame_pointers_are_whole_at_samples():
    whole_chain("unwind_depth", "burn", "oncpu")


@fact
def stacks_without_frame_pointers_are_whole_at_context_switches():
    whole_chain("unwind_depth", "sleep", "offcpu")


@fact
def stacks_without_frame_pointers_are_whole_inside_malloc():
    whole_chain("unwind_depth", "malloc", "alloc", "--alloc=exact")


@fact
def stacks_of_a_static_program_are_whole():
    whole_chain("unwind_depth_static", "burn", "oncpu")


@fact
def stacks_of_a_program_with_protected_branches_are_whole():
    """Shadow stacks and marked jumps on x86-64; signed return addresses on arm64, where the processor has them."""
    whole_chain("unwind_depth_cet", "burn", "oncpu")


@fact
def shares_of_functions_are_those_of_their_cpu_time():
    target = Target("cpu_split", 1000, 500)
    run, lines = record(("-p", target.pid, "-F", 499, "--only", "oncpu"),
                        lambda: target.ask("go", timeout=120))
    p = run.profile("oncpu")
    n = p.sum("samples/count", pid=target.pid)
    total = sum(line[2] for line in lines)
    if not check(n >= 100, f"{n} samples, expected 100 or more"):
        return
    for i, name in enumerate(("hot_70", "hot_20", "hot_10")):
        truth = sum(line[3 + i] for line in lines) / total
        share_of(p.sum("samples/count", name, pid=target.pid) / n, truth, n, f"share of {name}")


CPU1 = "/sys/devices/system/cpu/cpu1/online"


def busy_where_cpus_come_and_go():
    if not os.path.exists(CPU1):
        skip("CPU 1 cannot be switched off here")
    target = Target("cpu_split", 600000)
    target.say("go")
    return target


def switch_cpu1_off_and_on():
    for on in "01":
        with open(CPU1, "w", encoding="ascii") as f:
            f.write(on)
        time.sleep(3)


@fact
def what_ran_on_a_cpu_that_came_back_is_said_to_be_missing():
    target = busy_where_cpus_come_and_go()
    run = Run("-p", target.pid, "--only", "oncpu")
    run.ready()
    has_worked(target.pid, 0.5)
    switch_cpu1_off_and_on()
    run.stop()
    run.must(3)
    check(any("CPUs came online in the run (1)" in note for note in run.summary()["notes"]), f"{run.summary()['notes']}")
    check(run.profile("oncpu").sum("samples/count", pid=target.pid) > 0, "no samples of the other CPU")


@fact
def a_service_goes_on_with_a_cpu_that_came_back():
    target = busy_where_cpus_come_and_go()
    archive = scratch("archive")
    serve = Child([MEMSCOPE, "serve", "-p", str(target.pid), "--only", "oncpu", "--every", "2", "--listen", "off", "--archive", archive],
                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(8)
    switch_cpu1_off_and_on()
    time.sleep(75)  # no run ends before it is a minute old
    serve.process.terminate()
    said = serve.process.communicate(timeout=100)[1].decode()
    equal(serve.process.returncode, 0, f"exit status: {said}")
    check("ended (CPUs came online: 1)" in said and "the next run has begun" in said, said)


if __name__ == "__main__":
    main()
