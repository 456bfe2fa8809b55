"""Every file of a run is there, readable, private, and agrees with the others."""

import csv
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import time
import xml.etree.ElementTree as ET

from harness import *

FILES = {f"{s}.{ext}" for s in SOURCES for ext in ("pb.gz", "folded", "svg")} | \
        {"sites.csv", "trend.csv", "rss_breakdown.csv", "summary.txt", "summary.json", "report.html"}
# What folded text and pictures show: value type, and how many of its units are one of theirs.
SHOWN = {"oncpu": ("samples/count", 1), "offcpu": ("blocked/nanoseconds", 1000),
         "alloc": ("alloc_space/bytes", 1), "heap": ("inuse_space/bytes", 1),
         "peak": ("inuse_space/bytes", 1)}


@once
def full():
    """A default run of a program that computes, allocates and waits a little."""
    target = Target("alloc_truth", 2, 3000)

    def during():
        for _ in range(3):
            target.ask("run")
    run, _ = record(("-p", target.pid, "-F", 999, "--alloc=exact"), during)
    return target, run


@fact
def every_promised_file_is_written_and_nothing_else():
    _, run = full()
    equal(sorted(FILES - set(os.listdir(run.out))), [], "files missing")
    equal([f for f in os.listdir(run.out) if (f.startswith(".") and f != ".memscope") or f.endswith("~")], [],
          "temporary files")
    with open(run.path(".memscope"), encoding="utf-8") as f:
        listed = {line.rstrip("\n").removeprefix(":") for line in f}
    equal(listed ^ set(run.summary()["files"]), set(), "files listed for clean or in the summary, and not in both")


@fact
def directory_and_files_are_private():
    _, run = full()
    equal(oct(stat.S_IMODE(os.stat(run.out).st_mode)), "0o700", "mode of the directory")


@fact
def folded_text_sums_to_the_profile():
    _, run = full()
    for source, (value_type, unit) in SHOWN.items():
        folded = run.folded(source)
        want = run.profile(source).sum(value_type) / unit
        # Exact where the units are the same; each line of µs is cut or rounded once.
        near(sum(folded.values()), want, len(folded) if unit > 1 else 0, f"sum of {source}.folded")
        check(all(k.split(";")[0] == "alloc_truth" for k in folded),
              f"{source}.folded: a root that is not the process name")


@fact
def pictures_are_well_formed_and_self_contained():
    _, run = full()
    for source in SHOWN:
        path = run.path(f"{source}.svg")
        root = ET.parse(path).getroot()
        check(root.tag.endswith("svg"), f"{source}.svg: root element {root.tag}")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        links = re.findall(r"""(?:src|href)\s*=\s*["'](?!#)([^"']+)""", text)
        equal([x for x in links if not x.startswith("data:")], [], f"{source}.svg: outside links")


@fact
def profiles_name_the_main_binary_first_with_its_build_id():
    target, run = full()
    program = os.path.realpath(os.path.join(TARGETS, "alloc_truth"))
    note = subprocess.run(["readelf", "-n", program], capture_output=True, check=False).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", note.decode()).group(1)
    for source in SOURCES:
        first = run.profile(source).mappings[1]
        equal((first.path, first.build_id), (program, build_id), f"{source}: first mapping")


@fact
def summary_is_printed_on_one_screen_and_kept_whole():
    target = Target("cpu_split", 300)
    run = Run("-p", target.pid, "-F", 999, quiet_json=False)
    run.ready()
    target.ask("go")
    run.stop()
    run.must()
    with open(run.path("summary.txt"), encoding="utf-8") as f:
        kept = f.read()
    printed = run.stdout.decode()
    for text in (kept, printed):
        check(re.search(r"\d% +burn +cpu_split", text), "the hot function is not in the summary")
        check(run.out in text and "oncpu.svg" in text, "the summary does not say where files are")
        verdict = [line for line in text.splitlines() if line.startswith("cpu_split is ")]
        equal(len(verdict), 2, "lines that begin with the verdict")
    check(printed.count("\n") <= 40, f"{printed.count(chr(10))} lines were printed")
    check("summary.txt" in printed, "it is not said where the rest is")
    check("\033" not in printed, "colour went to a pipe")


@fact
def verbose_prints_the_whole_summary():
    target = Target("cpu_split", 300)
    run = Run("-p", target.pid, "--only", "oncpu", "-v", quiet_json=False)
    run.ready()
    target.ask("go")
    run.stop()
    run.must()
    with open(run.path("summary.txt"), encoding="utf-8") as f:
        equal(run.stdout.decode(), f.read(), "what was printed, and summary.txt")


