"""Names of what runs in a container: every file is looked for below its root, and none of the host's of the
same path is taken for it."""

import struct

from containers import *
from harness import *

HZ = 999
BURN_MS = 700


class Boxed(Target):
    """A target in a group, with the root and pids of a container. `second`: it is not the first process there."""

    def __init__(self, group, root, path, *args, second=False):
        known = set(group.pids())
        before = ("sh", "-c", '"$@"; exit', "sh") if second else ()
        Child.__init__(self, entering(group, [path, *args], root, True, before), stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE)
        self.ns_pid = int(self._line("ready", READY_SEC)[1])
        self.inner = next(p for p in group.pids() if p not in known and ns_pid(p) == self.ns_pid)

    @property
    def pid(self):
        return getattr(self, "inner", self.process.pid)


def ns_pid(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[-1]) for line in f if line.startswith("NSpid:"))


def build_id(path):
    out = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", out)[1]


def put(path, at):
    os.makedirs(os.path.dirname(at), exist_ok=True)
    shutil.copy(path, at)


def strip_into(program, root, path):
    """The program without symbols, and what belongs to it below the root's /usr/lib/debug."""
    ident = build_id(program)
    debug = f"{root}/usr/lib/debug/.build-id/{ident[:2]}/{ident[2:]}.debug"
    os.makedirs(os.path.dirname(debug))
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", program, root + path], check=True)


def musl_program(root):
    """A program built with musl, with its loader; None: there is no musl here."""
    loader, program = next(iter(glob.glob("/lib/ld-musl-*.so.1")), None), os.path.join(TARGETS, "cpu_split_musl_shared")
    if not loader or not os.path.exists(program):
        return None
    put(os.path.realpath(loader), root + loader)
    put(program, root + "/split_musl")
    return "/split_musl"


def overlay(lower, upper):
    """What a container of an engine has: its own layer above that of the image. None: not here."""
    work, merged = scratch("work"), scratch("merged")
    os.mkdir(work)
    os.mkdir(merged)
    os.chmod(merged, 0o755)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    if subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, merged], capture_output=True,
                      check=False).returncode:
        return None
    return merged


def jitdump(pid, loops, names):
    """jitdump-specification.txt: a header, and a record for each function."""
    machine = 183 if os.uname().machine == "aarch64" else 62
    out = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, machine, 0, pid, 1, 0)
    for i, ((addr, size), name) in enumerate(zip(loops, names)):
        body = struct.pack("<IIQQQQ", pid, pid, addr, addr, size, i) + name.encode() + b"\0" + b"\xc3" * size
        out += struct.pack("<IIQ", 0, 16 + len(body), 1) + body
    return out + bytes(4096)


def loops_of(target):
    return [[int(w[1:], 16) for w in line[1:]] for line in target.ask("where")]


def map_of(loops, word):
    return "".join(f"{addr:x} {size:x} {word}_{i}\n" for i, (addr, size) in enumerate(loops))


