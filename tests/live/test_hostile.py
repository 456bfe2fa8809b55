"""A container that means harm: what memscope, as root, opens, reads and shows of it. Of each trick: memscope ends in time
and as it should, the target is well, samples are named rightly or counted, nothing of the host or of another container is
in any output, and no output controls a terminal. What came of each is in tests/bench/README.md, "Hostile input"."""

import fcntl
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import threading
import time
import zlib

import containers
import injecting
from harness import *
from hostile import *

# A title is set, the screen cleared, a new line begun; and the same by characters of C1, in UTF-8 and as bytes.
BAD = "\x1b]0;owned\x07\x1b[2J\n\r\x7f<img src=x>;\u009b31m"
BAD_BYTES = BAD.encode() + b"\x9b31m\xff"


# --- files beside the program ---------------------------------------------------------------------

@fact
def perf_maps_that_are_no_files_are_left_alone():
    cages = {kind: Cage("jit") for kind in ("pipe", "socket", "device", "folder", "nothing")}
    at = {kind: cage.path("/tmp/perf-1.map") for kind, cage in cages.items()}
    watched = Watched(at["pipe"])
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(at["socket"])
    os.mkdir(at["folder"])
    try:
        os.mknod(at["device"], stat.S_IFCHR | 0o666, os.makedev(1, 5))  # zeros, without end
    except OSError:
        del cages["device"]
    run = profiled(cages.values(), burn(*cages.values()))
    watched.check("a perf map")
    for kind, cage in cages.items():
        check(leaves(run, cage.pid).get("[anon]", 0) > 200, f"a {kind}: {leaves(run, cage.pid)}")


def secret_map(loops, mode=0o600):
    """A perf map of this machine that would fit."""
    path = scratch("secret")
    with open(path, "w", encoding="ascii") as f:
        f.write(f"{loops[0]} 1000 {SECRET}\n")
    os.chmod(path, mode)
    return path


class Flipping:
    """A name that is now one file and now another, as fast as can be."""

    def __init__(self, path, *others):
        self._stop = False
        self._thread = threading.Thread(target=self._flip, args=(path, others), daemon=True)
        self._thread.start()

    def _flip(self, path, others):
        while not self._stop:
            for make in others:
                make(path + ".new")
                os.rename(path + ".new", path)

    def end(self):
        self._stop = True
        self._thread.join()


@fact
def perf_maps_that_lead_out_of_the_root_lead_nowhere():
    cages = [Cage("jit") for _ in range(3)]
    secret = secret_map(cages[0].loops(), 0o644)  # all loops are at one address where none is laid out at random
    for cage in cages:
        with open(secret, "a", encoding="ascii") as f:
            f.writelines(f"{loop} 1000 {SECRET}\n" for loop in cage.loops()[::2])
    os.symlink(secret, cages[0].path("/tmp/perf-1.map"))
    os.symlink("../" * 20 + secret, cages[1].path("/tmp/perf-1.map"))

    def own(path):
        with open(path, "w", encoding="ascii") as f:
            f.write(f"{cages[2].loops_known[0]} 1000 its_own\n")
    cages[2].loops_known = cages[2].loops()
    flipping = Flipping(cages[2].path("/tmp/perf-1.map"), own, lambda path: os.symlink(secret, path))
    try:
        run = profiled(cages, burn(*cages))
    finally:
        flipping.end()
    for cage in cages[:2]:
        check(leaves(run, cage.pid).get("[anon]", 0) > 200, f"{leaves(run, cage.pid)}")
    check(set(leaves(run, cages[2].pid)) & {"its_own", "[anon]"}, f"{leaves(run, cages[2].pid)}")


@fact
def a_perf_map_of_root_is_believed_if_all_may_read_it():
    for mode, want in (0o600, "[anon]"), (0o644, SECRET):
        target = AsNobody("jit")
        link = f"/tmp/perf-{target.pid}.map"
        os.symlink(secret_map(target.loops(), mode), link)
        try:
            run = Run("-p", target.pid, "-F", HZ, "--only", "oncpu")
            run.ready()
            target.ask("burn")
            ended(run)
        finally:
            os.unlink(link)
        check(leaves(run).get(want, 0) > 200, f"mode {mode:o}: {leaves(run)}")
        equal(has_secret(run), want == SECRET, f"what only root may read is shown (mode {mode:o})")


