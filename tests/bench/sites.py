#!/usr/bin/python3
"""Who allocates, by memscope and by those whose trade it is: the top ten of each, side by side.

    make bench-sites [BENCHFLAGS="--only sqlite3,redis --keep"]

Each load does the same work each time. It is run once under each tool, which starts it:

    exact      memscope --alloc=exact                 calls and bytes
    sampled    memscope --alloc=sampled               the same, as estimates
    growth     memscope --only growth                 anonymous bytes that became resident
    heaptrack                                         calls, and bytes at the highest point
    jeprof     jemalloc, prof_accum, 16 KiB           calls and bytes, as estimates
    massif     valgrind                               bytes at the highest point

A site is the innermost function that has a name of its own and is neither an allocator's (the program's
own wrappers included: zmalloc, palloc, sqlite3Malloc, PyMem_Malloc …) nor the C++ library's; the rule is
ours, and the same for all. Three comparisons: calls, bytes allocated, and memory held. What is held is
compared by caller: the share of it that has a function anywhere on its stacks, of functions below 95 % in
each column, and not main or above it. Growth is who touched a page first, and not who asked for it, but both have the same callers,
and programs that keep what they allocate touch it once.

For each column: how many of the first column's top ten it has in its own, and Spearman's rank correlation
over the sites of both, of those above one percent. Then every site of a top ten, above two percent, whose
share differs from the first column's by more than a third: those within four sigma of what sampling
scatters, by the samples' own weights, are only counted; of the others each run says what it knows (stacks
that were cut, calls made before it looked). Nothing here passes or fails.
"""

import argparse
import glob
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
ARGS, sys.argv = sys.argv, sys.argv[:1]  # harness reads sys.argv for tests
import pprof_reader  # noqa: E402
from harness import MEMSCOPE, Skip, scratch, tool  # noqa: E402
from programs import Postgres, free_port  # noqa: E402

TOP_TEN = 10
RATE = 16 << 10  # bytes between samples, of both samplers
DEVNULL = subprocess.DEVNULL


# --- loads: (argv, what to do while it runs, keywords of Popen) ---------------------------------

STL = r"""
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>
using namespace std;
#define SITE __attribute__((noinline, noclone))
static map<int, string> index_;
static unordered_map<string, vector<int>> lists;
static vector<unique_ptr<string>> kept;
SITE void fill_map(int n) { for (int i = 0; i < n; i++) index_[i * 7919 % n] = string(40 + i % 60, 'm'); }
SITE void fill_lists(int n) { for (int i = 0; i < n; i++) lists["key number " + to_string(i % 997)].push_back(i); }
SITE size_t churn(int n) { size_t s = 0; for (int i = 0; i < n; i++) { vector<int> v(16 + i % 48); s += v.size(); } return s; }
SITE size_t join(int n) { string s; for (int i = 0; i < n; i++) s += "word number " + to_string(i); return s.size(); }
SITE void keep(int n) { for (int i = 0; i < n; i++) kept.push_back(make_unique<string>(200, 'k')); }
SITE size_t queue(int n) { deque<long> q; size_t s = 0; for (int i = 0; i < n; i++) { q.push_back(i); if (i % 3) { s += q.front(); q.pop_front(); } } return s; }
SITE void* buffers(int n) { void* p = nullptr; for (int i = 0; i < n; i++) { delete[] (char*)p; p = new char[60000 + i % 5000]; *(volatile char*)p = 1; } return p; }
int main() {
    size_t s = 0;
    for (int round = 0; round < 4; round++) {
        fill_map(60000); fill_lists(100000); s += churn(60000); s += join(8000); keep(20000); s += queue(50000);
        delete[] (char*)buffers(300);
    }
    return s == 1;
}
"""

PYTHON = """
import json
class Point:
    __slots__ = ("x", "y")
    def __init__(self, x, y): self.x, self.y = x, y
kept = []
for r in range(3):
    d = {i: json.dumps([str(i)] * 9) + "x" * (i % 700) for i in range(6000)}
    kept.append([Point(i, d[i]) for i in range(6000)])
    s = "".join(sorted(d.values()))
    b = bytearray()
    for i in range(3000): b += b"0123456789abcdef" * (i % 90)
    t = [json.loads(json.dumps({"a": list(range(40)), "b": {"c": "d" * i}})) for i in range(1500)]
"""

