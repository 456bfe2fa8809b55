"""Sampled allocations against programs that log their own truth: estimates within what chance allows."""

import contextlib
import math
import os
import subprocess
import time

import uprobes
from harness import *
from truth import *

LIBRARY = os.path.join(BUILD, "libmemscope-alloc.so")
# At these rates samples are many: all of them are to be kept.
SAMPLED = ("--alloc=sampled", "--only", "alloc", "--max-overhead", "100000")


@contextlib.contextmanager
def preloaded(rate=RATE, allocator=None):
    """What is started in here has the library in front of its allocator."""
    if not os.path.exists(LIBRARY):
        raise Broken(f"{LIBRARY} is not built")
    os.environ.update(LD_PRELOAD=":".join(filter(None, (LIBRARY, allocator))), MEMSCOPE_ALLOC_RATE=str(rate))
    try:
        yield
    finally:
        del os.environ["LD_PRELOAD"], os.environ["MEMSCOPE_ALLOC_RATE"]


def target(name, *args, rate=RATE, allocator=None):
    with preloaded(rate, allocator):
        return Target(name, *args)


@once
def single():
    t = target("alloc_truth", 1, 20000)
    run, lines = record(("-p", t.pid, *SAMPLED), lambda: t.ask("run"))
    return t, run, lines


@fact
def bytes_and_live_bytes_of_each_function_are_within_chance_of_the_truth():
    t, run, lines = single()
    check_estimates(run, lines, t.pid)


@fact
def summary_names_sampler_rate_samples_and_interval():
    _, run, lines = single()
    total = sites_of(lines)[1]
    a = run.summary()["alloc"]
    equal(a["tier"], "sampled", "tier")
    equal(a["sampler"], "libmemscope-alloc (preload)", "sampler")
    # Known from the smallest sample's weight; large ones do not spoil it.
    near(a["rate"], RATE, RATE * 0.01, "rate")
    i = a["bytes_interval"]
    check(i["low"] < a["bytes"] < i["high"], f"the interval does not hold its own estimate: {a}")
    # Half of it is 1.96 sigma, of a sigma that is at most sqrt(R B); and no less than that of B/R
    # samples that are all of the largest size here.
    half = (i["high"] - i["low"]) / 2
    check(half < 2.5 * math.sqrt(RATE * total[1]), f"the interval is too wide: ± {half}")
    check(half > 0.05 * math.sqrt(RATE * total[1]), f"the interval is too narrow: ± {half}")
    for row in a["sites"]:
        check(row["low"] <= row["bytes"] <= row["high"], f"the interval of a site is not around it: {row}")
    equal(sum(row["samples"] for row in a["sites"]) <= i["samples"], True, "samples of sites")


@fact
def pprof_has_the_four_value_types_the_rate_and_the_tier():
    _, run, _ = single()
    equal(run.profile("alloc").types, ALLOC, "alloc")
    equal(run.profile("heap").types, HEAP, "heap")


@fact
def stacks_of_samples_are_whole_and_begin_in_the_library():
    t, run, _ = single()
    for s in run.profile("alloc").select("leak_here", pid=t.pid):
        names = [f.name for f in s.frames]
        i = names.index("leak_here")
        equal(names[i:i + 4], ["leak_here", "leak", "run", "main"], "callers of the leak")
    sites = {row["function"] for row in run.summary()["alloc"]["sites"]}
    check("do_malloc" in sites and not sites & {"malloc", "maybe_sampled"},
          f"sites are not who asked: {sites}")


@fact
def frees_by_other_threads_are_reported():
    t = target("alloc_truth", 4, 8000)
    run, lines = record(("-p", t.pid, *SAMPLED), lambda: t.ask("run"))
    check_estimates(run, lines, t.pid)


