"""`memscope serve` that writes an archive, and what `memscope ls` says of it."""

import json
import subprocess
import time

from harness import *


def memscope(*args):
    return subprocess.run([MEMSCOPE, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=FINISH_SEC, check=False)


def serve(where, *args, env=None, stderr=subprocess.PIPE):
    return subprocess.Popen([MEMSCOPE, "serve", "--archive", where, "--listen", "off", *map(str, args)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, text=True, env=env)


def ended(service):
    service.terminate()
    said = service.communicate(timeout=FINISH_SEC)[1]
    equal(service.returncode, 0, f"exit status ({said[-300:]})")
    return said


def listed(where, *args, status=0):
    got = memscope("ls", where, "--json", *args)
    equal(got.returncode, status, f"exit status of ls ({got.stderr})")
    return json.loads(got.stdout)


def wait_until(true, what):
    end = time.monotonic() + FINISH_SEC
    while not true():
        if time.monotonic() > end:
            raise Broken(f"no {what} in {FINISH_SEC} s")
        time.sleep(0.1)
