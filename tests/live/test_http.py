"""memscope serve over HTTP: profiles as Go's tool, curl and scrapers ask for them, beside clients that hang."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time

from harness import *
from http_serving import Server, free_port


def hang(port, n):
    """Clients that begin a request and never end it; and some that take no byte of a long answer."""
    held = []
    for i in range(n):
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(b"GET /debug/pprof/growth HTTP/1.1\r\nHost: localhost\r\n" + (b"\r\n" if i % 4 == 0 else b"X: "))
        held.append(s)
    return held


@fact
def gos_tool_and_scrapers_read_profiles_beside_clients_that_hang():
    target = Target("cpu_split", 20000)
    target.say("go")
    server = Server("-p", target.pid, "-F", 199, "--every", 2, "--only", "oncpu,offcpu,growth").ready()
    held = hang(server.port, 40)
    url = f"{server.url}/debug/pprof/profile?seconds=2"
    env = {**os.environ, "PPROF_TMPDIR": server.dir}
    go = subprocess.Popen(["go", "tool", "pprof", "-top", "-nodecount=5", url], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=env) if shutil.which("go") else None
    seen = {}

    def scrape(name, path):
        seen[name] = server.profile(path)

    scrapers = [threading.Thread(target=scrape, args=a) for a in
                (("cpu", "/debug/pprof/profile?seconds=2"), ("again", "/debug/pprof/profile?seconds=2"),
                 ("block", "/debug/pprof/block?seconds=2"), ("pid", f"/debug/pprof/profile?seconds=2&pid={target.pid}"),
                 ("other", "/debug/pprof/profile?seconds=2&pid=1"))]
    for s in scrapers:
        s.start()
    slowest = 0
    while any(s.is_alive() for s in scrapers):
        begin = time.monotonic()
        equal(server.get("/healthz", 5)[0], 200, "/healthz")
        slowest = max(slowest, time.monotonic() - begin)
        time.sleep(0.05)
    check(slowest < 2, f"/healthz took {slowest:.1f} s")
    equal(sorted(seen), ["again", "block", "cpu", "other", "pid"], "scrapes that came through")
    equal(seen["cpu"].types, ["samples/count", "cpu/nanoseconds"], "types")
    equal(seen["block"].types, ["contentions/count", "delay/nanoseconds"], "types")
    cpu = sum(s.values[1] for s in seen["cpu"].samples)
    within(cpu, 0.3e9, 3e9, "CPU time of one busy thread in 2 s")
    equal(len(seen["again"].samples), len(seen["cpu"].samples), "requests that came together")
    equal(sum(s.values[1] for s in seen["pid"].samples), cpu, "the target is all there is")
    equal(seen["other"].samples, [], "of another process")
    if go:
        out, _ = go.communicate(timeout=60)
        equal(go.returncode, 0, out)
        check(re.search(r"%\s+burn$", out, re.M), out)
    status, headers, body = server.get("/debug/pprof/heap")
    equal((status, headers.get("X-Go-Pprof")), (404, "1"), "what is not gathered")
    equal(server.get("/healthz", headers={"Host": "evil.example"})[0], 403, "another Host")
    for s in held:
        s.close()
    server.stop()


@fact
def clients_that_hang_up_give_their_places_back():
    target = at_a_fifth()
    server = Server("-p", target.pid, "-F", 99, "--every", 60, "--only", "oncpu").ready()
    held = []
    for seconds in range(590, 598):  # all the collections there may be; no two are one
        held.append(socket.create_connection(("127.0.0.1", server.port)))
        held[-1].sendall(f"GET /debug/pprof/profile?seconds={seconds} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    status = 200
    while status == 200:  # until all of them have come there
        status = server.get("/debug/pprof/profile?seconds=1")[0]
    equal(status, 503, "status while they wait")
    for s in held:
        s.close()
    status = 503
    for _ in range(20):
        status = server.get("/debug/pprof/profile?seconds=1")[0]
        if status == 200:
            break
        time.sleep(0.5)
    equal(status, 200, "status after they hung up")
    server.stop()


@fact
def allocs_only_grow_and_delta_heap_is_what_came_since():
    server = Server("-p", os.getpid(), "--every", 5, "--only", "alloc").ready()
    junk = []

    def work():
        for _ in range(200):
            junk.append(bytes(20000))

    def total(path):
        p = server.profile(path)
        return sum(s.values[p.types.index("alloc_space/bytes")] for s in p.samples)

    sums = []
    for _ in range(3):
        work()
        time.sleep(0.5)
        sums.append(total("/debug/pprof/allocs"))
    check(sums == sorted(sums), f"/allocs is not monotone: {sums}")
    check(sums[-1] > 0, "nothing was allocated")
    total("/debug/pprof/delta_heap")  # from here on
    check(total("/debug/pprof/delta_heap") < sums[-1], "delta_heap is not what came since")
    server.stop()


@fact
def a_unix_socket_and_tls_with_a_token():
    server = Server("-p", os.getpid(), "--only", "oncpu").ready()
    if not shutil.which("curl") or not shutil.which("openssl"):
        server.stop()
        skip("curl or openssl is not installed")
    out = subprocess.run(["curl", "-sS", "--unix-socket", server.unix, "http://anything/healthz"], capture_output=True, text=True)
    equal(json.loads(out.stdout)["status"], "ok", out.stderr)
    cert, key, token = (f"{server.dir}/{n}" for n in ("cert", "key", "token"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "1",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    with open(token, "w") as f:
        f.write("a-token-of-some-length\n")
    os.chmod(token, 0o600)
    wide = free_port()
    other = Server("-p", os.getpid(), "--only", "oncpu", "--listen", f"0.0.0.0:{wide}", "--tls-cert", cert, "--tls-key", key,
                   "--token-file", token)

    def ask(*args, path="", out="/dev/null"):
        return subprocess.run(["curl", "-sS", "--cacert", cert, "-o", out, "-w", "%{http_code}", "--retry", "20", "--retry-connrefused",
                               "--retry-delay", "1", *args, f"https://127.0.0.1:{wide}/{path}"], capture_output=True, text=True).stdout

    equal(ask(), "401", "without a token")
    equal(ask("-H", "Authorization: Bearer a-token-of-some-lengtH"), "401", "with another token")
    equal(ask("-H", "Authorization: Bearer a-token-of-some-length"), "200", "with the token")
    equal(ask("-u", "me:a-token-of-some-length"), "200", "with it as a password")
    # Whoever keeps it alive (kubelet) has no token, and learns the status alone.
    end = time.monotonic() + READY_SEC
    while "starting" in ask(path="healthz", out="-") and time.monotonic() < end:
        time.sleep(0.1)
    equal(re.sub(r"\s", "", ask(path="healthz", out="-")), '{"status":"ok"}200', "healthz without a token")
    other.stop()
    server.stop()


@fact
def mistakes_end_with_status_2():
    for args, words in ((["--listen", "localhost:6060"], "is not understood"), (["--listen", "0.0.0.0:6060"], "--token-file"),
                        (["--listen", "unix:relative"], "begins with /"), (["--tls-cert", "/x"], "go together")):
        done = subprocess.run([MEMSCOPE, "serve", "--archive", "/tmp/x", "--check-config", *args], capture_output=True, text=True, timeout=20)
        equal(done.returncode, 2, done.stderr)
        check(words in done.stderr, done.stderr)


main()
