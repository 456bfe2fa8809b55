"""Exact allocations of targets that are hard to count: what is shown and what is said to be lost is
what happened, by the target's own count in shared memory, which outlives it."""

import glob
import re
import time

from harness import *
from truth import *


def note(run, pattern):
    found = [re.search(pattern, x) for x in run.summary()["notes"]]
    return next((m for m in found if m), None)


def in_heap(run, function=None, **labels):
    """Calls, bytes, live calls and live bytes of what was allocated in the run."""
    heap = run.profile("heap")
    return [heap.sum(t, function, **labels) - heap.sum(t, "[before attach]", **labels) * (not function) for t in HEAP]


def check_counts(run, truth, function="hard_malloc", **labels):
    """Calls and bytes, and what is live of them, by `function` (None: all there is)."""
    equal(in_heap(run, function, **labels),
          [truth.done, truth.done_bytes, truth.done - truth.frees, truth.done_bytes - truth.freed_bytes],
          "calls, bytes, live calls, live bytes")


@fact
def more_stacks_than_there_is_room_for_are_counted():
    truth, n = Truth(), 12000
    run, _ = record(("-p", truth.target.pid, *EXACT, "--mem", 16), lambda: truth.ask("stacks", n), status=3)
    equal(truth.done, n, "the target's calls")
    check_counts(run, truth, None)
    # What has no place of its own is with its process; and the ring is small for a busy machine.
    told, lost = run.profile("alloc").sum(ALLOC[0], "hard_malloc"), run.lost()
    full, torn = lost.get("alloc_sites_full", 0), lost.get("stacks_never_arrived", 0)
    check(full > 0 and note(run, "table of allocation sites was full"), f"there was room for all: {lost}")
    equal(told + full + torn, n, "calls with their stack, and those said to have none")


@fact
def every_call_of_two_thousand_short_threads_is_counted():
    truth = Truth()
    run, _ = record(("-p", truth.target.pid, *EXACT), lambda: truth.ask("threads", 2000, 20))
    equal(truth.done, 40000, "the target's calls")
    check_counts(run, truth)
    equal(run.lost(), {}, "lost")


@fact
def every_call_of_eight_threads_at_once_is_counted():
    target = Target("alloc_flat", 8)
    run, lines = record(("-p", target.pid, *EXACT), lambda: dict(target.ask("go 20000")))
    p = run.profile("alloc")
    equal([p.sum(t, pid=target.pid) for t in ALLOC], [lines["pairs"], lines["bytes"]], "calls and bytes")
    equal(in_heap(run, pid=target.pid)[2:], [0, 0], "live")


@fact
def a_fork_copies_no_blocks_and_the_summary_says_so():
    truth = Truth()
    run, _ = record(("-p", truth.target.pid, *EXACT, "--alloc-scope=file"),
                    lambda: truth.ask("children", 100, 40))
    # Of 40 blocks each: those of the parent, of 100 children, and of the 50 that became another
    # image, with 100.
    equal((truth.children, truth.execs, truth.done), (100, 50, 40 + 100 * 40 + 50 * 100), "the target's counts")
    # Of all processes; some die too soon to be asked for the names of their frames.
    equal([run.profile("alloc").sum(t) for t in ALLOC], [truth.done, truth.done_bytes], "calls and bytes of all")
    equal(in_heap(run, pid=truth.target.pid)[0::2], [40, 0],
          "the parent's calls, and those of its blocks that are live though its children freed their copies")
    equal(in_heap(run)[2:], [0, 0], "live of all: children's went with them")
    equal(run.summary()["alloc"]["inherited_frees"], truth.inherited, "frees of what was inherited")
    check(note(run, "a fork copies no live blocks"), f"no sentence about forks: {run.summary()['notes']}")


@fact
def children_that_end_before_they_are_probed_are_said_to_be_missing():
    truth = Truth()
    run, _ = record(("-p", truth.target.pid, *EXACT), lambda: truth.ask("children", 100, 40))
    equal(in_heap(run, pid=truth.target.pid)[0::2], [40, 0], "the parent's calls, and its live blocks")
    said = note(run, r"of (\d+) forked children, (\d+) ran .* and (\d+) ended before.*--alloc-scope=file")
    if check(said, f"no sentence about the gap: {run.summary()['notes']}"):
        forked, late, ended = map(int, said.groups())
        equal(forked, 100, "forked children")
        check(0 < late + ended <= 100, f"{late} late, {ended} ended: of 100")
    within(run.profile("alloc").sum(ALLOC[0]), 40, truth.done, "calls that were seen")


