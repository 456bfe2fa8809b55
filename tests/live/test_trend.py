"""trend.csv against processes whose memory and CPU use are known."""

import datetime
import re
import signal
import statistics
import time

from harness import *

FIRST = ["timestamp", "rss_kb", "vsz_kb", "cpu_percent"]
INTERVAL = 0.25
RSS_OFF_BY_KB = rss_off_by() // 1024
LATER = ["pss", "anon", "file", "swap", "thread", "minor", "major", "live", "shared", "private"]


@once
def growth():
    """64 MiB in 2.6 s, looked at every 0.25 s, twice and more on either side."""
    target = Target("grow", 64, 40)
    begin = datetime.datetime.now()
    run = Run("-p", target.pid, "--interval", INTERVAL)
    run.ready()
    run.rows(2)
    target.ask("go")
    run.rows(run_rows(run) + 2)
    starved = run.starved_ns()
    run.stop()
    run.must()
    columns, rows = run.trend()
    return run, columns, rows, begin, starved


def run_rows(run):
    with open(run.path("trend.csv"), encoding="utf-8") as f:
        return f.read().count("\n") - 1


@fact
def first_columns_are_those_that_scripts_read():
    _, columns, *_ = growth()
    equal(columns[:4], FIRST, "first columns")
    for word in LATER:
        check(any(word in c for c in columns[4:]), f"no column for {word}: {columns[4:]}")


@fact
def every_row_has_every_column_and_a_local_time_stamp():
    _, columns, rows, begin, _ = growth()
    previous = begin - datetime.timedelta(seconds=1)
    for row in rows:
        check(None not in row and None not in row.values(), f"columns and values differ: {row}")
        stamp = row["timestamp"]
        if check(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", stamp), f"time stamp {stamp!r}"):
            at = datetime.datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S")
            check(previous - datetime.timedelta(seconds=1) <= at <= datetime.datetime.now(),
                  f"time stamp {stamp} is not in the run or not in order")
            previous = at
        check(re.fullmatch(r"\d+\.\d", row["cpu_percent"]), f"cpu_percent {row['cpu_percent']!r}")


@fact
def there_is_a_row_for_every_interval():
    run, _, rows, _, starved_ns = growth()
    seconds = run.profile("oncpu").duration_ns / 1e9
    # One more at the beginning and at the end; while memscope itself is kept from the CPU, or writes
    # to a busy disk, none.
    within(len(rows), seconds / INTERVAL - starved_ns / 1e9 / INTERVAL - 2, seconds / INTERVAL + 2,
           f"rows in {seconds:.2f} s")


@fact
def rss_grows_by_what_the_target_touched():
    _, _, rows, *_ = growth()
    rss = [int(r["rss_kb"]) for r in rows]
    # 64 MiB touched page by page, no huge pages; a few pages of stack and libc besides.
    near(rss[-1] - rss[0], 64 * 1024, 256 + RSS_OFF_BY_KB, "growth of rss_kb")
    check(all(b >= a - 64 - RSS_OFF_BY_KB for a, b in zip(rss, rss[1:])), f"rss_kb falls: {rss}")


@fact
def summary_says_the_same_of_rss_as_the_trend():
    run, _, rows, *_ = growth()
    r = run.summary()["rss"]
    near(r["last_kb"] - r["first_kb"], int(rows[-1]["rss_kb"]) - int(rows[0]["rss_kb"]),
         256 + RSS_OFF_BY_KB, "RSS growth in the summary")


@fact
def live_bytes_of_a_row_are_those_of_its_moment():
    target = Target("alloc_truth", 1, 2000)
    run = Run("-p", target.pid, "--interval", 0.2, "--alloc=exact", "--only", "alloc")
    run.ready()
    lines = target.ask("run")
    # One may have been under way; another comes at the end.
    run.rows(run_rows(run) + 2)
    run.stop()
    run.must()
    truth = next(line[4] for line in lines if line[0] == "total")
    check(truth > 100000, f"{truth} bytes left live: nothing is proved")
    _, rows = run.trend()
    equal([int(r["live_bytes"]) for r in rows[-2:]], [truth] * 2, "live_bytes of the last rows")


@fact
def cpu_percent_of_a_spinner_is_the_cpu_time_it_got():
    # Among many programs that spin, one thread's share of a few percent would tell nothing.
    target = Target("cpu_split", *[60000] * 8)
    target.say("go")
    run = Run("-p", target.pid, "--interval", 0.5)
    run.ready()
    run.rows(1)
    begin, cpu = time.monotonic(), schedstat(target.pid)
    run.rows(6)
    seconds = time.monotonic() - begin
    share = (schedstat(target.pid) - cpu) / seconds / 1e9 * 100
    run.stop()
    run.must()
    target.end()
    _, rows = run.trend()
    shares = [float(r["cpu_percent"]) for r in rows[1:6]]
    # Each row's share is of the time since the row before; we are late for the first and for the last
    # of them by 20 ms and by what we are kept from the CPU: in that the target may have had none or all
    # of the CPUs. Its account in /proc counts ticks of 10 ms.
    late = (abs(seconds - 5 * 0.5) + 2 * 0.02) * len(online_cpus()) + 2 * 0.01
    off_by = 100 * late / seconds
    near(statistics.mean(shares), share, off_by, "mean of cpu_percent")
    if off_by > share / 2:
        skip(f"the target had {share:.0f} % of a CPU, give or take {off_by:.0f}: the machine is too busy to tell")


@fact
def rows_are_written_as_the_run_goes():
    target = Target("waits", 1, 1)
    run = Run("-p", target.pid, "--interval", 0.2)
    run.ready()
    run.rows(3)  # or a crash would lose them
    check(run.alive(), "it has ended")
    run.send(signal.SIGKILL)
    run.finish()


main()
