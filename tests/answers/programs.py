"""Programs that nobody here wrote, and what puts a fault into them from outside.

start(NAME, MODE, DIR) starts one in the scratch folder DIR and returns when it works: a Program, whose
process is the one to profile, with its children. Missing: it is not installed.
"""

import os
import shutil
import socket
import subprocess
import threading
import time

from faults import FileLock, HttpPeer, Missing, found, kill_all

START_S = 60


class Program:
    """`process` is to be profiled; or `command`, where memscope itself has to start it. `after_group`: what is to be done
    when the process is in its control group. `helpers`: processes, and what else has an end()."""

    def __init__(self, directory):
        self.dir = directory
        self.process, self.command, self.after_group = None, None, None
        self.helpers, self.ending = [], threading.Event()

    def spawn(self, command, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
        return subprocess.Popen(command, start_new_session=True, cwd=self.dir, **options)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def wait_for(self, is_there):
        """Until `is_there`() returns something that is true."""
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.process.args[0]} ended with {self.process.returncode}")
            try:
                got = is_there()
                if got:
                    return got
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError(f"{self.process.args[0]} did not become ready")

    def again(self, work):
        """Calls `work` from a thread, as long as the program is there."""
        def loop():
            n = 0
            while not self.ending.is_set():
                try:
                    work(n)
                except OSError:
                    return
                n += 1
        threading.Thread(target=loop, daemon=True).start()

    def end(self):
        self.ending.set()
        for p in self.helpers:
            if isinstance(p, subprocess.Popen):
                p.kill()
                p.wait()
            else:
                p.end()


