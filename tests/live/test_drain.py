"""Sources above 500,000 events a second, emptied while they run, sum to independent counters."""

from harness import *
from truth import EXACT


@fact
def every_switch_of_a_ping_pong_is_counted():
    target = Target("pingpong", online_cpus()[-1])

    def during():
        # Long enough that the maps are emptied many times.
        first = target.ask("go 20000")
        rate = 20000 / (next(x[1] for x in first if x[0] == "took") / 1e9)
        return target.ask(f"go {int(rate * 2.5)}"), first
    run, (lines, first) = record(("-p", target.pid, "--only", "offcpu"), during)
    p = run.profile("offcpu")
    took = next(x[1] for x in lines if x[0] == "took")
    switches = 0
    for line in (x for x in lines if x[0] == "thread"):
        _, tid, voluntary, involuntary = line
        _, _, v0, i0 = next(x for x in first if x[:2] == ["thread", tid])
        # Beside the games: the waits between them and the lines that were printed, a few each.
        near(p.sum("blocked/count", tid=tid), v0 + voluntary, 8, f"blocked count of thread {tid}")
        # Woken or pushed off: each wait ends in a wake-up, and each push is one more.
        runnable = p.sum("runnable/count", tid=tid)
        within(runnable, i0 + involuntary - 8, v0 + voluntary + i0 + involuntary + 8,
               f"runnable count of thread {tid}")
        switches += voluntary + involuntary
    print(f"# {switches / (took / 1e9):.0f} switches/s while profiled")
    drops = {k: v for k, v in drop_counts(run).items() if v}
    equal(drops, {}, "drops")


def drop_counts(run):
    drops = run.summary().get("drops", {})
    if isinstance(drops, list):
        return {d["name"]: d["count"] for d in drops}
    return {k: v if isinstance(v, int) else v.get("count", 0) for k, v in drops.items()}


@fact
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
    equal(run.profile("heap").sum("inuse_objects/count", pid=target.pid), 0, "live blocks")
    events = 2 * second["pairs"] / (second["took"] / 1e9)
    print(f"# {events:.0f} allocator calls/s while profiled")
    equal({k: v for k, v in drop_counts(run).items() if v}, {}, "drops")


main()
