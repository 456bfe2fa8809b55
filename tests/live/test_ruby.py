"""Frames of Ruby: each stack that Ruby sees itself is the one in the profile, function by function, file by file, line by
line, for waits, samples and allocations; in Debian's Ruby, and in others that $MEMSCOPE_TEST_RUBY names."""

import re

from harness import *
from languages import *
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


def read_line(line):
    what, shape, *frames = line.decode().rstrip("\n").split("\t")
    return what, tuple(place(*f.split("|")) for f in frames), shape


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
    children = [Printer(" ".join(command), [*command, PROGRAM, "600"], read_line, stdin=subprocess.PIPE)
                for command in rubies()]
    for child in children:
        child.ready()
    run = Run("-p", ",".join(str(c.pid) for c in children), "--alloc=exact", "--offcpu=exact", "-F", 999,
              "--max-overhead", 1000)
    run.ready()
    for child in children:
        has_worked(child.pid, 0.3, 150)
    run.stop()
    for child in children:
        child.end()
    return run, children


def names_of(sample):
    return [f.name for f in sample.frames if f.module == LANG]


# Of a sample in a method in C: those that have called it.
compare = Comparison("Ruby", lambda sample: tuple(frame_of(f) for f in sample.frames if f.module == LANG)[1:],
                     lambda frames, truth: {t for t in truth if is_same(frames, t)})


def is_in(leaf):
    return lambda sample, _profile: names_of(sample)[:1] == [leaf]


@fact
def ruby_stacks_of_waits_are_those_that_ruby_prints():
    compare(*everywhere(), "offcpu", "sleep", is_in("Kernel#sleep"), 1)


@fact
def ruby_stacks_of_samples_are_those_that_ruby_prints():
    compare(*everywhere(), "oncpu", "spin", is_in("String#sum"), 0.3)


@fact
def ruby_stacks_of_allocations_are_those_that_ruby_prints():
    large = bytes_each(ALLOCATED, ALLOCATED + 100)
    compare(*everywhere(), "alloc", "alloc", lambda s, p: is_in("String#*")(s, p) and large(s, p), 1)


@fact
def methods_have_their_class():
    run, _ = everywhere()
    names = {re.sub(r" \([^()]*\)$", "", name) for s in run.profile("offcpu").samples for name in names_of(s)}
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
    nothing_damaged(run)


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
    child = at_work_on("/usr/bin/ruby", SPLIT, ".rb")
    run = Run("-p", child.pid, "--only", "oncpu,offcpu", "--offcpu=exact", "-F", 999)
    run.ready()
    has_worked(child.pid, 2)
    run.stop()
    child.end()
    return run


@fact
def a_split_of_70_20_10_between_methods_of_ruby_is_found():
    split_of_70_20_10(split(), LANG, "Object#")


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
    run = stopped_meanwhile([at_work_on("/usr/bin/ruby", REMAPS, ".rb")], 99, 0.4, 10)
    right = [["Object#spin", "Object#turn", "<main>"],
             ["Object#spin", "block in Object#turn", "Array#each", "Enumerable#sort_by", "Object#turn", "<main>"],
             ["Object#turn", "<main>"]]
    stacks = [[f.name.rsplit(" (", 1)[0] for f in s.frames if f.module == LANG and not f.name.startswith("Fiddle")]
              for s in run.profile("oncpu").samples]
    odd = [s for s in stacks if not s or not any(s == r[-len(s):] for r in right)]
    check(stacks and not odd, f"{len(odd)} of {len(stacks)} stacks do not have their frames: {odd[:2]}")


main()
