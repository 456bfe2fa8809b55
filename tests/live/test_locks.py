"""Which locks threads wait for, who holds them and what the owner does, against programs that know it."""

import os
import signal
import subprocess

import programs
from harness import *

HOLD_MS = 40
HOLD_NS = HOLD_MS * 1e6
WORKERS = 2
KEEPS = ("rebuild", "write_out", "read_in")  # what the keeper does while it holds the lock
ROUNDS = 30


def lock_lines(target):
    return [(int(x[1]), int(x[2]), [int(n) for n in x[3:]]) for x in target.ask("tally") if x[0] == "lock"]


@once
def contended():
    """Five processes in one run: four whose keeper holds a lock most of the time, and one that is deadlocked."""
    keepers = {kind: Target("locks", kind, HOLD_MS) for kind in ("mutex", "rwlock", "pi", "robust")}
    stuck = Target("locks", "deadlock", 0)
    for target in keepers.values():
        target.ask("go")
    run = Run("-p", ",".join(str(t.pid) for t in (*keepers.values(), stuck)))
    run.ready()
    before = {kind: lock_lines(t)[0] for kind, t in keepers.items()}
    # Two workers wait most of the time that the keeper holds the lock.
    until(lambda: all(lock_lines(t)[0][2][1] - before[kind][2][1] >= WORKERS * ROUNDS for kind, t in keepers.items()),
          "the workers have waited")
    after = {kind: lock_lines(t)[0] for kind, t in keepers.items()}
    dead = lock_lines(stuck)
    run.stop()
    run.must()
    pids = {kind: t.pid for kind, t in keepers.items()}
    stuck_pid = stuck.pid
    for target in (*keepers.values(), stuck):
        target.end()
    return run, pids, before, after, stuck_pid, dead


def rows_of(run, pid):
    return [row for row in run.summary()["locks"] if row["pid"] == pid]


def the_row(kind):
    run, pids, _, after, _, _ = contended()
    rows = [row for row in rows_of(run, pids[kind]) if row["address"] == after[kind][0]]
    check(len(rows) == 1, f"{len(rows)} rows for the {kind} at {after[kind][0]:#x}: {rows_of(run, pids[kind])}")
    return rows[0]


@fact
def a_lock_is_known_by_its_variable_and_by_the_function_that_waits_for_it():
    for kind, word, name in (("mutex", "mutex", "table_lock"), ("rwlock", "rwlock", "table_rwlock"), ("pi", "futex", "table_lock"), ("robust", "futex", "table_lock")):
        row = the_row(kind)
        equal((row["kind"], row["name"], row["function"]), (word, name, "lookup"), f"kind, name and waiter of the {kind}")


@fact
def what_was_waited_for_a_lock_is_what_its_waiters_measured():
    run, pids, before, after, _, _ = contended()
    p = run.profile("offcpu")
    for kind, pid in pids.items():
        row, waited = the_row(kind), after[kind][2][0] - before[kind][2][0]
        # Workers count a wait when it has ended, wake-up and way to a CPU included: up to one of each worker is counted
        # on one side alone at either end.
        queued = p.sum("runnable/nanoseconds", "lookup", pid=pid)
        # The run goes on before the first tally and behind the last one: those waits are the workers' too.
        check(row["waited_ns"] >= waited - queued - 2 * WORKERS * HOLD_NS,
              f"{row['waited_ns']} ns waited for the {kind}, of {waited} ns measured and {queued} ns on run queues")
        blocked = p.sum("blocked/nanoseconds", "lookup", pid=pid)
        # The keeper waits for it, too, when a worker that has it has no CPU.
        check(row["waited_ns"] <= blocked + after[kind][2][2],
              f"{row['waited_ns']} ns waited for the {kind}, but {blocked} ns blocked in lookup, and {after[kind][2][2]} by the keeper")
        # Waits of the workers for each other are for the same lock.
        check(row["waited_ns"] >= 0.95 * blocked, f"{row['waited_ns']} ns of {blocked} ns blocked in lookup are for the {kind}")


