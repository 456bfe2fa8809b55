"""What programs and services print has no name that user/packaging/interface.txt does not list, and options are those of the list."""

import csv
import glob
import json
import os
import re
import subprocess
import sys

from harness import *
from http_serving import Server

# Members of these are named by others: functions, labels, runtimes, counters, sources that a host has.
OPEN = {"labels", "kinds", "gc", "sources", "parts", "columns", "scalars"}
CHURN = "import sys\nkeep = []\nprint('ready', flush=True)\nwhile True:\n    keep.append(bytearray(5000))\n    open('/proc/self/stat').read()\n    del keep[:-1000]\n"


@once
def listed():
    """{first word: the rest of each line}"""
    found = {}
    with open(os.path.join(TOP, "user/packaging/interface.txt"), encoding="utf-8") as f:
        for line in f:
            if not line.startswith("#"):
                kind, rest = line.rstrip("\n").split(" ", 1)
                found.setdefault(kind, set()).add(rest)
    return found


def names(kind, of):
    """What the list has of one table, or of the documents that begin so."""
    pairs = (line.split(" ", 1) for line in listed()[kind])
    return {name for where, name in pairs if where == of or (kind == "json" and where.startswith(of + "."))}


def keys(value, below=""):
    """(path, key) of all members; not of those objects whose members are names of other things."""
    if isinstance(value, list):
        for one in value:
            yield from keys(one, below)
    elif isinstance(value, dict):
        for key, one in value.items():
            if below.split(".")[-1] not in OPEN:
                yield below, key
            yield from keys(one, f"{below}.{key}")


def unlisted(value, of):
    known = names("json", of)
    return sorted({f"{below}.{key}" for below, key in keys(value) if key not in known})


