#!/usr/bin/python3
"""Stacks of Go programs, which have no .eh_frame: by Go's own tables, stripped or not, and across
the stacks that Go exchanges (vDSO, runtime, cgo)."""

from harness import *

DEEP = 20  # of go_stacks.go
WORK_SEC = 2.5  # of CPU time


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


def run(path):
    """A run on it: (stacks as lists of names, leaf last, with their samples; counts by verdict)."""
    child = Child([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdout.readline()
    r, _ = record(["-p", child.pid], lambda: has_worked(child.pid, WORK_SEC), "--only", "oncpu", "-F", 499)
    verdicts = r.summary()["stacks"][0]
    child.end()
    stacks = [([name for name in stack.split(";")[1:] if "_[k]" not in name], n)
              for stack, n in r.folded("oncpu").items()]
    return stacks, verdicts


def complete(verdicts, share=0.99):
    total = sum(n for n in verdicts.values() if isinstance(n, int))
    if total < 100:
        skip(f"only {total} samples: the machine is busy")
    check(verdicts["complete"] >= share * total, f"complete: {verdicts}")


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


@once
def plain():
    return run(build("go_stacks"))


@fact
def every_call_is_on_the_stack():
    stacks, verdicts = plain()
    complete(verdicts)
    equal(share_exact(stacks, "spin"), 1, "share of main.spin's stacks that are exact")


@fact
def time_asked_of_the_vdso_is_on_the_callers_stack():
    stacks, _ = plain()
    equal(share_exact(stacks, "clock"), 1, "share of main.clock's stacks that are exact")
    in_vdso = sum(n for s, n in stacks if "main.clock" in s and "clock_gettime" in s[-1])
    check(in_vdso > 0, "no sample in the vDSO itself")


@fact
def the_allocator_is_on_its_callers_stack():
    stacks, _ = plain()
    # The runtime's own functions run on another stack and come back by the frame pointer, which
    # leaves out one runtime function, never one of the program's.
    equal(share_exact(stacks, "alloc"), 1, "share of main.alloc's stacks that are exact")


@fact
def a_stripped_program_has_whole_stacks_too():
    stacks, verdicts = run(build("go_stacks", "-ldflags=-s -w"))
    complete(verdicts)
    equal(share_exact(stacks, "spin"), 1, "share of main.spin's stacks that are exact, by name")


@fact
def a_position_independent_program_has_whole_stacks_too():
    complete(run(build("go_stacks", "-buildmode=pie"))[1])


def calls(*options):
    stacks, verdicts = run(build("go_calls", *options, cgo=True))
    complete(verdicts)
    for leaf, caller in (("spin_c", "main.callC"), ("main.spinGo", "main.callBack")):
        of = [(s, n) for s, n in stacks if leaf in s]
        total = sum(n for _, n in of)
        whole = sum(n for s, n in of if s[:4] == ["runtime.goexit", "runtime.main", "main.main",
                                                  caller])
        check(total >= 20, f"{total} samples in {leaf}")
        equal(whole, total, f"samples in {leaf} that lead back to {caller} and to the beginning")


@fact
def go_and_c_are_on_one_stack():
    calls()


@fact
def go_and_c_are_on_one_stack_in_a_position_independent_program():
    calls("-buildmode=pie")


@once
def labelled():
    child = Child([build("go_labels")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdout.readline()
    r, _ = record(["-p", child.pid], lambda: has_worked(child.pid, WORK_SEC), "-F", 499)
    child.end()
    return r


@fact
def samples_have_the_labels_that_the_program_set():
    p = labelled().profile("oncpu")
    total = p.sum("samples/count", "main.spin")
    if total < 100:
        skip(f"only {total} samples: the machine is busy")
    # Of what it computes in a round.
    for share, labels in ((0.6, {"endpoint": "/search"}), (0.2, {"endpoint": "/cart"}), (0.2, {"user": "anna"})):
        share_of(p.sum("samples/count", "main.spin", **labels) / total, share, total, f"samples under {labels}")
    check(p.sum("samples/count", "main.spin", endpoint="/sleep") == 0, "it computes under the label of its sleep")


@fact
def go_tool_pprof_focuses_on_labels_of_the_program():
    need("go")
    r = labelled()
    text = subprocess.run([tool("go"), "tool", "pprof", "-tags", r.path("oncpu.pb.gz")], capture_output=True, text=True,
                          env={**os.environ, "HOME": scratch("home")}, check=False).stdout
    for part in ("endpoint:", "/search", "/cart", "user:", "anna"):
        check(part in text, f"{part!r} is not in {text[:600]!r}")


main()