SQL = """
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c BLOB);
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 30000)
INSERT INTO t SELECT x, hex(x * x), zeroblob(x % 300) FROM c;
CREATE INDEX i ON t(b);
SELECT count(*), sum(length(b)), max(length(c)) FROM t WHERE b LIKE '%A%';
SELECT length(group_concat(b)) FROM (SELECT b FROM t ORDER BY c, b DESC);
SELECT count(*) FROM t x JOIN t y ON x.b = y.b WHERE x.a % 3 = 0;
"""


def nothing(process):
    pass


def load_stl():
    source, program = scratch("stl") + ".cc", scratch("stl-program")
    with open(source, "w", encoding="ascii") as f:
        f.write(STL)
    subprocess.run(["g++", "-O2", "-g", "-std=c++17", "-o", program, source], check=True)
    return [program], nothing, {}


def file_of(text):
    """heaptrack's log does not survive a line break in an argument."""
    name = scratch("input")
    with open(name, "w", encoding="ascii") as f:
        f.write(text)
    return name


def load_python():
    return ["/usr/bin/python3", "-S", file_of(PYTHON)], nothing, {"env": {**os.environ, "PYTHONHASHSEED": "0"}}


def load_sqlite():
    if not tool("sqlite3"):
        raise Skip("sqlite3 is not installed")
    return [tool("sqlite3"), ":memory:", f".read {file_of(SQL)}"], nothing, {}


def load_redis():
    if not tool("redis-server"):
        raise Skip("redis-server is not installed")
    port, where = str(free_port()), scratch("redis")
    os.mkdir(where)

    def work(process):
        def client(*args):
            return subprocess.run(["redis-cli", "-p", port, *args], stdin=DEVNULL, stdout=subprocess.PIPE,
                                  stderr=DEVNULL, check=False).stdout
        for _ in range(300):
            if client("ping").strip() == b"PONG":
                break
            time.sleep(0.1)
        for what, n in (("set", 20000), ("lpush", 15000), ("sadd", 15000), ("hset", 15000), ("zadd", 10000)):
            subprocess.run(["redis-benchmark", "-p", port, "-n", str(n), "-r", "20000", "-t", what, "-q", "-c", "10",
                            "-P", "16", "-d", "100"], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, check=False)
        client("shutdown", "nosave")
    return ([tool("redis-server"), "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
             "--dir", where], work, {})


def load_postgres():
    p = Postgres()
    argv = ["setpriv", f"--reuid={p.as_user['user']}", f"--regid={p.as_user['group']}", "--clear-groups",
            f"{p.bin}/postgres", "--single", "-D", f"{p.where}/d", "-F", "-c", "jit=off", "postgres"]
    query = (b"create table t as select x, md5(x::text) as m from generate_series(1, 40000) x;\n"
             b"select count(*), length(string_agg(m, ',' order by m)) from t;\n"
             b"select count(*) from t a join t b using (m);\ndrop table t;\n")

    def work(process):
        process.stdin.write(query)
        process.stdin.close()
    return argv, work, {"stdin": subprocess.PIPE, "cwd": p.where}


LOADS = {"C++ STL": load_stl, "python3": load_python, "sqlite3": load_sqlite, "redis": load_redis,
         "postgres": load_postgres}


def run(argv, work, keywords, env=()):
    where = {"stdin": DEVNULL, "stdout": DEVNULL, "stderr": subprocess.PIPE, **keywords}
    where["env"] = {**where.get("env", os.environ), **dict(env)}
    process = subprocess.Popen(argv, **where)
    begin = time.monotonic()
    work(process)
    process.stdin = None
    try:
        said = process.communicate(timeout=400)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        raise Skip("it did not end in 400 s")
    return time.monotonic() - begin, said.decode("utf-8", "replace")


# --- what a site is ----------------------------------------------------------------------------

ALLOCATOR = re.compile(
    r"^(je_|_?_?libc_|__|tc_|mi_)?(malloc|calloc|realloc|reallocarray|free|memalign|posix_memalign|aligned_alloc|"
    r"valloc|pvalloc|mallocx|rallocx|cfree|default)(@|$)"
    r"|^operator (new|delete)|^(std|__gnu_cxx)::|^_?(int|mid)_(malloc|memalign|realloc|free)|^_Zn[aw]|^prof_|^imalloc|^newImpl"
    r"|^(do_rallocx|fallback_impl|handleOOM|iralloc|arena_|tcache_|large_|alloc_hook)"
    r"|^(malloc_usable_size|mallctl|malloc_stats_print|[sn]?d?allocx|sysmalloc|sysmalloc_mmap|malloc_consolidate|"
    r"unlink_chunk|systrim|grow_heap|sbrk|brk|mmap|mremap|alloc_perturb|checked_request2size|ptmalloc_init|"
    r"tcmalloc|_?_?(mem|str|wcs|wmem)[a-z]*(_chk)?(_[a-z0-9_]+)?)(@|$)")
