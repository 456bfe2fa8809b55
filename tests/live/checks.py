"""What a live test asks for: checks, of which all are made, and what chance allows a figure to be off by."""

import math
import os
import shutil

# How long memscope may take to attach, and to write its files after the end of a run. Not a
# promise, only the point at which a test stops waiting: among 15 programs that spin on two CPUs it has
# a tenth of what it has alone, and each of the kernel's grace periods takes as many times as long.
READY_SEC = 60
FINISH_SEC = 120
# The share of each CPU that is stolen and in no account of the kernel's, on average (tests/unsteady).
STOLEN = float(os.environ.get("MEMSCOPE_TEST_STOLEN", 0))


class Skip(Exception):
    pass


class Broken(Exception):
    """A test cannot go on: what it stands on failed."""


failures = []  # of the running test


def skip(reason):
    raise Skip(reason)


def check(holds, sentence):
    if not holds:
        failures.append(sentence)
    return bool(holds)


def equal(got, want, what):
    return check(got == want, f"{what}: {got}, expected {want}")


def near(got, want, tolerance, what):
    return check(abs(got - want) <= tolerance,
                 f"{what}: {got:.6g}, expected {want:.6g} ± {tolerance:.3g}")


def within(got, low, high, what):
    return check(low <= got <= high, f"{what}: {got:.6g}, expected {low:.6g} … {high:.6g}")


SIGMAS = 5  # one in 1.7 million: a test of ten figures fails by chance once in 170,000 runs


def share_of(got, truth, n, what):
    """A share of n samples, binomial; `truth` is known."""
    return near(got, truth, SIGMAS * math.sqrt(truth * (1 - truth) / max(n, 1)) + 1 / max(n, 1), what)


def samples_of(got, cpu_ns, on_ns, hz, what):
    """Samples at a fixed rate of work that took so much: not below its CPU clock and not above its time
    on a CPU, which has what was stolen in it (work_begin() in target.h). A timer that is due while time
    is stolen fires once behind it: short thefts take no sample, long ones all but one. Poisson bounds
    the scatter from above; and one period at each end."""
    low, high = cpu_ns / 1e9 * hz * (1 - 2 * STOLEN), max(cpu_ns, on_ns) / 1e9 * hz
    return within(got, low - SIGMAS * math.sqrt(low) - 2, high + SIGMAS * math.sqrt(high) + 2, what)


def chance(mean):
    """The largest count that chance gives where this many are expected, but for one time in a million."""
    if mean > 500:
        return math.ceil(mean + SIGMAS * math.sqrt(mean))
    term = total = math.exp(-mean)
    k = 0
    while 1 - total > 1e-6 and k < 10 * mean + 50:
        k += 1
        term *= mean / k
        total += term
    return k


def student(freedom, beyond=1e-6):
    """How far from its mean, in standard errors that are estimated with so many degrees of freedom, a
    normal figure is but for this share of times. Of an interval that says 95 %, so many times
    student(f) / student(f, 0.05) is what holds all but one in a million."""
    def outside(t):
        # The finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
        angle = math.atan(t / math.sqrt(freedom))
        term, sum_, odd = 1.0, 0.0, freedom % 2
        for k in range(1 + odd, freedom, 2):
            sum_ += term
            term *= k / (k + 1) * math.cos(angle) ** 2
        sum_ = math.sin(angle) * sum_
        return 1 - (2 / math.pi * (angle + math.cos(angle) * sum_) if odd else sum_)
    low, high = 0.0, 1e7
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if outside(middle) > beyond else (low, middle)
    return high


def tool(name):
    return shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")


def need(*names):
    for name in names:
        if not tool(name):
            skip(f"{name} is not installed")