def unix_client(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s


# --- redis -------------------------------------------------------------------------------------------------------------


def redis_request(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def ask_redis(client, *words):
    client.sendall(redis_request(*words))
    return client.recv(65536)


def redis(p, mode):
    """leak: a cache that was configured without a limit; cache: the same with one; hot: KEYS over all of it, again and again;
    disk: each write is synced; stopped: it works, until somebody stops it."""
    options = {
        "cache": ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"],
        "disk": ["--appendonly", "yes", "--appendfsync", "always"],
    }.get(mode, [])
    p.process = p.spawn([found("redis-server"), "--port", "0", "--save", "", "--unixsocket", p.path("socket")] + options)
    client = p.wait_for(lambda: unix_client(p.path("socket")))
    entry = b"x" * 10000
    if mode == "hot":
        for n in range(0, 100000, 1000):
            client.sendall(b"".join(redis_request(b"SET", b"session:%d" % (n + i), b"1") for i in range(1000)))
            got = 0
            while got < 1000 * len(b"+OK\r\n"):
                got += len(client.recv(65536))
        p.again(lambda n: ask_redis(client, b"KEYS", b"*nobody:*:here*"))
    elif mode == "cache":
        for n in range(8000):
            ask_redis(client, b"SET", b"entry:%d" % n, entry)
    if mode in ("leak", "cache", "disk", "stopped"):
        def put(n):
            ask_redis(client, b"SET", b"entry:%d" % (n if mode != "disk" else n % 100), entry)
            if mode != "disk":
                time.sleep(0.001)
        p.again(put)


# --- PostgreSQL --------------------------------------------------------------------------------------------------------


def postgres(p, mode):
    """A cluster of its own, made by a user of its own: it refuses to run as root. lock: a transaction that does not end
    holds a table which three sessions want; hot: a query that computes; disk: small transactions, each of which is synced."""
    tools, data = os.path.dirname(os.path.realpath(found("initdb"))), p.path("data")
    os.chmod(p.dir, 0o755)
    os.mkdir(data)
    shutil.chown(data, "nobody")
    r = subprocess.run([os.path.join(tools, "initdb"), "-D", data, "-A", "trust", "-N"], user="nobody", cwd=data,
                       env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, capture_output=True, text=True)
    if r.returncode:
        raise Missing(f"initdb: {r.stderr.strip()[-200:]}")
    p.process = p.spawn([os.path.join(tools, "postgres"), "-D", data, "-k", data, "-c", "listen_addresses=", "-c", "jit=off",
                         "-c", "max_parallel_workers_per_gather=0"], user="nobody")
    psql = [found("psql"), "-q", "-X", "-h", data, "-U", "nobody", "postgres"]

    def query(text):
        return subprocess.run(psql + ["-c", text], capture_output=True).returncode == 0

    def session(text, **options):
        p.helpers.append(p.spawn(psql if text is None else psql + ["-c", text], **options))
        return p.helpers[-1]

    p.wait_for(lambda: query("SELECT 1"))
    query("CREATE TABLE seats (n int); INSERT INTO seats SELECT generate_series(1, 1000)")
    if mode == "idle":
        time.sleep(3)  # what it does once, after a start
    elif mode == "lock":
        locker = session(None, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        locker.stdin.write(b"BEGIN; LOCK TABLE seats; SELECT 'held';\n")
        locker.stdin.flush()
        while b"held" not in locker.stdout.readline():
            pass
        for _ in range(3):
            session("UPDATE seats SET n = n + 1 WHERE n = 7")
    elif mode == "hot":
        p.after_group = lambda: session("SELECT count(*) FROM seats a, seats b, seats c "
                                        "WHERE md5(a.n::text || b.n || c.n) LIKE 'zz%'")
    elif mode == "disk":
        script = p.write("insert.sql", "INSERT INTO seats VALUES (1);\n")
        p.after_group = lambda: p.helpers.append(p.spawn(
            [found("pgbench"), "-n", "-h", data, "-U", "nobody", "-c", "2", "-T", "600", "-f", script, "postgres"]))


# --- others ------------------------------------------------------------------------------------------------------------


def nginx(p, mode):
    """peer: it passes requests on to a server that answers after 20 ms."""
    where = "return 200 'here';"
    if mode == "peer":
        p.helpers.append(HttpPeer())
        where = f"proxy_pass http://127.0.0.1:{p.helpers[0].port};"
    config = p.write("nginx.conf", f"""
daemon off; pid {p.path("pid")}; worker_processes 2; error_log {p.path("error.log")};
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {p.path("1")}; proxy_temp_path {p.path("2")}; fastcgi_temp_path {p.path("3")};
  uwsgi_temp_path {p.path("4")}; scgi_temp_path {p.path("5")};
  server {{ listen unix:{p.path("socket")}; location / {{ {where} }} }}
}}
""")
    p.process = p.spawn([found("nginx"), "-p", p.dir, "-c", config])
    p.wait_for(lambda: unix_client(p.path("socket")))

    def ask(_):
        with unix_client(p.path("socket")) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while client.recv(4096):
                pass
    if mode == "peer":
        p.again(ask)
        p.again(ask)


def httpd(p, mode):
    """python3 -m http.server, which starts a thread for each request; quota: under more load than its quota allows."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    p.write("index.html", "x" * 100000)
    p.process = p.spawn([found("python3"), "-m", "http.server", "--bind", "127.0.0.1", str(port)])
    p.wait_for(lambda: socket.create_connection(("127.0.0.1", port)).close() is None)

    def ask(_):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /index.html HTTP/1.0\r\n\r\n")
            while client.recv(65536):
                pass
    for _ in range(0 if mode == "idle" else 4):
        p.again(ask)


def sqlite(p, mode):
    """hot: a query; disk: a transaction for each row."""
    program = found("sqlite3")
    if mode == "hot":
        p.process = p.spawn([program, ":memory:", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
                             "SELECT count(*) FROM c WHERE x % 7 = 3"])
        time.sleep(0.5)
        return
    p.process = p.spawn([program, p.path("journal.db")], stdin=subprocess.PIPE)
    to = p.process.stdin.fileno()
    os.write(to, b"CREATE TABLE seats (n int);\n")
    p.again(lambda n: os.write(to, b"INSERT INTO seats VALUES (%d);\n" % n))
    p.wait_for(lambda: os.path.getsize(p.path("journal.db")) > 0)


def dd(p, mode):
    """disk: writes that return when they are on it."""
    p.process = p.spawn([found("dd"), "if=/dev/zero", f"of={p.path('image')}", "bs=4k", "count=64000000", "oflag=dsync"])
    p.wait_for(lambda: os.path.getsize(p.path("image")) > 0)


def xz(p, mode):
    """Compresses what takes it minutes."""
    with open(p.path("data"), "wb") as f:
        f.write(os.urandom(24 << 20).hex().encode())
    p.process = p.spawn([found("xz"), "-9e", "-T1", "-k", "-c", p.path("data")])
    time.sleep(1)


def flock(p, mode):
    """lock: somebody else has the file's lock."""
    p.helpers.append(FileLock(p.path("lock")))
    p.process = p.spawn([found("flock"), p.path("lock"), "true"])
    time.sleep(0.2)


def php_fpm(p, mode):
    """A pool of four that has nothing to do."""
    config = p.write("fpm.conf", f"""
[global]
error_log = {p.path("error.log")}
daemonize = no
[www]
user = nobody
listen = {p.path("socket")}
pm = static
pm.max_children = 4
""")
    p.process = p.spawn([found("php-fpm8.2"), "-F", "-y", config])
    p.wait_for(lambda: unix_client(p.path("socket")))


def make(p, mode):
    """hot: a build, whose compiler is what takes the time."""
    program = found("make")
    found("g++")
    for n in range(3):
        p.write(f"part{n}.cc", "#include <regex>\n#include <iostream>\n#include <map>\n"
                f"bool part{n}(const std::string &s) {{ return std::regex_match(s, std::regex(\"a*b+{n}\")); }}\n")
    p.write("Makefile", "all: part0.o part1.o part2.o\n%.o: %.cc\n\tg++ -O2 -c -o $@ $<\n")
    p.command = [program, "-C", p.dir, "-j1"]


def memcached(p, mode):
    """A cache that is full, and stays so."""
    p.process = p.spawn([found("memcached"), "-u", "root", "-m", "64", "-s", p.path("socket")])
    client = p.wait_for(lambda: unix_client(p.path("socket")))

    def put(n):
        client.sendall(b"set entry%d 0 0 10000\r\n%s\r\n" % (n, b"x" * 10000))
        client.recv(64)
    for n in range(8000):
        put(n)
    p.again(lambda n: (put(n + 8000), time.sleep(0.001)))


PROGRAMS = {"redis": redis, "postgres": postgres, "nginx": nginx, "httpd": httpd, "sqlite": sqlite, "dd": dd, "xz": xz,
            "flock": flock, "php-fpm": php_fpm, "make": make, "memcached": memcached}


def start(name, mode, directory):
    p = Program(directory)
    try:
        PROGRAMS[name](p, mode)
    except BaseException:
        if p.process:
            kill_all(p.process)
        p.end()
        raise
    return p
