"""Processes that change in a run: exec, fork, exit, PID reuse, libraries that come and go."""

import os
import re

from harness import *

HZ = 999
ARGS = ("-F", HZ, "--only", "oncpu")


def near_cpu(p, times, what, function=None, **labels):
    """Samples of `function` against the CPU time it had by its two clocks."""
    samples_of(p.sum("samples/count", function, **labels), *times, HZ, f"samples of {what}")


@fact
def code_of_two_libraries_at_one_address_is_distinguished():
    target = Target("reload", 600)
    run, lines = record(("-p", target.pid, *ARGS), lambda: target.ask("go"))
    answer = {line[0]: line[1:] for line in lines}
    if answer["address"][0] != answer["address"][1]:
        skip("the loader put the second library at another address")
    p = run.profile("oncpu")
    near_cpu(p, answer["first"], "the first library", "work_of_first", pid=target.pid)
    near_cpu(p, answer["second"], "the second library", "work_of_second", pid=target.pid)
    for s in p.select("work_of_first"):
        # An interrupt may have found the kernel above it.
        module = next(f.module for f in s.frames if f.name == "work_of_first")
        check("lib_first.so" in module, f"work_of_first is in {module}")


@fact
def code_before_and_after_exec_is_distinguished():
    target = Target("exec_before", 600)
    run, lines = record(("-p", target.pid, *ARGS), lambda: target.ask("go"))
    answer = {line[0]: line[1:] for line in lines}
    p = run.profile("oncpu")
    equal(answer["after"][0], target.pid, "pid after exec")
    near_cpu(p, answer["before"][1:], "the image before exec", "work_before_exec", pid=target.pid)
    near_cpu(p, answer["after"][1:], "the image after exec", "work_after_exec", pid=target.pid)
    equal({s.labels.get("comm") for s in p.select("work_before_exec")}, {"exec_before"}, "comm")
    equal({s.labels.get("comm") for s in p.select("work_after_exec")}, {"exec_after"}, "comm")


@fact
def children_are_followed_and_resolve_after_they_ended():
    target = Target("family", 400)
    run, lines = record(("-p", target.pid, *ARGS), lambda: target.ask("go"))
    p = run.profile("oncpu")
    for who, pid, *times in lines:
        near_cpu(p, times, f"{who} {pid}", f"{who}_work", pid=pid)
    equal({s.labels.get("pid") for s in p.samples}, {line[1] for line in lines}, "processes")


@fact
def option_no_children_follows_none():
    target = Target("family", 200)
    run, lines = record(("-p", target.pid, "--no-children", *ARGS), lambda: target.ask("go"))
    p = run.profile("oncpu")
    equal({s.labels.get("pid") for s in p.samples}, {target.pid}, "processes")
    near_cpu(p, lines[-1][2:], "the parent", "parent_work", pid=target.pid)


@fact
def one_pid_used_twice_is_two_processes():
    target = Target("family", 500)
    run, lines = record(("-p", target.pid, *ARGS), lambda: target.ask("reuse"))
    if ["denied"] in lines:
        skip("clone3 with a chosen pid is not permitted here")
    answer = {line[0]: line[1:] for line in lines}
    equal(answer["after"][0], answer["first"][0], "pid of the second child")
    pid = answer["first"][0]
    p = run.profile("oncpu")
    near_cpu(p, answer["first"][1:], "the first child", "reuse_first_work", pid=pid)
    near_cpu(p, answer["after"][1:], "the second child", "work_after_exec", pid=pid)
    equal({s.labels.get("comm") for s in p.select("reuse_first_work")}, {"family"}, "comm")
    equal({s.labels.get("comm") for s in p.select("work_after_exec")}, {"exec_after"}, "comm")


@fact
def process_that_ends_in_the_run_ends_it_and_still_resolves():
    target = Target("family", 500)
    run = Run("-p", target.pid, *ARGS)
    run.ready()
    target.say("leave")
    words = target._line("last", READY_SEC)
    target.process.stdin.close()
    target.process.wait(FINISH_SEC)
    run.finish()
    run.must()
    near_cpu(run.profile("oncpu"), [int(w) for w in words[2:]], "last_work", "last_work", pid=target.pid)


@fact
def launched_command_is_sampled_from_its_start_and_ends_the_run():
    program = os.path.join(TARGETS, "exec_after")
    run = Run(*ARGS, "--", program, "700", "exit")
    run.finish()
    run.must()
    p = run.profile("oncpu")
    pids = {s.labels.get("pid") for s in p.samples}
    equal(len(pids), 1, "processes in the profile")
    # It says so where memscope prints its summary.
    times = re.search(rb"^after \d+ (\d+) (\d+)$", run.stdout, re.M)
    near_cpu(p, [int(ns) for ns in times.groups()], "work_after_exec", "work_after_exec")
    equal({s.labels.get("comm") for s in p.samples} - {"memscope"}, {"exec_after"}, "comm")


@fact
def exit_status_of_a_launched_command_is_in_the_summary_and_not_ours():
    run = Run("--only", "oncpu", "--", "/bin/sh", "-c", "exit 7")
    equal(run.finish() in (0, 3), True, f"memscope's own exit status ({run.status})")
    child = run.summary().get("child", {})
    equal((child.get("exited"), child.get("code")), (True, 7), "child in the summary")


main()
