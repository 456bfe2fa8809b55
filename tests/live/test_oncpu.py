"""On-CPU samples against programs that know where their CPU time went."""

import math
import os
import time

from harness import *

HZ = 2999  # 7 s of CPU time give 21,000 samples in the time two CPUs take for it


@once
def split():
    """Four threads, 7 s of CPU time, 70/20/10 in each by its own clock."""
    target = Target("cpu_split", 3500, 2000, 1000, 500)
    run, lines = record(("-p", target.pid, "-F", HZ, "--only", "oncpu"), lambda: target.ask("go"))
    return target, run.profile("oncpu"), lines


def shares(lines):
    total = sum(line[2] for line in lines)
    return [sum(line[3 + i] for line in lines) / total for i in range(3)]


@fact
def cpu_split_70_20_10_is_found_within_chance_of_20000_samples():
    target, p, lines = split()
    # How many there must be is asked thread by thread below.
    n = p.sum("samples/count", pid=target.pid)
    for name, truth in zip(("hot_70", "hot_20", "hot_10"), shares(lines)):
        # The truth is the target's own clock; that it is the nominal share is checked below.
        share_of(p.sum("samples/count", name, pid=target.pid) / max(n, 1), truth, n, f"share of {name}")


@fact
def target_of_the_split_really_spends_70_20_10():
    _, _, lines = split()
    # Each thread's share is right to one piece, the longest that it had.
    off_by = sum(line[7] for line in lines) / sum(line[2] for line in lines)
    for nominal, truth in zip((0.7, 0.2, 0.1), shares(lines)):
        near(truth, nominal, off_by, "share by the thread's own clock")


@fact
def cpu_time_of_each_thread_is_its_own_clock():
    target, p, lines = split()
    for line in lines:
        got = p.sum("cpu/nanoseconds", pid=target.pid, tid=line[1])
        samples_of(got * HZ / 1e9, line[2], line[6], HZ, f"periods of thread {line[1]}")


@fact
def samples_weigh_their_own_time_and_are_still_counted():
    target, p, lines = split()
    equal(p.period_type, "cpu/nanoseconds", "period type")
    near(p.period, 1e9 / HZ, 1, "mean period")
    n = sum(s.values[0] for s in p.samples)
    ns = sum(s.values[1] for s in p.samples)
    # Periods come in pairs, uniform over their mean ± a half: of either kind the scatter is below that of
    # independent ones.
    near(ns / max(n, 1) * HZ / 1e9, 1, SIGMAS / max(n, 1) ** 0.5, "mean weight in periods")
    check(len({s.values[1] / s.values[0] for s in p.samples}) > 1, "all samples weigh the same")


CYCLES_US = (1000, 2000, 5000, 10000, 100000)
# Rate, cycle, s of CPU time. A fixed period would meet the same phases of the first three again and again.
# What is in step with its samples has all of them in one function, or none, where 0.7, 0.2 and 0.1 are expected; 200
# samples are known to 0.16. `make soak` takes all rates and cycles.
CELLS = [(1000, 1000, 2), (500, 10000, 2), (100, 10000, 2), (499, 10000, 2)]
SECONDS_A_CELL = float(os.environ.get("MEMSCOPE_TEST_CYCLES", 0))
if SECONDS_A_CELL:
    CELLS = [(hz, us, SECONDS_A_CELL) for hz in (99, 100, 499, 500, 999, 1000) for us in CYCLES_US]


@once
def cycles():
    """For each cell: the target's line, and its samples as counts and as time."""
    found = []
    for hz, us, seconds in CELLS:
        target = Target("cpu_cycle", us, int(seconds * 1000))
        run, lines = record(("-p", target.pid, "-F", hz, "--only", "oncpu"), lambda: target.ask("go"))
        found.append((hz, us, target, lines[0], run.profile("oncpu")))
        target.end()
    return found


