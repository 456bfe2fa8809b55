"""memscope trend: a log of processes that end and come back, and one look at them."""

import csv
import datetime
import json
import random
import os
import re
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET
from fractions import Fraction

from containers import *
from harness import *

FIRST = "timestamp,rss_kb,vsz_kb,cpu_percent,"


class Log(Child):
    """memscope trend at work; its words go to a file, so that they can be read while it runs."""

    def __init__(self, *args, prefix=()):
        self.words = tempfile.NamedTemporaryFile("w")
        super().__init__([*prefix, MEMSCOPE, "trend", *map(str, args)], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=self.words)

    def said(self):
        # By a position of our own: that of the file it was given is where it writes.
        with open(self.words.name, encoding="utf-8") as f:
            return f.read()

    def wait_for(self, what, holds, timeout=READY_SEC):
        deadline = time.monotonic() + timeout
        while not holds():
            if time.monotonic() > deadline or not self.alive():
                raise Broken(f"{what}: not within {timeout} s: {self.said()[-400:]}")
            time.sleep(0.05)

    def finish(self, timeout=FINISH_SEC):
        out = self.process.communicate(timeout=timeout)[0].decode()
        return self.process.returncode, out

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.finish()


def folder(name):
    where = scratch(name)
    os.makedirs(where, exist_ok=True)
    return where


def path_of(name):
    return os.path.join(folder("log"), name)