@fact
def the_thread_that_holds_a_lock_is_named_with_its_function():
    for kind in ("mutex", "rwlock", "pi", "robust"):
        row, keeper = the_row(kind), contended()[3][kind][1]
        equal((row["owner"], row["owner_name"]), (keeper, "keeper"), f"who holds the {kind}")
        # Workers hold it for a microsecond, and are seldom woken while another one does, but where they lose their CPU with it.
        check(row["owner_ns"] >= 0.5 * row["waited_ns"], f"{row['owner_ns']} ns of {row['waited_ns']} for the {kind}'s keeper")
        # It sleeps in two functions as long, both called by this one; a busy machine may make one much longer.
        check(row["held_in"] in KEEPS, f"the keeper of the {kind} is in {row['held_in']}")
        check(row["held_ns"] >= 0.5 * row["waited_ns"] / WORKERS,
              f"{row['held_ns']} ns of the {kind}'s keeper, {row['waited_ns']} ns waited by {WORKERS}")


@fact
def the_last_sentence_names_lock_owner_and_function():
    target = Target("locks", "mutex", HOLD_MS)
    target.ask("go")
    run = Run("-p", target.pid)
    run.ready()
    begin = lock_lines(target)[0][2][1]
    until(lambda: lock_lines(target)[0][2][1] - begin >= WORKERS * 10, "the workers have waited")
    run.stop()
    run.must()
    target.end()
    verdict = run.summary()["verdict"]
    equal(verdict["kind"], "contended", "verdict")
    for part in ("for the lock table_lock, most of it in lookup; thread", "(keeper) held it for", "in rebuild"):
        check(part in verdict["sentence"], f"{part!r} is not in {verdict['sentence']!r}")


def one_lock(kind, *options):
    """The row of a lock whose program was told to go while the run was under way."""
    target = Target("locks", kind, HOLD_MS)
    run = Run("-p", target.pid, *options)
    run.ready()
    target.ask("go")
    until(lambda: lock_lines(target)[0][2][1] >= WORKERS * 10, "the workers have waited")
    line = lock_lines(target)[0]
    run.stop()
    run.must()
    rows = [row for row in rows_of(run, target.pid) if row["address"] == line[0]]
    target.end()
    check(len(rows) == 1, f"{len(rows)} rows for the lock at {line[0]:#x}")
    return rows[0], line


@fact
def a_lock_in_a_block_of_memory_is_known_by_what_allocated_that():
    row, line = one_lock("heap", "--only", "offcpu,alloc", "--alloc=exact")
    equal((row["kind"], row["name"], row["owner"]), ("mutex", "", line[1]), "kind, name and owner")
    check(row["place"].startswith("a block of ") and row["place"].endswith(" by table_new"), f"it is in {row['place']!r}")


@fact
def where_allocations_are_not_traced_it_is_in_the_heap():
    row, _ = one_lock("heap", "--only", "offcpu")
    equal((row["name"], row["place"]), ("", "[heap]"), "name and place")


@fact
def of_a_lock_that_names_no_owner_who_releases_it_is_known():
    row, _ = one_lock("own", "--only", "offcpu")
    equal((row["kind"], row["name"], row["owner"]), ("", "own_word", 0), "kind, name and owner")
    check(row["released_ns"] >= 0.9 * row["waited_ns"], f"{row['released_ns']} ns of {row['waited_ns']} were ended by a known function")
    equal((row["function"], row["released_in"]), ("own_lock", "own_unlock"), "waited for, and released in")


@fact
def a_lock_that_is_waited_for_by_futex_waitv_is_one():
    if kernel() < (5, 16):
        skip("this kernel has no futex_waitv (5.16)")
    row, _ = one_lock("waitv", "--only", "offcpu")
    equal((row["name"], row["function"], row["released_in"]), ("own_word", "own_lock", "own_unlock"), "name, waited for, and released in")


