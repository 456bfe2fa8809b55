#!/usr/bin/python3
"""Files of other profilers, made by them here: what memscope reads of them is what their own readers say. TAP."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from facts import run_facts

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
MEMSCOPE = os.environ.get("MEMSCOPE", os.path.join(BUILD, "memscope"))
DIR = tempfile.mkdtemp(prefix="memscope-readers-")

PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static char *kept[64];
static inline __attribute__((always_inline)) void *filled(size_t n) { return memset(malloc(n), 1, n); }
__attribute__((noinline)) void churn(int n) { for (int i = 0; i < n; i++) free(filled(100 + i % 7)); }
__attribute__((noinline)) void grow(int i) { kept[i] = filled(10000 * (i + 1)); }
__attribute__((noinline)) void deep(int d) { if (d) { char *p = malloc(d * 10); deep(d - 1); if (d & 1) free(p); } }
static void *thread(void *arg) { churn(50); return arg; }
int main(void) {
	pthread_t t;
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	for (int i = 0; i < 40; i++) {
		churn(20); grow(i); deep(6);
		if (i > 25) { free(kept[i - 5]); kept[i - 5] = NULL; }
	}
}
"""


def run(*argv, status=0):
    r = subprocess.run(argv, capture_output=True, text=True, cwd=DIR, check=False, timeout=100)
    if r.returncode != status:
        raise AssertionError(f"{' '.join(argv[:3])}: {r.returncode}, {r.stderr.strip()[:300]}")
    return r.stdout


