"""The heap of Haskell programs from outside: what it consists of, beside what the program and GHC's own profiler say; who keeps it;
what is put off. A program of our own needs ghc to be made; Debian's pandoc, stripped, is one that nobody here wrote."""

import random
import re

from harness import *

RECORDS, DEPTH, PUT_OFF = 16383, 14, 5000


def heap(*args):
    done = subprocess.run([MEMSCOPE, "heap", *map(str, args), "--json"], capture_output=True, text=True, timeout=FINISH_SEC,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Broken(f"memscope heap {' '.join(map(str, args))}: status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def census(pid):
    """{type: (objects, bytes)} of GHC's, and the sentences."""
    found = heap("census", "-p", pid, "--top", 100000)
    return {row["type"]: (row["objects"], row["bytes"]) for row in found["types"] if row["known_by"] == "GHC"}, found["notes"]


def made(name, *options):
    """The path of a program of ours; it is made where there is a compiler: Debian's has 900 MB, so no test asks for it."""
    if os.uname().machine != "x86_64":
        skip("GHC's heap is read on x86-64 only")
    if not tool("ghc"):
        skip("ghc is not installed")
    path = scratch(name)
    done = subprocess.run([tool("ghc"), "-v0", "-O1", "-threaded", "-rtsopts", *options, "-outputdir", scratch("objects"), "-o", path,
                           os.path.join(TOP, f"tests/targets/{name}.hs")], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"ghc: {done.stderr}")
    return path


@once
def program():
    return made("HeapKeeper")


def started(*args, **kw):
    child = Child([*args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **kw)
    equal(child.process.stdout.readline(), b"ready\n", "the program says")
    return child


@once
def keeper():
    """The program, with GHC's own census of each collection, the last one of which is made when it has nothing to do. And where
    that goes."""
    folder = scratch("profile")
    os.mkdir(folder)
    return started(program(), "+RTS", "-hT", "-i0", "-I0.1", "-RTS", cwd=folder), os.path.join(folder, os.path.basename(program()) + ".hp")


def last_sample(path):
    """{row: bytes} of GHC's own profile."""
    last, now = {}, {}
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("BEGIN_SAMPLE"):
                now = {}
            elif line.startswith("END_SAMPLE"):
                last = now or last
            elif "\t" in line:
                row, size = line.rstrip("\n").rsplit("\t", 1)
                now[row] = int(size)
    return last


def by_row(found):
    """A census in GHC's rows: constructors by name, all else by what it is, the first word here."""
    out = {}
    for name, (_, size) in found.items():
        row = name.split(" ")[0]
        out[row] = out.get(row, 0) + size
    return out


@fact
def constructors_are_counted_as_the_program_knows():
    found, notes = census(keeper()[0].pid)
    for name, n in (("main:Main.Node", RECORDS), ("main:Main.Record", RECORDS), ("main:Main.OfThread", 1), ("main:Main.OfPointer", 1)):
        equal(found.get(name, (0,))[0], n, f"objects that are {name}")
    equal(found["main:Main.Node"][1], 5 * 8 * RECORDS, "bytes of nodes")
    equal(len(notes), 1, f"sentences, of which none says that something did not fit: {notes}")


@fact
def bytes_are_those_of_ghcs_own_profiler_at_the_same_collection():
    child, path = keeper()
    # Of byte arrays in pinned blocks GHC counts the blocks.
    deadline, differs = time.monotonic() + 10, True
    while differs and time.monotonic() < deadline:  # until its last census is of when it had nothing to do, after it was woken
        time.sleep(0.5)
        if differs is not True:
            child.process.stdin.write(b"again\n")
            child.process.stdin.flush()
            time.sleep(0.5)
        want, got = last_sample(path), by_row(census(child.pid)[0])
        differs = {row: (want.get(row), got.get(row)) for row in set(want) | set(got)
                   if row != "ARR_WORDS" and got.get(row) != want.get(row)}
    check(not differs, f"of {len(want)} rows these differ (GHC's, ours): {differs}")
    check(len(want) >= 30, f"GHC has rows {want}")


def whole_samples(path):
    """[{row: bytes}] of GHC's own profile so far; those that hold nothing are its begin."""
    out, now = [], {}
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("BEGIN_SAMPLE"):
                now = {}
            elif line.startswith("END_SAMPLE"):
                out += [now] if now else []
            elif "\t" in line and line.endswith("\n"):
                row, size = line[:-1].rsplit("\t", 1)
                now[row] = int(size)
    return out


@fact
def a_program_at_work_has_the_rows_of_a_census_of_ghcs_around_it():
    """It replaces records all the while, some 200 MB between two of GHC's censuses. What differs is the replacement that was under
    way: a path of DEPTH + 1 nodes and a record, of the tree before and after it."""
    folder = scratch("at-work")
    os.mkdir(folder)
    child = started(program(), "all", "+RTS", "-hT", "-i0.05", "-A4m", "-RTS", cwd=folder)
    path, once_more = os.path.join(folder, os.path.basename(program()) + ".hp"), 2 * ((DEPTH + 1) * 5 * 8 + 3 * 8)
    for _ in range(int(os.environ.get("MEMSCOPE_TEST_CENSUSES", "3"))):
        deadline = time.monotonic() + 20
        while not whole_samples(path) and time.monotonic() < deadline:
            time.sleep(0.1)
        before = len(whole_samples(path))
        got, differs = by_row(census(child.pid)[0]), None
        while len(whole_samples(path)) < before + 1 and time.monotonic() < deadline:
            time.sleep(0.05)  # until there is one behind it, too
        for want in whole_samples(path)[max(0, before - 1):]:
            rows = {row: got.get(row, 0) - want.get(row, 0) for row in set(want) | set(got) if row != "ARR_WORDS"}
            most = max(rows.items(), key=lambda r: abs(r[1]))
            differs = most if differs is None or abs(most[1]) < abs(differs[1]) else differs
        check(differs is not None and abs(differs[1]) <= once_more, f"{differs}: more than {once_more} bytes from any census around it")


@fact
def its_blocks_are_an_allocators():
    pid = keeper()[0].pid
    rows = {row["allocator"]: row for row in heap("allocator", "-p", pid)["allocators"]}
    near(rows["GHC"]["allocated"], sum(size for _, size in census(pid)[0].values()), 64 << 10, "bytes of GHC's objects")
    with open(f"/proc/{pid}/maps", encoding="ascii") as f:
        low, high = (int(a, 16) for a in re.search(r"^(42[0-9a-f]{8})-([0-9a-f]+) rw", f.read(), re.M).groups())
    check(rows["GHC"]["allocated"] + rows["GHC"]["metadata"] <= high - low, f"{rows['GHC']} is more than {high - low}")


def counted_by_ghc(pid):
    """(collections, those of the oldest generation): the first words of the run-time system's own statistics."""
    need("nm")
    names = subprocess.run(["nm", program()], capture_output=True, text=True, check=True).stdout
    address = int(re.search(r"^([0-9a-f]+) b stats$", names, re.M).group(1), 16)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
        return struct.unpack("<II", os.pread(f.fileno(), 8, address))


@fact
def collections_are_as_many_as_its_run_time_system_counts():
    pid = keeper()[0].pid
    for _ in range(20):  # until none falls between
        before = counted_by_ghc(pid)
        text = "\n".join(heap("allocator", "-p", pid)["notes"])
        if counted_by_ghc(pid) == before:
            break
    found = re.search(r"GHC: collected (\d+) times, (\d+) of them with the oldest generation", text)
    check(found and before[0] > 0, f"it says: {text}")
    equal(tuple(int(n) for n in found.groups()), before, "collections, and those of the oldest generation")


@fact
def what_keeps_objects_is_named():
    pid = keeper()[0].pid
    for name, through in (("Record", "the CAF Main.table"), ("OfThread", "the thread [0-9]+ of Haskell"),
                          ("OfPointer", "the stable pointer [0-9]+")):
        found = heap("retainers", "-p", pid, f"type:{name}")
        rows = found["retainers"]
        check(rows and re.fullmatch(through, rows[0]["through"]), f"what keeps {name} is {rows[:2]}")
    # By a sample of every second one.
    near(sum(row["objects"] for row in heap("retainers", "-p", pid, "type:Record")["retainers"]), RECORDS, 2, "records that are kept")


@fact
def work_that_is_put_off_is_counted_by_its_code():
    found = heap("thunks", "-p", keeper()[0].pid)
    most = found["code"][0]
    equal(most["objects"], PUT_OFF, "thunks of the code that has most")
    check("Main." in most["code"] and most["kind"].startswith("THUNK"), f"it is called {most}")
    check(most["retained"] >= most["bytes"], f"it retains {most}")
    check(PUT_OFF <= found["thunks"] <= PUT_OFF + 100, f"thunks in all: {found['thunks']}")


@fact
def a_stripped_program_that_replaces_its_records_has_all_of_them_at_any_moment():
    path = scratch("stripped")
    need("strip")
    subprocess.run(["strip", "-o", path, program()], check=True)
    child = started(path, "spin")
    for _ in range(6):
        found, notes = census(child.pid)
        # Two trees: one is the CAF's. A path of nodes is new while the root is not replaced yet.
        within(found["main:Main.Node"][0], 2 * RECORDS, 2 * RECORDS + DEPTH, "nodes")
        within(found["main:Main.Record"][0], 2 * RECORDS, 2 * RECORDS + 1, "records")
        check(not any("lead to nothing" in note for note in notes), f"{notes}")
    os.set_blocking(child.process.stdout.fileno(), False)
    equal(child.process.stdout.read(), None, "what the program says to that")
    check(child.alive(), "the program has ended")
    child.end()


@fact
def pandocs_heap_is_plausible():
    if os.uname().machine != "x86_64":
        skip("GHC's heap is read on x86-64 only")
    need("pandoc")
    text, draw = scratch("document.md"), random.Random(1)
    words = "lorem ipsum dolor *sit* amet **consectetur** [adipiscing](http://a.b) elit `sed` do".split()
    with open(text, "w", encoding="ascii") as f:
        for i in range(1000):
            f.write(f"# Head {i}\n\n{' '.join(draw.choice(words) for _ in range(60))}\n\n")
    child = Child([tool("pandoc"), "-f", "markdown", "-t", "html", "-o", "/dev/null", text])
    at_work(child, 0.4)
    for tries in range(20):  # where it stands still, for it would end meanwhile on a machine that is busy; and not in a collection
        os.kill(child.pid, signal.SIGSTOP)
        try:
            found, notes = census(child.pid)
            break
        except Broken as e:
            if "garbage collector was at work" not in str(e) or tries == 19:
                raise
            os.kill(child.pid, signal.SIGCONT)
            time.sleep(0.01)
    child.end()
    check(any(name.startswith("pandoc-") and ":Text.Pandoc." in name for name in found), f"no constructor of pandoc's: {list(found)[:20]}")
    check(found.get("ghc-prim:GHC.Types.:", (0,))[0] > 100 and found.get("TSO", (0,))[0] >= 1, f"{list(found.items())[:10]}")
    check(not any("lead to nothing" in note for note in notes), f"{notes}")


@fact
def a_program_goes_on_after_it_was_looked_at():
    child, _ = keeper()
    child.process.stdin.write(b"go\n")
    child.process.stdin.flush()
    later = sum(sum(range(1, 1000 + i + 1)) for i in range(1, PUT_OFF + 1))
    equal(child.process.stdout.readline().decode().strip(), f"({RECORDS},{later},99,4711)", "what it finds")


@fact
def objects_have_the_names_and_sizes_that_ghc_heap_says():
    """The program asks GHC's own package for where its objects are, what they are and how large. It makes no collection when it is
    idle, so nothing moves; what it has no more use for by then is not found by references. Then records that it counts."""
    path = made("HeapKinds", "-package", "ghc-heap", "-package", "ghc-compact")
    child = Child([path, "+RTS", "-T", "-I0", "-RTS"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    said = {}
    while True:
        words = child.process.stdout.readline().decode().split()
        if words[0] == "have":
            break
        said[words[0]] = (int(words[1], 16) & ~7, words[2:])
    found = {int(row["address"], 16): row for row in
             heap("query", "-p", child.pid, "size > 0", "--top", 100000)["rows"]}
    there = {label: (found[at]["type"].split(" ")[0], found[at]["bytes"]) for label, (at, _) in said.items() if at in found}
    equal(there, {label: (name, int(size)) for label, (_, (size, name)) in said.items() if label in there}, "objects")
    check({"record", "pair", "thunk", "integer", "pinned"} <= set(there), f"not found: {sorted(set(said) - set(there))}")
    before = census(child.pid)[0]["main:Main.Record"][0]
    for more in (1000, 5000):
        child.process.stdin.write(b"%d\n" % more)
        child.process.stdin.flush()
        have = int(child.process.stdout.readline().split()[1])
        equal(census(child.pid)[0]["main:Main.Record"], (before + have, (before + have) * 32), "records of four words")


main()
