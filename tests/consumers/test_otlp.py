#!/usr/bin/python3
"""OpenTelemetry's profiles that convert makes, read by their specification (opentelemetry-proto 1.11.0, profiles/v1development) with
code of our own: tables and their empty entries, totals, stacks, times. TAP."""

import gzip
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from facts import run_facts

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/live"))
from pprof_reader import message, numbers, one, signed  # noqa: E402 (its folder is known only now)

BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
MEMSCOPE = os.environ.get("MEMSCOPE", os.path.join(BUILD, "memscope"))
DIR = tempfile.mkdtemp(prefix="memscope-otlp-")
INPUTS = ("tests/golden/oncpu/input.pb.gz", "tests/golden/hostile/input.pb.gz", "tests/golden/sites/input.pb.gz",
          "tests/consumers/ghc/hc.eventlog.gz")
MAPPINGS, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS = range(1, 8)


def run(*argv):
    r = subprocess.run(argv, capture_output=True, text=True, cwd=TOP, check=False, timeout=60)
    if r.returncode:
        raise AssertionError(f"{' '.join(argv[:3])}: status {r.returncode}: {r.stderr.strip()[:300]}")
    return r.stdout


class Otlp:
    """profiles: [(type, [(stack, attributes, values, times)], begin, duration)]; indexes are looked up, and so must be there."""

    def __init__(self, raw):
        top = message(raw)
        assert set(top) == {1, 2} and len(top[2]) == 1, f"fields {sorted(top)}"
        self.tables = message(top[2][0])
        assert set(self.tables) == set(range(1, 8)), f"tables {sorted(self.tables)}"
        for number, table in self.tables.items():
            empty = b"\n" + bytes([16]) + bytes(16) + b"\x12" + bytes([8]) + bytes(8) if number == LINKS else b""
            assert table[0] == empty, f"entry 0 of table {number}: {table[0]!r}"
            assert len(set(table)) == len(table), f"table {number} has an entry twice"
        self.used = {number: {0} for number in self.tables}
        scopes = message(message(top[1][0])[2][0])
        assert message(scopes[1][0])[1] == [b"memscope"]
        self.profiles = [self.profile(message(p)) for p in scopes[2]]

    def at(self, number, i):
        assert i < len(self.tables[number]), f"{i} of table {number}, which has {len(self.tables[number])}"
        self.used[number].add(i)
        return self.tables[number][i]

    def string(self, i):
        return self.at(STRINGS, i).decode("utf-8")

    def value_type(self, b):
        m = message(b)
        return f"{self.string(one(m, 1))}/{self.string(one(m, 2))}"

    def attributes(self, m, number):
        out = {}
        for i in numbers(m, number):
            a = message(self.at(ATTRIBUTES, i))
            key, value = self.string(one(a, 1)), message(one(a, 2))
            assert key not in out and len(value) == 1, f"attribute {key}"
            out[key] = one(value, 1).decode() if 1 in value else signed(one(value, 3))
            self.string(one(a, 3))
        return out

    def frames(self, i):
        """Names and places, the leaf first; inlined calls before their callers."""
        out = []
        for at in numbers(message(self.at(STACKS, i)), 1):
            location = message(self.at(LOCATIONS, at))
            mapping = message(self.at(MAPPINGS, one(location, 1)))
            self.string(one(mapping, 4))
            self.attributes(mapping, 5)
            kind = self.attributes(location, 4).get("profile.frame.type")
            for b in location.get(3, []):
                line = message(b)
                function = message(self.at(FUNCTIONS, one(line, 1)))
                names = [self.string(one(function, k)) for k in (1, 2, 3)]
                assert one(line, 1) and any(names), "a line without a function"
                out.append((names[0], names[2], one(line, 2), kind))
        return out

    def profile(self, m):
        samples = []
        for b in m.get(2, []):
            s = message(b)
            self.at(LINKS, one(s, 3))
            times = [t for packed in s.get(5, []) for t in struct.unpack(f"<{len(packed) // 8}Q", packed)]
            samples.append((self.frames(one(s, 1)), self.attributes(s, 2), [signed(v) for v in numbers(s, 4)], times))
        return self.value_type(one(m, 1)), samples, one(m, 3), one(m, 4)