class World:
    """One run over a container of four processes."""

    def __init__(self, group):
        lower, upper, same = root_of(os.path.join(TARGETS, "jit")), scratch("upper"), scratch("host") + "/app"
        os.makedirs(lower + "/tmp")
        os.chmod(lower + "/tmp", 0o1777)
        os.mkdir(upper)
        os.chmod(upper, 0o755)
        program, other = os.path.join(TARGETS, "cpu_split"), os.path.join(TARGETS, "spinners")
        put(other, lower + same)  # of the image, and replaced in the container
        put(other, same)          # of the host
        strip_into(program, upper, same)
        self.has_musl = musl_program(lower)
        self.root = overlay(lower, upper)
        self.is_overlay = self.root is not None
        if not self.is_overlay:
            self.root = lower
            shutil.copytree(upper, lower, dirs_exist_ok=True)
        self.mapped = []
        try:
            self.look(group, same)
        finally:
            for path in self.mapped:
                os.unlink(path)
            if self.is_overlay:
                subprocess.run(["umount", "-l", self.root], check=True)

    def host_map(self, target, loops):
        """What is there for its pid here is not its own."""
        path = f"/tmp/perf-{target.pid}.map"
        with open(path, "w", encoding="ascii") as f:
            f.write(map_of(loops, "of_the_host"))
        self.mapped.append(path)

    def look(self, group, same):
        self.stripped = Boxed(group, self.root, same, BURN_MS)
        self.musl = Boxed(group, self.root, self.has_musl, BURN_MS) if self.has_musl else None
        self.mapper, self.dumper = Boxed(group, self.root, "/jit"), Boxed(group, self.root, "/jit", second=True)
        loops = loops_of(self.mapper)
        with open(f"{self.root}/tmp/perf-{self.mapper.ns_pid}.map", "w", encoding="ascii") as f:
            f.write(map_of(loops, "of_the_map"))
        self.host_map(self.mapper, loops)
        loops = loops_of(self.dumper)
        dump = f"/tmp/jit-{self.dumper.ns_pid}.dump"
        with open(self.root + dump, "wb") as f:
            f.write(jitdump(self.dumper.ns_pid, loops, ("of_the_dump_0", "of_the_dump_1")))
        self.host_map(self.dumper, loops)

        def during():
            self.dumper.ask(f"map {dump}")
            for target in (self.stripped, self.musl):
                if target:
                    target.say("go")
            self.mapper.say("burn")
            self.dumper.ask("burn")
            for target in (self.mapper, self.stripped, self.musl):
                if target:
                    target.answer()

        self.run, _ = record(("-G", group.dir, "-F", HZ, "--only", "oncpu"), during)
        self.profile = self.run.profile("oncpu")

    def functions(self, target):
        """{function: samples that it is on the stack of}, and all samples of a target's."""
        found, n = {}, 0
        for s in self.profile.select(pid=target.pid):
            n += s.values[0]
            for name in {f.name for f in s.frames if f.module != "[kernel]"}:
                found[name] = found.get(name, 0) + s.values[0]
        return found, n


@once
def world():
    need("unshare", "chroot", "objcopy", "readelf", "ldd")
    group = Group(f"memscope-live-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        return World(group)
    finally:
        for child in list(Child.living):
            child.end()
        group.remove()
        Group.made.remove(group)


def shares_hold(target):
    found, n = world().functions(target)
    check(n > 300, f"{n} samples of 0.7 s of CPU time")
    for name, share in (("hot_70", 0.7), ("hot_20", 0.2), ("hot_10", 0.1)):
        share_of(found.get(name, 0) / max(n, 1), share, n, f"share of {name}")
    return found


@fact
def stripped_program_is_named_by_the_debug_file_below_its_root():
    shares_hold(world().stripped)


@fact
def file_of_the_same_path_on_the_host_or_in_a_layer_below_is_another():
    found, n = world().functions(world().stripped)
    out = subprocess.run(["nm", os.path.join(TARGETS, "spinners")], capture_output=True, text=True, check=True).stdout
    foreign = set(re.findall(r" [tT] (\w+)$", out, re.M))
    out = subprocess.run(["nm", os.path.join(TARGETS, "cpu_split")], capture_output=True, text=True, check=True).stdout
    foreign -= set(re.findall(r" [tT] (\w+)$", out, re.M))
    check(n > 0 and foreign, f"{n} samples, functions of the other file alone: {foreign}")
    equal(set(found) & foreign, set(), "names of the other file")
    if not world().is_overlay:
        skip("no overlay file system can be mounted here: the layer below is not there")


@fact
def musl_program_is_named():
    if not world().musl:
        skip("musl is not installed (musl-tools)")
    shares_hold(world().musl)


def generated(target, word):
    found, n = world().functions(target)
    first, second = found.get(f"{word}_0", 0), found.get(f"{word}_1", 0)
    check(n > 300, f"{n} samples of 1.2 s of CPU time")
    check(first + second > 0.9 * n, f"few are in the calls between: {found}")
    share_of(first / max(first + second, 1), 0.75, first + second, "share of the first loop")
    check(not any("of_the_host" in name for name in found), f"a map of the host was believed: {found}")


@fact
def perf_map_is_that_of_the_container_s_pid():
    equal(world().mapper.ns_pid, 1, "pid in the container")
    generated(world().mapper, "of_the_map")


@fact
def jitdump_is_that_of_the_container_s_pid():
    equal(world().dumper.ns_pid, 2, "pid in the container")
    generated(world().dumper, "of_the_dump")


main()
