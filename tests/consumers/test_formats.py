#!/usr/bin/python3
"""Other tools read what convert and report make for them, and find our totals: callgrind_annotate, ms_print, dot, Python. TAP."""

import csv
import gzip
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

from facts import run_facts

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
sys.path.insert(0, os.path.join(TOP, "tests/live"))
import pprof_reader  # noqa: E402 (its folder is known only now)

MEMSCOPE = os.environ.get("MEMSCOPE", os.path.join(BUILD, "memscope"))
DIR = tempfile.mkdtemp(prefix="memscope-formats-")
ODD = 'we<ird> "quoted" \\ back\x01slash (3) x'


def run(*argv):
    r = subprocess.run(argv, capture_output=True, text=True, cwd=DIR, check=False, timeout=60)
    if r.returncode:
        raise AssertionError(f"{' '.join(argv[:3])}: {r.stderr.strip()[:300]}")
    return r.stdout


def large_profile():
    """2,000 stacks with recursion, direct and over others; their sums by function, each once per stack."""
    rnd = random.Random(11)
    callees = {f: [f"fn{rnd.randrange(90)}" for _ in range(3)] for f in ["main", *(f"fn{i}" for i in range(120))]}
    own, total, edges, lines = {}, {}, {}, []
    for _ in range(2000):
        stack = ["main"]
        for _ in range(rnd.randrange(1, 30)):
            stack.append(callees[stack[-1]][int(rnd.paretovariate(1)) % 3])
        if rnd.random() < .1:
            stack.append(ODD)
        n = rnd.randrange(1, 1000)
        lines.append(f"{';'.join(stack)} {n}\n")
        own[stack[-1]] = own.get(stack[-1], 0) + n
        for f in set(stack):
            total[f] = total.get(f, 0) + n
        for pair in set(zip(stack, stack[1:])):
            edges[pair] = edges.get(pair, 0) + n
    with open(os.path.join(DIR, "large.folded"), "w", encoding="utf-8") as f:
        f.writelines(lines)
    return own, total, edges


OWN, TOTAL, EDGES = large_profile()
ALL = sum(OWN.values())


def shown(name):
    return name.replace("\x01", "\ufffd")


def annotated(*how):
    """{function: value} of callgrind_annotate, all functions, and the program's total."""
    out = run("callgrind_annotate", "--threshold=100", "--auto=no", *how, os.path.join(DIR, "large.callgrind"))
    whole = int(re.search(r"([\d,]+) .*PROGRAM TOTALS", out).group(1).replace(",", ""))
    rows = {}
    for line in out.splitlines():
        m = re.match(r"\s*([\d,]+) \(\s*[\d.]+%\)\s+\?\?\?:(.*?)\s*$", line)
        if m:
            name = re.sub(r" \[.*\]$", "", m.group(2))
            rows[name] = rows.get(name, 0) + int(m.group(1).replace(",", ""))
    return rows, whole


def callgrind_has_every_functions_own_cost():
    run(MEMSCOPE, "convert", "large.folded", "-o", "large.callgrind")
    rows, whole = annotated()
    assert whole == ALL, f"total {whole}, not {ALL}"
    want = {shown(f): n for f, n in OWN.items()}
    got = {f: n for f, n in rows.items() if n}
    assert got == want, f"differ: {sorted(set(got.items()) ^ set(want.items()))[:6]}"


def callgrind_has_every_functions_total_also_of_recursive_ones():
    rows, whole = annotated("--inclusive=yes")
    assert whole == ALL, f"total {whole}, not {ALL}"
    want = {shown(f): n for f, n in (*TOTAL.items(), ("all", ALL))}
    assert rows == want, f"differ: {sorted(set(rows.items()) ^ set(want.items()))[:6]}"


def callgrind_has_lines_and_calls():
    """Of a program whose C library has debug information: what its caller spent is at the line of the call."""
    run(MEMSCOPE, "convert", f"{TOP}/tests/golden/sites/input.pb.gz", "-o", "lines.callgrind")
    out = run("callgrind_annotate", "--tree=caller", "--threshold=100", "--auto=no", "--show=alloc_space",
              "--sort=alloc_space", "lines.callgrind")
    callers = re.findall(r"< .*libc-start.c:__libc_start_main", out)
    assert callers, out[:800]
    with open(os.path.join(DIR, "lines.callgrind"), encoding="utf-8") as f:
        text = f.read()
    assert re.search(r"^[1-9]\d* \d+", text, re.M), "no line number at all"


