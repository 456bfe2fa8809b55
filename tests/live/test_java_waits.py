"""What threads of Java wait for, where, and whose it is: monitors, locks of java.util.concurrent, notifications, timers."""

import glob
import re

from harness import *

PROGRAM = os.path.join(TOP, "tests/targets/JavaWaits.java")


class Java(Target):
    def __init__(self, home, classes):
        Child.__init__(self, [f"{home}/bin/java", "-XX:+UseSerialGC", "-Xmx64m", "-cp", classes, "JavaWaits"],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@once
def recorded():
    """Both JVMs, a run each, at the same time."""
    if os.uname().machine != "x86_64":
        skip("frames of HotSpot are read on x86-64 only")
    homes = sorted(os.path.dirname(os.path.dirname(os.path.realpath(java))) for java in glob.glob("/usr/lib/jvm/*/bin/javac"))
    if not homes:
        skip("no JDK is installed below /usr/lib/jvm")
    homes = sorted(set(homes), key=lambda home: int(re.search(r"\d+", os.path.basename(home)).group()))
    classes = scratch("java")
    subprocess.run([f"{homes[0]}/bin/javac", "-g", "-d", classes, PROGRAM], check=True)
    targets = [Java(home, classes) for home in dict.fromkeys((homes[0], homes[-1]))]
    for t in targets:
        t._line("ready", 2 * READY_SEC)
    runs = [Run("-p", t.pid, "--only", "oncpu,offcpu", "--max-overhead", 1000) for t in targets]
    for run in runs:
        run.ready()
    for t in targets:
        has_worked(t.pid, 0.5, 60, seconds=1.5)
    for run in runs:
        run.stop()
    for t in targets:
        t.end()
    return [(os.path.basename(t.argv[0][:-len("/bin/java")]), run) for t, run in zip(targets, runs)]


def sites(run):
    """The largest wait of each function; the JVM may wait there for itself, too."""
    found = {}
    for row in run.summary()["offcpu"]["waits"]:
        found.setdefault(row["function"].split(" ")[0], row)
    return found


@fact
def waits_of_java_are_in_the_programs_functions_and_for_what_they_are():
    want = {"JavaWaits.want": ("monitor", "mutex"), "JavaWaits.wantLock": ("lock", "mutex"),
            "JavaWaits.rest": ("timer", None)}
    for name, run in recorded():
        found = sites(run)
        for function, (kind, role) in want.items():
            check(function in found, f"{name}: no wait in {function}: {list(found)}")
            row = found[function]
            equal(row["kind"], kind, f"{name}: what {function} waits for")
            check(role in (None, row["role"]), f"{name}: {row}")


@fact
def contended_monitor_is_the_verdict_and_its_holder_is_named():
    for name, run in recorded():
        s = run.summary()
        m = s["offcpu"]["monitors"]
        check(m["waits"] >= 20, f"{name}: {m}")
        equal(m["owner"], "keeper", f"{name}: who holds it ({m})")
        # The keeper has it for 20 ms of each 21, the others for a moment.
        check(m["held"] >= 0.8 * (m["waits"] - m["unowned"]), f"{name}: {m}")
        said = s["verdict"]["sentence"]
        check("monitor" in said and "JavaWaits.want" in said and "keeper" in said, f"{name}: {said}")


@fact
def who_leaves_a_monitor_or_a_lock_wakes_who_wants_it():
    for name, run in recorded():
        p = run.profile("wakers")
        for wait in ("JavaWaits.want", "JavaWaits.wantLock"):
            n = by = 0
            for s in p.samples:
                names = [f.name.split(" ")[0] for f in reversed(s.frames)]
                at = names.index("[woken")
                # After a wait with a time a timer may have ended it.
                if wait not in names[:at] or names[-1] in ("[interrupt]", "[unknown]"):
                    continue
                n += s.values[0]
                by += s.values[0] if any(x in names[at:] for x in ("JavaWaits.hold", "JavaWaits.want", "JavaWaits.wantLock")) else 0
            check(n >= 10, f"{name}: {n} waits in {wait} that a thread ended")
            check(by >= 0.9 * n, f"{name}: {by} of {n} waits in {wait} ended by who had it")


main()