# What programs have in front of their allocator.
WRAPPER = re.compile(
    r"^(z(m|c|re)alloc|ztry(m|c|re)alloc)(_usable|_num)?$|^sqlite3(Db)?(_)?(Malloc|Realloc|malloc|realloc)|^dbMallocRaw"
    r"|^(palloc|repalloc|MemoryContext(Alloc|Strdup)|AllocSet|GenerationAlloc|SlabAlloc|pstrdup|pnstrdup)"
    r"|^_?Py(Mem|Object)_(Raw)?(Malloc|Calloc|Realloc|GC_Alloc|GC_New|GC_Resize)|^_PyObject_(GC_)?(New|Alloc|Malloc)"
    r"|^_?Py(Type_GenericAlloc|Bytes_FromSize|Unicode_New|Bytes_FromStringAndSize)$"
    r"|^CRYPTO_([mzc]?alloc|malloc|realloc|strdup|strndup|memdup|clear_realloc)$|^lua_newuserdata|^luaM_|^sds(new|MakeRoom)")
NAMELESS = re.compile(r"^(0x|\[|\?\?\?|\(below main\)|$)|^[0-9a-f]{8,}$")


# Above all of a program, and not seen by every tool.
START = re.compile(r"^(_start|main|_?_libc_start_.*|_dl_.*|call_init)$")
OWN = re.compile(r"libmemscope-alloc\.so|^\[kernel")
# valgrind leaves out the namespace of what was inlined: known by its file.
LIBRARY_FILES = {os.path.basename(f) for f in glob.glob("/usr/include/c++/*/**/*", recursive=True)}


def plain(name):
    """Without arguments, template arguments, files, versions and what tools add."""
    name = re.sub(r"(<[0-9a-f]{16}>)?(\[inline\])?$", "", name)
    name = re.sub(r" \([^()]*\)$|@@?[A-Z].*$|_\[[ijk]\]$|\[clone[^\]]*\]|\.(constprop|isra|part|cold)[.0-9]*", "", name)
    depth, out = 0, []
    for i, c in enumerate(name):
        opens, closes = c in "<(" and not name[:i].endswith("operator"), c in ">)" and depth > 0
        depth += opens - closes
        if depth == 0 and not closes:
            out.append(c)
    name = "".join(out).replace(" const", "").strip()
    name = re.sub(r"^(__GI_+|_IO_new_)", lambda m: "_IO_" if "IO" in m[0] else "", name)
    return name.rsplit(" ", 1)[-1] if "operator" not in name else name  # templates name what they return


def site_of(names):
    """Of a stack, leaf first."""
    for name in names:
        if NAMELESS.search(name):
            continue
        short = plain(name)
        if short and not ALLOCATOR.search(short) and not WRAPPER.search(short):
            return short
    return "(no name)"


class Sites(dict):
    """{site: value}, what they are parts of, and of estimates the variance of each."""

    def __init__(self):
        super().__init__()
        self.variance, self.whole = {}, 0

    def take(self, found, value, variance):
        self.whole += value
        for site in found:
            self[site] = self.get(site, 0) + value
            self.variance[site] = self.variance.get(site, 0) + variance

    def shares(self):
        return {site: value / self.whole for site, value in self.items()} if self.whole else {}

    def scatter(self, site):
        """Standard deviation of a share."""
        return self.variance.get(site, 0) ** 0.5 / self.whole if self.whole else 0


def add(sites, names, value, variance=0.0):
    sites.take([site_of(names)], value, variance)


def add_callers(sites, names, value, variance=0.0):
    """To every function of the stack that could be a site, once."""
    sites.take({site for site in map(site_of, zip(names)) if site != "(no name)" and not START.search(site)}, value,
               variance)