def dhat_has_every_stack_once():
    """Totals as sites.csv's writer adds them; every frame of a stack is in the table."""
    run(MEMSCOPE, "convert", f"{TOP}/tests/golden/sites/input.pb.gz", "-o", "sites.dhat")
    with open(os.path.join(DIR, "sites.dhat"), encoding="utf-8") as f:
        data = json.load(f)
    for key, value in (("tb", "alloc_space"), ("tbk", "alloc_objects"), ("gb", "peak_space"), ("eb", "inuse_space")):
        folded = run(MEMSCOPE, "convert", f"{TOP}/tests/golden/sites/input.pb.gz", "--value", value, "--format",
                     "folded", "-o", "-")
        want = sum(int(line.rpartition(" ")[2]) for line in folded.splitlines() if not line.startswith("# "))
        assert sum(p[key] for p in data["pps"]) == want, f"{value}: {sum(p[key] for p in data['pps'])}, not {want}"
    stacks = [tuple(p["fs"]) for p in data["pps"]]
    assert len(set(stacks)) == len(stacks), "a stack is there twice"
    assert {i for s in stacks for i in s} == set(range(1, len(data["ftbl"]))), "frames that are not in the table"


def the_call_graph_has_the_largest_functions_and_calls():
    run(MEMSCOPE, "convert", "large.folded", "-o", "large.dot")
    labels, arrows = {}, {}
    for line in run("dot", "-Tplain", "large.dot").splitlines():
        words = re.findall(r'"(?:[^"\\]|\\.)*"|\S+', line)
        if words[0] == "node":
            labels[words[1]] = words[6].strip('"').replace('\\"', '"').replace("\\\\", "\\")
        elif words[0] == "edge":
            label = next(w for w in words if "%" in w)
            arrows[words[1], words[2]] = int(re.search(r"[\d,]+", label).group().replace(",", ""))
    names = {n: label.split("\\n")[0] for n, label in labels.items()}
    largest = sorted((f for f in TOTAL if TOTAL[f] >= 0.005 * ALL), key=lambda f: (-TOTAL[f], f))[:80]
    assert set(names.values()) == {shown(f) for f in largest}, \
        f"functions differ: {set(names.values()) ^ {shown(f) for f in largest}}"
    got = {(names[a], names[b]): n for (a, b), n in arrows.items()}
    want = {(shown(a), shown(b)): n for (a, b), n in EDGES.items()
            if a in largest and b in largest and n >= 0.001 * ALL}
    assert len(want) > 240, f"{len(want)} calls: no test of the limit"
    least = sorted(want.values(), reverse=True)[239]
    want = {pair: n for pair, n in want.items() if n > least or got.get(pair) == n}
    assert len(got) == 240, f"{len(got)} calls"
    assert got == want, f"calls differ: {sorted(set(got.items()) ^ set(want.items()))[:6]}"


def massif_has_the_tree_of_callers():
    source = os.path.join(TOP, "tests/golden/heap/input.pb.gz")
    run(MEMSCOPE, "convert", source, "--value", "inuse_space", "-o", "heap.massif")
    out = run("ms_print", "--threshold=0", "heap.massif")
    whole = int(re.search(r"^100\.00% \(([\d,]+)B\)", out, re.M).group(1).replace(",", ""))
    folded = run(MEMSCOPE, "convert", source, "--value", "inuse_space", "--format", "folded", "--no-comm", "-o", "-")
    stacks = [line.rpartition(" ") for line in folded.splitlines() if not line.startswith("# ")]
    assert whole == sum(int(n) for _, _, n in stacks), f"{whole} bytes"
    first = [int(n.replace(",", "")) for n in re.findall(r"^->\s*[\d.]+% \(([\d,]+)B\)", out, re.M)]
    assert sum(first) == whole and first == sorted(first, reverse=True), f"places: {first}"


