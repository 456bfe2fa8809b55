"""CPython's frames as user space names them: in threads that wait, found and walked from outside, beside what the
interpreter says of them itself. Function, file, line and first line of every frame, in every version that is here."""

import glob
import json
import os
import re
import shutil
import subprocess

from harness import *

STACKS = os.path.join(BUILD, "tests", "lang", "python_stacks")
FRAMES = os.path.join(TOP, "tests", "targets", "python_frames.py")
NAME_MAX, FILE_MAX = 511, 1023


def python(version):
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for found in sorted(glob.glob(f"{root}/versions/{version}.*/bin/python{version}")):
        return found
    return skip(f"no python {version} below {root}/versions")


def harmless(text, limit):
    """As lang_decode() writes it: what could control a terminal or is no character is escaped."""
    out, size = [], 0
    for c in text:
        n = ord(c)
        if (n < 0x20 or 0x7f <= n < 0xa0 or 0xd800 <= n < 0xe000 or 0x200b <= n <= 0x200f or
                0x2028 <= n <= 0x202e):
            c = f"\\x{n:02x}" if n < 0x100 else f"\\u{n:04x}"
        size += len(c.encode())
        if size > limit:
            break
        out.append(c)
    return "".join(out)


def stacks_of(pid):
    for attempt in range(50):
        r = subprocess.run([STACKS, str(pid)], capture_output=True, timeout=60)
        if r.returncode != 4:
            break
        time.sleep(0.1)
    if r.returncode:
        raise Broken(f"python_stacks: {r.returncode}, {r.stderr.decode(errors='replace')}")
    # Several lines are one stack.
    lines = re.split(r"\n(?=\{)", r.stdout.decode().strip())
    return json.loads(lines[0]), {s["tid"]: s["frames"] for s in map(json.loads, lines[1:])}