@fact
def no_program_is_in_step_with_the_samples():
    for hz, us, target, line, p in cycles():
        n = p.sum("samples/count", pid=target.pid)
        ns = p.sum("cpu/nanoseconds", pid=target.pid)
        for name, cpu_ns in zip(("hot_70", "hot_20", "hot_10"), line[3:6]):
            truth, what = cpu_ns / line[2], f"{name}, cycle of {us} us at {hz} Hz"
            share_of(p.sum("samples/count", name, pid=target.pid) / max(n, 1), truth, n, what)
            # Weights differ: (mean of p) (mean of 1/p) is 1.1 for periods p of the mean ± a half.
            share_of(p.sum("cpu/nanoseconds", name, pid=target.pid) / max(ns, 1), truth, n / 1.1,
                     f"ns of {what}")


@fact
def cpu_nanoseconds_of_a_busy_thread_are_its_clock_to_1_percent():
    for hz, us, target, line, p in cycles():
        (cpu_ns, on_ns), wall_ns = (line[2], line[6]), line[8]
        # It had its CPU for this share of the time; of the rest chance decides which samples are its own.
        share = min(cpu_ns / wall_ns, 1)
        n = wall_ns / 1e9 * hz
        slack = 0.01 * cpu_ns + (SIGMAS * math.sqrt(1.1 * n * share * (1 - share)) + 2) * 1e9 / hz
        within(p.sum("cpu/nanoseconds", tid=line[1]), cpu_ns * (1 - 2 * STOLEN) - slack,
               max(cpu_ns, on_ns) + slack, f"CPU ns, cycle of {us} us at {hz} Hz")


@fact
def samples_lead_from_the_function_to_main_or_thread_start():
    target, p, _ = split()
    n = whole = 0
    for s in p.select("burn", pid=target.pid):
        names = [f.name for f in s.frames]
        n += s.values[0]
        # burn ← hot_x ← work: our own frames, all with frame pointers.
        i = names.index("burn")
        if names[i + 1:i + 2] and names[i + 1].startswith("hot_") and "work" in names[i + 2:i + 3]:
            whole += s.values[0]
    # A sample in the two instructions before burn() has its frame misses the caller: of some
    # million instructions a piece, none is expected in 20,000 samples.
    within(whole / max(n, 1), 0.999, 1, "stacks burn ← hot_x ← work")


@fact
def default_rate_is_99_hz():
    target = Target("cpu_split", 1000)
    run, lines = record(("-p", target.pid, "--only", "oncpu"), lambda: target.ask("go"))
    p = run.profile("oncpu")
    near(p.period, 1e9 / 99, 1, "period")
    samples_of(p.sum("samples/count", pid=target.pid), lines[0][2], lines[0][6], 99, "samples in 1 s")


def is_kernel(frame):
    return frame.module.startswith("[kernel")


def user_kernel(*options):
    target = Target("user_kernel", 800)
    run, lines = record(("-p", target.pid, "-F", 999, "--only", "oncpu", *options),
                        lambda: target.ask("go"))
    return target, run.profile("oncpu"), lines[0]


@fact
def kernel_time_is_found_below_the_function_that_made_the_call():
    target, p, (_, tid, user_ns, kernel_ns) = user_kernel()
    n = p.sum("samples/count", tid=tid)
    if not check(n > 0, "no samples"):
        return
    share_of(p.sum("samples/count", "in_kernel", tid=tid) / n, kernel_ns / (user_ns + kernel_ns), n,
             "share of in_kernel")
    in_kernel = sum(s.values[0] for s in p.select("in_kernel", tid=tid) if is_kernel(s.frames[0]))
    # Its few user instructions and the entry are less than 1 % of a read of 8 MiB.
    within(in_kernel / max(p.sum("samples/count", "in_kernel", tid=tid), 1), 0.97, 1,
           "samples of in_kernel that end in the kernel")


@fact
def option_U_leaves_out_kernel_frames():
    target, p, _ = user_kernel("-U")
    check(p.sum("samples/count", "in_user", pid=target.pid) > 0, "no sample in in_user")
    equal([f.name for s in p.samples for f in s.frames if is_kernel(f)], [], "kernel frames")