def snapshots(path):
    """[(ms, bytes, is it by stack)] as ms_print has them, and its detailed trees' lines."""
    out = run("ms_print", "--threshold=0", path)
    rows = re.findall(r"^ +\d+ +([\d,]+) +([\d,]+) +[\d,]+ +0 +0$", out, re.M)
    return [tuple(int(n.replace(",", "")) for n in row) for row in rows], out


def massif_has_what_a_run_held_over_time():
    """Of a run with live_series.csv beside its sites: each row's total; each tenth by stack; the peak at its time."""
    folder = os.path.join(DIR, "run")
    os.mkdir(folder)
    shutil.copy(f"{TOP}/tests/golden/sites/input.pb.gz", os.path.join(folder, "sites.pb.gz"))
    profile = pprof_reader.read(os.path.join(folder, "sites.pb.gz"))
    rows = [[1000 * i, 5 * i * i, i % 3] for i in range(40)]
    with open(os.path.join(folder, "live_series.csv"), "w", encoding="utf-8") as f:
        f.write('timestamp,"main;load;get","main;serve","OTHER"\n')
        for i, row in enumerate(rows):
            at = (profile.time_ns + (i + .5) * profile.duration_ns / 41) / 1e9
            f.write(f"{at:.6f},{row[0]},{row[1]},{row[2]}\n")
    run(MEMSCOPE, "convert", "run/sites.pb.gz", "-o", "run.massif")
    got, text = snapshots("run.massif")
    peak = sum(s.values[[t.split("/")[0] for t in profile.types].index("peak_space")] for s in profile.samples)
    assert [n for _, n in got if n != peak][:41] == [0] + [sum(row) for row in rows], f"{got}"
    assert [ms for ms, _ in got] == sorted(ms for ms, _ in got), "times go back"
    detailed = re.search(r"Detailed snapshots: \[(.*)\]", text).group(1)
    assert re.search(r"\d+ \(peak\)", detailed) and len(detailed.split(",")) >= 5, detailed
    assert re.search(r"^->[\d.]+% \(9,000B\) 0x0: get$", text, re.M) or re.search(r"\(\d+,000B\) 0x0: get", text), text[-2000:]


def massif_has_each_census_of_ghc():
    """The total of every snapshot by stack is that of the stacks in it, and of the times of the profile."""
    with gzip.open(f"{TOP}/tests/consumers/ghc/hc.eventlog.gz", "rb") as f, open(os.path.join(DIR, "hc.eventlog"), "wb") as to:
        to.write(f.read())
    run(MEMSCOPE, "convert", "hc.eventlog", "-o", "hc.massif")
    run(MEMSCOPE, "convert", "hc.eventlog", "-o", "hc.times.csv.gz")
    with gzip.open(os.path.join(DIR, "hc.times.csv.gz"), "rt", encoding="utf-8") as f:
        lines = f.read().splitlines()
    width, bins = float(re.search(r"bins of (\S+) s", lines[0]).group(1)), {}
    for line in lines[2:]:
        _, second, area = line.split(",")
        bins.setdefault(float(second), []).append(int(area) / (width * 1000))
    totals = [(second, sum(parts), len(parts)) for second, parts in bins.items()]
    got, text = snapshots("hc.massif")
    assert len(got) > 50 and got[0] == (0, 0), f"{len(got)} snapshots"
    found = 0
    for ms, size in got[1:-2]:
        found += any(abs(size - total) <= n for second, total, n in totals if abs(second * 1000 + width * 500 - ms) <= 1)
    assert found >= len(got) - 5, f"{found} of {len(got)} snapshots are in the profile's times"
    for block in re.findall(r"^100\.00% \(([\d,]+)B\).*?\n(.*?)^-----", text, re.M | re.S):
        first = [int(n.replace(",", "")) for n in re.findall(r"^->[\d.]+% \(([\d,]+)B\)", block[1], re.M)]
        assert sum(first) == int(block[0].replace(",", "")), f"{block[0]}: {first}"


