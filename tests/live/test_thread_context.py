#!/usr/bin/python3
"""What threads publish of their work as OpenTelemetry has it (OTEP 4719, 4947): labels of their samples and waits, wherever the
thread-local word is, and beside programs that publish what is no context."""

from harness import *

WORK_SEC = 0.4  # of CPU time of each process: some 400 samples
TRACE = "ab" * 16
# Where the word is: in the program, in libraries that are loaded; by two words, descriptors, a fixed distance.
KINDS = {"program": ["thread_context"], "library": ["thread_context", "lib_otel.so"],
         "descriptor": ["thread_context", "lib_otel_desc.so"], "static descriptor": ["thread_context", "lib_otel_static.so"],
         "initial": ["thread_context", "lib_otel_initial.so"],
         "musl": ["thread_context_musl_shared", "lib_otel_musl_shared.so"]}


def built(name):
    return os.path.join(BUILD, "targets", name)


def summary_text(r):
    with open(r.path("summary.txt"), encoding="utf-8") as f:
        return f.read()


def span(number):
    return f"{number:016x}"


@once
def together():
    """A run on all kinds and a hostile one: (it, {kind: pid})."""
    commands = {kind: [built(word) for word in words] for kind, words in KINDS.items()
                if all(os.path.exists(built(word)) for word in words)}
    commands["hostile"] = [built("thread_context"), "hostile"]
    children = {kind: Child(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for kind, command in commands.items()}
    for child in children.values():
        child.process.stdout.readline()
    pids = [child.pid for child in children.values()]
    r = Run("-p", ",".join(map(str, pids)), "--only", "oncpu,offcpu", "--offcpu=exact", "-F", 999)
    r.ready()
    # A process's contexts are read from the first look at it on, which is after its first sample: none works before.
    workers = [child for kind, child in children.items() if kind != "hostile"]
    until(lambda: {child.pid for child in workers} <= bpf_map_keys(r.pid, "label_sources"), "memscope knows where contexts are")
    for child in workers:
        child.process.stdin.write(b"go\n")
        child.process.stdin.flush()
    has_worked(pids, WORK_SEC)
    r.stop()
    r.must()
    for child in children.values():
        child.end()
    return r, {kind: child.pid for kind, child in children.items()}


# The label sets of work, by the function that does it.
TRUTH = {"hot_search": {"trace_id": TRACE, "span_id": span(1), "http.route": "/search"},
         "hot_cart": {"trace_id": TRACE, "span_id": span(2), "http.route": "/cart", "app.pid": "anna"},
         "hot_nothing": {},
         "hot_worker": {"trace_id": TRACE, "span_id": span(3), "http.route": "/worker"},
         "do_sleep": {"trace_id": TRACE, "span_id": span(4), "http.route": "/sleep"}}
OURS = ("pid", "comm", "tid", "thread")


def labelled(profile, kind, function, value):
    """[(labels of the program's own, value)] of the samples of a kind with a function on their stack."""
    pid = together()[1][kind]
    return [({k: v for k, v in s.labels.items() if k not in OURS}, s.values[value]) for s in profile.samples
            if s.labels.get("pid") == pid and any(f.name == function for f in s.frames)]


def kinds():
    return [kind for kind in together()[1] if kind != "hostile"]


def right_and_whole(profile, kind, function, value):
    """Labels are never another function's, and all have theirs but those that are said to be lost."""
    found = labelled(profile, kind, function, value)
    total = sum(n for _, n in found)
    truth = TRUTH[function]
    lost = sum(together()[0].lost("labels_lost").values())
    wrong = [labels for labels, _ in found if labels and {k: v for k, v in labels.items() if k != "tenant"} != truth]
    check(not wrong, f"{kind}: samples in {function} have labels {wrong[:3]}")
    if truth:
        have = sum(n for labels, n in found if labels)
        check(total - have <= lost, f"{kind}: {have} of {total} in {function} have labels, {lost} are said to be lost")
    return total


@fact
def samples_have_the_labels_that_their_thread_has_published():
    profile = together()[0].profile("oncpu")
    for kind in kinds():
        total = {function: right_and_whole(profile, kind, function, 0) for function in TRUTH if function != "do_sleep"}
        n = sum(total.values()) - total["hot_worker"]
        if n < 100:
            skip(f"only {n} samples of {kind}: the machine is busy")
        for function, share in (("hot_search", 0.6), ("hot_cart", 0.2), ("hot_nothing", 0.2)):
            share_of(total[function] / n, share, n, f"{kind}: the share of {function}")


@fact
def waits_have_them_too():
    profile = together()[0].profile("offcpu")
    blocked = profile.types.index("blocked/count")
    for kind in kinds():
        check(right_and_whole(profile, kind, "do_sleep", blocked) > 0, f"{kind}: no sleep was seen")


@fact
def a_name_that_is_published_later_is_known():
    profile = together()[0].profile("oncpu")
    for kind in kinds():
        found = {labels.get("tenant") for labels, _ in labelled(profile, kind, "hot_cart", 0)}
        check("blue" in found and found <= {"blue", None}, f"{kind}: tenants {found}")


@fact
def the_summary_has_the_share_of_each_label():
    r, pids = together()
    profile = r.profile("oncpu")
    rows = {row["key"]: row for row in r.summary()["program_labels"]}
    of_key = sum(s.values[0] for s in profile.samples if "http.route" in s.labels)
    equal(rows["http.route"]["samples"], of_key, "samples with a route")
    for top in rows["http.route"]["top"]:
        equal(top["samples"], profile.sum("samples/count", **{"http.route": top["value"]}), f"samples of {top['value']}")
    check("http.route=/worker" in summary_text(r), "no share in summary.txt")


@fact
def what_is_no_context_does_no_harm():
    r, pids = together()
    check(r.lost("labels_unreadable"), f"no context was unreadable: {r.lost()}")
    others = [s.labels for s in r.profile("oncpu").samples if s.labels.get("pid") not in (pids["hostile"],)
              and s.labels.get("trace_id", TRACE) != TRACE]
    check(not others, f"other processes have labels of the hostile one: {others[:3]}")


@fact
def of_too_many_spans_attributes_remain():
    child = Child([built("thread_context"), "spans"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdout.readline()
    # Some 5,000 spans in a second of its CPU time, fewer where the kernel is slow, of which 8,192 get a number.
    r, _ = record(["-p", str(child.pid)], lambda: has_worked(child.pid, 5), "--only", "oncpu", "-F", 9999)
    child.end()
    samples = r.profile("oncpu").samples
    total = sum(s.values[0] for s in samples)
    numbers = {s.labels["span_id"] for s in samples if "span_id" in s.labels}
    routes = {s.labels.get("http.route") for s in samples if "trace_id" not in s.labels}
    if total < 20000:
        skip(f"only {total} samples: the machine is busy")
    within(len(numbers), 8192, 8192 + 200, "spans with a number") # some are on their way when the limit is reached
    check({"/odd", "/even"} <= routes, f"routes without a span: {routes}")
    check("8,192 spans" in summary_text(r), "the limit is not in summary.txt")


main()