@fact
def a_perf_map_without_end_is_read_from_its_end():
    cage = Cage("jit")
    loops = cage.loops()
    with open(cage.path("/tmp/perf-1.map"), "wb") as f:
        f.truncate(10 << 30)
        f.seek(0, os.SEEK_END)
        f.write(f"\n{loops[0]} 1000 first\n".encode())
    run = profiled([cage], burn(cage), more=5)  # 128 MiB are read
    check(leaves(run).get("first", 0) > 200, f"{leaves(run)}")


@fact
def a_perf_map_with_a_lease_is_not_waited_for():
    cage = Cage("jit")
    loops, path = cage.loops(), cage.path("/tmp/perf-1.map")
    with open(path, "w", encoding="ascii") as f:
        f.write(f"{loops[0]} 1000 first\n")
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as e:
        skip(f"no lease is to be had here: {e}")
    try:
        run = profiled([cage], burn(cage))
    finally:
        os.close(fd)
        signal.signal(signal.SIGIO, before)
    check(leaves(run).get("[anon]", 0) + leaves(run).get("first", 0) > 200, f"{leaves(run)}")


# --- files that are mapped ------------------------------------------------------------------------

@fact
def a_file_that_is_replaced_is_the_one_that_was_mapped():
    cage = Cage("hostile")
    secret, honest = Elf(SECRET), Elf("honest")
    secret.build_id = honest.build_id
    host = secret.write(scratch("secret"))
    for name, file in (("/linked", honest), ("/piped", Elf("before_the_pipe"))):
        cage.code(file, name)
        os.unlink(cage.path(name))
    os.symlink(host, cage.path("/linked"))
    watched = Watched(cage.path("/piped"))
    # A file whose own name says that it is deleted, and what that name would be without.
    cage.code(Elf("says_so"), "/gone_(deleted)")
    os.rename(cage.path("/gone_(deleted)"), cage.path("/gone (deleted)"))
    Elf("another").write(cage.path("/gone"))
    run = profiled([cage], burn(cage))
    watched.check("a mapped file")
    found = leaves(run)
    for name in ("honest", "before_the_pipe", "says_so"):
        check(found.get(name, 0) > 20, f"{name}: {found}")
    check("another" not in found, f"a file of another name was read: {found}")


@fact
def a_build_id_that_two_containers_claim_names_nothing_of_the_other():
    claimed = os.urandom(20)
    cages = {name: Cage("hostile") for name in ("of_the_first", "of_the_second")}
    for name, cage in cages.items():
        cage.code(Elf(name, claimed))
    both = list(cages.values())
    for turn in range(2):  # the second with what the first has put aside
        run = profiled(both, burn(*both))
        for name, cage in cages.items():
            found = leaves(run, cage.pid)
            check(found.get(name, 0) > 50, f"{name}, run {turn}: {found}")
            check(not (set(cages) - {name}) & set(found), f"{name} has names of the other: {found}")
    # Alone, it is as if there were no other.
    run = profiled([cages["of_the_first"]], burn(*both))
    check(not any(b"of_the_second" in part for _, content in outputs(run) for part in unpacked(content)),
          "the second container is in the outputs of the first")


@fact
def a_debug_file_of_one_container_names_nothing_of_another():
    stripped = Elf("nothing")
    del stripped.sections[".symtab"]
    first, second = Cage("hostile"), Cage("hostile")
    # One file that both map, at one path.
    stripped.write(first.path("/code"))
    os.link(first.path("/code"), second.path("/code"))
    number = stripped.build_id.hex()
    where = second.path(f"/usr/lib/debug/.build-id/{number[:2]}")
    os.makedirs(where)
    Elf("of_the_second", stripped.build_id).write(f"{where}/{number[2:]}.debug")
    for cage in first, second:
        cage.ask(f"code /code {PAGE}")
    run = profiled([first, second], burn(first, second))
    found = leaves(run, first.pid)
    check(unnamed(found, "code") > 100 and "of_the_second" not in found, f"{found}")
    run = profiled([second], burn(second))
    check(leaves(run).get("of_the_second", 0) > 100, f"its own debug file is not used: {leaves(run)}")


