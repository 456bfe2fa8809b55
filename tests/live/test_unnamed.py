#!/usr/bin/python3
"""An allocator that was linked in and has no symbol left: its functions are found by their behaviour, against
the symbol table of the same program before it was stripped; or it is said that they were not."""

import re

from containers import *
from harness import *

# Work between two calls: a few ten thousand calls a second on either of two threads.
SPINS = 20000


def stripped(name):
    """The program without symbols, and {function: address} of what they were."""
    path = os.path.join(TARGETS, name)
    if not os.path.exists(path):
        skip("what it is linked with was not installed when targets were made (libjemalloc-dev)")
    need("strip", "nm")
    program = os.path.join(scratch(name), name)
    os.makedirs(os.path.dirname(program))
    subprocess.run(["strip", "-o", program, path], check=True)
    table = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    return program, {line.split()[2]: int(line.split()[0], 16) for line in table.splitlines()
                     if len(line.split()) == 3}


def busy(target):
    """It works before anybody looks, and goes on."""
    target.ask("go")
    has_worked(target.pid, 0.2)
    return target


def found(run):
    """{address: "malloc"} of what the summary says."""
    notes = [x for x in run.summary()["notes"] if "found by their behaviour" in x]
    return {int(m[1], 16): m[2] for x in notes
            for m in re.finditer(r"0x([0-9a-f]+) as ([a-z_ ]+) \(1,\d{3} of 1,\d{3} results", x)}


def looked_at(target, **kw):
    """A run of two seconds on a target that works already."""
    return record(("-p", target.pid, "--json"), lambda: time.sleep(2), **kw)


def site_of(name, program, symbols):
    return f"[{os.path.basename(program)}+0x{symbols[name]:x}]"


def expected(symbols):
    return {symbols["_rjem_malloc"]: "malloc", symbols["_rjem_calloc"]: "calloc", symbols["_rjem_realloc"]: "realloc"}


@fact
def leak_of_a_static_service_without_a_name_is_found_and_its_full_cache_is_no_leak():
    program, symbols = stripped("service_rjem_static")
    target = busy(Target(program, SPINS))
    run = Run("-p", target.pid, "--interval", 0.5, "--max-overhead", 20, "--json")
    run.ready()
    run.rows(45)
    run.stop()
    leaked = next(line[2] for line in target.ask("stop") if line[:2] == ["site", "leak_here"])
    run.must()
    equal(found(run), expected(symbols), "functions found")
    alloc = run.summary()["alloc"]
    check(alloc["live_estimate"]["known"], f"live is not known: {alloc['live_estimate']}")
    sites = {x["function"]: x for x in alloc["live_sites"]}
    leak, pool = (site_of(x, program, symbols) for x in ("leak_here", "pool_here"))
    check(leak in sites and pool in {x["function"] for x in alloc["sites"]}, f"sites: {sorted(sites)}")
    equal([x["function"] for x in alloc["leaks"]], [leak], "leaks")
    # It also leaked before the run, and that is not counted: all of it is too much.
    check(0 < sites[leak]["low"] <= leaked, f"leaked {leaked} in all, estimated: {sites[leak]}")


@fact
def a_program_that_links_libc_dynamically_and_may_be_anywhere_is_searched_too():
    program, symbols = stripped("service_rjem")
    run, _ = looked_at(busy(Target(program, SPINS)))
    equal(found(run), expected(symbols), "functions found")


def in_a_container(engine_class):
    program, symbols = stripped("service_rjem_static")
    engine = engine_class()
    try:
        name = os.path.basename(program)
        target = busy(Served(engine, "unnamed", name, SPINS, options=("-v", f"{program}:/{name}:ro")))
        with open(f"/proc/{target.pid}/status", encoding="ascii") as f:
            check("Seccomp:\t2" in f.read(), "the container has no filter of system calls")
        run, _ = looked_at(target, env=engine.env)
        equal(found(run), expected(symbols), "functions found")
    finally:
        engine.end()


@fact
def a_service_under_dockers_default_filter_of_system_calls_is_searched_too():
    in_a_container(Docker)


@fact
def functions_of_an_allocator_that_nobody_knows_are_not_guessed():
    program, _ = stripped("service_static")
    target = busy(Target(program, SPINS))
    run, _ = looked_at(target)
    equal(run.summary()["alloc"]["objects"], 0, "allocations")
    note = next((x for x in run.summary()["notes"] if program in x), "")
    check("stripped" in note and "growth shows" in note, f"notes: {run.summary()['notes']}")
    check(target.alive(), f"the target died: {target.how_it_ended()}")


@fact
def program_that_catches_what_an_unnamed_new_throws_survives():
    program, symbols = stripped("bad_alloc_jemalloc")
    target = Target(program)
    target.ask("go")
    run, _ = looked_at(target)
    if not check(target.alive(), f"the target died: {target.how_it_ended()}"):
        return
    answer = dict(target.ask("stop"))
    check(answer["caught"] > 0, "the target never threw")
    equal(answer["caught"] + answer["nulls"], answer["tried"], "caught and nulls")
    equal(found(run).get(symbols["_Znwm"]), "operator new", f"found: {found(run)}")
    text_is_as_its_files(target.pid)


main()
