#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "unit/run_fixture.h"

static void busy_program_is_cpu_bound_and_its_hot_function_named(void **state)
{
	struct run_summary s = run(0.98);
	const struct top_row top = { .name = "dictFind", .self = (int64_t)s.oncpu.samples / 4 };
	struct verdict v;

	s.oncpu.by_self = &top;
	s.oncpu.n_self = 1;
	v = verdict_of(&s);
	assert_int_equal(v.kind, VERDICT_CPU);
	assert_string_equal(v.sentence,
			    "redis-server is CPU-bound: it used 98% of one CPU, 25.0% of it in "
			    "dictFind itself.");
	assert_says(v.next, "dictFind");
}

static void what_is_true_as_well_is_said_after_the_most_serious(void **state)
{
	struct run_summary s = run(0.98);
	const struct site_row wait = { .function = "add_one",
				       .leaf = "futex_wait",
				       .wait = WAIT_LOCK,
				       .role = WAIT_ROLE_MUTEX,
				       .value = 8 * S_NS,
				       .count = 4000 };
	struct verdict v;

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	v = verdict_of(&s);
	assert_int_equal(v.kind, VERDICT_CONTENDED);
	assert_string_equal(
		v.sentence,
		"redis-server is held up by a lock: it used 98% of one CPU and its threads waited "
		"8.0 s for a lock that others of them hold, most of it in add_one; it is also "
		"CPU-bound.");
	/* What a program that is short of CPU computes has been said. */
	s.offcpu.n_waits = 0;
	s.time.runnable_ns = 9 * S_NS;
	assert_string_equal(verdict_of(&s).sentence,
			    "redis-server is short of CPU: it waited 9.0 s for a CPU, 48% of the "
			    "time it could have run, and used 98% of one CPU.");
}

static void who_has_garbage_collected_is_named(void **state)
{
	struct run_summary s = run(0.98);
	const struct site_row work = { .function = "build_answer", .value = 10 };

	s.oncpu.gc_samples = s.oncpu.samples / 2;
	s.oncpu.work = &work;
	assert_int_equal(verdict_of(&s).kind, VERDICT_GC);
	assert_says(verdict_of(&s).sentence,
		    "50% of it in the garbage collector; of its own functions build_answer");
}

static void parent_is_judged_by_what_its_children_spend(void **state)
{
	static const struct summary_process make = { .pid = 7, .comm = "make" };
	struct command_row rows[] = { { "cc1", 9 * S_NS, 40 }, { "make", S_NS / 2, 1 } };
	struct run_summary s = run(0.95);

	s.processes = &make;
	s.seen_processes = 41;
	s.oncpu.cpu_ns = 10 * S_NS;
	s.oncpu.commands = rows;
	s.oncpu.n_commands = 2;
	assert_says(
		verdict_of(&s).sentence,
		"make is CPU-bound: it and its children used 95% of one CPU, 90.0% of it in cc1 (40 processes)");
	/* A server of several processes of its own name. */
	rows[0].comm = "make";
	assert_says(verdict_of(&s).sentence, "make is CPU-bound: it used 95% of one CPU");
	assert_null(strstr(verdict_of(&s).sentence, "40 processes"));
	/* Its children do little. */
	rows[0] = (struct command_row){ "cc1", S_NS, 40 };
	assert_null(strstr(verdict_of(&s).sentence, "cc1"));
}

static void few_samples_ask_for_more_before_anything_else(void **state)
{
	struct run_summary s = run(0.98);
	const struct top_row top = { .name = "f", .self = 90 };

	s.oncpu.samples = 97;
	s.oncpu.by_self = &top;
	s.oncpu.n_self = 1;
	assert_true(summary_few_samples(&s));
	assert_says(verdict_of(&s).next, "97 samples are few");
	s.oncpu.samples = SUMMARY_FEW_SAMPLES;
	assert_false(summary_few_samples(&s));
}

static void several_cpus_are_told_as_such(void **state)
{
	struct run_summary s = run(0.5);

	s.time.oncpu_ns = 32 * S_NS;
	assert_int_equal(verdict_of(&s).kind, VERDICT_CPU);
	assert_says(verdict_of(&s).sentence, "3.2 CPUs");
}

