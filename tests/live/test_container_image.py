#!/usr/bin/python3
"""memscope serve in a container of podman's, with what compose.yaml and the DaemonSet leave it: nothing is missing there of what it
finds out of a process. Of one alone: naming all that a busy host runs takes long."""

import glob
import json
import os
import re
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request

from containers import *
from harness import *
from http_serving import free_port
from serving import capability_numbers, call_numbers, confined

PACKAGING = os.path.join(TOP, "user/packaging")
SECCOMP = os.path.join(PACKAGING, "container/seccomp.json")
PROGRAM = """import mmap, time
def hot():
    for i in range(100000): pass
while True:
    hot()
    time.sleep(0.001)
    with mmap.mmap(-1, 1 << 20) as m: m.write(bytes(1 << 20))
"""


def documents(*path):
    """Of a YAML file, by their kind."""
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        skip("python3-yaml is not installed")
    with open(os.path.join(PACKAGING, *path), encoding="utf-8") as f:
        return {d.get("kind", ""): d for d in yaml.safe_load_all(f)}


def image_root():
    """What the image has, of this machine's own files: memscope, its libraries and its configuration."""
    root = root_of(MEMSCOPE)
    os.makedirs(root + "/usr/bin")
    os.rename(f"{root}/{os.path.basename(MEMSCOPE)}", root + "/usr/bin/memscope")
    os.makedirs(root + "/etc/memscope")
    shutil.copy(os.path.join(PACKAGING, "memscope.conf"), root + "/etc/memscope")
    for name in ("var/lib/memscope", "var/cache/memscope", "run/memscope", "run/secrets/memscope", "tmp"):
        os.makedirs(os.path.join(root, name))
    return root


def target():
    """A program of another user's."""
    return Child(["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", PROGRAM])


class Contained:
    """memscope in a container; `options` are podman's, `where` what is its archive on the host."""

    def __init__(self, options, args, where, get):
        need("podman", "runc", "conmon", "setpriv")
        self.state, self.archive, self.get = scratch("engine"), where, get
        self.command = ["podman", "--root", self.state + "/storage", "--runroot", self.state + "/run", "--tmpdir", self.state + "/tmp",
                        "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file", "--runtime", "runc"]
        self.name = f"memscope-live-{os.urandom(4).hex()}"
        argv = [*self.command, "run", "--rm", "--name", self.name, "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096",
                *options, "--rootfs", image_root(), "/usr/bin/memscope", *args]
        self.errors = scratch("stderr")
        with open(self.errors, "wb") as stderr:
            self.child = Child(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)

    @property
    def stderr(self):
        with open(self.errors, encoding="utf-8", errors="replace") as f:
            return f.read()

    def healthy(self):
        if not self.child.alive():
            if "memscope:" not in self.stderr:
                skip(f"podman does not run containers here: {self.stderr[-300:]}")
            raise Broken(f"it ended: {self.stderr[-500:]}")
        try:
            return json.loads(self.get("/healthz"))["status"] == "ok"
        except (OSError, ValueError):
            return False

    def stop(self):
        subprocess.run([*self.command, "stop", "-t", "60", self.name], check=True, capture_output=True, timeout=FINISH_SEC)
        equal(self.child.process.wait(FINISH_SEC), 0, f"exit status: {self.stderr[-500:]}")
        return self.stderr

    def profile(self, source):
        path, = glob.glob(os.path.join(self.archive, "*", f"{source}-*.pb.gz"))
        return pprof_reader.read(path)


def has_all(serve, child, metrics):
    """After its end: every source, with the names of functions of another user's program and of the kernel."""
    oncpu, offcpu = serve.profile("oncpu"), serve.profile("offcpu")
    check(oncpu.sum("samples/count", "PyEval_EvalCode", pid=child.pid) > 0, "no names of the target's functions")
    check(oncpu.sum("samples/count", "hot (<string>)", pid=child.pid) > 0, "no frames of Python")
    check(offcpu.sum("blocked/nanoseconds", "schedule", pid=child.pid) > 0, "no names of the kernel's functions")
    check(serve.profile("growth").samples, "no growth")
    text, = glob.glob(os.path.join(serve.archive, "*", "summary-*.txt"))
    with open(text, encoding="utf-8") as f:
        summary = f.read()
    check("unavailable" not in summary, summary)
    check(not re.search("not available|cannot|not permitted|refused|denied", serve.stderr), serve.stderr)
    check("memscope_own_cpu_seconds_total" in metrics, metrics[:500])


def of_compose(port, archive):
    """(podman's options, arguments of memscope) as compose.yaml has them; the port is one that is free."""
    service = documents("container", "compose.yaml")[""]["services"]["memscope"]
    options = [f"--pid={service['pid']}", f"--cgroupns={service['cgroup']}", f"--network={service['network_mode']}", "--read-only",
               "--read-only-tmpfs=false", f"--memory={service['mem_limit']}", f"--pids-limit={service['pids_limit']}"]
    check(service["read_only"], "its root can be written")
    options += [f"--cap-drop={c}" for c in service["cap_drop"]] + [f"--cap-add={c}" for c in service["cap_add"]]
    options += ["--security-opt=" + o.replace("seccomp=seccomp.json", "seccomp=" + SECCOMP).replace("no-new-privileges:true", "no-new-privileges")
                for o in service["security_opt"]]
    options += [f"--env={k}={v}" for k, v in service["environment"].items()]
    options += [f"--tmpfs={t}" for t in service["tmpfs"]]
    for v in service["volumes"]:
        source = archive if v["target"] == "/var/lib/memscope" else v["source"]
        options += ["-v", f"{source}:{v['target']}:rbind{',ro' if v.get('read_only') else ''}"]
    return options, [a.replace(":9817", f":{port}") for a in service["command"]], service["healthcheck"]["test"]