def printed(*args):
    got = subprocess.run([MEMSCOPE, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    check(got.returncode in (0, 3), f"{args}: status {got.returncode}: {got.stderr[-300:]}")
    return got.stdout


@once
def churned():
    """Two runs that have most tables: of allocations and memory; of calls and events."""
    child = Child([sys.executable, "-c", CHURN], stdout=subprocess.PIPE)
    child.process.stdout.readline()
    series = scratch("work")
    with open(series, "w", encoding="utf-8") as f:
        f.write("timestamp,name,value\n")
    exact = Run("-p", child.pid, "-d", 4, "--alloc=exact", "--census", 1, "--interval", 0.5, "--series", series)
    exact.finish()
    calls = Run("-p", child.pid, "-d", 2, "--only", "syscalls", "-e", "context-switches", "--count", "libc:malloc")
    calls.finish()
    for run in (exact, calls):
        run.must(run.status if run.status in (0, 3) else 0)
    return child, [exact, calls]


@fact
def tables_of_a_run_have_listed_columns():
    seen = set()
    for run in churned()[1]:
        for name in sorted(os.listdir(run.out)):
            if not name.endswith(".csv"):
                continue
            with open(run.path(name), encoding="utf-8", newline="") as f:
                heading = next(csv.reader(f))
            known = names("csv", name)
            seen.add(name)
            # Tables with a column for each stack or type have that by its name.
            own = name in ("live_series.csv", "alloc_series.csv", "census.csv")
            new = [column for column in heading if column not in known]
            check(own or not new, f"{name}: {new} are not listed")
            check(known, f"{name}: no column of it is listed")
            if own:
                equal(sorted(known - set(heading)), [], f"{name}: columns that are listed and not there")
    for name in ("trend.csv", "sites.csv", "syscalls.csv", "events.csv", "counts.csv", "rss_breakdown.csv", "alloc_series.csv", "census.csv"):
        check(name in seen, f"there is no {name}: {sorted(seen)}")


@fact
def tables_that_are_always_whole_have_all_listed_columns():
    for run in churned()[1]:
        for name in ("sites.csv", "syscalls.csv", "events.csv", "counts.csv"):
            if os.path.exists(run.path(name)):
                with open(run.path(name), encoding="utf-8", newline="") as f:
                    equal(set(next(csv.reader(f))), names("csv", name), name)


@fact
def the_summary_has_listed_keys():
    for run in churned()[1]:
        summary = run.summary()
        equal(unlisted(summary, "summary"), [], "keys that are not listed")
        check(len(list(keys(summary))) > 200, f"only {len(list(keys(summary)))} keys were seen")


@fact
def profiles_have_listed_value_types():
    for run in churned()[1]:
        for name in sorted(os.listdir(run.out)):
            kind = name[:-len(".pb.gz")]
            if not name.endswith(".pb.gz") or kind == "sites" or kind not in {line.split(" ")[0] for line in listed()["profile"]}:
                continue
            got = set(run.profile(kind).types)
            known = names("profile", kind)
            equal(sorted(got - known), [], f"{name}: value types that are not listed")


@fact
def other_commands_print_listed_keys():
    child, runs = churned()
    profile = runs[0].path("oncpu.pb.gz")
    target = at_a_fifth()
    split = Run("-p", target.pid, "-d", 2, "--only", "oncpu")
    split.finish()
    for of, args in (("doctor", ["doctor", "--json"]), ("trend", ["trend", "--once", "--json", "-p", child.pid]), ("doctor summary", ["doctor", "--json", "-p", child.pid]),
                     ("report", ["report", "--json", profile]), ("report", ["report", "--json", "--tree", profile]),
                     ("report", ["report", "--json", "--by", "process", profile]), ("diff", ["diff", "--json", profile, profile]),
                     ("diff", ["diff", "--json", runs[0].out, runs[0].out]), ("trend", ["trend", "--json", runs[0].path("trend.csv")]),
                     ("annotate", ["annotate", "--json", "hot_70", split.path("oncpu.pb.gz")]), ("heap", ["heap", "census", "--json", "-p", child.pid]),
                     ("heap", ["heap", "allocator", "--json", "-p", child.pid])):
        said = json.loads(printed(*args))
        new = set.intersection(*(set(unlisted(said, one)) for one in of.split()))  # doctor -p has a run's summary, too
        equal(sorted(new), [], f"memscope {' '.join(map(str, args[:3]))}: keys that are not listed")
    lines = printed("trace", "--json", "-d", 1, "-p", child.pid).splitlines()
    check(lines, "no call was traced")
    for line in lines[:100]:
        equal(unlisted(json.loads(line), "trace"), [], "memscope trace: keys that are not listed")


@fact
def a_service_serves_listed_metrics_and_keys():
    child = churned()[0]
    server = Server("-p", child.pid, "--every", 1, "--interval", 1).ready()
    until(lambda: "memscope_target_memory_bytes" in server.get("/metrics")[2].decode(), "figures of the target")
    body = server.get("/metrics")[2].decode()
    metrics, labels = set(re.findall(r"^(\w+)[{ ]", body, re.M)), set(re.findall(r'[{,](\w+)="', body))
    equal(sorted(metrics - listed()["metric"]), [], "metrics that are not listed")
    equal(sorted(labels - listed()["label"]), [], "labels that are not listed")
    check(len(metrics) >= 25, f"only {len(metrics)} metrics were seen")
    equal(unlisted(json.loads(server.get("/healthz")[2]), "healthz"), [], "keys of /healthz that are not listed")
    archive = f"{server.dir}/archive"
    until(lambda: glob.glob(f"{archive}/*/*.pb.gz"), "a window")
    equal(unlisted(json.loads(printed("ls", "--json", archive)), "ls"), [], "keys of ls that are not listed")
    server.stop()


@fact
def options_are_those_of_the_list():
    for name in sorted(listed()["command"]):
        shown = printed(name, "--help")
        # "  -p, --pid=PID  …", "      --json  …"
        rows = re.findall(r"^ {2,6}(?:(-\w), )?(--[a-z][a-z-]*)(=?)", shown, re.M)
        have = {f"{word}{value}" for short, long, value in rows for word in (short, long) if word}
        have -= {"--help", "-h", "--usage"}
        known = names("option", name)
        equal(sorted(have - known), [], f"memscope {name}: options that are not listed")
        equal(sorted(known - have), ["--tree="] if name == "record" else [], f"memscope {name}: listed, and not shown in its help")


main()
