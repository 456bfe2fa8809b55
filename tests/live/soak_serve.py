#!/usr/bin/python3
"""`memscope serve` for an hour on a host that gives it no rest: nothing is lost uncounted, memory stays flat, it always answers.

Two services of the whole host beside each other. One goes on, with clients that hang, reloads and a log that is moved away: what
grows would grow in it. The other has a disk that is full and is killed each minute. Both push to a store that comes and goes.
`make soak SOAK=serve`; MEMSCOPE_TEST_SOAK_MIN says how long (SIGUSR1: the time is over). What was seen is in OUT/soak.tsv.
"""

import collections
import glob
import http.client
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

import pprof_reader
from harness import *
from http_serving import free_port
from soak_load import *
from stores import Store

MINUTES = float(os.environ.get("MEMSCOPE_TEST_SOAK_MIN", "4"))
KEEP = os.environ.get("MEMSCOPE_TEST_SOAK_DIR") or os.path.join(BUILD, "soak", "serve")
EVERY = {"steady": 120, "killed": 10}  # the first as a service has it where nobody says otherwise
DISK = 6 << 20         # of the one that is killed: some dozen of its windows
KILL_S, OFF_S = 60, 8  # a life, and how long it is away
ANSWERS_S = 5          # /healthz, where all CPUs are busy
MEMORY = 150 << 20
SETTLE_S = 600         # of a run: what is forgotten after five minutes is forgotten then
over = []


def log(*words):
    print(f"# {time.strftime('%T')}", *words, flush=True)


class Service:
    """memscope serve of the whole host by a configuration, with a log that may be moved."""

    def __init__(self, name, archive):
        self.name, self.archive, self.port, self.log = name, archive, free_port(), os.path.join(KEEP, f"{name}.log")
        self.socket = os.path.join(KEEP, f"{name}.sock")
        self.config = os.path.join(KEEP, f"{name}.conf")
        self.store = Store("pyroscope").begin()
        self.comes = Comes(self.store)
        self.process, self.lives, self.text = None, 0, []
        self.seen = collections.OrderedDict()   # window: {time of profile: samples} of what is pushed
        self.rewrite()

    def rewrite(self, more=""):
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(f"archive = {self.archive}\nevery = {EVERY[self.name]}\nfrequency = 19\nverbose\nkeep = 1d,60\n"
                    f"listen = 127.0.0.1:{self.port}\nlisten = unix:{self.socket}\npush = pyroscope={self.store.url}\n"
                    f"push-timeout = 5\nspool-limit = 64M\n{more}")
        os.chmod(self.config, 0o600)

    def begin(self):
        with open(self.log, "ab") as f:
            self.process = Child([MEMSCOPE, "serve", "--config", self.config], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=f)
        self.lives += 1
        until(lambda: (self.health() or {}).get("status") == "ok", f"{self.name} answers", 300)
        return self

    def get(self, path, timeout=20):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=timeout) as r:
            return r.read().decode()

    def health(self):
        try:
            return json.loads(self.get("/healthz"))
        except OSError:
            return None

    def metrics(self):
        found = {}
        for line in self.get("/metrics").splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                found[name] = float(value)
        return found

    def read_log(self, how=""):
        """Moves the log away, as rotation does by `how`: renamed (the service goes on with the file it has) or copied and cut."""
        with open(self.log, encoding="utf-8", errors="replace") as f:
            text = f.read()
        if how:
            if how == "renamed":
                os.rename(self.log, self.log + ".1")
            else:
                shutil.copy(self.log, self.log + ".1")
                os.truncate(self.log, 0)
            self.text.append(text)
            return "".join(self.text)
        return "".join(self.text) + text

    def look(self):
        """Reads each window that is new: samples by the time of its profile, of what goes to the store."""
        for path in glob.glob(os.path.join(self.archive, "host", "oncpu-*.pb.gz")):
            stamp = os.path.basename(path)[6:-6]
            if stamp in self.seen:
                continue
            try:
                whole = pprof_reader.read(path)
                parts = [pprof_reader.read(p) for p in glob.glob(os.path.join(self.archive, "host", "*", f"oncpu-{stamp}.pb.gz"))]
            except FileNotFoundError:
                continue  # removed meanwhile
            self.seen[stamp] = (whole.time_ns, whole.duration_ns, whole.sum("samples/count"), sum(p.sum("samples/count") for p in parts))

    def listed(self, *args):
        got = subprocess.run([MEMSCOPE, "ls", self.archive, "--json", *args], capture_output=True, text=True, timeout=120, check=False)
        return got.returncode, json.loads(got.stdout or "{}"), got.stderr

    def waiting(self):
        return glob.glob(os.path.join(self.archive, ".push", "*", "*.entry"))


