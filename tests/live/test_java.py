"""Frames of HotSpot: each stack that the JVM sees itself is the one in the profile, method by method, file by file,
line by line: interpreted, compiled by C1 and by C2, for waits, samples and allocations, in every JVM that is here."""

import re
import threading

from harness import *
from programs import jvms

LANG = "[Java]"
PROGRAM = os.path.join(TOP, "tests/targets/JavaStacks.java")
EVERY = os.environ.get("MEMSCOPE_TEST_JAVA") == "every"  # mode of every JVM, in `make soak`
MODES = {"interpreted": "-Xint", "C1": "-XX:TieredStopAtLevel=1", "C2": "-XX:-TieredCompilation"}


class Java(Child):
    """The program in one JVM, when it has been everywhere."""

    def __init__(self, home, mode, classes):
        self.name = f"{os.path.basename(home)} {mode}"
        self.truth = {}  # what: frames
        super().__init__([f"{home}/bin/java", MODES[mode], "-Xmx64m", "-XX:+UseSerialGC", "-cp", classes, "JavaStacks"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.is_ready = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line == b"ready\n":
                self.is_ready.set()
                continue
            what, *frames = line.decode().rstrip("\n").split("\t")
            self.truth.setdefault(what, set()).add(tuple(place(*f.split("|")) for f in frames))


def place(function, file, line):
    return (f"{function} ({file})" if file != "null" else function, int(line))


# Methods that are marked so in the JDK (@Hidden), which getStackTrace() leaves out.
HIDDEN = r"\[|.*\$\$Lambda|.*LambdaForm|.*\$H[a-z]+\.|java\.lang\.Thread\.runWith |.*DirectMethodHandleAccessor\.invokeImpl "


def java_frames(sample):
    """Without those that the JVM hides, and stubs."""
    return tuple((f.name, f.line) for f in sample.frames if f.module == LANG and not re.match(HIDDEN, f.name))


@once
def recorded():
    if os.uname().machine != "x86_64":
        skip("frames of HotSpot are read on x86-64 only")
    found = jvms()
    if not found:
        skip("no JDK is installed below /usr/lib/jvm")
    classes = scratch("java")
    subprocess.run([f"{found[0][0]}/bin/javac", "-g", "-d", classes, PROGRAM], check=True)
    # JVMs take long to start: by default the oldest has C2, the newest the other modes.
    children = [Java(home, mode, classes) for home, version in found for mode in MODES
                if EVERY or home == found[0 if mode == "C2" else -1][0]]
    for child in children:
        check(child.is_ready.wait(2 * READY_SEC), f"{child.name} was not ready in time")
    run = Run("-p", ",".join(str(c.pid) for c in children), "--alloc=exact", "--offcpu=exact", "-F", 499,
              "--max-overhead", 1000)
    run.ready()
    for child in children:
        has_worked(child.pid, 0.3, 80)
    run.stop()
    for child in children:
        child.end()
    return run, children


def is_native(frame):
    """getStackTrace() has no line of a native method, and of some that the JVM has an intrinsic for."""
    return frame[1] < 0


def agrees(got, want):
    return len(got) == len(want) and all(g[0] == w[0] and (g[1] == w[1] or is_native(w)) for g, w in zip(got, want))


def compare(source, what, leaf, share):
    """Of the samples below a place's function, at least `share` are the stack that the program printed there, below frames
    of `leaf`."""
    run, children = recorded()
    p = run.profile(source)
    function = {"sleep": "JavaStacks.sleeper (JavaStacks.java)", "spin": "JavaStacks.spinner (JavaStacks.java)",
                "alloc": "JavaStacks.allocator (JavaStacks.java)"}[what]
    for child in children:
        check(child.truth.get(what), f"{child.name}: nothing was printed of {what}")
        n, wrong, met = 0, [], set()
        for s in p.samples:
            frames = java_frames(s)
            if s.labels.get("pid") != child.pid or function not in (f[0] for f in frames):
                continue
            at = [f[0] for f in frames].index(function)
            if any("JavaStacks.say" in f[0] for f in frames):
                continue
            weight = s.values[0]
            n += weight
            above = [f[0] for f in frames[:at]]
            hit = [w for w in child.truth[what] if agrees(frames[at:], w)]
            # What is inlined into a function that was interrupted has lines at its polls only.
            if not hit and not above:
                hit = [w for w in child.truth[what] if agrees(frames[at + 1:], w[1:])]
            if hit and all(re.match(leaf, f) for f in above):
                met.add(hit[0])
            else:
                wrong.append((weight, frames))
        bad = sum(w for w, f in wrong)
        check(n > 0, f"{child.name}: no samples of {what}")
        check(bad <= (1 - share) * n, f"{child.name}: {bad} of {n} are other stacks than printed: {wrong[:1]}, printed "
              f"{list(child.truth[what])[:2]}")
        check(met == child.truth[what] or source != "offcpu",
              f"{child.name}: {what}: never seen {child.truth[what] - met}")


@fact
def a_java_thread_that_waits_is_where_the_jvm_says():
    """In Java that the VM calls (a class's initializer), under 60 recursive calls, and through an interface."""
    compare("offcpu", "sleep", r"(java\.lang\.Thread\.|JavaStacks\.nap|jdk\.internal\.)", 1)


@fact
def a_java_thread_on_the_cpu_is_where_the_jvm_says():
    """At any instruction: in prologues and epilogues, in the interpreter's, too. 0.5 %: where the JVM itself knows no frames
    (in the middle of a stub)."""
    compare("oncpu", "spin", r"JavaStacks\.spin ", 0.995)


@fact
def native_memory_that_java_allocates_has_the_line_of_java():
    compare("alloc", "alloc", r"(java\.|jdk\.|sun\.|JavaStacks\.nap )", 1)


@fact
def nearly_all_stacks_of_java_are_complete():
    run, children = recorded()
    rows = [row for row in run.summary()["stacks"] if row["source"] in ("oncpu", "offcpu", "alloc")]
    check(len(rows) == 3, f"{rows}")
    for row in rows:
        n = sum(v for v in row.values() if isinstance(v, int))
        # Of samples 99.3 to 99.9 % were: those taken in stubs that have pushed what no description says are guessed.
        check(row["complete"] >= 0.99 * n, f"{row}")


main()
