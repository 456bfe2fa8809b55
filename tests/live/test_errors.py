"""What goes wrong is told in one sentence, with the right exit status, and nothing is lost."""

import json
import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ET

from harness import *

DONE, NOTHING, USAGE, PARTIAL = 0, 1, 2, 3


def fails(args, status, *words, **kw):
    """memscope ends with `status`, soon, and says one sentence with all these words."""
    run = Run(*args, **kw)
    run.finish()
    equal(run.status, status, f"exit status of memscope {' '.join(map(str, args))}")
    said = run.stderr.strip()
    check(said.startswith("memscope: "), f"stderr does not begin with `memscope: `: {said!r}")
    for word in words:
        check(re.search(word, said, re.I), f"{word!r} is not in {said!r}")
    check("Traceback" not in said and "libbpf:" not in said, f"raw messages shown: {said!r}")
    return run


@fact
def unknown_option_is_wrong_usage():
    fails(("--no-such-option",), USAGE, "no-such-option")


@fact
def rate_that_is_no_number_is_wrong_usage():
    fails(("-p", os.getpid(), "-F", "many"), USAGE, "many")
    fails(("-p", os.getpid(), "-d", "-5"), USAGE)
    fails(("-p", "12x"), USAGE, "12x")
    fails(("-p", os.getpid(), "--only", "oncpu,nonsense"), USAGE, "nonsense")


@fact
def doctor_recognizes_a_process_that_has_ended_and_was_not_waited_for():
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        got = subprocess.run([MEMSCOPE, "doctor", "-p", str(child.pid)], capture_output=True,
                             timeout=FINISH_SEC, check=False, text=True)
    equal((got.returncode, got.stdout), (NOTHING, ""), "exit status and words")
    check("has ended" in got.stderr and got.stderr.count("\n") == 1, got.stderr)


@fact
def number_below_the_range_is_refused_with_the_range():
    fails(("-p", os.getpid(), "--max-overhead=-1"), USAGE, "max-overhead: -1 is out of range")
    fails(("-p", os.getpid(), "-F", "-99"), USAGE, "frequency: -99 is out of range")


@fact
def cpu_that_is_not_there_is_wrong_usage_and_named_with_those_that_are():
    with open("/sys/devices/system/cpu/online", encoding="ascii") as f:
        online = f.read().strip()
    run = fails(("-p", os.getpid(), "-C", "0,4095", "-d", 1), USAGE, "CPU 4095", re.escape(online))
    check(not os.path.exists(run.out), "an output directory was left behind")


@fact
def pattern_that_is_no_regular_expression_is_wrong_usage():
    run = fails(("-n", "[", "-d", 1), USAGE, "regular expression", re.escape('"["'))
    check(not os.path.exists(run.out), "an output directory was left behind")


@fact
def census_of_the_whole_host_is_wrong_usage():
    fails(("-a", "--census", "3"), USAGE, "--census is of one process")


@fact
def no_target_at_all_is_wrong_usage():
    fails(("-d", 1), USAGE)


@fact
def unknown_pid_is_named():
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as f:
        pid = int(f.read()) - 1
    if os.path.exists(f"/proc/{pid}"):
        skip(f"process {pid} exists")
    run = fails(("-p", pid, "-d", 1), NOTHING, str(pid))
    check(not os.path.exists(run.out), "an output directory was left behind")


@fact
def pid_that_dies_at_once_is_no_crash():
    for delay in (0, 0.02, 0.1):
        child = Child(["/bin/sleep", "60"])
        run = Run("-p", child.pid, "-d", 3600)
        time.sleep(delay)
        child.end()
        run.finish()  # it would go on for an hour
        check(run.status in (DONE, NOTHING, PARTIAL), f"exit status {run.status}: {run.stderr}")


@fact
def kernel_thread_is_sampled_or_refused_with_a_reason():
    # 2 is kthreadd. It has no user memory; it can still be sampled, or be refused clearly.
    run = Run("-p", 2, "-d", 1)
    run.finish()
    check(run.status in (DONE, NOTHING, PARTIAL), f"exit status {run.status}")
    if run.status != DONE:
        check("kernel thread" in run.stderr, f"the reason is not named: {run.stderr!r}")