static void time_in_malloc_is_memory_bound(void **state)
{
	struct run_summary s = run(0.98);
	const struct site_row site = { .function = "parse", .value = 3 << 20 };

	s.oncpu.allocator_samples = s.oncpu.samples / 3;
	assert_int_equal(verdict_of(&s).kind, VERDICT_MEMORY);
	assert_says(verdict_of(&s).next, "--alloc=exact");
	s.alloc.tier = ALLOC_TIER_EXACT;
	s.alloc.sites = &site;
	s.alloc.n_sites = 1;
	assert_says(verdict_of(&s).next, "parse allocated 3.0 MiB");
}

static void waiting_for_a_cpu_is_starved_not_cpu_bound(void **state)
{
	struct run_summary s = run(0.6);

	s.time.runnable_ns = 4 * S_NS;
	s.time.blocked_ns = 0;
	assert_int_equal(verdict_of(&s).kind, VERDICT_STARVED);
	assert_says(verdict_of(&s).sentence, "waited 4.0 s for a CPU, 40% of the time");
}

static void a_few_ms_of_run_queue_do_not_starve_an_idle_program(void **state)
{
	struct run_summary s = run(0.001);

	s.time.runnable_ns = 20000000;
	assert_int_equal(verdict_of(&s).kind, VERDICT_IDLE);
}

static void waiting_names_what_for_and_who(void **state)
{
	struct run_summary s = run(0.10);
	const struct site_row waits[] = {
		{ .function = "flush_log",
		  .leaf = "io_schedule",
		  .wait = WAIT_DISK,
		  .value = 8 * S_NS,
		  .count = 4000 },
	};
	struct verdict v;

	s.offcpu.waits = waits;
	s.offcpu.n_waits = 1;
	v = verdict_of(&s);
	assert_int_equal(v.kind, VERDICT_WAITING);
	assert_string_equal(v.sentence,
			    "redis-server is waiting: it used 10% of one CPU and waited 8.0 s "
			    "for disk, most of it in flush_log.");
	assert_says(v.next, "iostat");
}

static void parked_threads_do_not_make_a_program_waiting(void **state)
{
	/* Redis: three background threads in one futex wait each, the main thread in epoll. */
	struct run_summary s = run(0.30);
	const struct site_row waits[] = {
		{ .function = "bio",
		  .leaf = "futex_wait",
		  .wait = WAIT_LOCK,
		  .value = 30 * S_NS,
		  .count = 3 },
		{ .function = "aeMain",
		  .leaf = "ep_poll",
		  .wait = WAIT_EVENTS,
		  .value = 7 * S_NS,
		  .count = 7000 },
	};

	s.offcpu.waits = waits;
	s.offcpu.n_waits = 2;
	assert_int_equal(verdict_of(&s).kind, VERDICT_MIXED);
	assert_says(verdict_of(&s).sentence, "events (poll), most of it in aeMain");
}

static void goroutines_that_wait_are_named_with_what_they_wait_for(void **state)
{
	struct run_summary s = run(0.02);
	struct goroutine_row rows[] = {
		{ .at = { .function = "main.bookSeat",
			  .module = "app",
			  .wait = WAIT_LOCK,
			  .role = WAIT_ROLE_MUTEX,
			  .value = 25 * S_NS,
			  .count = 900 },
		  .reason = "semacquire",
		  .peer = "",
		  .lock = "a sync.Mutex",
		  .own = true,
		  .waits = true },
		{ .at = { .function = "main.bookSeat",
			  .module = "app",
			  .wait = WAIT_TIMER,
			  .value = 9 * S_NS,
			  .count = 900 },
		  .reason = "sleep",
		  .peer = "",
		  .lock = "",
		  .own = true,
		  .waits = true },
		{ .at = { .function = "main.ask",
			  .module = "app",
			  .wait = WAIT_SOCKET,
			  .value = 7 * S_NS,
			  .count = 70 },
		  .reason = "IO wait",
		  .peer = "10.0.0.3:5432",
		  .lock = "",
		  .own = true,
		  .waits = true },
	};
	struct verdict v;

	(void)state;
	s.goroutines.rows = rows;
	s.goroutines.n_rows = 3;
	v = verdict_of(&s);
	assert_int_equal(v.kind, VERDICT_CONTENDED);
	assert_says(
		v.sentence,
		"its goroutines waited 25.0 s for a sync.Mutex that others of them hold, most of it in "
		"main.bookSeat; meanwhile others in main.bookSeat were waiting: sleep for 9.0 s; also, its "
		"goroutines waited 7.0 s for a socket (10.0.0.3:5432), most of it in main.ask.");
	assert_says(v.next, "goroutine profile");
}

