/* A run of everything, for the tests of what shows it. */
#ifndef TESTS_SUMMARY_FIXTURE_H
#define TESTS_SUMMARY_FIXTURE_H

#include "analyse/summary.h"

#define MS 1000000LL

static const struct summary_process fixture_processes[] = {
	{ .pid = 4711, .comm = "redis-server", .exe = "/usr/bin/redis-check-rdb",
	  .cmdline = "/usr/bin/redis-server 127.0.0.1:6399" },
};
static const struct summary_source fixture_sources[] = {
	{ "oncpu", SOURCE_OK, NULL },
	{ "offcpu", SOURCE_OK, NULL },
	{ "alloc", SOURCE_NOT_ASKED, NULL },
	{ "trend", SOURCE_UNAVAILABLE, "/proc is mounted with hidepid" },
};
static const struct top_row fixture_self[] = {
	{ .name = "__send", .module = "libc.so.6", .self = 211, .total = 390 },
	{ .name = "dictFind", .module = "redis-server", .self = 90, .total = 95 },
	{ .name = "std::vector<std::pair<std::string, unsigned long>, "
		  "std::allocator<std::pair<std::string, unsigned long> > >::_M_realloc_insert",
	  .module = "libvery-long-name-of-a-library.so.12.3.4", .self = 1, .total = 2 },
};
static const struct top_row fixture_total[] = {
	{ .name = "main", .module = "redis-server", .self = 0, .total = 912 },
	{ .name = "do_syscall_64", .module = "[kernel]", .kind = FRAME_KERNEL, .self = 12, .total = 520 },
};
__attribute__((unused)) static const struct label_row fixture_labels[] = {
	{ .key = "http.route", .values = 120, .samples = 800, .blocked_ns = 90 * MS, .n_top = 2,
	  .top = { { "/cart", 500, 60 * MS }, { "/search\033", 228, 0 } } },
};
static const struct site_row fixture_waits[] = {
	{ .function = "bioProcessBackgroundJobs", .module = "redis-server", .leaf = "futex_wait_queue",
	  .wait = WAIT_LOCK, .value = 30000 * MS, .count = 3 },
	{ .function = "aeProcessEvents", .module = "redis-server", .leaf = "ep_poll",
	  .wait = WAIT_EVENTS, .value = 812 * MS, .count = 40123 },
	{ .function = "", .module = "", .leaf = "worker_thread", .value = 4 * MS, .count = 2 },
};
static const struct lock_row fixture_locks[] = {
	{ .pid = 4711, .lock = 0x5000, .kind = "mutex", .name = "table_lock", .waited_ns = 900 * MS, .waits = 31,
	  .function = "lookup", .module = "redis-server", .known_ns = 800 * MS, .owner = 4712, .owner_ns = 600 * MS,
	  .n_owners = 2, .owner_name = "keeper", .held_ns = 500 * MS, .held_in = "rebuild",
	  .held_module = "redis-server", .held_caller = "", .held_in_ns = 450 * MS, .place = "", .released_in = "rebuild",
	  .released_module = "redis-server", .released_ns = 890 * MS, .released_in_ns = 890 * MS, .releaser = "keeper" },
	{ .pid = 4711, .lock = 0x6000, .kind = "", .name = "", .waited_ns = 90 * MS, .waits = 3, .function = "drop",
	  .module = "redis-server", .owner_name = "", .held_in = "", .held_module = "", .held_caller = "", .place = "[heap]",
	  .released_in = "put", .released_module = "redis-server", .released_ns = 90 * MS, .released_in_ns = 81 * MS, .releaser = "worker" },
	{ .pid = 4711, .lock = 0x7000, .kind = "", .name = "hardly_any", .waited_ns = 1 * MS, .waits = 1,
	  .function = "drop", .module = "redis-server", .owner_name = "", .held_in = "", .held_module = "", .held_caller = "",
	  .place = "", .released_in = "", .released_module = "", .releaser = "" },
};
static const struct syscall_row fixture_syscalls[] = {
	{ 4711, "redis-server", "", "epoll_wait", 200, 0, 2000 * MS, 90 * MS, 0, 1, 100, 0, { { 0 } }, { [10] = 200 } },
	{ 4711, "redis-server", "", "read", 100, 30, 200 * MS, 9 * MS, 0, 0, 0, 1, { { 11, 30 } }, { [3] = 100 } },
};
static const struct count_row fixture_counts[] = {
	{ .function = "ns::parse(char const*)", .profile = "parse", .calls = 1000, .returned = 900, .left = 50, .open = 20, .lost = 10, .ns = 90 * MS,
	  .shortest_ns = 2000, .longest_ns = 3 * MS, .outer = 300, .outer_ns = 60 * MS, .parts = { [10] = 800, [15] = 100 } },
	{ .function = "main.handle", .profile = "handle", .calls = 40, .untimed = "Go moves stacks while their functions run" },
	{ .function = "malloc", .profile = "malloc", .calls = 70000, .returned = 2000, .ns = 4 * MS, .shortest_ns = 1500, .longest_ns = MS, .outer = 2000,
	  .outer_ns = 4 * MS, .parts = { [5] = 2000 }, .counted_s = 2.5, .timed_s = 0.5 },
};
static const struct event_row fixture_events[] = {
	{ .event = "page-faults", .part = "", .profile = "page-faults", .unit = "count", .count = 5000, .samples = 1000,
	  .on_stacks = 4900, .on_stacks_error = 120, .one_in = 8, .missed = 7, .function = "rebuild", .module = "redis-server",
	  .function_value = 2450 },
	{ .event = "cycles", .part = "", .profile = "cycles", .unit = "count", .one_in = 1, .function = "", .module = "",
	  .why = "this machine has no PMU" },
};
static const struct waker_row fixture_wakers[] = {
	{ .wait = { .function = "lookup", .module = "redis-server", .comm = "", .leaf = "futex_wait_queue", .wait = WAIT_LOCK,
		    .value = 890 * MS, .count = 31 },
	  .waker = "keeper", .by = "rebuild", .by_module = "redis-server" },
	{ .wait = { .function = "", .module = "", .comm = "", .leaf = "ep_poll", .wait = WAIT_EVENTS, .value = 400 * MS,
		    .count = 4 },
	  .waker = "redis-benchmark", .by = "tcp_sendmsg", .by_module = "[kernel]" },
};
static const struct io_wait_row fixture_io[] = {
	{ .kind = "file", .name = "/var/lib/data.aof", .device = "sda1", .blocked_ns = 500 * MS, .count = 90, .function = "flush",
	  .module = "redis-server", .function_ns = 500 * MS },
	{ .kind = "peer", .name = "10.0.0.3:5432", .device = "", .blocked_ns = 400 * MS, .count = 9, .function = "",
	  .module = "", .function_ns = 400 * MS },
};
static const struct run_delay_row fixture_delays[] = {
	{ .pid = 4711, .by_pid = 99, .comm = "redis-server", .container = "", .by_comm = "stress", .by_container = "batch",
	  .ns = 700 * MS, .count = 80 },
	{ .pid = 4711, .by_pid = 4711, .comm = "redis-server", .container = "", .by_comm = "redis-server", .by_container = "",
	  .own = true, .ns = 200 * MS, .count = 9 },
	{ .pid = 4711, .by_pid = 0, .comm = "redis-server", .container = "", .by_comm = "kworker", .by_container = "",
	  .ns = 1 * MS, .count = 9 },
};
__attribute__((unused)) static const struct goroutine_row fixture_goroutines[] = {
	{ .at = { .function = "main.bookSeat", .module = "app", .comm = "", .leaf = "semacquire", .wait = WAIT_LOCK,
		  .role = WAIT_ROLE_MUTEX, .value = 1500 * MS, .count = 900 },
	  .reason = "semacquire", .peer = "", .lock = "a sync.Mutex", .own = true, .waits = true, .now = 5, .longest_ns = 30 * MS },
	{ .at = { .function = "main.ask", .module = "app", .comm = "", .leaf = "IO wait", .wait = WAIT_SOCKET, .value = 700 * MS,
		  .count = 70 },
	  .reason = "IO wait", .peer = "10.0.0.3:5432", .lock = "", .own = true, .waits = true, .now = 1 },
	{ .at = { .function = "main.bookSeat", .module = "app", .comm = "", .leaf = "sleep", .wait = WAIT_TIMER, .value = 900 * MS },
	  .reason = "sleep", .peer = "", .lock = "", .own = true, .waits = true, .now = 1 },
};
static const struct site_row fixture_sites[] = {
	{ .function = "createStringObject", .module = "redis-server", .leaf = "malloc",
	  .value = 700 << 20, .count = 7000000 },
	{ .function = "sdsnewlen", .module = "redis-server", .leaf = "malloc", .value = 1 << 20,
	  .count = 900 },
};
static const struct site_row fixture_live_sites[] = {
	{ .function = "createStringObject", .module = "redis-server", .leaf = "malloc",
	  .value = 90 << 20, .count = 70000 },
};
static const struct summary_stacks fixture_stacks[] = {
	{ .source = "oncpu", .guessed = 900, .truncated = 12 },
	{ .source = "offcpu", .complete = 1, .guessed = 40000, .unreadable = 20, .lost = 104 },
};
static const struct summary_drop fixture_drops[] = {
	{ "stack_full", "stacks not stored because the stack map was full", 104 },
	{ "total_full", "samples not counted because the totals map was full", 0 },
};
static const char *const fixture_files[] = { "oncpu.pb.gz", "oncpu.folded", "oncpu.svg", "offcpu.pb.gz",
					     "offcpu.folded", "offcpu.svg", "alloc.pb.gz", "alloc.folded",
					     "alloc.svg", "trend.csv", "summary.txt", "report.html" };
