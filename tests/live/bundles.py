"""Containers made with runc alone, by the description that an engine would write: its control group, root and limits."""

import json
import os
import subprocess

from containers import *
from harness import *


def spec_of(root, argv, cgroup, **more):
    """An OCI runtime description (config.json): namespaces as engines make them, no network, no capability."""
    spec = {
        "ociVersion": "1.0.2",
        "process": {"user": {"uid": 0, "gid": 0}, "args": list(map(str, argv)), "cwd": "/", "env": ["PATH=/bin:/usr/bin"],
                    "noNewPrivileges": True, "capabilities": {}},
        "root": {"path": root, "readonly": True},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {"cgroupsPath": cgroup, "namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts", "network")]},
    }
    spec.update(more)
    return spec


class Contained(Child):
    """A container of runc, in the foreground; gone with the test. `pid`: of its first process, here."""

    def __init__(self, ident, spec, **kw):
        need("runc")
        self.ident = ident
        self.bundle, self.state = scratch("bundle"), scratch("runc")
        os.mkdir(self.bundle)
        with open(self.bundle + "/config.json", "w", encoding="utf-8") as f:
            json.dump(spec, f)
        self.errors = self.bundle + "/errors"
        with open(self.errors, "wb") as errors:
            super().__init__(["runc", "--root", self.state, "run", "--bundle", self.bundle, "--pid-file",
                              self.bundle + "/pid", ident], stdin=subprocess.DEVNULL,
                             **{"stdout": subprocess.DEVNULL, "stderr": errors, **kw})
        until(lambda: not self.alive() or os.path.exists(self.bundle + "/pid"), "runc starts its container")
        if not self.alive():
            with open(self.errors, encoding="utf-8", errors="replace") as f:
                skip(f"runc does not work here: {f.read().strip()[-300:]}")

    @property
    def pid(self):
        try:
            with open(self.bundle + "/pid", encoding="ascii") as f:
                return int(f.read())
        except (OSError, ValueError):
            return self.process.pid

    def end(self, close=True):
        for how in (("kill", self.ident, "KILL"), ("delete", "-f", self.ident)):
            subprocess.run(["runc", "--root", self.state, *how], capture_output=True, check=False, timeout=FINISH_SEC)
        super().end(close)
