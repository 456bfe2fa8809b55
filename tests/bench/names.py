#!/usr/bin/python3
"""What naming costs: memscope beside addr2line, llvm-symbolizer, blazesym and perf script.

    make bench-names [BENCHFLAGS="--units 70 --places 100000 --runs 3 --only program"]

Two tables. `program`: places of one large program, which is made here: one C++ unit of many containers
compiled once (-O2 -g3), then assembled as often as --units says under other names and linked. 70 make
500 MB of debug info, as a large program has. The same once more with its debug sections compressed, as
packages have them. `host`: places of every file that a running process has mapped for execution and of
all shared libraries of the system, with what debug symbols are installed (as root, all processes).

Places are drawn at random from .text. Each tool reads them from a pipe in one go, sorted, and prints
functions, inlined calls, files and lines; the page cache is warm. Runs are interleaved, figures are
medians. Memory is the largest resident set of the tool and of the children that it waited for, each by
itself, mapped files included.

addr2line takes one file: for the host it is started once for each. perf gets a perf.data that has a
sample for each place (perf_data.py). It asks addr2line for inlined calls and lines, where it was built
without libbfd (as Debian's) once for each place, and does not count them as its own: its seconds tell,
not its CPU time and memory. So it is given --perf-places only, and all places for functions alone;
those come from symbol tables. blazesym is measured when it was built (blazesym/Cargo.toml).
"""

import argparse
import glob
import os
import random
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import perf_data

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build")))
WHERE = os.path.join(BUILD, "bench-names")
BLAZESYM = os.environ.get("BLAZESYM", os.path.join(BUILD, "blazesym/release/blazesym-lookup"))
LLVM = next((t for t in ("llvm-symbolizer", "llvm-symbolizer-14") if shutil.which(t)), None)
# What runs one addr2line for each file named on standard input: FILE TAB ADDRESS lines.
EACH_FILE = r"""
import itertools, subprocess, sys
for file, lines in itertools.groupby(sys.stdin, key=lambda l: l.split("\t")[0]):
    subprocess.run(["addr2line", "-a", "-i", "-f", "-C", "-e", file], text=True,
                   input="".join(l.split("\t")[1] for l in lines), stderr=subprocess.DEVNULL)
"""


def run(*argv, **kw):
    return subprocess.run(argv, check=True, capture_output=True, **kw).stdout


# --- what is named -----------------------------------------------------------------------------------

def build(units):
    program = os.path.join(WHERE, f"big-{units}")
    if os.path.exists(program):
        return program
    print(f"# making {program}: minutes", file=sys.stderr)
    run("g++", "-std=c++17", "-O2", "-g3", "-S", "-o", f"{WHERE}/unit.s", f"{HERE}/names_unit.cc")
    with open(f"{WHERE}/unit.s", "rb") as f:
        text = f.read()
    names = [b"Ix%03d" % i for i in range(units)]
    main_ = "".join(f"long entry_{n.decode()}(long);\n" for n in names)
    main_ += "int main(int c, char **v)\n{\n\tlong s = 0;\n"
    main_ += "".join(f"\ts += entry_{n.decode()}(c * 20);\n" for n in names) + "\treturn s == 42;\n}\n"
    objects = [f"{WHERE}/{n.decode()}.o" for n in names]
    for name, obj in zip(names, objects):
        run("as", "-o", obj, "-", input=text.replace(b"Id000", name))
    run("g++", "-x", "c++", "-O2", "-g", "-c", "-o", f"{WHERE}/main.o", "-", input=main_.encode())
    run("g++", "-o", program, f"{WHERE}/main.o", *objects)
    for path in [*objects, f"{WHERE}/unit.s", f"{WHERE}/main.o"]:
        os.unlink(path)
    return program


def compressed(program):
    out = f"{program}-zlib"
    if not os.path.exists(out):
        run("objcopy", "--compress-debug-sections=zlib", program, out)
    return out


class File:
    """.text, executable segments and the size of the debug sections of an ELF file of 64 bits."""

    def __init__(self, path):
        self.path, self.text, self.debug = path, None, 0
        with open(path, "rb") as f:
            head = f.read(64)
            if head[:5] != b"\x7fELF\x02":
                raise ValueError("no ELF file of 64 bits")
            phoff, shoff = struct.unpack_from("<QQ", head, 32)
            phsize, phnum, shsize, shnum, names_ix = struct.unpack_from("<HHHHH", head, 54)
            f.seek(phoff)
            ph = [struct.unpack_from("<IIQQQQ", f.read(phsize)) for _ in range(phnum)]
            f.seek(shoff)
            sh = [struct.unpack_from("<IIQQQQ", f.read(shsize)) for _ in range(shnum)]
            if not sh:
                raise ValueError("no sections")
            f.seek(sh[names_ix][4])
            names = f.read(sh[names_ix][5])
        # (type, flags, offset, vaddr, paddr, filesz): loaded and executable
        self.segments = [(p[3], p[2], p[5]) for p in ph if p[0] == 1 and p[1] & 1]
        for name, kind, _, addr, _, size in sh:
            name = names[name:names.index(b"\0", name)]
            if name == b".text" and kind == 1 and size:
                self.text = addr, size
            elif name.startswith(b".debug_"):
                self.debug += size
        if not self.text:
            raise ValueError("no .text")

    def places(self, n, rng):
        start, size = self.text
        return sorted({rng.randrange(start, start + size) for _ in range(n)})


def mapped():
    """Files that processes have mapped for execution."""
    for path in glob.glob("/proc/[0-9]*/maps"):
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as f:
                for line in f:
                    part = line.rstrip("\n").split(None, 5)
                    if len(part) == 6 and "x" in part[1] and part[5].startswith("/"):
                        yield part[5]
        except OSError:
            continue


