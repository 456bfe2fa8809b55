"""Who allocated what is in a heap: allocations are traced, then a snapshot is taken, and its sites are as the program counts them."""

from harness import *

OLD, SESSIONS, FREED, ORDERS, LOST = 500, 3000, 200, 400, 9
TARGET = os.path.join(TOP, "tests/targets/heap_sites.c")
PYTHON_TARGET = os.path.join(TOP, "tests/targets/heap_sites.py")


def heap(*args):
    done = subprocess.run([MEMSCOPE, "heap", *map(str, args)], capture_output=True, text=True, timeout=FINISH_SEC,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Broken(f"memscope heap {' '.join(map(str, args))}: status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def ask(question, file, *args):
    return heap(question, file, *args, "--json", "--top", 100000)


def line_of(text, file=TARGET):
    """Where in the target that is."""
    with open(file, encoding="utf-8") as f:
        return next(n for n, line in enumerate(f, 1) if text in line)


def traced_while(pid, work, *options):
    """A snapshot at the end of tracing, during which work() was done."""
    file = scratch("sites") + ".snapshot"
    child = Child([MEMSCOPE, "heap", "snapshot", "-p", str(pid), "--trace", "600", "-o", file, *options],
                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = child.process.stderr.readline().decode()
    check("tracing every allocation" in said, f"memscope says {said}")
    work()
    child.process.send_signal(signal.SIGINT)
    rest = child.process.stderr.read().decode()
    equal(child.process.wait(FINISH_SEC), 0, f"memscope's status, which says {rest}")
    return file


def traced(*options):
    """Of the target, which has done all it does meanwhile; and one of before, without sites."""
    target = Target("heap_sites", OLD)
    before = scratch("before") + ".snapshot"
    heap("snapshot", "-p", target.pid, "-o", before, "--json")

    def work():
        for command in (f"sessions {SESSIONS}", f"orders {ORDERS}", f"lose {LOST}", f"free {FREED}"):
            got = target.ask(command)[0]
        equal(got, ["counts", OLD, SESSIONS - FREED, ORDERS, LOST], "the target's own counts")

    file = traced_while(target.pid, work, *options)
    target.end()
    return file, before


@once
def snapshots():
    return traced()


def snapshot():
    return snapshots()[0]


def counts(file):
    return {row["site"].split(" ")[0]: row["objects"] for row in ask("census", file, "--by", "site")["sites"]}


@fact
def blocks_of_each_site_are_as_many_as_the_program_made_and_did_not_free():
    got = counts(snapshot())
    equal({k: v for k, v in got.items() if k != "(not"},
          {"make_session": SESSIONS - FREED, "make_order": ORDERS, "lose_one": LOST}, "blocks by site")
    said = ask("census", snapshot())
    equal(said["traced_blocks"] + got["(not"], said["heap_blocks"], "blocks whose site is known, and others")
    check(said["traced_ns"] > 0 and said["missed_calls"] == 0, f"it was traced as {said}")


@fact
def what_a_site_allocated_is_kept_by_its_variable_and_each_link_says_where_it_was_allocated():
    got = ask("retainers", snapshot(), "site:make_order")
    equal(got["objects"], ORDERS, "objects of that site")
    check(all(r["through"] == "the variable orders" for r in got["retainers"]), f"they are kept by {got['retainers']}")
    at = f"allocated at make_order (heap_sites.c:{line_of('calloc(1, sizeof')})"
    check(all(at in link for r in got["retainers"] for link in r["chain"]), f"no {at} in {got['retainers']}")


@fact
def what_a_site_allocates_has_the_type_of_the_variable_that_it_becomes():
    rows = {(r["type"], r["known_by"]): r["objects"] for r in ask("census", snapshot())["types"]}
    equal({k: v for k, v in rows.items() if "debug info" in k[1]},
          {("session", "debug info"): SESSIONS - FREED, ("order", "debug info"): ORDERS, ("char[]", "debug info"): LOST},
          "types by debug info")


@fact
def lost_blocks_are_counted_by_site():
    rows = ask("leaks", snapshot())["sites"]
    equal([(r["site"].split(" ")[0], r["objects"]) for r in rows], [("lose_one", LOST)], "lost blocks")


@fact
def conditions_on_sites_stacks_and_ages_choose_blocks():
    def many(condition):
        return ask("query", snapshot(), condition)["objects"]

    blocks = ask("census", snapshot())["heap_blocks"]
    equal(many("stack:xmalloc"), SESSIONS - FREED, "blocks that a wrapper of malloc allocated")
    equal(many("site ~ 'make_.*heap_sites'"), SESSIONS - FREED + ORDERS, "blocks of both")
    equal(many(f"site:heap_sites.c:{line_of('lost = malloc')}"), LOST, "blocks of that line")
    equal(many("age < 1h"), SESSIONS - FREED + ORDERS + LOST, "blocks that were made while it was traced")
    equal(many("age > 1h"), blocks - (SESSIONS - FREED + ORDERS + LOST), "older blocks")


@fact
def what_the_library_in_the_process_records_is_the_same():
    got = counts(traced("--inject")[0])
    equal({k: got.get(k) for k in ("make_session", "make_order", "lose_one")},
          {"make_session": SESSIONS - FREED, "make_order": ORDERS, "lose_one": LOST}, "blocks by site")


@fact
def what_came_since_an_older_snapshot_is_counted_by_site():
    after, before = snapshots()
    got = heap("diff", before, after, "--json", "--top", 1000)
    equal({r["site"].split(" ")[0]: r["objects"] for r in got["sites"]},
          {"make_session": SESSIONS - FREED, "make_order": ORDERS, "lose_one": LOST}, "blocks that came")
    # Of before one is gone: glibc's cache of the thread, which looks like a block until something was freed.
    equal([r["came"] for r in got["types"] if r["type"] == "(unknown)"], [SESSIONS - FREED + ORDERS + LOST],
          "blocks of no type that both know")


@fact
def objects_of_python_were_allocated_at_a_line_of_it():
    child = Child(["/usr/bin/python3", PYTHON_TARGET, str(SESSIONS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(child.process.stdout.readline(), b"ready\n", "the program says")

    def work():
        child.process.stdin.write(b"go\n")
        child.process.stdin.flush()
        equal(child.process.stdout.readline(), b"done\n", "the program says")

    file = traced_while(child.pid, work, "--inject", "--python-objects")
    equal(ask("query", file, "type = Session and site:make_session")["objects"], SESSIONS, "sessions that make_session() made")
    last = ask("retainers", file, "type:Session")["retainers"][0]["chain"][-1]
    equal(last, f"__main__.Session, allocated at make_session (heap_sites.py:{line_of('# the line', PYTHON_TARGET)})", "the last link")


@fact
def without_tracing_a_question_about_sites_says_how_to_know():
    target = Target("heap_sites", OLD)
    for what in (["census", "--by", "site"], ["retainers", "site:make_session"]):
        done = subprocess.run([MEMSCOPE, "heap", what[0], "-p", str(target.pid), *what[1:]], capture_output=True, text=True,
                              timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
        check(done.returncode == 1 and "--trace SEC" in done.stderr, f"status {done.returncode}: {done.stderr}")


main()
