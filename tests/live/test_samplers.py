#!/usr/bin/python3
"""Samplers that runtimes and allocators have of their own, beside the profiles that these write.

Both are of the very same samples, and weigh them by the same rule: figures are equal, but for what
rounding takes off each sample and each row (a byte, and an object). Against what the program did,
they are within chance: 5 sigma of at most sqrt(rate x bytes) (test_sampled.py).
"""

import math
import os
import subprocess
import time

import pprof_reader
from harness import *

RATE = 512 * 1024
OWN = ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"]
SIGMAS = 5
ROUNDS = 20000
FUNCTIONS = ("main.keepNodes", "main.keepWide", "main.keepSlabs", "main.churn")


class Commanded(Target):
    """A target by its path."""

    def __init__(self, path, *args, **kw):
        Child.__init__(self, [path, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       **kw)
        self._line("ready", READY_SEC)


@functools.lru_cache(None)
def go_build(name, *options):
    need("go")
    path = scratch(name)
    env = {**os.environ, "GOCACHE": os.path.join(BUILD, "go-cache"), "GO111MODULE": "off",
           "GOFLAGS": "", "CGO_ENABLED": "0"}
    source = os.path.join(TOP, "tests/targets", f"{name}.go")
    out = subprocess.run([tool("go"), "build", "-o", path, *options, source], env=env,
                         capture_output=True, check=False)
    if out.returncode:
        raise Broken(f"go build: {out.stderr.decode()[-500:]}")
    return path


def go_run(path, *commands, options=("--only", "alloc")):
    """Runs the commands while memscope listens: (the run, the answers, Go's own profile)."""
    own = scratch("own.pb.gz")
    t = Commanded(path)

    def during():
        lines = []
        for command in (*commands, f"profile {own}"):
            lines += t.ask(command)
        return lines
    r, lines = record(("-p", t.pid, *options), during)
    t.end()
    return r, lines, pprof_reader.read(own)


@once
def go_plain():
    return go_run(go_build("go_allocs"), f"run {ROUNDS}")


def total(profile, kind, name):
    """Of the function's own calls: what Go's runtime allocates for itself on the system's stack (a
    goroutine's record) is on our stacks below whoever set it off; Go's own end at that stack."""
    i = profile.types.index(kind)
    return sum(s.values[i] for s in profile.select(name)
               if all(f.name != "runtime.systemstack" for f in s.frames))


def same_samples(run, own, rate=RATE):
    """By function: what was allocated, and what lives."""
    equal(own.types, OWN, "types of Go's own profile")
    alloc, heap = run.profile("alloc"), run.profile("heap")
    told = 0
    for name in FUNCTIONS:
        rows = len(list(own.select(name)))
        for kind in OWN:
            ours = total(heap if kind.startswith("inuse") else alloc, kind, name)
            theirs = total(own, kind, name)
            # Theirs is cut to whole bytes by row; ours is rounded by sample.
            slack = rows + theirs / 1000 if "objects" in kind else rows + 0.5 * theirs / rate + 64
            near(ours, theirs, slack, f"{kind} of {name} beside Go's own profile")
        told += own.sum(OWN[1], name)
    check(told > 0, "Go's own profile has none of it")


@fact
def go_is_listened_to_by_default_and_named():
    run, _, _ = go_plain()
    a = run.summary()["alloc"]
    equal(a["tier"], "sampled", "tier")
    equal(a["sampler"], "Go's runtime", "sampler")
    equal(a["rate"], RATE, "rate")
    sites = {row["function"] for row in a["sites"]}
    check(set(FUNCTIONS) <= sites, f"sites of allocations: {sites}")


@fact
def go_figures_are_those_of_gos_own_heap_profile():
    run, _, own = go_plain()
    same_samples(run, own)
    notes = " ".join(run.summary()["notes"])
    check("address came again" not in notes, notes)


@fact
def go_figures_are_within_chance_of_the_truth():
    run, lines, _ = go_plain()
    alloc, heap = run.profile("alloc"), run.profile("heap")
    for _, name, _, size, live in (line for line in lines if line[0] == "site"):
        near(alloc.sum(OWN[1], name), size, SIGMAS * math.sqrt(RATE * max(size, RATE)),
             f"bytes of {name}")
        near(heap.sum(OWN[3], name), live, SIGMAS * math.sqrt(RATE * max(live, RATE)),
             f"live bytes of {name}")


@fact
def go_memory_that_was_collected_is_not_live():
    run, _, own = go_run(go_build("go_allocs"), f"run {ROUNDS}", "drop")
    same_samples(run, own)
    heap, alloc, dropped = run.profile("heap"), run.profile("alloc"), ("main.keepSlabs", "main.keepNodes")
    live = sum(heap.sum(OWN[3], name) for name in dropped)
    # Go's collector takes each word in a frame that was interrupted for a pointer: of what was dropped a block may stay, by its own profile, too.
    near(live, sum(own.sum(OWN[3], name) for name in dropped), 64, "live bytes of what was dropped, beside Go's own profile")
    check(live <= sum(alloc.sum(OWN[1], name) for name in dropped) / 50, f"{live} bytes of what was dropped are live")
    check(heap.sum(OWN[3], "main.keepWide") > 0, "what was kept is live")


@fact
def go_rate_that_the_program_sets_is_what_samples_weigh_by():
    run, _, own = go_run(go_build("go_allocs"), "rate 65536", f"run {ROUNDS}")
    same_samples(run, own, 65536)
    equal(run.summary()["alloc"]["rate"], 65536, "rate")


@fact
def go_stripped_is_listened_to_and_its_rate_assumed():
    run, _, own = go_run(go_build("go_allocs", "-ldflags=-s -w"), f"run {ROUNDS}")
    same_samples(run, own)
    check(any("is assumed" in note for note in run.summary()["notes"]), "the rate is not known")


@fact
def go_position_independent_is_listened_to():
    run, _, own = go_run(go_build("go_allocs", "-buildmode=pie"), f"run {ROUNDS}")
    same_samples(run, own)


@fact
def go_command_is_listened_to_from_its_beginning():
    own = scratch("own.pb.gz")
    script = f"run {ROUNDS}\nprofile {own}\nquit\n"
    path = scratch("commands")
    with open(path, "w", encoding="ascii") as f:
        f.write(script)
    run = Run("--only", "alloc", "--", go_build("go_allocs"), path)
    run.must()
    equal(run.summary()["alloc"]["sampler"], "Go's runtime", "sampler")
    same_samples(run, pprof_reader.read(own))


@fact
def go_program_whose_linker_turned_it_off_is_reported():
    t = Commanded(go_build("go_quiet"))
    run = Run("-p", t.pid, "--only", "alloc", "-d", 0.5)
    run.finish()
    a = run.summary()["alloc"]
    check("never asks for a heap profile" in (a.get("reason") or ""), f"it does not say why: {a}")
    out = subprocess.run([MEMSCOPE, "doctor", "-p", str(t.pid)], capture_output=True, check=False)
    check(b"net/http/pprof" in out.stdout, "doctor does not say what to do")



# --- jemalloc -------------------------------------------------------------------------------------

JE_LG = 14
JE_RATE = 1 << JE_LG
JE_CONF = f"prof:true,lg_prof_sample:{JE_LG},prof_accum:true"
JE_FUNCTIONS = ("keep_small", "keep_large", "keep_early", "churn", "grow")
SAMPLED = ("--alloc=sampled", "--only", "alloc", "--max-overhead", "100000")


def je_target(name="je_allocs_jemalloc", conf=JE_CONF, **env):
    path = os.path.join(TARGETS, name)
    if not os.path.exists(path):
        skip("libjemalloc_pic.a (libjemalloc-dev) is not installed")
    return Commanded(path, env={**os.environ, "MALLOC_CONF": conf, **env})


def functions_of(path):
    """[(start, end, name)] of a program that is where its file says."""
    out = subprocess.run(["nm", "-S", path], capture_output=True, check=True).stdout.decode()
    rows = [line.split() for line in out.splitlines()]
    return [(int(r[0], 16), int(r[0], 16) + int(r[1], 16), r[3]) for r in rows
            if len(r) == 4 and r[2] in "tT"]


def je_dump(dump, program):
    """{function: [objects, bytes, live objects, live bytes]} of jemalloc's own profile, scaled as
    jeprof scales it: row by row."""
    functions, out = functions_of(program), {}
    with open(dump, encoding="ascii") as f:
        rate = int(re.match(r"heap_v2/(\d+)", f.readline()).group(1))
        stack = []
        for line in f:
            if line.startswith("MAPPED_LIBRARIES"):
                break
            if line.startswith("@"):
                stack = {name for word in line.split()[1:] for start, end, name in functions
                         if start <= int(word, 16) - 1 < end}
            m = re.match(r"\s+t\*: (\d+): (\d+) \[(\d+): (\d+)\]", line)
            if not m or not stack:
                continue
            live, live_bytes, all_, all_bytes = map(int, m.groups())
            row = []
            for n, size in ((all_, all_bytes), (live, live_bytes)):
                p = -math.expm1(-size / n / rate) if n else 1
                row += [n / p, size / p]
            for name in stack:
                out[name] = [a + b for a, b in zip(out.get(name, [0] * 4), row)]
    return rate, out


def je_run(t, *commands, options=SAMPLED):
    dump = scratch("own.heap")

    def during():
        lines = []
        for command in (*commands, f"dump {dump}"):
            lines += t.ask(command)
        return lines
    run, lines = record(("-p", t.pid, *options), during)
    if ["failed"] in lines:
        raise Broken("jemalloc did not write its profile")
    return run, lines, je_dump(dump, t.argv[0])


def je_same(run, own, functions=JE_FUNCTIONS):
    rate, rows = own
    equal(rate, JE_RATE, "rate of jemalloc's own profile")
    alloc, heap = run.profile("alloc"), run.profile("heap")
    for name in functions:
        ours = [alloc.sum(OWN[0], name), alloc.sum(OWN[1], name),
                heap.sum(OWN[2], name), heap.sum(OWN[3], name)]
        # Its file has whole numbers, solved back from the estimates; and jemalloc rounds the objects
        # that each sample stands for, one or more, to an eighth.
        for kind, a, b in zip(OWN, ours, rows.get(name, [0] * 4)):
            slack = 0.002 * b + 2 * JE_RATE if "space" in kind else b / 16 + 4
            near(a, b, slack, f"{kind} of {name} beside jemalloc's own profile")
    check(rows["churn"][1] > 0, "jemalloc's own profile has none of it")


@once
def je_plain():
    t = je_target()
    t.ask("early 30000")
    return je_run(t, "early 30000", "run 30000", "drop 30000")


@fact
def jemalloc_is_listened_to_and_named():
    run, _, _ = je_plain()
    a = run.summary()["alloc"]
    equal([a["tier"], a["sampler"], a["rate"]], ["sampled", "jemalloc", JE_RATE],
          "tier, sampler, rate")


@fact
def jemalloc_figures_are_those_of_its_own_profile():
    run, _, own = je_plain()
    je_same(run, own, ("keep_small", "keep_large", "churn", "grow"))


@fact
def jemalloc_frees_of_blocks_from_before_the_run_leave_its_own_alone():
    run, _, _ = je_plain()
    heap, size = run.profile("heap"), 30000 * 1024
    sigma = math.sqrt(JE_RATE * size)
    # Of 30,000 pre-existing blocks and as many of the run, of one stack, the former were freed.
    near(heap.sum(OWN[3], "keep_early"), size, SIGMAS * sigma, "live bytes of keep_early")
    near(run.profile("alloc").sum(OWN[1], "keep_early"), heap.sum(OWN[3], "keep_early"), 1,
         "allocated by keep_early, of which none was freed")
    check(run.summary()["alloc"]["earlier_frees"] > 1000, "frees of earlier blocks")


@fact
def jemalloc_figures_are_within_chance_of_the_truth():
    run, lines, _ = je_plain()
    for _, name, _, size, live in (line for line in lines if line[0] == "site"):
        for profile, kind, want in (("alloc", OWN[1], size), ("heap", OWN[3], live)):
            near(run.profile(profile).sum(kind, name), want,
                 SIGMAS * math.sqrt(JE_RATE * max(want, JE_RATE)), f"{kind} of {name}")


def je_library():
    """Debian's jemalloc as a library whose symbols are in a debug file beside it."""
    need("gcc", "objcopy", "strip")
    archive = f"/usr/lib/{os.uname().machine}-linux-gnu/libjemalloc_pic.a"
    if not os.path.exists(archive):
        skip("libjemalloc_pic.a (libjemalloc-dev) is not installed")
    path = scratch("libjemalloc.so")
    debug = path + ".debug"
    for argv in (["gcc", "-shared", "-Wl,--build-id", "-o", path, "-Wl,--whole-archive", archive,
                  "-Wl,--no-whole-archive", "-ldl", "-lm", "-lstdc++"],
                 ["objcopy", "--only-keep-debug", path, debug], ["strip", path],
                 ["objcopy", f"--add-gnu-debuglink={debug}", path]):
        subprocess.run(argv, check=True, capture_output=True, cwd=os.path.dirname(path))
    return path, debug


@fact
def jemalloc_stripped_is_listened_to_by_its_debug_file_or_refused_by_name():
    path, debug = je_library()
    t = je_target("je_allocs", LD_PRELOAD=path)
    run, _, own = je_run(t, "run 20000")
    je_same(run, own, ("keep_small", "keep_large", "churn"))
    os.unlink(debug)
    run, _ = record(("-p", t.pid, *SAMPLED), lambda: t.ask("run 1000"), status=3)
    said = json.dumps(run.summary())
    check("libjemalloc2-dbgsym" in said, f"what to install: {said[:600]}")


@fact
def jemalloc_is_listened_to_where_every_call_would_cost_too_much():
    t = je_target()
    t.say("churn 2000000000")
    # However little of a CPU it gets: every call would cost more than that. But the look is one of 20 ms,
    # and a busy machine may run it in none of them: then nothing is known of its calls.
    for _ in range(20):
        run = Run("-p", t.pid, "--only", "alloc", "-d", 1, "--max-overhead", 0.2)
        run.finish()
        a = run.summary()["alloc"]
        if a.get("calls_per_s"):
            break
    equal([a["tier"], a.get("sampler")], ["sampled", "jemalloc"], f"tier, sampler ({a})")


@fact
def doctor_says_what_turns_jemallocs_sampler_on():
    t = je_target(conf="")
    out = subprocess.run([MEMSCOPE, "doctor", "-p", str(t.pid)], capture_output=True, check=False)
    check(b"MALLOC_CONF=prof:true" in out.stdout, f"off: {out.stdout.decode()}")
    t = je_target()
    out = subprocess.run([MEMSCOPE, "doctor", "-p", str(t.pid)], capture_output=True, check=False)
    check(b"one in 16.0 KiB: listened to" in out.stdout, f"on: {out.stdout.decode()}")



# --- tcmalloc -------------------------------------------------------------------------------------

TC_RATE = 1 << 16


@functools.lru_cache(None)
def tc_program():
    need("g++", "nm")
    path = scratch("tc_allocs")
    done = subprocess.run(["g++", "-O2", "-fno-builtin", "-fno-omit-frame-pointer", "-no-pie", "-o", path,
                           os.path.join(TOP, "tests/targets/tc_allocs.cc"), "-ltcmalloc"],
                          capture_output=True, check=False)
    if done.returncode:
        skip("tcmalloc (libgoogle-perftools-dev) is not installed")
    return path


def tc_target(rate=TC_RATE):
    env = {**os.environ, "TCMALLOC_SAMPLE_PARAMETER": str(rate)}
    return Commanded(tc_program(), env=env)


def tc_dump(path, program):
    """{function: [samples, bytes of those, bytes as pprof scales them]} of what lives, by tcmalloc."""
    functions, out = functions_of(program), {}
    with open(path, encoding="ascii", errors="replace") as f:
        rate = int(re.search(r"@ heap_v2/(\d+)", f.readline()).group(1))
        for line in f:
            m = re.match(r"\s*(\d+):\s*(\d+) \[.*?\] @ (.*)", line)
            if not m:
                break
            n, size = int(m.group(1)), int(m.group(2))
            for name in {name for word in m.group(3).split() for start, end, name in functions
                         if start <= int(word, 16) - 1 < end}:
                row = out.setdefault(name, [0, 0])
                row[0] += n
                row[1] += size / -math.expm1(-size / n / rate)
    return rate, out


@once
def tc_plain():
    t, own = tc_target(), scratch("own.heap")

    def during():
        return t.ask("run 50000") + t.ask(f"dump {own}")
    run, lines = record(("-p", t.pid, *SAMPLED), during)
    equal(lines, [], "complaints of the target")
    return run, tc_dump(own, t.argv[0])


@fact
def tcmalloc_is_listened_to_and_what_it_does_not_tell_is_said():
    run, _ = tc_plain()
    a = run.summary()["alloc"]
    equal([a["tier"], a["sampler"], a["rate"]], ["sampled", "tcmalloc", TC_RATE],
          "tier, sampler, rate")
    equal([a["unreported"], a["live_bytes"]], [a["bytes_interval"]["samples"], 0],
          "samples whose frees are not told, live bytes")


@fact
def tcmalloc_figures_are_those_of_its_own_sample_and_within_chance_of_the_truth():
    run, (rate, own) = tc_plain()
    alloc = run.profile("alloc")
    equal(rate, TC_RATE, "rate of tcmalloc's own sample")
    # Its own sample is of what lives: all that these two allocate.
    for name, size in (("keep_small", 50000 << 10), ("keep_large", 50 << 20)):
        full = next(f for f in own if name in f)
        ours = sum(s.values[1] for s in alloc.samples if any(f.name.startswith(name) for f in s.frames))
        near(ours, own[full][1], own[full][0], f"bytes of {name} beside tcmalloc's own sample")
        near(ours, size, SIGMAS * math.sqrt(TC_RATE * size), f"bytes of {name}")
    ours = sum(s.values[1] for s in alloc.samples if any(f.name.startswith("churn") for f in s.frames))
    near(ours, 50000 << 12, SIGMAS * math.sqrt(TC_RATE * (50000 << 12)), "bytes of churn")


@fact
def doctor_says_what_turns_tcmallocs_sampler_on():
    t = tc_target(0)
    out = subprocess.run([MEMSCOPE, "doctor", "-p", str(t.pid)], capture_output=True, check=False)
    check(b"TCMALLOC_SAMPLE_PARAMETER=" in out.stdout, f"off: {out.stdout.decode()}")


main()
