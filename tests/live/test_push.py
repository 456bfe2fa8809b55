#!/usr/bin/python3
"""memscope serve --push: what comes to a store is what is in the windows, whatever the store does meanwhile (stores.py)."""

import collections
import glob
import os
import signal
import subprocess
import time

from containers import *
from harness import *
from serving import Serve
from stores import Store, certificate


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


def spinner():
    target = Target("cpu_split", 30000)
    target.say("go")
    return target


FAST = ("--every", 1, "--only", "oncpu,offcpu", "-F", 199, "--listen", "off")


@fact
def what_both_stores_have_is_what_the_windows_have():
    target, stores = spinner(), [Store("pyroscope").begin(), Store("otlp").begin()]
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
    want = {**oncpu, **{t.replace("blocked/nanoseconds", "off_cpu/nanoseconds"): v for t, v in offcpu.items() if v}}
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
    target, store = spinner(), Store("pyroscope").begin()
    serve = Serve("-p", target.pid, *FAST, *pushing(store)).ready()
    store.wait(lambda: len(store.items) >= 2, "the first windows")
    store.end()
    serve.says("does not take profiles: ")
    time.sleep(2)
    check(waiting(serve), "nothing waits")
    store.begin()
    serve.says("takes profiles again after ")
    serve.stop()
    equal(serve.stderr.count("does not take profiles: "), 1, f"said once: {serve.stderr}")
    equal((store.wrong, waiting(serve)), ([], []), "what was wrong, what is left")
    equal(store.sums("process_cpu"), windows_sums(serve, "oncpu"), "sums")


@fact
def what_memscope_could_not_send_before_it_was_killed_is_sent_by_the_next():
    target, store = spinner(), Store("pyroscope").begin()
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
    target, store = spinner(), Store("pyroscope").begin()
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
def a_store_that_never_answers_holds_up_neither_windows_nor_the_end():
    target, store = spinner(), Store("otlp").begin()
    store.always = "never"
    serve = Serve("-p", target.pid, *FAST, *pushing(store)).ready()
    store.wait(lambda: store.requests, "a request")
    time.sleep(2)
    before = time.monotonic()
    serve.stop()
    took = time.monotonic() - before
    check(took < 15, f"the end took {took:.1f} s")
    check(len(serve.windows()) >= 3, "windows are missing")
    check(waiting(serve), "nothing waits for the next start")


@fact
def a_collector_that_leaves_some_out_is_believed():
    target, store = spinner(), Store("otlp").begin()
    store.success = b"\n\x0b" + b"\x08\x01" + b"\x12\x07too old"
    serve = Serve("-p", target.pid, "--every", 2, "--only", "oncpu", "--listen", "off", *pushing(store)).ready()
    serve.says("it left them out of what it took (too old)")
    serve.stop()
    row = summary(serve)["push"][0]
    equal(row["dropped"]["rejected"], row["pushed"], "rejected: one of each")


@fact
def over_tls_only_who_is_trusted_gets_anything_and_the_token_goes_with_it():
    need_openssl = tool("openssl")
    check(need_openssl, "no openssl")
    path = scratch("store.pem")
    target, store = spinner(), Store("pyroscope", certificate(path)).begin()
    token = scratch("token")
    with open(token, "w", encoding="utf-8") as f:
        f.write("12345:glc_secret\n")
    os.chmod(token, 0o600)
    serve = Serve("-p", target.pid, *FAST, *pushing(store)).ready()
    serve.says("does not take profiles: SSL certificate problem")
    serve.stop()
    equal(store.requests, [], "what an unknown store was told")
    serve = Serve("-p", target.pid, *FAST, *pushing(store), "--push-ca", path, "--push-token-file", token,
                  "--push-header", "X-Scope-OrgID: team").ready()
    store.wait(lambda: store.items, "profiles")
    serve.stop()
    headers = store.requests[0][1]
    equal((headers.get("Authorization"), headers.get("X-Scope-OrgID")), ("Basic MTIzNDU6Z2xjX3NlY3JldA==", "team"), "headers")
    equal(store.sums("process_cpu"), windows_sums(serve, "oncpu"), "sums")


@fact
@grouped
def of_several_groups_each_is_pushed_by_itself_and_all_together_are_not():
    groups = [Group(f"memscope-live-{os.getpid()}-{os.urandom(4).hex()}") for _ in range(2)]
    targets = [Inside(g, "cpu_split", 30000) for g in groups]
    for t in targets:
        t.say("go")
    store = Store("pyroscope").begin()
    serve = Serve("-G", ",".join(g.dir for g in groups), *FAST, *pushing(store)).ready()
    time.sleep(2.2)
    serve.stop()
    equal(store.wrong, [], "what was wrong")
    equal(store.sums("process_cpu"), windows_sums(serve, "oncpu"), "all, once")
    services = {labels["service_name"] for labels, *_ in store.items.values()}
    check(len(services) >= 2 and os.path.basename(glob.glob(serve.archive + "/*")[0]) not in services, f"services {services}")


@fact
def the_spool_is_bounded_and_a_reload_loses_nothing():
    target, store = spinner(), Store("pyroscope").begin()
    conf = scratch("memscope.conf")
    with open(conf, "w", encoding="utf-8") as f:
        f.write(f"pid = {target.pid}\nevery = 1\nonly = oncpu\nlisten = off\npush = pyroscope={store.url}\nspool-limit = 1M\n")
    os.chmod(conf, 0o600)
    serve = Serve("--config", conf).ready()
    store.wait(lambda: store.items, "profiles")
    serve.process.send_signal(signal.SIGHUP)
    serve.ready(3)
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
