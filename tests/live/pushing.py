"""memscope serve --push at work: what waits for stores (stores.py), and what is in the windows on disk."""

import collections
import glob
import json
import os

import pprof_reader


def pushing(*stores):
    return [arg for s in stores for arg in ("--push", f"{s.kind}={s.url}")]


def windows_sums(serve, source, folder="*"):
    """{type: total} of all windows of a source on disk."""
    out = collections.Counter()
    for path in glob.glob(os.path.join(serve.archive, folder, f"{source}-*.pb.gz")):
        p = pprof_reader.read(path)
        out.update({t: p.sum(t) for t in p.types})
    return dict(out)


def waiting(serve, kind="*"):
    return glob.glob(os.path.join(serve.archive, ".push", f"{kind}-*", "*.entry"))


def summary(serve):
    with open(sorted(glob.glob(os.path.join(serve.archive, "*", "summary-*.json")))[-1], encoding="utf-8") as f:
        return json.load(f)


FAST = ("--every", 1, "--only", "oncpu,offcpu", "-F", 199, "--listen", "off")
