"""What a snapshot does to a process: a twin of it answers as the process does, and it sees neither; snapshots in the middle of
changes. With MEMSCOPE_TEST_SNAPSHOTS=10000 so many of them."""

import random

from harness import *

SNAPSHOTS = int(os.environ.get("MEMSCOPE_TEST_SNAPSHOTS", "12"))
PAUSES = ("pause_ns", "stop_ns", "twin_ns", "copy_ns", "release_ns", "copied_bytes", "copied_again", "notes")


def ask(*args):
    return subprocess.run([MEMSCOPE, "heap", *map(str, args)], capture_output=True, text=True, timeout=FINISH_SEC,
                          stdin=subprocess.DEVNULL, check=False)


def heap(*args):
    done = ask(*args, "--json", "--top", 100000)
    if done.returncode:
        raise Broken(f"memscope heap {' '.join(map(str, args))}: status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def memory_group(limit):
    """A control group that allows so much; skips where none can be made."""
    for top, knob in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = os.path.join(top, f"memscope-test-{os.getpid()}")
        try:
            os.mkdir(group)
            with open(os.path.join(group, knob), "w", encoding="ascii") as f:
                f.write(str(limit))
            return group
        except OSError:
            if os.path.isdir(group):
                os.rmdir(group)
    return skip("no control group that limits memory can be made here")


def enter(group):
    with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as f:
        f.write(str(os.getpid()))


def leave(group):
    deadline = time.monotonic() + READY_SEC
    while os.path.isdir(group) and time.monotonic() < deadline:
        try:
            os.rmdir(group)
        except OSError:
            time.sleep(0.01)


def state(target):
    return dict(zip(("rounds", "errors", "sigchlds", "children", "generations"), target.ask("state")[0][1:]))


def is_healthy(target, before, what):
    deadline = time.monotonic() + FINISH_SEC
    now = state(target)
    while now["rounds"] <= before["rounds"] and time.monotonic() < deadline:
        time.sleep(0.05)
        now = state(target)
    check(now["rounds"] > before["rounds"], f"{what}: it does not go on: {before}, then {now}")
    equal(now["errors"], 0, f"{what}: what the program found wrong")
    with open(f"/proc/{target.pid}/status", encoding="ascii") as f:
        status = f.read()
    check(re.search(r"^TracerPid:\s+0$", status, re.M), f"{what}: it is traced: {status[:300]}")
    return now


def stat_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def children_of(pid):
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/children", encoding="ascii") as f:
            found += f.read().split()
    return found


@fact
def twin_answers_as_the_process_does():
    target = Target("heap_own", 3, 200)
    for question in ("allocator", "census"):
        one, two = heap(question, "-p", target.pid), heap(question, "-p", target.pid, "--twin")
        equal(one["twin_ns"], 0, "the time for a twin without --twin")
        check(0 < two["twin_ns"] <= two["pause_ns"], f"of the pause, making the twin: {two['twin_ns']} of {two['pause_ns']}")
        equal({k: v for k, v in two.items() if k not in PAUSES}, {k: v for k, v in one.items() if k not in PAUSES}, question)
    equal(children_of(target.pid), [], "children of the process")


@fact
def program_that_checks_itself_sees_no_twin():
    target = Target("heap_restless", 3, "unmap")
    before = state(target)
    for _ in range(max(3, SNAPSHOTS // 4)):
        heap("census", "-p", target.pid, "--twin")
        before = is_healthy(target, before, "after a twin")
        equal([before["sigchlds"], children_of(target.pid)], [0, []], "SIGCHLDs, and children")


@fact
def program_that_executes_itself_while_it_is_stopped_is_not_held():
    for _ in range(4):
        target = Target("exec_held")
        ask("census", "-p", target.pid)
        equal(target.ask("state"), [["generation", 2]], "what the program is afterwards")
        target.end()


@fact
def twin_is_refused_in_a_sentence():
    target = Target("filtered", "allow")
    target.ask("run")
    done = ask("census", "-p", target.pid, "--twin")
    check(done.returncode == 1 and "seccomp" in done.stderr and done.stderr.count("\n") == 1, f"{done.returncode}: {done.stderr}")
    check("heap_blocks" in heap("census", "-p", target.pid), "without a twin it is answered")
    # 28 MiB in a group that allows 48: a second copy would not fit.
    group = memory_group(48 << 20)
    try:
        target = Child([os.path.join(TARGETS, "heap_own"), "3", "200"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       preexec_fn=lambda: enter(group))
        target.process.stdout.readline()
        done = ask("census", "-p", target.pid, "--twin")
        check(done.returncode == 1 and "control group may use" in done.stderr and done.stderr.count("\n") == 1,
              f"{done.returncode}: {done.stderr}")
        target.end()
    finally:
        leave(group)


@fact
def memscope_killed_at_any_moment_leaves_the_program_whole():
    target = Target("heap_restless", 3)
    before = state(target)
    running = []
    for i in range(SNAPSHOTS // 2):
        child = subprocess.Popen([MEMSCOPE, "heap", "census", "-p", str(target.pid), *(("--twin",) if i % 4 else ())],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0, 0.1))
        child.kill()
        child.wait()
        before = is_healthy(target, before, f"kill {i}")
        deadline = time.monotonic() + 10
        running = children_of(target.pid)
        # A twin that nobody reaps stays a zombie; none runs.
        while any(stat_of(pid) not in ("Z", "X", "") for pid in running) and time.monotonic() < deadline:
            time.sleep(0.02)
        equal([pid for pid in running if stat_of(pid) not in ("Z", "X", "")], [], f"kill {i}: twins that run")
    equal(before["sigchlds"], 0, "SIGCHLDs")
    print(f"# {len(running)} zombies after {SNAPSHOTS // 2} kills")


@fact
def snapshots_in_the_middle_of_changes_leave_a_program_whole():
    again = taken = 0
    for modes in (("unmap",), ("fork",), ("exec",), ("fork", "unmap", "exec")):
        target = Target("heap_restless", 3, *modes)
        before = state(target)
        for i in range(SNAPSHOTS // 4):
            done = ask("census", "-p", target.pid, "--json", *(("--twin",) if i % 2 else ()))
            # One that executes another program while it is being read has no heap yet, or another one than before.
            if done.returncode == 0:
                taken += 1
                again += json.loads(done.stdout)["copied_again"]
            else:
                check("exec" in modes and done.stderr.startswith("memscope: process "), f"{modes}: {done.returncode}: {done.stderr}")
            before = is_healthy(target, before, f"{modes}, snapshot {i}")
        # A twin that ends after the process has executed another program sends it a SIGCHLD (do_notify_parent()).
        if modes == ("unmap",):
            equal(before["sigchlds"], 0, f"SIGCHLDs of {modes}")
        target.end()
    print(f"# {taken} snapshots, {again} copies showed a change half made and were taken again")
    check(taken >= SNAPSHOTS // 2, f"{taken} snapshots of {SNAPSHOTS}")


main()