def liars():
    """{name: a file that is no ELF file as others are}"""
    far = 100 << 30
    found = {name: Elf(f"name_of_{name}") for name in (
        "sections_far", "sections_beyond", "sections_uncounted", "segments_uncounted", "symbols_vast", "strings_vast",
        "note_vast", "note_endless", "debug_vast", "debug_packed", "link_pipe", "link_up", "alt_link")}
    found["sections_far"].sections_at, found["sections_far"].size = far, far + (64 << 10)
    found["sections_beyond"].sections_at = far
    uncounted = found["sections_uncounted"]
    uncounted.n_sections, uncounted.sections[""][4] = 0, 1 << 60
    found["segments_uncounted"].n_segments = 0xffff
    for name, section in (("symbols_vast", ".symtab"), ("strings_vast", ".strtab")):
        found[name].sections[section][4], found[name].size = 90 << 30, far
    found["note_vast"].note_bytes, found["note_vast"].size = 90 << 30, far
    found["note_endless"].build_id = b""  # of no bytes, and the next is as long
    found["note_endless"].note_bytes, found["note_endless"].size = 16 << 20, 1 << 30
    found["debug_vast"].add(".debug_info", b"\1").sections[".debug_info"][4] = 90 << 30
    found["debug_vast"].size = far
    # Elf64_Chdr: zlib, and what comes of it
    packed = struct.pack("<IIQQ", 1, 0, 1 << 40, 1) + zlib.compress(bytes(1 << 20))
    found["debug_packed"].add(".debug_info", packed, flags=0x800).add(".debug_line", packed, flags=0x800)
    for name in "link_pipe", "link_up":
        del found[name].sections[".symtab"]  # what is missing is looked for elsewhere
    found["link_pipe"].add(".gnu_debuglink", b"pipe.debug\0\0" + bytes(4))
    found["link_up"].add(".gnu_debuglink", b"../secret.debug\0" + bytes(4))
    found["alt_link"].add(".gnu_debugaltlink", b"/etc/passwd\0" + bytes(20)).add(".debug_info", b"\1" * 64)
    return found


@fact
def files_that_lie_about_their_size_are_read_as_far_as_they_are_honest():
    cage = Cage("hostile")
    watched = Watched(cage.path("/pipe.debug"))
    files = liars()
    for name, file in files.items():
        cage.code(file, f"/{name}")
    # Two hundred samples each.
    run = profiled([cage], burn(cage, ms=200 * len(files)), more=10)
    watched.check("a debug link")
    found, counts = leaves(run), run.summary()["symbols"]
    for name in files:
        got = found.get(f"name_of_{name}", 0) + unnamed(found, name)
        check(got > 50, f"{name}: {got} samples, of {found}")
    for name in ("note_vast", "note_endless", "debug_vast", "debug_packed", "alt_link"):
        check(found.get(f"name_of_{name}", 0) > 50, f"{name} has lost its name: {found}, {reasons(run)}")
    check(counts["offset_only"] > 0, f"what has no name is not counted: {counts}")


@fact
def a_debug_file_that_shrinks_while_it_is_read_costs_its_names_alone():
    need("objcopy", "strip")
    folder = scratch("stripped")
    os.mkdir(folder)
    program, debug = f"{folder}/hostile", f"{folder}/hostile.debug"
    shutil.copy(os.path.join(TARGETS, "hostile"), program)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
    cage = Cage("hostile", program=program)
    shutil.copy(debug, cage.root)
    found = leaves(profiled([cage], burn(cage)))
    check(found.get("burn", 0) > 100, f"its debug file is not found while it is whole: {found}")
    cage.ask("shrink /hostile.debug")
    for _ in range(3):
        found = leaves(profiled([cage], burn(cage, ms=200), more=5))
        check(found.get("burn", 0) + unnamed(found, "hostile") > 50, f"{found}")


