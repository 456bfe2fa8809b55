"""memscope serve with an HTTP server of its own."""

import gzip
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

from harness import *


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server(Child):
    """memscope serve that listens on a port of its own and on a unix socket."""

    def __init__(self, *args):
        self.port = free_port()
        self.dir = tempfile.mkdtemp(prefix="memscope-http-")
        self.unix = f"{self.dir}/socket"
        self.errors = open(f"{self.dir}/stderr", "wb")
        super().__init__([MEMSCOPE, "serve", "--archive", f"{self.dir}/archive", "--listen", f"127.0.0.1:{self.port}",
                          "--listen", f"unix:{self.unix}", *map(str, args)],
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors)
        self.url = f"http://127.0.0.1:{self.port}"

    def ready(self):
        end = time.monotonic() + READY_SEC
        while time.monotonic() < end:
            try:
                if json.loads(self.get("/healthz")[2])["status"] == "ok":
                    return self
            except OSError:
                pass
            time.sleep(0.05)
        raise Broken(f"no /healthz: {open(f'{self.dir}/stderr').read()[-500:]}")

    def get(self, path, timeout=20, headers={}):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            c.request("GET", path, headers=headers)
            r = c.getresponse()
            return r.status, dict(r.getheaders()), r.read()
        finally:
            c.close()

    def profile(self, path):
        status, _, body = self.get(path)
        equal(status, 200, f"{path}: {body[:200]}")
        return pprof_reader.Profile(gzip.decompress(body))

    def stop(self):
        self.process.terminate()
        equal(self.process.wait(FINISH_SEC), 0, f"exit status: {open(f'{self.dir}/stderr').read()[-500:]}")
        check(not os.path.exists(self.unix), "the socket's file is still there")
        shutil.rmtree(self.dir)
