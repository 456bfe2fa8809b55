#!/usr/bin/python3
"""What threads publish of their work as OpenTelemetry has it (OTEP 4719, 4947): labels of their samples and waits, wherever the
thread-local word is, and beside programs that publish what is no context."""

from harness import *

WORK_SEC = 0.5  # of CPU time of each process: some 500 samples
TRACE = "ab" * 16
# Where the word is: in the program, in libraries that are loaded; by two words, descriptors, a fixed distance.
KINDS = {"program": ["thread_context"], "library": ["thread_context", "lib_otel.so"],
         "descriptor": ["thread_context", "lib_otel_desc.so"], "static descriptor": ["thread_context", "lib_otel_static.so"],
         "initial": ["thread_context", "lib_otel_initial.so"],
         "musl": ["thread_context_musl_shared", "lib_otel_musl_shared.so"]}


def span(number):
    return f"{number:016x}"


@once
def together():
    """A run on all kinds and a hostile one: (it, {kind: pid})."""
    commands = {kind: [target(word) for word in words] for kind, words in KINDS.items()
                if all(os.path.exists(target(word)) for word in words)}
    commands["hostile"] = [target("thread_context"), "hostile"]
    children = {kind: Child(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for kind, command in commands.items()}
    for child in children.values():
        child.process.stdout.readline()
    pids = [child.pid for child in children.values()]
    r, _ = record(["-p", ",".join(map(str, pids))], lambda: has_worked(pids, WORK_SEC), "--only", "oncpu,offcpu", "-F", 999)
    for child in children.values():
        child.end()
    return r, {kind: child.pid for kind, child in children.items()}


main()
