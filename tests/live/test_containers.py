"""A container, or any control group, by name: who is in it, from when, and what is known of them."""

import collections
import csv
import signal
import time

import pprof_reader

from containers import *
from harness import *
from truth import ALLOC, EXACT, check_truth, sites_of

HZ = 999


def group_name():
    return f"memscope-live-{os.getpid()}-{os.urandom(4).hex()}"


def pids_of(run, source, comm):
    p = run.profile(source)
    return {s.labels["pid"] for s in p.select(comm=comm)}


def comm_total(run, source, value_type, comm):
    return run.profile(source).sum(value_type, comm=comm)


@fact
@grouped
def members_of_a_group_are_profiled_and_nobody_else():
    group = Group(group_name())
    member, other, comer = Inside(group, "cpu_split", 400), Target("cpu_split", 400), Target("cpu_split", 400)

    def during():
        group.take(comer.pid)
        other.say("go")
        comer.say("go")
        lines = member.ask("go"), comer.answer()
        other.answer()
        return lines

    run, (of_member, of_comer) = record(("-G", group.dir, "-F", HZ, "--only", "oncpu"), during)
    p = run.profile("oncpu")
    for target, lines in ((member, of_member), (comer, of_comer)):
        got = p.sum("samples/count", pid=target.pid)
        samples_of(got, lines[0][2], lines[0][6], HZ, f"samples of process {target.pid}")
        # As outside: what the program says of itself, within 4 sigma.
        for i, name in enumerate(("hot_70", "hot_20", "hot_10")):
            share_of(p.sum("samples/count", name, pid=target.pid) / max(got, 1), lines[0][3 + i] / lines[0][2], got,
                     f"share of {name}")
    equal({s.labels["pid"] for s in p.samples} - {member.pid, comer.pid}, set(), "processes of others")
    equal(run.summary()["target"]["members"], 2, "processes that were in the group")


@fact
@grouped
def groups_of_each_hierarchy_are_found():
    names = [m for m in mounts() if m][:2]
    if not names:
        skip("no hierarchy of its own (v1) is mounted")
    for name in names:
        group = Group(group_name(), name)
        member, other = Inside(group, "cpu_split", 100), Target("cpu_split", 100)

        def during():
            member.ask("go")
            other.ask("go")

        # By its directory, and by its path, which no other hierarchy has.
        how = group.dir if name == names[0] else group.dir.removeprefix(mounts()[name])
        run, _ = record(("-G", how, "-F", HZ, "--only", "oncpu"), during)
        equal({s.labels["pid"] for s in run.profile("oncpu").samples}, {member.pid},
              f"processes of the group {how}")


@fact
@grouped
def a_directory_of_two_controllers_has_a_comma_in_its_name():
    name = next((m for m in mounts() if "," in mounts()[m]), None)
    if name is None:
        skip("no hierarchy of two controllers (v1) is mounted")
    group = Group(group_name(), name)
    member = Inside(group, "cpu_split", 600000)
    run, _ = record(("-G", group.dir, "--only", "oncpu", "-d", 1), lambda: member.say("go"))
    equal(run.summary()["target"]["members"], 1, f"processes of the group {group.dir}")


