#!/usr/bin/python3
"""Google's own pprof reads our profiles and agrees, function by function. TAP.

Every value type of every profile: self and total of each function as `pprof -top` prints them are
compared with the same sums over our folded stacks. pprof is built from Debian's packages.
"""

import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
MEMSCOPE = os.environ.get("MEMSCOPE", os.path.join(BUILD, "memscope"))
PPROF = os.path.join(BUILD, "pprof")
SOURCE = "/usr/share/gocode/src/github.com/google/pprof"
DIR = tempfile.mkdtemp(prefix="memscope-pprof-")


def skip(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def build_pprof():
    if os.path.exists(PPROF):
        return
    if not shutil.which("go"):
        skip("no go (apt-get install golang-go)")
    if not os.path.isdir(SOURCE):
        skip("no pprof sources (apt-get install golang-github-google-pprof-dev)")
    r = subprocess.run(["go", "build", "-o", PPROF, "github.com/google/pprof"], capture_output=True,
                       env={**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode",
                            "GOCACHE": os.path.abspath(os.path.join(BUILD, "go-cache"))})
    if r.returncode:
        skip("pprof does not build: " + r.stderr.decode()[:200].replace("\n", " "))


def run(*argv):
    r = subprocess.run(argv, capture_output=True, text=True, cwd=DIR,
                       env={**os.environ, "PPROF_TMPDIR": DIR, "PPROF_NO_BROWSER": "1"})
    if r.returncode:
        raise AssertionError(f"{' '.join(argv[:3])}: {r.stderr.strip()[:300]}")
    return r.stdout


def pprof_types(path):
    """Names and units of the value types, as pprof reads them."""
    raw = run(PPROF, "-raw", "-symbolize=none", path)
    line = raw.split("Samples:\n")[1].split("\n")[0]
    return [t.replace("[dflt]", "").split("/") for t in line.split()]


def pprof_top(path, index, unit, *options):
    """{function: (self, total)}, and the total it reports."""
    out = run(PPROF, *options, "-top", "-symbolize=none", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0",
              f"-sample_index={index}", *([f"-unit={unit}"] if unit != "count" else []), path)
    total = int(re.search(r"of (\d+)\w* total", out).group(1))
    rows = {}
    for line in out.split("flat%   sum%        cum   cum%\n")[1].splitlines():
        flat, _, _, cum, _, name = line.split(None, 5)
        name = re.sub(r" \(inline\)$", "", name)
        rows[name] = (int(re.match(r"-?\d+", flat)[0]), int(re.match(r"-?\d+", cum)[0]))
    return rows, total


def our_top(path, name, unit):
    """The same from our folded stacks. pprof names what has no name after its image."""
    folded = run(MEMSCOPE, "flame", "-o", "-", "--format", "folded", "--no-comm", "--value",
                 f"{name}/{unit}", path)
    rows, total, lines = {}, 0, 0
    for line in folded.splitlines():
        if line.startswith("# ") and line.endswith(" #"):
            continue  # what the run was called
        stack, _, n = line.rpartition(" ")
        n = int(n) * (1000 if unit == "nanoseconds" else 1)
        frames = [re.sub(r"_\[[ki]\]$", "", f) for f in stack.split(";")]
        frames = [re.sub(r"^(.*)\+0x[0-9a-f]+$", r"[\1]", f).replace("[unknown]", "<unknown>")
                  for f in frames]
        total += n
        lines += 1
        for f in set(frames):
            flat, cum = rows.get(f, (0, 0))
            rows[f] = (flat + (n if f == frames[-1] else 0), cum + n)
    return rows, total, lines


def compare(path):
    for index, (name, unit) in enumerate(pprof_types(path)):
        theirs, their_total = pprof_top(path, index, unit)
        ours, our_total, lines = our_top(path, name, unit)
        # Folded time is whole microseconds: half of one is lost or won in each line at most.
        tolerance = 500 * max(lines, 1) if unit == "nanoseconds" else 0
        theirs = {k: v for k, v in theirs.items() if v[1] > tolerance}
        ours = {k: v for k, v in ours.items() if v[1] > tolerance}
        where = f"{name}/{unit}"
        assert abs(our_total - their_total) <= tolerance, \
            f"{where}: total {our_total}, pprof {their_total}"
        assert set(ours) == set(theirs), \
            f"{where}: only in one of them: {sorted(set(ours) ^ set(theirs))[:8]}"
        for f, (flat, cum) in ours.items():
            assert abs(flat - theirs[f][0]) <= tolerance and abs(cum - theirs[f][1]) <= tolerance, \
                f"{where}: {f}: ours {flat} {cum}, pprof {theirs[f]}"


def large_profile():
    """2,000 stacks with recursion, kernel and inlined frames."""
    rnd = random.Random(7)
    lines = []
    for _ in range(2000):
        stack = ["main"] + [f"fn{int(rnd.paretovariate(0.5)) % 300}" for _ in range(rnd.randrange(1, 40))]
        stack += [f"inl{rnd.randrange(9)}_[i]"] if rnd.random() < .3 else []
        stack += ["do_syscall_64_[k]", f"sys{rnd.randrange(9)}_[k]"] if rnd.random() < .4 else []
        lines.append(f"{';'.join(stack)} {rnd.randrange(1, 1000)}\n")
    with open(os.path.join(DIR, "large.folded"), "w") as f:
        f.writelines(lines)
    return os.path.join(DIR, "large.folded")


def selected():
    """report's and pprof's rows of the same stacks, and their total, which stays that of all."""
    run(MEMSCOPE, "convert", os.path.join(DIR, "large.folded"), "-o", f"{DIR}/large.pb.gz")
    for ours, theirs in ((["--filter", "^fn1[0-9]$"], ["-focus=^fn1[0-9]$"]),
                         (["--ignore", "^(fn2|inl3)$"], ["-ignore=^(fn2|inl3)$"]),
                         (["--filter", "do_sys", "--ignore", "fn5"], ["-focus=do_sys", "-ignore=fn5"])):
        doc = json.loads(run(MEMSCOPE, "report", "--json", *ours, f"{DIR}/large.pb.gz"))
        rows, total = pprof_top(f"{DIR}/large.pb.gz", 0, "count", *theirs)
        assert doc["whole"] == total, f"{ours}: of {doc['whole']}, pprof of {total}"
        got = {r["function"]: (r["self"], r["total"]) for r in doc["by_total"]}
        assert got == rows, f"{ours}: differ: {sorted(set(got.items()) ^ set(rows.items()))[:6]}"
        assert sum(flat for flat, _ in rows.values()) == doc["total"] < total, f"{ours}: {doc['total']}"


def merged():
    """What pprof adds up and writes again says as much of its errors as what we add up."""
    parts = [f"{TOP}/tests/golden/diff-several/{name}.pb.gz" for name in ("before-1", "after-2")]
    parts.append(f"{TOP}/tests/golden/diff-several/before-3.pb.gz")
    theirs, ours = f"{DIR}/theirs.pb.gz", f"{DIR}/ours.pb.gz"
    run(PPROF, "-proto", "-symbolize=none", "-output", theirs, *parts)
    run(MEMSCOPE, "merge", *parts, "-o", ours)
    compare(ours)
    compare(theirs)
    reports = [run(MEMSCOPE, "report", "--json", path) for path in (theirs, ours)]
    assert '"self_low":' in reports[1], f"no intervals: {reports[1]}"
    assert reports[0] == reports[1], f"merged by pprof {reports[0]}, by us {reports[1]}"


def sources():
    yield "2,000 folded stacks", large_profile()
    for path in sorted(glob.glob(os.path.join(TOP, "tests/golden/*/input.pb.gz"))):
        case = os.path.basename(os.path.dirname(path))
        if case not in ("hostile", "report-hostile", "difference"):
            yield f"the golden case {case}", path


def converted(source, path):
    run(MEMSCOPE, "flame", source, "-o", path)
    compare(path)


def main():
    build_pprof()
    tests = list(sources())
    facts = [(lambda path=f"{DIR}/{i}.pb.gz", source=source: converted(source, path), f"pprof -top agrees on {fact}")
             for i, (fact, source) in enumerate(tests)]
    facts += [(selected, "pprof -focus and -ignore select the same stacks as --filter and --ignore"),
              (merged, "pprof -proto keeps the errors of estimates")]
    print(f"1..{len(facts)}")
    bad = 0
    for i, (fact, name) in enumerate(facts, 1):
        try:
            fact()
            print(f"ok {i} - {name}")
        except AssertionError as e:
            print(f"# {e}")
            print(f"not ok {i} - {name}")
            bad += 1
    return 1 if bad else 0


try:
    sys.exit(main())
finally:
    shutil.rmtree(DIR, ignore_errors=True)
