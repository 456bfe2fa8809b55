#!/usr/bin/python3
"""Programs nobody wrote for this run under libmemscope-alloc.so as they do without it. TAP.

Each is run twice, plainly and with the library in front of its allocator at a rate at which nearly
every second block is a sample, and must give the same output and the same status.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(TOP, "build")))
LIBRARY = os.path.join(BUILD, "libmemscope-alloc.so")
MANNERS = os.path.join(BUILD, "targets", "alloc_manners")
LIBRARIES = f"/usr/lib/{os.uname().machine}-linux-gnu"

PYTHON = """
import collections, json, threading, subprocess, os
d = collections.defaultdict(list)
for i in range(60000): d[i % 977].append(str(i) * (i % 7))
ts = [threading.Thread(target=lambda: json.loads(json.dumps(d))) for _ in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
pid = os.fork()
if not pid:
    x = [bytearray(i) for i in range(3000)]; del d; os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), len(json.dumps(d)),
      subprocess.run(["echo", "hi"], capture_output=True).stdout)
"""
SQL = """
create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, hex(i * 7919) || printf('%050d', i) from n;
create index ti on t(b);
select count(*), sum(length(b)), min(b), max(b) from t where b like '3%';
select group_concat(b) from (select b from t order by b desc limit 50);
"""
PERL = 'my %h; $h{$_ % 997} .= "x" x ($_ % 50) for 1..100000; print join(",", map {length $h{$_}} sort {$a <=> $b} keys %h), "\\n"'
NODE = """
const m = new Map(); for (let i = 0; i < 50000; i++) m.set('k' + i, Buffer.alloc(i % 300, i));
let n = 0; for (const b of m.values()) n += b.length;
console.log(n, require('crypto').createHash('sha256').update(JSON.stringify([...m.keys()])).digest('hex'));
"""
C = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct n { struct n *l, *r; int k; };
static struct n *put(struct n *n, int k) { if (!n) { n = calloc(1, sizeof *n); n->k = k; return n; }
if (k < n->k) n->l = put(n->l, k); else n->r = put(n->r, k); return n; }
int main(void) { struct n *r = 0; for (int i = 0; i < 9999; i++) r = put(r, i * 7919 % 10007);
printf("%d\\n", r->k); return 0; }
"""

# name, argv (FILE: a scratch file with the text), what it reads, environment
PROGRAMS = [
    ("python3 with threads and fork", ["python3", "-c", PYTHON], None, {}),
    ("python3 without its own allocator", ["python3", "-c", PYTHON], None, {"PYTHONMALLOC": "malloc"}),
    ("sqlite3", ["sqlite3", ":memory:"], SQL, {}),
    ("perl", ["perl", "-e", PERL], None, {"PERL_HASH_SEED": "0"}),
    ("node", ["node", "-e", NODE], None, {}),
    ("gcc", ["gcc", "-O2", "-g", "-S", "-x", "c", "-o", "-", "-"], C, {}),
    ("clang", ["clang", "-O2", "-g", "-S", "-x", "c", "-o", "-", "-"], C, {}),
    ("git", ["git", "-C", TOP, "log", "--stat", "-25"], None, {"GIT_PAGER": "cat"}),
    ("sort in several threads", ["sort", "--parallel=4", "-S", "1M", "-k2"],
     "".join(f"{i * 7919 % 10007} {i % 31} {i}\n" for i in range(40000)), {}),
    ("xz", ["sh", "-c", "xz -T2 -c | xz -dc | sha256sum"], PYTHON * 2000, {}),
    ("bash", ["bash", "-c", "for i in {1..2000}; do a[$i]=$(( i * 3 )); done; echo ${a[@]} | wc; (exit 3)"], None, {}),
]


def run(argv, given, env):
    r = subprocess.run(argv, input=(given or "").encode(), capture_output=True, timeout=120,
                       env={**os.environ, "LC_ALL": "C", **env})
    return r.returncode, r.stdout, r.stderr


def preloaded(env, more=(), rate="64"):
    return {**env, "LD_PRELOAD": ":".join([LIBRARY, *more]), "MEMSCOPE_ALLOC_RATE": rate}


def same(argv, given, env, more=(), rate="64"):
    """What differs, None when nothing does."""
    plain_env = {**env, **({"LD_PRELOAD": ":".join(more)} if more else {})}
    plain = run(argv, given, plain_env)
    ours = run(argv, given, preloaded(env, more, rate))
    for what, a, b in zip(("status", "output", "errors"), plain, ours):
        if a != b:
            return f"{what}: {a if isinstance(a, int) else a[-300:]} became {b if isinstance(b, int) else b[-300:]}"
    return None


