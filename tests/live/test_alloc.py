"""Allocations against a program that logs its own truth: equal, not near."""

import os

from harness import *
from truth import *

LEAKS, LEAK_BYTES = 137, 1234


@once
def single():
    target = Target("alloc_truth", 1, 6000)
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    return target, run, lines


@fact
def every_call_byte_and_live_byte_of_one_thread_is_counted():
    target, run, lines = single()
    check_truth(run, lines, target.pid)


@fact
def value_types_of_alloc_and_heap_are_as_promised():
    _, run, _ = single()
    equal(run.profile("alloc").types, ALLOC, "alloc")
    equal(run.profile("heap").types, HEAP, "heap")


@fact
def known_leak_is_named_with_its_exact_bytes():
    target, run, _ = single()
    heap = run.profile("heap")
    equal([heap.sum(t, "leak_here", pid=target.pid) for t in HEAP[2:]],
          [LEAKS, LEAKS * LEAK_BYTES], "live blocks and bytes of leak_here")
    for s in heap.select("leak_here"):
        names = [f.name for f in s.frames]
        i = names.index("leak_here")
        equal(names[i:i + 4], ["leak_here", "leak", "run", "main"], "callers of the leak")
    folded = sum(v for k, v in run.folded("heap").items() if "leak_here" in k)
    equal(folded, LEAKS * LEAK_BYTES, "bytes of leak_here in heap.folded")


@fact
def frees_of_pre_existing_blocks_are_counted_apart():
    _, run, lines = single()
    frees = next(line[1] for line in lines if line[0] == "frees")
    a = run.summary()["alloc"]
    # 32 of the older blocks are freed and 16 grown by realloc in the run.
    equal(a["earlier_frees"], 48, "frees of older blocks")
    equal(a["freed_objects"], frees - 48, "frees of blocks of the run")


@fact
def summary_counts_what_the_profiles_count():
    _, run, lines = single()
    _, total = sites_of(lines)
    a = run.summary()["alloc"]
    equal([a["objects"], a["bytes"], a["live_objects"], a["live_bytes"]], total, "summary")
    equal(a["tier"], "exact", "tier")


@fact
def every_call_of_four_threads_with_cross_thread_frees_is_counted():
    target = Target("alloc_truth", 4, 3000)
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    check_truth(run, lines, target.pid)


@fact
def static_binary_is_counted_like_a_dynamic_one():
    target = Target("alloc_truth_static", 1, 4000)
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    check_truth(run, lines, target.pid)


@fact
def launched_command_is_counted_from_its_first_allocation():
    for name in ("alloc_truth", "alloc_truth_static"):
        truth_file = scratch("truth")
        program = os.path.join(TARGETS, name)
        run = Run(*EXACT, "--", program, "now", truth_file, "6000")
        run.finish()
        run.must()
        with open(truth_file, encoding="ascii") as f:
            lines = [[int(w) if w.isdigit() else w for w in line.split()] for line in f]
        pids = {s.labels.get("pid") for s in run.profile("alloc").samples}
        if equal(len(pids), 1, f"processes in the profile of {name}"):
            # A static libc allocates a little before main(): only what the program did is equal.
            check_truth(run, lines, pids.pop(), total_is_all=name == "alloc_truth")


@fact
def forked_child_is_counted_and_its_inherited_frees_do_not_touch_the_parent():
    target = Target("alloc_truth", 1, 2000)

    def during():
        target.ask("run")
        return target.ask("fork")
    run, lines = record(("-p", target.pid, *EXACT), during)
    at = next(i for i, line in enumerate(lines) if line[0] == "parent")
    child, parent = lines[1:at], lines[at + 1:]
    child_pid = lines[0][1]
    sites, _ = check_truth(run, child, child_pid)
    check_truth(run, parent, target.pid)
    frees = next(line[1] for line in child if line[0] == "frees")
    own = sites["child_malloc"][0] - sites["child_malloc"][2]
    equal(run.summary()["alloc"]["inherited_frees"], frees - own, "inherited frees")


@fact
def option_no_children_leaves_a_forked_child_out():
    target = Target("alloc_truth", 1, 500)

    def during():
        target.ask("run")
        return target.ask("fork")
    run, lines = record(("-p", target.pid, "--no-children", *EXACT), during)
    at = next(i for i, line in enumerate(lines) if line[0] == "parent")
    equal({s.labels.get("pid") for s in run.profile("alloc").samples}, {target.pid}, "processes")
    check_truth(run, lines[at + 1:], target.pid)


@fact
def blocks_of_an_image_that_exec_replaced_are_not_live():
    target = Target("alloc_truth", 1, 1000)

    def during():
        first = target.ask("run")
        target.say("exec")
        return first, target.answer()
    run, (first, second) = record(("-p", target.pid, *EXACT), during)
    _, before = sites_of(first)
    _, after = sites_of(second)
    heap = run.profile("heap")
    equal([heap.sum(t, pid=target.pid) for t in HEAP[:2]],
          [before[0] + after[0], before[1] + after[1]], "allocated before and after exec")
    equal([heap.sum(t, pid=target.pid) for t in HEAP[2:]], after[2:], "live after exec")


@fact
def a_second_run_on_the_same_process_counts_anew():
    target = Target("alloc_truth", 1, 1000)
    totals = []
    for _ in range(2):
        run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
        alloc = run.profile("alloc")
        totals.append((sites_of(lines)[1], [alloc.sum(t, pid=target.pid) for t in ALLOC]))
    (first_truth, first), (second_truth, second) = totals
    equal(first, first_truth[:2], "first run")
    # The target's counts go on from the first run.
    equal(second, [b - a for a, b in zip(first_truth[:2], second_truth[:2])], "second run")
    text_is_as_its_files(target.pid, "bytes of the target's text changed after two runs")


main()
