"""operator new and delete in all forms, and programs that throw while probes are there."""

import time

from harness import *
from truth import *


@fact
def every_form_of_new_and_delete_is_counted_once():
    target = Target("new_truth")
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("run"))
    # libstdc++'s over-aligned forms use the frame pointer's register for something else, so by
    # frame pointers nobody can say who called them: those four are equal in total.
    check_truth(run, lines, target.pid, by_function=lambda name: "aligned" not in name)


@fact
def program_that_catches_bad_alloc_survives_attach_and_detach():
    target = Target("bad_alloc")
    target.ask("go")
    for _ in range(3):
        run = Run("-p", target.pid, *EXACT)
        run.ready()
        has_worked(target.pid, 0.1)
        run.stop()
        run.must()
        if not check(target.alive(), f"the target died: {target.how_it_ended()}"):
            return
        # The forms that succeed show that its probes were there.
        check(run.profile("alloc").sum("alloc_objects/count", pid=target.pid) > 0,
              "no allocation was seen: the probes were not there")
    answer = dict(target.ask("stop"))
    check(answer["tried"] > 0 and answer["caught"] > 0, "the target never threw")
    equal(answer["caught"] + answer["nulls"], answer["tried"], "exceptions caught and nulls")
    text_is_as_its_files(target.pid)


@fact
def calls_that_throw_are_not_counted_as_allocations():
    target = Target("bad_alloc")
    run, answer = record(("-p", target.pid, *EXACT),
                         lambda: (target.ask("go"), has_worked(target.pid, 0.1), dict(target.ask("stop")))[2])
    p = run.profile("alloc")
    # Each throw allocates its exception object with malloc, also inside the nothrow forms, which
    # catch it themselves (libstdc++): one success for each attempt, beside those meant to succeed.
    equal(p.sum("alloc_objects/count", pid=target.pid), answer["ok"] + answer["tried"],
          "allocations that succeeded")
    check(p.sum("alloc_space/bytes", pid=target.pid) < 1 << 40, "a failed call's bytes are counted")


main()
