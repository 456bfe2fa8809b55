"""One thread computes with the GIL, and lets it go only when others ask; two others want it a thousand times a second.

    py_gil.py      prints "ready PID TID": of the thread that computes
"""

import os
import threading
import time


def crunch():
    n = 0
    while True:
        n = n * 3 + 1 & 0xffff


def serve():
    while True:
        sum(range(20))
        time.sleep(0.001)


started = threading.Event()


def cruncher():
    global tid
    tid = threading.get_native_id()
    started.set()
    crunch()


tid = 0
threading.Thread(target=cruncher, daemon=True).start()
started.wait()
for _ in range(2):
    threading.Thread(target=serve, daemon=True).start()
print("ready", os.getpid(), tid, flush=True)
try:
    os.read(0, 1)
except KeyboardInterrupt:
    pass