def scatter(calls, size, rate):
    """Variances of the calls and the bytes of one stack, of which so much was estimated."""
    if not calls or not size or not rate:
        return 0.0, 0.0
    p = -math.expm1(-size / calls / rate)
    return calls * (1 - p) / p, size * (size / calls) * (1 - p) / p


def of_pprof(path, kinds, rate=0, to=add, **labels):
    """`rate`: of samples; of what is no sample, what each value is a multiple of is their scatter."""
    profile = pprof_reader.read(path)
    out = [Sites() for _ in kinds]
    for sample in profile.samples:
        if any(sample.labels.get(k) != v for k, v in labels.items()):
            continue
        names = ["" if OWN.search(f.module or "") else f.name for f in sample.frames]
        values = [sample.values[profile.types.index(kind)] for kind in kinds]
        variances = scatter(*values, rate) if len(kinds) == 2 else [rate * values[0]]
        for sites, value, variance in zip(out, values, variances):
            if value:
                to(sites, names, value, variance)
    return out


def of_folded(text, to=add):
    sites = Sites()
    for line in text.splitlines():
        stack, _, value = line.rpartition(" ")
        if stack and re.fullmatch(r"\d+", value) and int(value):
            to(sites, [x for x in stack.split(";") if x][::-1], int(value))
    return sites


def of_massif(path):
    """The tree of the highest snapshot: allocation functions above their callers."""
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    trees = re.findall(r"mem_heap_B=(\d+)\n.*?heap_tree=(?:peak|detailed)\n(.*?)(?=\n#|\Z)", text, re.S)
    if not trees:
        return {}
    lines = [re.match(r"( *)n(\d+): (\d+) (.*)", x) for x in max(trees, key=lambda t: int(t[0]))[1].splitlines()]
    sites, path_names = Sites(), []
    for m in filter(None, lines):
        depth, children, value = len(m[1]), int(m[2]), int(m[3])
        name = re.sub(r"^0x[0-9A-Fa-f]+: | \((in )?[^()]*\)$", "", m[4])
        of_library = (re.findall(r"\(([^()]*):\d+\)$", m[4]) or [""])[0] in LIBRARY_FILES
        path_names = path_names[:depth] + ["" if depth == 0 or of_library or "below massif" in name else name]
        if children == 0:
            add_callers(sites, path_names, value)
    return sites


# --- tools: name → {what it says: sites} -------------------------------------------------------

def own(load, *args):
    """(where it wrote, seconds, what it says of itself)."""
    out = scratch("own")
    took, _ = run([MEMSCOPE, "-q", "-o", out, *args, "--", *load[0]], *load[1:])
    with open(f"{out}/summary.json", encoding="utf-8") as f:
        summary = json.load(f)
    says = [f"{d['count']:,} {d['help']}" for d in summary["drops"] if d["count"]]
    for row in summary["stacks"]:
        whole = sum(v for k, v in row.items() if k != "source")
        if whole and row["source"] in ("alloc", "growth"):
            says.append(f"{100 * (1 - row['complete'] / whole):.1f} % of its stacks are cut, most of them before the "
                        "tables of a new image were made" if row["complete"] < whole else "all its stacks are whole")
    says += [n.split(":")[0] for n in summary["notes"] if "was mapped in the run" in n]
    return out, took, "; ".join(says)


CALLS_AND_BYTES = ["alloc_objects/count", "alloc_space/bytes"]


def exact(load):
    out, took, says = own(load, "--only", "alloc", "--alloc=exact", "--mem", "512")
    # Their scatter is what samples of them would have.
    calls, size = of_pprof(f"{out}/alloc.pb.gz", CALLS_AND_BYTES, RATE)
    return took, {"calls": calls, "bytes": size, "says": says,
                  "memory": of_pprof(f"{out}/peak.pb.gz", ["inuse_space/bytes"], to=add_callers)[0]}


def sampled(load):
    out, took, says = own(load, "--only", "alloc", "--alloc=sampled", "--alloc-rate", str(RATE))
    calls, size = of_pprof(f"{out}/alloc.pb.gz", CALLS_AND_BYTES, RATE)
    return took, {"calls": calls, "bytes": size, "says": says}


def growth(load):
    out, took, says = own(load, "--only", "growth")
    kind = pprof_reader.read(f"{out}/growth.pb.gz").types[0]
    return took, {"says": says, "memory": of_pprof(f"{out}/growth.pb.gz", [kind], 127 * 4096, add_callers,
                                                   memory="anonymous")[0]}


