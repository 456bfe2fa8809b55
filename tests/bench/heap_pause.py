#!/usr/bin/python3
"""How long a snapshot stops a process, and of what that consists.

    make bench-heap-pause [BENCHFLAGS="--gib 1,4 --threads 1,65,257 --repeat 5"]

As root. Each row is a program that holds so much memory, all of it touched, in pages of 4 KiB or 2 MiB, whose threads compute and
write to it (targets/heap_room.c). It is stopped by `memscope heap census`, with and without --twin in turns. Medians; `gap` is the
longest time for which the program's own main thread was kept from its CPU meanwhile, which on a busy machine is also others' doing.
"""

import argparse
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
ARGS, sys.argv = sys.argv[1:], sys.argv[:1]

from harness import *  # noqa: E402


def snapshot(pid, *more):
    done = subprocess.run([MEMSCOPE, "heap", "census", "--json", "-p", str(pid), *more], capture_output=True, text=True, timeout=600,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Broken(done.stderr.strip())
    return json.loads(done.stdout)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--gib", default="1,4")
    ap.add_argument("--pages", default="small,huge")
    ap.add_argument("--threads", default="1,65,257")
    ap.add_argument("--repeat", type=int, default=5)
    args = ap.parse_args(ARGS)
    print(f"load {os.getloadavg()[0]:.0f} at the beginning; times in ms, medians of {args.repeat}\n")
    print("| memory | pages | threads | | pause | stop | twin | copy | release | gap |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for gib in args.gib.split(","):
        for pages in args.pages.split(","):
            for threads in args.threads.split(","):
                target = Target("heap_room", gib, pages, threads)
                rows = {(): [], ("--twin",): []}
                for _ in range(args.repeat):
                    for how, row in rows.items():
                        target.ask("gap")
                        d = snapshot(target.pid, *how)
                        gap = target.ask("gap", 600)[0][1]
                        row.append([d[k] for k in ("pause_ns", "stop_ns", "twin_ns", "copy_ns", "release_ns")] + [gap])
                target.end()
                for how, row in rows.items():
                    ms = [f"{statistics.median(column) / 1e6:.2f}" for column in zip(*row)]
                    print(f"| {gib} GiB | {'2 MiB' if pages == 'huge' else '4 KiB'} | {threads} | {' '.join(how) or 'stopped'} | "
                          f"{' | '.join(ms)} |", flush=True)
    print(f"\nload {os.getloadavg()[0]:.0f} at the end")


main()
