#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "render/summary/summary_json.h"
#include "summary_fixture.h"

static cJSON *json_of(const struct run_summary *s)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	cJSON *root;
	size_t len;

	assert_int_equal(sink_open_memory(&out, NULL), 0);
	assert_int_equal(summary_json_write(s, out, NULL), 0);
	root = cJSON_Parse(sink_memory(out, &len));
	assert_non_null(root);
	return root;
}

/* "time.oncpu_ns", "drops.0.name" */
static cJSON *at(cJSON *item, const char *path)
{
	char part[64];

	while (*path) {
		size_t len = strcspn(path, ".");

		snprintf(part, sizeof(part), "%.*s", (int)len, path);
		item = cJSON_IsArray(item) ? cJSON_GetArrayItem(item, atoi(part))
					   : cJSON_GetObjectItemCaseSensitive(item, part);
		if (!item)
			fail_msg("no %s", path);
		path += len + (path[len] == '.');
	}
	return item;
}

#define assert_number(root, path, n)   assert_true(at(root, path)->valuedouble == (double)(n))
#define assert_text(root, path, value) assert_string_equal(at(root, path)->valuestring, value)

static void keys_are_those_of_the_header(void **state)
{
	static const struct top_row get = { .name = "Handler.get (app.py)",
					    .module = "[Python]",
					    .self = 3 };
	struct run_summary s = fixture_summary();
	cJSON *root;

	s.oncpu.interpreted = &get;
	s.oncpu.n_interpreted = 1;
	s.goroutines.processes = 1;
	s.goroutines.version = "Go 1.19.8";
	s.goroutines.rows = fixture_goroutines;
	s.goroutines.n_rows = 3;
	s.program_labels = fixture_labels;
	s.n_program_labels = 1;
	root = json_of(&s);

	assert_text(root, "version", "0.1.0");
	assert_number(root, "duration_ns", 10000 * MS);
	assert_text(root, "end", "signal");
	assert_text(root, "target.kind", "processes");
	assert_number(root, "target.processes.0.pid", 4711);
	assert_number(root, "target.seen_threads", 5);
	assert_true(cJSON_IsNull(at(root, "child")));
	assert_text(root, "sources.oncpu.state", "ok");
	assert_text(root, "sources.alloc.state", "off");
	assert_text(root, "sources.trend.why", "/proc is mounted with hidepid");
	assert_number(root, "time.oncpu_ns", 9120 * MS);
	assert_number(root, "time.blocked_ns", 40300 * MS);
	assert_number(root, "time.runnable_ns", 520 * MS);
	assert_number(root, "time.wall_ns", 50000 * MS);
	assert_number(root, "time.residual_ns", 60 * MS);
	assert_number(root, "oncpu.samples", 912);
	assert_number(root, "oncpu.hz", 99);
	assert_true(cJSON_IsTrue(at(root, "oncpu.few_samples")));
	assert_text(root, "oncpu.top_self.1.function", "dictFind");
	assert_number(root, "oncpu.top_total.0.total", 912);
	assert_text(root, "oncpu.top_interpreted.0.function", "Handler.get (app.py)");
	assert_text(root, "program_labels.0.key", "http.route");
	assert_number(root, "program_labels.0.values", 120);
	assert_number(root, "program_labels.0.samples", 800);
	assert_number(root, "program_labels.0.top.0.blocked_ns", 60 * MS);
	assert_text(root, "program_labels.0.top.0.value", "/cart");
	assert_text(root, "offcpu.waits.0.kind", "lock");
	assert_text(root, "offcpu.waits.1.kernel", "ep_poll");
	assert_text(root, "offcpu.monitors.owner", "keeper");
	assert_number(root, "offcpu.monitors.held", 150);
	assert_number(root, "offcpu.waits.1.blocked_ns", 812 * MS);
	assert_text(root, "offcpu.endpoints.0.name", "10.0.0.3:5432");
	assert_text(root, "offcpu.endpoints.0.kind", "peer");
	assert_number(root, "offcpu.endpoints.1.seen", 2);
	assert_text(root, "goroutines.runtime", "Go 1.19.8");
	assert_text(root, "goroutines.rows.0.role", "mutex");
	assert_number(root, "goroutines.rows.0.time_ns", 1500 * MS);
	assert_text(root, "goroutines.rows.1.peer", "10.0.0.3:5432");
	assert_number(root, "offcpu.requests.looks", 400);
	assert_number(root, "offcpu.requests.held", 36);
	assert_text(root, "offcpu.requests.peers.0.name", "10.0.0.3:5432");
	assert_number(root, "offcpu.requests.peers.0.oldest_ms", 120);
	assert_text(root, "offcpu.tasks.waits.0.function", "fetch_price (app.py)");
	assert_text(root, "offcpu.tasks.waits.0.kind", "socket");
	assert_number(root, "offcpu.tasks.ready", 90);
	assert_text(root, "locks.0.name", "table_lock");
	assert_number(root, "locks.0.owner", 4712);
	assert_number(root, "locks.0.owner_ns", 600 * MS);
	assert_text(root, "locks.0.held_in", "rebuild");
	assert_number(root, "locks.1.address", 0x6000);
	assert_number(root, "locks.1.owner", 0);
	assert_text(root, "locks.1.place", "[heap]");
	assert_text(root, "locks.1.released_in", "put");
	assert_number(root, "locks.1.released_in_ns", 81 * MS);
	assert_number(root, "wakers.interrupts_ns", 600 * MS);
	assert_number(root, "syscalls.calls_error", 20);
	assert_text(root, "syscalls.by_call.1.errnos.0.name", "EAGAIN");
	assert_number(root, "syscalls.rows.0.pid", 4711);
	assert_number(root, "events.missed_tracepoints", 6);
	assert_number(root, "events.rows.0.on_stacks_error", 120);
	assert_text(root, "events.rows.1.why", "this machine has no PMU");
	assert_number(root, "counts.0.outermost_ns", 60 * MS);
	assert_number(root, "counts.0.p50_ns", 131072);
	assert_number(root, "counts.0.histogram.1.from_ns", 64 << 15);
	assert_text(root, "counts.1.untimed", "Go moves stacks while their functions run");
	assert_number(root, "run_queue.idle_ns", 50 * MS);
	assert_text(root, "io_waits.0.device", "sda1");
	assert_number(root, "io_waits.1.blocked_ns", 400 * MS);
	assert_text(root, "run_queue.rows.0.ran_container", "batch");
	assert_number(root, "run_queue.rows.2.ran_pid", 0);
	assert_text(root, "wakers.rows.0.waker_function", "rebuild");
	assert_number(root, "wakers.rows.1.wakeups", 4);
	assert_text(root, "alloc.tier", "exact");
	assert_number(root, "alloc.objects", 7000900);
	assert_number(root, "alloc.bytes", 701 << 20);
	assert_number(root, "alloc.live_objects", 70000);
	assert_number(root, "alloc.live_bytes", 90 << 20);
	assert_number(root, "alloc.untracked", 3);
	assert_number(root, "alloc.sites.0.bytes", 700 << 20);
	assert_text(root, "alloc.live_sites.0.function", "createStringObject");
	assert_number(root, "rss.peak_kb", 200 * 1024);
	assert_number(root, "memory.base_kb", 80 * 1024);
	assert_number(root, "memory.last_kb", 170 * 1024);
	assert_number(root, "stacks.1.lost", 104);
	assert_text(root, "symbols.worst.0.reason", "no symbol table");
	assert_text(root, "symbols.worst.0.debug_package", "libjemalloc2-dbgsym");
	assert_text(root, "drops.0.name", "stack_full");
	assert_number(root, "drops.0.count", 104);
	assert_number(root, "drops.1.count", 0);
	assert_text(root, "drops.1.help", "samples not counted because the totals map was full");
	assert_number(root, "memscope.rss_kb", 24 * 1024);
	assert_text(root, "push.0.store", "pyroscope at https://store.example");
	assert_number(root, "push.0.spooled", 1304);
	assert_number(root, "push.0.pushed_bytes", 3 << 20);
	assert_number(root, "push.0.retries", 2);
	assert_number(root, "push.0.waiting_bytes", 4096);
	assert_number(root, "push.0.cpu_ns", 31 * MS);
	assert_number(root, "push.0.dropped.over_limit", 1);
	assert_number(root, "push.1.failing_since_ns", 5);
	assert_number(root, "cost.ns", 207000000);
	assert_number(root, "cost.profiled_ns", 206000000);
	assert_number(root, "cost.limit_percent", 5);
	assert_text(root, "cost.sources.1.name", "allocations");
	assert_number(root, "cost.sources.1.events", 150000);
	assert_number(root, "cost.sources.1.percent", 2);
	assert_text(root, "files.10", "summary.txt");
	assert_text(root, "verdict.kind", "cpu-bound");
	assert_non_null(strstr(at(root, "verdict.next")->valuestring, "912 samples are few"));
	cJSON_Delete(root);
}

