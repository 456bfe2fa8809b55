"""Frames of V8: each stack that a program of node sees itself is the one in the profile, function by function, file by
file, line by line: interpreted, compiled by Sparkplug, optimized with what is inlined, for waits, samples and allocations."""

import glob
import re
import threading

from harness import *

LANG = "[JavaScript]"
GONE = "[JavaScript code that is gone]"  # V8 has freed it before it was read, as memscope waited for a CPU
PROGRAM = os.path.join(TOP, "tests/targets/js_stacks.js")
MODES = {"interpreted": ("--no-opt", "--no-sparkplug"), "sparkplug": ("--no-opt", "--always-sparkplug"), "optimized": ()}
MAGLEV = 24  # from here on it is compiled in
NO_MAGLEV = ("--no-maglev",)
MAGLEV_MODES = {"interpreted": MODES["interpreted"] + NO_MAGLEV, "sparkplug": MODES["sparkplug"] + NO_MAGLEV,
                "maglev": ("--no-turbofan",), "turbofan": NO_MAGLEV, "optimized": ()}
FUNCTIONS = {"sleep": "sleeper", "spin": "spinner", "alloc": "allocator"}


def nodes():
    """Those that are asked for, or all that are found (make soak), else the one that is installed."""
    asked = os.environ.get("MEMSCOPE_TEST_NODES", tool("node") or "")
    if asked != "every":
        return asked.split()
    where = ("/usr/bin/node", "/opt/node*/bin/node", os.path.expanduser("~/.nvm/versions/node/*/bin/node"))
    return sorted(node for pattern in where for node in glob.glob(pattern))


def modes(node):
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return MAGLEV_MODES if int(version[1:].split(".")[0]) >= MAGLEV else MODES


class Node(Child):
    """The program in one mode, when it has been everywhere."""

    def __init__(self, node, mode):
        self.name = f"{node} {mode}"
        self.log = scratch("js_stacks")
        super().__init__([node, *modes(node)[mode], PROGRAM, self.log], **QUIET)

    def is_ready(self):
        return os.path.exists(self.log) and "\nready\n" in open(self.log).read()

    def truth(self, what):
        lines = [line.rstrip("\n").split("\t") for line in open(self.log)]
        return {tuple(place(*f.split("|")) for f in line[1:]) for line in lines if line[0] == what}


def place(function, file, line):
    """As in a profile: with the last part of the file's name. A function without a name is called after what it was assigned to."""
    base = file if file.startswith("node:") else file.rsplit("/", 1)[-1]
    return (function, base, int(line))


def js_frames(sample):
    """Leaf first: function, file, line."""
    frames = []
    for f in sample.frames:
        if f.module == LANG and not f.file.startswith("wasm:"):
            match = re.match(r"(.*?)(?: \(([^()]*)\))?$", f.name)
            frames.append((match.group(1), match.group(2) or "", f.line))
    return tuple(frames)


def agrees(got, want):
    return len(got) == len(want) and all(
        (g[0] == w[0] or not w[0]) and g[1] == w[1] and g[2] == w[2] for g, w in zip(got, want))


@once
def recorded():
    if os.uname().machine != "x86_64":
        skip("frames of V8 are read on x86-64 only")
    if not nodes():
        skip("no node is installed")
    children = [Node(node, mode) for node in nodes() for mode in modes(node)]
    for child in children:
        until(child.is_ready, f"{child.name} to have been everywhere", 2 * READY_SEC)
    run = Run("-p", ",".join(str(c.pid) for c in children), "--alloc=exact", "--offcpu=exact", "-F", 499,
              "--max-overhead", 1000)
    run.ready()
    for child in children:
        has_worked(child.pid, 0.3, 80)
    run.stop()
    for child in children:
        child.end()
    return run, children


def compare(source, what, leaf, share):
    """Of the samples below a place's function, at least `share` are the stack that the program printed there, below frames
    of `leaf`."""
    run, children = recorded()
    p = run.profile(source)
    for child in children:
        truth = child.truth(what)
        again = [w for w in truth if all(f[0] != "main" for f in w)]  # what begins in main() is there once
        n, gone, wrong, met = 0, 0, [], set()
        for s in p.samples:
            frames = js_frames(s)
            names = [f[0] for f in frames]
            if s.labels.get("pid") != child.pid or FUNCTIONS[what] not in names or "say" in names:
                continue
            at = names.index(FUNCTIONS[what])
            n += s.values[0]
            got = [w for w in truth if agrees(frames[at + 1:], w[1:])]
            # On the CPU it is at any place of it. Where V8 itself is called at its entry, optimized code has no position.
            if what != "spin":
                got = [w for w in got if frames[at][2] in (0, w[0][2])]
            if what == "sleep":
                got = [w for w in got if frames[at][2]]
            if GONE in names:
                gone += s.values[0]
            elif got and all(re.fullmatch(leaf, name) for name in names[:at]):
                met.add(got[0])
            else:
                wrong.append((s.values[0], frames))
        bad = sum(w for w, f in wrong)
        check(n > 0, f"{child.name}: no samples of {what}")
        check(bad <= (1 - share) * n, f"{child.name}: {bad} of {n} are other stacks than printed: {wrong[:1]}, printed "
              f"{list(truth)[:1]}")
        check(gone <= 0.005 * n, f"{child.name}: of {n} samples of {what} {gone} have code that is gone")
        check(len(met) >= len(again) // 2 or source != "offcpu", f"{child.name}: {what}: {len(met)} of {len(again)} were seen")


@fact
def a_javascript_function_that_waits_is_where_node_says():
    """Under recursion, a constructor, a generator, an async function, WebAssembly, callbacks of functions that V8 has in its
    own code and in C++, timers; in two threads, each of which has a heap of its own."""
    compare("offcpu", "sleep", "wait", 1)


@fact
def a_javascript_function_on_the_cpu_is_where_node_says():
    compare("oncpu", "spin", "spinner", 0.995)


@fact
def native_memory_that_javascript_allocates_has_its_line():
    compare("alloc", "alloc", ".*", 1)


@fact
def the_heap_of_node_is_said_to_be_the_native_part():
    if not nodes():
        skip("no node is installed")
    with subprocess.Popen([nodes()[0], "-e", "console.log('ready'); setInterval(() => {}, 1000)"], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        got = json.loads(subprocess.run([MEMSCOPE, "heap", "census", "--json", "-p", str(child.pid)], capture_output=True, check=True,
                                        timeout=FINISH_SEC, stdin=subprocess.DEVNULL).stdout)
        child.kill()
    check(any("node keeps its objects in its own heap" in note for note in got["notes"]), f"notes: {got['notes']}")


@fact
def nearly_all_stacks_of_node_are_complete():
    run, children = recorded()
    rows = [row for row in run.summary()["stacks"] if row["source"] in ("oncpu", "offcpu", "alloc")]
    check(len(rows) == 3, f"{rows}")
    for row in rows:
        n = sum(v for v in row.values() if isinstance(v, int))
        check(row["complete"] >= 0.99 * n, f"{row}")


main()