@fact
def output_directory_that_is_a_file_is_named():
    path = scratch("file")
    with open(path, "w", encoding="ascii"):
        pass
    fails(("-p", os.getpid(), "-d", 1), NOTHING, re.escape(path), out=path)
    equal(os.path.getsize(path), 0, "size of that file")


@fact
def full_disk_is_reported_and_no_half_file_is_left():
    need("mount", "umount")
    where = scratch("full")
    os.mkdir(where)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", where],
                      check=False, capture_output=True).returncode:
        skip("cannot mount a tmpfs")
    try:
        target = Target("cpu_split", 300)
        # Fill it but for one page, so that the run starts and its files do not fit.
        with open(os.path.join(where, "filler"), "wb") as f:
            f.write(bytes(8192))
        run = Run("-p", target.pid, "-F", 999, out=os.path.join(where, "out"))
        try:
            run.ready()
            target.ask("go")
            run.stop()
        except Broken:
            run.finish()
        equal(run.status, NOTHING, "exit status")
        check(re.search("no space|disk", run.stderr, re.I),
              f"the cause is not named: {run.stderr!r}")
        there = set(os.listdir(os.path.join(where, "out")))
        lost = set(re.split(r"[,\s]+", " ".join(re.findall(r"not written: (.*)", run.stderr))))
        listed = set(json.loads(run.stdout)["files"])
        equal(listed - there, set(), "files that are listed and not there")
        equal(lost & there, set(), "files that are there and said not to be written")
        check({"summary.txt", "summary.json"} <= lost | there, f"{lost} and {there} have no summary")
        for root, _, files in os.walk(os.path.join(where, "out")):
            for name in files:
                path = os.path.join(root, name)
                if name.endswith(".pb.gz"):
                    pprof_reader.read(path)
                elif name.endswith(".svg"):
                    ET.parse(path)
                elif name.endswith(".folded"):  # an empty one is whole: nothing was allocated
                    with open(path, encoding="utf-8") as f:
                        check(f.read()[-1:] in ("", "\n"), f"{name} ends inside a line")
    finally:
        subprocess.run(["umount", "-l", where], check=False)


@fact
def what_is_printed_to_a_closed_descriptor_goes_into_no_file():
    target = at_a_fifth()
    for closed, status in ((">&-", PARTIAL), (">&- 2>&- <&-", PARTIAL), ("2>&- <&-", DONE)):
        out = scratch("closed")
        got = subprocess.run(["sh", "-c", f'exec "$0" "$@" {closed}', MEMSCOPE, "-p", str(target.pid), "-F", "499",
                              "-d", "0.5", "-o", out], capture_output=True, timeout=FINISH_SEC, check=False, text=True)
        equal(got.returncode, status, f"exit status with {closed} ({got.stderr!r})")
        if "2>" not in closed:
            check("Bad file descriptor" in got.stderr, f"with {closed} it says {got.stderr!r}")
        with open(f"{out}/summary.json", encoding="utf-8") as f:
            json.load(f)
        for name in os.listdir(out):
            if name.endswith(".pb.gz"):
                pprof_reader.read(os.path.join(out, name))
            if name.endswith(".csv"):
                with open(os.path.join(out, name), encoding="utf-8") as f:
                    check("memscope" not in f.read(), f"words of memscope are in {name}")
        shutil.rmtree(out)


@fact
def a_target_that_has_ended_still_has_its_name_and_command_line():
    target = Target("cpu_split", 600000)
    run = Run("-p", target.pid, "--only", "oncpu")
    run.ready()
    target.say("go")
    target.process.kill()
    target.process.wait()
    run.finish()
    with open(os.path.join(run.out, "summary.txt"), encoding="utf-8") as f:
        head = f.read().split("\n\n", maxsplit=1)[0]
    check(head.startswith(f"cpu_split (pid {target.pid})"), f"it begins with {head!r}")
    check("cpu_split 600000\n" in head, f"no command line in {head!r}")