static void unwind_tables_are_there_where_they_were_used(void **state)
{
	struct run_summary s = fixture_summary();
	cJSON *root = json_of(&s);

	assert_null(cJSON_GetObjectItem(root, "unwind"));
	cJSON_Delete(root);
	s.unwind.known = true;
	s.unwind.files = 19;
	s.unwind.evicted = 2;
	s.unwind.trouble = "/x: no executable segment";
	root = json_of(&s);
	assert_number(root, "unwind.files", 19);
	assert_number(root, "unwind.evicted", 2);
	assert_text(root, "unwind.trouble", "/x: no executable segment");
	cJSON_Delete(root);
}

static void start_is_rfc_3339_with_its_offset(void **state)
{
	struct run_summary s = fixture_summary();
	cJSON *root;

	setenv("TZ", "IST-5:30", 1);
	tzset();
	root = json_of(&s);
	assert_text(root, "start", "2025-11-21T14:50:00+05:30");
	cJSON_Delete(root);
	unsetenv("TZ");
	tzset();
}

static void large_counts_keep_every_digit(void **state)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct run_summary s = fixture_summary();
	size_t len;

	s.alloc.bytes = 9007199254740993; /* 2^53 + 1: no double holds it */
	assert_int_equal(sink_open_memory(&out, NULL), 0);
	assert_int_equal(summary_json_write(&s, out, NULL), 0);
	assert_non_null(strstr(sink_memory(out, &len), "9007199254740993"));
}

