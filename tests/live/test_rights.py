"""Whoever has the capabilities that memscope needs may profile, root or not; whoever lacks one reads which."""

import json
import os
import shutil
import subprocess

from harness import *

NOBODY = 65534
ENOUGH = ["bpf", "perfmon", "sys_ptrace", "dac_read_search", "syslog"]


def as_user(caps, *args, env=None):
    """memscope as a user without any right but these, ambient, so that they are kept over exec."""
    if not shutil.which("setpriv"):
        raise Skip("setpriv is not installed")
    listed = ",".join(f"+{c}" for c in caps)
    given = ["--inh-caps", listed, "--ambient-caps", listed, "--bounding-set", f"-all,{listed}"] if caps else \
        ["--inh-caps", "-all", "--ambient-caps", "-all", "--bounding-set", "-all"]
    return subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *given, MEMSCOPE, *map(str, args)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=env, check=False)


def folder():
    out = scratch("out")
    os.mkdir(out)
    os.chown(out, NOBODY, NOBODY)
    return out


@fact
def a_user_with_capabilities_profiles_a_process_of_root():
    target, out = Target("cpu_split", 600000), folder()
    target.say("go")
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
def doctor_says_what_a_user_has_and_lacks():
    rows = {r["name"]: r for r in json.loads(as_user(ENOUGH, "doctor", "--json").stdout)["checks"]}
    equal(rows["privileges"]["state"], "limited", f"{rows['privileges']}")
    check("CAP_SYS_ADMIN" in rows["privileges"]["why"] and "CAP_BPF" not in rows["privileges"]["why"], f"{rows['privileges']}")
    for name in ("bpf", "perf-events", "ring-buffer", "kernel-names", "other-processes"):
        equal(rows[name]["state"], "ok", f"{rows[name]}")
    rows = {r["name"]: r for r in json.loads(as_user([], "doctor", "--json").stdout)["checks"]}
    equal(rows["privileges"]["state"], "missing", f"{rows['privileges']}")
    check("sudo" in rows["privileges"]["todo"], f"{rows['privileges']}")


@fact
def root_of_a_user_namespace_reads_that_it_is_one():
    got = subprocess.run(["unshare", "--user", "--map-root-user", MEMSCOPE, "-p", str(os.getpid()), "-d", "1"], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=60, check=False)
    if "unshare failed" in got.stderr:
        raise Skip("no user namespaces here: " + got.stderr.strip())
    equal((got.returncode, got.stderr.count("\n")), (1, 1), f"exit status and lines of {got.stderr}")
    check("user namespace" in got.stderr, got.stderr)


main()
