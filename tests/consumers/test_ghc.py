#!/usr/bin/python3
"""GHC's eventlogs and .hp files beside what a reader of our own, written after GHC's user's guide, finds in them: every band of every
census, and the areas below them. ghc/ has the files of real runs of targets/HeapLevels.hs (GHC 9.0.2); with ghc installed, others are
made. TAP."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from fractions import Fraction

from facts import run_facts

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
MEMSCOPE = os.environ.get("MEMSCOPE", os.path.join(BUILD, "memscope"))
DIR = tempfile.mkdtemp(prefix="memscope-ghc-")
KINDS = ("hT", "hc", "hy", "hb")
VARIES, END = 0xffff, 0xffff


def run(*argv, status=0):
    r = subprocess.run(argv, capture_output=True, text=True, cwd=DIR, check=False, timeout=60)
    if r.returncode != status:
        raise AssertionError(f"{' '.join(argv[:3])}: status {r.returncode}: {r.stderr.strip()[:300]}")
    return r


# --- a reader of our own ------------------------------------------------------------------------------------


def events(data):
    """[(number, ns, payload, offset behind it)], and whether the end mark was there."""
    at = data.index(b"hetb") + 4
    sizes = {}
    while data[at:at + 4] == b"etb\0":
        number, size, n = (int.from_bytes(data[at + k:at + k + w], "big") for k, w in ((4, 2), (6, 2), (8, 4)))
        sizes[number] = size
        at += 12 + n
        at += 4 + int.from_bytes(data[at:at + 4], "big") + 4
    at = data.index(b"datb", at) + 4
    out = []
    while at + 2 <= len(data):
        number = int.from_bytes(data[at:at + 2], "big")
        if number == END:
            return out, True
        ns, begin, size = int.from_bytes(data[at + 2:at + 10], "big"), at + 10, sizes[number]
        if size == VARIES:
            size, begin = int.from_bytes(data[begin:begin + 2], "big"), begin + 2
        if begin + size > len(data):
            break
        out.append((number, ns, data[begin:begin + size], begin + size))
        at = begin + size
    return out, False


def censuses(log):
    """[(ns, {band: bytes})] of an eventlog; stacks are tuples of cost centres, the outermost first."""
    centres, out, now = {}, [], None
    for number, ns, p, _ in log:
        if number == 161:
            label, module = p[4:].split(b"\0")[:2]
            centres[int.from_bytes(p[:4], "big")] = (module + b"." + label).decode()
        elif number in (162, 166):
            now = (int.from_bytes(p[8:16], "big") if number == 166 else ns, {})
        elif number in (163, 164):
            size = int.from_bytes(p[1:9], "big")
            ids = [int.from_bytes(p[k:k + 4], "big") for k in range(10, 10 + 4 * p[9], 4)] if number == 163 else None
            band = p[9:p.index(b"\0", 9)].decode() if number == 164 else tuple(centres[i] for i in reversed(ids)) or ("MAIN",)
            if size:
                now[1][band] = now[1].get(band, 0) + size
        elif number == 165:
            out.append(now)
    return out


def hp_censuses(text):
    """The same of a .hp file, with its first and last samples, which hold nothing."""
    out = []
    for sample in re.findall(r"^BEGIN_SAMPLE ([\d.]+)\n(.*?)^END_SAMPLE", text, re.S | re.M):
        parts = {}
        for line in sample[1].splitlines():
            name, size = line.rsplit("\t", 1)
            if int(size):
                parts[name] = parts.get(name, 0) + int(size)
        out.append((round(Fraction(sample[0]) * 10**9), parts))
    return out


def areas(levels, end_ns):
    """{band: byte × ms below the straight lines from census to census, nothing at 0 and at the end}."""
    out, last, last_ns = {}, {}, 0
    for ns, parts in levels + ([(end_ns, {})] if end_ns is not None else []):
        ns = max(ns, last_ns)
        for b in set(last) | set(parts):
            out[b] = out.get(b, 0) + Fraction(last.get(b, 0) + parts.get(b, 0), 2) * (ns - last_ns) / 10**6
        last, last_ns = parts, ns
    return out


# --- what memscope finds ------------------------------------------------------------------------------------


def stored(kind, ending):
    with gzip.open(os.path.join(HERE, f"ghc/{kind}.{ending}.gz"), "rb") as f:
        data = f.read()
    path = os.path.join(DIR, f"{kind}.{ending}")
    with open(path, "wb") as f:
        f.write(data)
    return data, path


def held(path, value, status=0):
    """{band: value} as folded text has it."""
    out = {}
    for line in run(MEMSCOPE, "convert", path, "--value", value, "--no-comm", "--format", "folded", "-o", "-",
                    status=status).stdout.splitlines():
        if not line.startswith("# "):
            stack, _, n = line.rpartition(" ")
            frames = tuple(re.sub(r" \([^()]*\.hs\)$", "", f) for f in stack.split(";"))
            out[frames] = int(n)
    return out


def as_stacks(parts):
    return {b if isinstance(b, tuple) else (b,): n for b, n in parts.items()}


def the_same(path, levels, end_ns):
    """All of its values, of every band."""
    whole = [parts for _, parts in levels if parts]
    peak = max(whole, key=lambda b: sum(b.values()))
    for value, want in (("peak_space", peak), ("inuse_space", whole[-1])):
        got = held(path, value)
        assert got == as_stacks(want), f"{path} {value}: {sorted(set(got.items()) ^ set(as_stacks(want).items()))[:6]}"
    want = as_stacks(areas(levels, end_ns))
    got = held(path, "space_time")
    assert set(got) == {b for b, n in want.items() if n >= 1}, f"{path}: parts {set(got) ^ set(want)}"
    for band, area in got.items():
        assert abs(area - want[band]) <= 1, f"{path}: {band} {area}, not {float(want[band])}"
    for band, mean in held(path, "mean_space").items():
        all_ns = end_ns if end_ns is not None else levels[-1][0]
        assert abs(mean - want[band] * 10**6 / all_ns) <= 1, f"{path}: mean of {band} is {mean}"


def every_band_of_an_eventlog_is_what_its_events_say():
    for kind in KINDS:
        data, path = stored(kind, "eventlog")
        log, ended = events(data)
        assert ended and len(censuses(log)) > 3, f"{kind}: {len(censuses(log))} censuses: no test"
        the_same(path, censuses(log), max(ns for _, ns, _, _ in log))


def every_band_of_an_hp_file_is_what_its_lines_say():
    for kind in KINDS:
        data, path = stored(kind, "hp")
        levels = hp_censuses(data.decode())
        the_same(path, [level for level in levels if level[1]], levels[-1][0])


def an_eventlog_has_the_censuses_of_the_hp_file_of_its_run():
    """Biographies are rounded up in neither; where GHC cuts names in .hp files, sizes are compared."""
    for kind in KINDS:
        log = [sorted(parts.values()) for _, parts in censuses(events(stored(kind, "eventlog")[0])[0]) if parts]
        lines = [sorted(parts.values()) for _, parts in hp_censuses(stored(kind, "hp")[0].decode()) if parts]
        assert log == lines, f"{kind}: {len(log)} and {len(lines)} censuses"


def page_of(path):
    run(MEMSCOPE, "report", path, "-o", "page.html")
    with open(os.path.join(DIR, "page.html"), encoding="utf-8") as f:
        return json.loads(re.search(r'<script type="application/json" id="run">(.*?)</script>', f.read(), re.S).group(1))


def a_page_has_the_collectors_figures_and_what_the_program_marked():
    data, path = stored("hT", "eventlog")
    log, page = events(data)[0], page_of(path)
    trend = next(s for s in page["series"] if s["id"] == "trend")
    for number, name in ((51, "gc_live_kb"), (50, "gc_heap_kb")):
        values = [v for v in next(c for c in trend["columns"] if c["name"] == name)["values"] if v is not None]
        want = [int.from_bytes(p[4:12], "big") / 1024 for k, _, p, _ in log if k == number]
        assert abs(max(values) - max(want)) < 1e-9 * max(want) and all(min(abs(v - w) for w in want) < 1e-9 * v for v in values), f"{name}: {max(values)}, not {max(want)}"
    columns = {c["name"]: c["values"][-1] for c in trend["columns"]}
    pauses = [ns for number, ns, _, _ in log if number == 10], [ns for number, ns, _, _ in log if number == 9]
    assert columns["gc_count"] == len(pauses[0]), f"{columns['gc_count']} collections, not {len(pauses[0])}"
    assert abs(columns["gc_ms"] - (sum(pauses[0]) - sum(pauses[1])) / 1e6) < 1e-6, f"{columns['gc_ms']} ms"
    marks = sorted((ns, p.split(b"\0")[0].decode(), number != 58) for number, ns, p, _ in log if number in (16, 19, 58))
    got = [(round(m["at"] * 1e9 / 1000), m["text"], m["message"]) for m in page["marks"]["all"]]
    assert got == [(round(ns / 1000), text, message) for ns, text, message in marks] and len(got) >= 3, f"{got} {marks}"
    assert page["profiles"][0]["types"][page["profiles"][0]["shown_type"]]["unit"] == "byte-milliseconds"
    assert page["details"][0]["sites"] == len(held(path, "space_time")), page["details"]


def a_log_that_is_cut_keeps_its_whole_censuses_and_says_where():
    data, _ = stored("hc", "eventlog")
    path = os.path.join(DIR, "cut.eventlog")
    first = next(end for number, _, _, end in events(data)[0] if number == 165)
    for size in range(first, len(data) - 2, (len(data) - first) // 12):
        with open(path, "wb") as f:
            f.write(data[:size])
        log, ended = events(data[:size])
        levels = censuses(log)
        done = run(MEMSCOPE, "report", path, status=3)
        assert not ended and f"ends at byte {size} without an end mark" in done.stderr, f"{size}: {done.stderr}"
        assert f"{len(log)} events, {len(levels)} whole censuses" in done.stderr, f"{len(log)}, {len(levels)}: {done.stderr}"
        got = held(path, "inuse_space", status=3)
        assert got == as_stacks(levels[-1][1]), f"{size}: {got}"


def a_threaded_program_of_several_capabilities_is_read_alike():
    """Its blocks are out of order. Made here: two capabilities that allocate at the same time."""
    program = os.path.join(DIR, "levels")
    done = subprocess.run(["ghc", "-v0", "-O1", "-threaded", "-eventlog", "-rtsopts", "-outputdir", os.path.join(DIR, "o"), "-o", program,
                           os.path.join(TOP, "tests/targets/HeapLevels.hs")], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    run(program, "+RTS", "-N2", "-hT", "-l", "-i0.02", f"-ol{program}.eventlog")
    with open(program + ".eventlog", "rb") as f:
        log, ended = events(f.read())
    times = [ns for _, ns, _, _ in log]
    assert ended and times != sorted(times), "no block is out of order: no test"
    the_same(program + ".eventlog", censuses(log), max(times))


FACTS = [(every_band_of_an_eventlog_is_what_its_events_say, ()),
         (every_band_of_an_hp_file_is_what_its_lines_say, ()),
         (an_eventlog_has_the_censuses_of_the_hp_file_of_its_run, ()),
         (a_page_has_the_collectors_figures_and_what_the_program_marked, ()),
         (a_log_that_is_cut_keeps_its_whole_censuses_and_says_where, ()),
         (a_threaded_program_of_several_capabilities_is_read_alike, ("ghc",))]

try:
    sys.exit(run_facts(FACTS))
finally:
    shutil.rmtree(DIR, ignore_errors=True)