@fact
def launched_command_is_sampled_from_its_first_allocation():
    truth_file = scratch("truth")
    run = Run(*SAMPLED, "--alloc-rate", "16K", "--", os.path.join(TARGETS, "alloc_truth"), "now",
              truth_file, "20000")
    run.finish()
    run.must()
    with open(truth_file, encoding="ascii") as f:
        lines = [[int(w) if w.isdigit() else w for w in line.split()] for line in f]
    pids = {s.labels.get("pid") for s in run.profile("alloc").samples}
    if equal(len(pids), 1, "processes in the profile"):
        check_estimates(run, lines, pids.pop())


@fact
def busy_threads_live_through_attaching_and_detaching_again_and_again():
    # `make bench-hard` does it a thousand times.
    rate = 1 << 17  # so many samples that memscope can be late for them
    t = target("alloc_manners", 4, rate=rate)
    t.say("go")
    uprobes.attach_and_detach(t.pid, LIBRARY, 9)
    for _ in range(3):
        run, lines = record(("-p", t.pid, *SAMPLED), lambda: t.ask("known 20000"))
        truth = dict(lines)
        # Its main thread does nothing else. Not by function: its other threads load and unload libraries,
        # and more stacks than user space may be sent are cut meanwhile.
        size = run.profile("alloc").sum(ALLOC[1], pid=t.pid, tid=t.pid)
        near(size, truth["bytes"], tolerance(truth["bytes"], rate), "bytes of the main thread")
    if check(t.alive(), f"it died: {t.how_it_ended()}"):
        told = dict(t.ask("stop"))
        check(told["rounds"] > 0, "its threads did nothing")
        equal(told["broken"], 0, "promises of the allocator that were not kept")
        text_is_as_its_files(t.pid, "traps left behind")


def allocators():
    """The C library's, and those that are installed here and whose operator new calls no malloc."""
    found = [f"/usr/lib/{os.uname().machine}-linux-gnu/{name}" for name in
             ("libjemalloc.so.2", "libtcmalloc.so.4", "libtcmalloc_minimal.so.4")]
    return [None, *filter(os.path.exists, found)]


@fact
def every_form_of_new_is_sampled_once_whoever_owns_it():
    for allocator in allocators():
        t = target("new_truth", rate=64, allocator=allocator)
        run, lines = record(("-p", t.pid, *SAMPLED), lambda t=t: t.ask("run"))
        check_estimates(run, lines, t.pid, rate=64)
        # One that two functions had told of would have been freed twice.
        equal(run.summary()["alloc"]["earlier_frees"], 0, f"frees of blocks not told of, {allocator}")


@fact
def program_that_throws_lives_on_under_the_library_whoever_owns_new():
    for allocator in allocators():
        t = target("bad_alloc", rate=256, allocator=allocator)
        t.ask("go")
        for _ in range(2):
            run = Run("-p", t.pid, *SAMPLED)
            run.ready()
            has_worked(t.pid, 0.1)
            run.stop()
            run.must()
        if check(t.alive(), f"it died: {t.how_it_ended()}"):
            answer = dict(t.ask("stop"))
            check(answer["caught"] > 0, "it never threw")
            equal(answer["caught"] + answer["nulls"], answer["tried"], "exceptions caught and nulls")


@fact
def rate_of_one_byte_is_every_call():
    t = target("alloc_truth", 1, 1500, rate=1)
    run, lines = record(("-p", t.pid, *SAMPLED), lambda: t.ask("run"))
    sites, total = sites_of(lines)
    # A block of one byte has a chance of 63 %, one of 20 bytes of all but two in a billion; the
    # weights of the smallest are rounded to whole bytes.
    near(run.profile("heap").sum(HEAP[3], pid=t.pid), total[3], 100, "live bytes")
    near(run.profile("alloc").sum(ALLOC[1], pid=t.pid), total[1], 100, "bytes")
    leak = [run.profile("heap").sum(x, "leak_here", pid=t.pid) for x in HEAP]
    equal(leak, sites["leak_here"], "leak_here: calls, bytes, live calls, live bytes")
    i = run.summary()["alloc"]["bytes_interval"]
    check(i["high"] - i["low"] < 200, f"the interval of what is nearly exact: {i}")