def agrees_with_faulthandler(text, threads):
    """Its text has what JSON has: nobody wrote that here."""
    checked = 0
    for part in re.split(r"\n\n", text):
        head = re.match(r"(?:Current thread|Thread) 0x([0-9a-f]+)", part)
        if not head:
            continue
        frames = re.findall(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$', part, re.M)
        got = threads.get(int(head.group(1), 16))
        if got is None:
            continue
        for (file, line, name), frame in zip(frames, got):
            if line != "???":
                check(int(line) == frame[2], f"faulthandler: {file}:{line} {name}, found {frame[:3]}")
            if name.isascii() and "\\" not in name and "..." not in name:
                check(frame[0].split(".")[-1] == name.split(".")[-1],
                      f"faulthandler: {name}, found {frame[0]}")
            checked += 1
    check(checked > 100, f"faulthandler: {checked} frames")
    return checked


def is_named_as_it_says(interpreter, version, untested=False):
    where = scratch("python")
    os.mkdir(where)
    child = Child([interpreter, FRAMES, where], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    truth = json.loads(child.process.stdout.readline())
    runtime, found = stacks_of(child.pid)
    equal(runtime["runtime"], f"CPython {truth['version']}", "the runtime")
    check(truth["version"].startswith(version), f"it is {truth['version']}")
    equal(runtime["untested"], untested, "untested")
    check(runtime["type"], "the type of code objects is not known")
    frames = deepest = 0
    for thread in truth["threads"]:
        want = [[harmless(f[0], NAME_MAX), harmless(f[1], FILE_MAX), f[2], f[3]]
                for f in thread["frames"]]
        got = [f[:4] for f in found.get(thread["tid"], [])]
        if not equal(len(got), len(want), f"frames of {thread['name']}"):
            continue
        wrong = [(g, w) for g, w in zip(got, want) if g != w]
        check(not wrong, f"{thread['name']}: {len(wrong)} frames, first {wrong[:1]}")
        cut = [f for f, w in zip(found[thread["tid"]], thread["frames"])
               if f[4] != (len(w[0]) > NAME_MAX or len(w[1]) > FILE_MAX)]
        check(not cut, f"{thread['name']}: cut {cut[:1]}")
        frames += len(want)
        deepest = max(deepest, len(want))
    reads = [f[5] for stack in found.values() for f in stack]
    with open(os.path.join(where, "fault"), encoding="utf-8") as f:
        said = agrees_with_faulthandler(
            f.read(), {t["ident"]: found.get(t["tid"], []) for t in truth["threads"]})
    check(deepest > 1000, f"the deepest has {deepest}")
    print(f"# {truth['version']}: {frames} frames of {len(truth['threads'])} threads, the deepest {deepest}; "
          f"{said} by faulthandler; {sum(reads) / len(reads):.2f} reads a frame; ranges {runtime['ranges']}")
    child.end()
    return runtime


@fact
def frames_of_python_3_8_are_as_it_says():
    is_named_as_it_says(python("3.8"), "3.8")


@fact
def frames_of_python_3_9_are_as_it_says():
    is_named_as_it_says(python("3.9"), "3.9")


@fact
def frames_of_python_3_10_are_as_it_says():
    is_named_as_it_says(python("3.10"), "3.10")


@fact
def frames_of_python_3_11_are_as_it_says():
    is_named_as_it_says(python("3.11"), "3.11")


@fact
def frames_of_python_3_12_are_as_it_says():
    is_named_as_it_says(python("3.12"), "3.12")


@fact
def frames_of_python_3_13_are_as_it_says():
    is_named_as_it_says(python("3.13"), "3.13")


@fact
def frames_of_the_stripped_interpreter_are_as_it_says():
    need("python3.11")
    runtime = is_named_as_it_says("/usr/bin/python3.11", "3.11")
    # The compiler put a fifth of the loop elsewhere, where no symbol says so.
    check(len(runtime["ranges"]) > 1, "no cold part was found")


def awaits_what_it_says(interpreter):
    child = Child([interpreter, os.path.join(TOP, "tests", "targets", "python_tasks.py")], stdout=subprocess.PIPE)
    truth = json.loads(child.process.stdout.readline())
    r = subprocess.run([STACKS, "-t", str(child.pid)], capture_output=True, timeout=60, text=True)
    child.end()
    equal(r.returncode, 0, f"{truth['version']}: {r.stderr}")
    lines = [json.loads(line) for line in r.stdout.splitlines()]
    equal((lines[-1]["result"], lines[-1]["changed"]), (0, 0), "result, tasks that changed")
    want = {int(task): frames for task, frames in truth["tasks"].items()}
    equal(lines[-1]["seen"] - lines[-1]["ready"], len(want), f"{truth['version']}: tasks that wait")
    found = {t["task"]: [f[:4] for f in t["frames"]] for t in lines[:-1]}
    wrong = [(frames, found.get(task)) for task, frames in want.items() if found.get(task) != frames]
    check(not wrong and len(found) == len(want), f"{truth['version']}: {len(wrong)} of {len(want)} tasks, first {wrong[:1]}")
    equal([t["task"] for t in lines[:-1] if t["of_task"] and len(t["frames"]) == 1], [truth["of_task"]],
          "the task that awaits a task itself")


@fact
def tasks_of_asyncio_await_what_the_program_says():
    """In each version that is here, and in Debian's own."""
    found = sorted(glob.glob(os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"),
                                          "versions/3.*/bin/python3")))
    found = [p for p in found if int(p.split("/versions/3.")[1].split(".")[0]) in range(8, 14)]
    if not found and not os.path.exists("/usr/bin/python3"):
        skip("no python3")
    for interpreter in found + ["/usr/bin/python3"] * os.path.exists("/usr/bin/python3"):
        awaits_what_it_says(interpreter)


EMBEDS = "extern int Py_BytesMain(int, char **); int main(int c, char **v) { return Py_BytesMain(c, v); }"


def embedded(*how, strip=False):
    """A program of another name that embeds Debian's CPython."""
    need("cc", "python3.11")
    path = scratch("service")
    r = subprocess.run(["cc", "-x", "c", "-", "-o", path, *how, "-lm", "-lz", "-lexpat"], input=EMBEDS.encode(),
                       capture_output=True)
    if r.returncode:
        skip(f"python3.11-dev is not installed: {r.stderr.decode(errors='replace').strip()[-80:]}")
    if strip:
        subprocess.run(["strip", path], check=True)
    return path


def static_library():
    found = glob.glob("/usr/lib/python3.11/config-3.11-*/libpython3.11.a")
    return found[0] if found else skip("python3.11-dev is not installed")


@fact
def a_program_that_is_linked_with_the_library_is_python_too():
    is_named_as_it_says(embedded("-no-pie", "-x", "none", "-lpython3.11"), "3.11")


@fact
def a_program_that_embeds_python_and_exports_nothing_is_python_too():
    is_named_as_it_says(embedded("-no-pie", "-x", "none", static_library()), "3.11")


@fact
def a_stripped_program_that_embeds_python_is_python_too():
    is_named_as_it_says(embedded("-no-pie", "-rdynamic", "-x", "none", static_library(), strip=True), "3.11")


@fact
def a_process_that_has_just_been_started_is_asked_again_or_found():
    """Whenever it is looked at: it is not there yet, or right."""
    python3 = python("3.12")
    seen = set()
    for _ in range(30):
        child = Child([python3, "-S", "-c", "import time; time.sleep(60)"])
        for _ in range(30):
            r = subprocess.run([STACKS, str(child.pid)], capture_output=True)
            seen.add(r.returncode)
            if not check(r.returncode in (0, 1, 3, 4), f"status {r.returncode}") or r.returncode == 0:
                break
            if r.returncode == 1:
                check(b"no runtime" in r.stderr, f"refused: {r.stderr.decode()}")
        child.end()
    check(0 in seen, "it was never found")


main()