def heaptrack(load):
    if not tool("heaptrack"):
        raise Skip("heaptrack is not installed")
    out = scratch("heaptrack")
    os.mkdir(out)
    os.chmod(out, 0o777)
    argv = load[0]
    # It starts the program itself, as whom it is started.
    as_whom, argv = (argv[:4], argv[4:]) if argv[0] == "setpriv" else ([], argv)
    took, said = run([*as_whom, tool("heaptrack"), "-o", f"{out}/h", *argv], *load[1:])
    found = glob.glob(f"{out}/h*")
    if not found:
        raise Skip(f"heaptrack wrote nothing: {said[-100:]}")

    def cost(kind, to=add):
        subprocess.run([tool("heaptrack_print"), "-f", found[0], "-p", "0", "-a", "0", "-T", "0", "-l", "0",
                        "-F", f"{out}/{kind}", "--flamegraph-cost-type", kind], stdout=DEVNULL, stderr=DEVNULL,
                       check=False)
        with open(f"{out}/{kind}", encoding="utf-8", errors="replace") as f:
            return of_folded(f.read(), to)
    return took, {"calls": cost("allocations"), "memory": cost("peak", add_callers)}


def jeprof(load):
    library = next(iter(glob.glob("/usr/lib/*/libjemalloc.so.2")), None)
    if not tool("jeprof") or not library:
        raise Skip("jemalloc or jeprof is not installed")
    out = scratch("jeprof")
    os.mkdir(out)
    os.chmod(out, 0o777)
    conf = f"prof:true,prof_accum:true,prof_final:true,lg_prof_sample:{RATE.bit_length() - 1},prof_prefix:{out}/je"
    took, said = run(*load, env={"MALLOC_CONF": conf, "LD_PRELOAD": library})
    found = sorted(glob.glob(f"{out}/je*.heap"), key=os.path.getsize)
    if not found:
        raise Skip(f"it wrote nothing: {said[-100:]}")
    program = next(x for x in load[0] if x.startswith("/"))

    def cost(kind):
        made = subprocess.run([tool("jeprof"), "--collapsed", f"--{kind}", program, found[-1]], check=False,
                              stdout=subprocess.PIPE, stderr=DEVNULL)
        return of_folded(made.stdout.decode("utf-8", "replace"))
    return took, {"calls": cost("alloc_objects"), "bytes": cost("alloc_space")}


def massif(load):
    if not tool("valgrind"):
        raise Skip("valgrind is not installed")
    out = scratch("massif")
    os.mkdir(out)
    os.chmod(out, 0o777)
    # With setpriv it is another program that is watched after the exec.
    took, said = run([tool("valgrind"), "-q", "--tool=massif", "--trace-children=yes", "--depth=40", "--threshold=0.1",
                      f"--massif-out-file={out}/%p", *load[0]], *load[1:])
    found = sorted(glob.glob(f"{out}/*"), key=os.path.getsize)
    if not found:
        raise Skip(f"it wrote nothing: {said[-100:]}")
    return took, {"memory": of_massif(found[-1])}


TOOLS = {"exact": exact, "sampled": sampled, "growth": growth, "heaptrack": heaptrack, "jeprof": jeprof,
         "massif": massif}
COMPARED = [("calls", "calls", ["exact", "heaptrack", "sampled", "jeprof"]),
            ("bytes", "bytes allocated", ["exact", "sampled", "jeprof"]),
            ("memory", "memory held: at the highest point; growth: what became resident",
             ["heaptrack", "exact", "massif", "growth"])]


# --- comparing ---------------------------------------------------------------------------------

def ranking(sites):
    return sorted(sites, key=lambda s: (-sites[s], s))


def spearman(a, b):
    """Over the sites above one percent in either; None for less than three."""
    of = [s for s in set(a) | set(b) if max(a.get(s, 0), b.get(s, 0)) >= 0.01]
    if len(of) < 3:
        return None

    def ranks(x):
        values = [x.get(s, 0) for s in of]
        return [sum(v > w for v in values) + (sum(v == w for v in values) + 1) / 2 for w in values]
    ra, rb = ranks(a), ranks(b)
    mean = (len(of) + 1) / 2
    cov = sum((x - mean) * (y - mean) for x, y in zip(ra, rb))
    var = (sum((x - mean) ** 2 for x in ra) * sum((y - mean) ** 2 for y in rb)) ** 0.5
    return cov / var if var else None


