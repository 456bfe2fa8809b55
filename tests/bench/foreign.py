#!/usr/bin/python3
"""Large files of other profilers: CPU time and largest resident memory of reading them, beside their own readers.

    make bench-foreign [BENCHFLAGS="--mb 1000 callgrind"]

Files are made up here: blocks of some 20 MB, written as often as --mb says; what has no reader of its own on the machine is read by
memscope alone. Times are of the CPU, because the clock depends on what else the machine does.
"""

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEMSCOPE = os.environ.get("MEMSCOPE", os.path.join(os.environ.get("BUILD", os.path.join(TOP, "build")), "memscope"))
RND = random.Random(3)
LIMIT_S = 600


def heaptrack():
    """60,000 stacks, and blocks of all of them in no order: the worst case for caches."""
    names = ["./big", "big.cpp", "main"] + [f"function_number_{i}<std::vector<int> >(unsigned long)" for i in range(4000)]
    head = ["v 10400 3\nX ./big\nI 1000 5d2c41\n"] + [f"s {len(s):x} {s}\n" for s in names]
    head += [f"i {0x401000 + 16 * i:x} 1 {i + 3:x} 2 {i + 1:x}\n" for i in range(4001)]
    depth = [0]
    for i in range(60000):
        caller = RND.randrange(max(0, i - 3000), i + 1)
        caller = caller if depth[caller] < 40 else 0
        depth.append(depth[caller] + 1)
        head.append(f"t {RND.randrange(1, 4002):x} {caller:x}\na {RND.randrange(8, 4096):x} {i + 1:x}\n")
    ms = 0
    while True:
        block = []
        for _ in range(1300000):
            kind = RND.randrange(60000)
            block.append(f"+ {kind:x}\n- {kind:x}\n" if RND.random() < .98 else f"+ {kind:x}\n")
            if RND.random() < 1e-4:
                ms += 10
                block.append(f"c {ms:x}\nR {1000 + ms % 5000:x}\n")
        yield "".join(head + block)
        head = []


def callgrind():
    """20,000 functions of 13 lines, each of which calls three; a part of a run for each block."""
    part = 0
    while True:
        part += 1
        block = ["# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\ncmd: ./big\n"] if part == 1 else []
        block.append(f"\npart: {part}\npositions: line\nevents: Ir Dr Dw\n")

        def name(kind, number, text):
            return f"{kind}=({number}){text if part == 1 else ''}\n"

        for f in range(20000):
            block.append(name("fl", f % 300, f" /src/dir/file{f % 300}.cpp"))
            block.append(name("fn", f, f" some_namespace::function_number_{f}(unsigned long, char const*)"))
            block.append(f"{f % 5000} {RND.randrange(1000)} {RND.randrange(100)} {RND.randrange(10)}\n")
            block += [f"+{RND.randrange(1, 4)} {RND.randrange(1000)} {RND.randrange(100)} {RND.randrange(10)}\n" for _ in range(12)]
            for _ in range(3 if f < 19990 else 0):
                g = f + 1 + int(RND.paretovariate(.7)) % (19999 - f)
                block.append(name("cfi", g % 300, f" /src/dir/file{g % 300}.cpp"))
                block.append(name("cfn", g, f" some_namespace::function_number_{g}(unsigned long, char const*)"))
                block.append(f"calls={RND.randrange(1, 100)} {g % 5000}\n+1 {RND.randrange(100000)} {RND.randrange(9999)} 3\n")
        yield "".join(block)


def perf():
    """20,000 stacks of 8 to 40 frames in eight threads, 10,000 samples a second."""
    stacks = ["".join(f"\t    {0x55d0c0000000 + 64 * f:x} function_number_{f}(unsigned long)+0x{f:x} (/usr/lib/libbig{f % 9}.so)\n"
                      for f in (RND.randrange(3000) for _ in range(RND.randrange(8, 40)))) for _ in range(20000)]
    at = 1000.0
    while True:
        block = []
        for _ in range(10000):
            at += 1e-4
            block.append(f"worker 100/{100 + RND.randrange(8)} [{RND.randrange(4):03d}] {at:.6f}:   10101010 cycles:u: \n"
                         f"{stacks[int(RND.paretovariate(.3)) % 20000]}\n")
        yield "".join(block)


def massif():
    """Detailed snapshots of 2,000 places."""
    snapshot = 0
    yield "desc: (none)\ncmd: ./big\ntime_unit: ms\n"
    while True:
        block = []
        for _ in range(150):
            bytes_of = [RND.randrange(1000, 99999) for _ in range(2000)]
            block.append(f"#-----------\nsnapshot={snapshot}\n#-----------\ntime={snapshot}\nmem_heap_B={sum(bytes_of)}\n"
                         f"mem_heap_extra_B=8\nmem_stacks_B=0\nheap_tree=detailed\nn2000: {sum(bytes_of)} (heap allocation functions) malloc\n")
            block += [f" n1: {n} 0x{4096 + i:X}: inner_{i}(int) (a.cpp:{i})\n  n0: {n} 0x{9999 + i:X}: caller_{i}(int) (b.cpp:{i})\n"
                      for i, n in enumerate(bytes_of)]
            snapshot += 1
        yield "".join(block)


FILES = {"heaptrack": (heaptrack, ["heaptrack_print"]), "callgrind": (callgrind, ["callgrind_annotate", "--auto=no"]),
         "perf": (perf, None), "massif": (massif, ["ms_print"])}


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))


def make(f, blocks, mb):
    """In a child: what is forked from here later counts our own memory as its largest."""
    pid = os.fork()
    if pid == 0:
        for block in blocks:
            f.write(block)
            if f.tell() >= mb * 1000000:
                break
        f.flush()
        os._exit(0)
    os.waitpid(pid, 0)


def measure(*argv):
    """CPU seconds and MB, or None: it took more than LIMIT_S, or failed."""
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit) as p:
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = status
    return (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024) if status == 0 else None


def shown(m):
    return f"{m[0]:.1f} s, {m[1]:,.0f} MB" if m else f"failed, or more than {LIMIT_S} s"


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--mb", type=int, default=200)
    args.add_argument("formats", nargs="*", default=list(FILES))
    args = args.parse_args()
    print("| file | memscope report | its own reader | ratio of CPU time |\n|---|---|---|---|")
    for name in args.formats:
        blocks, reader = FILES[name]
        with tempfile.NamedTemporaryFile("w", prefix="memscope-bench-", suffix=f".{name}") as f:
            make(f, blocks(), args.mb)
            ours = measure(MEMSCOPE, "report", f.name)
            theirs = measure(*reader, f.name) if reader and shutil.which(reader[0]) else None
            ratio = f"{theirs[0] / ours[0]:.1f}" if ours and theirs else ""
            print(f"| {name}, {os.path.getsize(f.name) / 1e6:.0f} MB | {shown(ours)} | {shown(theirs) if reader else ''} | {ratio} |")
            sys.stdout.flush()


main()