def perf_scripts_text_loses_no_stack():
    """Read back: the same stacks with the same counts; inlined calls are frames like others there."""
    run(MEMSCOPE, "convert", "large.folded", "-o", "large.perf")
    with open(os.path.join(DIR, "large.perf"), encoding="utf-8") as f:
        times = [float(m) for m in re.findall(r"^\S.* \d+/\d+ (\d+\.\d{6}): \d+ cpu-clock:$", f.read(), re.M)]
    assert times and times == sorted(times), "times do not grow"

    def stacks(name):
        lines = run(MEMSCOPE, "convert", name, "--no-comm", "--format", "folded", "-o", "-").splitlines()
        return sorted(line for line in lines if not line.startswith("# "))
    got, want = stacks("large.perf"), stacks("large.folded")
    assert got == want, f"differ: {sorted(set(got) ^ set(want))[:4]}"


def what_massif_and_dhat_cannot_hold_is_refused():
    for name, word in (("x.massif", "bytes"), ("x.dhat", "sites.pb.gz")):
        r = subprocess.run([MEMSCOPE, "convert", "large.folded", "-o", name], capture_output=True, text=True, cwd=DIR,
                           check=False)
        assert r.returncode and word in r.stderr and r.stderr.count("\n") == 1, f"{r.returncode} {r.stderr}"
        assert not os.path.exists(os.path.join(DIR, name)), f"{name} was written"


def report(*options):
    return run(MEMSCOPE, "report", "large.folded", *options)


def rows_of_text(text):
    """(total, self or None, name) of rows under the first heading with columns."""
    rows = []
    for line in text.split(" function\n", 1)[1].split("\n\n")[0].splitlines():
        line = re.sub(r" +[\d,]+ to [\d,]+ ", " ", line)  # an interval
        values = re.match(r"((?:\s*[\d,]+ +<?[\d.]+% )+)", line)
        if values:
            numbers = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) +<?[\d.]+%", values.group(1))]
            rows.append((numbers, re.sub(r"^[ │├└─]+", "", line[values.end():])))
    return rows


def report_says_the_same_as_text_json_and_csv():
    want = {shown(f): (OWN.get(f, 0), n) for f, n in TOTAL.items()}
    table = {r["function"]: (int(r["self"]), int(r["total"])) for r in csv.DictReader(io.StringIO(report("--csv")))}
    assert table == want, f"CSV differs: {sorted(set(table.items()) ^ set(want.items()))[:6]}"
    doc = json.loads(report("--json"))
    table = {r["function"]: (r["self"], r["total"]) for r in doc["by_total"]}
    assert table == want, f"JSON differs: {sorted(set(table.items()) ^ set(want.items()))[:6]}"
    assert doc["total"] == ALL, doc["total"]
    table = {name: numbers[0] for numbers, name in rows_of_text(report("-n", "0"))}
    assert table == {f: own for f, (own, _) in want.items() if own}, f"text differs: {sorted(table.items())[:6]}"
    for n in (1, 7, 40):
        rows = rows_of_text(report("-n", str(n)))
        assert sum(numbers[0] for numbers, _ in rows) == ALL, f"-n {n}: rows do not add up to {ALL}: {rows}"
        assert len(rows) == n + 1 and rows[-1][1] == f"({len(OWN) - n} more functions)", rows[-1]


def trees_add_up_to_all_of_the_profile():
    for options in (("--min=0",), ("--min=5",), ("--filter", "^fn1"), ("--focus", "fn1", "--ignore", "fn2", "--min=0.3")):
        text = report("--tree", *options)
        rows = rows_of_text(text)
        # Of a function its self, of a row that sums others what they have.
        got = sum(n[1] if len(n) == 2 else n[0] if re.match(r"\(.* more\)|\(not selected", name) else 0 for n, name in rows)
        hidden = re.search(r"^Branches below .*, ([\d,]+) \(.* have no row", text, re.M)
        got += int(hidden.group(1).replace(",", "")) if hidden else 0
        assert got == ALL, f"{options}: {got}, not {ALL}: {text[-800:]}"
        rows = list(csv.DictReader(io.StringIO(report("--tree", "--csv", *options))))
        got = sum(int(r["self"] or r["total"]) for r in rows)
        assert got == ALL, f"CSV, {options}: {got}, not {ALL}"
    leaves = {r["function"]: r["total"] for r in json.loads(report("--reverse", "--json", "--min=0"))["reverse"] if not r["depth"]}
    assert leaves == {shown(f): n for f, n in OWN.items()}, f"from the leaf: {leaves}"


