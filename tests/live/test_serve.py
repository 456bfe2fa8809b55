"""memscope serve as a service: what its manager hears, SIGHUP, SIGTERM, and the windows it leaves."""

import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from containers import *
from harness import *
from serving import Serve, call_numbers, capability_numbers, confined


def group_name():
    return f"memscope-live-{os.getpid()}-{os.urandom(4).hex()}"


def config(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def configured(text, *args, **kw):
    """(a program at work, the file, a service of it with this text in the file)"""
    target, conf = at_a_fifth(), scratch("memscope.conf")
    config(conf, f"pid = {target.pid}\nonly = oncpu\n{text}")
    return target, conf, Serve("--config", conf, *args, **kw).ready()


@fact
def a_unit_is_asked_in_its_runtime_directory():
    folder = scratch("runtime")
    os.mkdir(folder)
    target, _, serve = configured("# of a test\n", env={"RUNTIME_DIRECTORY": folder})
    path = os.path.join(folder, "http.sock")
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(READY_SEC)
        s.connect(path)
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = s.recv(4096)
    check(answer.startswith(b"HTTP/1.1 200"), f"{answer}")
    equal(os.stat(path).st_mode & 0o777, 0o600, "mode of the socket")
    serve.stop()
    target.end()


CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


@fact
def members_of_a_group_ask_the_socket_and_others_do_not():
    folder = scratch("runtime")
    os.mkdir(folder)
    os.chmod(folder, 0o755)
    target, conf, serve = configured("listen-group = daemon\n", env={"RUNTIME_DIRECTORY": folder})
    path = os.path.join(folder, "http.sock")
    equal(os.stat(path).st_mode & 0o777, 0o660, "mode of the socket")
    for group, want in (("daemon", 0), ("games", 1)):
        got = subprocess.run(["setpriv", "--reuid=nobody", f"--regid={group}", "--clear-groups", "/usr/bin/python3", "-c", CONNECT, path],
                             capture_output=True, text=True, check=False)
        equal(got.returncode, want, f"of the group {group}: {got.stderr[-200:]}")
        check(not want or "PermissionError" in got.stderr, got.stderr)
    serve.stop()
    config(conf, f"pid = {target.pid}\nonly = oncpu\nlisten-group = no-such-group\n")
    none = Serve("--config", conf, env={"RUNTIME_DIRECTORY": folder})
    check(none.process.wait(FINISH_SEC) != 0, "a service without the group that was asked for")
    check('there is no group "no-such-group"' in none.stderr, none.stderr)
    target.end()


@fact
def a_reload_is_a_new_run_in_the_same_process_or_nothing_at_all():
    target, conf, serve = configured("# of a test\nevery = 2\n", "-F", 199, env={"WATCHDOG_USEC": "20000000"})
    pid = serve.pid
    config(conf, f"pid = {target.pid}\nevry = 3\n")
    serve.process.send_signal(signal.SIGHUP)
    serve.ready(2)
    check(f"{conf}:2: there is no option \"evry\"" in serve.stderr, f"no word of the mistake: {serve.stderr}")
    check("the run goes on as it was" in serve.stderr, serve.stderr)
    config(conf, f"pid = {target.pid}\nevery = 1\nonly = oncpu\n")
    serve.process.send_signal(signal.SIGHUP)
    serve.ready(3)
    check(serve.alive() and serve.pid == pid, "another process")
    time.sleep(2.2)
    serve.stop()
    heard = serve.manager
    check(heard.count("RELOADING=1") >= 2 and heard.count("STOPPING=1") == 1, f"{heard.messages}")
    windows = serve.windows()
    # What lies between two windows: nothing, but once for the time in which one run followed the other.
    gaps = [b.time_ns - a.time_ns - a.duration_ns for a, b in zip(windows, windows[1:])]
    said = re.search(r"nothing was gathered for ([0-9.]+) (m?s)", serve.stderr)
    check(said, serve.stderr)
    longest = float(said.group(1)) * (1e9 if said.group(2) == "s" else 1e6)
    equal(sum(gap > 50e6 for gap in gaps), 1, f"gaps {gaps}")
    within(max(gaps), 0.8 * longest, 1.2 * longest, "the gap and what is said of it")
    check(windows[-2].duration_ns < 1.5e9, "the new length of windows is not in force")
    equal(serve.leavings(), [], "what is left")
    equal(serve.process.stdout.read(), b"", "stdout")


@fact
def a_manager_hears_of_reloads_and_of_life_as_sd_notify_has_it():
    # sd_notify(3): with RELOADING=1 when that was, in MONOTONIC_USEC, and READY=1 after it; WATCHDOG=1 within WATCHDOG_USEC.
    target, watchdog_s = at_a_fifth(), 6
    conf, word = scratch("memscope.conf"), f"memscope-live-{os.urandom(4).hex()}"
    config(conf, f"pid = {target.pid}\nevery = 60\nonly = oncpu\n")
    running = Serve("--config", conf, env={"WATCHDOG_USEC": str(watchdog_s * 1000000)}).ready()
    other = scratch("other.conf")
    config(other, f"name = {word}\nonly = oncpu\n")
    waiting = Serve("--config", other, env={"WATCHDOG_USEC": str(watchdog_s * 1000000)}).ready()
    for serve in (running, waiting):
        serve.process.send_signal(signal.SIGHUP)
    time.sleep(watchdog_s)
    running.ready(2)
    waiting.ready(2)
    for serve in (running, waiting):
        serve.stop()
        heard = serve.manager
        reloads, ready = heard.heard("RELOADING=1"), heard.heard("READY=1")
        check(reloads and "MONOTONIC_USEC" in reloads[0][1], f"{heard.messages}")
        for at, lines in reloads:
            within(int(lines["MONOTONIC_USEC"]) / 1e6, ready[0][0] - 1, at + 0.001, "when it says that it began to reload")
            check(any(t >= at for t, _ in ready), f"no READY=1 after a reload: {heard.messages}")
        alive = [at for at, _ in heard.heard("WATCHDOG=1")]
        check(max(b - a for a, b in zip(alive, alive[1:])) < watchdog_s, f"times of WATCHDOG=1: {alive}")
        equal(len(heard.heard("STOPPING=1")), 1, "times that it said STOPPING=1")


@fact
def a_stop_in_the_middle_of_a_reload_is_the_end_and_its_windows_are_whole():
    _target, _conf, serve = configured("every = 60\n")
    time.sleep(0.5)
    serve.process.send_signal(signal.SIGHUP)
    serve.manager.wait("STATUS=Writing the last window")
    serve.stop()
    equal(serve.manager.count("STOPPING=1"), 1, "times that it said STOPPING=1")
    equal(len(serve.windows()), 1, f"windows: {serve.stderr}")
    equal(serve.leavings(), [], "what is left")


@fact
def mistakes_in_the_file_are_named_by_line_and_end_with_status_2():
    conf = scratch("memscope.conf")

    def says(text, mode=0o600):
        config(conf, text, mode)
        done = subprocess.run([MEMSCOPE, "serve", "--config", conf, "--check-config"], capture_output=True, text=True,
                              timeout=20)
        return done.returncode, done.stderr

    equal(says("archive = /tmp/x\nkeep = 7d,20G\n"), (0, ""), "a good one")
    for text, line, words in (("archive = /tmp/x\nevery = soon\n", 2, "is not a number"),
                              ("archive = /tmp/x\n\nonly = oncpu,of\n", 3, "--only takes"),
                              ("archive = /tmp/x\nkeep = much\n", 2, "--keep"),
                              ("archiv = /tmp/x\n", 1, "did you mean archive?")):
        status, stderr = says(text)
        equal(status, 2, text)
        check(f"{conf}:{line}: " in stderr and words in stderr, f"{text!r}: {stderr}")
    status, stderr = says("archive = /tmp/x\n", 0o666)
    check(status == 2 and "chmod go-w" in stderr, stderr)


@fact
def the_journal_has_few_lines_and_their_priority():
    target = at_a_fifth()
    serve = Serve("-p", target.pid, "--every", 1, "--only", "oncpu", "-q").ready()
    serve.process.send_signal(signal.SIGHUP)
    time.sleep(1.5)
    serve.process.send_signal(signal.SIGUSR1)
    time.sleep(0.7)
    serve.stop(signal.SIGINT)
    equal(serve.stderr, "memscope: SIGHUP: there is no --config FILE to read again: the run goes on\n", "stderr")
    check(len(serve.windows()) >= 3, "windows are missing")
    # Priorities only where stderr is the journal's.
    read, write = os.pipe()
    stream = os.fstat(write)
    done = subprocess.Popen([MEMSCOPE, "serve"], stderr=write,
                            env={**os.environ, "JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino}"})
    os.close(write)
    equal(done.wait(20), 2, "exit status")
    check(os.read(read, 1000).startswith(b"<3>memscope: serve needs --archive"), "no priority")
    os.close(read)


@fact
def a_service_goes_on_when_nobody_reads_its_log_any_more():
    target = at_a_fifth()
    where = scratch("archive")
    service = Child([MEMSCOPE, "serve", "-p", str(target.pid), "--archive", where, "--every", "1", "--only", "oncpu", "-v",
                     "--listen", "off"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def windows():
        return len(glob.glob(os.path.join(where, "*", "oncpu-*.pb.gz")))
    until(windows, "a window")
    service.process.stderr.close()
    before = windows()
    until(lambda: windows() >= before + 2 or not service.alive(), "two windows more, each of which is a line of the log")
    service.process.terminate()
    equal(service.process.wait(FINISH_SEC), 0, "exit status")


@fact
@grouped
def targets_are_waited_for_and_found_again():
    # By a pattern that nothing matches yet; then twice in a row.
    word = f"memscope-live-{os.urandom(4).hex()}"
    serve = Serve("-n", word, "--every", 1, "--only", "oncpu", "-F", 199).ready()
    check("STATUS=Waiting: no running process" in serve.manager.messages[0], f"{serve.manager.messages}")
    for times in (2, 3):
        spin = Child(["python3", "-c", f"'{word}'\nwhile True: pass"])
        serve.ready(2 * times - 2)
        has_worked(spin.pid, 0.3)
        spin.end()
        serve.ready(2 * times - 1)
    serve.stop()
    equal(serve.stderr.count("memscope: waiting: no running process"), 3, serve.stderr)
    pids = {s.labels["pid"] for p in serve.windows() for s in p.samples}
    equal(len(pids), 2, "processes in the windows")


@fact
def a_run_that_follows_goes_on_with_what_was_taken_whatever_the_file_says():
    word, conf = f"memscope-live-{os.urandom(4).hex()}", scratch("memscope.conf")
    good = f"name = {word}\nonly = oncpu\nevery = 1\nfrequency = 199\n"
    config(conf, good)
    spin = Child(["/usr/bin/python3", "-c", f"'{word}'\nwhile True: pass"])
    has_worked(spin.pid, 0.1)
    serve = Serve("--config", conf).ready()
    serve.says("profiling process")
    config(conf, good + "evry = 3\n")
    serve.process.send_signal(signal.SIGHUP)
    serve.says("the run goes on as it was")
    said = serve.manager.count("READY=1")
    spin.end()
    serve.ready(said + 1)  # it waits
    spin = Child(["/usr/bin/python3", "-c", f"'{word}'\nwhile True: pass"])
    serve.ready(said + 2)
    has_worked(spin.pid, 0.3)
    # Once the file is right it is read again.
    config(conf, good + "label = turn=2\n")
    serve.process.send_signal(signal.SIGHUP)
    serve.ready(said + 3)
    has_worked(spin.pid, 0.3)
    serve.stop()
    check(spin.pid in {s.labels["pid"] for p in serve.windows() for s in p.samples}, "the second one is in no window")
    check("turn=2" in str(serve.windows()[-1].comments), f"{serve.windows()[-1].comments}")
    spin.end()


@fact
@grouped
def a_run_begins_with_the_groups_that_are_there_and_takes_up_the_others():
    early, late = Group(group_name()), group_name()
    first = Inside(early, "cpu_split", 20000)
    first.say("go")
    serve = Serve("-G", f"{early.dir},/{late}", "--every", 1, "--only", "oncpu", "-F", 199).ready()
    serve.says(f"waiting for /{late}, too")
    group = Group(late)
    second = Inside(group, "cpu_split", 20000)
    second.say("go")
    serve.ready(2)
    has_worked([first.pid, second.pid], 0.3)
    first.end()
    second.end()
    time.sleep(0.5)
    check(serve.alive(), "it ended with its targets")
    serve.stop()
    pids = {s.labels["pid"] for p in serve.windows() for s in p.samples}
    equal(pids, {first.pid, second.pid}, "processes in the windows")


def of_the_unit(key):
    """The words of a setting in the unit that is installed."""
    unit = os.path.join(os.path.dirname(__file__), "..", "..", "user", "packaging", "memscope.service")
    with open(unit, encoding="utf-8") as f:
        return next(line.split("=", 1)[1].split() for line in f if line.startswith(key + "="))


@fact
def a_service_works_with_what_its_unit_leaves_it():
    if not shutil.which("systemd-analyze"):
        skip("systemd-analyze is not installed")
    program = "import time\ndef hot():\n    for i in range(100000): pass\nwhile True: hot(); time.sleep(0.001)"
    target = Child(["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", program])
    prefix = confined(capability_numbers(of_the_unit("CapabilityBoundingSet")),
                      call_numbers(of_the_unit("SystemCallFilter")))
    serve = Serve("-p", target.pid, "--every", 60, "-F", 199, prefix=prefix).ready()
    has_worked(target.pid, 0.5)
    serve.stop()
    check(not re.search("not available|cannot|not permitted|refused", serve.stderr), serve.stderr)
    check(serve.windows()[0].sum("samples/count", "PyEval_EvalCode", pid=target.pid) > 0, "no names of the target's functions")
    for source in ("offcpu", "growth"):
        check(len(serve.windows(source)) == 1, f"no {source}")
    check(serve.windows("offcpu")[0].sum("blocked/nanoseconds", "schedule") > 0, "no names of the kernel's functions")
    with open(glob.glob(os.path.join(serve.archive, "*", "summary-*.txt"))[0], encoding="utf-8") as f:
        summary = f.read()
    check("unavailable" not in summary, summary)


main()
