#!/usr/bin/python3
"""What unwind tables cost: to make, to keep, to read back, in the pool; and the start of a run.

    make bench-tables [BENCHFLAGS="--units 70 --runs 5"]

Files: this machine's libc, node, cc1, libLLVM where they are, and a program of 500 MB with debug info
and hundreds of thousands of functions, made here: one C++ unit of many containers compiled once
(-O0 -g3), copied as an object under other names as often as --units says, and linked. Times are
medians of --runs, the page cache warm; memory is by how much making a table raises the largest
resident set.

With programs to attach to (--pid, several), as root: how long after its beginning a run has its first
moment in which a sample may come, without kept tables (cold) and with them, and what of that went
where, as -v says it.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build")))
WHERE = os.path.join(BUILD, "bench-tables")
FILES = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/usr/bin/node",
         "/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"]
BEGUN = re.compile(r"begun after ([\d.]+) ms: ([\d.]+) to load the programs, ([\d.]+) for "
                   r"allocators, ([\d.]+) for unwind tables, ([\d.]+) to attach")


def run(*argv, **kw):
    return subprocess.run(argv, check=True, capture_output=True, **kw).stdout


def big_program(units):
    """Names in an object are bytes like others: one of the same length makes it another unit."""
    program = os.path.join(WHERE, f"big-{units}")
    if os.path.exists(program):
        return program
    os.makedirs(WHERE, exist_ok=True)
    print(f"# making {program}: a minute", file=sys.stderr)
    run("g++", "-std=c++17", "-O0", "-g3", "-c", "-o", f"{WHERE}/unit.o", f"{HERE}/names_unit.cc")
    with open(f"{WHERE}/unit.o", "rb") as f:
        unit = f.read()
    names = [b"Ix%03d" % i for i in range(units)]
    main = "".join(f"long entry_{n.decode()}(long);\n" for n in names)
    main += "int main(int c, char **v)\n{\n\tlong s = 0;\n"
    main += "".join(f"\ts += entry_{n.decode()}(c * 20);\n" for n in names) + "\treturn s == 42;\n}\n"
    run("g++", "-x", "c++", "-O2", "-g", "-c", "-o", f"{WHERE}/main.o", "-", input=main.encode())
    objects = [f"{WHERE}/{n.decode()}.o" for n in names]
    for name, path in zip(names, objects):
        with open(path, "wb") as f:
            f.write(unit.replace(b"Id000", name))
    run("g++", "-o", program, f"{WHERE}/main.o", *objects)
    for path in [*objects, f"{WHERE}/unit.o", f"{WHERE}/main.o"]:
        os.unlink(path)
    return program


def sizes_and_times(files, runs):
    print(f"{'file':28} {'MB':>6} {'.eh_frame':>10} {'functions':>9} {'rows':>8} {'rules':>5} "
          f"{'table':>9} {'make ms':>8} {'read ms':>8} {'memory':>8}")
    with tempfile.TemporaryDirectory() as cache:
        for path in files:
            line = run(os.path.join(BUILD, "tests/bench/tables"), cache, str(runs), path).decode()
            (_, size, eh, functions, rows, rules, table, make, load, rss) = line.rstrip().split("\t")
            print(f"{os.path.basename(path):28} {int(size) / 1e6:6.1f} {int(eh):10} {functions:>9} "
                  f"{rows:>8} {rules:>5} {int(table):9} {make:>8} {load:>8} {int(rss) / 1024:5.0f} MiB")


def starts(pids, runs):
    print(f"\n{'process':20} {'tables':>7} {'first sample may come after, ms':>32}   of that: "
          "programs, allocators, tables, attach")
    with tempfile.TemporaryDirectory() as scratch:
        for pid in pids:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                comm = f.read().strip()
            for warm in (False, True):
                parts = []
                for i in range(runs + warm):
                    env = dict(os.environ, MEMSCOPE_CACHE_DIR=f"{scratch}/{pid}-{0 if warm else i}")
                    out = subprocess.run(
                        [f"{BUILD}/memscope", "-p", str(pid), "-d", "0.1", "-q", "-v", "-o",
                         f"{scratch}/out"], env=env, stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE, check=False).stderr.decode()
                    m = BEGUN.search(out)
                    if m and not (warm and i == 0):
                        parts.append([float(x) for x in m.groups()])
                if parts:
                    total, *rest = (statistics.median(p) for p in zip(*parts))
                    print(f"{comm:20} {'warm' if warm else 'cold':>7} {total:32.0f}   "
                          f"{', '.join(f'{x:.0f}' for x in rest)}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--units", type=int, default=70, help="of the large program; 0: none")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--pid", type=int, action="append", default=[], help="measure starts with this one")
    p.add_argument("file", nargs="*")
    a = p.parse_args()
    files = [f for f in (a.file or FILES) if os.path.exists(f)]
    if a.units and not a.file:
        files.append(big_program(a.units))
    print(f"# load {os.getloadavg()[0]:.1f}")
    sizes_and_times(files, a.runs)
    if a.pid:
        starts(a.pid, a.runs)


if __name__ == "__main__":
    main()