def callers_and_callees_count_a_recursive_function_once():
    for f in ("main", "fn1", "fn7", ODD):
        doc = json.loads(report("--json", "--min=0", "--callers", f, "--callees", f))
        assert doc["function_total"] == TOTAL[f] and doc["function_self"] == OWN.get(f, 0), (f, doc["function_total"])
        for half in ("callers", "callees"):
            assert [r["total"] for r in doc[half] if not r["depth"]] == [TOTAL[f]], (f, half)
        assert sum(r["self"] for r in doc["callees"]) == TOTAL[f], f


def a_finding_is_commonmark_whatever_is_in_it():
    evil = "# <b>x</b> [y](z) **w** `v` &amp; ![i](j)\n\n- n\n```\n1. o"
    rows = [{"function": evil, "module": evil, "self": 3, "bytes": 3, "blocked_ns": 3}] * 20
    os.makedirs(os.path.join(DIR, "run"), exist_ok=True)
    with open(os.path.join(DIR, "run/summary.json"), "w", encoding="utf-8") as f:
        json.dump({"verdict": {"sentence": evil, "next": evil}, "title": evil, "command_line": evil, "start": evil, "notes": [evil],
                   "target": {"processes": [{"pid": 1, "comm": evil, "cmdline": evil}]}, "diagnoses": [{"kind": evil, "evidence": evil}],
                   "oncpu": {"samples": 9, "hz": 99, "event": evil, "top_self": rows}, "offcpu": {"waits": rows},
                   "alloc": {"bytes": 9, "tier": evil, "sites": rows}, "drops": [{"count": 1, "help": evil}]}, f)
    run(MEMSCOPE, "report", "run", "-o", "finding.md")
    assert run(MEMSCOPE, "report", "run", "--markdown") == open(os.path.join(DIR, "finding.md"), encoding="utf-8").read()
    blocks = json.loads(run("pandoc", "-f", "commonmark", "-t", "json", "finding.md"))["blocks"]

    def text(inlines):
        return "".join(" " if i["t"] in ("Space", "SoftBreak") else i["c"] if i["t"] == "Str" else text(i["c"]) if i["t"] == "Strong"
                       else f"<{i['t']}>" for i in inlines)

    headings = [text(b["c"][2]) for b in blocks if b["t"] == "Header"]
    assert headings[1:] == ["Date", "Symptom", "Investigation", "Root cause", "Fix", "Result"], headings
    assert headings[0].startswith("Finding: # <b>x</b> [y](z) **w** `v` &amp; ![i](j)"), headings[0]
    kinds = {b["t"] for b in blocks}
    assert kinds == {"Header", "Para", "CodeBlock", "BulletList"}, kinds
    paragraphs = [text(b["c"]) for b in blocks if b["t"] == "Para"]
    bad = [p for p in paragraphs if re.search("<(Link|Image|Code|Emph|RawInline)>", p)]
    assert not bad, bad
    assert any(p.startswith("The run's verdict: # <b>x</b>") for p in paragraphs), paragraphs
    assert [p for p in paragraphs if p.startswith("To fill in:")], "nothing is asked for"


FACTS = [(callgrind_has_every_functions_own_cost, ("callgrind_annotate",)),
         (callgrind_has_every_functions_total_also_of_recursive_ones, ("callgrind_annotate",)),
         (callgrind_has_lines_and_calls, ("callgrind_annotate",)),
         (dhat_has_every_stack_once, ()),
         (the_call_graph_has_the_largest_functions_and_calls, ("dot",)),
         (massif_has_the_tree_of_callers, ("ms_print",)),
         (massif_has_what_a_run_held_over_time, ("ms_print",)),
         (massif_has_each_census_of_ghc, ("ms_print",)),
         (perf_scripts_text_loses_no_stack, ()),
         (report_says_the_same_as_text_json_and_csv, ()),
         (trees_add_up_to_all_of_the_profile, ()),
         (callers_and_callees_count_a_recursive_function_once, ()),
         (a_finding_is_commonmark_whatever_is_in_it, ("pandoc",)),
         (what_massif_and_dhat_cannot_hold_is_refused, ())]

try:
    sys.exit(run_facts(FACTS))
finally:
    shutil.rmtree(DIR, ignore_errors=True)
