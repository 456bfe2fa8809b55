"""Heaps explained from outside: what keeps an object, what nothing refers to any more, of what there is how much; beside what
LeakSanitizer and CPython's own collector say of the same programs."""

import re

from harness import *

SESSIONS, LOST, RINGS, NODES = 2000, 12, 7, 50000


def heap(*args):
    done = subprocess.run([MEMSCOPE, "heap", *map(str, args)], capture_output=True, text=True, timeout=FINISH_SEC,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Broken(f"memscope heap {' '.join(map(str, args))}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def number(text):
    return int(text.replace(",", ""))


def census(pid):
    """{type: objects}"""
    return {m[2]: number(m[1]) for m in re.finditer(r"^ *\S+ \w+ +([\d,]+)  (.+)$", heap("census", "-p", pid, "--top", 100000), re.M)}


@once
def graph():
    return Target("heap_graph", SESSIONS, LOST, RINGS, NODES)


@once
def keeper():
    """The program, and its truth."""
    child = Child(["/usr/bin/python3", os.path.join(TOP, "tests/targets/heap_keeper.py"), str(SESSIONS)],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    truth = json.loads(child.process.stdout.readline())
    equal(child.process.stdout.readline(), b"ready\n", "the program says")
    return child, truth


@fact
def a_variable_that_keeps_objects_of_a_class_is_named():
    lines = heap("retainers", "-p", graph().pid, "type:Session").splitlines()
    rows = [i for i, line in enumerate(lines) if ", through the variable sessions" in line]
    check(rows, f"no chain begins at the variable sessions: {lines[:6]}")
    kept = sum(number(lines[i].split(", ")[0]) for i in rows)
    equal(kept, SESSIONS, "sessions that it keeps")


@fact
def objects_of_a_class_are_all_counted():
    found = census(graph().pid)
    equal(found.get("Session"), SESSIONS + 2 * LOST + 2 * RINGS, "objects of class Session")
    equal(found.get("OnStack"), 1, "objects of class OnStack")


@fact
def a_long_list_is_a_few_rows_that_stand_for_all_of_it():
    lines = heap("retainers", "-p", graph().pid, "Node").splitlines()
    check(f"{NODES:,} objects are Node, " in lines[2] and "by a sample of one object in 3:" in lines[3], f"it says: {lines[:8]}")
    rows = [number(line.split(", ")[0]) for line in lines if ", through the variable newest" in line]
    check(1 <= len(rows) <= 6, f"{len(rows)} rows: {lines[:20]}")
    near(sum(rows), NODES, 3, "objects that they stand for")


@fact
def what_retains_most_retains_what_hangs_on_it():
    rows = re.findall(r"^ *([\d.]+) (\w+) +[\d.]+ \w+ 0x[0-9a-f]+ +(.+)$", heap("dominators", "-p", graph().pid), re.M)
    unit = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
    check(rows and rows[0][2] == "Node", f"the first rows are {rows[:3]}")
    # A node is a block of 72 bytes, of glibc's; its first one retains them all. Figures are rounded to a tenth of a MiB.
    near(float(rows[0][0]) * unit[rows[0][1]], 72 * NODES, 0.06 * (1 << 20), "bytes that the newest node retains")
    # A session has 72 bytes, its prices 24 and 408; the map's own nodes 56 each.
    near(float(rows[1][0]) * unit[rows[1][1]], SESSIONS * (72 + 24 + 408 + 56), 0.06 * (1 << 20), "bytes that the map retains")


@fact
def what_a_stack_keeps_is_kept_by_that_stack():
    text = heap("retainers", "-p", graph().pid, "OnStack")
    check("through the stack at 0x" in text and f"of thread {graph().pid}" in text, f"it says: {text}")


@fact
def what_is_lost_is_what_leak_sanitizer_finds():
    text = heap("leaks", "-p", graph().pid)
    direct, indirect = (number(m) for m in re.search(
        r"refers to them: ([\d,]+) objects, .*, and ([\d,]+), .*, that only those", text).groups())
    # Of a pair that is lost one refers to the other, and each to its prices and their bytes; a ring counts once.
    equal(direct, LOST + RINGS, "objects lost directly")
    equal(indirect, LOST + RINGS + 2 * 2 * (LOST + RINGS), "objects lost indirectly")
    path = os.path.join(TARGETS, "heap_graph_lsan")
    said = subprocess.run([path, str(SESSIONS), str(LOST), str(RINGS), str(NODES)], capture_output=True, text=True, timeout=FINISH_SEC,
                          stdin=subprocess.DEVNULL, check=False).stderr
    blocks = sum(number(m) for m in re.findall(r"leak of \d+ byte\(s\) in (\d+) object", said))
    equal(direct + indirect, blocks, "all of it, beside LeakSanitizer's")


@fact
def the_dict_of_the_module_that_keeps_objects_of_python_is_named():
    child, _ = keeper()
    text = heap("retainers", "-p", child.pid, "type:Session")
    rows = [line for line in text.splitlines() if ", through " in line]
    check(rows and rows[0].startswith(f"{SESSIONS:,}, ") and rows[0].endswith("through the module __main__"), f"it says: {text}")
    check("\n    module.__dict__\n    dict[\"SESSIONS\"]\n    dict[…]\n    list[…]\n    __main__.Session\n" in text,
          f"the chain is: {text}")


@fact
def classes_of_python_are_counted_as_its_collector_counts_them():
    child, truth = keeper()
    found = census(child.pid)
    equal(found.get("__main__.Session"), SESSIONS, "objects of class Session")
    # Types whose objects the collector always tracks, and which the program's own look did not make or free.
    for name in ("module", "type", "function", "abc.ABCMeta", "property", "weakref.ReferenceType"):
        near(found.get(name, 0), truth.get(name, [0])[0], 2, f"objects of {name}")


@fact
def a_program_goes_on_after_it_was_looked_at():
    child, _ = keeper()
    for i in range(5):
        heap("census", "-p", child.pid)
    with open(f"/proc/{child.pid}/status", encoding="ascii") as f:
        status = f.read()
    check(re.search(r"^State:\s+[SR]", status, re.M) and re.search(r"^TracerPid:\s+0$", status, re.M), f"it is: {status[:300]}")


@fact
def questions_that_cannot_be_answered_are_refused_in_a_sentence():
    for args, status, sentence in ((("census",), 2, "memscope heap census -p PID"), (("sensus", "-p", 1), 2, "did you mean"),
                                   (("retainers", "-p", 1), 2, "retainers -p PID type:NAME"),
                                   (("census", "-p", 4194300), 1, "there is no process 4194300"),
                                   (("retainers", "-p", graph().pid, "type:Nothing"), 1, "the heap has no object type:Nothing")):
        done = subprocess.run([MEMSCOPE, "heap", *map(str, args)], capture_output=True, text=True, timeout=FINISH_SEC,
                              stdin=subprocess.DEVNULL, check=False)
        equal(done.returncode, status, f"the status of {args}")
        check(sentence in done.stderr and done.stderr.count("\n") == 1, f"of {args} it says: {done.stderr}")


main()
