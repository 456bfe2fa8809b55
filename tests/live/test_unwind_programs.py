"""Real programs as Debian ships them, without frame pointers and stripped: at least 99.5 % of stacks
are proven to their outermost frame, on CPU at 99 and 999 Hz, at switches and inside malloc.
"""

import contextlib
import glob
import pwd
import shutil
import socket
import tempfile

from stacks import *


def watch(*args, **kw):
    """watch_it(); then what runs is ended, or it would take its CPU time from the programs to come."""
    try:
        return watch_it(*args, **kw)
    finally:
        for child in list(Child.living):
            child.end()


def watch_it(what, pid, sources=("oncpu", "offcpu", "alloc"), share=WHOLE, seconds=1.5, few=()):
    """A running program, at both rates at one time; then its allocations."""
    rates = [Run("-p", pid, "--only", "oncpu,offcpu", "-F", hz, "--json") for hz in (999, 99)]
    for run in rates:
        run.ready()
    time.sleep(seconds)
    for run in rates:
        run.send(signal.SIGINT)
    for run, hz in zip(rates, (999, 99)):
        run.finish()
        run.must()
        whole(run, "oncpu", 30 if hz == 999 else 3, f"{what} at {hz} Hz", share, spare=1)
    if "offcpu" in sources:
        whole(rates[0], "offcpu", 0 if "offcpu" in few else 10, what, share, spare=1)
    if "alloc" in sources:
        run, _ = record(["-p", pid], lambda: time.sleep(0.4), "--only", "alloc", "--alloc=exact",
                        "--json")
        whole(run, "alloc", 0 if "alloc" in few else 10, what, share, spare=1)
    return rates[0]


def launched(what, *command, sources=("oncpu",), share=WHOLE, at_least=50):
    """A command, from its first instruction to its end, with its children."""
    run = Run("-F", 999, "--only", ",".join(sources), "--json", "--", *command)
    run.finish()
    check(run.status in (0, 3), f"{what}: exit status {run.status}: {run.stderr[-300:]}")
    for source in sources:
        whole(run, source, at_least, what, share, spare=1)
    return run


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@fact
def python_is_whole():
    if not os.path.exists("/usr/bin/python3"):
        skip("/usr/bin/python3 is not installed")
    code = ("import json, time\nd = {}\nwhile True:\n"
            "  for i in range(3000): d[i] = json.dumps([str(i)] * 9) + 'x' * (i % 700)\n"
            "  time.sleep(0.001)")
    watch("python3", Child(["/usr/bin/python3", "-c", code], **QUIET).pid)


@fact
def sqlite_is_whole():
    need("sqlite3")
    query = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<300000000) "
             "SELECT sum(length(hex(randomblob(x % 50)))), count(DISTINCT x % 1000) FROM c;")
    watch("sqlite3", Child([tool("sqlite3"), ":memory:", query], **QUIET).pid, few=("offcpu",))


@fact
def redis_under_load_is_whole():
    need("redis-server", "redis-benchmark")
    port, where = free_port(), scratch("redis")
    os.mkdir(where)
    server = Child(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                    "--appendonly", "no", "--dir", where], **QUIET)
    time.sleep(0.5)
    Child(["redis-benchmark", "-p", str(port), "-n", "100000000", "-t", "set,get,lpush,lpop",
           "-q", "-c", "20", "-P", "4"], **QUIET)
    time.sleep(0.3)
    watch("redis-server", server.pid)