@fact
def source_text_is_of_the_program_s_own_root():
    need("gcc")
    secret, source = scratch("secret"), scratch("source") + ".c"
    program = scratch("program")
    with open(secret, "w", encoding="ascii") as f:
        f.write(f"/* {SECRET} */\n" * 20)
    os.chmod(secret, 0o600)
    with open(source, "w", encoding="ascii") as f:
        f.write(f'#line 5 "{secret}"\n'
                "static void __attribute__((noinline)) spin(long n) { for (long i = 0; i < n; i++) __asm__ volatile(\"\"); }\n"
                f'#line 8 "{secret}"\n'
                "int main(void) { for (;;) { spin(1000000); } }\n")
    subprocess.run(["gcc", "-g", "-O1", "-o", program, source], check=True)
    for inside in True, False:
        root = containers.root_of(program)
        script = 'exec chroot "$0" "$1"' if inside else 'exec "$2"'
        child = Child(["unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", script, root,
                       "/" + os.path.basename(program), program])
        pid = until(lambda: children_of(child.pid), "a child")[0]
        until(lambda: os.readlink(f"/proc/{pid}/exe").endswith(os.path.basename(program)), "the program runs")
        run = Run("-p", pid, "-F", HZ, "--only", "oncpu", "-d", 1)
        run.finish()
        run.must()
        check(any(f.name == "spin" for s in run.profile("oncpu").samples for f in s.frames), "spin has no name")
        # Root's own program may show root's own file: without that nothing would be proven here.
        equal(has_secret(run), not inside, "a file of the host is shown")
        if inside:
            subprocess.run([MEMSCOPE, "report", run.out, "-o", run.path("again.html")], check=True, timeout=FINISH_SEC,
                           capture_output=True)
            clean(run)
        child.end()


# --- names ----------------------------------------------------------------------------------------

@fact
def names_control_no_terminal_and_break_no_output():
    group = containers.Group(f"memscope-{os.getpid()}-\x1b[31m\x9b<img>;") if containers.mounts().get("") else None
    cage, jit = Cage("hostile"), Cage("jit")
    if group:
        group.take(cage.pid)
    folder = "/" + BAD.replace("/", "") + " [vdso]"
    os.mkdir(cage.path(folder))
    # The path is too long for one command of the target.
    cage.code(Elf(BAD_BYTES.decode("utf-8", "surrogateescape")), "/plain")
    os.rename(cage.path("/plain"), cage.path(f"{folder}/{BAD} (deleted)"))
    cage.ask(f"memfd {hexed(BAD[:20] + ' [vdso]')}")
    cage.ask(f"name {hexed(BAD_BYTES[:15])}")
    cage.ask(f"worker {hexed(BAD_BYTES[5:20])}")
    with open(jit.path("/tmp/perf-1.map"), "wb") as f:
        f.write(b"".join(f"{loop} 1000 ".encode() + BAD_BYTES.replace(b"\n", b"") + b"\n" for loop in jit.loops()[::2]))
    try:
        run = profiled([cage, jit], burn(cage, jit, ms=600), "-F", HZ, "-v")
        equal(sum(run.folded("oncpu").values()), run.profile("oncpu").sum("samples/count"), "sum of oncpu.folded")
        check(sum(leaves(run, cage.pid).values()) > 300, f"samples: {leaves(run, cage.pid)}")
        if group:
            run = Run("-G", group.dir, "-F", HZ, "--only", "oncpu")
            run.ready()
            burn(cage)()
            clean(ended(run))
        for words in (("report", run.out, "--source", "oncpu"), ("report", run.out, "--source", "oncpu", "--by", "thread"),
                      ("doctor", "-p", str(cage.pid))):
            got = subprocess.run([MEMSCOPE, *words], capture_output=True, check=False, timeout=FINISH_SEC,
                                 stdin=subprocess.DEVNULL)
            for where, content in ("stdout", got.stdout), ("stderr", got.stderr):
                for found in list(CONTROL.finditer(content))[:3]:
                    check(False, f"{where} of {words[0]} has {content[max(0, found.start() - 40):found.end() + 10]!r}")
    finally:
        cage.end()
        if group:
            group.remove()


