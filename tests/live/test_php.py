"""Frames of PHP: each stack that PHP prints itself is the one in the profile, function by function, file by file, line by
line, for waits, samples, allocations and growth; and those of a request under php-fpm.

MEMSCOPE_PHP may name further interpreters, with ":" between them."""

import socket
import struct
import threading

from harness import *
from languages import *
from stacks import whole

LANG = "[PHP]"
PROGRAM = os.path.join(TOP, "tests/targets/php_stacks.php")
ALLOCATED = 100000  # bytes of text, by the program; PHP adds a few, and rounds up


def interpreters():
    found = ["/usr/bin/php8.2", *filter(None, os.environ.get("MEMSCOPE_PHP", "").split(":"))]
    found = [path for path in found if os.path.exists(path)]
    if not found:
        skip("php8.2 is not installed")
    return found


KINDS = ("own heap", "malloc", "JIT")
JIT = ("-d", "zend_extension=opcache", "-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=16M", "-d",
       "opcache.jit=function")


def read_line(line):
    shape, what, *frames = line.decode().rstrip("\n").split("\t")
    return what, tuple(named(*part.rsplit("|", 2)) for part in frames), shape


class Php(Printer):
    """The program under one interpreter."""

    def __init__(self, path, kind):
        self.kind = kind
        library = os.path.join(os.path.dirname(os.path.dirname(path)), "lib")
        super().__init__(f"{path}, {kind}", [path, "-n", *(JIT if kind == "JIT" else ()), PROGRAM, "600"], read_line,
                         env={**os.environ, "USE_ZEND_ALLOC": "0" if kind == "malloc" else "1",
                              **({} if path.startswith("/usr/") else {"LD_LIBRARY_PATH": library})})


lang_frames = frames_of(LANG)


# Two scripts of the same size, whose functions come to lie at the same addresses, one request after the other.
REQUEST = """<?php
function %s_spin() { for ($i = 0, $x = 0; $i < 400000; $i++) $x = ($x * 31 + $i) %% 1000003; return $x; }
class %s { function run() { return %s_spin(); } }
echo (new %s())->run();
"""
SCRIPTS = ("one", "two")


def fcgi_record(kind, content):
    return struct.pack("!BBHHBx", 1, kind, 1, len(content), 0) + content


def fcgi_request(path, script):
    """A FastCGI request (the specification's section 3.3), and all that is answered."""
    params = b"".join(bytes([len(k), len(v)]) + k.encode() + v.encode()
                      for k, v in {"SCRIPT_FILENAME": script, "REQUEST_METHOD": "GET"}.items())
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(fcgi_record(1, struct.pack("!HB5x", 1, 0)) + fcgi_record(4, params) + fcgi_record(4, b"") +
                  fcgi_record(5, b""))
        return b"".join(iter(lambda: s.recv(4096), b""))


class Fpm(Child):
    """php-fpm with one worker, which answers requests for the two scripts in turn."""

    def __init__(self):
        here = scratch("fpm")
        os.makedirs(here)
        self.socket, self.over, self.answered = f"{here}/socket", False, 0
        for name in SCRIPTS:
            with open(f"{here}/{name}.php", "w", encoding="utf-8") as f:
                f.write(REQUEST % ((name,) * 4))
            os.chmod(f.name, 0o644)
        with open(f"{here}/conf", "w", encoding="utf-8") as f:
            f.write(f"[global]\nerror_log={here}/log\n[www]\nlisten={self.socket}\npm=static\npm.max_children=1\n"
                    "user=nobody\ngroup=nogroup\n")
        os.chmod(here, 0o755)
        super().__init__(["/usr/sbin/php-fpm8.2", "-n", "-F", "-O", "-y", f"{here}/conf"], **QUIET)
        self.worker = until(lambda: os.path.exists(self.socket) and children_of(self.pid), "php-fpm has a worker")[0]
        self.thread = threading.Thread(target=self._ask, args=(here,), daemon=True)
        self.thread.start()

    def _ask(self, here):
        while not self.over:
            for name in SCRIPTS:
                self.answered += b"\r\n\r\n" in fcgi_request(self.socket, f"{here}/{name}.php")

    def end(self):
        self.over = True
        self.thread.join(READY_SEC)
        self.process.terminate()  # its worker ends with it
        self.process.wait(READY_SEC)
        super().end()