def fetch(url, token=None, context=None):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=20, context=context) as answer:
        return answer.read().decode()


@fact
def with_what_compose_leaves_it_nothing_is_missing():
    port, archive, child = free_port(), scratch("archive"), target()
    os.mkdir(archive)
    options, args, test = of_compose(port, archive)
    serve = Contained(options, [*args, "-p", str(child.pid), "-F", "199"], archive, lambda path: fetch(f"http://127.0.0.1:{port}{path}"))
    until(serve.healthy, "/healthz says ok")
    has_worked(child.pid, 0.5)
    metrics = serve.get("/metrics")
    equal(test[0], "CMD", "the kind of its health check")
    for at, status in ((port, 0), (free_port(), 1)):
        done = subprocess.run([a.replace("/9817", f"/{at}") for a in test[1:]], capture_output=True, check=False, timeout=20)
        equal(done.returncode, status, f"the health check: {done.stderr}")
    serve.stop()
    has_all(serve, child, metrics)


def mounted_as_kubelet_does(files):
    """A directory in which each file is a link into a directory that is a link: kubelet exchanges all at once."""
    top = scratch("mounted")
    os.makedirs(top + "/..2026_01_01")
    os.symlink("..2026_01_01", top + "/..data")
    for name, (content, mode) in files.items():
        path = f"{top}/..data/{name}"
        with open(path, "wb") as f:
            f.write(content)
        os.chmod(path, mode)
        os.symlink(f"..data/{name}", f"{top}/{name}")
    return top


def of_daemon_set(port, archive):
    """(podman's options, arguments, the certificate) as kubelet makes them of the DaemonSet."""
    found = documents("kubernetes", "memscope.yaml")
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    container, = pod["containers"]
    context = container["securityContext"]
    conf = found["ConfigMap"]["data"]["memscope.conf"].replace(":9817", f":{port}")
    pem, key = scratch("tls.crt"), scratch("tls.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=memscope", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", pem], check=True, capture_output=True)
    secrets = {name: (open(path, "rb").read(), 0o400) for name, path in (("tls.crt", pem), ("tls.key", key))}
    sources = {"config": mounted_as_kubelet_does({"memscope.conf": (conf.encode(), 0o444)}),
               "secret": mounted_as_kubelet_does({**secrets, "token": (b"0123456789abcdef", 0o400)}),
               "archive": archive, "cgroup": "/sys/fs/cgroup"}
    options = ["--network=host", "--cgroupns=private", "--security-opt=apparmor=unconfined", f"--security-opt=seccomp={SECCOMP}"]
    options += ["--pid=host"] * pod["hostPID"] + ["--read-only", "--read-only-tmpfs=false"] * context["readOnlyRootFilesystem"]
    options += ["--security-opt=no-new-privileges"] * (not context["allowPrivilegeEscalation"])
    options += [f"--cap-drop={c}" for c in context["capabilities"]["drop"]] + [f"--cap-add={c}" for c in context["capabilities"]["add"]]
    options += [f"--env={e['name']}={e['value']}" for e in container["env"] if "value" in e]
    for m in container["volumeMounts"]:
        if m["name"] in sources:
            options += ["-v", f"{sources[m['name']]}:{m['mountPath']}:rbind{',ro' if m.get('readOnly') else ''}"]
        else:
            options += [f"--tmpfs={m['mountPath']}"]
    return options, [a.replace("$(NODE_NAME)", "node-7") for a in container["args"]], pem


@fact
def with_what_the_daemon_set_leaves_it_nothing_is_missing():
    need("openssl")
    port, archive, child = free_port(), scratch("archive"), target()
    os.mkdir(archive)
    options, args, pem = of_daemon_set(port, archive)
    context = ssl.create_default_context(cafile=pem)
    url = f"https://127.0.0.1:{port}"
    serve = Contained(options, [*args, "-p", str(child.pid), "-F", "199"], archive, lambda path: fetch(url + path, None, context))
    until(serve.healthy, "/healthz says ok, without the token")
    try:
        fetch(url + "/metrics", None, context)
        check(False, "/metrics without the token")
    except urllib.error.HTTPError as e:
        equal(e.code, 401, "status without the token")
    has_worked(child.pid, 0.5)
    metrics = fetch(url + "/metrics", "0123456789abcdef", context)
    serve.stop()
    has_all(serve, child, metrics)
    text, = glob.glob(os.path.join(archive, "*", "summary-*.json"))
    with open(text, encoding="utf-8") as f:
        check("node-7" in f.read(), "the node's name is not in the summary")


main()
