"""memscope killed (SIGKILL) at any moment of any command: what is left of it in the kernel, in its target and on the disk.

20 kills of the commands below in turn, after a time drawn from 0 to what the command takes, every other time of all its processes;
MEMSCOPE_TEST_KILLED=1000 for so many (`make soak SOAK=killed`), MEMSCOPE_TEST_SEED=N to draw the same times again. After each:

  kernel   no BPF program, map or link that nobody holds, no probe by name, as far as it was not there before
  target   no trap in its text; it is not stopped, nor traced; it finds nothing wrong with its own work, which goes on as fast as
           before; what was put into it by --inject has ended
  host     no process of memscope's
  disk     each file is whole, or absent. A file has no name until it is whole; only where it takes the place of another it is
           hidden for a moment, as .NAME.XXXXXX, which the next run into the directory removes. Logs that grow (trend.csv, what
           trace writes) have whole lines, but for the last one

At the end each command runs undisturbed into the same directory: it works, and nothing of the killed ones is there any more.
"""

import collections
import ctypes
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

from harness import *
from injecting import agents
from whole import LEAVING, whole_file

KILLS = int(os.environ.get("MEMSCOPE_TEST_KILLED", "20"))
SEED = int(os.environ.get("MEMSCOPE_TEST_SEED", time.time_ns() % 1000000))
GRACE_S = 30   # of the kernel, until what nobody holds is freed, on a busy machine
X86 = os.uname().machine == "x86_64"
SHELL = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); sleep 0.02; done"


# --- what is in the kernel --------------------------------------------------------------------------


class BpfIds:
    """The kernel's numbers of all BPF objects, asked for one by one: bpftool would take ten times as long."""

    _CALL = {"x86_64": 321, "aarch64": 280}.get(os.uname().machine)
    _NEXT = {"prog": 11, "map": 12, "link": 31}  # BPF_PROG_GET_NEXT_ID …

    def __init__(self):
        if self._CALL is None:
            skip(f"bpf() has no number here for {os.uname().machine}")
        self._call = ctypes.CDLL(None, use_errno=True).syscall

    def now(self):
        found = set()
        for kind, command in self._NEXT.items():
            attr, at = (ctypes.c_uint32 * 3)(), 0
            while True:
                attr[0] = at
                if self._call(self._CALL, command, attr, ctypes.sizeof(attr)) < 0:
                    break
                at = attr[1]
                found.add((kind, at))
        return found


def held():
    """What living processes hold of them."""
    found = set()
    for path in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if "bpf" not in os.readlink(path):
                continue
            with open(path.replace("/fd/", "/fdinfo/"), encoding="ascii", errors="replace") as f:
                found |= {(m[1], int(m[2])) for m in re.finditer(r"^(prog|map|link)_id:\s+(\d+)", f.read(), re.M)}
        except OSError:
            pass
    return found


def named_probes():
    """Of tracefs, which outlive who made them."""
    found = set()
    for top in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        for name in ("uprobe_events", "kprobe_events"):
            try:
                with open(f"{top}/{name}", encoding="utf-8", errors="replace") as f:
                    found |= set(f)
            except OSError:
                pass
    return found


# --- targets ----------------------------------------------------------------------------------------


def give_way(target):
    """It is there all the time, and never rests: what runs beside it goes first."""
    for tid in os.listdir(f"/proc/{target.pid}/task"):
        os.setpriority(os.PRIO_PROCESS, int(tid), 10)