@fact
@grouped
def processes_of_20_ms_are_all_seen():
    group, n = Group(group_name()), 40
    script = f"read x; i=0; while [ $i -lt {n} ]; do sleep 0.02; i=$((i+1)); done; echo done; read x"
    shell = Child(entering(group, ["sh", "-c", script]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def during():
        shell.process.stdin.write(b"\n")
        shell.process.stdin.flush()
        shell.process.stdout.readline()

    while group.pids() != [shell.pid]:
        time.sleep(0.01)
    run, _ = record(("-G", group.dir, "--alloc=off"), during)
    equal(len(pids_of(run, "offcpu", "sleep")), n, "processes with waits of their own")
    equal(run.summary()["target"]["members"], n + 1, "processes that were in the group")
    # Each slept for 20 ms at least, from its own first instruction to its last.
    within(comm_total(run, "offcpu", "blocked/nanoseconds", "sleep"), n * 20e6, 1e12, "ns they slept")


@fact
@grouped
def a_group_that_is_made_again_is_followed_from_its_first_process():
    group = Group(group_name())
    first = Child(entering(group, ["tail", "-f", "/dev/null"]))
    while group.pids() != [first.pid]:
        time.sleep(0.01)

    run = Run("-G", group.dir, "--alloc=off")
    run.ready()
    first.end()
    group.remove()
    run.had_time(0.3)  # it is seen that it has gone
    group.make()
    # Shorter than the time between two looks: nobody but the kernel can have seen it.
    subprocess.run(entering(group, ["sleep", "0.02"]), check=True)
    run.had_time(0.3)
    run.stop()
    run.must()
    target = run.summary()["target"]
    equal(len(pids_of(run, "offcpu", "sleep")), 1, "the process of the second group")
    equal([target["members"], target["groups"][0]["restarts"], target["groups"][0]["was_gone"]],
          [2, 1, True], "members, times that it was made again, was it gone")


@fact
@grouped
def group_of_threads_is_refused_and_its_domain_has_them():
    group = Group(group_name())
    threads = Group(f"{os.path.basename(group.dir)}/threads")
    Group.made.insert(0, Group.made.pop())  # it goes first
    try:
        with open(threads.dir + "/cgroup.type", "w", encoding="ascii") as f:
            f.write("threaded")
    except OSError as e:
        skip(f"a control group cannot be made threaded here: {e}")
    member = Inside(group, "cpu_split", 300)
    worker = next(t for t in os.listdir(f"/proc/{member.pid}/task") if int(t) != member.pid)
    with open(threads.dir + "/cgroup.threads", "w", encoding="ascii") as f:
        f.write(worker)
    run = Run("-G", threads.dir, "-d", "0.1")
    equal(run.finish(), 1, "exit status of -G of a group of threads")
    check("is a threaded control group" in run.stderr, f"it said {run.stderr!r}")
    run, lines = record(("-G", group.dir, "-F", HZ, "--only", "oncpu"), lambda: member.ask("go"))
    p = run.profile("oncpu")
    samples_of(p.sum("samples/count", tid=int(worker)), lines[0][2], lines[0][6], HZ, "samples of the moved thread")


@fact
@grouped
def where_rss_is_includes_processes_that_came_in_the_run():
    group = Group(group_name())
    first = Child(entering(group, ["sleep", "600"]))
    while group.pids() != [first.pid]:
        time.sleep(0.01)
    run = Run("-G", group.dir, "--alloc=off", "--only", "growth")
    run.ready()
    first.end()
    second = Child(entering(group, [tool("python3"), "-c",
                                    "x = bytearray(b'x') * (48 << 20); print(flush=True); input()"]),
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    second.process.stdout.readline()
    run.had_time(0.3)
    run.stop()
    run.must()
    memory = run.summary()["rss_breakdown"]
    equal(memory["processes"], 1, "processes whose memory is told")
    within(memory["rss_bytes"], 48 << 20, 96 << 20, "bytes of the one that is there")
    equal(group.pids(), [second.pid], "processes in the group at the end")


def kernel_s_pss(pids):
    """Bytes, by the kernel's own sum over each process."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            total += next(int(line.split()[1]) << 10 for line in f if line.startswith("Pss:"))
    return total


def parts_add_up(one, what):
    equal(sum(part["pss_bytes"] for part in one["parts"].values()) + one["unexplained_bytes"], one["pss_bytes"],
          f"{what}: PSS")
    # A page of code that another program begins to map meanwhile counts for less.
    near(one["unexplained_bytes"], 0, 0.02 * one["pss_bytes"] + (1 << 20), f"{what}: unexplained")
    equal(one["measure"], "pss", f"{what}: measure")


def rows_add_up(path, what):
    with open(path, newline="", encoding="utf-8") as f:
        rows = [{k: int(v) for k, v in row.items() if k not in ("timestamp", "traced_bytes")} for row in csv.DictReader(f)]
    check(rows, f"{what}: no row in {path}")
    beside = ("pss", "live_blocks", "live_bytes", "processes", "not_read", "not_read_rss")
    for row in rows:
        equal(sum(v for k, v in row.items() if k not in beside), row["pss"], f"{what}: parts of {row}")
    return rows


@fact
@alone("the whole machine")
@grouped
def rss_breakdown_of_containers_counts_no_page_twice():
    need("python3")
    engines, groups, names = two_containers()
    size = 48 << 20
    # Three processes share a block; another container has one of its own.
    forks = (f"import os, sys; x = bytearray(b'x') * {size}; os.fork() and os.fork(); "
             "os.write(1, b'.'); sys.stdin.read()")
    web = Child(entering(groups[0], [tool("python3"), "-c", forks]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    db = Child(entering(groups[1], [tool("python3"), "-c", f"import sys; x = bytearray(b'x') * {size // 2}; "
                                    "print(flush=True); sys.stdin.read()"]), stdin=subprocess.PIPE,
               stdout=subprocess.PIPE)
    for _ in range(3):
        os.read(web.process.stdout.fileno(), 1)
    db.process.stdout.readline()
    for how, alloc in ((("-G", groups[0].dir), "off"), (("-G", groups[0].dir), "exact"), (named("-c", groups), "off"),
                       (named("-G", groups), "off"), (("-a",), "off")):
        run, truth = record((*how, "--only", "growth,alloc", f"--alloc={alloc}", "--interval", 0.2), lambda:
                            (time.sleep(1), [kernel_s_pss(group.pids()) for group in groups])[1], env=engines.env)
        what, memory = f"{' '.join(how)[:20]} {alloc}", run.summary()["rss_breakdown"]
        of = {c["name"]: c for c in memory["containers"] or ()}
        rows_add_up(run.path("rss_breakdown.csv"), what)
        parts_add_up(memory, what)
        single = how == ("-G", groups[0].dir)
        equal(bool(of), not single, f"{what}: containers by themselves")
        for name, pss, processes, block in zip(names[how[0]] if how[0] == "-G" else names["-c"], truth, (3, 1),
                                               (size, size // 2)):
            if single and name != names["-G"][0]:
                continue
            one = memory if single else of[name]
            parts_add_up(one, f"{what} {name}")
            if how == ("-a",) and one["not_read_processes"]:
                continue  # this machine has larger processes, for which the time was needed
            equal([one["processes"], one["not_read_processes"]], [processes, 0], f"{what} {name}: processes, not read")
            near(one["pss_bytes"], pss, 0.02 * pss + (1 << 20), f"{what} {name}: PSS")
            live = sum(one["parts"][k]["pss_bytes"] for k in ("live", "live_traced", "live_preexisting"))
            within(live, block, block + (8 << 20), f"{what} {name}: live")
            check(one["rss_bytes"] >= processes * block, f"{what} {name}: RSS {one['rss_bytes']}")
            if not single:
                last = rows_add_up(run.path(f"{name}/rss_breakdown.csv"), f"{what} {name}")[-1]
                equal([last["pss"], last["processes"]], [one["pss_bytes"], processes], f"{what} {name}: last row")
        if of:
            equal(sum(c["pss_bytes"] for c in of.values()), memory["pss_bytes"], f"{what}: all containers")
            equal("host" in of, how == ("-a",), f"{what}: the host")
    equal(run.status, 0, "exit status")


def truth_in(root, ident, engines, run_args, target):
    group = Group(f"libpod-{ident}")
    # What another libc than glibc may do differently, the target leaves out.
    other = ["env", "ALLOC_TRUTH_OTHER=1"] if "musl" in target else []
    inside = Inside(group, target, 2, 500, root=root, pids=True, before=other)
    run, lines = record(run_args, lambda: inside.ask("run"), *EXACT, env=engines.env)
    return run, lines, inside


def without_ids(run):
    """Engines refuse clone3, so that threads are begun by clone."""
    return sorted((stack.replace(";clone3;", ";clone;"), value) for stack, value in run.folded("alloc").items())


@fact
@grouped
def allocations_in_a_container_are_those_of_the_same_program_outside():
    need("ldd", "chroot", "unshare")
    ident, engines = new_id(), Engines()
    engines.add_podman(ident, "web")
    root = root_of(os.path.join(TARGETS, "alloc_truth"))
    run, lines, inside = truth_in(root, ident, engines, ("-c", "web"), "alloc_truth")
    check_truth(run, lines, inside.pid)
    outside = Target("alloc_truth", 2, 500)
    beside, _ = record(("-p", outside.pid), lambda: outside.ask("run"), *EXACT)
    equal(without_ids(run), without_ids(beside), "stacks, in and outside")
    labels = {tuple(s.labels.get(k) for k in ("container", "container_id", "pid", "ns_pid"))
              for s in run.profile("alloc").samples}
    equal(labels, {("web", ident, inside.pid, 1)}, "container, its id, pid here and there")
    target = run.summary()["target"]
    group = target["groups"][0]
    equal([group[k] for k in ("container", "container_id", "engine", "image")],
          ["web", ident, "podman", "localhost/t:1"], "what the summary says of it")
    equal([(p["pid"], p.get("ns_pid")) for p in target["processes"]], [(inside.pid, 1)], "both pids")


@fact
@grouped
def a_musl_program_in_its_own_root_is_counted_to_the_byte():
    need("chroot", "unshare")
    program = os.path.join(TARGETS, "alloc_truth_musl_shared")
    root, loader = scratch("musl"), next(iter(glob.glob("/lib/ld-musl-*.so.1")), None)
    if not loader or not os.path.exists(program):
        skip("musl is not installed (musl-tools)")
    os.makedirs(root + "/lib")
    os.chmod(root, 0o755)
    shutil.copy(os.path.realpath(loader), root + loader)
    shutil.copy(program, root)
    ident, engines = new_id(), Engines()
    engines.add_docker(ident, "alpine")
    run, lines, inside = truth_in(root, ident, engines, ("-c", ident[:12]), "alloc_truth_musl_shared")
    check_truth(run, lines, inside.pid)


@fact
@grouped
def the_heap_of_a_container_is_that_of_its_process_with_most_memory():
    engines, ident = Engines(), new_id()
    engines.add_docker(ident, "web")
    group = Group(f"docker-{ident}.scope")
    inside = Inside(group, "heap_graph", 500, 1, 1, 50000)
    other = Child(entering(group, ["sleep", "1000"]), **QUIET)
    until(lambda: len(group.pids()) == 2, "two processes are in the group")
    path = scratch("snapshot")
    for args in (("census",), ("snapshot", "-o", path)):
        done = subprocess.run([MEMSCOPE, "heap", *args, "-c", "web"], env=engines.env, capture_output=True, text=True,
                              timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
        check(f"heap_graph ({inside.pid}): " in done.stdout, f"of {args} it says: {done.stdout}{done.stderr}")
        check(f"of the 2 processes of container web the one with most memory; -p takes another one: {other.pid}\n" in done.stdout,
              f"of {args} it says: {done.stdout}{done.stderr}")
    done = subprocess.run([MEMSCOPE, "heap", "census", path], capture_output=True, text=True, timeout=FINISH_SEC,
                          stdin=subprocess.DEVNULL, check=False)
    check(", container web\n" in done.stdout, f"of the file it says: {done.stdout}{done.stderr}")


@fact
@grouped
def names_that_are_not_one_container_are_refused_with_a_list():
    engines, ids = Engines(), [new_id() for _ in range(3)]
    groups = [Group(f"docker-{i}.scope") for i in ids[:2]]
    engines.add_docker(ids[0], "app-web-1", "web")
    engines.add_docker(ids[1], "app-web-2", "web")
    engines.add_docker(ids[2], "stopped")
    for name, status, words in (
            ("web", 1, ["2 containers are called \"web\"", "app-web-1", "app-web-2", ids[0][:12]]),
            ("nobody", 1, ["there is no container \"nobody\"", "app-web-1", "app-web-2"]),
            ("stopped", 1, ["does not run", "app-web-1"]),
            (",", 2, ["-c takes names"])):
        run = Run("-c", name, "-d", "0.1", env=engines.env)
        equal(run.finish(), status, f"exit status of -c {name}")
        for word in words:
            check(word in run.stderr, f"-c {name}: {word!r} in {run.stderr!r}")
    equal(len(groups), 2, "groups")
    run = Run("-c", "app-web-1,app-web-2", "-d", "0.1", "--only", "oncpu", env=engines.env).must()
    equal([g["container"] for g in run.summary()["target"]["groups"]], ["app-web-1", "app-web-2"],
          "two by name")


@fact
@grouped
def doctor_looks_at_the_first_process_of_a_container():
    engines, ident = Engines(), new_id()
    engines.add_podman(ident, "web")
    first = Child(entering(Group(f"libpod-{ident}.scope"), ["sh", "-c", "while :; do :; done"]))
    time.sleep(0.2)

    def doctor(*args):
        return subprocess.run([MEMSCOPE, "doctor", *args], capture_output=True, text=True, timeout=FINISH_SEC, check=False,
                              env=engines.env)
    got = doctor("-c", "web")
    check(got.returncode in (0, 3), f"exit status {got.returncode} ({got.stderr})")
    check(str(first.pid) in got.stdout, f"it looked at another process than {first.pid}: {got.stdout[:200]!r}")
    equal([doctor("-c", "nothing-like-it").returncode, doctor("-c", "web", "-p", "1").returncode], [1, 2],
          "exit status of a container that is not there, and of two targets")


def look_into_folders(*ways):
    engines, groups, names = two_containers()
    names["-a"] = (*names["-c"], "host")
    for way in ways:
        how, folders = named(way, groups), names[way]
        targets = [*(Inside(group, "cpu_split", 600) for group in groups), Target("cpu_split", 600)]
        folders = {name: target.pid for name, target in zip(folders, targets)}

        run = Run(*how, "-F", HZ, "--only", "oncpu", "--interval", "0.2", env=engines.env)
        run.ready()
        for target in targets:
            target.say("go")
        for target in targets:
            target.answer()
        tables = [run.path(f"{name}/trend.csv") for name in folders]
        until(lambda: all(rows_in(path) >= 3 for path in tables), "three rows of trend.csv in each folder")
        run.stop()
        run.must()
        whole = run.profile("oncpu")
        parts = {name: pprof_reader.read(run.path(f"{name}/oncpu.pb.gz")) for name in folders}
        for name, pid in folders.items():
            check(parts[name].sum("samples/count", pid=pid) > 100, f"samples of {pid} in {name}")
            equal(parts[name].sum("samples/count", pid=pid), whole.sum("samples/count", pid=pid), f"samples in {name}")
            check(os.path.getsize(run.path(f"{name}/oncpu.svg")) > 1000, f"flame graph in {name}")
            with open(run.path(f"{name}/trend.csv"), encoding="utf-8") as f:
                head, *rows = [line.rstrip("\n").split(",") for line in f]
            check(len(rows) >= 3, f"rows of trend.csv in {name}: {rows}")
            rss, processes = (int(rows[-1][head.index(key)]) for key in ("rss_kb", "processes"))
            check(rss > 500 and (processes == 1 or name == "host"), f"last row of {name}: {rows[-1]}")
        dirs = {name for name in os.listdir(run.out) if os.path.isdir(run.path(name))}
        equal(set(folders) - dirs, set(), "folders")
        check(how[0] == "-a" or dirs == set(folders), f"folders of others: {dirs}")
        check(sum(p.sum("samples/count") for p in parts.values()) <= whole.sum("samples/count"), "more than the whole")
        for target in targets:
            target.end()
    return run


@fact
@grouped
def each_container_has_a_folder_of_its_own():
    look_into_folders("-c", "-G")


@fact
@alone("the whole machine")
@grouped
def what_is_in_no_container_has_the_folder_host():
    with open(look_into_folders("-a").path(".memscope"), encoding="utf-8") as f:
        check(":host/trend.csv\n" in f.read(), "clean does not know of the folder host")


def windows_in(where, source):
    return [pprof_reader.read(path) for path in sorted(glob.glob(os.path.join(where, f"{source}-*.pb.gz")))]


def add_up_windows(*ways):
    engines, groups, names = two_containers()
    for how in ways:
        targets = [*(Inside(group, "cpu_split", 600) for group in groups), Target("cpu_split", 600)]
        folders = dict(zip([*names.get(how, names["-c"]), "host"], [t.pid for t in targets]))
        if how != "-a":
            del folders["host"]

        def during(targets=targets):
            for target in targets:
                target.say("go")
            for target in targets:
                target.answer()
        run, _ = record((*named(how, groups), "-F", HZ, "--only", "oncpu", "--every", 0.2), during, env=engines.env)
        whole = windows_in(run.out, "oncpu")
        check(len(whole) >= 3, f"{how}: {len(whole)} windows")
        equal(sum(p.sum("samples/count") for p in whole), run.summary()["oncpu"]["samples"], f"{how}: samples of all")
        parts = {name: windows_in(run.path(name), "oncpu") for name in sorted(os.listdir(run.out))
                 if os.path.isdir(run.path(name)) and not name.startswith(".")}
        equal(sum(p.sum("samples/count") for of in parts.values() for p in of),
              sum(p.sum("samples/count") for p in whole), f"{how}: samples in all folders")
        for name, pid in folders.items():
            got = sum(p.sum("samples/count", pid=pid) for p in parts.get(name, ()))
            check(got > 100, f"{how}: {got} samples of {pid} in {name} of {sorted(parts)}")
            equal(got, sum(p.sum("samples/count", pid=pid) for p in whole), f"{how}: samples of {pid} in {name}")
            check(os.path.getsize(run.path(f"{name}/trend.csv")) > 100, f"{how}: trend.csv of {name}")
            stamps = {os.path.basename(path) for path in glob.glob(run.path("oncpu-*.pb.gz"))}
            check({os.path.basename(p) for p in glob.glob(run.path(f"{name}/oncpu-*"))
                   if p.endswith(".pb.gz")} <= stamps, f"{how}: windows of {name} are none of the run's")
        check(how == "-a" or set(parts) == set(folders), f"{how}: folders {sorted(parts)}")
        for target in targets:
            target.end()


@fact
@grouped
def each_container_has_its_windows_in_its_own_folder_and_they_add_up():
    add_up_windows("-c", "-G")


@fact
@alone("the whole machine")
@grouped
def windows_of_the_host_and_its_containers_add_up():
    add_up_windows("-a")


@fact
@grouped
def windows_of_containers_are_kept_and_cleaned_as_one():
    engines, groups, _ = two_containers()
    tree, targets = scratch("tree"), [Inside(group, "cpu_split", 60000) for group in groups]
    for target in targets:
        target.say("go 20")
    got = subprocess.run([MEMSCOPE, "-q", "-c", "web,db", "-F", "199", "--only", "oncpu", "--every", "0.3", "--archive",
                          tree, "--keep", "2", "-d", "2"], capture_output=True, text=True, check=False, timeout=FINISH_SEC,
                         env=engines.env)
    equal(got.returncode, 0, f"exit status ({got.stderr})")
    where, = glob.glob(f"{tree}/*")
    stamps = {os.path.basename(p) for p in glob.glob(f"{where}/oncpu-*.pb.gz")}
    equal(len(stamps), 2, "windows that were kept")
    check(glob.glob(f"{where}/*/oncpu-*.pb.gz"), "no window of a container")
    for name in ("web", "db"):
        # A container that got no CPU in a window has none of it.
        equal({os.path.basename(p) for p in glob.glob(f"{where}/{name}/oncpu-*.pb.gz")} - stamps, set(),
              f"windows of {name} that are none of the run's")
        equal(len(glob.glob(f"{where}/{name}/trend-*.csv")), 1, f"trend of {name}")
    got = subprocess.run([MEMSCOPE, "clean", "--keep", "1K", tree], capture_output=True, text=True, check=False)
    equal(got.returncode, 0, f"exit status of clean ({got.stderr})")
    equal([f for _, _, files in os.walk(where) for f in files if not f.startswith(".")], [], "files that are left")
    equal([d for d in os.listdir(where) if not d.startswith(".")], [], "folders that are left")


@fact
@grouped
def what_a_signal_asked_for_goes_with_the_run():
    engines, groups, _ = two_containers()
    tree, targets = scratch("runs"), [Inside(group, "cpu_split", 60000) for group in groups]
    os.mkdir(tree)
    run = Run("-c", "web,db", "-F", 499, "--only", "oncpu", out=f"{tree}/run", env=engines.env)
    run.ready()
    for target in targets:
        target.say("go")
    run.had_time(0.5)
    run.send(signal.SIGUSR1)
    deadline = time.monotonic() + 20
    while not glob.glob(run.path("web/oncpu-*.pb.gz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    run.stop()
    run.must()
    asked = [os.path.basename(p) for p in glob.glob(run.path("oncpu-*.pb.gz"))]
    equal(len(asked), 1, "profiles that the signal asked for")
    with open(run.path(".memscope"), encoding="utf-8") as f:
        listed = f.read().splitlines()
    for name in ("", "web/", "db/"):
        check(f":{name}{asked[0]}" in listed, f"{name}{asked[0]} is not in the list: {listed}")
    subprocess.run([MEMSCOPE, "clean", "--keep", "1K", tree], capture_output=True, check=False)
    equal(os.listdir(tree), [], "what clean has left of the run")


@fact
@alone("the whole machine")
@grouped
def a_container_of_a_moment_has_its_name_in_a_run_of_the_host():
    need("ldd", "chroot", "unshare")
    engines, ident = Engines(), new_id()
    root = root_of(os.path.join(TARGETS, "exec_after"))
    engines.add_containerd("plain", "/memscope-live-plain")

    def during():
        engines.add_podman(ident, "brief")
        group = Group(f"libpod-{ident}")
        subprocess.run(entering(group, ["/exec_after", "300", scratch("file")], root, True),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        group.remove()
        shutil.rmtree(root)
        plain = Group("memscope-live-plain")
        subprocess.run(entering(plain, ["sleep", "0.02"]), check=True)
        plain.remove()

    run, _ = record(("-a", "-F", HZ, "--only", "oncpu,offcpu", "--by", "container"), during, env=engines.env)
    off = run.profile("offcpu")
    equal({s.labels.get("container_id") for s in off.samples if s.labels.get("container") == "brief"},
          {ident}, "the id of the container that had gone")
    equal({s.labels.get("comm") for s in off.samples if s.labels.get("container") == "plain"} >= {"sleep"},
          True, "a container without a number for its id")
    folded = run.folded("oncpu")
    check(all(stack.split(";")[0] in ("brief", "plain", "[host]") for stack in folded
              if len(stack.split(";")[0]) != 12), "each stack begins with a container or [host]")
    names = {s.split(";")[1] for s in folded if s.startswith("brief;")}
    check("exec_after" in names, f"on-CPU samples of the container's program: {names}")
    own = {f.name for s in run.profile("oncpu").select(container="brief", comm="exec_after") for f in s.frames}
    check("burn" in own, f"functions of a program whose root is gone are named: {sorted(own)[:8]}")


@once
def outside():
    """The same allocations by a program that is in no container."""
    target = Target("alloc_truth", 2, 500)
    run, _ = record(("-p", target.pid), lambda: target.ask("run"), *EXACT)
    return without_ids(run)


def recorded_in_process(truth, before):
    """By the injected library, which the container does not see, under the engine's own seccomp profile."""
    with open(f"/proc/{truth.pid}/maps", encoding="ascii", errors="replace") as f:
        check("libmemscope" not in f.read(), "the library is there before")
    run, lines = record(("-p", truth.pid, "--alloc=exact", "--inject", "--only", "alloc"), lambda: truth.ask("run"))
    grown = [b - a for a, b in zip(sites_of(before)[1], sites_of(lines)[1])]
    equal([run.profile("alloc").sum(of, pid=truth.pid) for of in ALLOC], grown[:2], "calls and bytes, recorded in process")
    with open(f"/proc/{truth.pid}/maps", encoding="ascii", errors="replace") as f:
        equal(sum("/memfd:libmemscope-alloc.so" in line and " r-xp " in line for line in f), 1, "copies of the library")


def profiles_are_those_of_the_program_outside(engine):
    truth = Served(engine, "truth", "alloc_truth", 2, 500)
    split = Served(engine, "split", "cpu_split", 600, options=engine.MEASURES)
    run, lines = record(("-c", "truth"), lambda: truth.ask("run"), *EXACT, env=engine.env)
    check_truth(run, lines, truth.pid)
    equal(without_ids(run), outside(), "stacks of allocations, in and outside")
    equal({tuple(s.labels.get(k) for k in ("container", "pid", "ns_pid")) for s in run.profile("alloc").samples},
          {("truth", truth.pid, 1)}, "container, pid here and there")
    if os.uname().machine == "x86_64":
        recorded_in_process(truth, lines)
    run, lines = record(("-c", "split", "-F", HZ, "--only", "oncpu"), lambda: split.ask("go"), env=engine.env)
    p, line = run.profile("oncpu"), lines[0]
    got = p.sum("samples/count", pid=split.pid)
    samples_of(got, line[2], line[6], HZ, "samples of the container's program")
    for i, name in enumerate(("hot_70", "hot_20", "hot_10")):
        share_of(p.sum("samples/count", name, pid=split.pid) / max(got, 1), line[3 + i] / line[2], got,
                 f"share of {name}")
    out = subprocess.run([MEMSCOPE, "trend", "-c", "split", "--once", "--json"], capture_output=True, text=True,
                         check=False, env=engine.env, timeout=FINISH_SEC)
    equal(out.returncode, 0, f"exit status of trend -c ({out.stderr})")
    seen = json.loads(out.stdout or "{}")
    equal([p["pid"] for p in seen["processes"]], [split.pid], "processes of trend -c")
    if "memory" in mounts():
        charged = seen["groups"][0]["charged_kb"] or 0
        check(charged >= seen["total"]["anonymous_kb"], f"what the engine's group is charged: {charged} kB")
    engine.remove("truth")
    engine.remove("split")


def follow_by_name(engine):
    """A container by its name, restarted; replaced by another one of the name; and by its short id."""
    try:
        ident = engine.run("web", BUSY)
        engine.run("other", BUSY)

        def until_again(times):
            # How soon it is looked for hangs on how long the engine's files take to read.
            deadline = time.monotonic() + 30
            while run.stderr.count(" is there again") < times and time.monotonic() < deadline:
                time.sleep(0.02)
            run.had_time(0.3)

        run = Run("-c", "web", "-F", HZ, "--only", "oncpu,offcpu", "-v", env=engine.env)
        run.ready()
        run.had_time(0.3)
        engine.restart("web")
        until_again(1)
        engine.remove("web")
        run.had_time(0.3)
        second = engine.run("web", BRIEF)
        until_again(2)
        # A busy machine may keep it from a CPU: ten of its processes have to have been there.
        main, seen_pids = engine.pid_of("web"), set()
        until(lambda: seen_pids.update(children_of(main)) or len(seen_pids) >= 10, "the second container has worked")
        run.stop()
        run.must()
        p, target = run.profile("oncpu"), run.summary()["target"]
        equal({s.labels.get("container") for s in p.samples} - {None}, {"web"}, "containers")
        # The first hardly waits, with a CPU to itself; the second hardly runs.
        seen = p.samples + run.profile("offcpu").samples
        equal({s.labels["container_id"] for s in seen if "container_id" in s.labels}, {ident, second},
              "ids that the name had")
        equal(target["groups"][0]["restarts"], 2, "times that it was started again")
        equal(target["groups"][0]["container_id"], second, "the id that it has at the end")
        mains = {s.labels["pid"] for s in p.select(ns_pid=1) if s.labels["comm"] == "sh"}
        # The second of them was killed some tenths of a second after it began.
        within(len(mains), 2, 3, "processes that are the first of their container")
        waited = collections.Counter(s.labels["comm"] for s in run.profile("offcpu").samples)
        check(len(pids_of(run, "offcpu", "sleep")) > 3, f"processes of 20 ms in the last one: {waited}")
        run = Run("-c", second[:6], "-d", "0.3", "--only", "oncpu", env=engine.env).must()
        equal(run.summary()["target"]["groups"][0]["container"], "web", "the name, by the short id")
        profiles_are_those_of_the_program_outside(engine)
    finally:
        engine.end()


@fact
@grouped
def podman_s_container_is_followed_by_its_name():
    follow_by_name(Podman())


@fact
@grouped
def docker_s_container_is_followed_by_its_name():
    follow_by_name(Docker())


@fact
@grouped
def two_replicas_of_docker_are_listed():
    engine = Docker()
    try:
        label = ("--label", "com.docker.compose.service=app")
        ids = [engine.run(f"shop-app-{i}", BRIEF, *label) for i in (1, 2)]
        run = Run("-c", "app", "-d", "0.1", env=engine.env)
        equal(run.finish(), 1, "exit status of -c app")
        for word in ('2 containers are called "app"', "shop-app-1", "shop-app-2", ids[0][:12], ids[1][:12]):
            check(word in run.stderr, f"{word!r} in {run.stderr!r}")
        engine.remove("shop-app-1")
        run = Run("-c", "app", "-d", "1", "--only", "offcpu", env=engine.env).must()
        equal(run.summary()["target"]["groups"][0]["container"], "shop-app-2", "the one that is left")
        check(len(pids_of(run, "offcpu", "sleep")) > 3, "its processes of 20 ms")
    finally:
        engine.end()


@fact
@grouped
def containerd_s_container_is_followed_by_its_id():
    engine = Containerd()
    try:
        engine.run("web", BUSY)

        run = Run("-c", "web", "-F", HZ, "--only", "oncpu,offcpu", "-v", env=engine.env)
        run.ready()
        engine.remove("web")
        run.had_time(0.3)
        engine.run("web", BRIEF)
        until(lambda: " is there again" in run.stderr, "the container is found again")
        run.had_time(0.5)
        run.stop()
        run.must()
        group = run.summary()["target"]["groups"][0]
        equal([group[k] for k in ("container", "engine", "path", "restarts")],
              ["web", "containerd", "/default/web", 1], "what the summary says of it")
        check(len(pids_of(run, "offcpu", "sleep")) > 3, "processes of 20 ms in the second one")
        equal({s.labels.get("container") for s in run.profile("offcpu").samples} - {None}, {"web"}, "containers")
        profiles_are_those_of_the_program_outside(engine)
    finally:
        engine.end()


if __name__ == "__main__":
    main()