@once
def everywhere():
    """Each interpreter, with its own heap and with malloc; Debian's with its code compiled, too; and php-fpm."""
    children = [Php(path, kind) for path in interpreters() for kind in KINDS if kind != "JIT" or path.startswith("/usr/")]
    fpm = Fpm() if os.path.exists("/usr/sbin/php-fpm8.2") else None
    for child in children:
        child.ready()
    pids = [c.pid for c in children] + ([fpm.worker] if fpm else [])
    run = Run("-p", ",".join(map(str, pids)), "--alloc=exact", "--offcpu=exact", "-F", 999, "--max-overhead", 1000)
    run.ready()
    has_worked(pids, 2)  # each of them
    run.stop()
    for child in children + ([fpm] if fpm else []):
        child.end()
    return run, children, fpm


GONE = ("[PHP code that is gone]", "", 0)


def is_place(frames, place):
    """What the profile has of a place: code of eval() or of a file, that is run once, may have been freed before it could be named."""
    return GONE in frames and len(frames) == len(place) and all(
        got == want or (got == GONE and ("eval()'d code" in want[1] or want[0].startswith("include (")))
        for got, want in zip(frames, place))


compare_all = Comparison("PHP", lang_frames, is_gone=lambda frames, truth: any(is_place(frames, place) for place in truth))


def compare(source, what, of_interest, at_least, kinds=KINDS):
    run, children, _ = everywhere()
    compare_all(run, [child for child in children if child.kind in kinds], source, what, of_interest, at_least)


def leaf_function(sample):
    """The first frame of PHP's, leaf first."""
    for f in sample.frames:
        if f.module == LANG:
            return f.name
    return ""


@fact
def php_stacks_of_waits_are_those_that_php_prints():
    compare("offcpu", "sleep", lambda s, p: any("hrtimer_nanosleep" in f.name for f in s.frames), 0.9)


@fact
def php_stacks_of_samples_are_those_that_php_prints():
    compare("oncpu", "spin", lambda s, p: leaf_function(s) == "crc32", 0.3)
    # Instructions that call nothing: the line is in a register alone.
    compare("oncpu", "loop", lambda s, p: s.frames[0].module == LANG and s.frames[0].name.startswith("loop (")
            and s.frames[0].line == loop_line(), 0.5, KINDS[:2])
    run, children, _ = everywhere()
    p, n, of = run.profile("oncpu"), 0, 0
    with_lines = {child.pid for child in children if child.kind != "JIT"}
    for s in p.samples:
        if s.labels.get("pid") in with_lines and s.frames[0].module == LANG and s.frames[0].name.startswith("loop ("):
            weight = s.values[p.types.index("samples/count")]
            of += weight
            n += weight * (s.frames[0].line == loop_line())
    check(of > 30 and n >= 0.95 * of, f"of {of} samples in the function with the loop {n} are in the loop's line")


def loop_line():
    """Of the loop that calls nothing: the program's function also has a few instructions before it."""
    with open(PROGRAM, encoding="utf-8") as f:
        return next(i for i, line in enumerate(f, 1) if "$i < 60000" in line)


@fact
def php_stacks_of_allocations_are_those_that_php_prints():
    compare("alloc", "alloc", bytes_each(ALLOCATED, ALLOCATED + 100), 0.9, ["malloc"])


@fact
def stacks_of_php_are_whole():
    run, _, _ = everywhere()
    for source in ("oncpu", "offcpu", "alloc"):
        whole(run, source, 50, "PHP")
    nothing_damaged(run)
    langs = run.summary()["languages"]
    check(langs["runtime"].startswith("PHP ") and not langs["untested"], f"the runtime is {langs}")


@fact
def requests_under_php_fpm_have_their_own_functions():
    run, _, fpm = everywhere()
    if not fpm:
        skip("php8.2-fpm is not installed")
    check(fpm.answered > 10, f"php-fpm answered {fpm.answered} requests")
    p, n = run.profile("oncpu"), dict.fromkeys(SCRIPTS, 0)
    for s in p.samples:
        frames = lang_frames(s)
        if s.labels.get("pid") != fpm.worker or not any("_spin" in name for name, _, _ in frames):
            continue
        script = frames[-1][0][len("{main} ("):-len(".php)")]
        want = [f"{script}_spin ({script}.php)", f"{script}::run ({script}.php)", f"{{main}} ({script}.php)"]
        check([name for name, _, _ in frames] == want and [line for _, _, line in frames] == [2, 3, 4],
              f"a request's stack is {frames}")
        n[script] = n.get(script, 0) + s.values[p.types.index("samples/count")]
    print(f"# {fpm.answered} requests, samples: {n}")
    check(set(n) == set(SCRIPTS) and min(n.values()) > 20, f"samples of the two scripts: {n}")


main()