class Client(Background):
    """Asks for /healthz twice a second and /metrics each two seconds; how long the answers took."""

    def __init__(self, service):
        self.service, self.took, self.failed = service, collections.defaultdict(list), []
        super().__init__()

    def work(self):
        turn = 0
        while not self.over.wait(0.5):
            path = "/healthz" if turn % 4 else "/metrics"
            turn += 1
            begin = time.monotonic()
            try:
                self.service.get(path, 30)
            except OSError as e:
                self.failed.append((round(begin), path, str(e)))
            self.took[path].append(time.monotonic() - begin)


def whole(service, full):
    """The archive as it is listed is there and readable, also through flame and report."""
    status, found, said = service.listed("--check")
    if not found:
        check(False, f"{service.name}: ls says {status}: {said}")
        return None
    # A window may go, or be put in place, while they are looked at.
    missing = [m for m in found["missing"] if service.listed()[1].get("missing")]
    equal((missing, found["damaged"]), ([], []), f"{service.name}: missing, damaged")
    if full and found["windows"]:
        for argv in (["flame", service.archive, "last:3", "--source", "offcpu", "-o", os.path.join(KEEP, "last.svg")], ["report", service.archive, "last:3", "--json"]):
            got = subprocess.run([MEMSCOPE, *argv], capture_output=True, text=True, timeout=120, check=False, preexec_fn=nice)
            equal(got.returncode, 0, f"{service.name}: {argv[0]}: {got.stderr[-300:]}")
            if argv[0] == "report" and not got.returncode:
                json.loads(got.stdout)
    return found


