"""The archive of `memscope serve`: what `memscope ls` says of it, and windows chosen by time, beside its files."""

import csv
import glob
import json
import os
import subprocess
import time

from archives import *
from containers import *
from harness import *


@once
def archive():
    """Windows of 2 s of a busy thread: (where they are, the list, samples of each by its file)."""
    where = scratch("archive")
    target = at_a_fifth()
    service = serve(where, "-p", target.pid, "--every", 2, "--only", "oncpu", "-F", 199, "--max-overhead", 50)
    wait_until(lambda: len(glob.glob(f"{where}/*/oncpu-*.pb.gz")) >= 4, "four windows")
    ended(service)
    target.end()
    found = listed(where)
    samples = {}
    for w in found["windows"]:
        p = pprof_reader.read(f"{found['archive']}/oncpu-{w['name']}.pb.gz")
        samples[w["name"]] = sum(s.values[0] for s in p.samples)
    return where, found, samples


def sum_of(where, *choice):
    out = scratch("merged") + ".pb.gz"
    got = memscope("flame", where, *choice, "-o", out)
    equal(got.returncode, 0, f"exit status of flame {choice} ({got.stderr})")
    return sum(s.values[0] for s in pprof_reader.read(out).samples)


@fact
def ls_lists_windows_that_follow_each_other():
    where, found, samples = archive()
    windows = found["windows"]
    check(len(windows) >= 4, f"{len(windows)} windows")
    equal(found["gaps"], [], "gaps")
    equal((found["missing"], found["damaged"], found["at_work"]), ([], [], False), "missing, damaged, at work")
    for a, b in zip(windows, windows[1:]):
        # Begins are of the wall clock, which is slewed; lengths are not.
        within(b["begin_ns"] - a["begin_ns"] - a["duration_ns"], -1e6, 1e6, "ns between windows")
    check(sum(samples.values()) > 100, f"{samples} samples")
    equal(found["files"], len(glob.glob(f"{found['archive']}/oncpu-*")), "files")


