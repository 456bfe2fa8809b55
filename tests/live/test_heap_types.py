"""What blocks of native programs are: containers of libstdc++ whose elements the target knows, and a redis with known keys."""

import socket

from harness import *

N, KEYS = 6000, 10000


def ask(*args):
    done = subprocess.run([MEMSCOPE, "heap", *map(str, args), "--json", "--top", "100000"], capture_output=True, text=True,
                          timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Broken(f"memscope heap {' '.join(map(str, args))}: status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def census(pid):
    return {row["type"]: row for row in ask("census", "-p", pid)["types"]}


@once
def containers():
    return Target("heap_containers", N)


@once
def containers_census():
    return census(containers().pid)


@once
def redis():
    """A server with as many keys, each of a value, and nothing else."""
    need("redis-server")
    path = scratch("redis") + ".sock"
    child = Child(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", os.path.dirname(path)],
                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until(lambda: os.path.exists(path), "redis listens")
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(FINISH_SEC)
        s.connect(path)
        for i in range(KEYS):
            s.sendall(f"SET key:{i} value-of-{i}\r\n".encode())
        got = 0
        while got < 5 * KEYS:
            got += len(s.recv(1 << 16))
    return child


@fact
def nodes_and_buffers_of_containers_are_counted():
    found = containers_census()
    for name, count in (("std::map node", 2 * N), ("std::unordered_map node", N), ("std::list node", N), ("std::unordered_map buckets", 1),
                        ("std::deque map", 1), ("std::string buffer", 2 * N), ("std::vector buffer", 2), ("Left", 8), ("Shape[]", 1),
                        ("std::vector buffer of Shape", 1), ("C string", 1)):
        equal(found.get(name, {}).get("objects"), count, f"blocks that are {name}")
    equal(found["std::map node"]["known_by"], "counted", "how nodes are known")
    equal(found["std::string buffer"]["known_by"], "shape", "how strings are known")
    equal(found["Left"]["known_by"], "RTTI", "how objects of classes are known")


@fact
def chunks_of_a_deque_are_those_between_its_ends():
    # A chunk has 64 numbers of 8 bytes; a third of all was taken from the front, whose chunks were freed.
    equal(containers_census()["std::deque chunk"]["objects"], N // 64 - (N // 3) // 64 + 1, "chunks")


@fact
def nearly_all_bytes_of_a_program_of_containers_have_a_type():
    found = containers_census()
    whole = sum(row["bytes"] for row in found.values())
    # What has none is what the C and C++ libraries take for themselves: 72 KiB for exceptions, and buffers of files.
    check(found["(unknown)"]["bytes"] < 100 << 10, f"{found['(unknown)']} of {whole} bytes have no type")


@fact
def entries_and_values_of_redis_are_counted():
    found = census(redis().pid)
    # Those of its commands and configuration come on top, each at most a few hundred.
    for name in ("redis dict entry", "redis string object", "redis string (sds)"):
        count = found.get(name, {}).get("objects", 0)
        check(KEYS <= count < KEYS + 3000, f"blocks that are {name}: {count}")


main()
