"""Programs that nobody rebuilt, as Debian ships them or as a compiler makes them by default, at work
until they are ended: for facts and for figures about their stacks.

Each function starts one, and gives its Child when it is at work. Skip: it is not installed.
"""

import glob
import os
import pwd
import re
import shutil
import socket
import subprocess
import time

from harness import (BUILD, READY_SEC, TOP, Child, Target, at_work, children_of, equal, has_worked, need, scratch, skip, tool,
                     until)

QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    """Waits until something does."""
    def connects():
        try:
            socket.create_connection(("127.0.0.1", int(port)), 1).close()
            return True
        except OSError:
            return False
    until(connects, f"something listens on port {port}")


def python():
    if not os.path.exists("/usr/bin/python3"):
        skip("/usr/bin/python3 is not installed")
    code = ("import json, time\nd = {}\nwhile True:\n"
            "  for i in range(3000): d[i] = json.dumps([str(i)] * 9) + 'x' * (i % 700)\n"
            "  time.sleep(0.001)")
    return at_work(Child(["/usr/bin/python3", "-c", code], **QUIET))


def pythons():
    """{path: version} of CPython from 3.8 on: Debian's, and of those that pyenv has built one for each other way in which
    runs of frames end (up to 3.10, 3.11, from 3.12 on); all of them with MEMSCOPE_TEST_PYTHON=every."""
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    by_kind, found = {}, {}
    for path in ["/usr/bin/python3", *sorted(glob.glob(f"{root}/versions/3.*/bin/python3"))]:
        if not os.path.exists(path):
            continue
        version = subprocess.run([path, "-c", "import sys; print(sys.version.split()[0])"], capture_output=True, text=True,
                                 check=True).stdout.strip()
        minor = int(version.split(".")[1])
        if minor < 8:
            continue
        found[path] = version
        by_kind.setdefault(min(max(minor, 10), 12), path)
    if os.environ.get("MEMSCOPE_TEST_PYTHON") == "every":
        return found
    return {path: version for path, version in found.items() if path in by_kind.values()}


def sqlite():
    need("sqlite3")
    query = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3000000000) "
             "SELECT sum(length(hex(randomblob(x % 50)))), count(DISTINCT x % 1000) FROM c;")
    return at_work(Child([tool("sqlite3"), ":memory:", query], **QUIET))


def redis():
    need("redis-server", "redis-benchmark")
    port, where = free_port(), scratch("redis")
    os.mkdir(where)
    server = Child(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                    "--appendonly", "no", "--dir", where], **QUIET)
    listens(port)
    Child(["redis-benchmark", "-p", str(port), "-n", "100000000", "-t", "set,get,lpush,lpop",
           "-q", "-c", "20", "-P", "4"], **QUIET)
    has_worked(server.pid, 0.1)
    return server


def xz():
    need("xz")
    with open("/dev/urandom", "rb") as random:
        return at_work(Child([tool("xz"), "-T2", "-c"], stdin=random, stdout=subprocess.DEVNULL))


def c_source(functions):
    """The name of a C file of so many functions."""
    name = scratch("source") + ".c"
    with open(name, "w", encoding="ascii") as f:
        f.write("".join(
            f"int f{i}(int a){{int s=0;for(int i=0;i<a;i++)s+=(i^{i})%(a+1);return s;}}\n"
            for i in range(functions)))
    return name


def with_children(child):
    until(lambda: children_of(child.pid), f"a child of {child.argv[0]}")
    return child


def gcc():
    """One compiler after the other, each some seconds long."""
    need("gcc")
    return with_children(Child(["sh", "-c", f"while gcc -O2 -c {c_source(2000)} -o /dev/null; do :; done"],
                               **QUIET))


def git():
    need("git")
    if subprocess.run(["git", "-C", TOP, "rev-parse"], check=False, **QUIET).returncode:
        skip("the tree is not a git repository")
    return with_children(Child(["sh", "-c", "while git -c safe.directory='*' -C \"$1\" log -p --stat -M "
                                "> /dev/null; do :; done", "sh", TOP], **QUIET))


