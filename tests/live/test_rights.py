"""Whoever has the capabilities that memscope needs may profile, root or not; whoever lacks one reads which."""

import json
import os
import shutil
import subprocess
import time

from harness import *

NOBODY = 65534
ENOUGH = ["bpf", "perfmon", "sys_ptrace", "dac_read_search", "syslog"]


def as_user(caps, *args, env=None, before=()):
    """memscope as a user without any right but these, ambient, so that they are kept over exec."""
    if not shutil.which("setpriv"):
        raise Skip("setpriv is not installed")
    listed = ",".join(f"+{c}" for c in caps)
    given = ["--inh-caps", listed, "--ambient-caps", listed, "--bounding-set", f"-all,{listed}"] if caps else \
        ["--inh-caps", "-all", "--ambient-caps", "-all", "--bounding-set", "-all"]
    return subprocess.run([*before, "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *given, MEMSCOPE, *map(str, args)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=env, check=False)


def folder():
    out = scratch("out")
    os.mkdir(out)
    os.chown(out, NOBODY, NOBODY)
    return out


@fact
def a_user_with_capabilities_profiles_a_process_of_root():
    target, out = at_a_fifth(), folder()
    got = as_user(ENOUGH, "-p", target.pid, "-d", 3, "-o", os.path.join(out, "run"), "--alloc=exact")
    target.end()
    equal(got.returncode, 0, f"exit status ({got.stderr})")
    with open(os.path.join(out, "run/summary.json"), encoding="utf-8") as f:
        summary = json.load(f)
    with open(os.path.join(out, "run/oncpu.folded"), encoding="utf-8") as f:
        oncpu = f.read()
    check("hot_70" in oncpu, f"on-CPU stacks without the program's functions: {oncpu[:500]}")
    check(os.path.getsize(os.path.join(out, "run/offcpu.folded")) > 0, f"no waits: {summary.get('notes')}")
    equal({os.stat(os.path.join(out, "run", name)).st_uid for name in os.listdir(os.path.join(out, "run"))}, {NOBODY}, "whose the files are")


@fact
def what_is_missing_is_named():
    for caps, want in (([], "run it with sudo"), (["perfmon", "sys_ptrace"], "CAP_BPF, which"), (["bpf", "sys_ptrace"], "CAP_PERFMON, which")):
        got = as_user(caps, "-p", os.getpid(), "-d", 1)
        equal((got.returncode, got.stderr.count("\n")), (1, 1), f"exit status and lines of {got.stderr}")
        check(want in got.stderr, f"{caps}: {got.stderr}")


@fact
def a_process_that_proc_hides_is_said_to_be_hidden():
    target = Target("cpu_split", 600000)
    hides = ["unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh"]
    got = as_user(["bpf", "perfmon"], "-p", target.pid, "-d", 1, before=hides)
    if "mount:" in got.stderr:
        skip(f"no /proc of its own here: {got.stderr}")
    equal((got.returncode, got.stderr.count("\n")), (1, 1), f"exit status and lines of {got.stderr}")
    check(f"process {target.pid} is hidden from this user" in got.stderr and "CAP_SYS_PTRACE" in got.stderr, got.stderr)
    target.end()
    got = as_user(["bpf", "perfmon"], "-p", target.pid, "-d", 1, before=hides)
    check(f"there is no process {target.pid}" in got.stderr, got.stderr)


@fact
def doctor_says_what_a_user_has_and_lacks():
    rows = {r["name"]: r for r in json.loads(as_user(ENOUGH, "doctor", "--json").stdout)["checks"]}
    equal(rows["privileges"]["state"], "limited", f"{rows['privileges']}")
    check("CAP_SYS_ADMIN" in rows["privileges"]["why"] and "CAP_BPF" not in rows["privileges"]["why"], f"{rows['privileges']}")
    for name in ("bpf", "perf-events", "ring-buffer", "kernel-names", "other-processes"):
        equal(rows[name]["state"], "ok", f"{rows[name]}")
    rows = {r["name"]: r for r in json.loads(as_user([], "doctor", "--json").stdout)["checks"]}
    equal(rows["privileges"]["state"], "missing", f"{rows['privileges']}")
    check("sudo" in rows["privileges"]["todo"], f"{rows['privileges']}")


# By number (linux/capability.h): what base/rights.c keeps in each phase. A phase has no other.
NUMBERS = {"chown": 0, "dac_override": 1, "dac_read_search": 2, "fowner": 3, "kill": 5, "setgid": 6, "setuid": 7, "ipc_lock": 14, "sys_ptrace": 19,
           "sys_admin": 21, "sys_nice": 23, "sys_resource": 24, "syslog": 34, "perfmon": 38, "bpf": 39}
FILES = {"sys_ptrace", "dac_read_search", "dac_override", "fowner", "setuid", "setgid"}
WRITE = FILES | {"syslog"}
RECORD = WRITE | {"bpf", "perfmon", "chown", "sys_admin", "sys_resource", "kill", "sys_nice", "ipc_lock"}
MAKER = {"setuid", "setgid", "kill"}


def mask(names):
    return sum(1 << NUMBERS[n] for n in names)


def status(pid):
    """Of a process that may be gone: {}."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    except OSError:
        return {}


def held(pid):
    """(permitted, effective) capabilities; None: it is gone."""
    s = status(pid)
    return (int(s["CapPrm"], 16), int(s["CapEff"], 16)) if "CapPrm" in s else None


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


@fact
def each_phase_has_its_rights_and_no_other():
    target, out = at_a_fifth(), scratch("out")
    run = subprocess.Popen([MEMSCOPE, "-p", str(target.pid), "-d", "4", "--every", "1", "-o", out], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    writers, makers, cells, threads = set(), set(), {}, set()
    while run.poll() is None:
        for child in children(run.pid):
            name = status(child).get("Name")
            if name == "memscope-cells":
                makers.add(held(child))
                for cell in children(child):
                    s = status(cell)
                    # Until it is one, it is as the maker is: nothing is read before.
                    if s.get("Seccomp") == "2":
                        cells[cell] = s
            elif name == "memscope":
                writers.add(held(child))
        if os.path.isdir(out) and any(n.startswith("oncpu") for n in os.listdir(out)):
            threads |= {held(f"{run.pid}/task/{t}") for t in os.listdir(f"/proc/{run.pid}/task")} if os.path.isdir(f"/proc/{run.pid}") else set()
        time.sleep(0.0005)
    target.end()
    equal(run.returncode, 0, f"exit status ({run.stderr.read()})")
    host = held("self")[0]
    equal({t for t in threads if t}, {(mask(RECORD) & host,) * 2}, "what threads of a run hold, after its first window")
    check((mask(WRITE) & host,) * 2 in writers, f"no writer of windows with its rights: {writers}")
    check((mask(MAKER) & host,) * 2 in makers, f"the maker of cells: {makers}")
    check(cells, "no cell was seen")
    for pid, s in cells.items():
        equal((int(s["CapPrm"], 16), int(s["CapEff"], 16), s["NoNewPrivs"]), (0, 0, "1"), f"a cell ({s['Name']})")
        equal(set(s["Uid"].split()), {str(0x70000000 + pid)}, "whose a cell is")


@fact
def commands_for_files_have_no_right_for_the_kernel():
    run = subprocess.Popen([MEMSCOPE, "report", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: (held(run.pid) or (0,))[0] == mask(FILES) & held("self")[0], "it holds what a command for files needs", 10)
    cell = until(lambda: next((c for m in children(run.pid) for c in children(m) if status(c).get("Seccomp") == "2"), None), "a cell reads", 10)
    equal(held(cell), (0, 0), "the cell that reads standard input")
    said, _ = run.communicate("main;work 3\n")
    equal(run.returncode, 0, "exit status")
    check("work" in said, said)


@fact
def root_of_a_user_namespace_reads_that_it_is_one():
    got = subprocess.run(["unshare", "--user", "--map-root-user", MEMSCOPE, "-p", str(os.getpid()), "-d", "1"], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=60, check=False)
    if "unshare failed" in got.stderr:
        raise Skip("no user namespaces here: " + got.stderr.strip())
    equal((got.returncode, got.stderr.count("\n")), (1, 1), f"exit status and lines of {got.stderr}")
    check("user namespace" in got.stderr, got.stderr)


main()
