#!/usr/bin/python3
"""Programs with one fault of memory each: it is named, with its evidence, and no other is."""

import re
import threading

from harness import *


@once
def runs():
    """All at once: none needs the CPU for long but the one that churns."""
    names = ("churn", "bloat", "fragmentation", "healthy", "leak")
    targets = {n: Target("leaks", 80, 40) if n == "leak" else Target("sick", n) for n in names}
    found = {n: Run("-p", t.pid, "--alloc=exact", "-F", 999, "--interval", 0.1, out=scratch(n))
             for n, t in targets.items()}
    for run in found.values():
        run.ready()

    def one(name):  # each ends with its own target: a leak that has stopped is none
        targets[name].ask("go")
        found[name].stop()
    threads = [threading.Thread(target=one, args=(n,)) for n in names]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for run in found.values():
        run.must()
    return {n: run.summary() for n, run in found.items()}


def diagnoses(name):
    s = runs()[name]
    return {d["kind"]: d["evidence"] for d in s["diagnoses"]}, s


@fact
def healthy_program_has_no_diagnosis():
    found, _ = diagnoses("healthy")
    equal(found, {}, "diagnoses")


@fact
def stack_that_keeps_what_it_takes_is_a_leak():
    found, _ = diagnoses("leak")
    equal(list(found), ["leak"], "diagnoses")
    check("leak_here" in found.get("leak", ""), f"evidence: {found}")


@fact
def blocks_that_live_for_a_moment_are_churn():
    found, s = diagnoses("churn")
    equal(list(found), ["churn"], "diagnoses")
    share = int(re.match(r"(\d+)% of", found.get("churn", "0% of")).group(1))
    a = s["alloc"]
    equal(share, round(100 * a["temporary"] / a["objects"]), "share of temporary allocations")
    within(share, 99, 100, "share of temporary allocations")
    check("churn_here" in found.get("churn", ""), f"evidence: {found}")


@fact
def moment_of_much_more_than_is_kept_is_bloat():
    found, _ = diagnoses("bloat")
    equal(list(found), ["bloat"], "diagnoses")
    check(re.search(r" 64\.0 MiB .*spike_here.*at the end, 1\.0 MiB", found.get("bloat", "")),
          f"evidence: {found}")


@fact
def holes_between_blocks_are_fragmentation():
    found, _ = diagnoses("fragmentation")
    equal(list(found), ["fragmentation"], "diagnoses")
    m = re.search(r"([\d.]+) MiB, (\d+)% of the heap", found.get("fragmentation", ""))
    if check(m, f"evidence: {found}"):
        # 7 of each 16 blocks of 1,024 bytes with their headers are released; what of them is in the
        # thread's cache (7) and in the bins is all held.
        near(float(m.group(1)), 64 * 7 / 16, 1, "MiB in no block")
        near(int(m.group(2)), 100 * 7 / 16, 3, "percent of the heap")


main()