class Postgres:
    """A cluster of its own, below a directory that its user can enter."""

    def __init__(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
        if not found:
            skip("postgres is not installed")
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            skip("there is no user postgres")
        self.bin = os.path.dirname(found[-1])
        self.where = scratch("postgres")
        os.mkdir(self.where)
        os.chown(self.where, user.pw_uid, user.pw_gid)
        self.as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}
        self.do("initdb", "-D", f"{self.where}/d", "--no-sync", "-A", "trust")

    def do(self, program, *args):
        made = subprocess.run([f"{self.bin}/{program}", *args], check=False, **self.as_user, **QUIET)
        if made.returncode:
            skip(f"{program} does not work here")

    def single(self, query):
        """One backend without a server."""
        child = Child([f"{self.bin}/postgres", "--single", "-D", f"{self.where}/d", "-F",
                       "postgres"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL, **self.as_user)
        child.process.stdin.write(query + b"\n")
        child.process.stdin.flush()
        return at_work(child, 0.5)

    def server(self):
        """A server with four clients of pgbench."""
        if not os.path.exists(f"{self.bin}/pgbench"):
            skip("pgbench is not installed")
        port = str(free_port())
        child = Child([f"{self.bin}/postgres", "-D", f"{self.where}/d", "-F", "-p", port, "-k", "",
                       "-h", "127.0.0.1"], **self.as_user, **QUIET)
        listens(port)
        at = ("-h", "127.0.0.1", "-p", port, "-U", "postgres")
        self.do("pgbench", *at, "-i", "-q", "postgres")
        at_work(Child([f"{self.bin}/pgbench", *at, "-c", "4", "-T", "3600", "postgres"], **self.as_user,
                      **QUIET))
        return child


def postgres(jit="off"):
    """JIT: on, functions for a query as costly as that are made by LLVM, and no table tells of them."""
    return Postgres().single(
        f"set jit = {jit}; select count(*), sum(length(md5((x * y)::text))) "
        "from generate_series(1, 1000) x, generate_series(1, 1000000) y;".encode())


def postgres_server():
    return Postgres().server()


def node():
    need("node")
    code = ("function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
            "function g() { const o = {}; for (let i = 0; i < 2000; i++) o['k' + i] = "
            "JSON.stringify([i, f(8)]); return o; }\nfor (;;) g();")
    child = Child([tool("node") or "node", "--perf-basic-prof", "-e", code],
                  cwd=os.path.dirname(scratch("node")), **QUIET)
    return at_work(child, 1)  # most of what it runs is compiled then


JAVA = """
public class Burn {
    static int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
    public static void main(String[] a) {
        java.util.Map<String, Integer> m = new java.util.HashMap<>();
        for (int i = 0; ; i++) m.put("k" + i % 5000, f(i % 12));
    }
}
"""


def jvms():
    """Those with a compiler, the oldest first."""
    found = {}
    for java in glob.glob("/usr/lib/jvm/*/bin/javac"):
        home = os.path.realpath(os.path.dirname(os.path.dirname(java)))
        text = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
        version = re.search(r"javac (\d+)", text.stdout + text.stderr)
        if version:
            found[home] = int(version.group(1))
    return sorted(found.items(), key=lambda home: home[1])


def java(*options):
    need("java", "javac")
    where = scratch("java")
    os.makedirs(where)
    with open(os.path.join(where, "Burn.java"), "w", encoding="ascii") as f:
        f.write(JAVA)
    subprocess.run(["javac", "-d", where, os.path.join(where, "Burn.java")], check=True, **QUIET)
    child = Child(["java", *options, "-Xmx64m", "-cp", where, "Burn"], **QUIET)
    return at_work(child, 1.5)


RUST = """
use std::collections::HashMap;
#[inline(never)]
fn depth(n: u64, m: &mut HashMap<u64, String>) -> u64 {
    if n == 0 {
        for i in 0..1000u64 { m.insert(i, format!("{}", i * 7)); }
        return m.len() as u64;
    }
    depth(n - 1, m) + std::hint::black_box(n)
}
fn main() {
    let mut m = HashMap::new();
    loop { std::hint::black_box(depth(30, &mut m)); }
}
"""


def rust():
    rustc = shutil.which("rustc") or "/root/.cargo/bin/rustc"
    if not os.path.exists(rustc):
        skip("rustc is not installed")
    source = scratch("rust") + ".rs"
    with open(source, "w", encoding="ascii") as f:
        f.write(RUST)
    made = subprocess.run([rustc, "-O", "-C", "force-frame-pointers=no", "-o", source + ".bin",
                           source], capture_output=True, check=False)
    if made.returncode:
        skip(f"rustc does not work here: {made.stderr.decode()[-100:]}")
    return at_work(Child([source + ".bin"], **QUIET))


GO = """
package main
import ("fmt"; "strings")
//go:noinline
func depth(n int, m map[int]string) int {
	if n == 0 {
		for i := 0; i < 1000; i++ { m[i] = strings.Repeat(fmt.Sprint(i), 3) }
		return len(m)
	}
	return depth(n-1, m) + 1
}
func main() {
	done := make(chan int)
	for k := 0; k < 2; k++ {
		go func() { for { done <- depth(30, map[int]string{}) } }()
	}
	for { <-done }
}
"""

# The same, and C's malloc from there: Go's own allocator is not one that is traced.
CGO = GO.replace("package main\n", """package main
// #include <stdlib.h>
import "C"
import "unsafe"
""").replace("m[i] = ", "p := C.malloc(100); C.free(unsafe.Pointer(p)); m[i] = ")


def go_built(flags="", source=GO):
    need("go")
    where = scratch("go")
    os.makedirs(where)
    with open(os.path.join(where, "main.go"), "w", encoding="ascii") as f:
        f.write(source)
    made = subprocess.run(["go", "build", f"-ldflags={flags}", "-o", f"{where}/program", "main.go"],
                          cwd=where, capture_output=True, check=False,
                          env=dict(os.environ, GO111MODULE="off",
                                   GOCACHE=os.path.join(BUILD, "go-cache")))
    if made.returncode:
        skip(f"go build does not work here: {made.stderr.decode()[-200:]}")
    return f"{where}/program"


def go(flags="", source=GO):
    return at_work(Child([go_built(flags, source)], **QUIET))


def late_sqlite():
    """A python3 that loads libsqlite3 when asked and then allocates 30 MB in it, and what waits for its word and
    lets it go on."""
    code = ("import sys\nprint('ready', flush=True)\nsys.stdin.readline()\nimport sqlite3\n"
            "print('loaded', flush=True)\nsys.stdin.readline()\n"
            "db = sqlite3.connect(':memory:')\ndb.execute('create table t(x)')\n"
            "for i in range(300): db.execute('insert into t values (?)', ('x' * 100000,))\n"
            "print('done', flush=True)\nsys.stdin.readline()\n")
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import sqlite3"], capture_output=True, check=False).returncode:
        skip("Debian's python3 has no sqlite3 here")
    p = Child([python, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def turn(word):
        equal(p.process.stdout.readline().strip(), word, "the program's progress")
        p.process.stdin.write(b"\n")
        p.process.stdin.flush()

    return p, turn


def target(name, *args):
    """A program of tests/targets/, told to go."""
    child = Target(name, *args)
    if name.startswith("unwind_depth"):
        child._line("chain", READY_SEC)
    child.say("go")
    return child
