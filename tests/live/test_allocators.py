"""Other allocators than glibc's, against programs that log their own truth: equal, not near."""

import os
import subprocess
import time

from harness import *
from truth import *

LIBRARIES = {  # as the dynamic linker names them, and their Debian packages
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    "mimalloc": ("libmimalloc.so.2.0", "libmimalloc2.0"),
}


def library(name):
    soname, package = LIBRARIES[name]
    for where in ("/usr/lib/" + os.uname().machine + "-linux-gnu", "/usr/lib64", "/usr/lib"):
        path = os.path.join(where, soname)
        if os.path.exists(path):
            return path
    return skip(f"{soname} is not installed ({package})")


def preloaded(name, target, *args):
    """A target with that allocator (by name, or a library) in place of glibc's."""
    before = dict(os.environ)
    os.environ.update(LD_PRELOAD=library(name) if name in LIBRARIES else name, ALLOC_TRUTH_OTHER="1")
    try:
        return Target(target, *args)
    finally:
        os.environ.clear()
        os.environ.update(before)


def check_frees(run, lines, earlier=0):
    frees = next(line[1] for line in lines if line[0] == "frees")
    a = run.summary()["alloc"]
    equal([a["earlier_frees"], a["freed_objects"]], [earlier, frees - earlier], "frees")


def check_c(name):
    target = preloaded(name, "alloc_truth", 4, 2000)
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    check_truth(run, lines, target.pid)
    check_frees(run, lines, 48)


@fact
def c_functions_of_jemalloc_are_counted_to_the_byte():
    check_c("jemalloc")


@fact
def c_functions_of_tcmalloc_are_counted_to_the_byte():
    check_c("tcmalloc")


@fact
def c_functions_of_mimalloc_are_counted_to_the_byte():
    check_c("mimalloc")


def check_new(name):
    target = preloaded(name, "new_truth")
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    check_truth(run, lines, target.pid)
    equal(run.summary()["alloc"]["earlier_frees"], 0, "frees of older blocks")


def programs_of(memscope):
    """BPF programs that it holds, by the kernel's numbers."""
    ids = set()
    for fd in os.listdir(f"/proc/{memscope}/fdinfo"):
        try:
            with open(f"/proc/{memscope}/fdinfo/{fd}", encoding="ascii") as f:
                ids |= {line.split()[1] for line in f if line.startswith("prog_id:")}
        except OSError:
            pass  # closed since
    return ids


@fact
def programs_for_an_operator_new_of_its_own_are_loaded_only_where_there_is_one():
    loaded = []
    for target in (Target("new_truth"), preloaded("mimalloc", "new_truth")):
        run = Run("-p", target.pid, *EXACT)
        run.ready()
        loaded.append(len(programs_of(run.process.pid)))
        run.stop()
        run.must()
    equal(loaded[1], loaded[0] + 2, "programs of a run")


@fact
def new_and_delete_of_jemalloc_are_counted_once():
    check_new("jemalloc")


@fact
def new_and_delete_of_tcmalloc_are_counted_once():
    check_new("tcmalloc")


@fact
def new_and_delete_of_mimalloc_are_counted_once():
    check_new("mimalloc")


def check_api(name, target=None):
    target = target or preloaded(name, "alloc_api", name)
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    check_truth(run, lines, target.pid)
    check_frees(run, lines)
    return run


@fact
def functions_that_only_jemalloc_has_are_counted_to_the_byte():
    run = check_api("jemalloc")
    # xallocx that cannot do it in place has not failed: it answers so, and the block stays.
    equal(run.summary()["alloc"]["failed"], 0, "calls that returned an error")


@fact
def functions_that_only_tcmalloc_has_are_counted_to_the_byte():
    check_api("tcmalloc")


@fact
def functions_that_only_mimalloc_has_are_counted_to_the_byte():
    check_api("mimalloc")


@fact
def names_and_calls_of_googles_tcmalloc_are_counted_to_the_byte():
    check_api("google", preloaded(os.path.join(TARGETS, "lib_google.so"), "alloc_api", "google"))


def linked(name, *args, package="libjemalloc-dev"):
    if not os.path.exists(os.path.join(TARGETS, name)):
        skip(f"what it is linked with was not installed when targets were made ({package})")
    os.environ["ALLOC_TRUTH_OTHER"] = "1"
    try:
        return Target(name, *args)
    finally:
        del os.environ["ALLOC_TRUTH_OTHER"]


@fact
def an_allocator_that_is_linked_in_is_counted_to_the_byte():
    target = linked("alloc_truth_jemalloc", 1, 3000)
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    check_truth(run, lines, target.pid)
    check_frees(run, lines, 48)
    target = linked("new_truth_jemalloc")
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    check_truth(run, lines, target.pid)


