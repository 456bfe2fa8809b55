"""What the suites about frames of languages share: programs that print each stack as they see it themselves, and the
stacks of a profile beside those."""

import json
import re
import threading

from harness import *


class Printer(Child):
    """A program that prints where it is, a line a place, and `ready` when it has been everywhere once. read_line(line): what it
    does there (sleep, spin, alloc …), its frames, the place's name."""

    def __init__(self, name, argv, read_line, **kw):
        self.name = name
        self.truth = {}  # (what, frames): the place's name
        super().__init__(argv, stdout=subprocess.PIPE, **kw)
        self._ready = threading.Event()
        self.reader = threading.Thread(target=self._read, args=(read_line,), daemon=True)
        self.reader.start()

    def _read(self, read_line):
        for line in self.process.stdout:
            if line == b"ready\n":
                self._ready.set()
                continue
            what, frames, place = read_line(line)
            self.truth[what, frames] = place

    def ready(self):
        check(self._ready.wait(READY_SEC), f"{self.name} was not ready in time")


def named(name, file, line):
    """A frame as profiles have it."""
    return (f"{name} ({os.path.basename(file)})" if file else name, file, int(line))


def json_line(line):
    row = json.loads(line)
    return row["what"], tuple(named(*frame) for frame in row["frames"]), row["shape"]


def frames_of(lang):
    """Gives the frames of a language of a sample, leaf first: name, file, line."""
    return lambda sample: tuple((f.name, f.file, f.line) for f in sample.frames if f.module == lang)


def functions_of(sample, lang):
    return [f.name.split(" ")[0] for f in sample.frames if f.module == lang]


def bytes_each(low, high):
    """Samples of allocations of so many bytes each."""
    def of_interest(sample, profile):
        types = [t.split("/")[0] for t in profile.types]
        n, size = (sample.values[types.index(t)] for t in ("alloc_objects", "alloc_space"))
        return n and low <= size / n < high
    return of_interest


class Comparison:
    """Of a language's stacks. frames(sample): what is compared; places(frames, truth): which of what the program printed they
    are; is_gone(frames, truth): whether they are one whose code was freed before it could be named; unread_max: so many
    waits of a program had begun before the run, and had ended before their stacks could be read."""

    def __init__(self, language, frames, places=lambda frames, truth: {frames} & truth,
                 is_gone=lambda frames, truth: False, unread_max=1):
        self.language, self.frames, self.places, self.is_gone, self.unread_max = language, frames, places, is_gone, unread_max

    def __call__(self, run, children, source, what, of_interest, at_least):
        """The stacks of samples of interest are among those that each program printed, and nearly all of those are met."""
        p = run.profile(source)
        for child in children:
            truth = {frames for kind, frames in child.truth if kind == what}
            met, wrong, gone, unread, n = set(), [], 0, 0, 0
            for s in p.samples:
                if s.labels.get("pid") != child.pid or not of_interest(s, p):
                    continue
                n += 1
                frames = self.frames(s)
                found = self.places(frames, truth)
                met |= found
                if found:
                    continue
                if not frames and source == "offcpu" and sum(f.module != "[kernel]" for f in s.frames) == 1:
                    unread += 1
                elif self.is_gone(frames, truth):
                    gone += 1
                else:
                    wrong.append(frames)
            where = f"{child.name}: {source}"
            print(f"# {where}: {len(met)} of {len(truth)} places met; of {n} stacks {gone} have code that was gone, "
                  f"{len(wrong)} differ")
            check(unread <= self.unread_max, f"{where}: {unread} waits have no stack, but for the first ones")
            check(not wrong, f"{where}: {len(wrong)} of {n} stacks are none that {self.language} printed: {wrong[:1]}")
            check(len(met) >= at_least * len(truth), f"{where}: of {len(truth)} places only {len(met)} were met: "
                  f"not {sorted({child.truth[what, t] for t in truth - met})}")


def nothing_damaged(run):
    langs = run.summary()["languages"]
    equal((langs["damaged"], langs["unreadable"]), (0, 0), "damaged frames, unreadable runtimes")


def at_work_on(interpreter, code, ending, *args):
    """An interpreter on a program of a few lines, at work."""
    if not os.path.exists(interpreter):
        skip(f"{interpreter} is not installed")
    path = scratch("program") + ending
    with open(path, "w", encoding="utf-8") as f:
        f.write(code)
    return at_work(Child([interpreter, path, *args], **QUIET))


def split_of_70_20_10(run, lang, prefix=""):
    """Functions that do the same, 7, 2 and 1 times as often. Calls and the loop around them take a little, of each the same: of
    10,000 rounds some 10."""
    p, n, by = run.profile("oncpu"), 0, collections.Counter()
    for s in p.samples:
        weight = s.values[p.types.index("samples/count")]
        n += weight
        for name in set(functions_of(s, lang)):
            by[name] += weight
    check(n > 1000, f"only {n} samples")
    for name, share in (("seventy", 0.7), ("twenty", 0.2), ("ten", 0.1)):
        share_of(by[prefix + name] / n, share, n, name)


def stopped_meanwhile(children, hz, cpu_s, at_least):
    """A run in which memscope itself is stopped while each has so much CPU time: it cannot keep up with their mappings, and
    `at_least` stacks are walked when it goes on."""
    run = Run("-p", ",".join(str(c.pid) for c in children), "--only", "oncpu", "-F", hz, "-v")
    run.ready()
    os.kill(run.pid, signal.SIGSTOP)
    has_worked([child.pid for child in children], cpu_s)
    os.kill(run.pid, signal.SIGCONT)
    run.stop()
    later = re.search(r"walked in user space: (\d+) sent.* (\d+) for want of room", run.stderr)
    check(later and int(later[1]) >= at_least and later[2] == "0",
          f"at {hz} Hz, {len(children)} times {cpu_s} s of CPU time were to be walked later: {later and later[0]}")
    return run