@fact
def what_a_process_killed_by_9_did_is_counted_to_its_last_call():
    truth = Truth()
    run = Run("-p", truth.target.pid, *EXACT)
    run.ready()
    truth.target.say(truth.command("forever", 8))
    until(lambda: truth.done > 10000, "10,000 calls of the target", FINISH_SEC)
    truth.target.process.kill()
    run.finish()
    run.must()
    calls, size, live, live_size = in_heap(run, "hard_malloc", pid=truth.target.pid)
    # Each thread was somewhere between its two counts.
    within(calls, truth.done, truth.begun, "calls")
    within(size, truth.done_bytes, truth.begun_bytes, "bytes")
    within(calls - live, truth.frees, truth.frees_begun, "frees")
    check(live <= 8 * 64 and 0 < live_size <= 8 * 64 * 128, f"live at its end: {live} blocks, {live_size} bytes")
    equal(run.lost(), {}, "lost")


@fact
def a_process_that_ends_by_itself_leaves_its_final_picture():
    truth, n = Truth(), 60000
    run = Run("-p", truth.target.pid, *EXACT)
    run.ready()
    truth.target.say(truth.command("once", n))
    run.finish()
    run.must()
    equal(truth.done, n, "the target's calls")
    check_counts(run, truth)


@fact
def a_full_table_of_live_blocks_is_counted_and_says_what_it_needs():
    truth, n = Truth(), 100000
    run, _ = record(("-p", truth.target.pid, *EXACT, "--mem", 16), lambda: truth.ask("live", n), status=3)
    a = run.summary()["alloc"]
    equal([run.profile("alloc").sum(t) for t in ALLOC], [n, 24 * n], "calls and bytes in alloc")
    check(a["untracked"] > 0, "the table was not full")
    equal(a["live_objects"] + a["untracked"], n, "live blocks, and those that had no room")
    said = note(run, r"table of live blocks was full.*--mem=(\d+) would")
    if check(said, f"no sentence about it: {run.summary()['notes']}"):
        truth = Truth()
        again, _ = record(("-p", truth.target.pid, *EXACT, "--mem", said.group(1)), lambda: truth.ask("live", n))
        check_counts(again, truth)


# --- calls that do not return the way they came -------------------------------------------------

def attach_and_detach(target, times, *args):
    """Runs that begin and end while it works; false: it did not live."""
    for i in range(times):
        run = Run("-p", target.pid, *args, "-q")
        time.sleep(0.02 * (i % 10))
        run.send(signal.SIGINT)
        run.finish()
        check(run.status in (0, 3, -signal.SIGINT, 1), f"run {i}: exit status {run.status}")
        if not check(target.alive(), f"the target died in run {i}: {target.how_it_ended()}"):
            return False
    return True


@fact
def a_program_that_throws_jumps_and_changes_stacks_is_counted():
    target = Target("alloc_jumps")
    run, lines = record(("-p", target.pid, *EXACT),
                        lambda: (target.ask("go"), has_worked(target.pid, 0.3, seconds=0.8), target.ask("stop"))[2])
    site, told = lines[0][2:], dict(lines[1:])
    check(min(told[x] for x in ("frames", "throws", "jumps", "switches")) > 20, f"not all of it happened: {told}")
    equal(told["caught"], told["throws"], "exceptions caught")
    heap = run.profile("heap")
    equal([heap.sum(t, "jump_alloc", pid=target.pid) for t in HEAP], site, "calls, bytes, live")
    equal(heap.sum(ALLOC[0], "__cxa_allocate_exception", pid=target.pid), told["throws"], "exceptions allocated")
    equal(heap.sum(HEAP[2], "__cxa_allocate_exception", pid=target.pid), 0, "exceptions live")
    equal(run.summary()["alloc"]["earlier_frees"], 0, "frees of unknown blocks")


@fact
def a_program_that_throws_jumps_and_changes_stacks_survives_many_runs():
    target = Target("alloc_jumps")
    target.ask("go")
    if attach_and_detach(target, 6, *EXACT):
        told = dict(target.ask("stop")[1:])
        equal(told["caught"], told["throws"], "exceptions caught")
        check(told["rounds"] > 0, "it made no round")
        text_is_as_its_files(target.pid)


class Spoken(Target):
    """A program that speaks a target's language, and ends with status 7 when its input does."""

    def __init__(self, argv):
        Child.__init__(self, argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._line("ready", READY_SEC)

    def status(self):
        self.process.stdin.close()
        return self.process.wait(FINISH_SEC)


def built(name, command):
    out = subprocess.run(command, capture_output=True, check=False, cwd=TOP,
                         env={**os.environ, "GOCACHE": os.path.join(BUILD, "go-cache"), "GO111MODULE": "off",
                              "GOFLAGS": ""})
    if out.returncode:
        skip(f"{name} does not compile here: {out.stderr.decode(errors='replace')[-200:]}")


def busy_through_runs(target, times, *args):
    """It works all the while; true when it lived."""
    stop = threading.Event()

    def drive():
        while not stop.is_set():
            target.ask("go")
    driver = threading.Thread(target=drive)
    driver.start()
    lived = attach_and_detach(target, times, *args)
    stop.set()
    driver.join(60)
    return lived


@fact
def goroutines_that_allocate_in_c_are_counted_and_survive():
    need("go", "gcc")
    program = scratch("go_mallocs")
    built("go_mallocs.go", [tool("go"), "build", "-o", program, "tests/targets/go_mallocs.go"])
    target = Spoken([program])
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("go"))
    equal([run.profile("heap").sum(t, "go_malloc", pid=target.pid) for t in HEAP], lines[0][2:],
          "calls, bytes, live")
    if busy_through_runs(target, 3, *EXACT):
        equal(target.status(), 7, "its exit status")


