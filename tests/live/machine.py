"""What the machine did while a test ran: so that a failure elsewhere can be told from its log alone."""

import os
import time

# proc(5), the line `cpu` of /proc/stat.
KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def _ticks():
    try:
        with open("/proc/stat", encoding="ascii") as f:
            return [int(x) for x in f.readline().split()[1:9]]
    except (OSError, ValueError):
        return [0] * len(KINDS)


def _available_mb():
    try:
        with open("/proc/meminfo", encoding="ascii") as f:
            return next(int(line.split()[1]) >> 10 for line in f if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return 0


def idle(seconds):
    """The share of all CPUs' time that was idle in the next seconds: 0 to 1."""
    begin = _ticks()
    time.sleep(seconds)
    spent = dict(zip(KINDS, (b - a for a, b in zip(begin, _ticks()))))
    return (spent["idle"] + spent["iowait"]) / max(sum(spent.values()), 1)


class Watch:
    """From now on."""

    def __init__(self):
        self._begin, self._ticks = time.monotonic(), _ticks()

    def sentence(self):
        """One line about the time since; shares are of all CPUs."""
        spent = dict(zip(KINDS, (b - a for a, b in zip(self._ticks, _ticks()))))
        total = max(sum(spent.values()), 1)
        shares = ", ".join(f"{100 * spent[k] / total:.1f} % {k}" for k in KINDS if spent[k])
        load = " ".join(f"{x:.1f}" for x in os.getloadavg())
        return (f"machine: {os.cpu_count()} CPUs, {len(os.sched_getaffinity(0))} for us, Linux {os.uname().release}, "
                f"load {load}, {_available_mb()} MB available; in these {time.monotonic() - self._begin:.1f} s "
                f"{shares or 'no tick'}")