@fact
def xz_is_whole():
    need("xz")
    with open("/dev/urandom", "rb") as random:
        child = Child([tool("xz"), "-T2", "-c"], stdin=random, stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    watch("xz", child.pid, few=("alloc", "offcpu"))


@fact
def a_compiler_is_whole():
    need("gcc")
    source = scratch("source") + ".c"
    with open(source, "w", encoding="ascii") as f:
        f.write("".join(
            f"int f{i}(int a){{int s=0;for(int i=0;i<a;i++)s+=(i^{i})%(a+1);return s;}}\n"
            for i in range(500)))
    # libgmp's assembly has no CFI, and folding constants passes through it.
    # On an idle machine it leaves its CPU some forty times in all.
    launched("gcc", "gcc", "-O2", "-c", source, "-o", scratch("object"), sources=("oncpu", "offcpu"),
             share=0.99, at_least=10)


@fact
def git_is_whole():
    need("git")
    if subprocess.run(["git", "-C", TOP, "rev-parse"], check=False, **QUIET).returncode:
        skip("the tree is not a git repository")
    # Children of a launched command write where it does, and the summary is there too.
    launched("git", "sh", "-c", "timeout 2 git -c safe.directory='*' -C \"$1\" log -p --stat -M "
             "> /dev/null; exit 0", "sh", TOP)


@fact
def postgres_is_whole():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    if not found:
        skip("postgres is not installed")
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        skip("there is no user postgres")
    where = tempfile.mkdtemp(prefix="memscope-postgres-")
    try:
        os.chown(where, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        made = subprocess.run([os.path.join(os.path.dirname(found[-1]), "initdb"), "-D",
                               f"{where}/d", "--no-sync", "-A", "trust"], check=False, cwd="/",
                              **as_user, **QUIET)
        if made.returncode:
            skip("initdb does not work here")
        child = Child([found[-1], "--single", "-D", f"{where}/d", "-F", "postgres"], cwd="/",
                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                      **as_user)
        child.process.stdin.write(
            b"select count(*), sum(length(md5(x::text))) from generate_series(1, 100000000) x;\n")
        child.process.stdin.flush()
        time.sleep(0.7)
        watch("postgres", child.pid, few=("offcpu", "alloc"))
        child.end()
    finally:
        shutil.rmtree(where, ignore_errors=True)


@fact
def node_is_whole():
    need("node")
    code = ("function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
            "function g() { const o = {}; for (let i = 0; i < 2000; i++) o['k' + i] = "
            "JSON.stringify([i, f(8)]); return o; }\nfor (;;) g();")
    child = Child([tool("node") or "node", "--perf-basic-prof", "-e", code],
                  cwd=os.path.dirname(scratch("node")), **QUIET)
    time.sleep(1.5)
    try:
        watch("node", child.pid, few=("offcpu", "alloc"))
    finally:
        with contextlib.suppress(OSError):
            os.unlink(f"/tmp/perf-{child.pid}.map")


JAVA = """
public class Burn {
    static int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
    public static void main(String[] a) {
        java.util.Map<String, Integer> m = new java.util.HashMap<>();
        for (int i = 0; ; i++) m.put("k" + i % 5000, f(i % 12));
    }
}
"""


def java(*options):
    need("java", "javac")
    where = scratch("java")
    os.makedirs(where)
    with open(os.path.join(where, "Burn.java"), "w", encoding="ascii") as f:
        f.write(JAVA)
    subprocess.run(["javac", "-d", where, os.path.join(where, "Burn.java")], check=True, **QUIET)
    child = Child(["java", *options, "-Xmx64m", "-cp", where, "Burn"], **QUIET)
    time.sleep(2)
    return child


@fact
def java_that_keeps_frame_pointers_is_whole():
    # The interpreter and stubs set up frames of their own, and a sample may fall into that.
    child = java("-XX:+PreserveFramePointer")
    watch("java", child.pid, sources=("oncpu",), share=0.98)


@fact
def java_without_frame_pointers_is_called_a_guess():
    child = java("-XX:-PreserveFramePointer")
    run, _ = record(["-p", child.pid], lambda: time.sleep(1.5), "--only", "oncpu", "-F", 999,
                    "--json")
    child.end()
    found = verdicts(run, "oncpu")
    print(f"# {found}")
    check(found["guessed"] + found["unreadable"] > 0.5 * sum(found.values()),
          f"generated code without frame pointers is not proven: {found}")


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


@fact
def rust_is_whole():
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
    run = watch("rust", Child([source + ".bin"], **QUIET).pid, few=("offcpu",))
    depths = {sum("depth" in f.name for f in s.frames) for s in run.profile("oncpu").samples}
    check(31 in depths, f"no stack with all 31 frames of the recursion: {sorted(depths)}")


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


@fact
def go_is_whole_with_and_without_its_symbols():
    need("go")
    source = scratch("go")
    os.makedirs(source)
    with open(os.path.join(source, "main.go"), "w", encoding="ascii") as f:
        f.write(GO)
    for flags in ("", "-s -w"):
        binary = os.path.join(source, "plain" if not flags else "stripped")
        made = subprocess.run(["go", "build", f"-ldflags={flags}", "-o", binary, "main.go"],
                              cwd=source, capture_output=True, check=False,
                              env=dict(os.environ, GO111MODULE="off",
                                       GOCACHE=os.path.join(BUILD, "go-cache")))
        if made.returncode:
            skip(f"go build does not work here: {made.stderr.decode()[-200:]}")
        child = Child([binary], **QUIET)
        time.sleep(0.3)
        watch(f"go {flags}", child.pid, sources=("oncpu", "offcpu"), few=("offcpu",))
        child.end()


main()