GREENLETS = """
import sys
from greenlet import greenlet
def worker(n):
    while True:
        kept = [bytearray(1000 + n * 10 + i) for i in range(20)]
        main.switch(sum(map(len, kept)))
main = greenlet.getcurrent()
workers = [greenlet(worker) for _ in range(8)]
print("ready", flush=True)
for line in sys.stdin:
    got = [g.switch(n) for _ in range(100) for n, g in enumerate(workers)]
    print("right" if sum(got) == 100 * sum(20 * (1000 + n * 10) + 190 for n in [0] + list(range(1, 8))) else "wrong")
    print("end", flush=True)
sys.exit(7)
"""


@fact
def greenlets_of_python_survive():
    python = "/usr/bin/python3"
    if not os.path.exists(python) or subprocess.run([python, "-c", "import greenlet"], check=False, **QUIET).returncode:
        skip("python3-greenlet is not installed")
    target = Spoken([python, "-c", GREENLETS])
    equal(target.ask("go"), [["right"]], "what it computes")
    if busy_through_runs(target, 3, *EXACT):
        equal(target.ask("go"), [["right"]], "what it computes after the runs")
        equal(target.status(), 7, "its exit status")


FIBERS = """
#include <boost/context/fiber.hpp>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <vector>
namespace ctx = boost::context;
static unsigned long calls, bytes, live_calls, live_bytes;
extern "C" __attribute__((noinline)) void *fiber_malloc(size_t n)
{
	void *p = malloc(n);
	__asm__ volatile("" : "+r"(p));
	calls++, bytes += n, live_calls++, live_bytes += n;
	return p;
}
int main()
{
	char line[64];
	printf("ready\\n"), fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		std::vector<ctx::fiber> all;
		for (size_t k = 0; k < 6; k++)
			all.emplace_back([k](ctx::fiber &&back) {
				for (size_t i = 0; i < 300; i++) {
					void *p = fiber_malloc(50 + k);
					back = std::move(back).resume();
					if (i % 3) free(p), live_calls--, live_bytes -= 50 + k;
				}
				return std::move(back);
			});
		for (bool any = true; any;) {
			any = false;
			for (auto &f : all)
				if (f) f = std::move(f).resume(), any = true;
		}
		printf("site fiber_malloc %lu %lu %lu %lu\\nend\\n", calls, bytes, live_calls, live_bytes);
		fflush(stdout);
	}
	return 7;
}
"""


@fact
def fibers_of_boost_are_counted_and_survive():
    if not glob.glob("/usr/include/boost/context/fiber.hpp") or not tool("g++"):
        skip("libboost-context-dev is not installed")
    source, program = scratch("fibers") + ".cc", scratch("fibers-program")
    with open(source, "w", encoding="ascii") as f:
        f.write(FIBERS)
    built("the program with fibers", ["g++", "-O1", "-g", "-fno-omit-frame-pointer", "-o", program, source,
                                      "-lboost_context"])
    target = Spoken([program])
    run, lines = record(("-p", target.pid, *EXACT), lambda: target.ask("go"))
    equal([run.profile("heap").sum(t, "fiber_malloc", pid=target.pid) for t in HEAP], lines[0][2:],
          "calls, bytes, live")
    if busy_through_runs(target, 3, *EXACT):
        equal(target.status(), 7, "its exit status")


@fact
def an_exception_that_an_own_operator_new_throws_is_counted():
    library = next(iter(glob.glob("/usr/lib/*/libjemalloc.so.2")), None) or skip("libjemalloc is not installed")
    os.environ["LD_PRELOAD"] = library
    try:
        target = Target("bad_alloc")
    finally:
        del os.environ["LD_PRELOAD"]
    run, told = record(("-p", target.pid, *EXACT),
                       lambda: (target.ask("go"), has_worked(target.pid, 0.1), dict(target.ask("stop")))[2])
    # Those that are to return NULL throw nothing in this one.
    equal(run.profile("alloc").sum(ALLOC[0], pid=target.pid), told["ok"] + told["caught"],
          "allocations: those meant to succeed, and an exception for each throw")
    equal(run.summary()["alloc"]["earlier_frees"], 0, "frees of unknown blocks")


main()
