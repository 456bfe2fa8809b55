#!/usr/bin/python3
"""Names, inlined calls and lines beside addr2line and llvm-symbolizer; separate debug info. No rights.

10,000 random addresses of .text a binary. The same: every inlined call, innermost first, with its
linker name; the line of each frame; the base name of each file; the function around them. Where
the others differ from each other or from us, these are the known reasons, each counted:

  suffix     The outermost function is a clone or a part (f.cold, f.isra.0): we and
             llvm-symbolizer show the symbol, addr2line the function it was made from (in GCC
             12's DWARF, a constructor is C4, of which the symbols C1 and C2 were made).
  alias      Several symbols cover the address (malloc, __libc_malloc): each tool has a preference.
  unnamed    No symbol covers the address (padding between functions); addr2line names what is
             near, llvm-symbolizer what is below. We name nothing.
  local      GCC gives functions of internal linkage no linker name in DWARF, where addr2line falls
             back to the short name, and for the innermost inlined call to the symbol's.
  unit file  addr2line 2.40 takes DWARF 5's file 1 for the unit's own file where GCC 12 made it
             another: the line is right, its file is not. llvm-symbolizer agrees with us.

Where nothing has a line, files are not compared: the others show the symbol table's file symbol,
which is the object's, not the function's.

What none of these explains must be at most one in a thousand, against each of the two.
"""

import bisect
import collections
import ctypes.util
import http.server
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live"))
from harness import BUILD, Broken, check, equal, fact, main, need, once, scratch, skip, tool  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LOOKUP = os.path.join(BUILD, "tests/names/lookup")
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
N = 10000
SEED = int(os.environ.get("NAMES_SEED", 1))  # of the addresses; 0 draws others each time
LIMIT = 1e-3
LLVM = next((t for t in ("llvm-symbolizer", "llvm-symbolizer-14") if tool(t)), None)

Frame = collections.namedtuple("Frame", "name file line")


def run(*argv, **kw):
    r = subprocess.run(argv, capture_output=True, text=True, errors="replace", **kw)
    if r.returncode:
        raise Broken(f"{' '.join(argv[:4])} …: {r.stderr.strip()[:300]}")
    return r.stdout


def ask(argv, addrs, **kw):
    return run(*argv, input="\n".join(f"0x{a:x}" for a in addrs), **kw)


# --- the three tools, as {address: [Frame…]} ---------------------------------------------------------

def base(path, line):
    return os.path.basename(path) if line else ""


def ours(path, addrs, *options, **kw):
    found, frames = {}, None
    for line in ask([LOOKUP, "-m", *options, path], addrs, **kw).split("\n"):
        if frames is None and line.startswith("0x"):
            frames = found.setdefault(int(line, 16), [])
            frames.clear()
        elif not line:
            frames = None
        else:
            shown, system, file, number, _ = line.split("\t")
            frames.append(Frame(system or None, base(file, int(number)), int(number)))
    return found


def gnu_style(text):
    found, frames, name = {}, None, None
    for line in text.split("\n"):
        if re.fullmatch(r"0x[0-9a-f]+", line):
            frames = found.setdefault(int(line, 16), [])
            frames.clear()
            name = None
        elif line and name is None:
            name = line.split("@")[0]
        elif line:
            file, _, number = re.sub(r" \(discriminator \d+\)$", "", line).rpartition(":")
            number = int(number) if number.isdigit() else 0
            frames.append(Frame(None if name == "??" else name, base(file, number), number))
            name = None
    return found


def addr2line(path, addrs):
    return gnu_style(ask(["addr2line", "-a", "-i", "-f", "-e", path], addrs))


def llvm(path, addrs):
    return gnu_style(ask([LLVM, "--no-demangle", "--inlines", "--functions=linkage",
                          "--output-style=GNU", "--print-address", f"--obj={path}"], addrs))


# --- what is true of a file --------------------------------------------------------------------------

def section(path, name=".text"):
    for line in run("readelf", "-SW", path).splitlines():
        m = re.match(rf"\s*\[ *\d+\] {re.escape(name)} +\S+ +(\w+) +\w+ +(\w+)", line)
        if m:
            return int(m[1], 16), int(m[2], 16)
    raise Broken(f"{path} has no {name}")