@fact
def default_directory_name_has_comm_pid_and_time():
    target = Target("cpu_split", 100)
    where = scratch("cwd")
    os.mkdir(where)
    got = subprocess.run([MEMSCOPE, "-p", str(target.pid), "-d", "0.5", "-q"], cwd=where,
                         stdin=subprocess.DEVNULL, capture_output=True, timeout=FINISH_SEC, check=False)
    equal(got.returncode, 0, "exit status")
    names = os.listdir(where)
    check(len(names) == 1 and re.fullmatch(rf"memscope-cpu_split-{target.pid}-\d{{8}}-\d{{6}}",
                                           names[0]), f"directories: {names}")


@fact
def only_the_sources_asked_for_are_written():
    target = Target("cpu_split", 200)
    run, _ = record(("-p", target.pid, "--only", "oncpu"), lambda: target.ask("go"))
    written = set(os.listdir(run.out))
    check({"oncpu.pb.gz", "oncpu.svg"} <= written, f"files: {sorted(written)}")
    equal([f for f in written if f.startswith(("offcpu", "alloc", "heap"))], [], "other sources")


@fact
def run_in_the_directory_of_another_replaces_it_as_a_whole():
    target, first = full()
    where = scratch("again")
    shutil.copytree(first.out, where)
    for name in ("notes.txt", "oncpu.svg.old"):
        with open(os.path.join(where, name), "w", encoding="ascii") as f:
            f.write("mine")
    # One that gathers nothing takes nothing away.
    failed = Run("--only", "offcpu", "--", "/no/such/program", out=where)
    equal(failed.finish(), 1, "exit status of a command that is not there")
    equal(sorted(set(os.listdir(first.out)) - set(os.listdir(where))), [], "files taken away")
    equal(os.path.getsize(os.path.join(where, "trend.csv")), os.path.getsize(first.path("trend.csv")),
          "size of the earlier trend.csv")
    run = Run("-p", target.pid, "--only", "offcpu", "-d", 0.3, out=where)
    run.finish()
    run.must()
    equal(set(os.listdir(where)), {"offcpu.pb.gz", "offcpu.folded", "offcpu.svg", "offcpu.times.csv.gz", "trend.csv",
                                   "rss_breakdown.csv", ".memscope", "summary.txt", "summary.json", "report.html",
                                   "notes.txt", "oncpu.svg.old"}, "files")
    check(any("oncpu.pb.gz" in note for note in run.summary()["notes"]),
          "the summary does not name what was removed")


@fact
def flame_draws_from_a_profile_and_from_folded_text():
    _, run = full()
    for name in ("alloc.pb.gz", "alloc.folded"):
        svg = scratch("flame") + ".svg"
        got = subprocess.run([MEMSCOPE, "flame", run.path(name), "-o", svg], capture_output=True,
                             stdin=subprocess.DEVNULL, timeout=FINISH_SEC, check=False)
        if equal(got.returncode, 0, f"exit status of flame {name}: {got.stderr.decode()}"):
            text = open(svg, encoding="utf-8").read()
            ET.fromstring(text)
            check("do_malloc" in text, f"flame {name}: no do_malloc")


@fact
def a_run_by_thread_keeps_its_target_title_and_labels_in_every_file():
    target = Target("cpu_split", 400, 300, 200)
    run, lines = record(("-p", target.pid, "-F", 499, "--only", "oncpu", "--by", "thread",
                         "--title", "before <the> fix", "--label", "env=prod", "--label", "n=1 2"),
                        lambda: target.ask("go"))
    p = run.profile("oncpu")
    equal(p.comments, [f"Target: cpu_split (pid {target.pid})", "Title: before <the> fix",
                       "Label: env=prod", "Label: n=1 2"], "comments")
    with open(run.path("oncpu.folded"), encoding="utf-8") as f:
        folded = f.read()
    for tid in {line[1] for line in lines}:
        got = re.findall(rf"^cpu_split;[^;]* \(tid {tid}\);.* (\d+)$", folded, re.M)
        equal(sum(map(int, got)), p.sum("samples/count", tid=tid), f"samples below thread {tid}")
    again = subprocess.run([MEMSCOPE, "flame", "--by", "thread", "--format", "folded", "-o", "-",
                            run.path("oncpu.pb.gz")], capture_output=True, stdin=subprocess.DEVNULL,
                           timeout=FINISH_SEC, check=False)
    equal(again.stdout.decode(), folded, "what flame writes of the profile")
    svg = ET.parse(run.path("oncpu.svg")).getroot()
    title = svg.find("{http://www.w3.org/2000/svg}title").text
    n = f"{p.sum('samples/count'):,} samples"
    check(re.fullmatch(rf"before <the> fix, on-CPU, \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d, [\d.]+ m?s, {n}", title),
          f"title: {title}")
    check("env=prod, n=1 2" in "".join(svg.itertext()), "the labels are not in the picture")
    equal(run.summary()["title"], "before <the> fix", "title in the summary")
    equal(run.summary()["labels"], {"env": "prod", "n": "1 2"}, "labels in the summary")