@fact
def windows_chosen_by_time_have_exactly_their_samples():
    where, found, samples = archive()
    w = found["windows"]
    stamps = [x["name"] for x in w]
    middle = [(x["begin_ns"] + x["duration_ns"] // 2) // 1000000000 for x in w]  # of 2 s: whole seconds are in them
    equal(sum_of(where, f"at:@{middle[2]}"), samples[stamps[2]], "samples of the window of a moment")
    equal(sum_of(where, stamps[1]), samples[stamps[1]], "samples of a window by its name")
    equal(sum_of(where, "last:3"), sum(samples[s] for s in stamps[-3:]), "samples of the last three")
    equal(sum_of(where, f"@{middle[1]}..@{middle[2] + 1}"), samples[stamps[1]] + samples[stamps[2]], "samples of a range")
    equal(sum_of(where, "last:1d"), sum(samples.values()), "samples of all")
    for pair in (("last:3", f"at:@{middle[-1]}"), (f"at:@{middle[0]}", "last:1"), ("last:2", "last:1")):
        got = memscope("diff", where, *pair)
        equal(got.returncode, 0, f"exit status of diff {pair} ({got.stderr})")
    got = memscope("flame", where, f"at:@{middle[0] - 3600}", "-o", scratch("none") + ".svg")
    check(got.returncode == 1 and "the nearest: at:" in got.stderr, f"{got.returncode}: {got.stderr}")


@fact
def what_is_missing_or_damaged_is_named():
    _, found, _ = archive()
    where = scratch("copy")
    shutil.copytree(found["archive"], where)
    one, two = (f"oncpu-{w['name']}.pb.gz" for w in found["windows"][:2])
    os.unlink(f"{where}/{one}")
    got = listed(where, status=3)
    check(any(one in x for x in got["missing"]), f"missing: {got['missing']}")
    with open(f"{where}/{two}", "r+b") as f:
        f.truncate(os.path.getsize(f"{where}/{two}") // 2)
    got = listed(where, "--check", status=3)
    check(any(two in x for x in got["damaged"]), f"damaged: {got['damaged']}")


@fact
def an_empty_file_is_damaged_but_for_folded_text_which_may_be_of_no_samples():
    for ending in (".folded", ".svg"):
        _, found, _ = archive()
        where = scratch("empty")
        shutil.copytree(found["archive"], where)
        name = f"oncpu-{found['windows'][0]['name']}"
        with open(f"{where}/{name}{ending}", "wb"):
            pass
        with open(f"{where}/.memscope", "a", encoding="ascii") as f:
            f.write(f"*{found['windows'][0]['name']} 1767225600 0 1 oncpu-{ending}:0;\n")
        got = listed(where, "--check", status=0 if ending == ".folded" else 3)
        equal([ending in x for x in got["damaged"]], [] if ending == ".folded" else [True], f"damaged with an empty {ending}")


@fact
def sizes_of_very_many_files_are_those_of_the_list_and_of_few_their_own():
    where, folders = os.path.join(scratch("many"), "host"), [f"web{i}" for i in range(200)]
    _, found, _ = archive()
    with open(f"{found['archive']}/oncpu-{found['windows'][0]['name']}.pb.gz", "rb") as f:
        profile = f.read()
    for folder in folders:
        os.makedirs(f"{where}/{folder}")

    def listed_of(windows):
        lines = [f"#{i + 1} {folder}\n" for i, folder in enumerate(folders)]
        for i in range(windows):
            stamp = f"20260101-{i // 60:02}{i % 60:02}00"
            for folder in [".", *folders]:
                with open(f"{where}/{folder}/oncpu-{stamp}.pb.gz", "wb") as f:
                    f.write(profile if folder == "." else b"x")
            lines.append(f"*{stamp} {1767225600 + 60 * i} 4321 {1 + len(folders)} oncpu-.pb.gz:0-{len(folders)};\n")
        with open(f"{where}/.memscope", "w", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
            f.writelines(lines)
        return listed(where)

    got = listed_of(2)
    equal(got["windows"][0]["bytes"], len(profile) + len(folders), "bytes of a window")
    equal([c["bytes"] for c in got["containers"]], [2] * len(folders), "bytes of the containers")
    got = listed_of(100)  # over 20,000 files
    equal([(w["bytes"], w["files"], w["containers"]) for w in got["windows"]], [(4321, 201, 200)] * 100, "windows")
    equal([(c["windows"], "bytes" in c) for c in got["containers"]], [(100, False)] * 200, "containers")
    equal(got["bytes"], 432100, "bytes of all")


@fact
def windows_of_one_process_have_what_its_group_is_charged():
    where, limited = scratch("charged"), memory_group(256 << 20)
    kept, enter = 40 << 20, f"echo $$ > {limited}/cgroup.procs; exec \"$@\""
    code = f"x = b'x' * {kept}; print('there', flush=True); input()"
    target = Child(["/bin/sh", "-c", enter, "sh", "/usr/bin/python3", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(target.process.stdout.readline(), "there\n", "its memory is there")
    try:
        service = serve(where, "-p", target.pid, "--every", 1, "--interval", 1, "--only", "oncpu", "--max-overhead", 50)
        wait_until(lambda: len(glob.glob(f"{where}/*/memory-*.csv")) >= 2, "two windows")
        ended(service)
    finally:
        target.end()
        wait_until(lambda: not os.path.isdir(limited) or not subprocess.call(["rmdir", limited], stderr=subprocess.DEVNULL), "end of the group")
    rows = [r for path in glob.glob(f"{where}/*/memory-*.csv") for r in csv.DictReader(open(path, encoding="ascii"))]
    check(rows, "no row")
    for r in rows:
        equal(r["processes"], "1", "processes in the group")
        # What it has mapped privately is charged to its group, whoever else is in it; its files may be others' already.
        check(int(r["anonymous_kb"]) * 0.98 <= int(r["group_kb"]) and int(r["group_anonymous_kb"]) >= kept >> 10, str(r))


@fact
@grouped
def a_container_killed_for_want_of_memory_is_found_from_the_disk_alone():
    ident, engines, where = new_id(), Engines(), scratch("night")
    engines.add_docker(ident, "web")
    group, limited = Group(f"docker-{ident}.scope"), memory_group(64 << 20)
    service = serve(where, "-a", "--every", 2, "--interval", 1, "--only", "growth", "--max-overhead", 50, env=engines.env)
    try:
        wait_until(lambda: glob.glob(f"{where}/host/growth-*.pb.gz"), "a window before it")
        # A mebibyte in 100 ms, until the kernel ends it: rows for some seconds.
        target = Inside(group, "leaks", 100000, 6)
        with open(os.path.join(limited, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(target.pid))
        target.say("go")
        wait_until(lambda: target.process.poll() is not None, "death")
        died = time.time()
        wait_until(lambda: glob.glob(f"{where}/host/web/growth-*.pb.gz"), "a window of the container")
    finally:
        ended(service)
        wait_until(lambda: not os.path.isdir(limited) or not subprocess.call(["rmdir", limited]), "end of the group")
    found = listed(where, "--container", "web")
    last = found["windows"][-1]
    within(last["begin_ns"] / 1e9, died - 2 * last["duration_ns"] / 1e9, died, "begin of the last window that has it")
    got = memscope("trend", where, "--container", "web", "-30m..", "--json")
    equal(got.returncode, 0, f"exit status of trend ({got.stderr})")
    memory = json.loads(got.stdout)[0]
    # Over half of what it may have: between its last row and its end lie a second and 10 MiB.
    check(memory["rows"] >= 2 and memory["rss_kb"]["max"] > 32 << 10, f"its memory over time: {memory}")
    out = scratch("growth") + ".pb.gz"
    got = memscope("flame", where, last["name"], "--container", "web", "--source", "growth", "-o", out)
    equal(got.returncode, 0, f"exit status ({got.stderr})")
    p = pprof_reader.read(out)
    kind = p.types[0]
    check(p.sum(kind, "leak_here") > p.sum(kind) / 2, f"{kind}: {p.sum(kind, 'leak_here')} of {p.sum(kind)} are the leak's")


main()