static void thread_that_waits_to_be_given_work_is_no_contended_lock(void **state)
{
	/* Seen in redis: jemalloc's background thread wakes up now and then. */
	struct run_summary s = run(0.40);
	struct site_row waits[] = {
		{ .function = "background_thread",
		  .leaf = "futex_wait",
		  .wait = WAIT_LOCK,
		  .value = 10 * S_NS,
		  .count = 14 },
		{ .function = "aeMain",
		  .leaf = "ep_poll",
		  .wait = WAIT_EVENTS,
		  .value = 4 * S_NS,
		  .count = 626509 },
	};

	s.offcpu.waits = waits;
	s.offcpu.n_waits = 2;
	assert_int_equal(verdict_of(&s).kind, VERDICT_MIXED);
	assert_says(verdict_of(&s).sentence, "aeMain");
	/* The same time in many short waits is contention. */
	waits[0].count = 5000;
	assert_int_equal(verdict_of(&s).kind, VERDICT_WAITING);
	/* Long waits for a lock and nothing else are what there is to say. */
	waits[0].count = 14;
	s.offcpu.n_waits = 1;
	assert_int_equal(verdict_of(&s).kind, VERDICT_WAITING);
}

static void program_at_rest_is_idle(void **state)
{
	struct run_summary s = run(0.003);
	const struct site_row waits[] = {
		{ .function = "aeMain",
		  .leaf = "ep_poll",
		  .wait = WAIT_EVENTS,
		  .value = 9 * S_NS,
		  .count = 100 },
	};

	s.offcpu.waits = waits;
	s.offcpu.n_waits = 1;
	assert_int_equal(verdict_of(&s).kind, VERDICT_IDLE);
	assert_says(verdict_of(&s).sentence, "less than 1% of one CPU");
	assert_says(verdict_of(&s).next, "Put load on it");
}

static void growth_is_the_verdict_when_nothing_is_dearer(void **state)
{
	struct run_summary s = run(0.2);
	const struct site_row site = { .function = "cache_add", .value = 90 << 20 };

	s.memory = (struct trend_rise){ true, false, 100 * 1024, 200 * 1024, 200 * 1024 };
	assert_int_equal(verdict_of(&s).kind, VERDICT_GROWING);
	assert_string_equal(
		verdict_of(&s).sentence,
		"redis-server is growing: its memory rose by 100.0 MiB to 200.0 MiB in 10.0 s.");
	s.alloc.tier = ALLOC_TIER_EXACT;
	s.alloc.live_sites = &site;
	s.alloc.n_live_sites = 1;
	assert_says(verdict_of(&s).next, "cache_add holds 90.0 MiB that nothing has freed");
}

static void growth_names_the_command_that_shows_what_keeps_it(void **state)
{
	static const struct summary_process one = { .pid = 4711, .comm = "app" };
	struct run_summary s = run(0.2);

	assert_null(strstr(verdict_of(&s).next, "memscope heap"));
	s.memory = (struct trend_rise){ true, false, 100 * 1024, 200 * 1024, 200 * 1024 };
	s.target = RUN_PROCESSES;
	s.processes = &one;
	s.n_processes = 1;
	assert_int_equal(verdict_of(&s).kind, VERDICT_GROWING);
	assert_says(verdict_of(&s).next,
		    "memscope heap census -p 4711 shows which objects fill it");
	s.target = RUN_COMMAND; /* it has ended */
	assert_says(verdict_of(&s).next, "While it runs, memscope heap census -p PID");
	s.langs.processes = 1;
	s.langs.name = "CPython 3.11.2";
	assert_says(verdict_of(&s).next, "memscope heap census -p PID");
	s.langs.name = "HotSpot 17.0.21"; /* its objects are in a heap that is not known */
	assert_null(strstr(verdict_of(&s).next, "memscope heap"));
	s.langs.processes = 0;
	s.goroutines.processes = 1;
	assert_null(strstr(verdict_of(&s).next, "memscope heap"));
}

static void who_made_memory_resident_is_the_next_step_where_allocations_were_not_traced(
	void **state)
{
	static const struct site_row site = {
		.function = "fill_cache", .module = "", .leaf = "", .comm = "", .value = 90 << 20
	};
	struct run_summary s = run(0.2);

	s.memory = (struct trend_rise){ true, false, 100 * 1024, 200 * 1024, 200 * 1024 };
	s.growth.sites = &site;
	s.growth.n_sites = 1;
	assert_int_equal(verdict_of(&s).kind, VERDICT_GROWING);
	assert_says(verdict_of(&s).next,
		    "Open the growth profile: fill_cache first touched 90.0 MiB.");
}