def host_files():
    paths = set(mapped()) | set(glob.glob("/usr/lib/*-linux-gnu/*.so*"))
    files = {}
    for path in sorted({os.path.realpath(p) for p in paths}):
        try:
            st = os.stat(path)
            files.setdefault((st.st_dev, st.st_ino), File(path))
        except (OSError, ValueError, struct.error, IndexError):
            continue
    return list(files.values())


# --- who names it ------------------------------------------------------------------------------------

class Tool:
    def __init__(self, name, argv, text, n):
        self.name, self.argv, self.text, self.n = name, argv, text, n


def perf_tools(modules, n, some):
    """perf with all places, for functions alone; and with `some` of them."""
    if not shutil.which("perf"):
        print("# perf is not installed (linux-perf): left out", file=sys.stderr)
        return
    path = os.path.join(WHERE, "places.data")
    perf_data.write(path, [(f.path, f.segments, places) for f, places in modules])
    yield Tool("perf script --no-inline -F ip,sym: functions only",
               ["perf", "script", "-i", path, "--no-inline", "-F", "ip,sym"], b"", n)
    every = max(1, n // some)
    few = [(f.path, f.segments, places[::every] if len(places) > 1 else places)
           for f, places in modules[::max(1, len(modules) // some)]]
    path = os.path.join(WHERE, "few.data")
    perf_data.write(path, few)
    yield Tool("perf script --inline -F ip,sym,srcline",
               ["perf", "script", "-i", path, "--inline", "-F", "ip,sym,srcline"], b"",
               sum(len(places) for _, _, places in few))


def tools(modules, some):
    n = sum(len(places) for _, places in modules)
    pairs = "".join(f"{f.path}\t0x{a:x}\n" for f, places in modules for a in places).encode()
    yield Tool("memscope", [os.path.join(BUILD, "tests/names/lookup")], pairs, n)
    yield Tool("addr2line -i -f -C", [sys.executable, "-c", EACH_FILE], pairs, n)
    if LLVM:
        code = pairs.replace(b"\t", b" ")
        yield Tool(LLVM, [LLVM, "--inlines", "--output-style=GNU"], code, n)
    else:
        print("# llvm-symbolizer is not installed (llvm): left out", file=sys.stderr)
    if os.access(BLAZESYM, os.X_OK):
        yield Tool("blazesym", [BLAZESYM], pairs, n)
    else:
        print("# blazesym was not built (tests/bench/blazesym/Cargo.toml): left out", file=sys.stderr)
    yield from perf_tools(modules, n, some)


def measure(tool, limit):
    """(seconds, CPU seconds, largest resident MB), or None: it took too long, or failed."""
    with tempfile.TemporaryDirectory() as where:
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            # A process of its own, whose children are this tool's only. They say who took what.
            try:
                with open(f"{where}/in", "wb") as f:
                    f.write(tool.text)
                with open(f"{where}/in", "rb") as given, open(os.devnull, "wb") as out:
                    r = subprocess.run(["/usr/bin/time", "-o", f"{where}/time", "-f", "%U %S %M",
                                        *tool.argv], stdin=given, stdout=out, stderr=out,
                                       timeout=limit, check=False)
                os._exit(1 if r.returncode else 0)
            except subprocess.TimeoutExpired:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        took = time.monotonic() - start
        if status:
            return None
        with open(f"{where}/time", encoding="ascii") as f:
            user, system, kb = f.read().split()[-3:]
    return took, float(user) + float(system), int(kb) / 1024


def table(modules, args, some):
    rows = list(tools(modules, some))
    results = {t.name: [] for t in rows}
    for _ in range(args.runs):
        for t in rows:
            if None not in results[t.name]:
                results[t.name].append(measure(t, args.limit))
    print("| tool | places | seconds | CPU seconds | largest resident MB |")
    print("|---|---|---|---|---|")
    for t in rows:
        of = results[t.name]
        if None in of:
            print(f"| {t.name} | {t.n:,} | failed, or more than {args.limit} | | |")
            continue
        took, cpu, mb = (statistics.median(column) for column in zip(*of))
        print(f"| {t.name} | {t.n:,} | {took:.1f} | {cpu:.1f} | {mb:.0f} |")
    print(flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--units", type=int, default=70)
    ap.add_argument("--places", type=int, default=100000)
    ap.add_argument("--perf-places", type=int, default=50, help="whose lines perf is asked for")
    ap.add_argument("--host-places", type=int, default=100, help="of each file of the host")
    ap.add_argument("--runs", type=int, default=3)
    ap.add_argument("--only", choices=("program", "host"))
    ap.add_argument("--limit", type=int, default=900, help="seconds after which a tool is given up")
    args = ap.parse_args()
    os.makedirs(WHERE, exist_ok=True)
    print(f"Naming, {time.strftime('%Y-%m-%d')}, medians of {args.runs}; load at the start "
          f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs.\n")
    rng = random.Random(1)
    if args.only != "host":
        program = build(args.units)
        for path, how in ((program, ""), (compressed(program), ", compressed (zlib)")):
            f = File(path)
            print(f"A program with {File(program).debug / 1e6:.0f} MB of debug info{how}:\n")
            with open(path, "rb") as whole:
                while whole.read(1 << 20):
                    pass
            # Unpacked again for each place, by each addr2line that perf starts.
            some = args.perf_places if not how else max(1, args.perf_places // 5)
            table([(f, f.places(args.places, rng))], args, some)
    if args.only != "program":
        files = host_files()
        print(f"A host: {len(files)} files that are mapped or are shared libraries:\n")
        table([(f, f.places(args.host_places, rng)) for f in files], args, args.perf_places)


main()
