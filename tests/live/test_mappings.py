"""What programs map by themselves, against a program that logs every page of it: equal, not near."""

import os

from harness import *
from truth import *

KINDS = ("anonymous", "shared", "file")


def check_sites(run, lines, pid):
    maps = run.profile("mappings")
    sites, total = sites_of(lines)
    for name, truth in sites.items():
        got = [maps.sum(t, name, pid=pid) for t in HEAP]
        equal(got, truth, f"calls, bytes, live, live bytes of {name}")


def check_all(run, lines, pid, by_site=True):
    if by_site:
        check_sites(run, lines, pid)
    maps, (_, total) = run.profile("mappings"), sites_of(lines)
    equal([maps.sum(t, pid=pid) for t in HEAP], total, "total")
    reported = run.summary()["mappings"]
    for _, kind, made, live in (x for x in lines if x[0] == "kind"):
        got = reported[kind]
        equal([got["made_bytes"], got["live_bytes"], got["released_bytes"]],
              [made, live, made - live], kind)
        got = [s for s in maps.samples if s.labels.get("memory") == kind]
        equal(sum(s.values[1] for s in got), made, f"{kind}, by label")
    equal(reported["failed"], next(x[1] for x in lines if x[0] == "failed"), "calls that failed")


def traced(name, *args):
    if not os.path.exists(os.path.join(TARGETS, name)):
        skip("musl-gcc was not installed when targets were made (musl-tools)")
    target = Target(name, *args)
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    return target, run, lines


@fact
def every_page_that_is_mapped_moved_and_given_back_is_counted():
    target, run, lines = traced("maps", 1, 4000)
    check_all(run, lines, target.pid)
    notes = run.summary()["lost"] if "lost" in run.summary() else []
    equal(notes, [], "lost")


@fact
def pages_of_threads_that_take_each_others_places_are_counted():
    target, run, lines = traced("maps", 4, 4000)
    check_all(run, lines, target.pid)


@fact
def pages_of_a_static_program_are_counted():
    target, run, lines = traced("maps_static", 2, 2000)
    check_all(run, lines, target.pid)


@fact
def pages_of_a_program_with_musl_are_counted():
    target, run, lines = traced("maps_musl", 2, 2000)
    # Inside musl's mmap(), which has neither unwind tables nor frames, who called it is unknown.
    check_all(run, lines, target.pid, by_site=False)


@fact
def what_malloc_maps_is_in_no_mapping_and_what_the_program_maps_is_in_no_allocation():
    target, run, lines = traced("maps", 1, 3000)
    check_all(run, lines, target.pid)
    alloc = run.profile("alloc")
    check(alloc.sum("alloc_objects/count", "malloc", pid=target.pid) or
          run.summary()["alloc"]["objects"] > 100, "malloc was not traced")
    for name in ("map_anon", "map_shared", "map_fixed", "map_brk"):
        equal(alloc.sum("alloc_objects/count", name, pid=target.pid), 0, f"allocations by {name}")


@fact
def stacks_of_threads_are_mapped_by_who_starts_them():
    target = Target("maps", 1, 1)
    run, _ = record(("-p", target.pid, *EXACT), lambda: target.ask("threads 5"))
    maps = run.profile("mappings")
    got = [maps.sum(t, "start_threads", pid=target.pid) for t in HEAP]
    equal(got[::2], [5, 5], "made, and there")
    # 1 MiB each, and a page that guards it where the C library puts that beside it.
    check(5 << 20 <= got[1] == got[3] <= 5 * ((1 << 20) + 65536), f"bytes: {got}")


@fact
def a_child_has_what_it_maps_itself_and_nothing_of_its_parent():
    target = Target("maps", 1, 1500)
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("fork"))
    child = next(x[1] for x in lines if x[0] == "child")
    at = next(i for i, x in enumerate(lines) if x[0] == "parent")
    check_sites(run, lines[:at], child)
    check_sites(run, lines[at:], target.pid)


@fact
def a_new_image_begins_with_nothing():
    target = Target("maps", 1, 1500)

    def during():
        target.ask("run")
        target.say("exec")
        return target.answer()
    run, lines = record(("-p", target.pid, *EXACT), during)
    maps = run.profile("mappings")
    sites, _ = sites_of(lines)
    live = {name: [maps.sum(t, name, pid=target.pid) for t in HEAP[2:]] for name in sites}
    equal(live, {name: truth[2:] for name, truth in sites.items()}, "what is there of the new image")
    check(run.summary()["mappings"]["ended_bytes"] > 0, "the old one's went without a word")


@fact
def nothing_listens_to_system_calls_unless_every_call_is_traced():
    target = Target("maps", 1, 500)
    run, _ = record(("-p", target.pid, "--only", "growth"), lambda: target.ask("run"))
    equal(run.summary()["mappings"], None, "mappings")
    check(not os.path.exists(run.path("mappings.pb.gz")), "a profile of mappings")


@fact
@alone("how many system calls there are")
def system_calls_that_are_too_many_are_traced_only_when_asked_for():
    for options, known in ((("--max-overhead", 1), False), (("--alloc=exact", "--max-overhead", 1), True)):
        target = Target("pingpong", online_cpus()[-1])
        run = Run("-p", target.pid, "--only", "alloc", *options)
        run.ready()
        for _ in range(20):
            target.ask("go 20000")
        run.stop()
        run.must()
        s = run.summary()
        equal(s["alloc"]["tier"], "exact", f"{options}: tier")
        equal(s["mappings"] is not None, known, f"{options}: mappings are reported")
        equal(any("mmap" in note for note in s["notes"]), not known, f"{options}: a note says why not")


main()