static void run_that_measured_allocations_alone_names_who_allocated_most(void **state)
{
	static const struct site_row sites[] = {
		{ .function = "read_lines",
		  .module = "",
		  .leaf = "",
		  .comm = "",
		  .value = 60 << 20 },
		{ .function = "cache_put",
		  .module = "",
		  .leaf = "",
		  .comm = "",
		  .value = 10 << 20 },
	};
	struct run_summary s = { .duration_ns = S_NS,
				 .alloc = { .tier = ALLOC_TIER_EXACT, .bytes = 80 << 20 } };

	assert_says(verdict_of(&s).sentence, "Nothing was measured");
	s.alloc.sites = sites;
	s.alloc.n_sites = 2;
	assert_string_equal(
		verdict_of(&s).sentence,
		"Only allocations were measured: of 80.0 MiB, read_lines allocated most "
		"(60.0 MiB).");
	assert_says(verdict_of(&s).next,
		    "Open the allocation profile: read_lines allocated 60.0 MiB.");
	s.alloc.live_sites = &sites[1];
	s.alloc.n_live_sites = 1;
	assert_says(verdict_of(&s).next,
		    "Open the heap profile: cache_put holds 10.0 MiB that nothing has freed.");
}

static void run_that_measured_memory_alone_names_who_touched_most(void **state)
{
	static const struct site_row site = {
		.function = "fill_cache", .module = "", .leaf = "", .comm = "", .value = 90 << 20
	};
	struct run_summary s = { .duration_ns = S_NS };

	assert_says(verdict_of(&s).sentence, "Nothing was measured");
	s.growth.known = true;
	s.growth.sites = &site;
	s.growth.n_sites = 1;
	assert_says(verdict_of(&s).sentence, "fill_cache first touched the most (90.0 MiB)");
	assert_says(verdict_of(&s).next, "Open the growth profile");
}

static void only_files_that_were_written_are_named(void **state)
{
	static const struct site_row site = {
		.function = "fill_cache", .module = "", .leaf = "", .comm = "", .value = 90 << 20
	};
	static const char *const of_a_window[] = { "growth-20251121-093012.svg" };
	static const char *const without_picture[] = { "growth.pb.gz", "growth.folded",
						       "oncpu.svg" };
	static const char *const all[] = { "growth.pb.gz", "growth.folded", "growth.svg" };
	static const char *const with_page[] = { "report-20251121-093012.html",
						 "growth-20251121-093012.svg",
						 "growth-20251121-093012.pb.gz" };
	struct run_summary s = { .duration_ns = S_NS,
				 .growth = { .known = true, .sites = &site, .n_sites = 1 } };

	assert_says(verdict_of(&s).next, "Open the growth profile:");
	s.files = all;
	s.n_files = 3;
	assert_says(verdict_of(&s).next, "Open growth.svg:");
	s.files = without_picture;
	assert_says(verdict_of(&s).next, "Open growth.folded:");
	s.files = of_a_window;
	s.n_files = 1;
	assert_says(verdict_of(&s).next, "Open growth-20251121-093012.svg:");
	s.files = with_page;
	s.n_files = 3;
	assert_says(verdict_of(&s).next, "Open report-20251121-093012.html (growth flame graph):");
	s.n_files = 2; /* the page has no such graph */
	assert_says(verdict_of(&s).next, "Open growth-20251121-093012.svg:");
}

static void growth_is_a_clause_of_a_dearer_verdict(void **state)
{
	struct run_summary s = run(0.98);

	s.memory = (struct trend_rise){ true, false, 100 * 1024, 200 * 1024, 200 * 1024 };
	assert_int_equal(verdict_of(&s).kind, VERDICT_CPU);
	assert_says(verdict_of(&s).sentence, "; its memory grew by 100.0 MiB.");
	assert_says(verdict_of(&s).next, "memscope heap census");
	assert_int_not_equal(verdict_of(&s).next[0], ' ');
	assert_null(strstr(strstr(verdict_of(&s).next, "heap census") + 1, "heap census"));
}