@fact
def counts_of_samples_at_different_rates_are_said_to_be_that():
    target = Target("cpu_split", 600000)
    target.say("go")
    outs = []
    for hz in (99, 499):
        run = Run("-p", target.pid, "--only", "oncpu", "-F", hz, "-d", 0.5)
        run.finish()
        outs.append(os.path.join(run.out, "oncpu.pb.gz"))
    for how, said in (((), True), (("--value", "cpu"), False), (("--normalize",), False)):
        got = subprocess.run([MEMSCOPE, "diff", *how, *outs], capture_output=True, timeout=FINISH_SEC, check=False, text=True)
        equal(got.returncode, DONE, f"exit status of diff {how} ({got.stderr!r})")
        equal("different rates" in got.stderr, said, f"diff {how} speaks of the rates ({got.stderr!r})")


@fact
def user_without_rights_learns_what_to_do():
    need("setpriv")
    target = Target("cpu_split", 100)
    # A place that user may run it from and write to.
    where = scratch("nobody")
    os.mkdir(where, 0o777)
    os.chmod(where, 0o777)
    program = shutil.copy(MEMSCOPE, where)
    prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
              "--inh-caps=-all", "--bounding-set=-all")
    if subprocess.run([*prefix, "/bin/true"], check=False, capture_output=True).returncode:
        skip("setpriv cannot drop privileges here")
    if subprocess.run([*prefix, "/usr/bin/test", "-x", program], check=False, capture_output=True).returncode:
        skip(f"that user may not run what is in {where} (TMPDIR)")
    got = subprocess.run([*prefix, program, "-p", str(target.pid), "-d", "1",
                          "-o", os.path.join(where, "out")],
                         capture_output=True, check=False, timeout=FINISH_SEC, stdin=subprocess.DEVNULL)
    said = got.stderr.decode()
    equal(got.returncode, NOTHING, "exit status")
    check(re.search("root|sudo|CAP_", said), f"it does not say what to do: {said!r}")
    check(len(said.strip().splitlines()) <= 2, f"more than a sentence: {said!r}")


@fact
def pattern_that_matches_no_process_says_so():
    word = f"7f3a-{os.getpid()}"  # this very test may be at work once more
    fails(("-n", f"no process has this in its command line {word}", "-d", 1), NOTHING, word)


@fact
def pattern_that_matches_several_lists_them():
    seconds = f"61.{os.getpid()}"
    a = Child(["/bin/sleep", seconds])
    b = Child(["/bin/sleep", seconds])
    run = fails(("-n", f"sleep {seconds}", "-d", 1), NOTHING)
    for child in (a, b):
        check(str(child.pid) in run.stderr, f"{child.pid} is not listed: {run.stderr!r}")


@fact
def pattern_that_matches_one_profiles_it():
    ms = f"301.{os.getpid()}"
    target = Target("cpu_split", ms)
    run, _ = record(("-n", f"cpu_split {ms}", "-F", 999, "--only", "oncpu"),
                    lambda: target.ask("go"))
    equal({s.labels.get("pid") for s in run.profile("oncpu").samples}, {target.pid}, "processes")