class Busy:
    """It allocates, forks, takes signals and waits, and checks all of it."""

    def __init__(self):
        self.target = Target("inject_busy", "work", "fork", "signal", "read", "poll", "nanosleep")
        has_worked(self.target.pid, 0.3)
        give_way(self.target)
        self.threads = len(os.listdir(f"/proc/{self.target.pid}/task"))
        self.usual = max(self._rate() for _ in range(5))

    def _report(self):
        return {line[0]: line[1:] for line in self.target.ask("report")}

    def _rate(self):
        """Rounds of work for a second of its CPU time."""
        work, cpu = self._report()["work"][0], cpu_clock(self.target.pid)
        time.sleep(0.1)
        return (self._report()["work"][0] - work) / max(cpu_clock(self.target.pid) - cpu, 1) * 1e9

    def check(self, what):
        before, rates = self._report(), []
        equal(before["errors"], [0], f"{what}: what the target found wrong")
        equal(before["signals"][1], before["signals"][0], f"{what}: signals that the target took, of those sent to it")
        # A trap at each call of malloc would make it a tenth; a machine that others use, no less than half.
        deadline = time.monotonic() + 20
        while not rates or (max(rates) < self.usual / 2 and time.monotonic() < deadline):
            rates.append(self._rate())
        check(max(rates) >= self.usual / 2, f"{what}: the target does {max(rates):.0f} rounds a second, {self.usual:.0f} before")
        after = self._report()
        for name in ("work", "fork", "read", "poll", "nanosleep"):
            # A wait may take a tenth of a second.
            more = after
            while more[name] == before[name] and time.monotonic() < deadline:
                time.sleep(0.02)
                more = self._report()
            check(more[name] > before[name], f"{what}: {name} of the target does not go on: {before}, then {more}")
        # A library that waits for what does not come gives up after 10 s.
        with_agents = time.monotonic() + 15
        while agents(self.target.pid) and time.monotonic() < with_agents:
            time.sleep(0.05)
        equal(agents(self.target.pid), 0, f"{what}: threads of the library in the target")


class Restless:
    """It changes its heap, checks it, and waits in calls that must not end early; it has no children."""

    def __init__(self):
        self.target = Target("heap_restless", 1)
        give_way(self.target)
        self.before = self._state()

    def _state(self):
        return dict(zip(("rounds", "errors", "sigchlds"), self.target.ask("state")[0][1:]))

    def check(self, what):
        deadline = time.monotonic() + 20
        while (now := self._state())["rounds"] <= self.before["rounds"] and time.monotonic() < deadline:
            time.sleep(0.02)
        check(now["rounds"] > self.before["rounds"], f"{what}: the target does not go on: {self.before}, then {now}")
        equal([now["errors"], now["sigchlds"]], [0, 0], f"{what}: what the target found wrong, and signals of children")
        self.before = now
        # A twin that nobody reaps stays a zombie; none runs.
        while (running := [pid for pid in children_of(self.target.pid) if state_of(pid) not in "ZX"]) and time.monotonic() < deadline:
            time.sleep(0.02)
        equal(running, [], f"{what}: twins of the target that run")


def state_of(pid):
    """Of a process or thread; X: it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def free_of_tracers(pid, what):
    """None of its threads is stopped, and nobody traces them: at once, as the kernel lets go of them with their tracer."""
    for _ in range(2):  # one that stops just now would be seen again
        seen = []
        for tid in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8", errors="replace") as f:
                    text = f.read()
            except OSError:
                continue
            if re.search(r"^State:\s+[tT]", text, re.M) or not re.search(r"^TracerPid:\s+0$", text, re.M):
                seen.append((tid, re.findall(r"^(?:State|TracerPid):.*", text, re.M)))
        if not seen:
            return
        time.sleep(0.05)
    check(False, f"{what}: threads of the target are stopped or traced: {seen}")


def in_session(leader):
    """Processes of the session, zombies left out."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                head, _, rest = f.read().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        if int(fields[3]) == leader and fields[0] not in "ZX":
            found.append((int(head.split()[0]), head.split("(", 1)[1], fields[0]))
    return found


# --- what is on the disk ----------------------------------------------------------------------------


def look_at_files(out, what, counts):
    for top, _, files in os.walk(out):
        for name in files:
            path, leaving = os.path.join(top, name), LEAVING.match(name)
            if leaving:
                # It is whole, too, by the name that it was to have.
                counts["hidden files"] += 1
                copy = os.path.join(scratch("leaving"), leaving[1])
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copy(path, copy)
                path = copy
            whole_file(path, what)
            counts["files"] += 1


# --- commands ---------------------------------------------------------------------------------------


# `statuses`: 3 where what the target does cannot all be recorded, as its children cannot by a library.
Kind = collections.namedtuple("Kind", "name argv restless service statuses", defaults=[False, False, (0,)])


