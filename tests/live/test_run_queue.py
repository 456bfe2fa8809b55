"""Who ran while threads waited for a CPU, against programs that share one on purpose."""

import os
import subprocess
import sys

from harness import *

SPIN_MS = 1500


def spin(*cpus):
    """The run of a program whose threads spin on these CPUs, and what the kernel counted of each."""
    target = Target("spinners", SPIN_MS, *cpus)
    run = Run("-p", target.pid, "--only", "offcpu")
    run.ready()
    lines = [x for x in target.ask("go") if x[0] == "thread"]
    run.stop()
    run.must()
    target.end()
    return run, target.pid, lines


@fact
def another_process_on_the_cpu_is_named():
    cpu = online_cpus()[-1]
    other = Child([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile 1: pass"])
    run, pid, lines = spin(cpu)
    other.process.kill()
    other.end()
    queue, delay = run.summary()["run_queue"], int(lines[0][5])
    rows = {r["ran_pid"]: r for r in queue["rows"] if r["pid"] == pid}
    check(other.pid in rows, f"no row of the process {other.pid}: {queue}")
    equal(rows[other.pid]["ran_comm"], "python3", "its name")
    # Of what the kernel says that it waited, the other one ran all but what third programs had.
    check(delay > SPIN_MS * 1e6 / 5, f"it waited for {delay} ns only")
    third = sum(r["delay_ns"] for p, r in rows.items() if p not in (other.pid, pid)) + queue["other_queue_ns"] + queue["unknown_ns"]
    near(rows[other.pid]["delay_ns"] + third, delay, 0.05 * delay + 20e6, "delay by who ran, against schedstat's")
    check(rows[other.pid]["delay_ns"] >= 0.9 * (delay - third) - 20e6, f"{rows[other.pid]}")
    check(queue["idle_ns"] <= 0.02 * delay, f"the CPU was idle for {queue['idle_ns']} ns of {delay}")


@fact
def threads_that_take_turns_wait_for_each_other():
    cpu = online_cpus()[-1]
    run, pid, lines = spin(cpu, cpu)
    queue, delay = run.summary()["run_queue"], sum(int(x[5]) for x in lines)
    third = sum(r["delay_ns"] for r in queue["rows"] if r["ran_pid"] != pid) + queue["other_queue_ns"] + queue["unknown_ns"]
    near(queue["own_threads_ns"] + third, delay, 0.05 * delay + 20e6, "delay by who ran, against schedstat's")
    check(queue["own_threads_ns"] >= 0.9 * (delay - third) - 20e6 > 0, f"{queue}")


@fact
def the_parts_add_up_to_the_runnable_time():
    run, _, _ = spin(online_cpus()[-1], online_cpus()[-1])
    s = run.summary()
    queue = s["run_queue"]
    parts = sum(r["delay_ns"] for r in queue["rows"]) + queue["idle_ns"] + queue["other_queue_ns"] + queue["unknown_ns"]
    # All rows are there: they are less than 30.
    check(len(queue["rows"]) == 30 or parts == queue["delay_ns"], f"{parts} ns in parts of {queue['delay_ns']}")
    # A thread that is runnable when the run ends has not come to a CPU: a slice each.
    near(queue["delay_ns"], s["time"]["runnable_ns"], 0.02 * s["time"]["runnable_ns"] + 2 * 50e6, "delay, and time runnable")


main()