static const char *const fixture_notes[] = {
	"Hardware cycles are not available on this machine, so samples come from the cpu-clock timer "
	"and land a little late in code that runs with interrupts off.",
};

static const struct summary_endpoint fixture_endpoints[] = { { "10.0.0.3:5432", true, 3 }, { "/var/lib/aof", false, 2 } };

static const struct summary_peer fixture_peers[] = { { "10.0.0.3:5432", 38, 36, 40, 41.5, 120, 20 } };

static const struct summary_push_store fixture_stores[] = {
	{ .store = "pyroscope at https://store.example", .spooled = 1304, .pushed = 1300, .pushed_bytes = 3 << 20, .retries = 2,
	  .waiting = 1, .waiting_bytes = 4096, .cpu_ns = 31 * MS, .dropped = { { "refused", 2 }, { "over_limit", 1 } }, .n_dropped = 2 },
	{ .store = "otlp at http://127.0.0.1:4318", .spooled = 7, .pushed = 7, .pushed_bytes = 900, .failing_since_ns = 5,
	  .dropped = { { "refused", 0 }, { "over_limit", 0 } }, .n_dropped = 2 },
};

static const struct task_row fixture_tasks[] = {
	{ "fetch_price (app.py)", 33, "StreamReader._wait_for_data (streams.py)", TASK_WAIT_SOCKET, 210, 98, 60, 120 * 1000000LL },
};