@fact
def report_of_a_run_prints_its_summary_again():
    _, run = full()
    equal(["memscope", *run.process.args[1:]], shlex.split(run.summary()["command_line"]), "how it was called")
    got = subprocess.run([MEMSCOPE, "report", run.out], capture_output=True, stdin=subprocess.DEVNULL,
                         timeout=FINISH_SEC, check=False)
    equal(got.returncode, 0, f"exit status: {got.stderr.decode()}")
    with open(run.path("summary.txt"), "rb") as f:
        equal(got.stdout, f.read(), "what is printed")
    got = subprocess.run([MEMSCOPE, "report", run.out, "--source", "alloc", "--json"], capture_output=True,
                         stdin=subprocess.DEVNULL, timeout=FINISH_SEC, check=False)
    top = json.loads(got.stdout)["by_self"][0]["function"]
    equal(top, run.summary()["alloc"]["sites"][0]["function"], "the top site of the report and of the summary")
    got = subprocess.run([MEMSCOPE, "convert", run.out, "--names", run.path("named-{source}-{pid}.folded")], capture_output=True,
                         stdin=subprocess.DEVNULL, timeout=FINISH_SEC, check=False)
    equal(got.returncode, 0, f"exit status of --names: {got.stderr.decode()}")
    pid = run.summary()["target"]["processes"][0]["pid"]
    for source in ("oncpu", "offcpu", "alloc"):
        with open(run.path(f"{source}.folded"), "rb") as f, open(run.path(f"named-{source}-{pid}.folded"), "rb") as g:
            equal(g.read(), f.read(), f"{source} by another name")
    with subprocess.Popen([MEMSCOPE, "report", run.out, "--csv"], stdout=subprocess.PIPE, text=True) as p:
        rows = list(csv.DictReader(p.stdout))
    for source in ("oncpu", "alloc"):
        profile = run.profile(source)
        mine = [r for r in rows if r["source"] == source]
        equal(sum(int(r["self"]) for r in mine), profile.sum(f"{mine[0]['type']}/{mine[0]['unit']}"), f"self of {source} in the table")


@fact
def hostile_process_name_breaks_no_output():
    # A process is named after its file; 15 bytes of it.
    program = scratch("hostile")
    os.mkdir(program)
    program = os.path.join(program, "<&>\";\n\x1b[7m%s")
    shutil.copy(os.path.join(TARGETS, "cpu_split"), program)
    target = Target(program, 300)
    run, _ = record(("-p", target.pid, "-F", 999, "--only", "oncpu"), lambda: target.ask("go"))
    ET.parse(run.path("oncpu.svg"))
    folded = run.folded("oncpu")
    p = run.profile("oncpu")
    equal(sum(folded.values()), p.sum("samples/count"), "sum of oncpu.folded")
    for stack in folded:
        check(stack.count(";") < 64 and "\n" not in stack, f"stack broken: {stack!r}")
    run.summary()


@fact
def delay_leaves_out_what_came_before():
    for delay in (1.5, 6, 20):  # a busy machine may keep the target from being done by then
        target = Target("cpu_split", 300)
        begin = time.time_ns()
        run = Run("-p", target.pid, "-F", 999, "--only", "oncpu", "--delay", delay, "-d", 0.5)
        target.ask("go")
        done = time.time_ns()
        run.finish()
        run.must()
        p = run.profile("oncpu")
        check(p.time_ns - begin >= delay * 1e9, f"it began {(p.time_ns - begin) / 1e9:.3f} s after")
        if done < p.time_ns:
            break
    else:
        skip("the machine gave the target no 300 ms of CPU time in 20 s")
    equal(p.sum("samples/count", "burn"), 0, "samples from before the delay")


@fact
def doctor_reports_what_works_here():
    got = subprocess.run([MEMSCOPE, "doctor"], capture_output=True, timeout=FINISH_SEC, check=False,
                         stdin=subprocess.DEVNULL)
    text = got.stdout.decode()
    check(got.returncode in (0, 3), f"exit status {got.returncode}: {got.stderr.decode()}")
    for word in ("BTF", "perf", "uprobe"):
        check(word.lower() in text.lower(), f"doctor says nothing of {word}")


main()