@fact
def forked_children_are_heard_and_live_on():
    t = target("alloc_truth", 1, 4000)

    def during():
        t.ask("run")
        return t.ask("fork")
    run, lines = record(("-p", t.pid, *SAMPLED), during)
    at = next(i for i, line in enumerate(lines) if line[0] == "parent")
    child, parent = lines[1:at], lines[at + 1:]
    # What the child holds of its parent's is not counted as its own.
    size = sites_of(child)[0]["child_malloc"][1]
    near(run.profile("alloc").sum(ALLOC[1], "child_malloc", pid=lines[0][1]), size, tolerance(size),
         "bytes of the child")
    check_estimates(run, parent, t.pid)


@fact
def blocks_of_an_image_that_exec_replaced_are_not_live():
    t = target("alloc_truth", 1, 4000)

    def during():
        t.ask("run")
        t.say("exec")
        return t.answer()
    run, lines = record(("-p", t.pid, *SAMPLED), during)
    total = sites_of([line for line in lines if line[0] in ("site", "total")])[1]
    near(run.profile("heap").sum(HEAP[3], pid=t.pid), total[3], tolerance(total[3]), "live bytes")


@fact
def another_sampler_is_heard_at_its_own_arguments_and_semaphores():
    if os.uname().machine != "x86_64":
        skip("the target is written for x86-64")
    t = Target("other_sampler")
    equal(t.ask("run 100")[0][1:], [0, 0], "told while nobody listened")
    n = 3000
    run = Run("-p", t.pid, *SAMPLED)
    run.ready()
    lines = t.ask(f"run {n}")
    if run.stop() == 3 and "this kernel has no probe cookies" in run.stderr:
        skip("this kernel has no probe cookies")
    run.must()
    equal(lines[0][1:], [n, n // 2], "told")
    equal(t.ask("run 100")[0][1:], [0, 0], "told after the end")
    a = run.summary()["alloc"]
    check(a["sampler"].endswith("/other_sampler"), f"sampler: {a['sampler']}")
    equal(a["bytes_interval"]["samples"], n, "samples")
    equal(a["bytes"], n * 50000, "bytes are the weights")
    equal(a["live_bytes"], n // 2 * 50000, "live bytes")
    near(a["objects"], sum(50000 / (1000 + i) for i in range(n)), 1, "blocks are weight over size")
    equal(a["live_interval"]["samples"], n // 2, "live samples")


@fact
def process_without_a_sampler_gets_advice_how_to_have_one():
    t = Target("alloc_truth", 1, 100)
    run = Run("-p", t.pid, *SAMPLED)
    run.ready()
    run.stop()
    equal(run.status, 3, "exit status")
    a = run.summary()["alloc"]
    equal(a["tier"], "off", "tier")
    check(f"LD_PRELOAD={LIBRARY}" in a["reason"] and "--alloc=exact" in a["reason"],
          f"no way out is named: {a['reason']}")


@fact
def static_command_cannot_be_sampled_and_says_so():
    run = Run(*SAMPLED, "--", os.path.join(TARGETS, "alloc_truth_static"), "now", scratch("truth"), "500")
    run.finish()
    equal(run.status, 3, "exit status")
    check("static" in (run.summary()["alloc"]["reason"] or ""), f"{run.summary()['alloc']['reason']}")


@fact
def heavy_allocator_with_a_sampler_is_sampled_by_a_default_run():
    t = target("alloc_flat", 1, rate=1 << 19)
    counter = Counter()
    t.say(f"rate {counter.path}")
    run = Run("-p", t.pid)
    run.ready()
    time.sleep(1.5)
    run.stop()
    run.must()
    a = run.summary()["alloc"]
    if a["tier"] == "exact":
        # A busy machine gave it no CPU in the 20 ms of the look.
        skip(f"it was not seen to be heavy: {a['reason']}")
    equal(a["tier"], "sampled", "tier")
    check("--alloc=exact" in a["reason"], f"the reason names no way out: {a['reason']}")
    check(a["bytes_interval"]["samples"] > 0, "no samples")


@fact
@alone("what samples cost")
def more_samples_than_max_overhead_allows_are_thinned_and_weigh_more():
    t = target("alloc_truth", 1, 20000, rate=2048)

    def during():
        for _ in range(20):
            lines = t.ask("run")
        return lines
    run, lines = record(("-p", t.pid, "--alloc=sampled", "--only", "alloc", "--max-overhead", "0.5"), during,
                        status=None)
    total = sites_of(lines)[1]
    a = run.summary()["alloc"]
    if run.status == 3 and "its samples alone began to cost more" in (a["reason"] or ""):
        skip("the machine is so slow that the traps alone passed the limit")
    run.must()
    thinned = [n for n in run.summary()["notes"] if "left out at random" in n]
    if not thinned:
        skip("its samples were spread over so much time that they cost too little")
    # One in 2^10 at most is kept: each sample then stands for 2 MiB.
    near(a["bytes"], total[1], tolerance(total[1], 2048 << 10), "bytes")
    i = a["bytes_interval"]
    check(i["high"] - i["low"] > 2 * math.sqrt(2048 * total[1]), f"the interval is that of all samples: {i}")


@fact
def doctor_says_which_sampler_a_process_has():
    def doctor(t):
        return subprocess.run([MEMSCOPE, "doctor", "-p", str(t.pid)], capture_output=True, text=True, timeout=FINISH_SEC,
                              check=False).stdout
    said = doctor(Target("alloc_truth", 1, 10))
    check(f"LD_PRELOAD={LIBRARY}" in said, f"no way to a sampler: {said[-600:]}")
    jemalloc = f"/usr/lib/{os.uname().machine}-linux-gnu/libjemalloc.so.2"
    has_jemalloc = os.path.exists(jemalloc)
    said = doctor(target("alloc_truth", 1, 10, allocator=jemalloc if has_jemalloc else None))
    check(f"{LIBRARY}: listened to with --alloc=sampled" in said, f"not found: {said[-600:]}")
    if not has_jemalloc:
        skip("libjemalloc2 is not installed: its part was not asked")
    check("is compiled in, and off" in said and " MALLOC_CONF=prof:true" in said, f"jemalloc: {said[-600:]}")
    os.environ["MALLOC_CONF"] = "prof:true,prof_final:false,lg_prof_sample:25"
    try:
        said = doctor(target("alloc_truth", 1, 10, allocator=jemalloc))
    finally:
        del os.environ["MALLOC_CONF"]
    check("its own sampler is on (MALLOC_CONF)" in said, f"jemalloc, turned on: {said[-600:]}")


@fact
def option_alloc_rate_is_refused_where_it_can_do_nothing():
    for args in (("--alloc-rate", "1M", "--", "true"), ("--alloc=sampled", "--alloc-rate", "1M", "-p", "1"),
                 ("--alloc=sampled", "--alloc-rate", "0", "--", "true"),
                 ("--alloc=sampled", "--alloc-rate", "64X", "--", "true"),
                 ("--alloc=sampled", "--alloc-rate", "2G", "--", "true")):
        run = Run(*args)
        run.finish()
        equal(run.status, 2, f"exit status of {' '.join(args)}")
        check("--alloc-rate" in run.stderr, f"not named: {run.stderr}")


@fact
def a_program_that_forks_under_the_probes_has_healthy_children():
    script = ("import os, sys\n"
              "bad = 0\n"
              "for i in range(40):\n"
              "    x = [bytearray(20000) for _ in range(50)]\n"
              "    pid = os.fork()\n"
              "    if not pid:\n"
              "        y = [bytearray(20000) for _ in range(100)]\n"
              "        os._exit(0)\n"
              "    bad += os.waitpid(pid, 0)[1] != 0\n"
              "sys.exit(bad)\n")
    run = Run(*SAMPLED, "--alloc-rate", "16K", "--", "/usr/bin/python3", "-c", script)
    run.finish()
    run.must()
    equal(run.summary()["child"]["code"], 0, "children that died")
    equal(len({s.labels.get("pid") for s in run.profile("alloc").samples}), 41, "processes heard")


main()
