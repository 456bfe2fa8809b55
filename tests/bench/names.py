#!/usr/bin/python3
"""What naming 100,000 places costs: memscope beside addr2line and llvm-symbolizer. No rights.

    make bench-names [BENCHFLAGS="--units 70 --places 100000"]

The program is made here: one C++ unit of many containers compiled once (-O2 -g3), then assembled as
often as --units says under other names and linked. 70 make 500 MB of debug info, as a large program
has. Places are drawn at random from its text. Each tool reads them from a pipe in one go, sorted, and
prints functions, inlined calls and lines; the page cache is warm. Memory is the largest
resident set of the tool and of the children that it waited for, each by itself.
"""

import argparse
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build")))
WHERE = os.path.join(BUILD, "bench-names")


def run(*argv, **kw):
    return subprocess.run(argv, check=True, capture_output=True, **kw).stdout


def build(units):
    program = os.path.join(WHERE, f"big-{units}")
    if os.path.exists(program):
        return program
    os.makedirs(WHERE, exist_ok=True)
    print(f"# making {program}: minutes", file=sys.stderr)
    run("g++", "-std=c++17", "-O2", "-g3", "-S", "-o", f"{WHERE}/unit.s", f"{HERE}/names_unit.cc")
    with open(f"{WHERE}/unit.s", "rb") as f:
        text = f.read()
    names = [b"Ix%03d" % i for i in range(units)]
    main = "".join(f"long entry_{n.decode()}(long);\n" for n in names)
    main += "int main(int c, char **v)\n{\n\tlong s = 0;\n"
    main += "".join(f"\ts += entry_{n.decode()}(c * 20);\n" for n in names) + "\treturn s == 42;\n}\n"
    objects = [f"{WHERE}/{n.decode()}.o" for n in names]
    for name, obj in zip(names, objects):
        run("as", "-o", obj, "-", input=text.replace(b"Id000", name))
    run("g++", "-x", "c++", "-O2", "-g", "-c", "-o", f"{WHERE}/main.o", "-", input=main.encode())
    run("g++", "-o", program, f"{WHERE}/main.o", *objects)
    for path in [*objects, f"{WHERE}/unit.s", f"{WHERE}/main.o"]:
        os.unlink(path)
    return program


def sections(program):
    """(start and size of .text, bytes of debug info)"""
    text, debug = None, 0
    for line in run("readelf", "-SW", program).decode().splitlines():
        m = re.match(r"\s*\[ *\d+\] (\.\S+) +\S+ +(\w+) +\w+ +(\w+)", line)
        if m and m[1] == ".text":
            text = int(m[2], 16), int(m[3], 16)
        elif m and m[1].startswith(".debug_"):
            debug += int(m[3], 16)
    return text, debug


def tools(program):
    yield "memscope", [os.path.join(BUILD, "tests/names/lookup"), program]
    yield "addr2line -i -f -C", ["addr2line", "-a", "-i", "-f", "-C", "-e", program]
    for name in ("llvm-symbolizer", "llvm-symbolizer-14"):
        if subprocess.run(["which", name], capture_output=True, check=False).returncode == 0:
            yield name, [name, "--inlines", "--output-style=GNU", f"--obj={program}"]
            break


def measure(argv, text, limit):
    """Seconds of wall time, CPU seconds, largest resident MB, lines of output."""
    with tempfile.TemporaryFile() as out:
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        child = os.fork()
        if child == 0:
            # A process of its own, whose children are this tool's only.
            try:
                r = subprocess.run(argv, input=text, stdout=out, stderr=subprocess.DEVNULL,
                                   timeout=limit, check=False)
                used = resource.getrusage(resource.RUSAGE_CHILDREN)
                with open(f"{WHERE}/result", "w", encoding="ascii") as f:
                    f.write(f"{r.returncode} {used.ru_utime + used.ru_stime} {used.ru_maxrss / 1024}")
                os._exit(0)
            except subprocess.TimeoutExpired:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        took = time.monotonic() - start
        del before
        if status:
            return None
        code, cpu, mb = open(f"{WHERE}/result", encoding="ascii").read().split()
        out.seek(0)
        lines = sum(chunk.count(b"\n") for chunk in iter(lambda: out.read(1 << 20), b""))
    return None if int(code) else (took, float(cpu), float(mb), lines)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--units", type=int, default=70)
    ap.add_argument("--places", type=int, default=100000)
    ap.add_argument("--limit", type=int, default=900, help="seconds after which a tool is given up")
    args = ap.parse_args()
    program = build(args.units)
    (start, size), debug = sections(program)
    rng = random.Random(1)
    addrs = sorted({rng.randrange(start, start + size) for _ in range(args.places)})
    text = "".join(f"0x{a:x}\n" for a in addrs).encode()
    print(f"Naming {len(addrs):,} places of a program with {debug / 1e6:.0f} MB of debug info "
          f"({time.strftime('%Y-%m-%d')}).\n")
    print("| tool | seconds | CPU seconds | largest resident MB |")
    print("|---|---|---|---|")
    run("cat", program)
    for name, argv in tools(program):
        m = measure(argv, text, args.limit)
        print(f"| {name} | " + (f"{m[0]:.1f} | {m[1]:.1f} | {m[2]:.0f} |" if m else
                                f"more than {args.limit} | | |"), flush=True)


main()
