#!/usr/bin/python3
"""The RSS breakdown: parts that add up to it, and pre-existing blocks."""

import csv
import re
import subprocess
import time

import programs
from harness import *

THREADS = 3
# For each thread the loader allocates a vector for its variables, and malloc its tcache, which cannot
# be told from a block while it is empty; dlsym() another; nobody traced those either.
LOADERS = 2 + 2 * THREADS


@once
def late():
    target = Target("ledger", THREADS)
    run, lines = record(["-p", target.pid, "--only", "alloc", "--alloc=exact", "--interval", 0.2],
                        lambda: (target.ask("go"), time.sleep(0.5))[0])
    return run, {line[0]: line[1:] for line in lines}


def ledger(run):
    return run.summary()["rss_breakdown"]


def adds_up(run, tolerance, what):
    found = ledger(run)
    parts = {name: part["resident_bytes"] for name, part in found["parts"].items()}
    equal(sum(parts.values()) + found["unexplained_bytes"], found["rss_bytes"], f"{what}: RSS")
    near(found["unexplained_bytes"], 0, tolerance * found["rss_bytes"], f"{what}: unexplained")
    check(min(parts.values()) >= 0, f"{what}: {parts}")
    return found, parts


@fact
def blocks_from_before_attach_are_found_to_the_byte():
    run, said = late()
    blocks, bytes_ = said["kept"]
    alloc = run.summary()["alloc"]
    within(alloc["preexisting_objects"], blocks, blocks + LOADERS, "pre-existing blocks")
    within(alloc["preexisting_bytes"], bytes_, bytes_ + 1024 * LOADERS, "their bytes")
    # The main thread's tcache was empty then.
    within(alloc["start_objects"], blocks + said["freed"][0],
           blocks + said["freed"][0] + LOADERS + 1, "blocks in use at the start")
    equal(alloc["earlier_frees"], said["freed"][0], "frees of pre-existing blocks")


@fact
def heap_profile_has_them_beside_what_was_traced():
    run, said = late()
    found = run.folded("heap")
    before = sum(v for s, v in found.items() if s.endswith(";[before attach]"))
    equal(before, run.summary()["alloc"]["preexisting_bytes"], "[before attach] in heap.folded")
    equal(sum(v for s, v in found.items() if ";make_here" in s), said["made"][2], "what was made")
    check(not any("[before attach]" in s for s in run.folded("alloc")),
          "it was not allocated in the run")


@fact
def first_report_after_attach_adds_up():
    run, said = late()
    # Idle when it is read: only the pages that reading itself brings in, or takes, are left.
    found, parts = adds_up(run, 0.005, "ledger")
    blocks = found["parts"]
    equal(blocks["live_traced"]["blocks"], said["made"][0], "blocks of the run")
    equal(blocks["live_traced"]["bytes"], said["made"][1], "their bytes")
    # All of it was touched, but for the ends of large blocks' last pages.
    near(parts["live_preexisting"], said["kept"][1], 4096 * 4, "resident of the pre-existing")
    within(blocks["free_retained"]["blocks"], 1, said["freed"][0] + 100, "pieces that are free")
    # What was freed is held, but for the large ones' mappings, and made into something else.
    check(blocks["free_retained"]["bytes"] > (said["freed"][1] - (10 << 20)) / 2,
          f"held: {blocks['free_retained']}")
    equal(blocks["heap_unwalked"]["bytes"], 0, "not walked")
    equal(found["walked"], "glibc", "allocator")
    check(found["caveat"] is None, f"caveat: {found['caveat']}")
    check(parts["stacks"] >= 4096 * (1 + THREADS), f"stacks: {parts['stacks']}")