class Symbols:
    """All names that cover an address."""

    def __init__(self, path):
        self.rows = []
        for flags in (["-S"], ["-S", "-D"]):
            r = subprocess.run(["nm", *flags, path], capture_output=True, text=True, errors="replace")
            for line in r.stdout.splitlines():
                part = line.split()
                if len(part) == 4 and part[2] in "tTwWiI":
                    self.rows.append((int(part[0], 16), int(part[1], 16), part[3].split("@")[0]))
        self.rows.sort()
        self.longest = max((size for _, size, _ in self.rows), default=0)

    def at(self, addr):
        i = bisect.bisect_right(self.rows, (addr, 1 << 64, ""))
        names = set()
        while i and addr - self.rows[i - 1][0] < self.longest:
            i -= 1
            if addr < self.rows[i][0] + self.rows[i][1]:
                names.add(self.rows[i][2])
        return names


def plain(name):
    name = re.sub(r"([CD])[0-5](?=[EI])", r"\1", name or "")
    return re.sub(r"\.(cold|part|isra|constprop|localalias|lto_priv|llvm)(\.\d+)*", "", name)


def is_linker_name(name):
    return name.startswith(("_Z", "_R"))


def compare(ours_, theirs, both, symbols, addr):
    """None when equal, else the reason; `both` is what the third tool says."""
    if not any(f.line for f in theirs) and not any(f.line for f in ours_):
        theirs = [f._replace(file="") for f in theirs]
    if len(ours_) != len(theirs):
        return "inlines differ"
    if [f.line for f in ours_] != [f.line for f in theirs]:
        return "lines differ"
    for a, b in zip(ours_[:-1], theirs[:-1]):
        if a.name != b.name:
            return "inlined names differ" if is_linker_name(a.name) else "local"
    if [f.file for f in ours_] != [f.file for f in theirs]:
        return "unit file" if both and [f.file for f in ours_] == [f.file for f in both] else "files differ"
    a, b = ours_[-1].name, theirs[-1].name
    if a == b:
        return None
    if a is None and not symbols.at(addr):
        return "unnamed"
    if plain(a) == plain(b):
        return "suffix"
    names = symbols.at(addr) | {plain(n) for n in symbols.at(addr)}
    if a in names and (b in names or b is None or f"__{a}" == b or b.startswith("__")):
        return "alias"
    if b and not is_linker_name(b) and f"{len(b)}{b}" in a:
        return "local"
    return "names differ"


EXPLAINED = {"suffix", "alias", "unnamed", "local", "unit file"}


def agree(path, debug=None):
    """10,000 addresses of `path`, whose debug info the others are given in `debug`."""
    need("addr2line", "nm", "readelf")
    if not LLVM:
        skip("llvm-symbolizer is not installed (llvm)")
    start, size = section(path)
    rng = random.Random(SEED or None)
    addrs = sorted({rng.randrange(start, start + size) for _ in range(N)})
    symbols = Symbols(debug or path)
    mine, gnu, clang = ours(path, addrs), addr2line(debug or path, addrs), llvm(debug or path, addrs)
    for what, other, third in (("addr2line", gnu, clang), ("llvm-symbolizer", clang, gnu)):
        reasons, example = collections.Counter(), {}
        for a in addrs:
            reason = compare(mine[a], other[a], third[a], symbols, a)
            if reason:
                reasons[reason] += 1
                example.setdefault(reason, (hex(a), mine[a], other[a]))
        print(f"# {os.path.basename(path)}, {what}: {len(addrs) - sum(reasons.values())} of "
              f"{len(addrs)} equal; {dict(reasons)}")
        bad = {r: n for r, n in reasons.items() if r not in EXPLAINED}
        check(sum(bad.values()) <= LIMIT * len(addrs),
              f"{path}, {what}: {bad}, such as {[example[r] for r in bad]}")
    check(any(len(f) > 1 for f in mine.values()), f"{path}: no inlined call was found at all")


@once
def inlines():
    """The C++ program, built here so that it is the same everywhere."""
    need("g++")
    out = scratch("inlines")
    run("g++", "-O2", "-g", "-std=c++17", "-o", out, os.path.join(HERE, "inlines.cc"))
    return out


def some_addresses(path, n=400):
    start, size = section(path)
    rng = random.Random(2)
    return sorted({rng.randrange(start, start + size) for _ in range(n)})


def same_as_unstripped(path, *options):
    """`path` was made from inlines() by putting its debug info elsewhere or packing it."""
    addrs = some_addresses(inlines())
    want, got = ours(inlines(), addrs), ours(path, addrs, *options)
    wrong = [hex(a) for a in addrs if got[a] != want[a]]
    check(not wrong, f"{len(wrong)} of {len(addrs)} differ, first {wrong[:1]}: "
                     f"{[(got[int(a, 16)], want[int(a, 16)]) for a in wrong[:1]]}")
    check(any(len(f) > 1 for f in got.values()), "no inlined call was found")


# --- facts -----------------------------------------------------------------------------------------

