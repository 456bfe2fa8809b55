#!/usr/bin/python3
"""A target that the kernel kills because memory ran out: what it held last is on disk."""

import os

from containers import *
from harness import *

LIMIT = 64 << 20


@fact
def last_picture_of_a_target_killed_for_want_of_memory_is_on_disk():
    group = memory_group(LIMIT)
    try:
        # A mebibyte in 50 ms at most: the limit is some 30 rows away.
        target = Target("leaks", 100000, 3)
        with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(target.pid))
        run = Run("-p", target.pid, "--only", "alloc", "--alloc=exact", "--interval", 0.1, "--json")
        run.ready()
        target.say("go")
        run.must()
        s = run.summary()
        equal(s["end_detail"],
              f"the kernel killed process {target.pid} because memory ran out", "end")
        # What was live when it was killed: the limit, less what is not malloc's own.
        within(s["alloc"]["live_bytes"], LIMIT // 2, 2 * LIMIT, "live bytes")
        check(run.profile("heap").sum("inuse_space/bytes", "leak_here") > LIMIT // 3,
              "the leak is in heap")
        check(any(x["function"] == "leak_here" for x in s["alloc"]["leaks"]), "leak named")
        target.end()
    finally:
        for _ in range(50):
            try:
                os.rmdir(group)
                break
            except OSError:
                time.sleep(0.1)


main()
