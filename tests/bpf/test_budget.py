#!/usr/bin/python3
"""What the kernel's verifier has to look at, program by program, against budget.txt. TAP, as root.

    python3 tests/bpf/test_budget.py [--update]

Each compiler that is installed makes the programs, and all of them are loaded into this kernel with
the knobs of a full run. A program over its line, without a line, or refused is a failure, and so is
a line without a program. --update writes budget.txt anew: the most that any compiler here came to,
and a quarter more.
"""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stack  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build")))
BUDGET = os.path.join(TOP, "tests/bpf/budget.txt")
LOAD = os.path.join(BUILD, "tests/bpf/load")
COMPILERS = (os.environ.get("CLANG", "clang"), "clang-19")  # the build's own, and the newest in Debian 12
KNOBS = ("cfg_unwind=1", "cfg_threads=1", "cfg_switch_has_state=1", "cfg_cookies=1",
         "cfg_cgroups=2", "cfg_unwind_caches=64", "cfg_sched_account=1", "cfg_wait_sampler=1", "cfg_wakers=1", "cfg_run_delays=1", "cfg_objects=1", "cfg_trace_stacks=1")
HEADROOM = 1.25
HEAD = """\
# Instructions that the verifier may look at, for each program: see test_budget.py. What is measured
# differs by kernel and compiler; each line has room for all of those that are tested.
"""


def read_budget():
    rows = {}
    try:
        with open(BUDGET, encoding="ascii") as f:
            for line in f:
                if line.strip() and not line.startswith("#"):
                    name, insns = line.split()
                    rows[name] = int(insns)
    except FileNotFoundError:
        pass
    return rows


def make_object(compiler):
    """The joined object as `compiler` makes it; None and the reason when it cannot."""
    if not shutil.which(compiler):
        return None, f"{compiler} is not installed"
    # What the build made with the same compiler is not made again.
    build = BUILD if compiler == COMPILERS[0] else os.path.join(BUILD, "tests/bpf", compiler)
    path = os.path.join(build, "bpf/memscope.bpf.o")
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "-C", TOP, f"BUILD={build}", f"CLANG={compiler}", path],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        print("\n".join("# " + line for line in (done.stdout + done.stderr).splitlines()[:20]))
    return path, None


def load(path):
    """[(program, instructions)], refused ones with the verifier's words instead."""
    done = subprocess.run([LOAD, path, *KNOBS], capture_output=True, text=True, check=False)
    found = []
    for line in done.stdout.splitlines():
        name, verdict, rest = line.split(" ", 2)
        words = rest.split() if verdict == "ok" else []
        found.append((name, None if verdict == "absent" else int(words[0]) if words else rest))
    if not found:
        print(f"# {done.stderr.strip()}")
    return found


def too_deep(path):
    """One sentence for each program that older kernels have too little stack for."""
    o = stack.Object(path)
    for name in o.programs:
        depth, chain = o.deepest(name)
        if depth > stack.LIMIT:
            yield f"{name} takes {depth} bytes of stack, older kernels have {stack.LIMIT}: {' > '.join(chain)}"


def judge(found, budget):
    """One sentence for each program that is not as it should be."""
    for name, insns in found:
        if insns is None:  # this kernel has no such tracepoint
            continue
        if isinstance(insns, str):
            yield f"{name} is refused: {insns}"
        elif name not in budget:
            yield f"{name} has no line in budget.txt ({insns} instructions)"
        elif insns > budget[name]:
            yield f"{name}: {insns} instructions, {budget[name]} allowed"
    for name in sorted(set(budget) - {name for name, _ in found}):
        yield f"{name} of budget.txt is no program"


def update(all_found):
    most = {}
    for name, insns in all_found:
        if insns is None:
            continue
        most[name] = max(most.get(name, 0), insns)
    with open(BUDGET, "w", encoding="ascii") as f:
        f.write(HEAD)
        for name, insns in most.items():
            f.write(f"{name:<20} {-int(-insns * HEADROOM // 10) * 10}\n")


def main():
    if os.geteuid():
        print("1..0 # SKIP not root: programs cannot be loaded")
        return 0
    budget, seen, bad = read_budget(), [], 0
    print(f"1..{len(COMPILERS)}")
    for i, compiler in enumerate(COMPILERS, 1):
        path, reason = make_object(compiler)
        fact = f"programs_of_{compiler.replace('-', '_')}_keep_to_their_budgets"
        if reason:
            print(f"ok {i} - {fact} # SKIP {reason}")
            continue
        found = load(path)
        seen += [row for row in found if not isinstance(row[1], str)]
        wrong = [*judge(found, budget), *too_deep(path)] if found else ["nothing could be loaded"]
        total = sum(n for _, n in found if isinstance(n, int))
        print(f"# {compiler}: {len(found)} programs, {total} instructions")
        for sentence in wrong:
            print(f"# {sentence}")
        print(f"{'not ' if wrong else ''}ok {i} - {fact}")
        bad += bool(wrong)
    if "--update" in sys.argv:
        update(seen)
    return 1 if bad else 0


sys.exit(main())