@fact
def a_cxx_program_is_named_as_others_name_it():
    agree(inlines())


@fact
def a_cxx_program_of_clang_is_named_as_others_name_it():
    need("clang++")
    out = scratch("inlines-clang")
    run("clang++", "-O2", "-gdwarf-4", "-std=c++17", "-o", out, os.path.join(HERE, "inlines.cc"))
    agree(out)


@fact
def dwarf_4_is_read_as_others_read_it():
    need("g++")
    out = scratch("inlines-4")
    run("g++", "-O3", "-gdwarf-4", "-ffunction-sections", "-std=c++17", "-o", out,
        os.path.join(HERE, "inlines.cc"))
    agree(out)


@fact
def libc_is_named_by_its_debug_package():
    if not os.path.exists(LIBC):
        skip(f"no {LIBC} here")
    m = re.search(r"Build ID: (\w\w)(\w+)", run("readelf", "-n", LIBC))
    debug = m and f"/usr/lib/debug/.build-id/{m[1]}/{m[2]}.debug"
    if not debug or not os.path.exists(debug):
        skip("no debug symbols of libc (apt-get install libc6-dbg)")
    agree(LIBC, debug)


@fact
def a_rust_program_is_named_as_others_name_it():
    if not shutil.which("rustc"):
        skip("rustc is not installed")
    out = scratch("inlines-rust")
    r = subprocess.run(["rustc", "-O", "-g", "--edition=2018", "-o", out, os.path.join(HERE, "inlines.rs")],
                       capture_output=True, text=True)
    if r.returncode:
        skip(f"rustc does not build it: {r.stderr.strip()[:120]!r}")
    agree(out)


@fact
def memscope_itself_is_named_as_others_name_it():
    agree(os.path.join(BUILD, "memscope"))


def split(path, *options):
    """A stripped copy, and its debug info in `path`."""
    out = scratch("stripped")
    need("objcopy", "strip")
    run("objcopy", "--only-keep-debug", *options, inlines(), path)
    run("strip", "-o", out, inlines())
    return out


def build_id(path):
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", path))[1]


def by_build_id(path):
    """What `path` must be called below a root, and that root."""
    root, b = scratch("root"), build_id(path)
    name = f"{root}/usr/lib/debug/.build-id/{b[:2]}/{b[2:]}.debug"
    os.makedirs(os.path.dirname(name))
    return root, name


@fact
def debug_info_is_found_by_build_id():
    root, name = by_build_id(inlines())
    same_as_unstripped(split(name), "-r", root)


@fact
def debug_info_is_found_by_debuglink_in_a_directory_beside():
    debug = scratch("debug")
    stripped = split(debug)
    os.mkdir(os.path.join(os.path.dirname(stripped), ".debug"))
    beside = os.path.join(os.path.dirname(stripped), ".debug", os.path.basename(debug))
    shutil.move(debug, beside)
    run("objcopy", f"--add-gnu-debuglink={beside}", stripped)
    same_as_unstripped(stripped)


@fact
def a_debuglink_without_build_id_is_held_to_its_crc():
    plain_ = scratch("no-id")
    debug = scratch("no-id.debug")
    run("objcopy", "--remove-section=.note.gnu.build-id", inlines(), plain_)
    run("objcopy", "--only-keep-debug", plain_, debug)
    stripped = scratch("no-id-stripped")
    run("strip", "-o", stripped, plain_)
    run("objcopy", f"--add-gnu-debuglink={debug}", stripped)
    same_as_unstripped(stripped)
    with open(debug, "r+b") as f:
        f.seek(-1, os.SEEK_END)
        last = f.read(1)
        f.seek(-1, os.SEEK_END)
        f.write(bytes([last[0] ^ 1]))
    addrs = some_addresses(stripped)
    check(all(f[-1].line == 0 for f in ours(stripped, addrs).values()),
          "a file with another CRC was taken")


class Server(http.server.BaseHTTPRequestHandler):
    """A debuginfod server that has one file, or says nothing at all."""
    file = None
    asked = []

    def do_GET(self):
        Server.asked.append(self.path)
        if self.path == f"/buildid/{build_id(inlines())}/debuginfo" and Server.file:
            with open(Server.file, "rb") as f:
                data = f.read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        else:
            self.send_error(404)

    def log_message(self, *_):
        pass


def with_servers(url, seconds=10):
    return {**os.environ, "DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": scratch("cache"),
            "DEBUGINFOD_MAXTIME": str(seconds), "DEBUGINFOD_PROGRESS": ""}