static void growth_has_its_kinds_and_its_check(void **state)
{
	static const struct site_row site = {
		.function = "fill", .module = "x", .leaf = "", .comm = "", .value = 4096
	};
	struct run_summary s = fixture_summary();
	cJSON *root = json_of(&s);

	assert_true(cJSON_IsNull(at(root, "growth")));
	cJSON_Delete(root);
	s.growth.known = true;
	s.growth.resident_bytes[MEMORY_SHARED] = 8192;
	s.growth.returned_bytes[MEMORY_ANON] = 4096;
	s.growth.sites = &site;
	s.growth.n_sites = 1;
	root = json_of(&s);
	assert_number(root, "growth.resident.shared_bytes", 8192);
	assert_number(root, "growth.resident.file_bytes", 0);
	assert_number(root, "growth.released.anonymous_bytes", 4096);
	assert_text(root, "growth.sites.0.function", "fill");
	assert_true(cJSON_IsNull(at(root, "growth.check")));
	cJSON_Delete(root);
	s.growth.check.processes = 1;
	s.growth.check.rss_bytes = -4096;
	root = json_of(&s);
	assert_number(root, "growth.check.rss_bytes", -4096);
	cJSON_Delete(root);
}

static void hostile_names_stay_inside_their_strings(void **state)
{
	static const char evil[] = "\"}],\n\033[2J\xff\\";
	const struct summary_process process = {
		.pid = 1, .comm = evil, .exe = evil, .cmdline = evil
	};
	struct run_summary s = fixture_summary();
	cJSON *root;

	s.processes = &process;
	root = json_of(&s);
	assert_int_equal(cJSON_GetArraySize(at(root, "target.processes")), 1);
	assert_text(root, "target.processes.0.comm",
		    "\"}],\xef\xbf\xbd\xef\xbf\xbd[2J\xef\xbf\xbd\\");
	cJSON_Delete(root);
}

