"""What annotate and the report's page say of lines and instructions, beside the profile itself and beside perf annotate."""

import base64
import json
import os
import re
import signal
import subprocess
import zlib

from harness import *

HZ = 1999  # 1.2 s of CPU time are 2,400 samples
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../targets/lines.c")


def marked(mark):
    with open(SOURCE, encoding="utf-8") as f:
        return next(n for n, line in enumerate(f, 1) if f"mark: {mark}" in line)


def annotate(*args):
    got = subprocess.run([MEMSCOPE, "annotate", *map(str, args)], capture_output=True, timeout=FINISH_SEC, check=False,
                         stdin=subprocess.DEVNULL)
    equal(got.returncode, 0, f"exit status of annotate {args}: {got.stderr.decode()}")
    return got.stdout.decode()


def holds_events(pid):
    """Has perf opened its events?"""
    try:
        return any("perf_event" in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


@once
def annotated():
    """A run with perf beside it, where perf is and may be used: (target, run, perf's file or None)."""
    target = Target("lines", 1200)
    where, perf = scratch("annotate"), None
    os.makedirs(where)
    if tool("perf"):
        perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "-p", str(target.pid), "-o",
                                 f"{where}/perf.data"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: holds_events(perf.pid) or perf.poll() is not None, "perf has begun, or ended")
        if perf.poll() is not None:
            perf = None
    run, _ = record(("-p", target.pid, "-F", HZ, "--only", "oncpu"), lambda: target.ask("go"))
    if perf:
        perf.send_signal(signal.SIGINT)
        perf.wait(FINISH_SEC)
    return target, run, perf and f"{where}/perf.data"


def self_by_address(p, name):
    """Of samples whose leaf is compiled into the function `name`: {address: samples}."""
    found = {}
    for s in p.samples:
        here = [f for f in s.frames if f.address == s.frames[0].address]
        if any(f.name == name for f in here):
            found[here[0].address] = found.get(here[0].address, 0) + s.values[0]
    return found


@fact
def instructions_have_the_samples_that_the_profile_has_at_their_addresses():
    target, run, _ = annotated()
    want = self_by_address(run.profile("oncpu"), "mix")
    n = sum(want.values())
    check(n > 500 and len(want) > 3, f"too few samples of mix: {want}")
    got, inlined = {}, set()
    for function in json.loads(annotate("--json", "mix", run.out))["functions"]:
        for code in function["code"]:
            got.update({i["address"]: i["self"] for i in code["instructions"] if i["self"]})
            inlined.update(name for i in code["instructions"] for name in i["inlined"])
    equal(got, want, "samples by address")
    equal(inlined, {"step"}, "inlined calls")
    text = annotate("mix", run.out)
    # The instruction with most, as people read it.
    most = max(want, key=want.get)
    check(re.search(rf"^ *{100 * want[most] / n:.1f}% +{most:x}  .*[a-z]", text, re.M), f"no {most:x} with {want[most]} of {n} in {text}")


@fact
def lines_have_the_samples_of_their_addresses_and_the_text_of_the_file():
    target, run, _ = annotated()
    p = run.profile("oncpu")
    for name, mark in (("mix", "divides"), ("mix", "calls"), ("step", "multiplies")):
        line = marked(mark)
        function = json.loads(annotate("--json", name, run.out))["functions"][0]
        got = next((row for row in function["lines"] if row["line"] == line), None)
        if check(got, f"no line {line} in {function['lines']}"):
            equal(got["self"], sum(s.values[0] for s in p.samples if (s.frames[0].name, s.frames[0].line) == (name, line)),
                  f"self of line {line}")
            equal(got["total"], sum(s.values[0] for s in p.samples if (name, line) in {(f.name, f.line) for f in s.frames}),
                  f"total of line {line}")
            check(f"mark: {mark}" in got["text"], f"its text: {got['text']}")
            check(got["total"] > 50, f"hardly a sample at the line that {mark}: {got}")


@fact
def shares_are_those_of_perf_annotate():
    need("perf", "objdump")
    target, run, data = annotated()
    if not data:
        skip("perf cannot record here")
    ours = self_by_address(run.profile("oncpu"), "mix")
    said = subprocess.run(["perf", "annotate", "-i", data, "--stdio", "-n", "-s", "mix"], capture_output=True, check=True,
                          timeout=FINISH_SEC, stdin=subprocess.DEVNULL).stdout.decode()
    perf = {int(a, 16): int(n) for n, a in re.findall(r"^ +(\d+) +: +([0-9a-f]+):", said, re.M) if int(n)}
    n_ours, n_perf = sum(ours.values()), sum(perf.values())
    if n_perf < 200:
        skip(f"perf has too few samples here: {n_perf}")
    for address in ours.keys() | perf.keys():
        a, b = ours.get(address, 0), perf.get(address, 0)
        # Two draws of one share: binomial each, the share pooled.
        pooled = (a + b) / (n_ours + n_perf)
        tolerance = SIGMAS * (pooled * (1 - pooled) * (1 / n_ours + 1 / n_perf)) ** 0.5 + 1 / n_ours + 1 / n_perf
        near(a / n_ours, b / n_perf, tolerance, f"share at {address:x}")


@fact
def the_page_of_the_run_has_them_and_goes_without_the_text_on_request():
    target, run, _ = annotated()

    def source_of(path):
        with open(path, encoding="utf-8") as f:
            packed = re.search(r'id="source-">([^<]*)<', f.read())[1]
        return json.loads(zlib.decompress(base64.b64decode(packed), -15))

    page = source_of(run.path("report.html"))
    code = next((c for c in page["codes"] if c["name"] == "mix"), None)
    if check(code, f"no code of mix: {[c['name'] for c in page['codes']]}, {page['problems']}"):
        check(any(row[4] >= 0 for row in code["rows"]), "no jump within mix")
    lines = [line for t in page["texts"] for _, part in t["parts"] for line in part]
    check(any("mark: divides" in line for line in lines), f"no line of the source: {page['texts']}")
    out = run.path("without.html")
    subprocess.run([MEMSCOPE, "report", run.out, "--no-source", "-o", out], check=True, timeout=FINISH_SEC)
    without = source_of(out)
    equal(without["texts"], [], "texts with --no-source")
    check(any(c["name"] == "mix" for c in without["codes"]), "the code of mix without its source")


main()