def rows_of(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return list(csv.DictReader(f))


def sleeper(word):
    """A process with a command line that no other has."""
    child = Child([tool("python3"), "-uc", "import time; print(); time.sleep(600)", word],
                  stdout=subprocess.PIPE)
    child.process.stdout.readline()
    return child


def gone(child):
    child.process.kill()
    child.process.wait()


@fact
def log_goes_on_when_the_process_is_started_again():
    word = f"again+{os.getpid()}*[x]"  # characters that a regular expression would take for more
    path = path_of("memory.csv")
    first = sleeper(word)
    log = Log("-p", first.pid, "--interval", 1, "-o", path)
    log.wait_for("the first row", lambda: len(rows_of(path)) >= 1)
    gone(first)
    log.wait_for("word of its end", lambda: f"({first.pid}) has ended" in log.said())
    before = len(rows_of(path))
    time.sleep(1.2)
    other = sleeper(word + "x")
    time.sleep(1.2)
    equal(len(rows_of(path)), before, "rows while nothing of its name runs")
    second = sleeper(word)
    log.wait_for("word of its return", lambda: f"is back as {second.pid}" in log.said())
    check(f"is back as {other.pid}" not in log.said(), "another command line was taken for it")
    log.wait_for("a row after its return", lambda: len(rows_of(path)) > before)
    status, out = log.stop()
    equal(status, 0, "exit status")
    rows = rows_of(path)
    check(f"{len(rows)} rows from" in out, f"the report does not tell of {len(rows)} rows: {out}")
    check(all(int(row["rss_kb"]) > 1000 for row in rows), f"rows without a process: {rows}")


@fact
def process_found_by_a_pattern_is_the_one_that_started_first():
    word = f"oldest{os.getpid()}"
    parent = sleeper(word)
    time.sleep(0.05)  # start times are told in hundredths of a second
    sleeper(word)
    log = Log("-n", word + "$", "--once", "--json")
    status, out = log.finish()
    equal(status, 0, "exit status")
    equal([p["pid"] for p in json.loads(out)], [parent.pid], "the process")


@fact
def log_of_a_killed_memscope_is_gone_on_with():
    target = sleeper(f"killed{os.getpid()}")
    path = path_of("memory.csv")
    log = Log("-p", target.pid, "--interval", 1, "-o", path)
    log.wait_for("two rows", lambda: len(rows_of(path)) >= 2)
    second = Log("-p", target.pid, "-o", path)
    status, _ = second.finish()
    equal(status, 1, "exit status of a second writer")
    check("another memscope is writing it" in second.said(), f"it said {second.said()!r}")
    log.process.kill()
    log.finish()
    before = len(rows_of(path))
    with open(path, "a", encoding="utf-8") as f:
        f.write("2026-11-21 10:00:00,1234,56")  # cut short by a crash of the machine
    log = Log("-p", target.pid, "--interval", 1, "-o", path)
    log.wait_for("a row more", lambda: len(rows_of(path)) >= before + 2)
    status, _ = log.stop()
    equal(status, 0, "exit status")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    equal(text.count(FIRST), 1, "lines of names")
    check(",1234,56" not in text, "half a line was left")
    check(all(None not in row and None not in row.values() for row in rows_of(path)),
          "a row has not every column")


@fact
def file_of_somebody_else_is_left_alone():
    path = path_of("notes.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.write("not yours\n")
    log = Log("-p", sleeper("foreign").pid, "-o", path)
    status, _ = log.finish()
    equal(status, 1, "exit status")
    check("is no log of ours" in log.said(), f"it said {log.said()!r}")
    with open(path, encoding="utf-8") as f:
        equal(f.read(), "not yours\n", "what is in it")


@fact
def full_disk_loses_rows_and_says_so():
    where = folder("disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", where],
                      capture_output=True).returncode:
        skip("cannot mount a small file system")
    try:
        path = os.path.join(where, "memory.csv")
        target = sleeper(f"full{os.getpid()}")
        log = Log("-p", target.pid, "-d", 1, "--interval", 1, "-o", path)
        equal(log.finish()[0], 0, "exit status with room")
        with open(path, encoding="utf-8") as f:
            names, row = f.readlines()[:2]
        text = names + row * 100
        with open(path, "w", encoding="utf-8") as f:  # full but for eight bytes
            f.write(text + "-" * (8192 - len(text) - 9) + "\n")
        size = os.path.getsize(path)
        log = Log("-p", target.pid, "--interval", 1, "-o", path)
        log.wait_for("word of the full disk", lambda: "rows are lost until" in log.said())
        equal(os.path.getsize(path), size, "bytes of the log while the disk is full")
        subprocess.run(["mount", "-o", "remount,size=64k", where], check=True)
        log.wait_for("a row with room again", lambda: os.path.getsize(path) > size)
        status, _ = log.stop()
        equal(status, 0, "exit status")
        check(re.search(r"\d+ rows could not be written", log.said()), f"it said {log.said()!r}")
    finally:
        subprocess.run(["umount", "-l", where])


@fact
def day_long_log_has_a_row_each_hour():
    need("faketime")
    # A day in 5.8 s: an hour is 240 ms. A memscope that the machine holds up for longer than that
    # skips a row, but never moves those after it.
    target = sleeper(f"day{os.getpid()}")
    path, chart = path_of("memory.csv"), path_of("memory.svg")
    log = Log("-p", target.pid, "--interval", 3600, "-d", 86400, "-o", path, "--svg", chart,
              prefix=("env", f"LD_PRELOAD={TARGETS}/lib_checked_poll.so", tool("faketime"), "-f", "@2026-03-01 00:00:00 x15000"))
    status, out = log.finish()
    equal(status, 0, "exit status")
    times = [datetime.datetime.strptime(row["timestamp"], "%Y-%m-%d %H:%M:%S").timestamp()
             for row in rows_of(path)]
    check(13 <= len(times) <= 26, f"{len(times)} rows of a day")
    near(times[-1] - times[0], 86400, 3600, "seconds from the first row to the last")
    check(re.search(r"rows from 2026-03-01 00:\d\d:\d\d to 2026-03-02 ", out), f"the report: {out}")
    check(re.search(r"^verdict +flat: ", out, re.M), f"the report: {out}")
    ET.parse(chart)


def made_log(name, seed, rate_kb, n=150):
    """A log of a program that grows by so much from row to row, with noise; and its RSS."""
    dice, path, rss = random.Random(seed), path_of(name), []
    begin = datetime.datetime(2026, 3, 1)
    with open(path, "w", encoding="utf-8") as f:
        f.write("timestamp,rss_kb,vsz_kb,cpu_percent\n")
        for i in range(n):
            rss.append(int(100000 + seed * 1000 + rate_kb * i + dice.gauss(0, 300)))
            at = begin + datetime.timedelta(seconds=300 * i)
            f.write(f"{at},{rss[-1]},{800000 + i},{dice.uniform(1, 9):.1f}\n")
    return path, rss


@fact
def figures_of_a_log_are_those_of_exact_fractions():
    for seed in range(1, 8):
        path, rss = made_log(f"exact-{seed}.csv", seed, (seed - 4) * 40.5)
        got = json.loads(subprocess.run([MEMSCOPE, "trend", "--json", path], capture_output=True, check=True,
                                        timeout=FINISH_SEC).stdout)[0]
        n, t = len(rss), [Fraction(300 * i) for i in range(len(rss))]
        tm, ym = sum(t) / n, Fraction(sum(rss), n)
        stt = sum((x - tm) ** 2 for x in t)
        sty = sum((x - tm) * (y - ym) for x, y in zip(t, rss))
        syy = sum((y - ym) ** 2 for y in rss)
        want = {"mean": ym, "slope": sty / stt, "r2": sty ** 2 / (stt * syy),
                "percent": Fraction(100 * (rss[-1] - rss[0]), rss[0])}
        have = {"mean": got["rss_kb"]["mean"], "slope": got["line"]["slope_kb_s"], "r2": got["line"]["r2"],
                "percent": got["endpoint_percent"]}
        for name, value in want.items():
            near(have[name], float(value), 1e-9 * max(1, abs(float(value))), f"{name} of log {seed}")
        equal([got["rss_kb"][k] for k in ("first", "last", "min", "max")],
              [rss[0], rss[-1], min(rss), max(rss)], "first, last, min, max")


@fact
def reports_of_logs_of_one_shape_differ_in_numbers_only():
    reports = []
    for seed in (1, 2):
        path, _ = made_log(f"shape-{seed}.csv", seed, 400)
        text = subprocess.run([MEMSCOPE, "trend", path], capture_output=True, check=True, text=True,
                              timeout=FINISH_SEC).stdout.replace(path, "LOG")
        reports.append(text)
    equal(*(re.sub(r" *[-+]?[0-9][0-9.,]*", " N", r) for r in reports), "reports but for their numbers")
    # And in as many columns: one log's line is below the other's.
    equal(*([len(line) for line in r.splitlines()][2:6] for r in reports), "lengths of the table's lines")
    check(reports[0] != reports[1], "two logs are told of in the same words")


@fact
def what_two_rows_alone_say_is_printed_with_its_figure():
    for last, word, bound in ((100000, "healthy: RSS +0.0%", "under 20%"), (119900, "healthy: RSS +19.9%", "under 20%"),
                              (120000, "monitor closely: RSS +20.0%", ""), (150000, "monitor closely: RSS +50.0%", ""),
                              (150100, "warning, potential leak: RSS +50.1%", "over 50%"),
                              (90000, "healthy: RSS -10.0%", "")):
        path = path_of("plain.csv")
        with open(path, "w", encoding="utf-8") as f:
            f.write("timestamp,rss_kb,vsz_kb,cpu_percent\n2026-03-01 00:00:00,100000,1,1.0\n"
                    f"2026-03-01 00:05:00,{last},1,1.0\n")
        out = subprocess.run([MEMSCOPE, "trend", path], capture_output=True, check=True, text=True,
                             timeout=FINISH_SEC).stdout
        line = re.search(r"^first to last +(.*)$", out, re.M).group(1)
        check(line.startswith(word) and bound in line, f"{last} kB after 100,000: {line!r}, expected {word!r}")


@fact
def one_look_says_what_proc_says():
    target = Target("grow", 8, 0)
    os.kill(target.pid, signal.SIGSTOP)  # nothing moves between the looks
    log = Log("-p", target.pid, "--once", "--json")
    status, out = log.finish()
    equal(status, 0, "exit status")
    row = json.loads(out)[0]
    with open(f"/proc/{target.pid}/status", encoding="ascii") as f:
        kb = {k: int(v.split()[0]) for k, v in re.findall(r"^(\w+):\s+(\d+ kB)$", f.read(), re.M)}
    with open(f"/proc/{target.pid}/smaps_rollup", encoding="ascii") as f:
        roll = {k: int(v) for k, v in re.findall(r"^(\w+):\s+(\d+) kB$", f.read(), re.M)}
    os.kill(target.pid, signal.SIGCONT)
    equal(row["rss_kb"], kb["VmRSS"], "RSS")
    equal(row["anonymous_kb"], kb["RssAnon"], "anonymous")
    equal(row["swap_kb"], kb["VmSwap"], "swap")
    equal(row["private_kb"], roll["Private_Clean"] + roll["Private_Dirty"], "private")
    # Others that map the same files come and go.
    near(row["pss_kb"], roll["Pss"], 0.2 * roll["Pss"], "PSS")
    with open(f"/proc/{target.pid}/cmdline", "rb") as f:
        equal(row["command"], f.read().rstrip(b"\0").replace(b"\0", b" ").decode(), "command line")
    if "machine_kb" in row:  # else somebody has set a limit for all of us
        with open("/proc/meminfo", encoding="ascii") as f:
            total_kb = int(re.search(r"^MemTotal:\s+(\d+)", f.read(), re.M)[1])
        near(row["machine_kb"], total_kb, 0, "the machine's memory")
        near(row["mem_percent"], 100 * kb["VmRSS"] / total_kb, 1e-6, "percent of the machine's memory")


@fact
def looks_are_repeated_at_the_interval_until_the_process_ends():
    # It may take memscope a second and a half to begin.
    target = Child(["sleep", "3.5"])
    log = Log("-p", target.pid, "--once", "--interval", 1)
    status, out = log.finish()
    equal(status, 0, f"exit status: {log.said()}")
    stamps = re.findall(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", out, re.M)
    within(len(re.findall(rf"^ *{target.pid} .*  sleep 3.5$", out, re.M)), 2, 4, "looks in 3.5 s")
    check(len(stamps) >= 2, f"times above the tables: {stamps}")


@fact
@grouped
def percent_of_memory_is_of_the_limit_of_the_group_or_of_one_above_it():
    name = f"memscope-live-{os.getpid()}-{os.urandom(4).hex()}"
    groups = both_groups(name)
    below = both_groups(name + "/below")
    for group in below:
        Group.made.remove(group)
        Group.made.insert(0, group)  # it goes first
    for group in groups:
        for file in ("memory.max", "memory.limit_in_bytes"):
            path = os.path.join(group.dir, file)
            if os.path.exists(path):
                with open(path, "w", encoding="ascii") as f:
                    f.write(str(64 << 20))
                break
        else:
            continue
        break
    else:
        skip("no controller limits the memory of control groups here")
    child = Child(["sleep", "600"])
    put(below, child)
    row = looked_at("-p", child.pid)[0]
    equal(row["limit_kb"], 64 << 10, "limit")
    near(row["mem_percent"], 100 * row["rss_kb"] / (64 << 10), 1e-6, "percent of the limit")
    log = Log("-p", child.pid, "--once")
    _, out = log.finish()
    check("limit of its container or service, 64.0 MiB" in out, f"it said {out!r}")


@fact
def mappings_are_those_of_pmap():
    target = Target("grow", 8, 0)
    os.kill(target.pid, signal.SIGSTOP)
    log = Log("-p", target.pid, "--once", "--maps")
    status, out = log.finish()
    equal(status, 0, "exit status")
    pmap = subprocess.run([tool("pmap"), "-x", str(target.pid)], capture_output=True, text=True,
                          check=True).stdout
    os.kill(target.pid, signal.SIGCONT)
    # Address Kbytes RSS Dirty | Address Kbytes RSS PSS Dirty
    want = {(int(m[1], 16), *map(int, m.groups()[1:]))
            for m in re.finditer(r"^([0-9a-f]{16})\s+(\d+)\s+(\d+)\s+(\d+) ", pmap, re.M)}
    got = {(int(m[1], 16), *map(int, m.groups()[1:]))
           for m in re.finditer(r"^([0-9a-f]{16})\s+(\d+)\s+(\d+)\s+\d+\s+(\d+) ", out, re.M)}
    check(len(want) > 10, f"pmap shows {len(want)} mappings")
    equal(got, want, "mappings: address, size, RSS, dirty")
    total = re.search(r"^total kB\s+(\d+)\s+(\d+)\s+(\d+)", pmap, re.M).groups()
    mine = re.search(r"^total\s+(\d+)\s+(\d+)\s+\d+\s+(\d+)", out, re.M).groups()
    equal(mine, total, "totals")


def both_groups(name):
    """A group of the unified hierarchy and, where memory is in one of its own, the group of that path there."""
    groups = [Group(name)]
    if "memory" in mounts():
        groups.append(Group(name, "memory"))
    return groups


def put(groups, *children):
    for group in groups:
        for child in children:
            group.take(child.pid)


def looked_at(*args):
    log = Log(*args, "--once", "--json")
    status, out = log.finish()
    equal(status, 0, f"exit status of {args}: {log.said()}")
    return json.loads(out)


@fact
@grouped
def group_is_the_sum_of_its_processes_and_what_it_is_charged():
    name = f"memscope-live-{os.getpid()}-{os.urandom(4).hex()}"
    groups = both_groups(name)
    other = Target("grow", 8, 0)
    put(groups, Child(["tail", "-f", "/dev/null"]))
    # Whatever it touches is charged from its first instruction.
    for _ in range(2):
        script = "".join(f"echo 0 > {g.dir}/cgroup.procs && " for g in groups)
        Child(["sh", "-c", script + 'exec "$0" -c "x = bytearray(9 << 20); print(flush=True); input()"',
               tool("python3")], stdin=subprocess.PIPE, stdout=subprocess.PIPE).process.stdout.readline()
    seen = looked_at("-G", groups[0].dir)
    pids = sorted(groups[0].pids())
    equal([p["pid"] for p in seen["processes"]], pids, "processes in the group")
    check(other.pid not in pids, "a process of others is in it")
    for key in ("rss_kb", "anonymous_kb", "private_kb"):
        equal(seen["total"][key], sum(p[key] for p in seen["processes"]), f"{key} of all together")
    group = seen["groups"][0]
    equal([group["name"], group["path"], group["processes"]], [name, "/" + name, 3], "the group")
    if group["charged_kb"] is None:
        skip("no controller counts the memory of control groups here")
    # Each 9 MiB and what python has of its own; pages are charged in batches of 64 to a CPU.
    least = sum(p["anonymous_kb"] for p in seen["processes"] if p["anonymous_kb"] > 9 << 10)
    within(group["anonymous_kb"], least - 512 * os.cpu_count(), least + (1 << 14), "kB that the group is charged")
    check(group["charged_kb"] >= group["anonymous_kb"], f"what is charged in all: {group}")

    path = path_of("group.csv")
    log = Log("-G", "/" + name, "--interval", 1, "-o", path)
    log.wait_for("a row", lambda: len(rows_of(path)) >= 1)
    status, out = log.stop()
    equal(status, 0, "exit status")
    row = rows_of(path)[0]
    check(row["rss_kb"] and int(row["rss_kb"]) >= seen["total"]["rss_kb"] // 2, f"the sum in the log: {row}")
    equal(row["processes"], "3", "processes in the log")
    near(int(row["group_kb"]), group["charged_kb"], 4096, "kB charged in the log")
    check(re.search(r"^cgroup +\d", out, re.M), f"the report does not tell of the group: {out}")
    # The columns of a log of processes would not be enough.
    again = Log("-p", other.pid, "-o", path)
    equal(again.finish()[0], 1, "exit status of a log of processes into it")
    check("more columns" in again.said(), f"it said {again.said()!r}")


@fact
@grouped
def log_of_a_container_goes_on_in_the_one_that_gets_its_name():
    engines, ids = Engines(), [new_id(), new_id()]
    os.environ["MEMSCOPE_ENGINES_ROOT"] = engines.root
    try:
        path = path_of("container.csv")
        engines.add_podman(ids[0], "web")
        group = Group(f"libpod-{ids[0]}")
        first = Child(entering(group, ["sleep", "600"]))
        log = Log("-c", "web", "--interval", 1, "-o", path)
        log.wait_for("the first row", lambda: len(rows_of(path)) >= 1)
        first.end()
        group.remove()
        log.wait_for("word of its end", lambda: "web has ended" in log.said())
        before = len(rows_of(path))
        time.sleep(1.2)
        equal(len(rows_of(path)), before, "rows while there is none of its name")
        engines.add_podman(ids[1], "web")
        second = Group(f"libpod-{ids[1]}")
        spin = Child(entering(second, ["sh", "-c", "while :; do :; done"]))
        log.wait_for("word of its return", lambda: "web is there again" in log.said())
        log.wait_for("three rows more", lambda: len(rows_of(path)) >= before + 3)
        spin.process.send_signal(signal.SIGSTOP)
        status, _ = log.stop()
        equal(status, 0, "exit status")
        # One thread spins: no second is counted twice. A row may be late, by what is stolen too.
        shares = [float(row["cpu_percent"]) for row in rows_of(path)[before:]]
        check(all(s < 125 for s in shares) and max(shares) > 5, f"CPU of one thread that spins: {shares}")
    finally:
        del os.environ["MEMSCOPE_ENGINES_ROOT"]


@fact
def what_does_not_fit_together_is_wrong_usage():
    for args, word in ((("--once",), "-p, -n, -c or -G"), (("-p", 1, "x.csv"), "give one of them"),
                       (("-p", 1, "--maps"), "--once"), (("-p", 1, "--once", "-o", "x"), "--once writes none"),
                       (("-p", 1, "--once", "-d", 2), "--interval"), (("--interval", 2, "x.csv"), "-p, -n, -c or -G"),
                       (("-p", 1, "-n", "x"), "give one of them"), (("-c", "x", "-G", "y"), "give one of them"),
                       (("-c", ","), "-c takes names")):
        log = Log(*args)
        status, _ = log.finish()
        equal(status, 2, f"exit status of {args}")
        check(word in log.said(), f"{word!r} is not in {log.said()!r}")


main()
