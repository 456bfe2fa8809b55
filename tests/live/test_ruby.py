"""Frames of Ruby: each stack that Ruby sees itself is the one in the profile, function by function, file by file, line by
line, for waits, samples and allocations; in Debian's Ruby, and in others that $MEMSCOPE_TEST_RUBY names."""

import re
import threading

from harness import *
from stacks import whole

LANG = "[Ruby]"
PROGRAM = os.path.join(TOP, "tests/targets/rb_stacks.rb")
ALLOCATED = 100000  # bytes, by the program; Ruby adds one


def rubies():
    """Commands, divided by ':'."""
    found = [c.split() for c in os.environ.get("MEMSCOPE_TEST_RUBY", "/usr/bin/ruby").split(":")]
    if not os.path.exists(found[0][0]):
        skip(f"{found[0][0]} is not installed")
    return found


class Ruby(Child):
    """The program under one interpreter, when it has been everywhere once."""

    def __init__(self, command):
        self.name = " ".join(command)
        self.truth = {}  # (what, frames): shape
        super().__init__([*command, PROGRAM, "600"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.is_ready = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line == b"ready\n":
                self.is_ready.set()
                continue
            what, shape, *frames = line.decode().rstrip("\n").split("\t")
            self.truth[what, tuple(place(*f.split("|")) for f in frames)] = shape


def place(label, path, line):
    # 3.4 has the class in labels, of blocks too; of what is rescued the method alone.
    return re.sub(r"\S+[#.](?=[^.#]+$)", "", label), os.path.basename(re.sub(r"^\(eval at (.*)\)$", r"\1", path)), int(line)


def frame_of(frame):
    """As place() has it; a method in C has no file."""
    name, _, file = re.fullmatch(r"(.*?)( \(([^()]*|\(eval.*\))\))?", frame.name).groups()
    return re.sub(r"(^|(?<= in ))[A-Z][\w:]*[.#]", "", name), file, frame.line


def is_same(got, want):
    """What the walk has, beside what Ruby says: for a method in C that is its name, at the place of its caller. From 3.4 on
    Ruby has one frame for a method and what it rescues."""
    if len(got) == len(want) + 1:
        got = [(re.sub(r"^(rescue|ensure) in ", "", got[0][0]), *got[0][1:])] + [
            (re.sub(r"^(rescue|ensure) in ", "", frame[0]), *frame[1:]) for before, frame in zip(got, got[1:])
            if before[0] != f"rescue in {frame[0]}" and before[0] != f"ensure in {frame[0]}"]
    return len(got) == len(want) and all(
        g[0] == w[0] and (g[1] is None or g[1:] == w[1:]) for g, w in zip(got, want))


@once
def everywhere():
    children = [Ruby(command) for command in rubies()]
    for child in children:
        check(child.is_ready.wait(READY_SEC), f"{child.name} was not ready in time")
    run = Run("-p", ",".join(str(c.pid) for c in children), "--alloc=exact", "--offcpu=exact", "-F", 999,
              "--max-overhead", 1000)
    run.ready()
    for child in children:
        has_worked(child.pid, 0.3, 150)
    run.stop()
    for child in children:
        child.end()
    return run, children


def compare(source, what, leaf, of_interest, at_least):
    """The stacks of samples of interest, which are in the method in C `leaf`, are among those that the program printed, and
    nearly all of those are met."""
    run, children = everywhere()
    p = run.profile(source)
    for child in children:
        truth = [frames for kind, frames in child.truth if kind == what]
        met, wrong, n = set(), [], 0
        for s in p.samples:
            names = [f.name for f in s.frames if f.module == LANG]
            if s.labels.get("pid") != child.pid or not names or names[0] != leaf or not of_interest(s):
                continue
            n += 1
            got = tuple(frame_of(f) for f in s.frames if f.module == LANG)[1:]
            found = [t for t in truth if is_same(got, t)]
            if found:
                met.update(found)
            else:
                wrong.append(got)
        print(f"# {child.name}: {source}: {len(met)} of {len(truth)} places met; of {n} stacks {len(wrong)} differ")
        check(not wrong, f"{child.name}: {source}: {len(wrong)} of {n} stacks are none that Ruby printed: {wrong[:1]}")
        check(len(met) >= at_least * len(truth), f"{child.name}: {source}: of {len(truth)} places only {len(met)} were met: "
              f"not {sorted({child.truth[what, t] for t in truth if t not in met})}")


@fact
def ruby_stacks_of_waits_are_those_that_ruby_prints():
    compare("offcpu", "sleep", "Kernel#sleep", lambda s: True, 1)


@fact
def ruby_stacks_of_samples_are_those_that_ruby_prints():
    compare("oncpu", "spin", "String#sum", lambda s: True, 0.3)


@fact
def ruby_stacks_of_allocations_are_those_that_ruby_prints():
    run, _ = everywhere()
    types = [t.split("/")[0] for t in run.profile("alloc").types]
    objects, space = types.index("alloc_objects"), types.index("alloc_space")
    compare("alloc", "alloc", "String#*", lambda s: s.values[objects] and
            ALLOCATED <= s.values[space] / s.values[objects] < ALLOCATED + 100, 1)


@fact
def methods_have_their_class():
    run, _ = everywhere()
    names = {re.sub(r" \([^()]*\)$", "", f.name) for s in run.profile("offcpu").samples for f in s.frames if f.module == LANG}
    for name in ("Thing#method_of", "Derived#method_of", "Thing.of_class", "Tools.of_module", "Tools.both_ways", "Object#plain",
                 "Array#each", "Integer#times", "Kernel#sleep", "Enumerable#sort_by", "Object#recursion",
                 "block in Thing#of_nobody", "block (2 levels) in Object#blocks", "rescue in Object#rescued", "Object#evaluated",
                 "block in Object#sent", "block in Object#in_thread", "block in <class:Thing>", "block in Object#round"):
        check(name in names, f"no frame is called {name}: {sorted(names)}")


@fact
def stacks_of_ruby_are_whole():
    run, _ = everywhere()
    for source in ("oncpu", "offcpu", "alloc"):
        whole(run, source, 100, "Ruby")
    langs = run.summary()["languages"]
    equal((langs["damaged"], langs["unreadable"]), (0, 0), "damaged frames, unreadable runtimes")


# Two threads that do the same, in known shares, of which one can run at a time.
SPLIT = """
def spin(n)
  x = 0
  i = 0
  while i < n
    x = (x * 31 + i) % 1000003
    i += 1
  end
end
def seventy = spin(7000)
def twenty = spin(2000)
def ten = spin(1000)
def turn
  loop do
    seventy
    twenty
    ten
  end
end
Thread.new { turn }
turn
"""


@once
def split():
    if not os.path.exists("/usr/bin/ruby"):
        skip("/usr/bin/ruby is not installed")
    path = scratch("program") + ".rb"
    with open(path, "w", encoding="utf-8") as f:
        f.write(SPLIT)
    child = at_work(Child(["/usr/bin/ruby", path], **QUIET))
    run = Run("-p", child.pid, "--only", "oncpu,offcpu", "--offcpu=exact", "-F", 999)
    run.ready()
    has_worked(child.pid, 2)
    run.stop()
    child.end()
    return run


@fact
def a_split_of_70_20_10_between_methods_of_ruby_is_found():
    p = split().profile("oncpu")
    n, by = 0, {}
    for s in p.samples:
        called = [f.name.split(" ")[0] for f in s.frames if f.module == LANG]
        weight = s.values[p.types.index("samples/count")]
        n += weight
        for name in {"Object#seventy", "Object#twenty", "Object#ten"} & set(called):
            by[name] = by.get(name, 0) + weight
    check(n > 1000, f"only {n} samples")
    for name, share in (("Object#seventy", 0.7), ("Object#twenty", 0.2), ("Object#ten", 0.1)):
        share_of(by.get(name, 0) / n, share, n, name)


@fact
def a_wait_for_the_gvl_is_one():
    run = split()
    waits, said = run.summary()["offcpu"]["waits"], run.summary()["verdict"]["sentence"]
    check(waits and waits[0]["kind"] == "gvl" and waits[0]["function"].startswith("Object#spin "), f"most waits are {waits[:1]}")
    check("for Ruby's GVL, most of it in Object#spin (" in said and "; meanwhile Object#spin (" in said, f"the verdict is: {said}")


# Code of a file is mapped over what was there, again and again: while memscope does not know what, stacks are walked later.
REMAPS = """
require "fiddle"
LIBC = Fiddle.dlopen(nil)
L, I, P = Fiddle::TYPE_LONG, Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP
MMAP = Fiddle::Function.new(LIBC["mmap"], [P, L, I, I, I, L], P)
MUNMAP = Fiddle::Function.new(LIBC["munmap"], [P, L], I)
FILE = File.open("/bin/true")
FD = FILE.fileno
def spin
  x = i = 0
  while i < 60000
    x = (x * 31 + i) % 1000003
    i += 1
  end
end
def turn
  m = MMAP.call(nil, 4096, 5, 2, FD, 0)
  spin
  MUNMAP.call(m, 4096)
  [2, 1].sort_by { |x| spin; x }
end
turn while true
"""


@fact
def stacks_of_ruby_that_are_walked_later_have_its_frames_of_then():
    if not os.path.exists("/usr/bin/ruby"):
        skip("/usr/bin/ruby is not installed")
    path = scratch("program") + ".rb"
    with open(path, "w", encoding="utf-8") as f:
        f.write(REMAPS)
    child = at_work(Child(["/usr/bin/ruby", path], **QUIET))
    run = Run("-p", child.pid, "--only", "oncpu", "-F", 99, "-v")
    run.ready()
    os.kill(run.pid, signal.SIGSTOP)  # it cannot keep up
    has_worked(child.pid, 0.4)
    os.kill(run.pid, signal.SIGCONT)
    run.stop()
    later = re.search(r"walked in user space: (\d+) sent.* (\d+) for want of room", run.stderr)
    check(later and int(later[1]) >= 10, f"at 99 Hz, 0.4 s of CPU time were to be walked later: {later and later[0]}")
    right = [["Object#spin", "Object#turn", "<main>"],
             ["Object#spin", "block in Object#turn", "Array#each", "Enumerable#sort_by", "Object#turn", "<main>"],
             ["Object#turn", "<main>"]]
    stacks = [[f.name.rsplit(" (", 1)[0] for f in s.frames if f.module == LANG and not f.name.startswith("Fiddle")]
              for s in run.profile("oncpu").samples]
    odd = [s for s in stacks if not s or not any(s == r[-len(s):] for r in right)]
    print(f"# {later[0]}; {len(stacks)} stacks")
    check(stacks and not odd, f"{len(odd)} of {len(stacks)} stacks do not have their frames: {odd[:2]}")


main()
