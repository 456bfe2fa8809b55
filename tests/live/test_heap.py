"""Heaps explained from outside: what keeps an object, what nothing refers to any more, of what there is how much; beside what
LeakSanitizer and CPython's own collector say of the same programs."""

import collections
import ctypes
import re

from harness import *

PTRACE_SEIZE = 0x4206
SESSIONS, LOST, RINGS, NODES = 2000, 12, 7, 50000


def heap(*args):
    done = subprocess.run([MEMSCOPE, "heap", *map(str, args)], capture_output=True, text=True, timeout=FINISH_SEC,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Broken(f"memscope heap {' '.join(map(str, args))}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def number(text):
    return int(text.replace(",", ""))


def ask(*args):
    return json.loads(heap(*args, "--json", "--top", 100000))


def census(pid):
    """{type: objects}"""
    return {row["type"]: row["objects"] for row in ask("census", "-p", pid)["types"]}


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
    rows = [r for r in ask("retainers", "-p", graph().pid, "type:Session")["retainers"] if r["through"] == "the variable sessions"]
    equal(sum(r["objects"] for r in rows), SESSIONS, "sessions that it keeps")


@fact
def objects_of_a_class_are_all_counted():
    found = census(graph().pid)
    equal(found.get("Session"), SESSIONS + 2 * LOST + 2 * RINGS, "objects of class Session")
    equal(found.get("OnStack"), 1, "objects of class OnStack")


@fact
def a_long_list_is_a_few_rows_that_stand_for_all_of_it():
    got = ask("retainers", "-p", graph().pid, "Node")
    equal((got["objects"], got["one_in"]), (NODES, 3), "objects, and of how many one is looked at")
    rows = [r["objects"] for r in got["retainers"] if r["through"] == "the variable newest"]
    check(1 <= len(rows) <= 6, f"{len(rows)} rows: {got['retainers'][:6]}")
    near(sum(rows), NODES, 3, "objects that they stand for")


@fact
def what_retains_most_retains_what_hangs_on_it():
    rows = ask("dominators", "-p", graph().pid)["objects"]
    # A node is a block of 72 bytes, of glibc's; the newest one retains them all.
    equal((rows[0]["type"], rows[0]["retained"], rows[0]["depth"]), ("Node", 72 * NODES, 0), "the first row")
    equal(rows[0]["referrer"], "the variable newest", "what refers to it")
    # A session has 72 bytes, its prices 24 and 408; the map itself has 56, and each of its nodes.
    check(any(r["retained"] == SESSIONS * (72 + 24 + 408 + 56) + 56 for r in rows if not r["depth"]), f"the map's row is not in {rows[:9]}")


@fact
def chains_from_a_place_that_the_user_names_come_before_all_others():
    rows = ask("retainers", "-p", graph().pid, "type:Session", "--anchor", "sessions")["retainers"]
    equal(sum(r["objects"] for r in rows if r["through"] == "the anchor sessions"), SESSIONS, "sessions that the variable keeps")
    node = next(r for r in ask("dominators", "-p", graph().pid)["objects"] if r["type"] == "Node")["address"]
    rows = ask("retainers", "-p", graph().pid, "Node", "--anchor", f"{node}+8")["retainers"]
    near(sum(r["objects"] for r in rows if r["through"] == f"the anchor {node}+8"), NODES, 3, "nodes that the newest one keeps")


@fact
def text_says_what_json_has():
    text, got = heap("retainers", "-p", graph().pid, "OnStack"), ask("retainers", "-p", graph().pid, "OnStack")
    row = got["retainers"][0]
    pattern = rf"^ *{row['objects']} +\d+ B  {re.escape(row['through'])}$\n" + "".join(rf"^    {re.escape(c)}$\n" for c in row["chain"])
    check(row["chain"] and re.search(pattern, text, re.M), f"it says: {text}, and in JSON: {got}")


@fact
def what_a_stack_keeps_is_kept_by_that_stack():
    through = ask("retainers", "-p", graph().pid, "OnStack")["retainers"][0]["through"]
    check(re.fullmatch(rf"the stack at 0x[0-9a-f]+ of thread {graph().pid}", through), f"it is kept through {through}")


@fact
def what_is_lost_is_what_leak_sanitizer_finds():
    got = ask("leaks", "-p", graph().pid)
    direct, indirect = got["lost_objects"], got["indirect_objects"]
    # Of a pair that is lost one refers to the other, and each to its prices and their bytes; a ring counts once.
    equal(direct, LOST + RINGS, "objects lost directly")
    equal(indirect, LOST + RINGS + 2 * 2 * (LOST + RINGS), "objects lost indirectly")
    path = os.path.join(TARGETS, "heap_graph_lsan")
    said = subprocess.run([path, str(SESSIONS), str(LOST), str(RINGS), str(NODES)], capture_output=True, text=True, timeout=FINISH_SEC,
                          stdin=subprocess.DEVNULL, check=False).stderr
    blocks = sum(number(m) for m in re.findall(r"leak of \d+ byte\(s\) in (\d+) object", said))
    equal(direct + indirect, blocks, "all of it, beside LeakSanitizer's")


@fact
def what_a_running_function_alone_refers_to_is_not_lost():
    # glibc's blocks: 8 bytes less than a multiple of 16.
    rows = ask("query", "-p", Target("heap_registers").pid, "lost")["rows"]
    equal(sorted(row["bytes"] for row in rows), [504, 712], "lost blocks")


@fact
def the_dict_of_the_module_that_keeps_objects_of_python_is_named():
    child, _ = keeper()
    got = ask("retainers", "-p", child.pid, "type:Session")
    row = got["retainers"][0]
    equal((row["objects"], row["through"]), (SESSIONS, "the module __main__"), "the first row")
    equal(row["chain"], ["__main__.SESSIONS", "dict[…]", "list[…]", "__main__.Session"], "its chain")


@fact
def the_largest_dict_of_a_module_is_among_its_caches():
    rows = ask("caches", "-p", keeper()[0].pid)["caches"]
    check(any((r["elements"], r["container"], r["through"]) == (SESSIONS, "dict", "the module __main__") for r in rows), f"they are {rows[:8]}")


@fact
def containers_that_are_held_alike_are_one_row():
    got = ask("caches", "-p", keeper()[0].pid)
    rows = got["caches"]
    alike = collections.Counter((r["container"], r["unit"], r["in"], r["through"]) for r in rows)
    equal({key for key, n in alike.items() if n > 1}, set(), "rows that are alike")
    equal(sum(r["containers"] for r in rows), got["containers"], "containers of all rows")
    check(any(r["containers"] >= SESSIONS and r["elements"] <= r["all_elements"] for r in rows), f"they are {rows[:8]}")


@fact
def memscope_heap_refuses_what_a_question_would_ignore_and_helps_with_each():
    for args in (("leaks", "--by", "module"), ("census", "--output", "x"), ("snapshot", "--by", "type")):
        done = subprocess.run([MEMSCOPE, "heap", *args, "-p", "1"], capture_output=True, text=True, timeout=FINISH_SEC, check=False,
                              stdin=subprocess.DEVNULL)
        check(done.returncode == 2 and f"takes no {args[1]}" in done.stderr, f"{args}: {done.returncode}, {done.stderr}")
    text = heap("census", "--help")
    check("--by=" in text and "--output" not in text and "Example: memscope heap census" in text, text)
    check("--by=" not in heap("leaks", "-h") and "WHAT" in heap("query", "--help"), "options of other questions")


@fact
def what_retains_most_in_python_is_named_by_its_variable():
    rows = ask("dominators", "-p", keeper()[0].pid)["objects"]
    check(any((r["type"], r["referrer"]) == ("dict", "__main__.SESSIONS") for r in rows[:5]), f"the first rows are {rows[:5]}")


@fact
def classes_of_python_are_counted_as_its_collector_counts_them():
    child, truth = keeper()
    found = census(child.pid)
    equal(found.get("__main__.Session"), SESSIONS, "objects of class Session")
    # Types whose objects the collector always tracks, and which the program's own look did not make or free.
    for name in ("module", "type", "function", "abc.ABCMeta", "property", "weakref.ReferenceType"):
        near(found.get(name, 0), truth.get(name, [0])[0], 2, f"objects of {name}")
    in_bytes = {row["type"]: row["bytes"] for row in ask("census", "-p", child.pid)["types"]}
    # sys.getsizeof() has what the collector keeps before the object, too; CPython's allocator rounds up to 16 bytes.
    for name in ("function", "property", "__main__.Session"):
        n, size = truth[name]
        each = -(-size // n // 16) * 16
        near(found[name] * each, in_bytes[name], 2 * each, f"bytes of objects of {name}")


@fact
def objects_that_meet_a_condition_are_those_that_the_census_counts():
    got = ask("query", "-p", graph().pid, "type = Session and not lost")
    equal(got["objects"], SESSIONS, "sessions that are not lost")
    got = ask("query", "-p", graph().pid, "lost and not referred_by(lost)")
    equal(got["objects"], LOST, "objects that are lost and that no lost one refers to")


@fact
def a_census_adds_up_whatever_its_rows_are():
    sums = {}
    for by in ("type", "module", "two-level", "referrer", "arena"):
        got = ask("census", "-p", graph().pid, "--by", by)
        sums[by] = (sum(r["objects"] for r in got["types"]), sum(r["bytes"] for r in got["types"]))
        equal(sums[by], (got["heap_blocks"], got["heap_bytes"]), f"the sum of the rows by {by}")


SECRET = "hunter2-rosebud"


@once
def vault():
    """A program with a secret in a string, in a key of a dict that is no module's, and on the heap of C."""
    program = """
import sys, ctypes
class Vault:
    def __init__(self):
        self.combination = {SECRET + "-key": [1, 2, 3]}
SECRET = bytes(b ^ 1 for b in sys.stdin.readline().encode().strip()).decode()
KEPT = [Vault() for _ in range(50)]
TEXT = SECRET + "-text"
LIBC = ctypes.CDLL(None)
LIBC.strdup.restype = ctypes.c_void_p
NATIVE = LIBC.strdup((SECRET + "-native").encode())
print("ready", flush=True)
sys.stdin.read()
"""
    child = Child(["/usr/bin/python3", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdin.write(bytes(b ^ 1 for b in SECRET.encode()) + b"\n")
    child.process.stdin.flush()
    equal(child.process.stdout.readline(), b"ready\n", "the program says")
    return child


def saved(pid, name, *args):
    path = scratch(name)
    heap("snapshot", "-p", pid, "-o", path, *args)
    return path


def body(text):
    """What is behind the sentences about the snapshot itself."""
    return text[text.index("\n\n"):]


@fact
def a_file_answers_as_the_process_does():
    child, _ = keeper()
    for pid, questions in ((child.pid, (("census",), ("leaks",), ("retainers", "type:function"), ("retainers", "type:str"))),
                           (graph().pid, (("dominators",), ("fragmentation",), ("retainers", "type:Session"), ("query", "size > 1000")))):
        path = saved(pid, "same.snapshot")
        equal(os.stat(path).st_mode & 0o777, 0o600, "its mode")
        for question in questions:
            of_file = heap(question[0], path, *question[1:])
            equal(body(of_file), body(heap(question[0], "-p", pid, *question[1:])), f"the answer to {question}")


@fact
def labels_and_the_time_are_shown_with_a_file():
    path = saved(graph().pid, "labels.snapshot", "--label", "env=prod", "--label", "build=7")
    first = heap("census", path).splitlines()[0]
    check(re.match(r"snapshot of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, Linux .*; env=prod; build=7$", first), f"it says: {first}")


@fact
def no_text_of_the_program_is_in_a_file_without_contents():
    for contents in ("none", "words", "all"):
        path = saved(vault().pid, contents, "--contents", contents)
        with open(path, "rb") as f:
            data = f.read()
        if contents == "none":
            text = heap("retainers", path, "type:Vault")
        done = subprocess.run([MEMSCOPE, "heap", "dups", path], capture_output=True, text=True, timeout=FINISH_SEC,
                              stdin=subprocess.DEVNULL, check=False)
        equal(done.returncode, 0 if contents == "all" else 1, f"the status of dups of a file with --contents {contents}: {done.stderr}")
        if contents != "all":
            for piece in (SECRET, SECRET[:8], SECRET[-8:], SECRET[4:8]):
                equal(data.count(piece.encode()), 0, f"times that \"{piece}\" is in a file with --contents {contents}")
        check(b"combination" in data and b"KEPT" in data, f"a file with --contents {contents} has no names of attributes")
    check("the module __main__" in text and '__main__.KEPT' in text, f"it says: {text}")


@fact
def a_full_disk_is_a_sentence_and_leaves_nothing():
    folder = scratch("full")
    os.mkdir(folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], check=True, **QUIET)
    try:
        done = subprocess.run([MEMSCOPE, "heap", "snapshot", "-p", str(graph().pid), "-o", os.path.join(folder, "x.snapshot")],
                              capture_output=True, text=True, timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
        equal(done.returncode, 1, "its status")
        check(re.search(r"a snapshot of about \d+ MiB does not fit into the 0 MiB that are free there", done.stderr)
              and done.stderr.count("\n") == 1, f"it says: {done.stderr}")
        equal(os.listdir(folder), [], "what is left there")
        # One that another tracer has cannot be stopped: that is not tried.
        traced = Target("heap_graph", SESSIONS, LOST, RINGS, NODES)
        libc = ctypes.CDLL(None, use_errno=True)
        equal(libc.ptrace(PTRACE_SEIZE, traced.pid, None, None), 0, "PTRACE_SEIZE")
        for core in ((), ("--core",)):
            done = subprocess.run([MEMSCOPE, "heap", "snapshot", *core, "-p", str(traced.pid), "-o", os.path.join(folder, "x")],
                                  capture_output=True, text=True, timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
            check(done.returncode == 1 and re.search(r"a (snapshot|core) of about \d+ MiB does not fit into the 0 MiB", done.stderr),
                  f"{core}: {done.returncode}: {done.stderr}")
        traced.end()
    finally:
        subprocess.run(["umount", folder], check=True, **QUIET)


GROWING = """
import sys
class Session:
    pass
CACHE = [Session() for _ in range(1000)]
for line in sys.stdin:
    CACHE += [Session() for _ in range(int(line))]
    print("done", flush=True)
"""


@fact
def what_came_between_two_snapshots_is_named_with_what_keeps_it():
    child = Child(["/usr/bin/python3", "-c", GROWING], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def grow(n):
        child.process.stdin.write(b"%d\n" % n)
        child.process.stdin.flush()
        equal(child.process.stdout.readline(), b"done\n", "the program says")

    grow(0)
    older, newer = scratch("older.snapshot"), scratch("newer.snapshot")
    heap("snapshot", "-p", child.pid, "-o", older)
    grow(300)
    heap("snapshot", "-p", child.pid, "-o", newer)
    grow(200)
    got = ask("diff", older, newer, "-p", child.pid)
    row = next(r for r in got["types"] if r["type"] == "__main__.Session")
    equal((row["came"], row["gone"], row["objects"]), (500, 0, 1500), "sessions that came, that are gone, that there are")
    equal(row["change"], 500 * row["before"] // 1000, "bytes of it")
    equal(ask("diff", older, older)["types"], [], "what changed between a snapshot and itself")
    got = ask("diff", older, newer)
    row = next(r for r in got["types"] if r["type"] == "__main__.Session")
    equal(row["came"], 300, "sessions that came before the second snapshot")
    check(any(r["objects"] >= 299 and r["through"] == "the module __main__" for r in got["retainers"]), f"they are kept by {got}")


@fact
def gdb_opens_a_core_with_threads_and_variables():
    need("gdb")
    program = os.path.join(TARGETS, "heap_core")
    child = Child([program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    equal(child.process.stdout.readline(), b"thread\n", "the program says")
    until(lambda: all(" S " in open(f"/proc/{child.pid}/task/{tid}/stat", encoding="ascii").read()
                      for tid in os.listdir(f"/proc/{child.pid}/task")), "its threads wait")
    path = scratch("core")
    heap("snapshot", "-p", child.pid, "--core", "-o", path)
    equal(os.stat(path).st_mode & 0o777, 0o600, "its mode")
    check(os.stat(path).st_size < 1 << 30, f"it has {os.stat(path).st_size} bytes: the reservation is in it")
    text = subprocess.run(["gdb", "-batch", "-nx", program, path, "-ex", "thread apply all bt", "-ex", "print known", "-ex", "print on_heap"],
                          capture_output=True, text=True, timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False).stdout
    for thread, depth, last in ((child.pid, 1, "main ("), (r"\d+", 10, "thread (")):
        check(re.search(rf"^Thread \d+ \(.*(LWP )?{thread}\).*:\n(#.*\n)*?#\d+ .* innermost \(depth=(depth@entry=)?{depth + 1}\).*\n"
                        rf"#\d+ .* middle \(depth=(depth@entry=)?{depth}\).*\n#\d+ .* {re.escape(last)}", text, re.M),
              f"gdb's backtraces have no thread {thread} that stands in innermost, middle, {last}: {text}")
    check('{number = 4711, text = "a known text' in text and "real = 2.5}" in text, f"gdb says of the variable: {text[-400:]}")
    check('"a text on the heap"' in text, f"gdb says of the heap: {text[-400:]}")


@fact
def a_program_goes_on_after_it_was_looked_at():
    child, _ = keeper()
    for i in range(5):
        heap("census", "-p", child.pid)
    with open(f"/proc/{child.pid}/status", encoding="ascii") as f:
        status = f.read()
    check(re.search(r"^State:\s+[SR]", status, re.M) and re.search(r"^TracerPid:\s+0$", status, re.M), f"it is: {status[:300]}")


def kernel_thread(pid):
    try:
        with open(f"/proc/{pid}/maps", encoding="ascii") as f:
            return not f.read()
    except OSError:
        return False


@fact
def a_question_without_heap_before_it_is_said_to_be_one():
    for word, sentence in (("leaks", "memscope heap leaks -p PID"), (str(graph().pid), f"memscope -p {graph().pid}")):
        done = subprocess.run([MEMSCOPE, word], capture_output=True, text=True, timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
        equal(done.returncode, 2, f"the status of {word}")
        check(done.stderr.rstrip().endswith(sentence), f"of {word} it says: {done.stderr}")
    path = scratch("some.snapshot")
    heap("snapshot", "-p", graph().pid, "-o", path)
    done = subprocess.run([MEMSCOPE, "report", path], capture_output=True, text=True, timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
    check(done.returncode == 1 and "memscope heap census reads it" in done.stderr, f"of a snapshot report says: {done.returncode} {done.stderr}")


@fact
def questions_that_cannot_be_answered_are_refused_in_a_sentence():
    for args, status, sentence in ((("census",), 2, "memscope heap census -p PID, -c CONTAINER or FILE"), (("sensus", "-p", 1), 2, "did you mean"),
                                   (("retainers", "-p", 1), 2, "retainers -p PID type:NAME"),
                                   (("census", "-p", graph().pid, "--anchor", "0x12+x"), 2, "0xADDRESS+BYTES is an anchor"),
                                   (("census", "-p", graph().pid, "--anchor", "sessioms"), 1, "nothing of that name"),
                                   (("retainers", "-p", graph().pid, "session"), 1, '(did you mean "Session"?)'),
                                   (("census", str(graph().pid)), 2, f"heap census -p {graph().pid}"), ((), 2, "census, retainers"),
                                   *([(("census", "-p", 2), 1, "a kernel thread")] if kernel_thread(2) else []),
                                   (("query", "-p", graph().pid, "size > many"), 2, "not a number at"),
                                   (("census", "-p", 4194300), 1, "there is no process 4194300"),
                                   (("retainers", "-p", graph().pid, "type:Nothing"), 1, "the heap has no object type:Nothing")):
        done = subprocess.run([MEMSCOPE, "heap", *map(str, args)], capture_output=True, text=True, timeout=FINISH_SEC,
                              stdin=subprocess.DEVNULL, check=False)
        equal(done.returncode, status, f"the status of {args}")
        check(sentence in done.stderr and done.stderr.count("\n") == 1, f"of {args} it says: {done.stderr}")


main()