def manners(more):
    """Signals, threads that end, children of every kind, libraries that go: the same at several rates."""
    status, said, _ = run([MANNERS, "once"], None, {})
    if status:
        return f"not even without the library: {said.decode()}"
    for rate in ("1", "64", "4K", "512K"):
        wrong = same([MANNERS, "once"], None, {}, more, rate)
        if wrong:
            return f"rate {rate}: {wrong}"
    return None


def redis():
    """A server under load; what it answers to a few questions, and how it ends."""
    answers = []
    for env in ({}, preloaded({})):
        with tempfile.TemporaryDirectory() as d:
            sock = f"{d}/s"
            server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", sock, "--save", "",
                                       "--dir", d], stdout=subprocess.DEVNULL, env={**os.environ, **env})
            try:
                for _ in range(500):
                    if os.path.exists(sock):
                        break
                    time.sleep(0.02)
                subprocess.run(["redis-benchmark", "-s", sock, "-n", "20000", "-q", "-t", "set,lpush,sadd",
                                "-r", "5000", "-d", "100"], check=True, stdout=subprocess.DEVNULL, timeout=120)
                ask = "".join(f"set key{i} {'v' * (i % 300)}\nappend key{i} tail\n" for i in range(500))
                ask += "".join(f"strlen key{i}\n" for i in range(500))
                ask += "bgsave\nshutdown nosave\n"
                out = subprocess.run(["redis-cli", "-s", sock], input=ask.encode(), capture_output=True,
                                     timeout=60).stdout
                answers.append((out, server.wait(60)))
            finally:
                if server.poll() is None:
                    server.kill()
                    server.wait()
    return None if answers[0] == answers[1] else f"{answers[0][1]} became {answers[1][1]}, or its answers differ"


def fast_paths():
    """What most calls of malloc and free run in the library, up to the jump to the allocator: few instructions, no call."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", LIBRARY], capture_output=True, text=True, check=True).stdout
    for name, most in (("malloc", 6), ("free", 8)):
        body = text.split(f"<{name}>:\n")[1].split("\n\n")[0]
        path = [line.split("\t")[1].split("#")[0].strip() for line in body.splitlines()]
        end = next((i for i, insn in enumerate(path) if insn.startswith("jmp ") and "*" in insn), len(path))
        if end + 1 > most or any(insn.startswith(("call", "push")) for insn in path[:end]):
            return f"{name}: {path[:end + 1]}"
    return None


def main():
    tests = []
    no_objdump = None if shutil.which("objdump") and os.uname().machine == "x86_64" else "no objdump of x86-64"
    tests.append(("malloc and free that are no samples take six and eight instructions", no_objdump, fast_paths))
    for name, argv, given, env in PROGRAMS:
        missing = None if shutil.which(argv[0]) else f"{argv[0]} is not installed"
        tests.append((f"{name} runs as it does without the library", missing,
                      lambda a=argv, g=given, e=env: same(a, g, e)))
    no_manners = None if os.path.exists(MANNERS) else f"{MANNERS} is not built (make targets)"
    tests.append(("a program of all manners keeps every promise, as it does without the library", no_manners,
                  lambda: manners([])))
    no_redis = None if shutil.which("redis-server") and shutil.which("redis-cli") else "redis is not installed"
    tests.append(("redis-server, linked with jemalloc, answers as it does without the library", no_redis, redis))
    for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4"):
        path = f"{LIBRARIES}/{name}"
        tests.append((f"python3 with {name} preloaded behind the library runs as without it",
                      None if os.path.exists(path) else f"{name} is not installed",
                      lambda p=path: same(["python3", "-c", PYTHON], None, {"PYTHONMALLOC": "malloc"}, [p])))
        tests.append((f"a program of all manners, with {name} preloaded behind the library, runs as without it",
                      no_manners or (None if os.path.exists(path) else f"{name} is not installed"),
                      lambda p=path: manners([p])))
        tests.append((f"clang, in C++, with {name} preloaded behind the library runs as without it",
                      None if os.path.exists(path) and shutil.which("clang") else f"{name} or clang is not installed",
                      lambda p=path: same(["clang", "-O2", "-S", "-x", "c", "-o", "-", "-"], C, {}, [p])))
    if not os.path.exists(LIBRARY):
        print("1..0 # SKIP libmemscope-alloc.so is not built")
        return 0
    print(f"1..{len(tests)}")
    bad = 0
    for i, (fact, missing, fn) in enumerate(tests, 1):
        if missing:
            print(f"ok {i} - {fact} # SKIP {missing}")
            continue
        try:
            wrong = fn()
        except (subprocess.SubprocessError, OSError) as e:
            wrong = str(e)
        if wrong:
            print(f"# {wrong}")
            bad += 1
        print(f"{'not ' if wrong else ''}ok {i} - {fact}", flush=True)
    return 1 if bad else 0


sys.exit(main())
