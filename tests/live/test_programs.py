"""Real programs as Debian ships them: profiles are whole, not empty, and name known functions."""

import os
import socket
import subprocess
import time

from harness import *
from programs import free_port, listens


def names_of(p):
    return {f.name for s in p.samples for f in s.frames}


def look(run, *functions, source="oncpu"):
    """A sound profile with some of these functions in it."""
    p = run.profile(source)
    check(p.samples, f"{source} is empty")
    names = names_of(p)
    check(names & set(functions), f"{source}: none of {functions} among {sorted(names)[:60]}")
    equal(sum(run.folded(source).values()) > 0, True, f"{source}.folded is not empty")
    return p


def profile_for(seconds, *args):
    run = Run(*args, "-F", 499, "-d", seconds)
    run.ready()
    run.finish()
    check(run.status in (0, 3), f"exit status {run.status}: {run.stderr[-300:]}")
    return run


@fact
def redis_under_load_shows_its_event_loop_and_where_it_waits():
    need("redis-server", "redis-benchmark")
    port, where = free_port(), scratch("redis")
    os.mkdir(where)
    server = Child(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                    "--appendonly", "no", "--dir", where, "--daemonize", "no"], **QUIET)
    listens(port)
    load = Child(["redis-benchmark", "-p", str(port), "-n", "100000000", "-t", "set,get", "-q",
                  "-c", "20", "-P", "4"], **QUIET)
    has_worked(server.pid, 0.1)
    run = profile_for(3, "-p", server.pid)
    load.end()
    # Debian's redis-server has no symbol table, but exports its functions. Kernel functions of
    # its socket calls are there whatever the user stack is.
    look(run, "aeProcessEvents", "processCommand", "call", "readQueryFromClient", "tcp_sendmsg",
         "tcp_sendmsg_locked", "ksys_write", "vfs_write", "__x64_sys_write", "sock_write_iter")
    look(run, "ep_poll", "do_epoll_wait", "epoll_wait", "schedule", "schedule_hrtimeout_range",
         source="offcpu")


@fact
def python_computing_shows_the_interpreter():
    if not os.path.exists("/usr/bin/python3"):
        skip("/usr/bin/python3 is not installed")
    code = "d={}\nwhile True:\n  for i in range(1000): d[i]=str(i)*3"
    child = at_work(Child(["/usr/bin/python3", "-c", code], **QUIET))
    run = profile_for(2, "-p", child.pid)
    look(run, "_PyEval_EvalFrameDefault", "PyDict_SetItem", "PyObject_Str", "PyUnicode_New",
         "_PyObject_Malloc", "PyObject_Malloc")


@fact
def sqlite_query_is_profiled_although_it_has_no_symbols():
    need("sqlite3")
    query = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3000000) "
             "SELECT sum(x*x % 7), count(DISTINCT x % 1000) FROM c;")
    run = Run("-F", 499, "--", tool("sqlite3"), ":memory:", query)
    run.finish()
    check(run.status in (0, 3), f"exit status {run.status}: {run.stderr[-300:]}")
    p = run.profile("oncpu")
    check(p.sum("samples/count") > 20, "too few samples of a long query")
    modules = {os.path.basename(f.module) for s in p.samples for f in s.frames}
    check(any("sqlite3" in m for m in modules), f"modules: {modules}")
    # Names, or module+offset: never a bare address.
    bare = [f for s in p.samples for f in s.frames if f.name.startswith("0x")]
    equal(bare, [], "frames shown as bare addresses")


@fact
def compiler_and_its_children_are_profiled_from_the_start():
    need("gcc")
    source, out = scratch("source") + ".c", scratch("object") + ".o"
    with open(source, "w", encoding="ascii") as f:
        f.write("#include <stdio.h>\n" + "".join(
            f"int f{i}(int a){{int s=0;for(int i=0;i<a;i++)s+=(i^{i})%(a+1);return s;}}\n"
            for i in range(600)))
    # The assembler is at work for some 20 ms: 40 samples, which no chance leaves out.
    run = Run("-F", 1999, "--", tool("gcc"), "-O2", "-c", source, "-o", out)
    run.finish()
    check(run.status in (0, 3), f"exit status {run.status}: {run.stderr[-300:]}")
    check(os.path.exists(out), "gcc did not produce its object")
    p = run.profile("oncpu")
    comms = {s.labels.get("comm") for s in p.samples}
    check({"cc1", "as"} <= comms, f"processes: {comms}")
    cc1 = p.sum("samples/count", comm="cc1")
    check(cc1 > 0.5 * p.sum("samples/count"), f"cc1 has {cc1} of {p.sum('samples/count')} samples")


@fact
def nginx_workers_are_followed():
    need("nginx")
    port, where = free_port(), scratch("nginx")
    os.makedirs(os.path.join(where, "html"))
    with open(os.path.join(where, "html", "index.html"), "w", encoding="ascii") as f:
        f.write("x" * 2000)
    conf = os.path.join(where, "nginx.conf")
    with open(conf, "w", encoding="ascii") as f:
        f.write(f"daemon off; worker_processes 1; pid {where}/pid; error_log {where}/error.log;\n"
                f"user root; events {{}} http {{ access_log off; client_body_temp_path {where}/b; "
                f"proxy_temp_path {where}/p; fastcgi_temp_path {where}/f; "
                f"uwsgi_temp_path {where}/u; scgi_temp_path {where}/s; keepalive_requests 1000000; "
                f"server {{ listen 127.0.0.1:{port}; root {where}/html; }} }}\n")
    os.chmod(where, 0o755)
    run = Run("-F", 499, "--", tool("nginx"), "-p", where, "-c", conf)
    run.ready()
    listens(port)
    # The first process listens before it has any.
    workers = set(until(lambda: children_of(run.command_pid()), "nginx has a worker"))
    with socket.create_connection(("127.0.0.1", port)) as s:
        stop = time.monotonic() + 1.5
        while time.monotonic() < stop:
            s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
            got = 0
            while got < 50 * 2000:
                more = len(s.recv(1 << 20))
                if not more:
                    raise Broken("nginx closed its connection")
                got += more
    run.stop()
    check(run.status in (0, 3), f"exit status {run.status}: {run.stderr[-300:]}")
    try:  # the launched nginx outlives our Ctrl-C or not: end it either way
        os.kill(run.command_pid(), 15)
    except ProcessLookupError:
        pass
    p = run.profile("oncpu")
    # The first process may have come to its end between two samples; who served is in hundreds.
    pids = {s.labels.get("pid") for s in p.samples}
    check(workers and workers <= pids, f"of the workers {workers} only {pids} have samples")
    look(run, "do_sendfile", "tcp_sendmsg", "tcp_sendmsg_locked", "ksys_read", "vfs_read",
         "__x64_sys_recvfrom", "tcp_recvmsg", "do_epoll_wait", "__x64_sys_writev", "do_writev")


main()