@fact
def option_K_leaves_out_user_frames():
    target, p, _ = user_kernel("-K")
    check(p.sum("samples/count", pid=target.pid) > 0, "no samples")
    # A sample of user code has no kernel stack, and says so: [no stack].
    equal([f.name for s in p.samples for f in s.frames
           if not is_kernel(f) and f.name != "[no stack]"], [], "user frames")
    check(p.sum("samples/count", "[no stack]", pid=target.pid) > 0, "user time is left out")


@fact
def option_t_samples_one_thread_only():
    target = Target("cpu_split", 600, 600)
    tids = sorted(int(t) for t in os.listdir(f"/proc/{target.pid}/task") if int(t) != target.pid)
    run, lines = record(("-t", tids[0], "-F", 999, "--only", "oncpu"), lambda: target.ask("go"))
    p = run.profile("oncpu")
    equal({s.labels.get("tid") for s in p.samples}, {tids[0]}, "threads in the profile")
    line = next(line for line in lines if line[1] == tids[0])
    samples_of(p.sum("samples/count"), line[2], line[6], 999, "samples of the thread")


@fact
def option_C_samples_those_cpus_only():
    cpus = online_cpus()
    if len(cpus) < 2:
        skip("needs two CPUs")
    target = Target("spinners", 800, cpus[0], cpus[1])
    run, lines = record(("-p", target.pid, "-C", cpus[1], "-F", 999, "--only", "oncpu"),
                        lambda: target.ask("go"))
    p = run.profile("oncpu")
    by_cpu = {line[2]: line for line in lines}
    equal(p.sum("samples/count", tid=by_cpu[cpus[0]][1]), 0, f"samples of CPU {cpus[0]}")
    line = by_cpu[cpus[1]]
    samples_of(p.sum("samples/count", tid=line[1]), line[4], line[6], 999, f"samples of CPU {cpus[1]}")


@fact
def several_pids_are_profiled_apart():
    a, b = Target("cpu_split", 500), Target("cpu_split", 900)
    other = Target("cpu_split", 300)

    def during():
        for t in (a, b, other):
            t.say("go")
        return a.answer(), b.answer(), other.answer()
    run, (in_a, in_b, _) = record(("-p", f"{a.pid},{b.pid}", "-F", 999, "--only", "oncpu"), during)
    p = run.profile("oncpu")
    equal({s.labels.get("pid") for s in p.samples}, {a.pid, b.pid}, "processes in the profile")
    for target, lines in ((a, in_a), (b, in_b)):
        samples_of(p.sum("samples/count", pid=target.pid), lines[0][2], lines[0][6], 999, "samples")


@fact
@alone("the whole machine")
def whole_host_run_finds_every_process_and_no_more_than_all_cpus():
    targets = [Target("cpu_split", 1000), Target("cpu_split", 700)]

    def during():
        for t in targets:
            t.say("go")
        answers = [t.answer() for t in targets]
        time.sleep(0.5)
        return answers
    run, answers = record(("-a", "-F", 499, "--only", "oncpu"), during)
    p = run.profile("oncpu")
    for target, lines in zip(targets, answers):
        samples_of(p.sum("samples/count", pid=target.pid), lines[0][2], lines[0][6], 499,
                   "samples of a target")
    s = run.summary()
    rows = {row["pid"]: row for row in s["by_process"]}
    # Nothing else need run on a quiet machine: two processes are all that is sure.
    check(s["target"]["seen_processes"] >= len(rows) >= 2,
          f"processes: {s['target']}, {len(rows)}")
    for pid, row in rows.items():
        equal(row["samples"], p.sum("samples/count", pid=pid), f"samples of process {pid}")
    least = min(row["cpu_ns"] for row in rows.values())
    for target in targets:
        check(target.pid in rows or p.sum("cpu/nanoseconds", pid=target.pid) <= least,
              f"target {target.pid} is not among {sorted(rows)}")
    cpus = os.cpu_count()
    # Every CPU ticks HZ times a second whatever runs there; the ends add one sample each.
    within(p.sum("cpu/nanoseconds"), sum(lines[0][2] for lines in answers) / 2,
           cpus * (p.duration_ns + 2e9 / 499) * 1.01, "CPU ns of the host")


main()
