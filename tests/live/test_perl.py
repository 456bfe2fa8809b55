"""Frames of Perl: each stack that caller() sees is the one in the profile, function by function, file by file, line by
line, for waits, samples and allocations; in Debian's Perl, and in those that PERLS names (paths, by spaces)."""

import json
import re
import threading

from harness import *
from stacks import whole

LANG = "[Perl]"
PROGRAM = os.path.join(TOP, "tests/targets/perl_stacks.pl")
ALLOCATED = 100000  # bytes, by the program; Perl makes room for a quarter more
GONE = "[Perl code that is gone]"


def perls():
    paths = [path for path in ["/usr/bin/perl", *os.environ.get("PERLS", "").split()] if os.path.exists(path)]
    if not paths:
        skip("/usr/bin/perl is not installed")
    return paths


class Perl(Child):
    """The program under one interpreter, when it has been everywhere once."""

    def __init__(self, path, threads):
        self.path = path
        self.truth = {}  # (what, frames): shape
        super().__init__([path, PROGRAM, "600"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         env={**os.environ, "PERL_STACKS_THREADS": "1" if threads else ""})
        self.is_ready = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line == b"ready\n":
                self.is_ready.set()
                continue
            row = json.loads(line)
            frames = tuple((f"{name} ({os.path.basename(file)})", file, at) for name, file, at in row["frames"])
            self.truth[row["what"], frames] = row["shape"]


def lang_frames(sample):
    return tuple((f.name, f.file, f.line) for f in sample.frames if f.module == LANG)


@once
def everywhere():
    children = [Perl(path, False) for path in perls()]
    for child in children:
        check(child.is_ready.wait(READY_SEC), f"{child.path} was not ready in time")
    run = Run("-p", ",".join(str(c.pid) for c in children), "--alloc=exact", "--offcpu=exact", "-F", 999,
              "--max-overhead", 1000)
    run.ready()
    for child in children:
        has_worked(child.pid, 0.5, 80)
    run.stop()
    for child in children:
        child.end()
    return run, children


def is_place(frames, place):
    """What the profile has of a file that is required once: it may have been freed before it could be named."""
    return len(frames) == len(place) and all(got in (want, (GONE, "", 0)) or got[0] == GONE
                                             for got, want in zip(frames, place))


def compare(source, what, of_interest, at_least):
    """The stacks of samples of interest are among those that the program printed, and nearly all of those are met."""
    run, children = everywhere()
    p = run.profile(source)
    for child in children:
        truth = {frames for kind, frames in child.truth if kind == what}
        once_run = [f for f in truth if "Required.pm" in str(f)]
        met, wrong, gone, unread, n = set(), [], 0, 0, 0
        for s in p.samples:
            if s.labels.get("pid") != child.pid or not of_interest(s, truth):
                continue
            n += 1
            frames = lang_frames(s)
            if not frames and source == "offcpu" and sum(f.module != "[kernel]" for f in s.frames) == 1:
                unread += 1  # it waited before the run began, and had gone on before its stack could be read
            elif frames in truth:
                met.add(frames)
            elif any(is_place(frames, place) for place in once_run):
                gone += 1
            else:
                wrong.append(frames)
        print(f"# {child.path}: {source}: {len(met)} of {len(truth)} places met; of {n} stacks {gone} have code that was "
              f"gone, {len(wrong)} differ")
        check(unread <= 1, f"{child.path}: {unread} waits have no stack, but for the first one")
        check(not wrong, f"{child.path}: {source}: {len(wrong)} of {n} stacks are none that Perl printed: {wrong[:1]}")
        check(len(met) >= at_least * len(truth), f"{child.path}: {source}: of {len(truth)} places only {len(met)} were met: "
              f"not {sorted(set(child.truth[what, t] for t in truth - met))}")


def sleeps(sample, _truth):
    return any(re.match("do_select$|core_sys_select", f.name) for f in sample.frames)


def at_the_line(sample, truth):
    """In C, called by that line."""
    frames = lang_frames(sample)
    return frames and frames[0] in {t[0] for t in truth}


@fact
def perl_stacks_of_waits_are_those_that_perl_prints():
    compare("offcpu", "sleep", sleeps, 0.95)


@fact
def perl_stacks_of_allocations_are_those_that_perl_prints():
    run, _ = everywhere()
    types = [t.split("/")[0] for t in run.profile("alloc").types]
    objects, space = types.index("alloc_objects"), types.index("alloc_space")
    compare("alloc", "alloc", lambda s, _: s.values[objects] and
            ALLOCATED <= s.values[space] / s.values[objects] < 1.3 * ALLOCATED, 0.95)


@fact
def perl_stacks_of_samples_are_those_that_perl_prints():
    compare("oncpu", "spin", at_the_line, 0.3)


@fact
def stacks_of_perl_are_whole():
    run, _ = everywhere()
    for source in ("oncpu", "offcpu", "alloc"):
        whole(run, source, 100, "Perl")
    langs = run.summary()["languages"]
    equal((langs["damaged"], langs["unreadable"]), (0, 0), "damaged frames, unreadable runtimes")


main()