static struct run_summary fixture_summary(void)
{
	struct run_summary s = {
		.version = "0.1.0",
		.start_ns = 1763716800LL * 1000000000,
		.duration_ns = 10000 * MS,
		.end = RUN_END_SIGNAL,
		.end_detail = "SIGINT",
		.target = RUN_PROCESSES,
		.processes = fixture_processes,
		.n_processes = 1,
		.seen_processes = 1,
		.seen_threads = 5,
		.n_cpus = 4,
		.sources = fixture_sources,
		.n_sources = 4,
		.offcpu.waits = fixture_waits,
		.offcpu.n_waits = 3,
		.monitors = { .waits = 200, .unowned = 12, .held = 150, .owner = "keeper", .tid = 4719 },
		.endpoints.rows = fixture_endpoints,
		.endpoints.n = 2,
		.peers = { fixture_peers, 1, 400, 37, 36, 74, 8080, 0, 2 },
		.tasks = { fixture_tasks, 1, 100, 400, 90, 3, 0, false },
		.locks = { fixture_locks, 3 },
		.io_waits = { fixture_io, 2 },
		.syscalls = { true, fixture_syscalls, 2, fixture_syscalls, 2, { 300, 30, 2200 * MS, 1, 2, 3, 0, 8, 16, 100 } },
		.events = { .known = true, .rows = (struct event_row *)fixture_events, .n = 2, .missed_tracepoints = 6 },
		.counts = { true, fixture_counts, 3 },
		.run_delays = { true, fixture_delays, 3, { 1000 * MS, 200 * MS, 50 * MS, 40 * MS, 9 * MS } },
		.push = { fixture_stores, 2 },
		.wakers = { true, fixture_wakers, 2, { 2000 * MS, 600 * MS, 20 * MS, 400 * MS } },
		.stacks = fixture_stacks,
		.n_stacks = 2,
		.drops = fixture_drops,
		.n_drops = 2,
		.own.cpu_ns = 120 * MS,
		.own.rss_kb = 24 * 1024,
		.own.map_bytes = 40 << 20,
		.cost = { true,
			  1000 * MS,
			  207 * MS,
			  206 * MS,
			  5,
			  { { "on-CPU", 990, 3900, 3000, 7 * MS },
			    { "allocations", 150000, 853, 480, 200 * MS } },
			  2 },
		.dir = "memscope-redis-server-4711-20251121-093012",
		.files = fixture_files,
		.n_files = sizeof(fixture_files) / sizeof(fixture_files[0]),
		.notes = fixture_notes,
		.n_notes = 1,
	};

