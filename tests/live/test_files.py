"""Profiles from files: the same totals as the tools that are made for them, and what changed."""

import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import time

import pprof_reader
from containers import Group, entering, grouped, new_id
from harness import *

LIBS = "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu"


def library(soname, package):
    for where in LIBS.split(":"):
        if os.path.exists(os.path.join(where, soname)):
            return os.path.join(where, soname)
    return skip(f"{soname} is not installed ({package})")


def memscope(*args, status=0):
    got = subprocess.run([MEMSCOPE, *map(str, args)], capture_output=True, timeout=120, check=False,
                         stdin=subprocess.DEVNULL)
    equal(got.returncode, status, f"exit status of memscope {args}: {got.stderr.decode()}")
    return got.stdout.decode()


def folded(*args, status=0):
    lines = memscope("flame", "-o", "-", "--format", "folded", *args, status=status).splitlines()
    return {l.rsplit(" ", 1)[0]: int(l.rsplit(" ", 1)[1]) for l in lines}


def total_of(tool_name, value, files, program):
    """What jeprof or google-pprof say the files add up to."""
    got = subprocess.run([tool_name, "--text", "--show_bytes", f"--{value}", program, *files],
                         capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
    found = re.search(r"Total: (\d+)", got.stdout.decode())
    check(found, f"{tool_name} says no total: {got.stdout[:200]} {got.stderr[:400]}")
    return int(found.group(1))


def agrees(tool_name, values, files, *ours, program=os.path.join(BUILD, "targets/heap_churn")):
    for value in values:
        want = total_of(tool_name, value, files, program)
        lines = memscope("convert", *ours, "-o", "-", "--format", "folded", "--value", value)
        got = sum(int(l.rsplit(" ", 1)[1]) for l in lines.splitlines())
        # Each stack of each file is rounded once, here to the nearest and there as floats are.
        stacks = sum(open(f, encoding="utf-8").read().count("@") for f in files)
        near(got, want, stacks, f"{value} of {len(files)} dumps")


def churned(value, *args):
    at = folded("--value", value, *args)
    return {f: sum(v for s, v in at.items() if f";{f};take" in s)
            for f in ("keep_small", "keep_large", "churn")}


@once
def jemalloc_dumps():
    where = scratch("jemalloc")
    os.makedirs(where)
    subprocess.run([os.path.join(BUILD, "targets/heap_churn")], check=True, timeout=FINISH_SEC,
                   env=dict(os.environ, LD_PRELOAD=library("libjemalloc.so.2", "libjemalloc2"),
                            MALLOC_CONF="prof:true,prof_accum:true,lg_prof_sample:14,prof_final:true,"
                                        f"lg_prof_interval:23,prof_prefix:{where}/jeprof"))
    files = glob.glob(f"{where}/*.heap")
    if not files:
        skip("this libjemalloc2 is built without prof")
    return where, files


@fact
def jemalloc_dumps_add_up_as_jeprof_says():
    need("jeprof")
    where, files = jemalloc_dumps()
    check(len(files) > 4, f"{len(files)} dumps only")
    last = max(files, key=lambda f: int(f.rsplit(".", 3)[1]))
    agrees("jeprof", ("inuse_space", "alloc_objects"), [last], last)
    agrees("jeprof", ("inuse_space",), files, where, "all")
    equal(folded(where), folded(last), "the latest of them")


@fact
def jemalloc_dumps_are_true_and_named():
    where, files = jemalloc_dumps()
    last = max(files, key=lambda f: int(f.rsplit(".", 3)[1]))
    live, ever = churned("inuse_space", last), churned("alloc_space", last)
    truth = {"keep_small": 20 * sum(40 + i % 200 for i in range(2000)),
             "keep_large": 20 * sum(9000 + i % 5000 for i in range(300)),
             "churn": 20 * sum(100 + i % 1000 for i in range(5000))}
    for f, bytes_ in truth.items():
        # Sampled by the byte, 16,384 of them between two on average; the allocator rounds sizes up
        # to their classes, by a quarter at most and by a tenth on average. Each size is below or not
        # far above the mean, so 4 sigma of the samples are enough.
        tolerance = 4 / (bytes_ / 16384) ** 0.5 * bytes_
        within(ever[f], bytes_ - tolerance, bytes_ * 1.25 + tolerance, f"bytes ever allocated in {f}")
        if f == "churn":
            equal(live[f], 0, "live bytes of what was freed")
        else:
            within(live[f], bytes_ - tolerance, bytes_ * 1.25 + tolerance, f"live bytes of {f}")


@fact
def dumps_of_gperftools_add_up_as_google_pprof_says():
    need("google-pprof")
    where = scratch("gperftools")
    os.makedirs(where)
    subprocess.run([os.path.join(BUILD, "targets/heap_churn")], check=True, timeout=FINISH_SEC,
                   stderr=subprocess.DEVNULL,
                   env=dict(os.environ, LD_PRELOAD=library("libtcmalloc.so.4", "libgoogle-perftools4"),
                            HEAPPROFILE=f"{where}/gp", HEAP_PROFILE_ALLOCATION_INTERVAL="16777216"))
    files = sorted(glob.glob(f"{where}/gp.*.heap"))
    check(len(files) > 2, f"{len(files)} dumps only")
    agrees("google-pprof", ("inuse_space", "alloc_objects"), files[-1:], where, "latest")
    agrees("google-pprof", ("alloc_space",), files, where, "all")
    # Every call is counted: exactly what the program asked for.
    equal(churned("alloc_space", where)["churn"], 20 * sum(100 + i % 1000 for i in range(5000)),
          "bytes allocated by churn")


@once
def redis_dumps():
    """A series of heap dumps of redis-server while it is filled; oldest first."""
    need("redis-server", "redis-cli", "jeprof")
    where = scratch("redis")
    os.makedirs(where)
    server = Child([tool("redis-server"), "--port", "0", "--unixsocket", f"{where}/s", "--save", "", "--dir",
                    where, "--enable-debug-command", "yes"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=dict(os.environ, MALLOC_CONF="prof:true,lg_prof_sample:15,lg_prof_interval:22,"
                                                    f"prof_prefix:{where}/redis"))
    def cli(*words):
        return subprocess.run([tool("redis-cli"), "-s", f"{where}/s", *words], capture_output=True,
                              timeout=FINISH_SEC, check=False).stdout
    deadline = time.monotonic() + 20
    while cli("ping") != b"PONG\n" and time.monotonic() < deadline and server.alive():
        time.sleep(0.05)
    for i in range(4):
        cli("debug", "populate", "5000", f"k{i}", "1000")
    server.end()
    files = sorted(glob.glob(f"{where}/redis.*.heap"), key=lambda f: int(f.rsplit(".", 3)[1]))
    if not files:
        skip("this redis-server has no allocator that writes heap dumps")
    return where, files


@fact
def a_series_of_dumps_of_redis_adds_up_as_jeprof_says():
    where, files = redis_dumps()
    check(len(files) >= 4, f"{len(files)} dumps")
    program = tool("redis-server")
    agrees("jeprof", ("inuse_space",), files, where, "all", program=program)
    agrees("jeprof", ("inuse_space",), files[-3:], where, "last:3", program=program)
    names = [os.path.basename(f) for f in (files[0], files[2])]
    agrees("jeprof", ("inuse_space",), [files[0], files[2]], where, ",".join(names), program=program)
    # Their functions and ours: the share of what redis made of its values.
    check(any("dict" in s.lower() or "sds" in s for s in folded(where, "latest", status=0)),
          "no function of redis is named")


@fact
@grouped
def a_dump_of_a_container_is_named_from_its_root():
    where, files = jemalloc_dumps()
    last = max(files, key=lambda f: int(f.rsplit(".", 3)[1]))
    root, dump = os.path.join(where, "root"), os.path.join(where, "moved")
    os.makedirs(f"{root}/app")
    shutil.copy(os.path.join(BUILD, "targets/heap_churn"), f"{root}/app/server")
    with open(last, encoding="utf-8") as f:
        text = f.read()
    with open(dump, "w", encoding="utf-8") as f:
        f.write(text.replace(os.path.realpath(os.path.join(BUILD, "targets/heap_churn")), "/app/server"))
    check(any(";keep_large;take" in s for s in folded("--root", root, dump)),
          "not named from the container's root")
    check(not any("keep_large" in s for s in folded(dump)), "named from somewhere else")
    # A link that leads out of the root is followed inside of it.
    os.rename(f"{root}/app/server", f"{root}/server")
    os.symlink("../../../../../../server", f"{root}/app/server")
    check(any(";keep_large;take" in s for s in folded("--root", root, dump)),
          "a link within the container was not followed")
    if tool("busybox"):
        shutil.copy(tool("busybox"), root)
        ident = new_id()
        group = Group(ident)
        child = Child(entering(group, ["/busybox", "sleep", "60"], root))
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and (not group.pids() or
                                               os.readlink(f"/proc/{group.pids()[0]}/root") != root):
            time.sleep(0.02)
        check(any(";keep_large;take" in s for s in folded("-c", ident[:12], dump)),
              "not named from the container itself")
        child.end()


@fact
def what_perf_script_prints_counts_as_perf_report_does():
    need("perf")
    where = scratch("perf")
    os.makedirs(where)
    data = f"{where}/perf.data"
    got = subprocess.run(["perf", "record", "-q", "-F", "999", "-e", "cpu-clock", "-g", "-o", data,
                          os.path.join(BUILD, "targets/cpu_mix"), "150"],
                         capture_output=True, timeout=FINISH_SEC, check=False)
    if got.returncode:
        skip(f"perf cannot record here: {got.stderr.decode().strip()[:80]}")
    with open(f"{where}/perf.txt", "wb") as f:
        subprocess.run(["perf", "script", "-i", data], stdout=f, stderr=subprocess.DEVNULL, check=True,
                       timeout=FINISH_SEC)
    report = subprocess.run(["perf", "report", "-i", data, "--stdio", "-g", "none", "--no-children",
                             "-F", "sample,period,symbol"], capture_output=True, check=True, timeout=FINISH_SEC)
    want = {}
    for count, period, name in re.findall(r"^ *(\d+) +(\d+) +\[[.k]\] (\S+)", report.stdout.decode(),
                                          re.M):
        want[name] = (int(count), int(period))
    check(sum(c for c, _ in want.values()) > 50, f"perf has too few samples: {want}")
    for value, column in (("samples/count", 0), ("cpu/nanoseconds", 1)):
        got = json.loads(memscope("report", "--json", "--value", value, "-n", 1000, f"{where}/perf.txt"))
        self = {}
        for r in got["by_self"]:
            self[r["function"]] = self.get(r["function"], 0) + r["self"]
        equal(got["total"], sum(v[column] for v in want.values()), f"all {value}")
        for name in ("mix_1", "mix_2", "mix_5", "mix_9"):
            equal(self.get(name, 0), want.get(name, (0, 0))[column], f"{value} of {name}")


def folded_by_hand(text):
    """{"comm;root;…;leaf": samples} of what perf script prints, read as a person would."""
    found = {}
    for block in re.split(r"\n\s*\n", text.replace("\r", "")):
        lines = [l for l in block.splitlines() if "PERF_RECORD_" not in l and l.strip()]
        if not lines:
            continue
        comm = re.match(r" *(.*?) +\d+(?:/\d+)? +[\d.]+: ", lines[0]).group(1)
        frames = []
        for line in lines[1:]:
            addr, name, _, image = re.match(r"\s+([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)?( \(([^()]*|\[.*\])\))?$",
                                            line).groups()
            if name == "[unknown]":
                name = "[" + image.rsplit("/", 1)[-1].strip("[]") + "]" if image else name
            frames.append(name + ("_[k]" if len(addr) == 16 and addr[0] in "89abcdef" else "") +
                          ("_[i]" if image == "inlined" else ""))
        stack = ";".join([comm] + frames[::-1])
        found[stack] = found.get(stack, 0) + 1
    return found


@fact
def what_perf_script_prints_is_folded_as_by_hand():
    need("perf")
    where = scratch("perf-hand")
    os.makedirs(where)
    program = os.path.join(where, "my prog 7")  # a name as bad as the first line of a sample
    shutil.copy(os.path.join(BUILD, "targets/cpu_mix"), program)
    for how in ("fp", "dwarf,4096"):
        data = f"{where}/perf.data"
        got = subprocess.run(["perf", "record", "-q", "-F", "499", "-e", "cpu-clock", "--call-graph", how,
                              "-o", data, program, "200"], capture_output=True, timeout=FINISH_SEC, check=False)
        if got.returncode:
            skip(f"perf cannot record here: {got.stderr.decode().strip()[:80]}")
        for fields in ((), ("-F", "comm,tid,time,event,ip,sym,dso"), ("--show-mmap-events", "--show-task-events")):
            text = subprocess.run(["perf", "script", "-i", data, *fields], capture_output=True, check=True,
                                  timeout=FINISH_SEC).stdout.decode()
            for ends in ("\n", "\r\n"):
                with open(f"{where}/perf.txt", "w", encoding="utf-8", newline="") as f:
                    f.write(text.replace("\n", ends))
                want, got = folded_by_hand(text), folded(f"{where}/perf.txt")
                # 100 samples of eleven functions, each with 4 in a hundred and more.
                check(len(want) > 3, f"{len(want)} stacks of {sum(want.values())} samples")
                equal(sum(got.values()), sum(want.values()), f"samples, {how} {fields} {ends!r}")
                equal({k: v for k, v in got.items() if want.get(k) != v}, {}, f"stacks, {how} {fields} {ends!r}")


@once
def two_runs():
    """The same work twice, and once with one function more."""
    outs = []
    for more in ((), (), ("more",)):
        run = Run("--only", "oncpu", "-F", 999, "--", os.path.join(BUILD, "targets/cpu_mix"), 600, *more)
        run.finish()
        run.must()
        outs.append(run)
    return outs


@fact
def diff_names_the_one_change_and_none_of_two_equal_runs():
    first, again, more = two_runs()
    # The rule lets one pair in a hundred name something: what it names is not the same twice.
    named = [changed(first.out, again.out)]
    if named[0]:
        run = Run("--only", "oncpu", "-F", 999, "--", os.path.join(BUILD, "targets/cpu_mix"), 600)
        run.finish()
        run.must()
        named = [changed(first.out, run.out), changed(again.out, run.out)]
    check(not set.intersection(*map(set, named)), f"changes of two equal runs: {named}")
    # Of its own functions: what the kernel does at its switches is others' affair, and differs.
    for before, after, what in ((first, more, "added"), (more, first, "removed")):
        found = {name: how for name, how in changed(before.out, after.out).items() if name.startswith("mix_")}
        equal(found, {"mix_12": what}, f"changes by the function {what}")
    equal(changed(first.out, more.out, "--normalize").get("mix_12"), "added",
          "the function more, as a share")


def changed(before, after, *how, sources=("oncpu",)):
    got = json.loads(memscope("diff", "--json", "-n", 1000, *how, before, after))
    equal([p["source"] for p in got["profiles"]], list(sources), "profiles compared")
    check(got["scalars"]["duration_ns"]["before"] > 0, "no scalars")
    return {r["function"]: r["what"] for p in got["profiles"] for r in p["rows"] if r["changed"]}


def check_pairs(outs, sources):
    """Of all pairs of runs of one program hardly one names anything: one run in a hundred may differ by
    chance from the others, which of four are three pairs of six."""
    named = [changed(a, b, sources=sources) for a, b in itertools.combinations(outs, 2)]
    check(sum(map(bool, named)) <= 3, f"changes of runs of one program: {named}")


@fact
def runs_that_wait_alike_differ_by_nothing():
    outs = []
    for _ in range(4):
        target = Target("waits", 20, 2, 5)
        # Not of wakers: those are of waits that have ended, and how many of the long ones did is when the run was stopped.
        run = Run("-p", target.pid, "--only", "offcpu", "--no-wakers")
        run.ready()
        target.ask("go")
        run.stop()
        run.must()
        target.end()
        outs.append(run.out)
    check_pairs(outs, ["offcpu"])


@fact
def runs_whose_allocations_are_sampled_differ_by_nothing():
    outs = []
    for _ in range(4):
        run = Run("--alloc=sampled", "--alloc-rate", "16K", "--only", "alloc", "--",
                  os.path.join(BUILD, "targets/heap_churn"))
        run.finish()
        run.must()
        outs.append(run.out)
    check_pairs(outs, ["alloc", "heap"])


@fact
def runs_whose_allocations_are_exact_differ_by_nothing():
    outs = []
    for _ in range(2):
        run = Run("--alloc=exact", "--only", "alloc", "--", os.path.join(BUILD, "targets/alloc_pairs"), 20000)
        run.finish()
        run.must()
        outs.append(run.out)
    got = json.loads(memscope("diff", "--json", "-n", 1000, *outs))
    equal([r for p in got["profiles"] if p["source"] == "alloc" for r in p["rows"] if r["changed"]], [],
          "changes of two equal runs")
    more = Run("--alloc=exact", "--only", "alloc", "--", os.path.join(BUILD, "targets/alloc_pairs"), 30000)
    more.finish()
    more.must()
    got = json.loads(memscope("diff", "--json", "-n", 1000, outs[0], more.out))
    rows = {r["function"]: r["self"]["after"] - r["self"]["before"] if isinstance(r["self"], dict) else r
            for p in got["profiles"] if p["source"] == "alloc" for r in p["rows"] if r["changed"]}
    equal(set(rows), {"main"}, f"what changed where 10,000 pairs more are made: {rows}")


@fact
def merged_profiles_are_the_sum_of_both():
    first, again, _ = two_runs()
    out = os.path.join(scratch("merge"), "sum.pb.gz")
    os.makedirs(os.path.dirname(out))
    memscope("merge", first.path("oncpu.pb.gz"), again.path("oncpu.pb.gz"), "-o", out)
    equal(sum(folded(out).values()),
          sum(sum(folded(r.path("oncpu.pb.gz")).values()) for r in (first, again)), "samples")
    one, both = first.profile("oncpu"), pprof_reader.read(out)
    ids = [m.build_id for m in both.mappings.values() if m.build_id]
    equal(len(set(ids)), len(ids), "mappings with a build ID of their own")
    check(both.duration_ns > one.duration_ns, "durations are not added")


main()
