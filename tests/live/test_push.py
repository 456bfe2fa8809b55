#!/usr/bin/python3
"""memscope serve --push: what comes to a store is what is in the windows, whatever the store does meanwhile (stores.py)."""

import os
import signal
import subprocess
import time

from harness import *
from pushing import *
from serving import Serve
from stores import Store


@fact
def what_both_stores_have_is_what_the_windows_have():
    target, stores = at_a_fifth(), [Store("pyroscope").begin(), Store("otlp").begin()]
    serve = Serve("-p", target.pid, *FAST, *pushing(*stores), "--label", "env=prod", "--label", "k8s.pod/x=1").ready()
    time.sleep(3.2)
    serve.stop()
    pyroscope, otlp = stores
    equal((pyroscope.wrong, otlp.wrong), ([], []), "what the stores found wrong")
    oncpu, offcpu = windows_sums(serve, "oncpu"), windows_sums(serve, "offcpu")
    check(oncpu["samples/count"] > 10, f"hardly a sample: {oncpu}")
    equal(pyroscope.sums("process_cpu"), oncpu, "process_cpu in Pyroscope")
    equal(pyroscope.sums("offcpu"), offcpu, "offcpu in Pyroscope")
    equal({t.split("/")[0] for name in ("process_cpu",) for t in pyroscope.sums(name)}, {"cpu", "samples"}, "types of process_cpu")
    want = {**oncpu, **{t.replace("blocked/nanoseconds", "off_cpu/nanoseconds"): v for t, v in offcpu.items() if v}, **windows_sums(serve, "wakers")}
    equal({t: v for t, v in otlp.sums().items() if v}, {t: v for t, v in want.items() if v}, "all in OTLP")
    equal(waiting(serve), [], "what is still in the spools")
    for labels, _, _, _, of_samples, period in pyroscope.items.values():
        equal((labels["env"], labels["k8s_pod_x"], labels["__delta__"], labels["hostname"]), ("prod", "1", "false", os.uname().nodename), "labels")
        equal(labels["service_name"], os.listdir(serve.archive)[0] if os.listdir(serve.archive)[0] != ".push" else os.listdir(serve.archive)[1], "service_name")
        check(of_samples <= {("comm",), ()}, f"labels of samples: {of_samples}")
    for labels, _, _, totals, of_samples, period in otlp.items.values():
        equal((labels["env"], labels["k8s.pod/x"], labels["host.name"]), ("prod", "1", os.uname().nodename), "attributes")
        check(of_samples <= {("process.executable.name",), ()}, f"attributes of samples: {of_samples}")
        equal(period is None, "off_cpu/nanoseconds" in totals, f"the period of {totals}")
    rows = summary(serve)["push"]
    equal([r["dropped"]["refused"] for r in rows], [0, 0], "refused")
    check(all(r["pushed"] > 0 for r in rows), f"{rows}")


@fact
def a_store_that_is_killed_and_comes_back_misses_nothing():
    target, store = at_a_fifth(), Store("pyroscope").begin()
    serve = Serve("-p", target.pid, *FAST, *pushing(store)).ready()
    store.wait(lambda: len(store.items) >= 2, "the first windows")
    store.end()
    serve.says("does not take profiles: ", 120)
    time.sleep(2)
    check(waiting(serve), "nothing waits")
    store.begin()
    serve.says("takes profiles again after ", 120)
    serve.stop()
    equal(serve.stderr.count("does not take profiles: "), 1, f"said once: {serve.stderr}")
    equal((store.wrong, waiting(serve)), ([], []), "what was wrong, what is left")
    equal(store.sums("process_cpu"), windows_sums(serve, "oncpu"), "sums")