@fact
def musl_is_counted_to_the_byte_though_it_has_no_unwind_tables():
    target = linked("alloc_truth_musl", 4, 2000, package="musl-tools")
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    check_truth(run, lines, target.pid)
    check_frees(run, lines, 48)


@fact
def musl_as_a_shared_library_is_counted_to_the_byte():
    target = linked("alloc_truth_musl_shared", 4, 2000, package="musl-tools")
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    check_truth(run, lines, target.pid)
    check_frees(run, lines, 48)


@fact
def an_allocator_with_the_prefix_that_rust_gives_it_is_counted_to_the_byte():
    check_api("jemalloc", linked("alloc_api_rjem", "jemalloc", "_rjem_"))


@fact
def allocator_that_is_loaded_during_the_run_is_counted_to_the_byte():
    target = Target("alloc_late")

    def during():
        target.ask("load")
        deadline = time.monotonic() + READY_SEC
        # A probe in each of its two functions: how soon that is the machine decides.
        while sum("lib_late" in path for path, _ in text_differences(target.pid)) < 2:
            if time.monotonic() > deadline:
                raise Broken(f"no probes came into the library in {READY_SEC} s")
            time.sleep(0.02)
        return target.ask("go")
    run, lines = record(("-p", target.pid, *EXACT), during)
    # dlopen() itself has used malloc.
    check_truth(run, lines, target.pid, total_is_all=False)
    check(any("allocator's file was mapped in the run" in x for x in run.summary()["notes"]),
          "no word of the time before its probes were there")


def stripped(name="alloc_truth_static"):
    """A program without symbols, and the file that holds them."""
    if not os.path.exists(os.path.join(TARGETS, name)):
        skip("what it is linked with was not installed when targets were made (libjemalloc-dev)")
    objcopy, where = tool("objcopy"), scratch("stripped")
    if not objcopy:
        skip("objcopy is not installed (binutils)")
    os.mkdir(where)
    program, debug = os.path.join(where, "program"), os.path.join(where, "program.debug")
    original = os.path.join(TARGETS, name)
    subprocess.run([objcopy, "--only-keep-debug", original, debug], check=True)
    subprocess.run([objcopy, "--strip-all", f"--add-gnu-debuglink={debug}", original, program],
                   check=True)
    return program, debug


@fact
def a_stripped_static_program_is_counted_by_its_debug_file():
    program, _ = stripped()
    target = Target(program, 1, 2000)
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    check_truth(run, lines, target.pid)


@fact
def a_stripped_static_program_without_one_is_refused_by_name():
    program, debug = stripped()
    os.unlink(debug)
    target = Target(program, 1, 100)
    run = Run("-p", target.pid, *EXACT)
    run.ready()
    run.stop()
    check(program in run.stderr and "stripped" in run.stderr, f"it is not named: {run.stderr}")


@fact
def an_allocator_inside_a_stripped_program_is_found_by_its_debug_file():
    program, _ = stripped("je_allocs_rjem")
    target = Target(program)
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run 1000"))
    # 1,000 small, 20 large, 2,000 churned, 100 times realloc.
    equal(run.summary()["alloc"]["objects"], 3120, "allocations")


@fact
def an_allocator_inside_a_stripped_program_without_one_is_refused_by_name():
    program, debug = stripped("je_allocs_rjem")
    os.unlink(debug)
    target = Target(program)
    run = Run("-p", target.pid, *EXACT)
    run.ready()
    run.stop()
    check(program + " has jemalloc linked in" in run.stderr and "debug file" in run.stderr,
          f"it is not named: {run.stderr}")
    equal(run.status, 3, "exit status")


@fact
def program_that_catches_what_an_own_new_throws_survives():
    for name in ("jemalloc", "tcmalloc"):
        target = preloaded(name, "bad_alloc")
        run, _ = record(("-p", target.pid, *EXACT), lambda: (target.ask("go"), has_worked(target.pid, 0.1)))
        if not check(target.alive(), f"{name}: the target died: {target.how_it_ended()}"):
            return
        answer = dict(target.ask("stop"))
        check(answer["caught"] > 0, f"{name}: the target never threw")
        equal(answer["caught"] + answer["nulls"], answer["tried"], f"{name}: caught and nulls")
        check(run.profile("alloc").sum("alloc_objects/count", pid=target.pid) > 0,
              f"{name}: no allocation was seen: the probes were not there")
        text_is_as_its_files(target.pid)


main()
