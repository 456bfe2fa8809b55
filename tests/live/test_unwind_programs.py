"""Real programs as Debian ships them, without frame pointers and stripped: at least 99.5 % of stacks
are proven to their outermost frame, on CPU at 999 Hz (two of them at 99 Hz, too), at switches and inside malloc.
"""

import contextlib

import programs
from programs import QUIET
from stacks import *


def watch(*args, **kw):
    """watch_it(); then what runs is ended, or it would take its CPU time from the programs to come."""
    try:
        return watch_it(*args, **kw)
    finally:
        for child in list(Child.living):
            child.end()


def watch_it(what, pid, sources=("oncpu", "offcpu", "alloc"), share=WHOLE, seconds=1.5, few=(), hz=(999,)):
    """A running program, at each rate at one time; then its allocations."""
    for _ in range(2):
        rates = [Run("-p", pid, "--only", "oncpu,offcpu", "-F", each, "--json") for each in hz]
        for run in rates:
            run.ready()
        has_worked(pid, 0.4, 20 if "offcpu" in sources and "offcpu" not in few else 0, seconds)
        for run in rates:
            run.send(signal.SIGINT)
        for run in rates:
            run.must()
        # Tables are made while it runs, and a machine whose CPUs others have takes its time for that; the next
        # run has them from the cache.
        if not any(verdicts(run, "oncpu")["no_table"] for run in rates):
            break
    for run, each in zip(rates, hz):
        whole(run, "oncpu", 30 if each == 999 else 3, f"{what} at {each} Hz", share, spare=1)
    if "offcpu" in sources:
        whole(rates[0], "offcpu", 0 if "offcpu" in few else 10, what, share, spare=1)
    if "alloc" in sources:
        for _ in range(2):
            run, _ = record(["-p", pid], lambda: has_worked(pid, 0.05, seconds=0.4), "--only", "alloc",
                            "--alloc=exact", "--json")
            if not verdicts(run, "alloc")["no_table"]:
                break
        whole(run, "alloc", 0 if "alloc" in few else 10, what, share, spare=1)
    return rates[0]


def launched(what, *command, sources=("oncpu",), share=WHOLE, at_least=50):
    """A command, from its first instruction to its end, with its children."""
    run = Run("-F", 999, "--only", ",".join(sources), "--json", "--", *command)
    run.finish()
    check(run.status in (0, 3), f"{what}: exit status {run.status}: {run.stderr[-300:]}")
    for source in sources:
        whole(run, source, at_least, what, share, spare=1)
    return run


@fact
def python_is_whole():
    watch("python3", programs.python().pid, hz=(999, 99))


@fact
def sqlite_is_whole():
    watch("sqlite3", programs.sqlite().pid, few=("offcpu",))


@fact
def redis_under_load_is_whole():
    watch("redis-server", programs.redis().pid, hz=(999, 99))


@fact
def xz_is_whole():
    watch("xz", programs.xz().pid, few=("alloc", "offcpu"))


@fact
def a_compiler_is_whole():
    need("gcc")
    # libgmp's assembly has no CFI, and folding constants passes through it.
    # On an idle machine it leaves its CPU some forty times in all.
    launched("gcc", "gcc", "-O2", "-c", programs.c_source(500), "-o", scratch("object"),
             sources=("oncpu", "offcpu"), share=0.99, at_least=10)


@fact
def git_is_whole():
    need("git")
    if subprocess.run(["git", "-C", TOP, "rev-parse"], check=False, **QUIET).returncode:
        skip("the tree is not a git repository")
    # Children of a launched command write where it does, and the summary is there too.
    # Again and again: a fresh clone may have one commit only.
    launched("git", "timeout", "-s", "INT", "2", "sh", "-c", "trap 'exit 0' INT; while :; do "
             "git -c safe.directory='*' -C \"$1\" log -p --stat -M > /dev/null; done", "sh", TOP)


@fact
def postgres_is_whole():
    watch("postgres", programs.postgres().pid, few=("offcpu", "alloc"))


@fact
def node_is_whole():
    child = programs.node()
    try:
        watch("node", child.pid, few=("offcpu", "alloc"))
    finally:
        with contextlib.suppress(OSError):
            os.unlink(f"/tmp/perf-{child.pid}.map")


@fact
def java_that_keeps_frame_pointers_is_whole():
    # The interpreter and stubs set up frames of their own, and a sample may fall into that.
    watch("java", programs.java("-XX:+PreserveFramePointer").pid, sources=("oncpu",), share=0.98)


@fact
def java_without_frame_pointers_is_whole_by_what_the_jvm_says_of_its_code_and_else_a_guess():
    for lang in ("auto", "off"):
        child = programs.java("-XX:-PreserveFramePointer")
        run, _ = record(["-p", child.pid], lambda: has_worked(child.pid, 0.4, seconds=1.5), "--only", "oncpu", "-F", 999,
                        "--lang", lang, "--json")
        child.end()
        found = verdicts(run, "oncpu")
        print(f"# --lang {lang}: {found}")
        part = (found["complete"] if lang == "auto" else found["guessed"] + found["unreadable"]) / sum(found.values())
        check(part > (0.98 if lang == "auto" else 0.5), f"--lang {lang}: {found}")


@fact
def rust_is_whole():
    run = watch("rust", programs.rust().pid, few=("offcpu",))
    depths = {sum("depth" in f.name for f in s.frames) for s in run.profile("oncpu").samples}
    check(31 in depths, f"no stack with all 31 frames of the recursion: {sorted(depths)}")


@fact
def go_is_whole_with_and_without_its_symbols():
    for flags in ("", "-s -w"):
        watch(f"go {flags}", programs.go(flags).pid, sources=("oncpu", "offcpu"), few=("offcpu",))


main()