static void memory_that_came_back_is_not_growth(void **state)
{
	struct run_summary s = run(0.2);

	s.memory = (struct trend_rise){ true, false, 100 * 1024, 200 * 1024, 900 * 1024 };
	assert_int_equal(verdict_of(&s).kind, VERDICT_MIXED);
	/* Small against what it had. */
	s.memory = (struct trend_rise){ true, false, 10000 * 1024, 10100 * 1024, 10100 * 1024 };
	assert_int_equal(verdict_of(&s).kind, VERDICT_MIXED);
}

static void files_that_are_mapped_are_no_growth(void **state)
{
	struct run_summary s = run(0.2);

	s.rss.known = true;
	s.rss.first_kb = 100 * 1024;
	s.rss.last_kb = s.rss.peak_kb = 900 * 1024;
	s.memory = (struct trend_rise){ true, false, 50 * 1024, 51 * 1024, 51 * 1024 };
	assert_int_equal(verdict_of(&s).kind, VERDICT_MIXED);
}

static void starved_host_is_told_who_has_its_cpus(void **state)
{
	const struct process_row top = { .pid = 4711, .comm = "cc1", .cpu_ns = 5 * S_NS };
	struct run_summary s = run(2);

	s.time.runnable_ns = 20 * S_NS;
	assert_int_equal(verdict_of(&s).kind, VERDICT_STARVED);
	assert_says(verdict_of(&s).next, "memscope -a");
	s.target = RUN_HOST;
	s.by_process = &top;
	s.n_by_process = 1;
	assert_int_equal(verdict_of(&s).kind, VERDICT_STARVED);
	assert_says(verdict_of(&s).next,
		    "cc1 (pid 4711) has the most CPU time: profile it with -p 4711");
}

static void host_is_judged_by_all_its_cpus(void **state)
{
	struct run_summary s = run(0.98);
	const struct site_row waits[] = {
		{ .function = "x",
		  .leaf = "futex_wait",
		  .wait = WAIT_LOCK,
		  .value = 90 * S_NS,
		  .count = 1000 },
	};

	s.target = RUN_HOST;
	s.n_processes = 0;
	s.offcpu.waits = waits;
	s.offcpu.n_waits = 1;
	/* One of four CPUs. */
	s.time.oncpu_ns = 10 * S_NS;
	assert_int_equal(verdict_of(&s).kind, VERDICT_MIXED);
	assert_says(verdict_of(&s).sentence, "The host is partly busy: it used 25% of its 4 CPUs");
	s.time.oncpu_ns = 38 * S_NS;
	assert_int_equal(verdict_of(&s).kind, VERDICT_CPU);
}

static void a_few_samples_name_no_function(void **state)
{
	struct run_summary s = run(0.98);
	const struct top_row hot = { .name = "parse", .self = 2, .total = 2 };

	s.target = RUN_COMMAND;
	s.end = RUN_END_TARGET;
	s.oncpu.by_self = &hot;
	s.oncpu.n_self = 1;
	s.oncpu.samples = s.oncpu.probe_samples = 2;
	assert_says(verdict_of(&s).sentence, "; in which functions, 2 samples cannot say");
	assert_null(strstr(verdict_of(&s).sentence, "probes"));
	assert_null(strstr(verdict_of(&s).sentence, "parse"));
	s.oncpu.probe_samples = 0;
	s.oncpu.samples = 20;
	assert_says(verdict_of(&s).sentence, "parse");
	s.time.oncpu_ns = 4 * S_NS;
	assert_int_equal(verdict_of(&s).kind, VERDICT_MIXED);
	assert_says(verdict_of(&s).next, "20 samples are few: give the command more to do");
}

static void empty_run_says_nothing_was_measured_and_why(void **state)
{
	const struct summary_source sources[] = {
		{ "oncpu", SOURCE_UNAVAILABLE, "perf events are not permitted" },
	};
	struct run_summary s = { 0 };

	assert_int_equal(verdict_of(&s).kind, VERDICT_NOTHING);
	assert_string_equal(verdict_of(&s).sentence, "Nothing was measured.");
	s.sources = sources;
	s.n_sources = 1;
	assert_string_equal(verdict_of(&s).sentence,
			    "Nothing was measured: perf events are not permitted.");
}

static void sampling_without_a_sample_is_idle(void **state)
{
	struct run_summary s = run(0);

	s.time.known = false;
	s.time.oncpu_ns = 0;
	assert_int_equal(verdict_of(&s).kind, VERDICT_IDLE);
	assert_true(summary_few_samples(&s));
}

