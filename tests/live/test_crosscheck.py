"""The walker against libdw's, frame by frame, on the same registers, stack copies and files.

tests/unwind/crosscheck records with perf events and walks each sample twice. What it takes is short
here; CROSSCHECK_SAMPLES and CROSSCHECK_SECONDS make it longer.
"""

import math
import re

import programs
from harness import *

CROSSCHECK = os.path.join(BUILD, "tests/unwind/crosscheck")
SAMPLES = int(os.environ.get("CROSSCHECK_SAMPLES", 1500))
SECONDS = float(os.environ.get("CROSSCHECK_SECONDS", 3))
AGREE = 0.999  # the promise
HZ = 2999


def crosscheck(*command, options=(), hz=None):
    """Runs it; {"samples": …, "class": ["COUNT TEXT", …]}."""
    if not os.path.exists(CROSSCHECK):
        raise Broken(f"{CROSSCHECK} is not built (make units)")
    out = subprocess.run([CROSSCHECK, "-F", str(hz or HZ), "-n", str(SAMPLES), "-d", str(SECONDS),
                          *options, "--", *command], stdin=subprocess.DEVNULL,
                         capture_output=True, timeout=600, check=False)
    if out.returncode:
        raise Broken(f"crosscheck exited with {out.returncode}: {out.stderr.decode()[-300:]}")
    found = {"class": []}
    for line in out.stdout.decode("utf-8", "replace").splitlines():
        m = re.match(r"(samples|lost|agree|complete|short|frames|walk_ns|class) (.*)$", line)
        if m and m.group(1) == "class":
            found["class"].append(m.group(2))
        elif m:
            found[m.group(1)] = int(m.group(2))
    return found


def agrees(*command, options=(), at_least=200):
    # A machine that keeps it from its CPUs loses records, and proves nothing: programs that keep all of them busy are sampled more
    # rarely there.
    for again in range(4):
        found = crosscheck(*command, options=options, hz=HZ >> again)
        if not found["lost"]:
            break
    samples, agree = found["samples"], found["agree"] + found["short"]
    print(f"# {samples} samples, {found['agree']} agree, libdw short of {found['short']}, {found['complete']} complete, "
          f"{found['frames'] / max(samples, 1):.1f} frames each, lost {found['lost']}")
    for text in found["class"][:6]:
        print(f"#   {text}")
    check(samples >= at_least, f"only {samples} samples")
    equal(found["lost"], 0, "records lost, mappings may be among them")
    # A walker with a tenth of what the promise allows is well within it: by chance a short run has more.
    check(samples - agree <= max(samples * (1 - AGREE), chance(samples * (1 - AGREE) / 10)),
          f"{agree} of {samples} stacks are as libdw has them: {found['class'][:3]}")
    return found


@once
def start_samples():
    """Samples of a program's start, in which its loader is not mapped yet for us: execve(2) alone takes 1 ms on one
    machine and 3 on another. The longest of ten whole lives of a program that does nothing has more than that."""
    longest = 0
    for _ in range(10):
        begin = time.monotonic()
        os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
        longest = max(longest, time.monotonic() - begin)
    return math.ceil(longest * HZ)


def whole(found, share=0.995, started=1):
    spoilt = max((1 - share) * found["samples"], chance((1 - share) * found["samples"] / 10))
    check(found["complete"] >= found["samples"] - spoilt - start_samples() * started,
          f"{found['complete']} of {found['samples']} are complete: {found['class'][:3]}")


PYTHON = "d={}\nwhile True:\n  for i in range(1000): d[i]=str(i)*3"


@fact
def python_is_walked_as_libdw_walks_it():
    need("python3")
    whole(agrees("/usr/bin/python3", "-c", PYTHON))


@fact
def python_at_context_switches_is_walked_as_libdw_walks_it():
    need("python3")
    code = "import time, json\nwhile True: json.dumps([1, {'a': 2}]); time.sleep(0.0002)"
    whole(agrees("/usr/bin/python3", "-c", code, options=("-s",)))


