#!/usr/bin/python3
"""Reading profiles: memscope beside each format's own tool, on the same large file.

    make bench-readers [BENCHFLAGS="--stacks 1000000 --sites 100000 --rounds 3 jemalloc massif"]

Stacks of 24 frames as text and as pprof, and what jemalloc, gperftools, heaptrack and massif write of a program
that allocates from so many different stacks (many_stacks.c). Tools take turns. CPU time, which other work on the machine
disturbs less than the clock, of a tool with all it starts; the most memory that one process of it had resident. Medians.

flamegraph.pl and stackcollapse-perf.pl are in no package: FLAMEGRAPH=FOLDER takes them from there.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(HERE, "../../build")))
MEMSCOPE = os.environ.get("MEMSCOPE", os.path.join(BUILD, "memscope"))
FLAMEGRAPH = os.environ.get("FLAMEGRAPH", "")
STACKS = os.path.join(BUILD, "tests/bench/many_stacks")


class Missing(Exception):
    """A tool that is not here."""


def need(tool):
    path = shutil.which(tool) or (tool if os.path.exists(tool) else None)
    if not path:
        raise Missing(f"{tool} is not installed")
    return path


def perl_script(name):
    if not FLAMEGRAPH:
        raise Missing(f"{name} is in no package (FLAMEGRAPH=FOLDER)")
    return need(os.path.join(FLAMEGRAPH, name))


def made(path, argv, env=None, stdout=False):
    """Runs argv unless what it makes is there."""
    if not os.path.exists(path):
        with open(path + ".part" if stdout else os.devnull, "wb") as out:
            subprocess.run(argv, stdout=out, stderr=subprocess.DEVNULL, check=True,
                           env=dict(os.environ, **(env or {})))
        if stdout:
            os.rename(path + ".part", path)
    if not os.path.exists(path):
        raise Missing(f"{argv[0]} wrote no {os.path.basename(path)}")
    return path


def text(folder, kind, n):
    return made(f"{folder}/{kind}-{n}", [STACKS, kind, str(n)], stdout=True)


def newest(folder, prefix):
    files = [os.path.join(folder, f) for f in os.listdir(folder) if f.startswith(prefix)]
    return max(files, key=os.path.getmtime) if files else None


def library(name):
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"):
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    raise Missing(f"{name} is not installed")


# --- rows: (what, memscope's argv, name of the other, its argv) ------------------------------------

def folded(folder, a):
    path = text(folder, "folded", a.stacks)
    return (f"{a.stacks:,} folded stacks to SVG", [MEMSCOPE, "flame", path, "-o", "/dev/null", "--format", "svg"],
            "flamegraph.pl", ["perl", perl_script("flamegraph.pl"), path])


def perf(folder, a):
    path = text(folder, "perf", a.sites)
    return (f"{a.sites:,} samples of perf script to folded stacks",
            [MEMSCOPE, "convert", path, "-o", "/dev/null", "--format", "folded"],
            "stackcollapse-perf.pl", ["perl", perl_script("stackcollapse-perf.pl"), path])


def pprof_of(folder, a):
    path = f"{folder}/stacks-{a.stacks}.pb.gz"
    return made(path, [MEMSCOPE, "convert", text(folder, "folded", a.stacks), "-o", path])


def pprof(folder, a):
    return (f"{a.stacks:,} stacks of pprof, the largest functions", [MEMSCOPE, "report", pprof_of(folder, a)],
            "go tool pprof -top", [need("go"), "tool", "pprof", "-top", pprof_of(folder, a)])


def pprof_convert(folder, a):
    return (f"{a.stacks:,} stacks of pprof, read and written",
            [MEMSCOPE, "convert", pprof_of(folder, a), "-o", f"{folder}/out.pb.gz"],
            "go tool pprof -proto", [need("go"), "tool", "pprof", "-proto", "-output", f"{folder}/out-go.pb.gz",
                                     pprof_of(folder, a)])


def jemalloc(folder, a):
    prefix = f"je-{a.sites}"
    need("jeprof")
    if not newest(folder, prefix):
        subprocess.run([STACKS, "alloc", str(a.sites)], check=True, stderr=subprocess.DEVNULL, env=dict(
            os.environ, LD_PRELOAD=library("libjemalloc.so.2"),
            MALLOC_CONF=f"prof:true,lg_prof_sample:0,prof_final:true,prof_prefix:{folder}/{prefix}"))
    dump = newest(folder, prefix)
    return (f"jemalloc's dump of {a.sites:,} sites", [MEMSCOPE, "report", dump],
            "jeprof --text", ["jeprof", "--text", STACKS, dump])


def gperftools(folder, a):
    prefix = f"gp-{a.sites}"
    need("google-pprof")
    if not newest(folder, prefix):
        subprocess.run([STACKS, "alloc", str(a.sites)], check=True, stderr=subprocess.DEVNULL, env=dict(
            os.environ, LD_PRELOAD=library("libtcmalloc.so.4"), HEAPPROFILE=f"{folder}/{prefix}"))
    dump = newest(folder, prefix)
    return (f"gperftools' profile of {a.sites:,} sites", [MEMSCOPE, "report", dump],
            "google-pprof --text", ["google-pprof", "--text", STACKS, dump])


def heaptrack(folder, a):
    prefix = f"ht-{a.sites}"
    if not newest(folder, prefix):
        subprocess.run([need("heaptrack"), "-o", f"{folder}/{prefix}", STACKS, "alloc", str(a.sites)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    file = newest(folder, prefix)
    return (f"heaptrack's file of {a.sites:,} sites", [MEMSCOPE, "report", file],
            "heaptrack_print", [need("heaptrack_print"), file])


def massif(folder, a):
    path = f"{folder}/massif-{a.sites}"
    made(path, [need("valgrind"), "--tool=massif", "--threshold=0", "--depth=40", f"--massif-out-file={path}", STACKS,
                "alloc", str(a.sites)])
    return (f"massif's file of {a.sites:,} sites", [MEMSCOPE, "report", path],
            "ms_print", [need("ms_print"), "--threshold=0", path])


ROWS = {f.__name__: f for f in (folded, perf, pprof, pprof_convert, jemalloc, gperftools, heaptrack, massif)}


# --- measuring --------------------------------------------------------------------------------------

def measured(argv):
    """CPU seconds and MB of argv with all that it waits for."""
    with open(os.devnull, "wb") as out, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(argv, stdout=out, stderr=errors)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 3):
            errors.seek(0)
            raise RuntimeError(f"{argv[0]} ended with {child.returncode}: "
                               + errors.read().decode(errors="replace")[-300:])
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def row(what, ours, name, theirs, rounds):
    results = [[], []]
    for _ in range(rounds):
        for side, argv in enumerate((ours, theirs)):
            results[side].append(measured(argv))
    (our_s, our_mb), (their_s, their_mb) = ([statistics.median(column) for column in zip(*side)] for side in results)
    print(f"| {what} | {our_s:.2f}; {our_mb:.0f} | {name} | {their_s:.2f}; {their_mb:.0f} | "
          f"{their_s / our_s:.1f} | {their_mb / our_mb:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stacks", type=int, default=1000000)
    parser.add_argument("--sites", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", help="the folder of what is read, which stays there")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    a = parser.parse_args()
    unknown = [r for r in a.rows if r not in ROWS]
    if unknown:
        parser.error(f"there is no row {unknown[0]}; there are {', '.join(ROWS)}")
    folder = a.keep or tempfile.mkdtemp(prefix="memscope-readers-", dir=BUILD)
    os.makedirs(folder, exist_ok=True)
    print(f"Load {os.getloadavg()[0]:.0f} on {os.cpu_count()} CPUs.\n\n"
          "| read | memscope: CPU s; MB | beside | CPU s; MB | times the time | times the memory |\n"
          "|---|--:|---|--:|--:|--:|", flush=True)
    try:
        for name in a.rows or ROWS:
            try:
                row(*ROWS[name](folder, a), a.rounds)
            except Missing as e:
                print(f"| {name} | | not measured: {e} | | | |", flush=True)
            except (RuntimeError, subprocess.CalledProcessError) as e:
                print(f"| {name} | | failed: {e} | | | |", flush=True)
    finally:
        if not a.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
