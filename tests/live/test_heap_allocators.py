"""What memscope says of each arena and class of an allocator, beside what the allocator says of itself while the program stands
still: equal, byte by byte."""

from harness import *

LIBRARIES = {"jemalloc": ("libjemalloc.so.2", "libjemalloc2"), "mimalloc": ("libmimalloc.so.2.0", "libmimalloc2.0"),
             "tcmalloc_minimal": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"), "tcmalloc": ("libtcmalloc.so.4", "libgoogle-perftools4")}
THREADS, ROUNDS = 3, 200


class Own(Target):
    def __init__(self, name="heap_own", preload=None):
        path, env = os.path.join(TARGETS, name), dict(os.environ)
        if not os.path.exists(path):
            skip(f"{name} is not built: its C library is not installed")
        if preload:
            library, package = LIBRARIES[preload]
            found = [p for p in (f"/usr/lib/{m}-linux-gnu/{library}" for m in ("x86_64", "aarch64")) if os.path.exists(p)]
            if not found:
                skip(f"{package} is not installed")
            env["LD_PRELOAD"] = found[0]
        Child.__init__(self, [path, str(THREADS), str(ROUNDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self._line("ready", READY_SEC)
        self.said = self.ask("stats")

    def rows(self, word):
        return [line[1:] for line in self.said if line[0] == word]


def heap(question, pid, *more):
    done = subprocess.run([MEMSCOPE, "heap", question, "--json", "--top", "100000", "-p", str(pid), *more], capture_output=True, text=True,
                          timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Broken(f"memscope heap {question}: status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


class Answers:
    """Both questions, to one program."""

    def __init__(self, target):
        self.target = target
        self.allocator = heap("allocator", target.pid)
        self.fragmentation = heap("fragmentation", target.pid)
        self.arena = {row["arena"]: row for row in self.allocator["arenas"]}

    def classes(self, arena):
        return [row for row in self.allocator["classes"] if row["arena"] == arena]

    def parts_add_up(self):
        """What is free by one question is free by the other."""
        for row in self.fragmentation["arenas"]:
            other = self.arena[row["arena"]]
            equal(row["free"], row["empty"] + row["shared"], f"free bytes of {row['arena']}")
            equal(row["free"], sum(other[k] for k in ("cached", "fast", "free", "dirty", "muzzy", "top")),
                  f"free bytes of {row['arena']} beside `allocator`")
            equal(row["in_use"], other["allocated"], f"bytes in use of {row['arena']} beside `allocator`")
            check(row["pinned"] <= row["shared"] and row["between"] <= row["free"], f"it says: {row}")


@once
def glibc():
    return Answers(Own())


@once
def jemalloc():
    return Answers(Own(preload="jemalloc"))


@once
def mimalloc():
    return Answers(Own(preload="mimalloc"))


def attributes(words):
    """Of a line of XML."""
    return dict(w.rstrip("/>").replace('"', "").split("=") for w in words if isinstance(w, str) and "=" in w)


@fact
def arenas_of_glibc_are_what_malloc_info_says():
    a, said, nr = glibc(), {}, None
    for line in a.target.said:
        if line[0] == "<heap":
            nr = attributes(line)["nr"]
            said[nr] = {}
        elif line[0] in ("<total", "<system") and nr is not None:
            at = attributes(line)
            said[nr].setdefault(f"{line[0][1:]} {at['type']}", at)
        elif line[0] == "</heap>":
            nr = None
    equal(sorted(said), ["0", "1", "2"], "arenas that malloc_info() lists")
    for nr, total in said.items():
        row, classes = a.arena[f"glibc arena {nr}"], a.classes(f"glibc arena {nr}")
        free = sum(c["free_blocks"] for c in classes)
        equal(row["mapped"], int(total["system current"]["size"]), f"bytes that arena {nr} has of the system")
        fast = int(total["total fast"]["count"])
        # A chunk in a fastbin has 8 bytes of header beside what was allocated.
        equal(row["fast"] + 8 * fast, int(total["total fast"]["size"]), f"bytes in fastbins of arena {nr}")
        # The top's header counts there, as does, of each chunk in a bin, the flag in its size (malloc.c, __malloc_info()).
        equal(free, fast + int(total["total rest"]["count"]) - 1, f"free chunks of arena {nr}")
        equal(row["free"] + (free - fast) + row["top"] + 8, int(total["total rest"]["size"]), f"bytes in bins and top of arena {nr}")


def sums_are_those_of_mallinfo2(a):
    arena, ordblks, smblks, hblks, hblkhd, _, uordblks, fordblks, _ = a.target.rows("mallinfo")[0]
    rows = [row for name, row in a.arena.items() if name.startswith("glibc arena")]
    equal(sum(r["mapped"] for r in rows), arena, "arena")
    equal(sum(r["fast"] + r["free"] + r["top"] + 8 for r in rows) + 8 * smblks, fordblks, "fordblks")
    equal(sum(r["allocated"] + r["cached"] + r["metadata"] - 8 for r in rows) - 8 * smblks, uordblks, "uordblks")
    equal(sum(c["free_blocks"] for c in a.allocator["classes"]), ordblks - len(rows) + smblks, "free chunks")
    own = a.arena["glibc, own mappings"]
    said = {row["type"]: row["bytes"] for row in heap("census", a.target.pid, "--by", "arena")["types"]}
    equal({name: n for name, n in said.items() if name in a.arena}, {name: row["allocated"] for name, row in a.arena.items()},
          "a census by arena")
    equal(own["blocks"], hblks, "hblks")
    equal(own["mapped"], hblkhd, "hblkhd")


@fact
def sums_of_glibc_are_those_of_mallinfo2():
    sums_are_those_of_mallinfo2(glibc())


@fact
def sums_of_a_glibc_that_is_linked_statically_are_too():
    """Its first thread's variables are at the front of [heap], before the main arena."""
    sums_are_those_of_mallinfo2(Answers(Own("heap_own_static")))


@fact
def arenas_of_jemalloc_are_what_mallctl_says():
    a, said = jemalloc(), {}
    for nr, key, value in a.target.rows("je_arena"):
        said.setdefault(nr, {})[key] = value
    seen = 0
    for nr, want in said.items():
        row = a.arena.get(f"jemalloc arena {nr}")
        if not row:
            equal(want["pactive"], 0, f"pages of arena {nr}, which is not listed")
            continue
        seen += 1
        equal(row["allocated"], want["small.allocated"] + want["large.allocated"], f"allocated of arena {nr}")
        equal(row["active"], 4096 * want["pactive"], f"active of arena {nr}")
        equal(row["dirty"], 4096 * want["pdirty"], f"dirty of arena {nr}")
        equal(row["muzzy"], 4096 * want["pmuzzy"], f"muzzy of arena {nr}")
        equal(row["retained"], want["retained"], f"retained of arena {nr}")
    check(seen >= 2, f"{seen} arenas: {list(a.arena)}")
    total = dict(a.target.rows("je"))
    equal(a.allocator["allocators"][0]["allocated"], total["allocated"], "stats.allocated")
    equal(sum(r["active"] for n, r in a.arena.items() if n.startswith("je")), total["active"], "stats.active")


@fact
def classes_of_jemalloc_are_its_bins():
    a = jemalloc()
    bins = a.target.rows("je_bin")
    check(len(bins) > 8, f"{len(bins)} bins")
    for nr, size, regs, _ in bins:
        got = [c["blocks"] for c in a.classes(f"jemalloc arena {nr}") if c["size"] == size]
        equal(got, [regs], f"regions in use of {size} bytes of arena {nr}")


@fact
def classes_of_mimalloc_are_what_its_own_visit_finds():
    a, want, got = mimalloc(), {}, {}
    for size, used in a.target.rows("mi"):
        want[size] = want.get(size, 0) + used
    for c in a.allocator["classes"]:
        if c["arena"].startswith("mimalloc"):
            got[c["size"]] = got.get(c["size"], 0) + c["blocks"]
    check(len(want) > 8, f"it visited {want}")
    small = {size: n for size, n in want.items() if size < 1 << 17}
    # mimalloc 2.0 says of a block that has pages of its own how much of it was asked for; it lies in slices of 64 KiB.
    equal({size: n for size, n in got.items() if size in small and n}, small, "blocks in use, by size")


@fact
def figures_of_tcmalloc_are_its_own():
    for name in ("tcmalloc_minimal", "tcmalloc"):
        a = Answers(Own(preload=name))
        said = {key.split(".")[1]: value for key, value in a.target.rows("tc")}
        row, total = a.arena["tcmalloc arena 0"], a.allocator["allocators"][0]
        equal(row["allocated"], said["current_allocated_bytes"], "current_allocated_bytes")
        equal(row["mapped"], said["heap_size"], "heap_size")
        equal(row["cached"], said["thread_cache_free_bytes"] + said["transfer_cache_free_bytes"], "bytes in caches")
        # What no object of a span fits into counts there.
        equal(row["free"] + row["metadata"], said["central_cache_free_bytes"], "central_cache_free_bytes")
        equal(row["dirty"], said["pageheap_free_bytes"], "pageheap_free_bytes")
        equal(row["retained"], said["pageheap_unmapped_bytes"], "pageheap_unmapped_bytes")
        equal([total["caches"], total["unknown"]], [THREADS, 0], "caches of threads, and bytes that were not walked")
        a.parts_add_up()


@fact
def blocks_of_musl_are_those_that_the_program_keeps():
    for name in ("heap_own_musl", "heap_own_musl_shared"):
        a = Answers(Own(name))
        # musl keeps the size that was asked for; here it is rounded up to words. Nothing else in the program allocates.
        want = {(size + 7) // 8 * 8: count for size, count, _ in a.target.rows("kept")}
        equal({c["size"]: c["blocks"] for c in a.allocator["classes"] if c["blocks"] and c["arena"].startswith("musl")}, want, f"blocks in use of {name}, by size")
        equal(a.arena["musl, own mappings"]["blocks"], sum(n for size, n in want.items() if size >= 131052),
              "blocks that have mappings of their own")
        equal(a.allocator["allocators"][0]["unknown"], 0, "bytes that were not walked")
        a.parts_add_up()


@fact
def mapping_of_no_allocator_is_an_object_that_keeps_others():
    a = glibc()
    mapping, block = a.target.rows("mapping")[0]
    none = a.classes("mappings of no allocator")
    check(1 << 20 in [c["size"] for c in none], f"mappings: {none}")
    def found(expr):
        return heap("query", a.target.pid, expr)["objects"]
    equal(found('arena = "mappings of no allocator" and size = 1M'), 1, "objects by that condition")
    equal(found('arena ~ "^glibc arena 1$"'), a.arena["glibc arena 1"]["blocks"], "objects of an arena")
    done = subprocess.run([MEMSCOPE, "heap", "retainers", block, "-p", str(a.target.pid)], capture_output=True, text=True,
                          timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
    check("the variable mapping" in done.stdout, f"it says: {done.stdout}{done.stderr}")
    check("+800" in done.stdout, f"the link from the mapping at {mapping}: {done.stdout}")


@fact
def file_has_arenas_and_what_is_free():
    a, path = glibc(), scratch("heap.snapshot")
    subprocess.run([MEMSCOPE, "heap", "snapshot", "-o", path, "-p", str(a.target.pid)], capture_output=True, timeout=FINISH_SEC, check=True)
    done = subprocess.run([MEMSCOPE, "heap", "allocator", path, "--json", "--top", "100000"], capture_output=True, timeout=FINISH_SEC, check=True)
    stored = json.loads(done.stdout)
    for table in ("allocators", "arenas", "classes"):
        equal(stored[table], a.allocator[table], f"{table} of a file")


@fact
def what_is_free_is_free_by_both_questions():
    for answers in (glibc(), jemalloc(), mimalloc()):
        answers.parts_add_up()


main()
