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


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


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
    """Asleep for five seconds, as far as the kernel's own test of that goes (/sys/power/pm_test): nothing has to wake it."""
    test, state = "/sys/power/pm_test", "/sys/power/state"
    levels, states = ((read(path).replace("[", "").replace("]", "").split() if os.path.exists(path) else []) for path in (test, state))
    level = next((x for x in ("core", "processors", "devices", "freezer") if x in levels), None)
    how = next((x for x in ("mem", "freeze") if x in states), None)
    if not level or not how:
        skip(f"it cannot try to sleep: levels {' '.join(levels) or 'none'}, states {' '.join(states) or 'none'}")
    print(f"# {level}, {how}")
    begun, service = time.monotonic(), Service()
    service.more(2)
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    write(test, level)
    try:
        write(state, how)
    except OSError as e:
        service.end()
        skip(f"it does not fall asleep: {e}")
    took = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    check(took > 4, f"it slept for {took:.1f} s")
    service.more(2)
    service.end()
    as_long_as_they_lasted(service, begun)


if __name__ == "__main__":
    main()
