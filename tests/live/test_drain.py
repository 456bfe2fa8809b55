"""Sources above 500,000 events a second, emptied while they run, sum to independent counters."""

import time

from harness import *
from truth import EXACT


def check_switches(p, tid, voluntary, involuntary):
    """The kernel's own counts of a thread against the profile's."""
    # At both ends of the count a wait may be open, and the switches of reading one command and
    # writing one line are on one side or the other.
    near(p.sum("blocked/count", tid=tid), voluntary, 8, f"blocked count of thread {tid}")
    # Each push off the CPU makes it runnable, and so may the wake-up that ends a wait.
    within(p.sum("runnable/count", tid=tid), involuntary - 8, voluntary + involuntary + 8,
           f"runnable count of thread {tid}")


@fact
@alone("as many events as the machine can make")
def every_switch_of_a_ping_pong_on_each_cpu_is_counted():
    targets = [Target("pingpong", cpu) for cpu in online_cpus()[:2]]

    def switches_now():
        return {tid: n for t in targets for tid, n in switches(t.pid).items()}

    def play(rounds):
        for t in targets:
            t.say(f"go {rounds}")
        return [t.answer() for t in targets]

    def during():
        before = switches_now()
        # Long enough that the maps are emptied many times.
        first = play(20000)
        slowest = max(line[1] for answer in first for line in answer if line[0] == "took")
        second = play(int(20000 * 2.5e9 / slowest))
        time.sleep(0.05)  # to read the next command
        after = switches_now()
        return second, {tid: tuple(b - a for a, b in zip(before[tid], n))
                        for tid, n in after.items()}
    run, (answers, counted) = record(("-p", ",".join(str(t.pid) for t in targets), "--only", "offcpu"), during)
    p = run.profile("offcpu")
    for tid, (voluntary, involuntary) in counted.items():
        check_switches(p, tid, voluntary, involuntary)
    took = max(x[1] for a in answers for x in a if x[0] == "took")
    # The same games by the targets' own count, which leaves out what was between them.
    played = sum(x[2] + x[3] for a in answers for x in a if x[0] == "thread")
    rate = played / (took / 1e9)
    print(f"# {rate:.0f} switches a second while profiled")
    drops = drop_counts(run)
    # Switches that the kernel passes over, profiled or not; each is a wait that the counts above
    # lack, which hold to 8 a thread.
    within(drops.pop("switch_in_missed", 0), 0, 8 * len(counted), "switches not seen")
    equal({k: v for k, v in drops.items() if v}, {}, "drops")


def drop_counts(run):
    drops = run.summary().get("drops", {})
    if isinstance(drops, list):
        return {d["name"]: d["count"] for d in drops}
    return {k: v if isinstance(v, int) else v.get("count", 0) for k, v in drops.items()}


@fact
@alone("as many events as the machine can make")
def off_cpu_time_of_a_ping_pong_adds_up():
    target = Target("pingpong", online_cpus()[-1])
    run, lines = record(("-p", target.pid, "--only", "offcpu"), lambda: target.ask("go 300000"))
    p = run.profile("offcpu")
    t = run.summary()["time"]
    near(t["oncpu_ns"] + t["blocked_ns"] + t["runnable_ns"], t["wall_ns"], 0.01 * t["wall_ns"],
         "on-CPU + blocked + runnable")
    near(p.sum("blocked/nanoseconds"), t["blocked_ns"], 0.01 * t["wall_ns"], "blocked ns")
    near(p.sum("runnable/nanoseconds"), t["runnable_ns"], 0.01 * t["wall_ns"], "runnable ns")


@fact
@alone("as many events as the machine can make")
def every_allocation_of_a_flat_out_allocator_is_counted():
    target = Target("alloc_flat", max(2, len(online_cpus())))

    def during():
        first = dict(target.ask("go 20000"))
        per_thread = first["pairs"] // max(2, len(online_cpus()))
        rate = per_thread / (first["took"] / 1e9)
        return first, dict(target.ask(f"go {int(rate * 2.5)}"))
    run, (first, second) = record(("-p", target.pid, *EXACT), during)
    p = run.profile("alloc")
    equal(p.sum("alloc_objects/count", pid=target.pid), first["pairs"] + second["pairs"], "calls")
    equal(p.sum("alloc_space/bytes", pid=target.pid), first["bytes"] + second["bytes"], "bytes")
    equal(run.summary()["alloc"]["live_objects"], 0, "live blocks")
    events = 2 * second["pairs"] / (second["took"] / 1e9)
    print(f"# {events:.0f} allocator calls a second while profiled")
    equal({k: v for k, v in drop_counts(run).items() if v}, {}, "drops")


main()