@fact
def threads_that_wait_for_each_other_since_before_the_run_are_named():
    run, _, _, _, pid, dead = contended()
    rows = {row["address"]: row for row in rows_of(run, pid)}
    for address, owner, _ in dead:
        check(address in rows, f"no row for the lock at {address:#x}: {rows}")
        row = rows[address]
        equal((row["kind"], row["name"].split("+")[0], row["function"]), ("mutex", "pair", "take_other"), "the lock")
        equal(row["owner"], owner, "who holds it")
        # All of the run: it has no other wait.
        check(row["waited_ns"] >= 0.9 * run.summary()["duration_ns"], f"{row['waited_ns']} ns of {run.summary()['duration_ns']}")


@fact
def owners_in_a_pid_namespace_go_by_the_number_that_they_have_there():
    need("unshare")
    child = Child(["unshare", "-p", "-f", os.path.join(BUILD, "targets", "locks"), "mutex", str(HOLD_MS)],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(command):
        child.process.stdin.write(command + "\n")
        child.process.stdin.flush()
        return list(iter(lambda: child.process.stdout.readline().strip(), "end"))

    child.process.stdout.readline()
    pid = children_of(child.pid)[0]
    ask("go")
    run = Run("-p", pid)
    run.ready()
    # Those that came before the run, while programs were loaded, are none of it.
    begin = int(ask("tally")[0].split()[4])
    until(lambda: int(ask("tally")[0].split()[4]) - begin >= WORKERS * 10, "the workers have waited")
    run.stop()
    run.must()
    owner = int(ask("tally")[0].split()[2])
    os.kill(pid, signal.SIGKILL)
    child.end()
    row = rows_of(run, pid)[0]
    check(owner != pid and owner < 10, f"thread {owner} of {pid} is in no namespace of its own")
    equal((row["name"], row["owner"], row["owner_name"]), ("table_lock", owner, "keeper"), "lock and owner")
    check(row["held_in"] in KEEPS, f"the keeper is in {row['held_in']}")


# --- the GIL ---


@once
def crunching():
    """A program of each kind of Python that is here, in one run."""
    script = os.path.join(TOP, "tests", "targets", "py_gil.py")
    children = {v: Child([path, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for path, v in programs.pythons().items()}
    tids = {v: int(c.process.stdout.readline().split()[2]) for v, c in children.items()}
    run = Run("-p", ",".join(str(c.pid) for c in children.values()))
    run.ready()
    cpu = {v: thread_cpu_s(c.pid, tids[v]) for v, c in children.items()}
    # Enough samples of each owner that its function is a matter of no chance.
    until(lambda: all(thread_cpu_s(c.pid, tids[v]) - cpu[v] > 0.4 for v, c in children.items()), "the threads have computed", 60)
    run.stop()
    run.must()
    for c in children.values():
        c.end()
    return run, {v: c.pid for v, c in children.items()}, tids


def thread_cpu_s(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


@fact
def the_thread_that_has_the_gil_is_named_with_its_function():
    run, pids, tids = crunching()
    for version, pid in pids.items():
        rows = [row for row in rows_of(run, pid) if row["kind"] == "GIL"]
        if not check(len(rows) == 1, f"{version}: {len(rows)} rows of a GIL: {rows_of(run, pid)}"):
            continue
        row = rows[0]
        equal(row["owner"], tids[version], f"{version}: who has the GIL")
        # The others have it for some microseconds.
        check(row["owner_ns"] >= 0.9 * row["waited_ns"], f"{version}: {row['owner_ns']} ns of {row['waited_ns']}")
        equal(row["held_in"], "crunch (py_gil.py)", f"{version}: what it does")
        check(row["function"].startswith("serve "), f"{version}: waited for in {row['function']}")


main()