def make(name, *argv):
    """The program under a profiler, once: NAME is the file that comes of it."""
    if not os.path.exists(os.path.join(DIR, "program")):
        with open(os.path.join(DIR, "program.c"), "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        # Not optimized: calls are where the source has them, and malloc's are not taken out.
        run("gcc", "-O1", "-fno-builtin", "-g", "-o", "program", "program.c", "-pthread")
    if not os.path.exists(os.path.join(DIR, name)):
        run(*argv, "./program")
    return name


def stacks(name, value):
    out = run(MEMSCOPE, "convert", name, "--value", value, "--no-comm", "--format", "folded", "-o", "-")
    return [(line.rpartition(" ")[0], int(line.rpartition(" ")[2])) for line in out.splitlines()
            if not line.startswith("# ")]


def total(name, value):
    return sum(n for _, n in stacks(name, value))


def page(name):
    """What report.html has beside the profile: {id: {column: values}}, with the times as column ''."""
    run(MEMSCOPE, "report", name, "-o", "page.html")
    with open(os.path.join(DIR, "page.html"), encoding="utf-8") as f:
        data = json.loads(re.search(r'<script type="application/json" id="run">(.*?)</script>', f.read(), re.S).group(1))
    return {s["id"]: {"": s["times"], **{c["name"]: c["values"] for c in s["columns"]}} for s in data["series"]}


# --- heaptrack ---

def heaptrack():
    return make("ht.zst", "heaptrack", "-o", os.path.join(DIR, "ht"))


def heaptrack_costs(name):
    """Sums over all stacks, as heaptrack_print has them, exact."""
    costs = {}
    for kind in ("allocations", "temporary", "peak", "leaked"):
        run("heaptrack_print", "-f", name, "-F", "costs.folded", "--flamegraph-cost-type", kind,
            "-p", "0", "-a", "0", "-T", "0", "-l", "0")
        with open(os.path.join(DIR, "costs.folded"), encoding="utf-8") as f:
            costs[kind] = sum(int(line.rpartition(" ")[2]) for line in f)
    return costs


def heaptracks_totals_are_its_own_in_every_version():
    source = heaptrack()
    text = subprocess.run(["zstd", "-dc", os.path.join(DIR, source)], capture_output=True, check=True).stdout
    third = text.decode()
    assert third.startswith("v ") and third.split("\n")[0].endswith(" 3"), third[:40]
    second = re.sub(r"(?m)^s [0-9a-f]+ ", "s ", third)
    files = {source: None, "ht3.gz": third, "ht3": third, "ht2": re.sub(r"^v (\w+) 3", r"v \1 2", second),
             "ht1": re.sub(r"^v \w+ 3", "v 10200", second)}
    for name, content in files.items():
        if content is not None:
            with (gzip.open if name.endswith(".gz") else open)(os.path.join(DIR, name), "wb") as f:
                f.write(content.encode())
        own = heaptrack_costs(name)
        got = {kind: total(name, value) for kind, value in
               (("allocations", "alloc_objects"), ("peak", "peak_space"), ("leaked", "inuse_space"))}
        assert got == {k: own[k] for k in got}, f"{name}: {got}, heaptrack_print: {own}"
        # heaptrack_print takes each free of record 0 behind another free for one of a temporary block.
        frees = third.split("\n").count("- 0")
        assert 0 <= own["temporary"] - total(name, "temporary") <= frees, f"{name}: {own['temporary']} temporary"


def heaptracks_sites_have_what_the_program_did():
    name = heaptrack()
    got = {}
    for path, n in stacks(name, "inuse_space"):
        for f in {g for g in ("grow", "deep", "churn") if g in path.replace("_[i]", "").split(";")}:
            got[f] = got.get(f, 0) + n
    kept = [i for i in range(40) if not 21 <= i <= 34]
    assert got == {"grow": sum(10000 * (i + 1) for i in kept), "deep": 40 * (20 + 40 + 60)}, got
    series = page(name)
    assert abs(series["trend"]["live_bytes"][-1] - total(name, "inuse_space")) < 1, series["trend"]["live_bytes"][-3:]
    live = series["live_series"]
    assert abs(sum(v[-1] for k, v in live.items() if k) - total(name, "inuse_space")) < 1, "levels do not add up"


# --- massif ---

def massifs_totals_are_ms_prints():
    for name, *options in (("m.out", "--detailed-freq=3"), ("ms.out", "--time-unit=B", "--stacks=yes", "--threshold=0.1")):
        make(name, "valgrind", "--tool=massif", f"--massif-out-file={os.path.join(DIR, name)}", *options)
        out = run("ms_print", name)
        rows = [[int(n.replace(",", "")) for n in line.split()] for line in out.splitlines()
                if re.match(r"^ *\d+( +[\d,]+){5}$", line)]
        with open(os.path.join(DIR, name), encoding="utf-8") as f:
            peak = int(re.search(r"snapshot=(\d+)\n(?:[^\n]*\n){5}heap_tree=peak", f.read()).group(1))
        assert total(name, "peak_space") == rows[peak][2], f"{total(name, 'peak_space')}, ms_print: {rows[peak]}"
        trend = page(name)["trend"]
        want = {"live_bytes": 3, "administration_bytes": 4, "stacks_bytes": 5}
        for column, at in want.items():
            assert trend[column] == [r[at] for r in rows], f"{column} of {name}: {trend[column][:5]}"
        # Each tree is in the table of sites: the last row of each is the last tree's.
        trees = [int(n.replace(",", "")) for n in re.findall(r"^100\.00% \(([\d,]+)B\)|^\d+\.\d+% \(([\d,]+)B\) \(heap alloc",
                                                              out, re.M) for n in n if n]
        live = page(name)["live_series"]
        assert sum(v[-1] for k, v in live.items() if k) == trees[-1], f"{name}: {trees[-1]}"


# --- callgrind ---

def functions(name, value):
    """{function: own}, of all modules and files together."""
    own = {}
    for path, n in stacks(name, value):
        f = path.split(";")[-1]
        own[f] = own.get(f, 0) + n
    return own


def annotated(name, event, inclusive="no"):
    out = run("callgrind_annotate", "--threshold=100", "--auto=no", f"--show={event}", f"--sort={event}",
              f"--inclusive={inclusive}", name)
    rows = {}
    for line in out.splitlines():
        m = re.match(r"\s*([\d,]+) \(\s*[\d.]+%\)\s+(?:\S*?|\?\?\?):(.*?)( \[[^\]]*\])?\s*$", line)
        if m:
            n = int(m.group(1).replace(",", ""))
            # Each file of a function has a line: its own cost there, but all of what it called.
            rows[m.group(2)] = max(rows.get(m.group(2), 0), n) if inclusive == "yes" else rows.get(m.group(2), 0) + n
    return rows, int(re.search(r"([\d,]+) .*PROGRAM TOTALS", out).group(1).replace(",", ""))


def callgrinds_functions_cost_what_callgrind_annotate_says():
    files = (("c.out",), ("ci.out", "--dump-instr=yes", "--collect-jumps=yes", "--branch-sim=yes"),
             ("cn.out", "--compress-strings=no", "--compress-pos=no"),
             ("cs.out", "--separate-callers=2", "--separate-recs=3"))
    for name, *options in files:
        make(name, "valgrind", "--tool=callgrind", f"--callgrind-out-file={os.path.join(DIR, name)}", *options)
        events = ("Ir", "Bcm") if name == "ci.out" else ("Ir",)
        for event in events:
            rows, whole = annotated(name, event)
            got = {re.sub(r"_\[i\]$", "", f): n for f, n in functions(name, event).items()}
            assert sum(got.values()) == whole, f"{name}: {sum(got.values())} {event}, not {whole}"
            want = {f: n for f, n in rows.items() if n}
            assert got == want, f"{name}: differ: {sorted(set(got.items()) ^ set(want.items()))[:6]}"


def callgrinds_parts_in_one_file_add_up():
    """callgrind_annotate reads no such file: it says of itself what each part and thread has."""
    make("cp.out", "valgrind", "--tool=callgrind", f"--callgrind-out-file={os.path.join(DIR, 'cp.out')}",
         "--separate-threads=yes", "--combine-dumps=yes", "--dump-every-bb=1000000")
    with open(os.path.join(DIR, "cp.out"), encoding="utf-8") as f:
        totals = [int(n) for n in re.findall(r"(?m)^totals: (\d+)$", f.read())]
    assert len(totals) > 4, f"{len(totals)} parts"
    assert total("cp.out", "Ir") == sum(totals), f"{total('cp.out', 'Ir')}, not {sum(totals)}"
    out = run(MEMSCOPE, "convert", "cp.out", "--by", "tid", "--format", "folded", "-o", "-")
    roots = {line.split(";")[1] for line in out.splitlines() if not line.startswith("# ")}
    assert roots == {"program (tid 1)", "program (tid 2)"}, f"{roots}"


def callgrinds_calls_are_paths():
    """What main costs with all that it called; the program's own calls, each of which has one caller."""
    make("c.out", "valgrind", "--tool=callgrind", f"--callgrind-out-file={os.path.join(DIR, 'c.out')}")
    rows, whole = annotated("c.out", "Ir", "yes")
    got = {f: sum(n for path, n in stacks("c.out", "Ir") if f in path.split(";")) for f in ("main", "grow", "churn", "thread")}
    for f in ("grow", "churn", "thread"):
        assert abs(got[f] - rows[f]) <= 0.001 * whole, f"{f}: {got[f]}, not {rows[f]}"
    # What the thread cost is below the call that made it, and no part of what that call cost.
    assert abs(got["main"] - rows["main"] - got["thread"]) <= 0.001 * whole, f"{got}, {rows['main']}"
    paths = {path for path, _ in stacks("c.out", "Ir")}
    assert any(re.search(r";main;grow;", p) for p in paths) and any(re.search(r";thread;churn;", p) for p in paths)


# --- JSON ---

def dhats_totals_are_those_of_its_file():
    """As dh_view.js adds them up; and what memscope writes of it, read again, is the same."""
    make("d.out", "valgrind", "--tool=dhat", f"--dhat-out-file={os.path.join(DIR, 'd.out')}")
    with open(os.path.join(DIR, "d.out"), encoding="utf-8") as f:
        points = json.load(f)["pps"]
    for key, value in (("tb", "alloc_space"), ("tbk", "alloc_objects"), ("tl", "lifetime"), ("mb", "most_space"),
                       ("gb", "peak_space"), ("eb", "inuse_space"), ("rb", "read_space"), ("wb", "written_space")):
        want = sum(p[key] for p in points)
        if value == "lifetime":  # folded stacks have microseconds, each rounded
            assert abs(1000 * total("d.out", value) - want) <= 500 * len(points), f"{total('d.out', value)}, {want}"
            continue
        assert total("d.out", value) == want, f"{value}: {total('d.out', value)}, not {want}"
    grown = sum(n for path, n in stacks("d.out", "alloc_space") if "grow" in path.replace("_[i]", "").split(";"))
    assert grown == sum(10000 * (i + 1) for i in range(40)), f"{grown}"


def speedscopes_events_are_time():
    """What each stack of a made-up program with recursion took, in each unit."""
    for unit, ns in (("nanoseconds", 1), ("microseconds", 1000), ("milliseconds", 10**6), ("seconds", 10**9)):
        events, want, stack, at = [], {}, [], 0
        for i in range(400):
            opens = len(stack) < 2 or (i * 7919 % 13 < 7 and len(stack) < 20)
            frame = i * 31 % 5 if opens else stack[-1]
            events.append({"type": "O" if opens else "C", "frame": frame, "at": at})
            stack = stack + [frame] if opens else stack[:-1]
            path = ";".join(f"f{k}" for k in stack)
            want[path] = want.get(path, 0) + 1000 * (i % 3) * ns
            at += 1000 * (i % 3)
        events += [{"type": "C", "frame": f, "at": at} for f in stack[::-1]]
        with open(os.path.join(DIR, "evented.json"), "w", encoding="utf-8") as f:
            json.dump({"$schema": "https://www.speedscope.app/file-format-schema.json",
                       "shared": {"frames": [{"name": f"f{k}"} for k in range(5)]},
                       "profiles": [{"type": "evented", "name": "p", "unit": unit, "startValue": 0, "endValue": at,
                                     "events": events}]}, f)
        # Folded stacks have times in microseconds.
        got = {path: 1000 * n for path, n in stacks("evented.json", "time")}
        assert got == {path: n for path, n in want.items() if n}, f"{unit}: {sorted(set(got.items()) ^ set(want.items()))[:4]}"


# --- what memscope writes, read again ---

def folded(name, value, plain):
    """{stack: value}; `plain`: without the marks of inlined calls and the kernel, which not every format has."""
    found = {}
    out = run(MEMSCOPE, "convert", name, *(("--value", value) if value else ()), "--format", "folded", "-o", "-")
    for line in out.splitlines():
        if not line.startswith("# "):
            path, _, n = line.rpartition(" ")
            path = re.sub(r"_\[[ik]\]", "", path) if plain else path
            found[path] = found.get(path, 0) + int(n)
    return found


def every_format_comes_back_with_what_it_holds():
    """Formats of one value have it as it is shown first; speedscope and pprof have all by name."""
    for source, values in (("oncpu", ("samples", "cpu")), ("offcpu", ("blocked/nanoseconds", "blocked/count")),
                           ("sites", ("alloc_space", "temporary", "inuse_objects"))):
        path = os.path.join(TOP, "tests/golden", source, "input.pb.gz")
        for ext, named, plain in ((".pb.gz", True, False), (".folded", False, False), (".json", True, True),
                                  (".firefox.json", False, True), (".perf", False, True)):
            name = f"again-{source}{ext}"
            run(MEMSCOPE, "convert", path, "--value", values[0], "-o", name)
            for value in values if named else values[:1]:
                if ext == ".json" and value == "blocked/count":
                    continue  # the same name as the time's
                got, want = folded(name, value if named else None, plain), folded(path, value, plain)
                assert got == want, f"{name}, {value}: {sorted(set(got.items()) ^ set(want.items()))[:3]}"


def massif_dhat_and_callgrind_are_written_again_as_they_were():
    """Two generations of a file are equal but for their titles; of callgrind's but for the lines at which callees begin."""
    source = os.path.join(TOP, "tests/golden/sites/input.pb.gz")
    texts = {}
    for ext in (".massif", ".dhat"):
        run(MEMSCOPE, "convert", source, "-o", "first" + ext)
        run(MEMSCOPE, "convert", "first" + ext, "-o", "second" + ext)
        for name in ("first", "second"):
            with open(os.path.join(DIR, name + ext), encoding="utf-8") as f:
                texts[name + ext] = re.sub(r'"cmd":"[^"]*"', "", f.read())
    assert texts["first.dhat"] == texts["second.dhat"], "DHAT's differs"
    # What was held over time makes snapshots of its own the second time; those of the first time are among them.
    first, second = ({m.group() for m in re.finditer(r"mem_heap_B=\d+\n(?:mem.*\n)*heap_tree=(?:peak|detailed)\n(?: *n\d+: .*\n)+",
                                                     texts[f"{name}.massif"])} for name in ("first", "second"))
    assert len(first) == 2 and first <= second, f"massif's: {[t[:200] for t in first - second]}"
    run(MEMSCOPE, "convert", source, "-o", "first.callgrind")
    run(MEMSCOPE, "convert", "first.callgrind", "-o", "second.callgrind")
    for how in ("no", "yes"):
        first, second = (annotated(f"{name}.callgrind", "alloc_space", how)[0] for name in ("first", "second"))
        assert first == second and len(first) > 2, f"{sorted(set(first.items()) ^ set(second.items()))[:4]}"


# --- damage ---

def damaged_files_are_kept_up_to_there():
    """Cut anywhere behind the names: what was read, one sentence, status 3."""
    with open(os.path.join(DIR, "ht.gz"), "wb") as f:
        f.write(gzip.compress(subprocess.run(["zstd", "-dc", os.path.join(DIR, heaptrack())], capture_output=True,
                                             check=True).stdout))
    make("m.out", "valgrind", "--tool=massif", f"--massif-out-file={os.path.join(DIR, 'm.out')}", "--detailed-freq=3")
    make("c.out", "valgrind", "--tool=callgrind", f"--callgrind-out-file={os.path.join(DIR, 'c.out')}")
    for name, path in (("cut.gz", os.path.join(DIR, "ht.gz")), ("cut.massif", os.path.join(DIR, "m.out")),
                       ("cut.callgrind", os.path.join(DIR, "c.out"))):
        with open(path, "rb") as f:
            data = f.read()
        end = len(data) * 3 // 4
        while data[end - 1:end] == b"\n":
            end -= 1
        with open(os.path.join(DIR, name), "wb") as f:
            f.write(data[:end])
        r = subprocess.run([MEMSCOPE, "report", name], capture_output=True, text=True, cwd=DIR, check=False)
        assert r.returncode == 3, f"{name}: {r.returncode} {r.stderr}"
        assert re.search(r"(truncated gzip data after \d+ bytes of the file; what is in its first \d+ lines was kept"
                         r"|it ends within line \d+, which was left out; .* kept)", r.stderr), r.stderr
        assert r.stderr.count("\n") == 1 and "Top by" in r.stdout, r.stderr + r.stdout[:200]


FACTS = [(heaptracks_totals_are_its_own_in_every_version, ("heaptrack", "zstd")),
         (heaptracks_sites_have_what_the_program_did, ("heaptrack",)),
         (massifs_totals_are_ms_prints, ("ms_print", "valgrind")),
         (callgrinds_functions_cost_what_callgrind_annotate_says, ("callgrind_annotate", "valgrind")),
         (callgrinds_parts_in_one_file_add_up, ("valgrind",)),
         (callgrinds_calls_are_paths, ("callgrind_annotate", "valgrind")),
         (dhats_totals_are_those_of_its_file, ("valgrind",)),
         (speedscopes_events_are_time, ()),
         (every_format_comes_back_with_what_it_holds, ()),
         (massif_dhat_and_callgrind_are_written_again_as_they_were, ("callgrind_annotate",)),
         (damaged_files_are_kept_up_to_there, ("heaptrack", "valgrind", "zstd"))]

try:
    sys.exit(run_facts([(fact, ("gcc", *needs)) for fact, needs in FACTS]))
finally:
    shutil.rmtree(DIR, ignore_errors=True)