@fact
def debug_info_comes_from_a_debuginfod_server_if_one_is_configured():
    if not ctypes.util.find_library("debuginfod"):
        skip("libdebuginfod is not installed (libdebuginfod1)")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        Server.file = scratch("debug")
        stripped = split(Server.file)
        addrs = some_addresses(inlines())
        check(all(f[-1].line == 0 for f in ours(stripped, addrs).values()), "it has lines already")
        equal(Server.asked, [], "asked without being configured")
        env = with_servers(f"http://127.0.0.1:{server.server_port}")
        want, got = ours(inlines(), addrs), ours(stripped, addrs, env=env)
        check(all(got[a] == want[a] for a in addrs), "names differ from those of the whole program")
        # From another program's file no name is taken, whatever the server calls it.
        Server.file = os.path.join(BUILD, "memscope")
        env["DEBUGINFOD_CACHE_PATH"] = scratch("cache")
        check(all(f[-1].line == 0 for f in ours(stripped, addrs, env=env).values()),
              "names came from another program's debug info")
    finally:
        server.shutdown()


@fact
def a_debuginfod_server_that_does_not_answer_is_not_waited_for():
    if not ctypes.util.find_library("debuginfod"):
        skip("libdebuginfod is not installed (libdebuginfod1)")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        stripped = split(scratch("debug"))
        start = time.monotonic()
        ours(stripped, some_addresses(stripped),
             env=with_servers(f"http://127.0.0.1:{silent.getsockname()[1]}", 2))
        took = time.monotonic() - start
    # Two seconds are allowed, and progress is asked for about once a second; the library itself waits for 90.
    check(took < 45, f"it took {took:.1f} s")


@fact
def a_file_of_another_build_id_is_not_taken():
    root, name = by_build_id(inlines())
    stripped = split(name)
    shutil.copy(os.path.join(BUILD, "memscope"), name)
    check(all(f[-1].line == 0 for f in ours(stripped, some_addresses(stripped), "-r", root).values()),
          "names came from another program's debug info")


@fact
def zlib_and_zstd_debug_sections_are_unpacked():
    for how in ("zlib", "zlib-gnu", "zstd"):
        out = scratch(how)
        r = subprocess.run(["objcopy", f"--compress-debug-sections={how}", inlines(), out],
                           capture_output=True, text=True)
        if r.returncode:
            print(f"# objcopy knows no {how}: {r.stderr.strip()}")
            continue
        check(os.path.getsize(out) < os.path.getsize(inlines()), f"{how} made nothing smaller")
        same_as_unstripped(out)


@fact
def what_dwz_moved_to_a_shared_file_is_found():
    need("dwz")
    a, b = scratch("dwz-a"), scratch("dwz-b")
    common = scratch("dwz-common")
    shutil.copy(inlines(), a)
    shutil.copy(inlines(), b)
    run("dwz", "-m", common, a, b)
    check(os.path.exists(common), "dwz shared nothing")
    same_as_unstripped(a)


@fact
def mini_debug_info_names_what_is_not_exported():
    need("xz", "objcopy", "strip", "nm")
    mini = scratch("mini")
    run("objcopy", "--strip-debug", "--remove-section=.comment", inlines(), mini)
    run("objcopy", "--only-keep-debug", mini)
    run("xz", "-k", mini)
    stripped = scratch("stripped")
    run("strip", "-o", stripped, inlines())
    before = ours(stripped, some_addresses(stripped))
    run("objcopy", f"--add-section=.gnu_debugdata={mini}.xz", stripped)
    addrs = some_addresses(stripped)
    want, got = ours(inlines(), addrs), ours(stripped, addrs)
    equal([got[a][-1].name for a in addrs], [want[a][-1].name for a in addrs], "functions")
    check(sum(f[-1].name is None for f in before.values()) > len(addrs) / 4,
          "the stripped program had its names already")


@fact
def stripped_code_is_told_apart_by_function():
    stripped = scratch("stripped")
    run("strip", "-o", stripped, inlines())
    addrs = some_addresses(stripped)
    text = ask([LOOKUP, stripped], addrs)
    shown = dict(re.findall(r"^(0x\w+)\n(.*?)\t", text, re.M))
    symbols = Symbols(inlines())
    starts = {a: start for a in addrs for start, size, _ in symbols.rows if start <= a < start + size}
    wrong = [(hex(a), shown[hex(a)]) for a, start in starts.items()
             if shown[hex(a)] != f"[{os.path.basename(stripped)}+0x{start:x}]"
             and shown[hex(a)].startswith("[")]
    check(len(starts) > 200, f"only {len(starts)} addresses are in functions")
    check(not wrong, f"{len(wrong)} of {len(starts)}: {wrong[:3]}")


if __name__ == "__main__":
    main(needs_root=False)