@fact
def rows_of_rss_breakdown_csv_add_up():
    run, _ = late()
    with open(run.path("rss_breakdown.csv"), newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    check(rows, "no row")
    for row in rows:
        n = {k: int(v) for k, v in row.items() if k not in ("timestamp", "traced_bytes")}
        parts = sum(v for k, v in n.items() if k not in ("rss", "live_blocks", "live_bytes"))
        equal(parts, n["rss"], f"parts of {row}")
    first = rows[0]
    check(int(first["live_blocks"]) >= 70000, f"first row: {first}")


@fact
def program_that_is_watched_from_its_start_has_nothing_from_before():
    made = scratch("made")
    run = Run("--only", "alloc", "--alloc=exact", "--", "/bin/sh", "-c",
              "exec /usr/bin/python3 -c 'import sys, time; x = [bytes(5000) for i in range(2000)]; "
              "open(sys.argv[1], \"w\").close(); time.sleep(600)' \"$0\" >/dev/null 2>&1", made)
    run.ready()
    until(lambda: os.path.exists(made), "the program has made its blocks", FINISH_SEC)
    run.stop()
    run.must()
    os.kill(run.command_pid(), signal.SIGKILL)
    found, _ = adds_up(run, 0.05, "python3")
    equal(found["parts"]["live_preexisting"]["blocks"], 0, "pre-existing blocks")
    within(found["parts"]["live_traced"]["bytes"], 10_000_000, 60_000_000, "traced")
    # Objects are in use as well, and not traced.
    live = found["parts"]["live"]["bytes"] - found["objects"]["parts"]["live"]["bytes"]
    check(live < 0.02 * found["parts"]["live_traced"]["bytes"],
          f"in use, and neither traced nor from before: {found['parts']['live']}")


FAMILY = """
import os, sys
kept = bytearray(b"x" * 8_000_000)
def child():
    if not os.fork():
        own = [bytearray(b"y" * 3_000_000) for _ in range(10)]
        print("here", flush=True)
        sys.stdin.read()
        os._exit(0)
child()
for line in sys.stdin:
    child()
"""


@fact
def children_are_in_the_sum_whether_they_were_there_before_or_not():
    family = Child(["/usr/bin/python3", "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    family.process.stdout.readline()
    run = Run("-p", family.pid, "--only", "growth")
    run.ready()
    family.process.stdin.write(b"another\n")
    family.process.stdin.flush()
    family.process.stdout.readline()
    run.stop()
    run.must()
    found, _ = adds_up(run, 0.05, "a family")
    equal(found["processes"], 3, "processes")
    # Each child's own 30 MB, and in each of the three the parent's 8 MB.
    within(found["parts"]["live"]["bytes"], 2 * 30_000_000 + 3 * 8_000_000, 110_000_000, "in use")
    check("pages shared by several of them count in each" in open(run.path("summary.txt"), encoding="utf-8").read(),
          "the summary does not say that pages are shared")


@fact
def without_children_the_ledger_is_of_the_process_alone():
    family = Child(["/usr/bin/python3", "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    family.process.stdout.readline()
    run = Run("-p", family.pid, "--no-children", "--only", "growth", "-d", 0.3)
    run.finish()
    run.must()
    equal(ledger(run)["processes"], 1, "processes")


def preloaded(name, threads):
    library = os.path.join("/usr/lib/x86_64-linux-gnu", name)
    if not os.path.exists(library):
        skip(f"{name} is not installed")
    os.environ["LD_PRELOAD"] = library
    try:
        return Target("ledger", threads)
    finally:
        del os.environ["LD_PRELOAD"]


@once
def late_in_jemalloc():
    target = preloaded("libjemalloc.so.2", THREADS)
    # Whatever jemalloc's threads keep in their caches, it counts as allocated: so does the walk.
    run, lines = record(["-p", target.pid, "--only", "alloc", "--alloc=exact"],
                        lambda: (target.ask("go"), time.sleep(0.3))[0])
    return run, {line[0]: line[1:] for line in lines}


@fact
def jemalloc_is_walked_and_equal_to_its_own_statistics():
    run, said = late_in_jemalloc()
    found, _ = adds_up(run, 0.01, "jemalloc")
    allocated, _, retained = said["stats"]
    rows = found["parts"]
    equal(found["walked"], "jemalloc", "allocators")
    equal(rows["live"]["bytes"] + rows["live_preexisting"]["bytes"] + rows["live_traced"]["bytes"],
          allocated, "in use, by stats.allocated")
    check(rows["free_retained"]["bytes"] >= retained, f"held: {rows['free_retained']} of {retained} retained")
    equal(rows["heap_unwalked"]["bytes"], 0, "not walked")


@fact
def blocks_from_before_attach_are_found_in_jemalloc():
    run, said = late_in_jemalloc()
    alloc = run.summary()["alloc"]
    blocks, bytes_ = said["kept"]
    rows = ledger(run)["parts"]
    equal(rows["live_traced"]["bytes"], said["made"][1], "what was made")
    # Freed ones in the main thread's cache are among them: 200 at the most of each of 36 classes.
    within(alloc["preexisting_objects"], blocks, blocks + 200 * 36, "pre-existing blocks")
    within(alloc["preexisting_bytes"], bytes_, bytes_ + said["freed"][1], "their bytes")


def program_adds_up(start, walked, **more):
    child = start()
    run = Run("-p", child.pid, "--only", "growth", "-d", 2, **more)
    run.finish()
    run.must()
    # It goes on while it is read: a part of what it has is another by then.
    found, parts = adds_up(run, 0.05, start.__name__)
    equal(found["walked"], walked, "allocators")
    check(found["parts"]["live"]["blocks"] > 100, f"live: {found['parts']['live']}")
    return found, parts


@fact
def python_adds_up():
    program_adds_up(programs.python, "glibc, pymalloc")


@fact
def sqlite_adds_up():
    program_adds_up(programs.sqlite, "glibc")


@fact
def allocator_that_is_not_walked_is_named():
    path = scratch("libsnmalloc.so")
    shutil.copy(os.path.join(TARGETS, "lib_first.so"), path)
    target = preloaded(path, 1)
    run = Run("-p", target.pid, "--only", "growth", "-d", 0.5)
    run.finish()
    run.must()
    found, _ = adds_up(run, 0.005, "another allocator")
    equal(found["not_walked"], "libsnmalloc", "what is not walked")


@fact
def blocks_of_tcmalloc_are_found():
    target = preloaded("libtcmalloc_minimal.so.4", 1)
    run = Run("-p", target.pid, "--only", "growth", "-d", 0.5)
    run.finish()
    run.must()
    found, parts = adds_up(run, 0.005, "tcmalloc")
    equal(found["walked"], "tcmalloc", "allocators")
    check("not_walked" not in found or not found["not_walked"], f"not walked: {found.get('not_walked')}")
    check(parts["live"] > 40 << 20 and found["parts"]["heap_unwalked"]["bytes"] == 0, f"in use: {parts}")


@fact
def blocks_from_before_attach_are_found_in_mimalloc():
    target = preloaded("libmimalloc.so.2", THREADS)
    run, lines = record(["-p", target.pid, "--only", "alloc", "--alloc=exact"],
                        lambda: (target.ask("go"), time.sleep(0.3))[0])
    said = {line[0]: line[1:] for line in lines}
    found, _ = adds_up(run, 0.01, "mimalloc")
    equal(found["walked"], "mimalloc", "allocators")
    alloc, rows = run.summary()["alloc"], found["parts"]
    # It has no blocks of its own among them. What the main thread gives back of another's page is in
    # a list that is not followed, one of a page: 26 sizes of up to 896 bytes, some in two or three pages.
    more = LOADERS + THREADS * 26 * 3
    within(alloc["preexisting_objects"], said["kept"][0], said["kept"][0] + more, "pre-existing blocks")
    within(alloc["preexisting_bytes"], said["kept"][1], said["kept"][1] + 1024 * more, "their bytes")
    equal(rows["live_traced"]["blocks"], said["made"][0], "blocks of the run")
    equal(rows["live_traced"]["bytes"], said["made"][1], "their bytes")
    equal(rows["heap_unwalked"]["bytes"], 0, "not walked")


@fact
def redis_is_as_full_as_it_says():
    need("redis-server", "redis-benchmark", "redis-cli")
    port, where = str(programs.free_port()), scratch("redis")
    os.mkdir(where)
    server = Child(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                    "--appendonly", "no", "--dir", where], **programs.QUIET)
    programs.listens(port)
    subprocess.run(["redis-benchmark", "-p", port, "-n", "60000", "-r", "60000", "-t", "set,lpush",
                    "-d", "300", "-q", "-P", "16"], **programs.QUIET, timeout=FINISH_SEC, check=True)
    run = Run("-p", server.pid, "--only", "growth", "-d", 1)
    run.finish()
    run.must()
    said = subprocess.run(["redis-cli", "-p", port, "info", "memory"], capture_output=True,
                          timeout=10, check=True).stdout.decode()
    allocated = int(re.search(r"allocator_allocated:(\d+)", said).group(1))
    found, _ = adds_up(run, 0.02, "redis-server")
    equal(found["walked"], "jemalloc", "allocators")
    # The connection that asks has buffers of 16 KiB each way, and some.
    near(found["parts"]["live"]["bytes"], allocated, 128 << 10, "in use, by allocator_allocated")


main()
