"""Sessions that a known line makes: as many as argv[1] says, once it is asked to by a line; then it waits."""

import sys


class Session:
    def __init__(self, number):
        self.number = number
        self.items = [number] * 4


SESSIONS = []


def make_session(number):
    SESSIONS.append(Session(number))  # the line


print("ready", flush=True)
sys.stdin.readline()
for i in range(int(sys.argv[1])):
    make_session(i)
print("done", flush=True)
sys.stdin.readline()