@fact
def state_of_engines_is_read_from_files_alone():
    """Users have the state of their own containers in their homes: what they put there, root looks at."""
    engines = containers.Engines()
    at = "var/lib/containers/storage/overlay-containers"
    os.makedirs(f"{engines.root}/{at}")
    os.makedirs(f"{engines.root}/etc/containers")
    watched = Watched(f"{engines.root}/{at}/containers.json")
    with open(f"{engines.root}/{at}/volatile-containers.json", "wb") as f:
        f.truncate(100 << 30)
    made = ""
    try:
        os.mknod(f"{engines.root}/etc/containers/storage.conf", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except OSError:
        made = " (no device could be made)"
    begin = time.monotonic()
    try:
        got = subprocess.run([MEMSCOPE, "doctor"], capture_output=True, check=False, timeout=60, env=engines.env,
                             stdin=subprocess.DEVNULL)
        check(got.returncode in (0, 3), f"doctor: {got.returncode}: {got.stderr.decode()[-300:]}")
    except subprocess.TimeoutExpired:
        check(False, f"doctor has not ended after {time.monotonic() - begin:.0f} s{made}")
    watched.check("the list of containers")


# --- numbers --------------------------------------------------------------------------------------

def only_takes_time(target, what, sources):
    """A run is ready, samples the process and ends."""
    begin = time.monotonic()
    run = Run("-p", target.pid, "-F", HZ, "--only", sources)
    run.ready()
    print(f"# {what}: ready in {time.monotonic() - begin:.1f} s")
    target.ask("burn 500")
    # A list of a million mappings takes the kernel about a second, and is read some times.
    ended(run, more=20)
    check(leaves(run).get("burn", 0) > 250, f"{leaves(run)}")
    target.end()


@fact
def a_million_mappings_only_take_time():
    with Knob("vm.max_map_count", 1100000):
        target = Target("hostile")
        target.ask("maps 1000000")
        with open(f"/proc/{target.pid}/maps", "rb") as f:
            n = sum(1 for _ in f)
        check(n > 1000000, f"{n} mappings")
        # With all sources smaps is read as well, three times: some 20 s of CPU time here.
        only_takes_time(target, f"{n} mappings", "oncpu")


@fact
@alone("as many threads as the machine may have")
def a_hundred_thousand_threads_only_take_time():
    with Knob("kernel.pid_max", 250000), Knob("kernel.threads-max", 190000), Knob("vm.max_map_count", 300000):
        target = Target("hostile")
        n = target.ask("threads 100000")[0][1]
        check(n >= 10000, f"only {n} threads can be had here")
        only_takes_time(target, f"{n} threads", "oncpu,offcpu")


@fact
def programs_that_come_and_go_as_fast_as_they_can_are_counted():
    target = Target("hostile")
    run = Run("-p", target.pid, "-F", HZ)
    run.ready()
    n = target.ask("storm 2000")[0][1]
    ended(run, more=10)
    check(target.alive(), "the target has ended")
    check(n > 200, f"only {n} programs in 2 s")
    print(f"# {n} programs in 2 s")
    p = run.profile("oncpu")
    check(p.sum("samples/count") > 200, f"{p.sum('samples/count')} samples of {n} programs")
    pids = {s.labels.get("pid") for s in p.samples}
    check(len(pids) > 20, f"samples of {len(pids)} processes only")


@fact
def an_environment_without_end_is_not_read_to_its_end():
    cage = Cage("hostile")
    cage.code(Elf("mallctl"))  # jemalloc's: whether its sampler is on is in the environment
    if cage.ask("environ") != [["lied", 1]]:
        skip("this kernel lets no process say where its environment is")
    run = profiled([cage], burn(cage), "-F", HZ)
    check(leaves(run, cage.pid).get("mallctl", 0) > 100, f"{leaves(run)}")
    begin = time.monotonic()
    got = subprocess.run([MEMSCOPE, "doctor", "-p", str(cage.pid)], capture_output=True, check=False, timeout=FINISH_SEC,
                         stdin=subprocess.DEVNULL)
    check(got.returncode in (0, 3) and time.monotonic() - begin < 20, f"doctor: {got.returncode} after "
          f"{time.monotonic() - begin:.1f} s: {got.stderr.decode()[-300:]}")


# --- who was there first --------------------------------------------------------------------------

@fact
def a_process_that_its_own_child_traces_is_profiled_and_not_injected():
    if os.uname().machine != "x86_64":
        skip("a library can be injected on x86-64 only")
    target = Target("hostile")
    if target.ask("seize")[0] != ["seized", "y"]:
        skip("ptrace is not permitted here")
    status, _, said = injecting.cycles(target.pid, 1)
    check(status == 1 and "is traced by process" in said, f"{status} {said}")
    run = profiled([target], burn(target))
    check(leaves(run).get("burn", 0) > 100, f"{leaves(run)}")
    target.ask("release")
    status, _, said = injecting.cycles(target.pid, 1)
    equal(status, 0, f"when it is traced no more: {said}")


@fact
def a_proc_that_is_not_the_kernel_s_is_not_opened():
    if os.uname().machine != "x86_64":
        skip("a library can be injected on x86-64 only")
    above = Cage("hostile", 'mkfifo "$0/pipe" && mount --bind "$0/pipe" "$0/proc/1/stat"')
    instead = Cage("hostile", 'umount "$0/proc" && mkdir "$0/proc/1" && mkfifo "$0/proc/1/stat"')
    beside = Cage("hostile", 'umount "$0/proc" && rmdir "$0/proc" && ln -s /tmp "$0/proc"')
    for cage, words in (above, "does not see itself"), (instead, "has no /proc"), (beside, "has no /proc"):
        try:
            status, _, said = injecting.cycles(cage.pid, 1)
        except subprocess.TimeoutExpired:
            status, said = None, "it waits for ever"
        check(status == 1 and words in said, f"not refused with \"{words}\": {status} {said}")
        check(cage.alive(), "the target has ended")


# --- a file system that does not answer -----------------------------------------------------------

class Served(Target):
    """A target whose code is in a file of FUSE; its server is its child."""

    def __init__(self, elf):
        if not os.path.exists("/dev/fuse"):
            skip("there is no /dev/fuse")
        self.dir, self.name = scratch("fuse"), "hostile"
        os.mkdir(self.dir)
        try:
            super().__init__("fuse_file", self.dir, elf.write(scratch("elf")), os.path.join(TARGETS, "hostile"))
        except Broken:
            skip("a FUSE file system cannot be mounted here")
        self.server = children_of(self.pid)[0]
        self.ask(f"code {self.dir}/code {PAGE}")
        self.ask("burn 10")  # what it runs is in memory from now on

    def hang(self):
        os.kill(self.server, signal.SIGUSR1)

    def end(self, close=True):
        # First: who waits for it waits no more then.
        try:
            os.kill(self.server, signal.SIGKILL)
        except (ProcessLookupError, AttributeError):
            pass
        super().end(close)


# A look at a file that does not come back is given two seconds, and each mapped file or path that is looked for again in the
# same minute none.
LOOKS_S = 3 * 2


@fact
def a_file_system_that_answers_names_its_files():
    target = Served(Elf("served"))
    run = profiled([target], burn(target))
    check(leaves(run).get("served", 0) > 100, f"{leaves(run)}")
    target.end()


@fact
def a_file_system_that_has_hung_before_is_left_alone():
    target = Served(Elf("served"))
    target.hang()
    run = Run("-p", target.pid, "-F", HZ)
    try:
        run.ready()
        target.ask("burn 300")
        ended(run, more=LOOKS_S)
    finally:
        target.end()
    clean(run)
    found = leaves(run)
    check(unnamed(found, "code") > 100, f"{found}")
    check("file system does not answer" in reasons(run).values(), f"{reasons(run)}")


@fact
def a_file_system_that_hangs_in_the_run_is_left_alone():
    target = Served(Elf("served"))
    run = Run("-p", target.pid, "-F", HZ)
    try:
        run.ready()
        target.ask("burn 300")
        target.hang()
        ended(run, more=LOOKS_S)
    finally:
        target.end()
    clean(run)
    found = leaves(run)
    check(unnamed(found, "code") > 100, f"{found}")


@fact
def a_stack_that_would_have_to_be_fetched_is_left_alone():
    if os.uname().machine != "x86_64":
        skip("the target has such a stack on x86-64 only")
    target = Served(Elf("served"))
    target.ask(f"stack {target.dir}/code")
    until(lambda: any(state_of(target.pid, tid) == "S" for tid in os.listdir(f"/proc/{target.pid}/task") if int(tid) != target.pid),
          "a thread that is blocked")
    target.hang()
    run = Run("-p", target.pid, "-F", HZ)
    try:
        run.ready()
        target.ask("burn 300")
        ended(run, more=LOOKS_S)
    finally:
        target.end()
    clean(run)
    check(unnamed(leaves(run), "code") > 100, f"{leaves(run)}")


main()
