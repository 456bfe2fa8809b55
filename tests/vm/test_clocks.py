"""Runs inside a guest, whose clock is its own: what holds when that is set, and when the machine sleeps."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))

from harness import *  # noqa: E402

EVERY_S = 4
HOUR_S = 3600


class Service:
    """memscope serve on one process, and its windows as `memscope ls` has them."""

    def __init__(self):
        self.target = Target("cpu_split", 600000)
        self.target.say("go")
        self.archive = scratch("archive")
        self.child = Child([MEMSCOPE, "serve", "-p", str(self.target.pid), "--only", "oncpu", "--every", str(EVERY_S), "--listen", "off",
                            "--archive", self.archive], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def windows(self):
        """Those that have been written, in the order of the list."""
        got = subprocess.run([MEMSCOPE, "ls", "--json", self.archive], capture_output=True, text=True, check=False)
        return json.loads(got.stdout)["windows"] if got.returncode == 0 and got.stdout else []

    def more(self, n, seconds=90):
        """So many more of them are written."""
        had, until = len(self.windows()), time.monotonic() + seconds
        while len(self.windows()) < had + n:
            check(time.monotonic() < until, f"{n} windows were not written in {seconds} s")
            if time.monotonic() >= until:
                return
            time.sleep(1)

    def end(self):
        self.child.process.send_signal(signal.SIGTERM)
        said = self.child.process.communicate(timeout=100)[1].decode()
        equal(self.child.process.returncode, 0, f"exit status: {said}")
        return said


def set_clock(by_s):
    time.clock_settime(time.CLOCK_REALTIME, time.time() + by_s)


def has_one_of_now(service):
    begins = [w["begin_ns"] / 1e9 - time.time() for w in service.windows()]
    check(any(-60 < b <= 0 for b in begins), f"no window is of the last minute: they began {begins} s from now")


def as_long_as_they_lasted(service, begun):
    """No window is longer or shorter for a clock that was set: together they are as long as the service was there."""
    found = [(w["duration_ns"] or 0) / 1e9 for w in service.windows()]
    lasted = time.monotonic() - begun
    check(all(0 < s < lasted for s in found), f"seconds of windows: {found}")
    check(sum(found) <= lasted + EVERY_S, f"windows of {sum(found):.1f} s in {lasted:.1f} s")
    check(sum(found) >= 0.5 * lasted - EVERY_S, f"windows of {sum(found):.1f} s in {lasted:.1f} s")


@fact
def a_clock_that_is_set_costs_no_window():
    """Eight hours forward, as after a night without network; nine back."""
    begun, service = time.monotonic(), Service()
    service.more(2)
    set_clock(8 * HOUR_S)
    service.more(3)
    has_one_of_now(service)
    set_clock(-9 * HOUR_S)
    service.more(3)
    has_one_of_now(service)
    said = service.end()
    as_long_as_they_lasted(service, begun)
    equal([line for line in said.splitlines() if "could not" in line or "cannot" in line], [], "what went wrong")


@fact
def a_machine_that_sleeps_is_profiled_before_and_after():
    alarm = "/sys/class/rtc/rtc0/wakealarm"
    with open("/sys/power/state", encoding="ascii") as f:
        states = f.read().split()
    if "freeze" not in states or not os.path.exists(alarm):
        skip(f"it cannot sleep and wake by itself: {' '.join(states) or 'no state of sleep'}, {'an' if os.path.exists(alarm) else 'no'} alarm")
    begun, service = time.monotonic(), Service()
    service.more(2)
    slept = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    for text in "0", "+20":
        with open(alarm, "w", encoding="ascii") as f:
            f.write(text)
    try:
        with open("/sys/power/state", "w", encoding="ascii") as f:
            f.write("freeze")
    except OSError as e:
        service.end()
        skip(f"it does not fall asleep: {e}")
    slept = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic() - slept
    check(slept > 5, f"it slept for {slept:.1f} s")
    service.more(2)
    service.end()
    as_long_as_they_lasted(service, begun)


if __name__ == "__main__":
    main()