	s.incomplete[0] = (struct summary_incomplete){ "/usr/lib/libjit.so.1", "guessed", 40000 };
	s.incomplete[1] = (struct summary_incomplete){ "/usr/lib/libonce.so.1", "unreadable", 1 };
	s.n_incomplete = 2;
	s.time.known = true;
	s.time.wall_ns = 50000 * MS;
	s.time.oncpu_ns = 9120 * MS;
	s.time.blocked_ns = 40300 * MS;
	s.time.runnable_ns = 520 * MS;
	s.oncpu.samples = 912;
	s.oncpu.hz = 99;
	s.oncpu.event = "cpu-clock";
	s.oncpu.by_self = fixture_self;
	s.oncpu.n_self = 3;
	s.oncpu.by_total = fixture_total;
	s.oncpu.n_total = 2;
	s.alloc = (struct summary_alloc){
		.tier = ALLOC_TIER_EXACT,
		.calls_per_s = 12345,
		.cost_percent = 1.2,
		.covered_from_ns = 20 * MS,
		.covered_to_ns = 10000 * MS,
		.objects = 7000900,
		.bytes = 701 << 20,
		.freed_objects = 6930900,
		.freed_bytes = 611 << 20,
		.live_objects = 70000,
		.live_bytes = 90 << 20,
		.earlier_frees = 1200,
		.untracked = 3,
		.sites = fixture_sites,
		.n_sites = 2,
		.live_sites = fixture_live_sites,
		.n_live_sites = 1,
	};
	s.rss.known = true;
	s.rss.first_kb = 100 * 1024;
	s.rss.last_kb = 190 * 1024;
	s.rss.peak_kb = 200 * 1024;
	s.memory = (struct trend_rise){ true, false, 80 * 1024, 170 * 1024, 180 * 1024 };
	s.shape = (struct trend_shape){
		.kind = TREND_SHAPE_GROWING, .since_s = 10,
		.all = { .n = 60, .slope = 1500 },
		.tail = { .n = 50, .slope = 1536, .slope_low = 1024, .slope_high = 2048 },
	};
	s.plain = plain_verdict(100 * 1024, 190 * 1024);
	s.langs = (struct summary_langs){ .processes = 2, .name = "CPython 3.11.2", .unreadable = 1,
					  .trouble = "CPython 3.99 is newer than what memscope knows", .named = 1234,
					  .gone = 3, .damaged = 1, .native = 6, .lost = 5, .misplaced = 7, .left_out = 2 };
	s.symbols = (struct summary_symbols){ .locations = 1300, .named = 1260, .ranges = 30, .offset_only = 10,
					      .n_worst = 1 };
	s.symbols.worst[0].module = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
	s.symbols.worst[0].locations = 40;
	s.symbols.worst[0].reason = "no symbol table";
	s.symbols.worst[0].package = "libjemalloc2-dbgsym";
	return s;
}

#endif
