"""Objects of a class that a dict of a module keeps; says what its own collector has of it, and lives until its input ends."""

import collections
import gc
import json
import sys


class Session:
    def __init__(self, number):
        self.number = number
        self.data = f"session {number} " + "x" * 100


SESSIONS = {f"user{i}": [Session(i)] for i in range(int(sys.argv[1]))}


def truth():
    """{class: (objects, bytes)} of what the collector tracks."""
    gc.collect()
    found = collections.defaultdict(lambda: [0, 0])
    for thing in gc.get_objects():
        kind = type(thing)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        found[name][0] += 1
        found[name][1] += sys.getsizeof(thing)
    return found


print(json.dumps(truth()), flush=True)
gc.collect()
print("ready", flush=True)
sys.stdin.read()