def kinds():
    """argv(pid, out): as it is called. `out` is a directory, or what begins the name of a file."""
    some = ("-d", "0.6", "-o")
    found = [
        Kind("record -p", lambda pid, out: ("-p", pid, *some, out)),
        Kind("record -a", lambda pid, out: ("-a", *some, out)),
        Kind("record --alloc=exact", lambda pid, out: ("-p", pid, "--alloc=exact", "--only", "alloc,oncpu", *some, out)),
        Kind("record --alloc=bursts", lambda pid, out: ("-p", pid, "--alloc=bursts", "--only", "alloc", *some, out)),
        Kind("record -e --count", lambda pid, out: ("-p", pid, "-e", "uprobe:libc:malloc/period=100/", "--count", "libc:free", *some, out)),
        Kind("record --census", lambda pid, out: ("-p", pid, "--census", "0.2", "--only", "offcpu,growth", *some, out), restless=True),
        Kind("record --every --archive", lambda pid, out: ("-p", pid, "--every", "0.2", "--keep", "3", "--only", "oncpu,offcpu", "-d", "0.8",
                                                           "--archive", out)),
        Kind("record -- CMD", lambda pid, out: (*some, out, "--", "sh", "-c", SHELL)),
        Kind("serve", lambda pid, out: ("serve", "-p", pid, "--every", "1", "--listen", "off", "--archive", out), service=True),
        Kind("trace", lambda pid, out: ("trace", "-p", pid, "-d", "0.6", "-o", out + ".log")),
        Kind("heap census", lambda pid, out: ("heap", "census", "-p", pid), restless=True),
        Kind("heap census --twin", lambda pid, out: ("heap", "census", "--twin", "-p", pid), restless=True),
        Kind("heap snapshot", lambda pid, out: ("heap", "snapshot", "--contents", "all", "-p", pid, "-o", out + ".snapshot"), restless=True),
        Kind("heap census --trace", lambda pid, out: ("heap", "census", "--trace", "0.4", "-p", pid)),
        Kind("top", lambda pid, out: ("top", "-b", "-n", "2", "-d", "0.3", "-p", pid)),
    ]
    if X86:
        found += [
            Kind("record --inject", lambda pid, out: ("-p", pid, "--inject", "--alloc-rate", "16K", "--only", "alloc", *some, out)),
            Kind("record --inject --alloc=exact", lambda pid, out: ("-p", pid, "--inject", "--alloc=exact", "--only", "alloc", *some, out),
                 statuses=(0, 3)),
        ]
    return found