static void every_verdict_is_one_sentence_with_an_advice(void **state)
{
	static const double shares[] = { 0, 0.02, 0.3, 0.6, 0.98, 3 };

	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		for (int wait = 0; wait < N_WAIT_KINDS; wait++) {
			struct run_summary s = run(shares[i]);
			struct site_row w = { .function = "f",
					      .leaf = "k",
					      .wait = (enum wait_kind)wait,
					      .value = 5 * S_NS,
					      .count = 50 };
			struct verdict v;

			s.offcpu.waits = &w;
			s.offcpu.n_waits = 1;
			v = verdict_of(&s);
			assert_true(strlen(v.sentence) > 20 &&
				    strlen(v.sentence) < sizeof(v.sentence) - 1);
			assert_int_equal(v.sentence[strlen(v.sentence) - 1], '.');
			assert_int_equal(v.next[strlen(v.next) - 1], '.');
			assert_null(strstr(v.sentence, "(null)"));
			assert_null(strstr(v.next, "(null)"));
			assert_non_null(verdict_name(v.kind));
		}
	}
}

static void a_wait_for_work_is_told_from_one_that_holds_up(void **state)
{
	const struct run_summary s = { .duration_ns = 10000000000 };
	struct site_row w = { .wait = WAIT_LOCK, .value = 1000000000, .count = 100 };

	assert_false(summary_wait_is_idle(&s, &w)); /* 10 ms each: contended */
	w.count = 10;
	assert_true(summary_wait_is_idle(&s, &w)); /* 0.1 s each: waits to be given work */
	w.wait = WAIT_DISK;
	assert_false(summary_wait_is_idle(&s, &w));
	w.value = 5000000000;
	w.count = 1;
	assert_false(summary_wait_is_idle(&s, &w)); /* never for lack of work */
	w.wait = WAIT_SOCKET;
	assert_true(summary_wait_is_idle(&s, &w)); /* half the run */
	w = (struct site_row){ .wait = WAIT_EVENTS, .value = 1000, .count = 1000 };
	assert_true(summary_wait_is_idle(&s, &w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy_program_is_cpu_bound_and_its_hot_function_named),
		cmocka_unit_test(what_is_true_as_well_is_said_after_the_most_serious),
		cmocka_unit_test(who_has_garbage_collected_is_named),
		cmocka_unit_test(parent_is_judged_by_what_its_children_spend),
		cmocka_unit_test(few_samples_ask_for_more_before_anything_else),
		cmocka_unit_test(several_cpus_are_told_as_such),
		cmocka_unit_test(time_in_malloc_is_memory_bound),
		cmocka_unit_test(waiting_for_a_cpu_is_starved_not_cpu_bound),
		cmocka_unit_test(a_few_ms_of_run_queue_do_not_starve_an_idle_program),
		cmocka_unit_test(waiting_names_what_for_and_who),
		cmocka_unit_test(parked_threads_do_not_make_a_program_waiting),
		cmocka_unit_test(goroutines_that_wait_are_named_with_what_they_wait_for),
		cmocka_unit_test(thread_that_waits_to_be_given_work_is_no_contended_lock),
		cmocka_unit_test(program_at_rest_is_idle),
		cmocka_unit_test(growth_is_the_verdict_when_nothing_is_dearer),
		cmocka_unit_test(growth_names_the_command_that_shows_what_keeps_it),
		cmocka_unit_test(
			who_made_memory_resident_is_the_next_step_where_allocations_were_not_traced),
		cmocka_unit_test(run_that_measured_memory_alone_names_who_touched_most),
		cmocka_unit_test(run_that_measured_allocations_alone_names_who_allocated_most),
		cmocka_unit_test(only_files_that_were_written_are_named),
		cmocka_unit_test(growth_is_a_clause_of_a_dearer_verdict),
		cmocka_unit_test(memory_that_came_back_is_not_growth),
		cmocka_unit_test(files_that_are_mapped_are_no_growth),
		cmocka_unit_test(starved_host_is_told_who_has_its_cpus),
		cmocka_unit_test(host_is_judged_by_all_its_cpus),
		cmocka_unit_test(a_few_samples_name_no_function),
		cmocka_unit_test(empty_run_says_nothing_was_measured_and_why),
		cmocka_unit_test(sampling_without_a_sample_is_idle),
		cmocka_unit_test(every_verdict_is_one_sentence_with_an_advice),
		cmocka_unit_test(a_wait_for_work_is_told_from_one_that_holds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
