"""Runs facts one after the other and prints TAP; a fact whose programs are not installed is skipped."""

import shutil


class Skip(Exception):
    """Something is not to be had here, by its words."""


def run_facts(facts):
    """`facts`: (function, the programs it needs). The exit status: 1 if one failed."""
    print(f"1..{len(facts)}")
    bad = 0
    for i, (fact, needs) in enumerate(facts, 1):
        name = fact.__name__.replace("_", " ")
        missing = [n for n in needs if not shutil.which(n)]
        if missing:
            print(f"ok {i} - {name} # SKIP no {missing[0]}")
            continue
        try:
            fact()
            print(f"ok {i} - {name}")
        except Skip as e:
            print(f"ok {i} - {name} # SKIP {e}")
        except AssertionError as e:
            print("# " + str(e).replace("\n", "\n# "))
            print(f"not ok {i} - {name}")
            bad += 1
    return 1 if bad else 0
