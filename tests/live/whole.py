"""Whether files that memscope wrote are what their names say, from begin to end."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET

import pprof_reader
from checks import FINISH_SEC, check, equal
from harness import MEMSCOPE

# What a file of ours is called until it has its name (user/base/new_file.h), where it has to be called anything.
LEAVING = re.compile(r"\.(.+)\.[A-Za-z0-9]{6}$")


def whole_table(text, what):
    rows = list(csv.reader(io.StringIO(text)))
    check(not text or text.endswith("\n"), f"{what} ends inside a line: {text[-60:]!r}")
    check(len({len(row) for row in rows if row and not row[0].startswith("#")}) <= 1, f"{what}: rows of different lengths")


def whole_file(path, what):
    """It is what its name says, from begin to end."""
    what, name = f"{what}: {path}", os.path.basename(path)
    try:
        with open(path, "rb") as f:
            data = f.read()
        if name.endswith(".pb.gz"):
            pprof_reader.read(path)
        elif name.endswith(".csv.gz"):
            whole_table(gzip.decompress(data).decode(), what)
        elif name.startswith(("trend", "rss_breakdown")) and name.endswith(".csv"):  # they grow
            whole_table(data[:data.rfind(b"\n") + 1].decode(), what)
        elif name.endswith(".csv"):
            whole_table(data.decode(), what)
        elif name.endswith(".svg"):
            ET.fromstring(data)
        elif name.endswith(".json"):
            json.loads(data)
        elif name.endswith(".html"):
            check(data.rstrip().endswith(b"</html>"), f"{what} has no end")
        elif name.endswith(".folded"):
            bad = [line for line in data.decode().splitlines() if not re.search(r"\S \d+$", line)]
            check(not bad and data[-1:] in (b"", b"\n"), f"{what}: lines that are none: {bad[:3]}, its end {data[-20:]!r}")
        elif name.endswith(".txt") or name == ".memscope":
            check(data[-1:] in (b"", b"\n"), f"{what} ends inside a line: {data[-60:]!r}")
        elif name.endswith(".snapshot"):
            got = subprocess.run([MEMSCOPE, "heap", "census", path, "--top", "1"], capture_output=True, text=True,
                                 timeout=FINISH_SEC, check=False)
            equal(got.returncode, 0, f"{what}: exit status of a census of it ({got.stderr[-200:]})")
        elif name.endswith(".log"):
            bad = [line for line in data.decode("utf-8", "replace").split("\n")[:-1] if line and not re.match(r"[\d ]", line)]
            check(not bad, f"{what}: lines that are none: {bad[:3]}")
        elif name not in ("lock", ".memscope.serve"):
            check(False, f"{what}: nobody knows what it is")
    except FileNotFoundError:
        pass  # a process that was not killed has put it in place
    except Exception as e:
        check(False, f"{what} is not whole: {e!r} ({os.path.getsize(path) if os.path.exists(path) else 'gone'} bytes)")
