#!/usr/bin/python3
"""memscope serve --push: stores that ask for a certificate and a token, that take a part, that never answer; several groups; what
sending costs memscope itself."""

import collections
import os
import shutil
import time
import urllib.request

from containers import *
from harness import *
from http_serving import free_port
from pushing import *
from serving import Serve
from stores import Store, certificate


@fact
def over_tls_only_a_store_that_is_trusted_gets_anything_and_the_token_goes_with_it():
    if not shutil.which("openssl"):
        skip("no openssl")
    path, token = scratch("store.pem"), scratch("token")
    target, store = at_a_fifth(), Store("pyroscope", certificate(path)).begin()
    with open(token, "w", encoding="utf-8") as f:
        f.write("glsa_secret\n")
    os.chmod(token, 0o600)
    serve = Serve("-p", target.pid, *FAST, *pushing(store), "--push-token-file", token).ready()
    serve.says("does not take profiles: SSL certificate problem")
    serve.stop()
    equal(store.requests, [], "what a store got whose certificate is not known")
    serve = Serve("-p", target.pid, *FAST, *pushing(store), "--push-ca", path, "--push-token-file", token,
                  "--push-header", "X-Scope-OrgID: team").ready()
    store.wait(lambda: store.items, "profiles")
    with open(token, "w", encoding="utf-8") as f:
        f.write("12345:glc_secret\n")
    store.wait(lambda: store.requests[-1][1].get("Authorization") != "Bearer glsa_secret", "a request with the new token")
    serve.stop()
    headers = [store.requests[i][1] for i in (0, -1)]
    equal([h.get("Authorization") for h in headers], ["Bearer glsa_secret", "Basic MTIzNDU6Z2xjX3NlY3JldA=="], "tokens")
    equal([h.get("X-Scope-OrgID") for h in headers], ["team"] * 2, "tenants")
    equal((store.wrong, waiting(serve)), ([], []), "what was wrong, what is left")
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
    has_worked([t.pid for t in targets], 0.6)
    store.wait(lambda: store.items, "a window")
    serve.stop()
    equal(store.wrong, [], "what was wrong")
    folder, = (d for d in os.listdir(serve.archive) if d != ".push")
    equal(store.sums("process_cpu"), windows_sums(serve, "oncpu", folder), "all of it, once")
    for g in groups:
        name = os.path.basename(g.dir)
        sums = store.sums("process_cpu", service_name=name)
        equal(sums, windows_sums(serve, "oncpu", os.path.join(folder, name)), f"what service_name {name} has")
        check(sums["samples/count"] >= 10, f"hardly a sample of {name}: {sums}")
    services = {labels["service_name"] for labels, *_ in store.items.values()}
    equal(services, {os.path.basename(g.dir) for g in groups}, "services")


@fact
def a_collector_that_leaves_some_out_is_believed():
    target, store = at_a_fifth(), Store("otlp").begin()
    # ExportProfilesPartialSuccess: rejected_profiles 1, error_message.
    store.success = b"\n\x0b" + b"\x08\x01" + b"\x12\x07too old"
    serve = Serve("-p", target.pid, "--every", 1, "--only", "oncpu", "-F", 199, "--listen", "off", *pushing(store)).ready()
    serve.says("it left them out of what it took (too old)")
    serve.stop()
    row = summary(serve)["push"][0]
    check(row["pushed"] > 0 and not waiting(serve), f"{row}")
    equal((row["dropped"]["rejected"], sum(row["dropped"].values())), (row["pushed"],) * 2, "rejected: one of each")


@fact
def a_store_that_never_answers_holds_up_neither_windows_nor_the_end_and_loses_nothing():
    target, store = at_a_fifth(), Store("otlp").begin()
    store.always = "never"
    serve = Serve("-p", target.pid, *FAST, *pushing(store), "--push-timeout", 1).ready()
    serve.says("does not take profiles: ")
    store.wait(lambda: len(store.requests) >= 2, "a second request, after the first one's time was over")
    before = time.monotonic()
    serve.stop()
    took = time.monotonic() - before
    # What is not sent in five seconds stays (LAST_NS); the rest is the last window's.
    check(took < 15, f"the end took {took:.1f} s")
    row = summary(serve)["push"][0]
    equal((row["pushed"], sum(row["dropped"].values())), (0, 0), "pushed, dropped")
    equal(len(waiting(serve)), row["spooled"], "profiles that wait for the next start")
    check(row["retries"] >= 1 and row["failing_since_ns"], f"{row}")
    store.always = None
    again = Serve("-p", target.pid, *FAST, *pushing(store), archive=serve.archive).ready()
    store.wait(lambda: not waiting(again), "what waited")
    again.stop()
    want = collections.Counter()
    for source in ("oncpu", "offcpu"):
        want.update({t.replace("blocked/nanoseconds", "off_cpu/nanoseconds"): v for t, v in windows_sums(again, source).items() if v})
    want.update(windows_sums(again, "wakers"))
    equal({t: v for t, v in store.sums().items() if v}, dict(want), "all in the store")


def child_cpu_s(pid):
    """{comm: seconds} of its children, by the kernel's account of their threads, and of those that it waited for."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        words = f.read().rsplit(")", 1)[1].split()
    seconds = {"": sum(map(int, words[13:15])) / os.sysconf("SC_CLK_TCK")}
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        for child in f.read().split():
            with open(f"/proc/{child}/comm", encoding="utf-8") as c, open(f"/proc/{child}/schedstat", encoding="ascii") as s:
                seconds[c.read().strip()] = int(s.read().split()[0]) / 1e9
    return seconds


@fact
def what_sends_is_in_the_cpu_time_that_memscope_says_it_takes():
    target, store = at_a_fifth(), Store("pyroscope").begin()
    address = f"127.0.0.1:{free_port()}"
    serve = Serve("-p", target.pid, "--every", 1, "--only", "oncpu,offcpu", "-F", 199, "--listen", address, *pushing(store)).ready()
    store.wait(lambda: len(store.items) >= 4, "two windows")
    before = child_cpu_s(serve.pid)
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:
        said = float(re.search(r'^memscope_own_cpu_seconds_total\{part="children"\} (\S+)$', answer.read().decode(), re.M).group(1))
    after = child_cpu_s(serve.pid)
    check("memscope-push" in before and before["memscope-push"] > 0.001, f"{before}")
    # A tick of the account of those that have ended, in utime and in stime.
    within(said, before[""] + before["memscope-push"] - 0.02, sum(after.values()) + 0.02, "CPU time of children")
    serve.stop()
    row = summary(serve)["push"][0]
    check(row["cpu_ns"] / 1e9 >= before["memscope-push"] - 0.001, f"{row['cpu_ns']} ns in the summary, {before}")


main()