@fact
def sqlite_is_walked_as_libdw_walks_it():
    need("sqlite3")
    whole(agrees(tool("sqlite3"), ":memory:",
                 "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<30000000) "
                 "SELECT sum(x*x % 7), count(DISTINCT x % 1000) FROM c;"))


@fact
def xz_with_threads_is_walked_as_libdw_walks_it():
    need("xz")
    whole(agrees("sh", "-c", "exec xz -T2 -c < /dev/urandom > /dev/null"))


@fact
def a_compiler_and_its_children_are_walked_as_libdw_walks_them():
    need("gcc")
    source = scratch("source") + ".c"
    with open(source, "w", encoding="ascii") as f:
        f.write("".join(
            f"int f{i}(int a){{int s=0;for(int i=0;i<a;i++)s+=(i^{i})%(a+1);return s;}}\n"
            for i in range(1500)))
    # 60 KiB: cc1's recursion is deep. libgmp's assembly has no CFI, and its stacks are guessed.
    whole(agrees("gcc", "-O2", "-c", source, "-o", "/dev/null", options=("-b", "61440")), 0.98)


@fact
def redis_under_load_is_walked_as_libdw_walks_it():
    need("redis-server", "redis-benchmark", "redis-cli")
    sock = scratch("redis") + ".sock"
    # It and its clients load many libraries first, whose constructors have no CFI: a third of the first half second.
    whole(agrees("sh", "-c", f"redis-server --port 0 --unixsocket {sock} --save '' --dir {os.path.dirname(sock)} "
                 f"> /dev/null & until redis-cli -s {sock} ping > /dev/null 2>&1; do sleep 0.2; done; "
                 f"exec redis-benchmark -s {sock} -n 100000000 -t set,get -q -c 20 > /dev/null",
                 options=("-n", str(4 * SAMPLES))), started=5)


@fact
def git_is_walked_as_libdw_walks_it():
    if subprocess.run(["git", "-C", TOP, "rev-parse"], check=False,
                      capture_output=True).returncode:
        skip("the tree is not a git repository")
    whole(agrees("sh", "-c", "while git -c safe.directory='*' -C \"$1\" log -p --stat -M > /dev/null; "
                 "do :; done", "sh", TOP))


@fact
def rust_is_walked_as_libdw_walks_it():
    # Linked by lld, which gives segments the same page of the file at different addresses.
    program = programs.rust()
    program.end()
    whole(agrees(*program.argv))


def target(name, *args, **kw):
    """The same for a target, which is told to go."""
    path = os.path.join(TARGETS, name)
    if not os.path.exists(path):
        raise Broken(f"{path} is not built (make targets)")
    return agrees("sh", "-c", f"echo go | {path} {' '.join(args)} > /dev/null", at_least=100, **kw)


@fact
def frames_of_every_shape_are_walked_as_libdw_walks_them():
    deep = ("-b", "65000", "-n", "300")
    whole(target("unwind_depth", "burn", "300", options=deep))
    whole(target("unwind_depth", "malloc", "300", options=deep))
    whole(target("unwind_depth_cet", "burn", "300", options=deep))
    whole(target("unwind_depth_static", "burn", "300", options=deep))
    whole(target("unwind_depth_static-pie", "malloc", "300", options=deep))


@fact
def what_signals_interrupt_is_walked_as_libdw_walks_it():
    few = ("-n", "400")
    whole(target("unwind_signals", "plain", options=few))
    # A copy of one stack does not hold the other that the signal came from.
    target("unwind_signals", "altstack", options=few)
    target("unwind_signals", "nested", options=few)


@fact
def stubs_vfork_and_threads_are_walked_as_libdw_walks_them():
    few = ("-n", "400", "-d", "1")
    whole(target("unwind_calls", "plt", options=few))
    whole(target("unwind_calls", "vfork", options=few + ("-s",)))
    whole(target("unwind_calls", "threads", options=few))
    whole(target("unwind_mix_static", "threads", options=few))
    whole(target("unwind_calls", "dlopen", os.path.join(TARGETS, "lib_unwind.so"), options=few))


main()
