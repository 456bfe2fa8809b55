"""What the allocation targets say of themselves, against the profiles: equal, not near."""

from harness import equal

ALLOC = ["alloc_objects/count", "alloc_space/bytes"]
HEAP = ALLOC + ["inuse_objects/count", "inuse_space/bytes"]
EXACT = ("--alloc=exact", "--only", "alloc")


def sites_of(lines):
    """{function: [calls, bytes, live calls, live bytes]} of a target's answer, and the total."""
    sites = {line[1]: line[2:] for line in lines if line[0] == "site"}
    return sites, next(line[1:] for line in lines if line[0] == "total")


def check_truth(run, lines, pid, total_is_all=True, by_function=lambda name: True):
    """Every count of the target, by function (those that `by_function` picks) and in total, in
    alloc and in heap."""
    alloc, heap = run.profile("alloc"), run.profile("heap")
    sites, total = sites_of(lines)
    for name, truth in sites.items():
        if not by_function(name):
            continue
        got = [alloc.sum(t, name, pid=pid) for t in ALLOC]
        equal(got, truth[:2], f"alloc: calls and bytes of {name}")
        got = [heap.sum(t, name, pid=pid) for t in HEAP]
        equal(got, truth, f"heap: calls, bytes, live calls, live bytes of {name}")
    if total_is_all:
        equal([alloc.sum(t, pid=pid) for t in ALLOC], total[:2], "alloc: total")
        got = [heap.sum(t, pid=pid) - heap.sum(t, "[before attach]", pid=pid) for t in HEAP]
        equal(got, total, "heap: total")
    return sites, total