def mount(where, size):
    os.makedirs(where, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", where], capture_output=True, check=False).returncode:
        skip("no file system can be mounted here")


def slope_mib_h(rows):
    """(MiB an hour, its standard error) of [(s, bytes)], from means of minutes: those of neighbours are near each other."""
    minutes = collections.defaultdict(list)
    for t, b in rows:
        minutes[int(t // 60)].append(b)
    if len(minutes) < 4:
        return 0, float("inf")
    xs, ys = zip(*sorted((m / 60, statistics.fmean(v) / 2**20) for m, v in minutes.items()))
    line = statistics.linear_regression(xs, ys)
    rest = sum((y - line.slope * x - line.intercept) ** 2 for x, y in zip(xs, ys))
    mean = statistics.fmean(xs)
    return line.slope, (rest / (len(xs) - 2) / sum((x - mean) ** 2 for x in xs)) ** 0.5


class Soak:
    def __init__(self):
        shutil.rmtree(KEEP, ignore_errors=True)
        os.makedirs(KEEP)
        self.disk = os.path.join(KEEP, "disk")
        mount(self.disk, DISK)
        self.steady = Service("steady", os.path.join(KEEP, "archive"))
        self.killed = Service("killed", os.path.join(self.disk, "archive"))
        self.load, self.workers = Load(), {"computes": Worker(COMPUTES), "switches": Worker(SWITCHES)}
        self.begin = time.monotonic()
        self.reloads_at, self.next_row = [], 0
        self.rows, self.phases, self.kills, self.reloads, self.table = [], [], [], 0, open(os.path.join(KEEP, "soak.tsv"), "w", encoding="utf-8")

    def minutes(self):
        return (time.monotonic() - self.begin) / 60

    def sample(self):
        """A row of the steady service."""
        fds, threads, tree_rss, anon, of_files, cpu = held(self.steady.process.pid)
        try:
            m = self.steady.metrics()
        except OSError:
            return  # between two runs
        row = {"s": time.monotonic() - self.begin, "load": self.load.now, "fds": fds, "threads": threads, "anon": anon, "files": of_files, "tree": tree_rss, "cpu_s": cpu,
               "process": m['memscope_own_memory_bytes{part="process"}'], "maps": m['memscope_own_memory_bytes{part="maps"}'],
               **{state: m[f'memscope_own_allocator_bytes{{state="{state}"}}'] for state in ("used", "free")},
               "ratio": m.get("memscope_own_cpu_ratio", 0), "restarts": m["memscope_memory_restarts"],
               "lost": sum(v for k, v in m.items() if k.startswith("memscope_lost_total")),
               "at_ns": time.time_ns(), "run": m["memscope_run_start_time_seconds"], "oncpu": m['memscope_events_total{event="oncpu_samples"}'],
               "failed": m['memscope_windows_total{result="failed"}'], "heap_spool": len(self.steady.waiting()),
               "hostload": os.getloadavg()[0],
               **{kind: m[f'memscope_run_items{{kind="{kind}"}}'] for kind in ("samples", "label_sets", "stack_frames", "locations", "modules", "strings")}}
        if not self.rows:
            print("\t".join(row), file=self.table)
        self.rows.append(row)
        print("\t".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in row.values()), file=self.table, flush=True)

    def reload(self):
        """A change, a mistake or nothing new; in the first half of the time: in the second one run goes on."""
        how = random.choice(("change", "mistake", "same"))
        self.steady.rewrite({"change": "label = turn=%d\n" % self.reloads, "mistake": "evry = 3\n", "same": ""}[how])
        self.steady.process.process.send_signal(signal.SIGHUP)
        self.reloads += how != "mistake"
        self.reloads_at.append(time.monotonic())
        log("SIGHUP:", how)

    def life(self):
        """A minute of the one that is killed."""
        begun = time.time()
        self.killed.begin()
        ready = time.monotonic()
        end = ready + KILL_S - OFF_S + random.uniform(-5, 5)
        asked = False
        while time.monotonic() < end and not over:
            time.sleep(1)
            if time.monotonic() >= self.next_row:
                self.next_row = time.monotonic() + 5
                self.sample()
            self.killed.look()
            self.steady.look()
            if not asked and time.monotonic() > end - 20:
                asked = True
                for s in (self.killed,) + (self.steady,) * (self.killed.lives % 5 == 0):
                    s.process.process.send_signal(signal.SIGUSR1)
            check(self.steady.process.alive(), f"steady has ended: {self.steady.read_log()[-800:]}")
            if not self.steady.process.alive() or self.load.broke:  # an hour without its load says nothing
                over.append(True)
        self.phases.append(("on", ready + 12, time.monotonic()))
        self.killed.process.process.kill()
        self.killed.process.end()
        self.kills.append((begun, time.time()))
        off = time.monotonic()
        self.killed.look()
        whole(self.killed, self.killed.lives % 5 == 0)
        whole(self.steady, self.killed.lives % 5 == 2)
        if self.killed.lives % 3 == 0:
            self.steady.read_log("copied")
        if self.killed.lives % 3 == 1:
            self.killed.read_log("renamed")
        if self.minutes() < MINUTES / 2 and self.killed.lives % 2:
            self.reload()
        time.sleep(max(0, off + OFF_S - time.monotonic()))
        self.phases.append(("off", off + 1, time.monotonic()))


def work_left(soak):
    """Work by CPU second and by second with the second service, by that without it: medians of neighbours in time."""
    for name, worker in soak.workers.items():
        ratios, rates = [], []
        for (a, *on), (b, *off) in zip(soak.phases, soak.phases[1:]):
            if a == b:
                continue
            if a == "off":
                on, off = off, on
            with_it, without = worker.between(*on), worker.between(*off)
            if with_it and without:
                ratios.append(with_it[0] / without[0])
                rates.append(with_it[1] / without[1])
        if ratios:
            log(f"work of {name}: by CPU second {statistics.median(ratios):.3f}, by second {statistics.median(rates):.3f} of that beside one "
                f"service less; {len(ratios)} pairs, {min(ratios):.3f} to {max(ratios):.3f}")


def samples_add_up(soak):
    """What the kernel counted between two looks is in the windows between them, or counted as lost."""
    rows = [r for r in soak.rows if r["run"] == soak.rows[-1]["run"]]
    a, b = rows[0], rows[-1]
    counted, lost = b["oncpu"] - a["oncpu"], b["lost"] - a["lost"]
    # Windows that reach over one of the looks may hold what was before or after it.
    wins = [(w[0], w[0] + w[1], w[2]) for w in soak.steady.seen.values()]
    inside = sum(n for begin, end, n in wins if begin >= a["at_ns"] and end <= b["at_ns"])
    touched = sum(n for begin, end, n in wins if end > a["at_ns"] and begin < b["at_ns"])
    log(f"on-CPU samples of {(b['at_ns'] - a['at_ns']) / 1e9:.0f} s: {counted:g} counted, {inside:g} to {touched:g} in windows, {lost:g} events lost")
    check(inside <= counted <= touched + lost, f"samples: {counted:g} counted, {inside:g} to {touched:g} in windows, {lost:g} lost")


def coverage(service, kills):
    """Gaps between windows are those of kills, of reloads and failures that were said."""
    wins = sorted(service.seen.values())
    gaps = [(a[0] + a[1], b[0] - a[0] - a[1]) for a, b in zip(wins, wins[1:]) if abs(b[0] - a[0] - a[1]) > 50e6]
    return wins, gaps


@fact
def an_hour_of_a_host_that_gives_it_no_rest():
    signal.signal(signal.SIGUSR1, lambda *_: over.append(True))
    soak = Soak()
    log(f"{MINUTES:g} minutes; {KEEP}")
    try:
        soak.steady.begin()
        hanging = Hanging([("127.0.0.1", soak.steady.port), soak.steady.socket], 40)
        client = Client(soak.steady)
        while soak.minutes() < MINUTES and not over:
            soak.life()
            r = soak.rows[-1]
            log(f"minute {soak.minutes():.1f}: {r['process'] / 2**20:.1f}+{r['maps'] / 2**20:.1f} MiB, cpu ratio {r['ratio']:.3f}, {r['cpu_s']:.1f} s, "
                f"{r['fds']} fds, {r['threads']} threads, {len(soak.steady.seen)}+{len(soak.killed.seen)} windows, faults so far {len(failures)}")
        finish(soak, hanging, client)
    finally:
        soak.load.stop()
        for s in (soak.steady, soak.killed):
            s.comes.stop()
            if s.process:
                s.process.end()
        subprocess.run(["umount", "-l", soak.disk], check=False)


def finish(soak, hanging, client):
    client.stop()
    hanging.stop()
    soak.load.stop()
    for b in (client, hanging, soak.load, soak.steady.comes, soak.killed.comes):
        equal(b.broke, None, f"what broke {type(b).__name__}")
    for s in (soak.steady, soak.killed):
        s.comes.stop()
        s.store.always = None
        s.store.answers.clear()
    soak.killed.begin()
    for s in (soak.steady, soak.killed):
        end = time.monotonic() + 330  # a store that did not answer is asked again after five minutes at most
        while s.waiting() and time.monotonic() < end:
            time.sleep(0.5)
            s.look()
        s.process.process.terminate()
        try:
            equal(s.process.process.wait(60), 0, f"{s.name}: exit status")
        except subprocess.TimeoutExpired:
            check(False, f"{s.name}: has not ended in 60 s after SIGTERM")
        s.look()
        found = whole(s, True)
        left = glob.glob(os.path.join(s.archive, "*", ".memscope-*"))
        equal(left, [], f"{s.name}: half-written")
        log(s.name, f"{len(found['windows'])} windows, {found['bytes']} bytes, gaps {found['gaps_ns'] / 1e9:.1f} s, in the spool {len(s.waiting())}")
        wins, gaps = coverage(s, soak.kills)
        log(s.name, f"windows seen: {len(wins)}; gaps (s): {[round(g[1] / 1e9, 2) for g in gaps]}")
        text = s.read_log()
        said = [float(x) * (1 if u == "s" else 0.001) for x, u in re.findall(r"nothing was gathered for ([0-9.]+) (m?s)", text)]
        log(s.name, f"said: {said}")
        pushed = collections.Counter()
        for labels, _, at, totals, _, _ in s.store.items.values():
            if labels.get("__name__") == "process_cpu":
                pushed[at] += totals.get("samples/count", 0)
        want = {w[0]: w[3] for w in wins}
        bare = {at: (n, pushed.get(at, 0)) for at, n in want.items() if pushed.get(at, 0) != n}
        only = {at: n for at, n in pushed.items() if at not in want}
        log(s.name, f"wrong in the store: {s.store.wrong[:3]}, again {s.store.again}; windows whose samples differ: {len(bare)} {list(bare.items())[:8]}; "
            f"in the store alone: {len(only)} {list(only.items())[:8]}")
        equal(s.store.wrong, [], f"{s.name}: what its store found wrong")
        differ = [w for w in wins if w[2] != w[3]]
        equal(len(differ), 0, f"{s.name}: windows whose folders do not add up {differ[:5]}")
        if s is soak.steady:
            equal(len(bare), 0, "steady: windows whose samples are not in the store")
        with open(os.path.join(KEEP, f"{s.name}.all.log"), "w", encoding="utf-8") as f:
            f.write(text)
        with open(os.path.join(KEEP, f"{s.name}.seen.json"), "w", encoding="utf-8") as f:
            json.dump({"seen": s.seen, "pushed": pushed, "kills": soak.kills}, f)
    samples_add_up(soak)
    measured(soak, hanging, client)


def measured(soak, hanging, client):
    for path, took in client.took.items():
        took = sorted(took)
        log(f"{path}: {len(took)} answers, median {took[len(took) // 2] * 1e3:.1f} ms, 99 % {took[len(took) * 99 // 100] * 1e3:.1f} ms, longest {took[-1] * 1e3:.0f} ms")
        check(took[-1] < ANSWERS_S, f"{path} took {took[-1]:.1f} s")
    log(f"clients that hang: {hanging.opened} opened, {hanging.ended} ended by the service")
    # Between two runs nobody listens: of a reload; one that ended for memory fails here, as it should not be.
    equal([f for f in client.failed if not any(at - 2 <= f[0] <= at + 120 for at in soak.reloads_at)], [], "requests that failed")
    log(f"requests that failed beside a reload: {len(client.failed)}")
    rows = soak.rows
    for key in ("fds", "threads"):
        half = max(r[key] for r in rows[: len(rows) // 2]), max(r[key] for r in rows[len(rows) // 2:])
        log(f"{key}: at most {half[0]} in the first half, {half[1]} in the second")
        check(half[1] <= half[0] + 2, f"{key} grow: {half}")
    later = [r for r in rows if r["s"] > min(600, 30 * MINUTES)]
    both = [(r["s"], r["process"] + r["maps"]) for r in later]
    log(f"memory: at most {max(b for _, b in both) / 2**20:.1f} MiB with maps; RSS {max(r['tree'] for r in rows) / 2**20:.1f}; restarts for memory {rows[-1]['restarts']:g}")
    check(max(b for _, b in both) <= MEMORY, "more memory than the limit")
    # A run fills its tables first; the last one began with the last reload.
    settled = max([30 * MINUTES] + [at - soak.begin + SETTLE_S for at in soak.reloads_at])
    slope, error = slope_mib_h([b for b in both if b[0] > settled])
    log(f"slope from minute {settled / 60:.0f} on: {slope:.2f} MiB/h, standard error {error:.2f}")
    check(slope <= 4 + 4 * error, f"memory grows by {slope:.2f} MiB an hour, standard error {error:.2f}")
    ratios = sorted(r["ratio"] for r in rows)
    log(f"memscope_own_cpu_ratio: median {ratios[len(ratios) // 2]:.3f}, highest {ratios[-1]:.3f}; /proc: {(rows[-1]['cpu_s'] - rows[0]['cpu_s']) / (rows[-1]['s'] - rows[0]['s']):.3f}; "
        f"load of the host {statistics.median(r['hostload'] for r in rows):.1f}")
    by = collections.defaultdict(list)
    for a, b in zip(rows, rows[1:]):
        if a["load"] == b["load"] and b["s"] > a["s"]:
            by[a["load"]].append((b["cpu_s"] - a["cpu_s"]) / (b["s"] - a["s"]))
    log("CPU of its processes by load:", ", ".join(f"{k} {statistics.median(v):.3f}" for k, v in by.items()))
    log(f"lost: {rows[-1]['lost']:g}; windows failed {rows[-1]['failed']:g}; SIGHUP {soak.reloads}; kills {len(soak.kills)}")
    work_left(soak)


main()