@fact
def what_memscope_could_not_send_before_it_was_killed_is_sent_by_the_next():
    target, store = at_a_fifth(), Store("pyroscope").begin()
    store.end()  # its port is known
    archive = Serve("-p", target.pid, *FAST, *pushing(store)).ready()
    until(lambda: len(waiting(archive)) >= 3, "windows in the spool")
    archive.process.kill()
    archive.process.wait()
    store.begin()
    serve = Serve("-p", target.pid, *FAST, *pushing(store), archive=archive.archive).ready()
    store.wait(lambda: len(store.items) >= 3 and not waiting(serve), "what waited")
    serve.stop()
    equal((store.wrong, waiting(serve)), ([], []), "what was wrong, what is left")
    got, want = store.sums("process_cpu"), windows_sums(serve, "oncpu")
    # A window that was being written when it was killed may be in the store alone.
    check(all(got[t] >= want[t] for t in want), f"{got} in the store, {want} on disk")


@fact
def bad_answers_lose_nothing_that_is_not_refused_and_count_what_is():
    target, store = at_a_fifth(), Store("pyroscope").begin()
    store.answers.extend([(400, {"Content-Type": "application/json"}, b'{"code":"invalid_argument"}'), "garbage",
                          (429, {"Retry-After": "2"}), "cut"])
    serve = Serve("-p", target.pid, "--every", 1, "--only", "oncpu", "-F", 199, "--listen", "off", *pushing(store)).ready()
    store.wait(lambda: len(store.requests) >= 4, "the fourth request", 40)
    asked, came = store.requests[2][0], store.requests[3][0]
    check(came - asked >= 1.99, f"Retry-After: 2, and it was asked again after {came - asked:.2f} s")
    store.wait(lambda: store.again, "what was taken, and its answer lost, once more", 60)
    until(lambda: not waiting(serve), "the end of what waited")
    check("1 profile did not come to pyroscope" in serve.stderr and "status 400" in serve.stderr, serve.stderr)
    serve.stop()
    got, want = store.sums("process_cpu"), windows_sums(serve, "oncpu")
    check(got["samples/count"] < want["samples/count"], "nothing is missing, though one was refused")
    row = summary(serve)["push"][0]
    equal((row["dropped"]["refused"], sum(row["dropped"].values()), store.again), (1, 1, 1), "refused, dropped, twice taken")
    equal(row["spooled"] - row["pushed"], 1, "spooled, but not pushed")


@fact
def a_reload_loses_nothing():
    target, store = at_a_fifth(), Store("pyroscope").begin()
    conf = scratch("memscope.conf")
    with open(conf, "w", encoding="utf-8") as f:
        f.write(f"pid = {target.pid}\nevery = 1\nonly = oncpu\nlisten = off\npush = pyroscope={store.url}\nspool-limit = 1M\n")
    os.chmod(conf, 0o600)
    serve = Serve("--config", conf).ready()
    store.wait(lambda: store.items, "profiles")
    serve.process.send_signal(signal.SIGHUP)
    serve.ready(2)
    time.sleep(1.5)
    serve.stop()
    equal((store.wrong, waiting(serve)), ([], []), "what was wrong, what is left")
    equal(store.sums("process_cpu"), windows_sums(serve, "oncpu"), "sums over a reload")


@fact
def mistakes_of_push_are_named():
    for args, words in ((("--push", "loki=http://x"), "--push takes pyroscope=URL or otlp=URL"),
                        (("--push", "otlp=localhost:4318"), "is no address like http://HOST:PORT"),
                        (("--push", "otlp=http://x/?a"), "cannot have a '?'"),
                        (("--spool-limit", "1K", "--push", "otlp=http://x"), "--spool-limit takes bytes"),
                        (("--push-header", "nothing", "--push", "otlp=http://x"), "--push-header takes NAME: VALUE"),
                        (("--push-ca", "/x"), "go with --push"),):
        done = subprocess.run([MEMSCOPE, "serve", "--archive", "/tmp/x", "--check-config", *args], capture_output=True, text=True, timeout=20)
        equal(done.returncode, 2, f"status of {args}")
        check(words in done.stderr, f"{args}: {done.stderr}")


main()