@fact
def mistakes_with_files_are_one_sentence():
    where = scratch("files")
    os.makedirs(f"{where}/dir")
    with open(f"{where}/a.folded", "w", encoding="ascii") as f:
        f.write("main;hot 10\nmain;cold 3\n")
    os.makedirs(f"{where}/run")
    shutil.copy(f"{where}/a.folded", f"{where}/run/oncpu.folded")
    with open(f"{where}/run/trend.csv", "w", encoding="ascii") as f:
        f.write("timestamp,rss_kb\n2026-03-01 00:00:00,100\n2026-03-01 00:00:01,110\n")
    for name, text in (("empty", ""), ("text", "hello\n"), ("a.svg", "<?xml version='1.0'?>\n<svg/>\n"),
                       ("perf.data", "PERFILE2\0\0"), ("json", '{\n"a": 1\n}\n'),
                       ("sheet", "\ufefftimestamp,rss_kb\r\n2026-03-01 00:00:00,100\r\n"),
                       ("cut", "p 1 1.0: 5 cycles:\n\t1 f (/x)\n\np 1 1.1: 5 cycles:\n\t1 f (/x)\n")):
        with open(f"{where}/{name}", "w", encoding="utf-8", newline="") as f:
            f.write(text)
    os.symlink("nowhere", f"{where}/dangling")
    for line, status, words in (
            ("flame nope", NOTHING, "nope: .*No such file"), ("flame empty", NOTHING, "is empty"),
            ("flame dangling", NOTHING, "No such file"), ("flame text", NOTHING, "no line is a folded"),
            ("flame dir", NOTHING, "no profile in it"), ("flame a.svg", NOTHING, "is a picture"),
            ("flame perf.data", NOTHING, "perf script"), ("flame json", NOTHING, "is JSON"), ("help help", DONE, ""), ("flame cut -o cut.svg", PARTIAL, "truncated perf script output .*: 1"),
            ("flame a.folded -o dir/no/x.svg", NOTHING, "No such file"),
            ("flame a.folded -o x.png", USAGE, "x.png"), ("flame a.folded -o dir", USAGE, "dir"),
            ("convert a.folded -o /dev/full --format folded", NOTHING, "No space left"),
            ("convert text -o a.folded", NOTHING, "no line is a folded"),
            ("diff run nope", USAGE, "nope: No such file"), ("diff a.folded nope", NOTHING, "No such file"),
            ("diff a.folded", USAGE, "which two"), ("diff a.folded -- a.folded -- a.folded", USAGE, "given twice"), ("merge a.folded", USAGE, "which profiles"),
            ("merge a.folded nope -o b.folded", NOTHING, "No such file"),
            ("trend nope", NOTHING, "No such file"), ("trend text", NOTHING, "not a memory log"),
            ("trend dir", NOTHING, "dir: there is neither a trend.csv nor a window in it"), ("trend run", DONE, ""), ("trend run -30m..", USAGE, "run is a log, which has no windows"), ("trend sheet", DONE, ""),
            ("clean --keep 1 text", NOTHING, "Not a directory"), ("clean --keep 1 dir", NOTHING, "there is no run or window of memscope here"),
            ("-p 1 -p 2", USAGE, "given twice")):
        got = subprocess.run([MEMSCOPE, *line.split()], cwd=where, capture_output=True, timeout=FINISH_SEC, check=False,
                             stdin=subprocess.DEVNULL, text=True)
        equal(got.returncode, status, f"exit status of memscope {line} ({got.stderr.strip()})")
        if status != DONE:
            equal(got.stderr.count("\n"), 1, f"lines on stderr of memscope {line}: {got.stderr!r}")
            check(got.stderr.startswith("memscope: ") and re.search(words, got.stderr),
                  f"memscope {line} says {got.stderr!r}, not {words!r}")
    with open(f"{where}/a.folded", encoding="ascii") as f:
        equal(f.read(), "main;hot 10\nmain;cold 3\n", "a file that was to be written when all failed")


@fact
def output_that_cannot_be_printed_is_reported():
    where = scratch("full")
    os.makedirs(where)
    with open(f"{where}/a.folded", "w", encoding="ascii") as f:
        f.write("main;hot 10\n")
    with open(f"{where}/log.csv", "w", encoding="ascii") as f:
        f.write("timestamp,rss_kb\n2026-03-01 00:00:00,100\n2026-03-01 00:00:01,110\n")
    target = at_a_fifth()
    run = ["-p", str(target.pid), "--only", "oncpu", "-d", "0.3", "-o", f"{where}/run"]
    for args, status in ((["report", "a.folded"], NOTHING), (["trend", "log.csv"], NOTHING),
                         (["--help"], NOTHING), (["--version"], NOTHING), (["diff", "a.folded", "a.folded"], NOTHING),
                         (run, PARTIAL)):
        with open("/dev/full", "w", encoding="ascii") as full:
            got = subprocess.run([MEMSCOPE, *args], cwd=where, stdout=full, stderr=subprocess.PIPE, timeout=FINISH_SEC,
                                 check=False, stdin=subprocess.DEVNULL, text=True)
        equal(got.returncode, status, f"exit status of {args} to a full disk")
        check("No space left" in got.stderr or args[0].startswith("--"), f"{args} says {got.stderr!r}")
        # One that reads the first line and goes is not told of anything.
        got = subprocess.run(["sh", "-c", '"$0" "$@" | head -n 1 >/dev/null', MEMSCOPE, *args], cwd=where,
                             capture_output=True, timeout=FINISH_SEC, check=False, stdin=subprocess.DEVNULL, text=True)
        check("Broken pipe" not in got.stderr, f"{args} says {got.stderr!r} to a reader that goes")
    check(os.path.exists(f"{where}/run/summary.txt"), "the summary is not kept")


main()