class Killer:
    def __init__(self):
        self.dice = random.Random(SEED)
        self.bpf = BpfIds()
        self.busy, self.restless = Busy(), Restless()
        self.before, self.probes = self.bpf.now(), named_probes()
        self.outs, self.took = {}, {}
        self.counts = collections.Counter()
        self.stages = collections.Counter()
        self.undisturbed(kinds()[0])
        self.usual_s = self.took[kinds()[0].name]

    def victim(self, kind):
        return self.restless if kind.restless else self.busy

    def begin(self, kind):
        out = self.outs.setdefault(kind.name, scratch("killed"))
        said = scratch("said")
        with open(said, "wb") as f:
            child = Child([MEMSCOPE, *map(str, kind.argv(self.victim(kind).target.pid, out))], start_new_session=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=f)
        child.said = said
        return child, out

    def stage(self, kind, child, out, begun):
        """What it is doing, by what it has said and written."""
        if not child.alive():
            return "after its end"
        with open(child.said, "rb") as f:
            ready = b"memscope: profiling" in f.read()
        writes = any(os.stat(p).st_mtime > begun and not p.endswith(("trend.csv", "rss_breakdown.csv"))
                     for p in glob.glob(out + "*") + glob.glob(out + "/*") if os.path.isfile(p))
        if not kind.name.startswith(("record", "serve")):
            return "of commands that do not say"
        return "while it wrote" if writes else "at work" if ready else "before it was at work"

    def kill(self, kind, nth):
        what = f"kill {nth} (seed {SEED}), {kind.name}"
        begun = time.time()
        child, out = self.begin(kind)
        time.sleep(self.dice.uniform(0, self.took.get(kind.name, self.usual_s)))
        self.stages[self.stage(kind, child, out, begun)] += 1
        pid = self.victim(kind).target.pid
        if nth % 2:
            os.killpg(child.pid, signal.SIGKILL)  # its writers and its command, too
        else:
            child.process.kill()
        child.process.wait()
        free_of_tracers(pid, what)
        self.look(kind, child, out, what)
        child.end()

    def look(self, kind, child, out, what):
        """All that may be left."""
        deadline = time.monotonic() + GRACE_S
        # What writes a window, or was launched, comes to its end.
        while (left := in_session(child.pid)) and time.monotonic() < deadline:
            time.sleep(0.02)
        equal(left, [], f"{what}: processes of it that are left")
        victim = self.victim(kind)
        text_is_as_its_files(victim.target.pid, f"{what}: bytes of the target's text left changed")
        free_of_tracers(victim.target.pid, what)
        victim.check(what)
        check(victim.target.alive(), f"{what}: the target has ended")
        while (left := self.bpf.now() - self.before - held()) and time.monotonic() < deadline:
            time.sleep(0.05)
        equal(sorted(left), [], f"{what}: BPF objects that nobody holds")
        equal(sorted(named_probes() - self.probes), [], f"{what}: probes in tracefs")
        look_at_files(out, what, self.counts)
        for path in glob.glob(out + ".*"):
            whole_file(path, what)

    def undisturbed(self, kind):
        """It works, and what was left of the killed ones has gone."""
        what = f"left alone (seed {SEED}), {kind.name}"
        begin = time.monotonic()
        of_killed = set(glob.glob(f"{self.outs.get(kind.name)}/*/oncpu-*.pb.gz"))
        child, out = self.begin(kind)
        if kind.service:
            until(lambda: not child.alive() or set(glob.glob(f"{out}/*/oncpu-*.pb.gz")) - of_killed, "a window", FINISH_SEC)
            time.sleep(0.5)
            child.process.terminate()
        try:
            status = child.process.wait(FINISH_SEC)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            status = f"none in {FINISH_SEC} s"
        self.took[kind.name] = min(time.monotonic() - begin, 10)
        with open(child.said, encoding="utf-8", errors="replace") as f:
            check(status in kind.statuses, f"{what}: exit status {status} ({f.read()[-300:]})")
        self.look(kind, child, out, what)
        hidden = [os.path.join(top, f) for top, folders, files in os.walk(out) for f in files + folders
                  if f.startswith(".") and f not in (".memscope", ".memscope.serve")]
        equal(hidden, [], f"{what}: what killed ones have left")
        if "--archive" in child.argv:
            got = json.loads(subprocess.run([MEMSCOPE, "ls", out, "--check", "--json"], capture_output=True, timeout=FINISH_SEC,
                                            check=False).stdout)
            equal((got["missing"], got["damaged"]), ([], []), f"{what}: missing and damaged in the archive")
        child.end()


@fact
def memscope_killed_at_any_moment_leaves_nothing_behind():
    killer, of_all = Killer(), kinds()
    order = [of_all[i % len(of_all)] for i in range(KILLS)]
    killer.dice.shuffle(order)
    for nth, kind in enumerate(order, 1):
        killer.kill(kind, nth)
        if len(failures) > 20:
            break
        if nth % 100 == 0:
            for k in of_all:
                killer.undisturbed(k)
        if nth % 50 == 0:
            print(f"# {nth} kills: {dict(killer.stages)}, {len(failures)} checks failed", flush=True)
    # What has no files is no other afterwards.
    for kind in {kind.name: kind for kind in order if KILLS > 100 or any("OUT" in str(word) for word in kind.argv(1, "OUT"))}.values():
        killer.undisturbed(kind)
    print(f"# seed {SEED}: {sum(killer.stages.values())} kills, {dict(killer.stages)}; {killer.counts['files']} files looked at, "
          f"{killer.counts['hidden files']} of them hidden")


main()
