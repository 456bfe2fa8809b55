#!/usr/bin/python3
"""Stacks of Go programs, which have no .eh_frame: by Go's own tables, stripped or not, and across
the stacks that Go exchanges (vDSO, runtime, cgo)."""

from harness import *

DEEP = 20  # of go_stacks.go
WORK_SEC = 1.2  # of CPU time: some 1,200 samples
# Where the stacks of a thread or of a goroutine end, by the beginning of the name.
ROOTS = ("runtime.goexit", "runtime.mstart", "runtime.rt0_go", "_rt0_", "runtime.mcall", "runtime.morestack", "_start", "clone",
         "__clone")


def build(name, *options, cgo=False):
    """The program, built as an ordinary one would be."""
    need("go", *(["gcc"] if cgo else []))
    path = scratch(name)
    env = {**os.environ, "GOCACHE": os.path.join(BUILD, "go-cache"), "GO111MODULE": "off",
           "GOFLAGS": "", "CGO_ENABLED": "1" if cgo else "0"}
    source = os.path.join(TOP, "tests/targets", f"{name}.go")
    out = subprocess.run([tool("go"), "build", "-o", path, *options, source], env=env,
                         capture_output=True, check=False)
    if out.returncode:
        raise Broken(f"go build: {out.stderr.decode()[-500:]}")
    return path


@once
def together():
    """A run on programs built in each way: (it, its on-CPU profile, {which: pid})."""
    programs = {"plain": build("go_stacks"), "stripped": build("go_stacks", "-ldflags=-s -w"),
                "pie": build("go_stacks", "-buildmode=pie"), "cgo": build("go_calls", cgo=True),
                "cgo pie": build("go_calls", "-buildmode=pie", cgo=True), "labels": build("go_labels")}
    children = {which: Child([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for which, path in programs.items()}
    for child in children.values():
        child.process.stdout.readline()
    pids = [child.pid for child in children.values()]
    r, _ = record(["-p", ",".join(map(str, pids))], lambda: has_worked(pids, WORK_SEC), "--only", "oncpu", "-F", 999)
    for child in children.values():
        child.end()
    return r, r.profile("oncpu"), {which: child.pid for which, child in children.items()}


def stacks_of(which):
    """Stacks of one of the programs as lists of names, leaf last, without the kernel's, and their samples; they end
    where stacks of Go end."""
    _, profile, pids = together()
    stacks = [([f.name for f in reversed(s.frames) if f.module != "[kernel]"], s.values[0])
              for s in profile.samples if s.labels.get("pid") == pids[which]]
    n = sum(k for _, k in stacks)
    if n < 100:
        skip(f"only {n} samples of {which}: the machine is busy")
    odd = [(k, s[:2]) for s, k in stacks if s and not s[0].startswith(ROOTS)]
    check(sum(k for k, _ in odd) <= 0.01 * n, f"{which}: of {n} stacks these do not end as stacks of Go do: {odd[:5]}")
    return stacks


@fact
def stacks_of_go_programs_are_complete():
    verdicts = together()[0].summary()["stacks"][0]
    total = sum(n for n in verdicts.values() if isinstance(n, int))
    check(verdicts["complete"] >= 0.99 * total, f"complete: {verdicts}")


def is_exact(stack, *leaf):
    """From the goroutine's beginning through every call down to `leaf`."""
    want = ["runtime.goexit", "main.main.func2", *["main.depth"] * (DEEP + 1), *leaf]
    return stack[:len(want)] == want


def share_exact(stacks, leaf):
    """Of the samples with main.`leaf` on their stack, those that show every frame below it."""
    of = [(is_exact(s, f"main.{leaf}"), n) for s, n in stacks if f"main.{leaf}" in s]
    total = sum(n for _, n in of)
    if total < 20:
        skip(f"only {total} samples in {leaf}")
    return sum(n for exact, n in of if exact) / total


@fact
def every_call_is_on_the_stack():
    equal(share_exact(stacks_of("plain"), "spin"), 1, "share of main.spin's stacks that are exact")


@fact
def time_asked_of_the_vdso_is_on_the_callers_stack():
    stacks = stacks_of("plain")
    equal(share_exact(stacks, "clock"), 1, "share of main.clock's stacks that are exact")
    in_vdso = sum(n for s, n in stacks if "main.clock" in s and "clock_gettime" in s[-1])
    check(in_vdso > 0, "no sample in the vDSO itself")


@fact
def the_allocator_is_on_its_callers_stack():
    # The runtime's own functions run on another stack and come back by the frame pointer, which
    # leaves out one runtime function, never one of the program's.
    equal(share_exact(stacks_of("plain"), "alloc"), 1, "share of main.alloc's stacks that are exact")


@fact
def a_stripped_program_has_whole_stacks_too():
    equal(share_exact(stacks_of("stripped"), "spin"), 1, "share of main.spin's stacks that are exact, by name")


@fact
def a_position_independent_program_has_whole_stacks_too():
    equal(share_exact(stacks_of("pie"), "spin"), 1, "share of main.spin's stacks that are exact")


def calls(which):
    stacks = stacks_of(which)
    for leaf, caller in (("spin_c", "main.callC"), ("main.spinGo", "main.callBack")):
        of = [(s, n) for s, n in stacks if leaf in s]
        total = sum(n for _, n in of)
        whole = sum(n for s, n in of if s[:4] == ["runtime.goexit", "runtime.main", "main.main",
                                                  caller])
        check(total >= 20, f"{total} samples in {leaf}")
        equal(whole, total, f"samples in {leaf} that lead back to {caller} and to the beginning")


@fact
def go_and_c_are_on_one_stack():
    calls("cgo")


@fact
def go_and_c_are_on_one_stack_in_a_position_independent_program():
    calls("cgo pie")


@fact
def samples_have_the_labels_that_the_program_set():
    _, p, pids = together()
    pid = pids["labels"]
    total = p.sum("samples/count", "main.spin", pid=pid)
    if total < 100:
        skip(f"only {total} samples: the machine is busy")
    # Of what it computes in a round.
    for share, labels in ((0.6, {"endpoint": "/search"}), (0.2, {"endpoint": "/cart"}), (0.2, {"user": "anna"})):
        share_of(p.sum("samples/count", "main.spin", pid=pid, **labels) / total, share, total, f"samples under {labels}")
    check(p.sum("samples/count", "main.spin", endpoint="/sleep") == 0, "it computes under the label of its sleep")


@fact
def go_tool_pprof_focuses_on_labels_of_the_program():
    need("go")
    r = together()[0]
    text = subprocess.run([tool("go"), "tool", "pprof", "-tags", r.path("oncpu.pb.gz")], capture_output=True, text=True,
                          env={**os.environ, "HOME": scratch("home")}, check=False).stdout
    for part in ("endpoint:", "/search", "/cart", "user:", "anna"):
        check(part in text, f"{part!r} is not in {text[:600]!r}")


main()
