"""Graphs of shapes that the target plants and says: what memscope answers beside the definitions, taken at their word on what was planted."""

from harness import *

KINDS = ("chain", "fan", "ring", "near", "far", "drawn", "typed", "held")


class Planted:
    """What was planted, and a snapshot of it as a file."""

    def __init__(self):
        self.child = Child([os.path.join(TARGETS, "heap_planted")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.bytes, self.edges, self.roots, gone = {}, collections.defaultdict(set), [], set()
        for line in self.child.process.stdout:
            word, *rest = line.decode().split()
            if word == "planted":
                break
            if word == "node":
                self.bytes[int(rest[0], 16)] = int(rest[1])
            elif word == "edge":
                self.edges[int(rest[0], 16)].add(int(rest[1], 16))
            elif word == "root":
                self.roots.append((rest[0], int(rest[1], 16)))
            elif word == "gone":
                gone.add(int(rest[0], 16))
        self.child.process.stdout.readline()
        for addr in gone:
            del self.bytes[addr]
        self.file = scratch("planted")
        subprocess.run([MEMSCOPE, "heap", "snapshot", "-p", str(self.child.pid), "-o", self.file], timeout=FINISH_SEC, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.reached = self.walk()
        self.dominated = {node: self.reached - self.walk(node) for node in self.reached}

    def walk(self, without=None, names=KINDS):
        """What is reached from the roots of these names."""
        found = {addr for name, addr in self.roots if name in names and addr != without}
        left = list(found)
        while left:
            for to in self.edges[left.pop()] - found - {without}:
                found.add(to)
                left.append(to)
        return found

    def distance(self, name):
        """From the roots of a name to each node."""
        row, at, steps = {addr for root, addr in self.roots if root == name}, {}, 0
        while row:
            at.update({addr: steps for addr in row})
            row = {to for addr in row for to in self.edges[addr]} - set(at)
            steps += 1
        return at

    def retained(self, node):
        return sum(self.bytes[addr] for addr in self.dominated[node])

    def ask(self, question, what):
        done = subprocess.run([MEMSCOPE, "heap", question, self.file, what, "--json", "--top", "100000"], capture_output=True, text=True,
                              timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise Broken(f"memscope heap {question} {what}: status {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def those(self, condition):
        """Of what was planted, the nodes that meet it."""
        return {int(row["address"], 16) for row in self.ask("query", condition)["rows"]} & set(self.bytes)


@once
def planted():
    return Planted()


@fact
def what_no_chain_of_pointers_reaches_is_lost():
    p = planted()
    equal(p.those("lost"), set(p.bytes) - p.reached, "nodes that are lost")
    check(len(p.bytes) - len(p.reached) >= 3 + 1, "what is hidden, and what a freed block refers to, is lost")


@fact
def retained_sizes_are_what_would_be_freed():
    p = planted()
    sizes = sorted(p.retained(node) for node in p.reached)
    for i in range(1, 12):
        least = sizes[len(sizes) * i // 12]
        equal(p.those(f"retained >= {least}") & p.reached, {node for node in p.reached if p.retained(node) >= least},
              f"nodes that retain {least} bytes")


@fact
def dominated_objects_are_those_that_only_chains_through_it_reach():
    p = planted()
    # The beginning of each shape, the node where chains join, and some of the drawn ones.
    ends = [addr for _, addr in p.roots]
    joined = max(p.distance("far"), key=lambda node: (node in p.distance("near"), -p.distance("near").get(node, 0)))
    for node in [*ends[:6], joined, *ends[-3:]]:
        equal(p.those(f"retained_by(address = {node:#x})"), p.dominated[node], f"what {node:#x} retains")


@fact
def the_nearest_variable_keeps_an_object():
    p = planted()
    away = {name: p.distance(name) for name in KINDS}
    shared = [node for node in p.reached if sum(node in at for at in away.values()) > 1]
    check(len(shared) > 30, "nodes that several variables keep")
    for node in (shared[0], shared[len(shared) // 2], shared[-1], *[addr for _, addr in p.roots[:3]]):
        least = min(at[node] for at in away.values() if node in at)
        row, = p.ask("retainers", f"{node:#x}")["retainers"]
        nearest = {f"the variable {name}" for name, at in away.items() if at.get(node) == least}
        check(row["through"].split("+")[0] in nearest, f"{node:#x} is kept through {row['through']}, nearest are {nearest}")


@fact
def a_chain_has_each_type_on_the_shortest_way():
    p = planted()
    bottom, = [node for node, at in p.distance("typed").items() if at == 2]
    row, = p.ask("retainers", f"{bottom:#x}")["retainers"]
    check(row["chain"] in (["top+0", "left+0", "bottom"], ["top+8", "right+0", "bottom"]), f"the chain is {row['chain']}")
    equal(p.those(f"referred_by(address = {bottom:#x})"), set(), "what the last one refers to")
    equal(p.those(f"refers_to(address = {bottom:#x})"), {node for node, at in p.distance("typed").items() if at == 1}, "what refers to it")


@fact
def a_recording_says_what_it_knows_of_live_blocks_and_where_the_rest_is():
    path = scratch("recording")
    os.mkdir(path)
    for name, expected in (("summary.json", "a recording without allocations"), ("heap.pb.gz", f"memscope report {path}/heap.pb.gz")):
        with open(os.path.join(path, name), "wb"):
            pass
        for words in (("census", path, "--by", "site"), ("leaks", path), ("diff", path, planted().file)):
            done = subprocess.run([MEMSCOPE, "heap", *words], capture_output=True, text=True, timeout=FINISH_SEC, stdin=subprocess.DEVNULL,
                                  check=False)
            check(done.returncode == 1 and expected in done.stderr and done.stderr.count("\n") == 1,
                  f"memscope heap {words}: {done.returncode}, {done.stderr!r}")


main()