WHY = {
    "growth": "growth counts a page when it is first touched: what is reused costs nothing again, and variables of "
              "libraries and their relocation count, which no allocator knows",
    "massif": "massif's highest snapshot is within 1 % of the peak, of stacks no deeper than 40 and sites above 0.1 %",
    "jeprof": "jeprof gives code without a symbol the nearest symbol's name; and it is another allocator: a realloc "
              "that needs no other block is none there",
    "sampled": "calls of a function whose blocks are of very different sizes scatter more than their mean size says",
    "heaptrack": "calls before the tool looked",
    "exact": "blocks made before its probes were in place; the moment of the peak is another",
}


def tell(first, name, whole, other, top):
    """Which shares differ, but for those that chance explains."""
    a, b, chance = whole.shares(), other.shares(), 0
    for site in top:
        x, y = a.get(site, 0), b.get(site, 0)
        if max(x, y) < 0.02 or min(x, y) >= max(x, y) * 2 / 3:
            continue
        sampler = name in ("sampled", "jeprof", "growth")
        if sampler and abs(x - y) <= 4 * max(whole.scatter(site) if first == "exact" else 0, other.scatter(site)):
            chance += 1
        else:
            print(f"    - {site}: {100 * x:.1f} % and {100 * y:.1f} %")
    if chance:
        print(f"    - {chance} more differ by what chance explains")


def compare(what, title, names, results):
    got = [(n, results[n][what]) for n in names if n in results and results[n].get(what)]
    if len(got) < 2:
        return
    print(f"\n#### {title}\n")
    print("| | " + " | ".join(n for n, _ in got) + " |")
    print("|---|" + "---|" * len(got))
    shares = [sites.shares() for _, sites in got]
    if what == "memory":  # main and its like hold everything
        most = {site for x in shares for site in x if all(y.get(site, 0) > 0.95 for y in shares)}
        shares = [{site: v for site, v in x.items() if site not in most} for x in shares]
    tops = [[s for s in ranking(x) if x[s] >= 0.0005][:TOP_TEN] for x in shares]
    for i in range(max(map(len, tops))):
        cells = [f"{top[i]} {100 * x[top[i]]:.1f} %" if i < len(top) else "" for top, x in zip(tops, shares)]
        print(f"| {i + 1} | " + " | ".join(cells) + " |")
    print()
    for (name, sites), top, x in list(zip(got, tops, shares))[1:]:
        rho = spearman(shares[0], x)
        print(f"- {name}: {len(set(top) & set(tops[0]))} of {len(tops[0])} of {got[0][0]}'s top ten"
              + (f", rank correlation {rho:.2f}" if rho is not None else "")
              + (", the same first" if top[:1] == tops[0][:1] else ", another first")
              + f". Where they differ: {WHY[name]}.")
        tell(got[0][0], name, got[0][1], sites, list(dict.fromkeys(tops[0] + top)))
    sys.stdout.flush()


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--only", default=",".join(LOADS), help="of " + ", ".join(LOADS))
    ap.add_argument("--tools", default=",".join(TOOLS), help="of " + ", ".join(TOOLS))
    ap.add_argument("--keep", action="store_true", help="what the tools wrote")
    args = ap.parse_args(ARGS[1:])
    if os.geteuid() != 0:
        sys.exit("bench: needs root, as the tools do")
    print(f"Made {time.strftime('%Y-%m-%d')}, Linux {os.uname().release}.")
    try:
        for name in args.only.split(","):
            results = {}
            print(f"\n### {name}\n")
            for which in args.tools.split(","):
                try:
                    took, results[which] = TOOLS[which](LOADS[name]())
                    calls = sum(results[which].get("calls", {}).values())
                    says = results[which].get("says")
                    print(f"- {which}: {took:.1f} s" + (f", {calls:,} calls" if calls else "")
                          + (f"; {says}" if says else ""))
                except (Skip, OSError, ValueError, subprocess.CalledProcessError) as e:
                    print(f"- {which}: not here: {str(e)[:160]}")
                sys.stdout.flush()
            for what in COMPARED:
                compare(*what, results)
    finally:
        where = os.path.dirname(scratch("x"))
        if args.keep:
            print(f"\nkept: {where}")
        else:
            shutil.rmtree(where, ignore_errors=True)


if __name__ == "__main__":
    main()
