"""Objects of Java by where they are allocated: HotSpot's own slow path is listened to, in the JVMs that are here."""

from harness import *
from programs import jvms

PROGRAM = os.path.join(TOP, "tests/targets/JavaAllocs.java")
EVERY = os.environ.get("MEMSCOPE_TEST_JAVA") == "every"  # collector of every JVM, in `make soak`
COLLECTORS = ("Serial", "Parallel", "G1", "Z", "Shenandoah")
ROUNDS = 1200000  # of 337 bytes: 400 MB, some 1,000 buffers
SITES = ("small", "medium", "large", "huge")


class Java(Target):
    """The program in one JVM."""

    def __init__(self, home, collector, classes):
        self.name = f"{os.path.basename(home)} {collector}"
        Child.__init__(self, [f"{home}/bin/java", f"-XX:+Use{collector}GC", "-Xmx96m", "-cp", classes, "JavaAllocs"],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def started(homes, classes):
    """One for each JVM, or for each collector of each JVM, ready for commands."""
    all_ = []
    for n, (home, _) in enumerate(homes):
        for collector in COLLECTORS if EVERY else ("Serial",) if n == 0 else ("G1",):
            t = Java(home, collector, classes)
            all_.append(t)
    ready = []
    for t in all_:
        try:
            t._line("ready", 2 * READY_SEC)
            ready.append(t)
        except Broken:
            if not EVERY:  # Debian's has no Shenandoah
                raise
    return ready


@once
def recorded():
    if os.uname().machine != "x86_64":
        skip("frames of HotSpot are read on x86-64 only")
    homes = jvms()
    if not homes:
        skip("no JDK is installed below /usr/lib/jvm")
    classes = scratch("java")
    subprocess.run([f"{homes[0][0]}/bin/javac", "-g", "-d", classes, PROGRAM], check=True)
    children = started(homes, classes)

    def during():
        for t in children:
            t.say(f"run {ROUNDS}")
        return {t.name: {name: size for _, name, size in t.answer(4 * FINISH_SEC)} for t in children}
    run, truth = record(("-p", ",".join(str(t.pid) for t in children), "--only", "alloc", "--max-overhead", 1000), during)
    for t in children:
        t.end()
    return run, [(t.pid, t.name, truth[t.name]) for t in children]


def bytes_of(profile, pid, site=None):
    i = profile.types.index("alloc_space/bytes")
    return sum(s.values[i] for s in profile.samples if s.labels.get("pid") == pid and
               (site is None or any(f.name == f"JavaAllocs.{site} (JavaAllocs.java)" for f in s.frames)))


@fact
def java_is_listened_to_by_default_and_what_it_cannot_say_is_said():
    run, children = recorded()
    s = run.summary()
    a = s["alloc"]
    equal([a["tier"], a["sampler"]], ["sampled", "HotSpot's TLABs"], "tier, sampler")
    equal([a["unreported"], a["live_bytes"]], [a["bytes_interval"]["samples"], 0], "samples without a free, live bytes")
    check(any("half a buffer a thread" in note for note in s["notes"]), f"what it is worth: {s['notes']}")
    want = {f"JavaAllocs.{name} (JavaAllocs.java)" for name in SITES}
    got = {row["function"] for row in a["sites"]}
    check(want <= got, f"sites: {got}")


@fact
def java_allocations_are_by_their_sites_within_chance():
    run, children = recorded()
    rows = {row["function"]: row for row in run.summary()["alloc"]["sites"]}
    for site in SITES:
        row = rows[f"JavaAllocs.{site} (JavaAllocs.java)"]
        truth = sum(sizes[site] for _, _, sizes in children)
        # A 95 % interval is 1.96 sigma to either side.
        sigma = (row["high"] - row["low"]) / 2 / 1.96
        check(sigma <= 0.1 * truth, f"{site}: too few samples to say anything: {row}")
        near(row["bytes"], truth, max(SIGMAS * sigma, 1), f"bytes of {site}")


@fact
def all_that_java_allocates_is_counted():
    """But for the buffers in use at either end: each thread's is 1/50 of the young generation, of 96 MiB at most."""
    run, children = recorded()
    p = run.profile("alloc")
    for pid, name, sizes in children:
        near(bytes_of(p, pid), sum(sizes.values()), 2 * (96 << 20) / 50, f"{name}: bytes of all sites")


main()
