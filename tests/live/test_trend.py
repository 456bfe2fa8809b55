"""trend.csv against processes whose memory and CPU use are known."""

import datetime
import os
import re
import signal
import statistics
import time

from harness import *

FIRST = ["timestamp", "rss_kb", "vsz_kb", "cpu_percent"]
LATER = ["pss", "anon", "file", "swap", "thread", "minor", "major", "live", "shared", "private"]


@once
def growth():
    """64 MiB in 2.6 s, looked at every 0.25 s."""
    target = Target("grow", 64, 40)

    def during():
        time.sleep(0.6)
        target.ask("go")
        time.sleep(0.6)
    begin = datetime.datetime.now()
    run, _ = record(("-p", target.pid, "--interval", 0.25), during)
    columns, rows = run.trend()
    return run, columns, rows, begin


@fact
def first_columns_are_those_that_scripts_read():
    _, columns, _, _ = growth()
    equal(columns[:4], FIRST, "first columns")
    for word in LATER:
        check(any(word in c for c in columns[4:]), f"no column for {word}: {columns[4:]}")


@fact
def every_row_has_every_column_and_a_local_time_stamp():
    _, columns, rows, begin = growth()
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
    _, _, rows, _ = growth()
    # At least 0.6 + 64 × 0.04 + 0.6 = 3.76 s: 15 intervals; the machine may be slow by one or two.
    check(len(rows) >= 13, f"{len(rows)} rows in 3.8 s at 0.25 s")


@fact
def rss_grows_by_what_the_target_touched():
    _, _, rows, _ = growth()
    rss = [int(r["rss_kb"]) for r in rows]
    # 64 MiB touched page by page, no huge pages; a few pages of stack and libc besides.
    near(rss[-1] - rss[0], 64 * 1024, 256, "growth of rss_kb")
    check(all(b >= a - 64 for a, b in zip(rss, rss[1:])), f"rss_kb falls: {rss}")


@fact
def summary_says_the_same_of_rss_as_the_trend():
    run, _, rows, _ = growth()
    r = run.summary()["rss"]
    near(r["last_kb"] - r["first_kb"], int(rows[-1]["rss_kb"]) - int(rows[0]["rss_kb"]), 256,
         "RSS growth in the summary")


@fact
def live_bytes_of_a_row_are_those_of_its_moment():
    target = Target("alloc_truth", 1, 2000)
    run = Run("-p", target.pid, "--interval", 0.2, "--alloc=exact", "--only", "alloc")
    run.ready()
    lines = target.ask("run")
    time.sleep(0.6)
    run.stop()
    run.must()
    truth = next(line[4] for line in lines if line[0] == "total")
    check(truth > 100000, f"{truth} bytes left live: nothing is proved")
    _, rows = run.trend()
    # Two at least came in the 0.6 s since, and one at the end.
    equal([int(r["live_bytes"]) for r in rows[-2:]], [truth] * 2, "live_bytes of the last rows")


@fact
def cpu_percent_of_a_spinner_is_the_cpu_time_it_got():
    target = Target("cpu_split", 5000)
    target.go_first()  # a share of a few percent would tell nothing
    target.say("go")
    run = Run("-p", target.pid, "--interval", 0.5, "-d", 3)
    run.ready()
    begin, cpu = time.monotonic(), schedstat(target.pid)
    run.finish()
    share = (schedstat(target.pid) - cpu) / (time.monotonic() - begin) / 1e9 * 100
    run.must()
    _, rows = run.trend()
    middle = [float(r["cpu_percent"]) for r in rows[1:]]
    if not check(len(middle) >= 4, f"{len(rows)} rows"):
        return
    # The two spans differ by the first row's 0.1 s and by what writing the files takes after the
    # last one, some 0.3 s of 3: in both the target may have had none or all of a CPU.
    near(statistics.mean(middle), share, 13, "mean of cpu_percent")
    check(share > 30, f"the target had {share:.0f} % of a CPU: too little to tell")


@fact
def rows_are_written_as_the_run_goes():
    target = Target("waits", 1, 1)
    run = Run("-p", target.pid, "--interval", 0.2)
    run.ready()
    time.sleep(1.2)
    names = [f for f in os.listdir(run.out) if f.startswith("trend.csv") or "trend.csv" in f]
    text = open(run.path(names[0]), encoding="utf-8").read() if names else ""
    check(text.count("\n") >= 4,
          f"{text.count(chr(10))} lines after 1.2 s: a crash would lose them")
    run.send(signal.SIGKILL)
    run.finish(10)


main()
