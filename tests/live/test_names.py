"""Names of what has no file to name it: generated code, stripped programs, files put aside."""

import glob
import os
import shutil
import signal
import subprocess
import time

from harness import *

HZ = 999


def perf_map(pid):
    return f"/tmp/perf-{pid}.map"


class Contained(Target):
    """A target in PID and mount namespaces of its own, with a /tmp of its own."""

    def __init__(self, name):
        script = f'cd "{TARGETS}" && mount -t tmpfs none /tmp && exec ./{name}'
        Child.__init__(self, ["unshare", "-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c", script],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ns_pid = int(self._line("ready", READY_SEC)[1])
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            self.inner = int(f.read().split()[0])


def jit_run(text, change=None, contained=False):
    """Samples of the target that generates code, by leaf name, after `text` became its map."""
    target = Contained("jit") if contained else Target("jit")
    pid = target.inner if contained else target.pid
    loops = [[int(w[1:], 16) for w in line[1:]] for line in target.ask("where")]
    path = f"/proc/{pid}/root" + perf_map(target.ns_pid) if contained else perf_map(pid)
    try:
        with open(path, "w") as f:
            f.write(text(*loops[0], *loops[1]))
        if change:
            change(path)
        run, _ = record(("-p", pid, "-F", HZ, "--only", "oncpu"), lambda: target.ask("burn"))
    finally:
        if os.path.lexists(path):
            os.unlink(path)
    p = run.profile("oncpu")
    leaves = {}
    for s in p.samples:
        # The loops themselves: what interrupts them is the kernel's.
        names = [f.name for f in s.frames if f.module != "[kernel]"]
        if names:
            leaves[names[0]] = leaves.get(names[0], 0) + s.values[0]
    return leaves, run


# A compiler used the memory before.
BOTH = "{0:x} 1000 old\n{0:x} {1:x} JS:*first /srv/app.js:3:19\n{2:x} {3:x} second loop\n".format


@fact
def perf_map_names_generated_code_by_its_last_line_for_it():
    leaves, _ = jit_run(BOTH)
    n = sum(leaves.values())
    # 0.9 s and 0.3 s of CPU time: 1,200 samples, fewer where time was stolen.
    check(n > 500, f"{n} samples")
    check("old" not in leaves, "an older line was used")
    first, second = leaves.get("JS:*first /srv/app.js:3:19", 0), leaves.get("second loop", 0)
    share_of(first / max(first + second, 1), 0.75, first + second, "share of the first loop")
    check(first + second > 0.95 * n, f"few are in the calls between: {leaves}")


@fact
def perf_map_of_another_user_is_not_believed():
    leaves, run = jit_run(BOTH, lambda path: os.chown(path, 65534, 65534))
    check(leaves.get("[anon]", 0) > 500, f"leaves: {leaves}")
    reasons = [w["reason"] for w in run.summary()["symbols"]["worst"]]
    check(any("another user" in r for r in reasons), f"reasons: {reasons}")


@fact
def perf_map_is_looked_for_where_the_target_sees_it_and_by_its_own_pid():
    need("unshare")
    leaves, _ = jit_run(BOTH, contained=True)
    check(leaves.get("second loop", 0) > 100, f"leaves: {leaves}")


@fact
def perf_map_that_is_no_regular_file_is_not_opened():
    def to_fifo(path):
        os.unlink(path)
        os.mkfifo(path)
    leaves, _ = jit_run(BOTH, to_fifo)
    check(leaves.get("[anon]", 0) > 500, f"leaves: {leaves}")


JS = """
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
let t = 0;
while (process.cpuUsage().user < 2500000) t += fibonacci(24);
console.error(t > 0);
"""


def node(option, change=None):
    need("node")
    where = scratch("node")
    os.mkdir(where)
    with open(f"{where}/fib.js", "w") as f:
        f.write(JS)
    run = Run("-F", HZ, "--only", "oncpu", "--lang", "off", "--", "node", option, f"{where}/fib.js", cwd=where)
    if change:
        change(where)
    run.finish()
    run.must(0)
    p = run.profile("oncpu")
    leaves = [(s.frames[0].name, s.values[0]) for s in p.samples if s.frames]
    total = sum(n for _, n in leaves)
    return sum(n for name, n in leaves if "fibonacci" in name) / total, leaves, (p, run)


@fact
def functions_of_node_are_named_by_its_perf_map():
    share, leaves, (p, _) = node("--perf-basic-prof")
    check(share > 0.6, f"fibonacci has {share:.0%} of the samples: {sorted(leaves, key=lambda x: -x[1])[:5]}")
    for path in {perf_map(s.labels.get("pid")) for s in p.samples}:
        if os.path.exists(path):
            os.unlink(path)


@fact
def functions_of_node_are_named_by_its_jitdump():
    share, leaves, _ = node("--perf-prof")
    check(share > 0.6, f"fibonacci has {share:.0%} of the samples: {sorted(leaves, key=lambda x: -x[1])[:5]}")


@fact
def jitdump_of_another_user_is_not_believed():
    def give_away(where):
        end = time.monotonic() + READY_SEC
        while not (found := glob.glob(f"{where}/jit-*.dump")):
            check(time.monotonic() < end, "node wrote no jitdump")
            time.sleep(0.02)
        os.chown(found[0], 65534, 65534)
    share, leaves, (_, run) = node("--perf-prof", give_away)
    equal(share, 0, "share of fibonacci")
    check(sum(n for name, n in leaves if name == "[anon]") > 500, f"leaves: {leaves[:9]}")
    reasons = [w["reason"] for w in run.summary()["symbols"]["worst"]]
    check(any("another user" in r for r in reasons), f"reasons: {reasons}")


SPINNER = """
#include <cstdlib>
#include <ctime>
namespace app {
static __attribute__((noinline)) unsigned spin(unsigned n) { unsigned x = n; while (n--) x = x * 3 + n; return x; }
}
int main(int argc, char **argv)
{
	volatile unsigned x = 0;
	while (clock() < atoi(argv[1]) * (CLOCKS_PER_SEC / 1000))
		x = x + app::spin(1000000);
}
"""


def spinner(*options):
    need("g++")
    program = scratch("spinner")
    subprocess.run(["g++", "-O1", *options, "-x", "c++", "-o", program, "-"], input=SPINNER.encode(), check=True)
    return program


def leaves_of(program, *options):
    run = Run("-F", HZ, "--only", "oncpu", *options, "--", program, 500)
    run.finish()
    run.must(0)
    return [s.frames[0] for s in run.profile("oncpu").samples if s.frames], run


@fact
def names_stay_as_the_linker_knows_them_with_no_demangle():
    program = spinner()
    shown, _ = leaves_of(program)
    check(any(f.name == "app::spin(unsigned int)" for f in shown), f"{[f.name for f in shown][:9]}")
    mangled, run = leaves_of(program, "--no-demangle")
    check(any(f.name == "_ZN3appL4spinEj" for f in mangled), f"{[f.name for f in mangled][:9]}")
    with open(os.path.join(run.out, "oncpu.folded")) as f:
        check(any("_ZN3appL4spinEj " in line for line in f), "folded stacks are demangled")


def stripped_with_debug_in(where):
    """
    Leaves of a stripped program whose debug info only its own root has, or only the host's. It lives
    while it is named: the mounts of a namespace end with its last process.
    """
    need("unshare", "objcopy", "strip")
    program = spinner("-g")
    full, empty = scratch("full"), scratch("empty")
    beside = os.path.join(os.path.dirname(program), ".debug")
    debug = os.path.basename(program) + ".debug"
    for path in (full, empty, beside):
        os.makedirs(path, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, f"{full}/{debug}"], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={full}/{debug}", program], check=True)
    if where == "host":
        shutil.copy(f"{full}/{debug}", beside)
    inside = full if where == "target" else empty
    script = f'mount --bind "{inside}" "{beside}" && exec "$0" 60000'
    target = Child(["unshare", "-m", "sh", "-c", script, program])
    end = time.monotonic() + READY_SEC
    while os.path.realpath(f"/proc/{target.pid}/exe") != program:
        check(time.monotonic() < end, "the program does not start")
        time.sleep(0.02)
    try:
        run = Run("-p", target.pid, "-F", HZ, "--only", "oncpu", "-d", 1)
        run.finish()
        run.must(0)
    finally:
        target.end()
        shutil.rmtree(beside)
    return [s.frames[0] for s in run.profile("oncpu").samples if s.frames]


def has_spin(leaves):
    return any(f.name == "app::spin(unsigned int)" and f.line == 5 for f in leaves)


@fact
def debug_info_is_found_in_the_root_of_the_target():
    leaves = stripped_with_debug_in("target")
    check(has_spin(leaves), f"leaves: {[(f.name, f.file, f.line) for f in leaves][:5]}")


@fact
def debug_info_of_the_host_names_programs_in_containers():
    leaves = stripped_with_debug_in("host")
    check(has_spin(leaves), f"leaves: {[(f.name, f.file, f.line) for f in leaves][:5]}")


@fact
def inlined_calls_have_their_files_and_lines():
    need("g++")
    source, program = scratch("inline.cc"), scratch("inline")
    with open(source, "w") as f:
        f.write("inline unsigned step(unsigned x)\n"                     # 1
                "{\n"                                                           # 2
                "\treturn x * 1664525u + 1013904223u;\n"                        # 3
                "}\n"                                                           # 4
                "__attribute__((noinline)) unsigned spin(unsigned n)\n"         # 5
                "{\n"                                                           # 6
                "\tunsigned x = n;\n"                                           # 7
                "\twhile (n--)\n"                                               # 8
                "\t\tx = step(x);\n"                                            # 9
                "\treturn x;\n"                                                 # 10
                "}\n"
                "int main()\n{\n\tunsigned x = 0;\n"
                "\tfor (int i = 0; i < 300; i++)\n\t\tx ^= spin(2000000 + i);\n\treturn x == 42;\n}\n")  # of a constant it would be called once
    subprocess.run(["g++", "-O1", "-g", "-x", "c++", "-o", program, source], check=True)
    run = Run("-F", HZ, "--only", "oncpu", "--", program)
    run.finish()
    run.must(0)
    p = run.profile("oncpu")
    inlined = [s.frames for s in p.samples if s.frames and s.frames[0].name == "step(unsigned int)"]
    check(inlined, f"step() is nowhere: {[f.name for s in p.samples for f in s.frames][:20]}")
    for stack in inlined[:1]:
        equal([(f.name, f.file, f.line) for f in stack[:2]],
              [("step(unsigned int)", source, 3), ("spin(unsigned int)", source, 9)], "frames")
    with open(os.path.join(run.out, "oncpu.folded")) as f:
        check(any("spin(unsigned int);step(unsigned int)_[i] " in line for line in f),
              "folded stacks do not mark the inlined call")


FLOOD = """
import os, sys, threading
print("ready", flush=True)
sys.stdin.readline()
for _ in range(30000):
    t = threading.Thread(target=int)
    t.start()
    t.join()
import bz2
print("mapped", flush=True)
data = os.urandom(1 << 20)
while True:
    bz2.compress(data)
"""


@fact
def a_library_whose_mapping_was_lost_among_other_records_is_found():
    need("python3")
    child = Child(["/usr/bin/python3", "-c", FLOOD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdout.readline()
    run = Run("-p", child.pid, "--only", "oncpu", "-F", 499)
    run.ready()
    # Nobody empties the rings of records, and each thread makes four.
    os.kill(run.pid, signal.SIGSTOP)
    try:
        child.process.stdin.write(b"go\n")
        child.process.stdin.flush()
        child.process.stdout.readline()
    finally:
        os.kill(run.pid, signal.SIGCONT)
    cpu_ns = cpu_clock(child.pid)
    run.had_time(1)
    cpu_ns = cpu_clock(child.pid) - cpu_ns
    run.stop()
    run.must()
    if not run.lost("process_records", but=" "):
        skip("the rings had room for the records of 30,000 threads")
    # It does nothing else in that time; half of it, as it may have begun before its mapping was taken up.
    named = run.profile("oncpu").sum("samples/count", "BZ2_bzCompress")
    check(named > 0.5 * 499 * cpu_ns / 1e9, f"{named} samples in BZ2_bzCompress in {cpu_ns / 1e9:.2f} s of CPU")


main()