static void empty_run_is_valid_json(void **state)
{
	struct run_summary s = { 0 };
	cJSON *root = json_of(&s);

	assert_true(cJSON_IsNull(at(root, "time")));
	assert_true(cJSON_IsNull(at(root, "start")));
	assert_true(cJSON_IsNull(at(root, "oncpu.cpu_share")));
	assert_true(cJSON_IsNull(at(root, "rss")));
	assert_true(cJSON_IsNull(at(root, "memory")));
	assert_number(root, "oncpu.samples", 0);
	assert_int_equal(cJSON_GetArraySize(at(root, "files")), 0);
	assert_text(root, "verdict.kind", "nothing");
	cJSON_Delete(root);
}

static void child_has_a_code_or_a_signal(void **state)
{
	struct run_summary s = fixture_summary();
	cJSON *root;

	s.child.known = true;
	s.child.signal = 9;
	root = json_of(&s);
	assert_true(cJSON_IsFalse(at(root, "child.exited")));
	assert_true(cJSON_IsNull(at(root, "child.code")));
	assert_number(root, "child.signal", 9);
	cJSON_Delete(root);
}

static void sampled_figures_have_their_sampler_and_intervals(void **state)
{
	struct run_summary s = fixture_summary();
	struct site_row site = { .function = "load",
				 .module = "app",
				 .value = 3000,
				 .count = 5,
				 .low = 2000,
				 .high = 4500,
				 .samples = 6 };
	cJSON *root;

	s.alloc = (struct summary_alloc){
		.tier = ALLOC_TIER_SAMPLED,
		.sampler = "otel_memory in /usr/bin/app",
		.rate = 524288,
		.bytes = 4000,
		.bytes_interval = { 3000, 5500, 8 },
		.live_interval = { 10, 20, 2 },
		.live_peak = { true, false, 15, 12, 25, 3000000000 },
		.freed_samples = 6,
		.sites = &site,
		.n_sites = 1,
	};
	root = json_of(&s);
	assert_text(root, "alloc.tier", "sampled");
	assert_text(root, "alloc.sampler", "otel_memory in /usr/bin/app");
	assert_number(root, "alloc.rate", 524288);
	assert_number(root, "alloc.bytes_interval.low", 3000);
	assert_number(root, "alloc.bytes_interval.high", 5500);
	assert_number(root, "alloc.bytes_interval.samples", 8);
	assert_number(root, "alloc.live_interval.samples", 2);
	assert_number(root, "alloc.live_peak.bytes", 15);
	assert_number(root, "alloc.live_peak.low", 12);
	assert_number(root, "alloc.live_peak.high", 25);
	assert_number(root, "alloc.live_peak.at_ns", 3000000000);
	assert_number(root, "alloc.freed_samples", 6);
	assert_number(root, "alloc.sites.0.low", 2000);
	assert_number(root, "alloc.sites.0.high", 4500);
	assert_number(root, "alloc.sites.0.samples", 6);
	cJSON_Delete(root);
}

static void of_estimates_the_evidence_of_a_leak_is_its_blocks(void **state)
{
	struct run_summary s = fixture_summary();
	cJSON *root;

	(void)state;
	s.alloc.n_leaks = 1;
	s.alloc.leaks[0] = (struct summary_leak){ .site = { .function = "leak_here" },
						  .slope = 1000,
						  .survived = 1,
						  .sampled = 57,
						  .ended = 1,
						  .sampled_age_s = 37.5 };
	root = json_of(&s);
	assert_number(root, "alloc.leaks.0.sampled_in_use", 57);
	assert_number(root, "alloc.leaks.0.sampled_ended", 1);
	assert_number(root, "alloc.leaks.0.sampled_age_s", 37.5);
	cJSON_Delete(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_estimates_the_evidence_of_a_leak_is_its_blocks),
		cmocka_unit_test(keys_are_those_of_the_header),
		cmocka_unit_test(sampled_figures_have_their_sampler_and_intervals),
		cmocka_unit_test(unwind_tables_are_there_where_they_were_used),
		cmocka_unit_test(start_is_rfc_3339_with_its_offset),
		cmocka_unit_test(large_counts_keep_every_digit),
		cmocka_unit_test(growth_has_its_kinds_and_its_check),
		cmocka_unit_test(hostile_names_stay_inside_their_strings),
		cmocka_unit_test(empty_run_is_valid_json),
		cmocka_unit_test(child_has_a_code_or_a_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