def converted(path):
    out = os.path.join(DIR, "x.otlp")
    run(MEMSCOPE, "convert", path, "-o", out)
    with open(out, "rb") as f:
        return Otlp(f.read())


def folded_total(path, value):
    """Of that value type, in its own unit; and how many stacks and label sets have some."""
    pprof = os.path.join(DIR, "x.pb.gz")
    run(MEMSCOPE, "convert", path, "-o", pprof)
    with gzip.open(pprof) as f:
        top = message(f.read())
    strings = [s.decode() for s in top[6]]
    types = [f"{strings[one(message(t), 1)]}/{strings[one(message(t), 2)]}" for t in top[1]]
    values = [signed(numbers(message(s), 2)[types.index(value)]) for s in top[2]]
    return sum(values), sum(1 for v in values if v)


def every_value_type_is_a_profile_with_its_total():
    for path in INPUTS:
        types = set()
        for kind, samples, _, _ in converted(path).profiles:
            got = sum(v for _, _, values, _ in samples for v in values), len(samples)
            assert got == folded_total(path, kind), f"{path} {kind}: {got}, not {folded_total(path, kind)}"
            types.add(kind)
        assert len(types) >= 2, f"{path}: {types}"


def nothing_is_in_the_tables_that_no_sample_uses():
    for path in INPUTS:
        o = converted(path)
        for number, table in o.tables.items():
            unused = set(range(len(table))) - o.used[number]
            assert not unused, f"{path}: {len(unused)} of table {number}, {[table[i] for i in sorted(unused)][:3]}"


def samples_have_the_times_that_are_known():
    o = converted(INPUTS[3])
    timed = {kind: samples for kind, samples, _, _ in o.profiles if any(times for *_, times in samples)}
    assert list(timed) == ["space_time/byte-milliseconds"], f"{list(timed)}"
    for kind, samples, begin, duration in o.profiles:
        for _, _, values, times in samples:
            assert len(values) == (len(times) if kind in timed else 1) and all(values), f"{kind}: {len(values)} {len(times)}"
            assert times == sorted(times) and all(begin <= t < begin + duration for t in times), f"{kind}: outside the run"
    assert sum(len(times) for *_, times in timed["space_time/byte-milliseconds"]) > 500


def stacks_have_names_files_lines_and_kinds():
    kinds = {f[3] for path in INPUTS for _, samples, _, _ in converted(path).profiles for frames, *_ in samples for f in frames}
    assert {"native", "kernel", None} <= kinds, f"{kinds}"
    o = converted(INPUTS[3])
    stacks = {tuple(f[:3] for f in frames) for frames, *_ in o.profiles[0][1]}
    lines = [f for s in stacks for f in s if f[0] == "Main.build"]
    assert lines and lines[0][1] == "HeapLevels.hs" and lines[0][2] > 0, f"{stacks}"
    attributes = o.profiles[0][1][0][1]
    assert attributes["process.executable.name"] == "HeapLevels_p" and attributes["process.pid"] > 1, f"{attributes}"


def protoc_reads_it():
    for path in INPUTS:
        converted(path)
        with open(os.path.join(DIR, "x.otlp"), "rb") as f:
            r = subprocess.run(["protoc", "--decode_raw"], stdin=f, capture_output=True, text=True, check=False)
        assert r.returncode == 0 and re.match(r"1 \{\n", r.stdout), f"{path}: {r.stderr}"


FACTS = [(every_value_type_is_a_profile_with_its_total, ()), (nothing_is_in_the_tables_that_no_sample_uses, ()),
         (samples_have_the_times_that_are_known, ()), (stacks_have_names_files_lines_and_kinds, ()), (protoc_reads_it, ("protoc",))]

try:
    sys.exit(run_facts(FACTS))
finally:
    shutil.rmtree(DIR, ignore_errors=True)
