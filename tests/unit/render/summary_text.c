#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "summary_text_fixture.h"

static void everything_known_is_shown(void **state)
{
	struct run_summary s = fixture_summary();
	const char *text = text_of(&s);

	assert_has(text, "redis-server (pid 4711)");
	assert_has(
		text,
		"Pushed        1,300 of 1,304 profiles to pyroscope at https://store.example (3.0 MiB), ");
	assert_has(text, "2 requests again, 1 wait, 3 did not come there: refused 2 over_limit 1");
	assert_has(text,
		   "7 of 7 profiles to otlp at http://127.0.0.1:4318 (900 B), 0 requests again");
	assert_has(text, "/usr/bin/redis-server 127.0.0.1:6399");
	assert_has(text, "stopped by a signal (SIGINT)");
	assert_has(text, "  on-CPU          9.1 s    18.2%\n");
	assert_has(text, "  blocked        40.3 s    80.6%\n");
	assert_has(text, "  unaccounted     60.0 ms     0.1%\n");
	assert_has(text, "912 samples at 99 Hz (cpu-clock), 91.2% of one CPU");
	assert_has(text, "Few samples");
	assert_has(text, "    23.1%    42.8%  __send ");
	assert_has(text, "aeProcessEvents");
	assert_has(text, "worker_thread");
	assert_has(text, "createStringObject");
	assert_has(text, "3 blocks not tracked");
	assert_has(text,
		   "RSS 100.0 MiB at the start, 190.0 MiB at the end (+90.0 MiB), peak 200.0 MiB");
	assert_has(text,
		   "private (anonymous and swap) 80.0 MiB at the start, 170.0 MiB at the end");
	assert_has(text,
		   "growing: it grew by 90.0 MiB a minute (95 % interval 60.0 MiB to 120.0 MiB)");
	assert_has(text,
		   "warning, potential leak, by the first and the last value alone: RSS +90.0%\n");
	assert_has(text, "trend: /proc is mounted with hidepid");
	assert_has(text, "98.7% guessed, 1.3% truncated");
	assert_has(text, "97.5% guessed in libjit.so.1");
	assert_has_not(text, "libonce"); /* below a thousandth */
	assert_has(text, "1,260 of 1,300 locations symbolized (96.9%), 30 in unnamed functions");
	assert_has(text, "debug symbols: libjemalloc2-dbgsym");
	assert_has(
		text,
		"CPython 3.11.2 and others, 2 processes: 1,234 locations symbolized, with lines\n");
	assert_has(
		text,
		"no frames of an interpreter in 1 process: CPython 3.99 is newer than what memscope knows\n");
	assert_has(text, "3 frames without a name: their code was gone when it was to be read\n");
	assert_has(text, "1 frame without a name: what it refers to is no code\n");
	assert_has(text, "6 events of the interpreter alone: its language was not found yet\n");
	assert_has(text, "5 stacks with frames that could not be read\n");
	assert_has(text,
		   "7 stacks whose native frames and the language's differ: counted as guessed\n");
	assert_has(text, "2 processes without frames of their language: the table was full\n");
	assert_has(text, "104  stacks not stored because the stack map was full");
	assert_has_not(text, "the totals map was full");
	assert_has(
		text,
		"memscope itself 120.0 ms of CPU time (1.2% of one CPU), 24.0 MiB resident, 40.0 MiB in the "
		"kernel");
	assert_has(text, "Overhead     2.1% of one CPU");
	assert_has(text, "     150,000     853 ns     480 ns       2.00%  allocations\n");
	assert_has(text, "memscope-redis-server-4711-20251121-093012/");
	assert_has(text,
		   "  tasks of asyncio: 4.0 on average, 3.1 of them waiting; 100 looks\n"
		   "       2.1  up to 120.0 ms  a socket          fetch_price (app.py), line 33\n");
	assert_has(text, "  Requests to others: connections were looked at 400 times");
	assert_has(text, "redis-server is CPU-bound");
}

static void verdict_is_the_second_and_the_last_paragraph(void **state)
{
	static const char verdict[] = "\n\nredis-server is CPU-bound";
	struct run_summary s = fixture_summary();
	const char *const texts[] = { text_of(&s), screen_of(&s, false) };

	for (size_t i = 0; i < 2; i++) {
		const char *first = strstr(texts[i], "\n\n");

		assert_true(strncmp(first, verdict, strlen(verdict)) == 0);
		assert_non_null(strstr(first, "\nNext: "));
		assert_true(strstr(first, "\nNext: ") < strstr(first + 2, "\n\n"));
		first = strstr(first + 2, verdict);
		assert_non_null(first);
		assert_null(strstr(first + 2, "\n\n"));
		assert_null(strstr(first, "Next: "));
	}
}

static uint32_t lines_of(const char *text)
{
	uint32_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* What a run can have at most: every section is there, and each sentence is a long one. */
static struct run_summary fullest(void)
{
	static struct process_row processes[10];
	static struct top_row top[10];
	static struct site_row waits[12], sites[10];
	static char sentence[600];
	static const char *const notes[] = { sentence, sentence, sentence };
	static struct summary_source sources[] = { { "oncpu", SOURCE_OK, NULL },
						   { "offcpu", SOURCE_UNAVAILABLE, sentence },
						   { "trend", SOURCE_UNAVAILABLE, sentence } };
	struct run_summary s = fixture_summary();

	for (size_t i = 0; i + 1 < sizeof(sentence); i++)
		sentence[i] = i % 7 ? 'w' : ' ';
	for (int i = 0; i < 10; i++) {
		processes[i] =
			(struct process_row){ .pid = i + 1, .comm = "worker", .cpu_ns = 90 * MS };
		top[i] = (struct top_row){
			.name = "function", .module = "app", .self = 90 - i, .total = 90
		};
		sites[i] = (struct site_row){
			.function = "caller", .module = "app", .value = 1 << 20, .count = 7
		};
	}
	for (int i = 0; i < 12; i++)
		waits[i] = (struct site_row){ .function = "waiter",
					      .module = "app",
					      .wait = i % 2 ? WAIT_EVENTS : WAIT_SOCKET,
					      .value = 900 * MS,
					      .count = 70 };
	s.seen_processes = 312;
	s.by_process = processes;
	s.n_by_process = 10;
	s.oncpu.by_self = s.oncpu.by_total = s.oncpu.interpreted = top;
	s.oncpu.n_self = s.oncpu.n_total = s.oncpu.n_interpreted = 10;
	s.offcpu.waits = waits;
	s.offcpu.n_waits = 12;
	s.alloc.sites = s.alloc.live_sites = sites;
	s.alloc.n_sites = s.alloc.n_live_sites = 10;
	s.growth.known = true;
	s.growth.on_stacks = s.growth.resident_bytes[MEMORY_ANON] = 80 << 20;
	s.growth.sites = sites;
	s.growth.n_sites = 10;
	s.sources = sources;
	s.n_sources = 3;
	s.notes = notes;
	s.n_notes = 3;
	s.alloc.n_leaks = 1;
	s.alloc.leaks[0] = (struct summary_leak){ sites[0], 1 << 20, 5e5, 4e5, 6e5, 1, 0, 0.9, 3 };
	return s;
}

static void locks_are_listed_with_who_held_them(void **state)
{
	struct run_summary s = fixture_summary();
	const char *text = text_of(&s);

	assert_has(text, "table_lock");
	assert_has(text, "66.7% held by thread 4712 (keeper), in rebuild\n");
	assert_has(text, "0x6000                      drop");
	assert_has(text, "in [heap]; 90.0% released in put, by worker\n");
	assert_null(strstr(text, "hardly_any"));
	s.locks.n = 0;
	assert_null(strstr(text_of(&s), "Locks"));
}

static void waits_are_listed_with_who_ended_them(void **state)
{
	struct run_summary s = fixture_summary();
	const char *text = text_of(&s);

	(void)state;
	assert_has(
		text,
		"who ended waits of 2.0 s: threads profiled 49.0%, other threads 20.0%, interrupts\n");
	assert_has(text, "  lookup                          rebuild (keeper)\n");
	assert_has(text, "  [no user stack]                 tcp_sendmsg (redis-benchmark)\n");
	s.wakers.n = 0;
	assert_null(strstr(text_of(&s), "Wakers"));
}

static void files_and_peers_that_were_waited_for_are_listed(void **state)
{
	struct run_summary s = fixture_summary();
	const char *text = text_of(&s);

	(void)state;
	assert_has(text, "  file /var/lib/data.aof (sda1)                 flush\n");
	assert_has(text, "  peer 10.0.0.3:5432                            [no user stack]\n");
	s.io_waits.n = 0;
	assert_null(strstr(text_of(&s), "I/O waits"));
}

static void system_calls_are_listed_with_their_errors(void **state)
{
	struct run_summary s = fixture_summary();
	const char *text = text_of(&s);

	(void)state;
	assert_has(text,
		   "300 +- 20 returned, 30 failed, 2.2 s in them; 1 never return, 3 in flight");
	assert_has(text, "only 1 call in 8 was counted");
	assert_has(text, "  read  EAGAIN\n");
	s.syscalls.n_by_call = 0;
	assert_null(strstr(text_of(&s), "System calls"));
}

static void events_are_listed_with_what_their_stacks_stand_for(void **state)
{
	struct run_summary s = fixture_summary();
	const char *text = text_of(&s);

	(void)state;
	assert_has(text, "50 % rebuild");
	assert_has(text, "only one stack in 8 was captured");
	assert_has(text, "6 tracepoints more came");
	s.events.known = false;
	assert_null(strstr(text_of(&s), "tracepoints more"));
}

static void calls_are_listed_with_their_times_and_what_became_of_the_others(void **state)
{
	struct run_summary s = fixture_summary();
	const char *text = text_of(&s);

	(void)state;
	assert_has(text, "60.0 ms");
	assert_has(text, "600 within another one");
	assert_has(
		text,
		"50 never return, 20 in progress at the end, 10 lost for want of room, 20 whose");
	assert_has(text, "main.handle: calls are counted, not timed: Go moves stacks");
	assert_has(text, "malloc: to keep within --max-overhead, timed for 0.5 s (");
	assert_has(text, "counted for 2.5 s: there were more calls than");
	assert_has(text, "    1.5 µs   ");
	assert_has(text, "at most the function's shortest");
	s.counts.known = false;
	s.counts.n = 0;
	assert_null(strstr(text_of(&s), "within another one"));
}

static void run_queue_delay_is_listed_by_who_ran_instead(void **state)
{
	struct run_summary s = fixture_summary();
	const char *text = text_of(&s);

	(void)state;
	assert_has(
		text,
		"1.0 s runnable: others ran 70.1%, its own threads 20.0%; CPU idle 5.0%, queue of\n");
	assert_has(text, "  redis-server (4711)               stress (99) in batch\n");
	assert_has(text, "  redis-server (4711)               its own threads\n");
	assert_null(strstr(text, "kworker"));
	s.run_delays.sums.total_ns = s.time.wall_ns / 200;
	assert_null(strstr(text_of(&s), "Run queue"));
}

static void goroutines_are_listed_by_what_they_wait_for(void **state)
{
	struct run_summary s = fixture_summary();
	const char *text;

	assert_null(strstr(text_of(&s), "Goroutines"));
	s.goroutines.processes = 1;
	s.goroutines.version = "Go 1.19.8";
	s.goroutines.why = "";
	s.goroutines.looks = 40;
	s.goroutines.now = 12;
	s.goroutines.most_part = 16;
	s.goroutines.cut = 2;
	s.goroutines.rows = fixture_goroutines;
	s.goroutines.n_rows = 3;
	text = text_of(&s);
	assert_has(screen_of(&s, false),
		   "Goroutines      12 at the end, 0 on a thread (a part looked at: estimates)\n");
	assert_has(screen_of(&s, false), "main.bookSeat");
	assert_true(lines_of(screen_of(&s, false)) <= SUMMARY_SCREEN_LINES);
	text = text_of(&s);
	assert_has(text, "40 looks of one in 16 of them: estimates");
	assert_has(text, "main.bookSeat");
	assert_has(text, "IO wait, 10.0.0.3:5432");
	assert_has(text, "  held up by nothing but new work and each other\n");
	assert_has(text, "2 stacks are incomplete");
}

static void the_first_screen_has_at_most_40_lines(void **state)
{
	struct run_summary s = fixture_summary();

	assert_true(SUMMARY_SCREEN_LINES <= 40);
	assert_true(lines_of(text_of(&s)) > 40);
	assert_true(lines_of(screen_of(&s, false)) <= SUMMARY_SCREEN_LINES);
	s = fullest();
	assert_true(lines_of(screen_of(&s, false)) <= SUMMARY_SCREEN_LINES);
	assert_has(screen_of(&s, false), "ww…");
	s = (struct run_summary){ 0 };
	assert_true(lines_of(screen_of(&s, false)) <= SUMMARY_SCREEN_LINES);
}

static void tracing_of_a_short_run_costs_time_and_no_share(void **state)
{
	struct run_summary s = fixture_summary();

	assert_has(screen_of(&s, false), "memscope itself: 1.2% of one CPU");
	s.duration_ns = 60000000;
	assert_has_not(screen_of(&s, false), "memscope itself: 200.0%");
	assert_has(screen_of(&s, false), "memscope itself: 120.0 ms of CPU time");
}

/* The first screen has no room for a sentence twice. */
static void a_diagnosis_says_what_the_verdict_does_not(void **state)
{
	struct run_summary s = fixture_summary();
	const char *at;
	struct verdict v;

	s.alloc.tier = ALLOC_TIER_EXACT;
	s.alloc.n_leaks = 1;
	s.alloc.leaks[0] = (struct summary_leak){
		.site = { .function = "remember" },
		.slope = 1 << 20,
		.slope_low = 1 << 20,
		.slope_high = 1 << 20,
		.survived = 0.98,
		.age_s = 30,
	};
	summary_verdict(&s, &v);
	assert_int_equal(v.kind, VERDICT_LEAK);
	assert_has(v.sentence, "retained at remember");
	at = strstr(screen_of(&s, false), "\nDiagnosis ");
	assert_non_null(at);
	assert_non_null(strstr(at, "98% of its blocks older than 30 s are still live"));
	assert_true(strcspn(at + 1, "\n") < strcspn(at + 1, "("));
}

static void the_verdict_again_makes_room_before_what_stands_nowhere_else(void **state)
{
	struct run_summary s = fullest();
	const char *at, *last;

	s.n_notes = s.n_processes = s.n_sources = 0;
	s.cost.known = false;
	s.own.cpu_ns = s.own.rss_kb = 0;
	s.alloc.leaks[0].site.function = "remember_each_session_of_every_customer_who_came_by";
	at = strstr(screen_of(&s, false), "\nFiles ");

	assert_non_null(at);
	last = strstr(at, "\n\n");
	assert_non_null(last);
	assert_int_equal(lines_of(last + 2), 2);
	assert_has(last, "…\n");
}

static void what_matters_is_on_the_first_screen_of_the_fullest_run(void **state)
{
	static const char *const labels[] = {
		"Next: ",          "\nDiagnosis ",   "\nTime ",
		"\nProcesses ",    "\nOn-CPU ",      "\nBlocked ",
		"\nMemory ",       "\nAllocations ", "\nMissing ",
		"\nLost ",         "\nNote ",        "\nOverhead ",
		"memscope itself", "\nFiles ",       "summary.txt or --verbose"
	};
	struct run_summary s = fullest();
	const char *at = screen_of(&s, false), *text = at;

	for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++) {
		at = strstr(at, labels[i]);
		if (!at)
			fail_msg("\"%s\" is not in, or before the one before it:\n%s", labels[i],
				 text);
	}
	s = fixture_summary();
	assert_has(screen_of(&s, false), "live 90.0 MiB in 70,000 (too low by 3 blocks)");
	assert_has(screen_of(&s, false), "(shares ± 4 points)");
	assert_has(screen_of(&s, false), "/ report.html oncpu.svg");
	assert_has(screen_of(&s, false), "the stack map was full (104)");
	assert_has(screen_of(&s, false), "probably idle: bioProcessBackgroundJobs 30.0 s");
}

static void estimates_have_their_intervals_on_the_first_screen(void **state)
{
	static const struct site_row wait = { .function = "io",
					      .wait = WAIT_SOCKET,
					      .value = 1000 * MS,
					      .count = 50,
					      .low = 900 * MS,
					      .high = 1100 * MS };
	struct run_summary s = fixture_summary();

	s.offcpu.sampled = true;
	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	assert_has(screen_of(&s, false), "1.0 s ± 10.0% 50");
	s.alloc.tier = ALLOC_TIER_BURSTS;
	s.alloc.bytes_interval = (struct summary_interval){ 600 << 20, 800 << 20, 10 };
	assert_has(screen_of(&s, false),
		   "701.0 MiB (95% interval 600.0 MiB to 800.0 MiB), estimated from");
}

static void a_command_of_several_lines_is_shown_in_one(void **state)
{
	static const struct summary_process one = { .pid = 7,
						    .comm = "python3",
						    .cmdline = "python3 -c \nx = 0\n\tprint(x)" };
	struct run_summary s = fixture_summary();

	s.processes = &one;
	s.n_processes = 1;
	assert_has(text_of(&s), "  python3 -c x = 0 print(x)\n");
	assert_has(screen_of(&s, false), "  python3 -c x = 0 print(x)\n");
}

static void a_run_that_took_longer_than_asked_says_why(void **state)
{
	struct run_summary s = fixture_summary();

	s.end = RUN_END_DURATION;
	s.end_detail = NULL;
	s.asked_ns = 3000 * MS;
	s.duration_ns = 3150 * MS; /* nobody notices */
	assert_has(text_of(&s), "ended: duration reached\n");
	s.duration_ns = 4500 * MS;
	s.closing_ns = 1300 * MS;
	assert_has(text_of(&s),
		   "duration reached, 1.5 s later than asked: reading what is in use took 1.3 s\n");
	assert_has(screen_of(&s, false), "1.5 s later than asked");
	s.closing_ns = 100 * MS;
	assert_has(text_of(&s), "1.5 s later than asked: the CPUs were busy\n");
	s.end = RUN_END_SIGNAL;
	assert_null(strstr(text_of(&s), "later than asked"));
}

/* However long what stands above it is. */
static void no_table_of_allocations_is_a_heading_alone(void **state)
{
	struct run_summary s = fullest();
	static char reason[900];

	assert_null(strchr(screen_of(&s, true), '\001'));
	for (size_t len = 0; len < sizeof(reason) - 1; len += 20) {
		const char *text, *heading;

		for (size_t i = 0; i < len; i++)
			reason[i] = i % 10 == 9 ? ' ' : 'r';
		reason[len] = '\0';
		s.alloc.calls_per_s = 0;
		s.alloc.sampler = reason;
		s.alloc.tier = ALLOC_TIER_SAMPLED;
		text = screen_of(&s, false);
		heading = strstr(text, "allocated by\n");
		if (heading)
			assert_non_null(memchr(heading + 13, '%', strcspn(heading + 13, "\n")));
		assert_null(strstr(text, "allocated by…"));
	}
}

static void colour_is_for_the_verdict_and_for_what_is_lost(void **state)
{
	struct run_summary s = fixture_summary();
	const char *text = screen_of(&s, true);

	assert_has(text, "\033[1mredis-server is CPU-bound");
	assert_has(text, "\033[33mLost");
	assert_has(text, "\033[33mMissing");
	assert_has_not(text, "\033[33mTime");
	assert_has_not(screen_of(&s, false), "\033");
	s.n_drops = 0;
	assert_has_not(screen_of(&s, true), "\033[33mLost");
}

static void check_widths(const char *text)
{
	size_t chars = 0;

	for (const char *at = text, *line = text; *at; at++) {
		if (*at == '\n') {
			if (chars > 100)
				fail_msg("%.*s", (int)(at - line), line);
			chars = 0;
			line = at + 1;
		} else {
			chars += ((unsigned char)*at & 0xc0) != 0x80;
		}
	}
}

static void no_line_is_wider_than_100_columns(void **state)
{
	struct run_summary s = fixture_summary();

	check_widths(text_of(&s));
	check_widths(screen_of(&s, false));
	s.offcpu.sampled = true;
	check_widths(screen_of(&s, false));
	s = fullest();
	check_widths(screen_of(&s, false));
}

static void long_name_loses_its_arguments_or_its_middle(void **state)
{
	struct run_summary s = fixture_summary();
	const char *text = text_of(&s);

	assert_has(text, "std::vector<…>::_M_realloc_insert");
	assert_has(text, "libvery-lon…");
}

static void hostile_names_reach_no_terminal(void **state)
{
	static const char evil[] = "a\033]0;owned\007\nb\xff\xc2\x9b"
				   "31m";
	const struct summary_process process = {
		.pid = 1, .comm = evil, .exe = evil, .cmdline = evil
	};
	const struct top_row top = { .name = evil, .module = evil, .self = 900, .total = 900 };
	const struct site_row site = { .function = evil,
				       .module = evil,
				       .leaf = evil,
				       .wait = WAIT_LOCK,
				       .value = 900 * MS,
				       .count = 7 };
	const char *const notes[] = { evil };
	struct run_summary s = fixture_summary();
	const char *text;

	s.processes = &process;
	s.oncpu.by_self = s.oncpu.by_total = s.oncpu.interpreted = &top;
	s.oncpu.n_self = s.oncpu.n_total = s.oncpu.n_interpreted = 1;
	s.offcpu.waits = s.alloc.sites = s.alloc.live_sites = &site;
	s.offcpu.n_waits = s.alloc.n_sites = s.alloc.n_live_sites = 1;
	s.symbols.worst[0].module = evil;
	s.notes = notes;
	s.dir = evil;
	s.end_detail = evil;
	text = text_of(&s);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		assert_true(*c == '\n' || *c >= 0x20);
		assert_int_not_equal(*c, 0x7f);
		assert_int_not_equal(*c, 0xff);
		assert_false(c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0);
	}
	assert_has(text, "top interpreted functions, with the native code they call\n");
	assert_has(text, "owned");
	assert_has_not(text, "\nb");
}

static void empty_run_is_short_and_says_so(void **state)
{
	struct run_summary s = { 0 };
	const char *text = text_of(&s);

	assert_has(text, "Nothing was measured.");
	assert_has(text, "memscope doctor");
	assert_has_not(text, "On-CPU");
	assert_has_not(text, "nan");
	assert_has_not(text, "(null)");
}

static void no_sample_at_all_is_few_samples(void **state)
{
	struct run_summary s = fixture_summary();

	s.oncpu.samples = 0;
	s.oncpu.n_self = s.oncpu.n_total = 0;
	assert_has(text_of(&s), "0 samples");
	assert_has(text_of(&s), "Few samples");
	assert_has_not(text_of(&s), "nan");
	assert_has_not(text_of(&s), "inf");
}

static void busy_target_is_not_asked_for_more_load(void **state)
{
	struct run_summary s = fixture_summary();

	assert_has(text_of(&s), "Record longer,");
	assert_has_not(text_of(&s), "Put load on it");
	s.time.oncpu_ns /= 10;
	assert_has(text_of(&s), "Put load on it");
}

static void time_that_memscope_stopped_it_is_told_apart(void **state)
{
	struct run_summary s = fixture_summary();

	assert_has_not(text_of(&s), "stopped by memscope");
	s.time.held_ns = 15 * MS;
	assert_has(text_of(&s), "stopped by memscope for 15.0 ms while it placed its probes");
	assert_has(text_of(&s), "  blocked        40.3 s    80.6%\n");
}

static void processes_of_a_host_are_listed(void **state)
{
	const struct process_row rows[] = {
		{ 4711, "cc1", 90, 5000 * MS, 250 * MS, 1500 * MS },
		{ 12, "kworker/0:1", 0, 0, 9000 * MS, 3 * MS },
	};
	struct run_summary s = fixture_summary();

	assert_has_not(text_of(&s), "Processes");
	s.target = RUN_HOST;
	s.by_process = rows;
	s.n_by_process = 2;
	s.seen_processes = 312;
	assert_has(text_of(&s), "Processes    312 ran or waited");
	assert_has(text_of(&s), "     5.0 s    50.0%      1.5 s   250.0 ms     4711  cc1\n");
	assert_has(text_of(&s), "      12  kworker/0:1\n");
}

static void labels_of_programs_have_their_shares(void **state)
{
	struct run_summary s = fixture_summary();

	assert_has_not(text_of(&s), "Labels");
	s.program_labels = fixture_labels;
	s.n_program_labels = 1;
	assert_has(text_of(&s), "Labels          set by the programs themselves");
	assert_has(text_of(&s), "     54.8%    60.0 ms  http.route=/cart\n");
	assert_has(text_of(&s),
		   "     25.0%             http.route=/search\xef\xbf\xbd  (2 of 120)\n");
}

static void processes_of_containers_have_their_names_and_both_pids(void **state)
{
	const struct process_row rows[] = {
		{ .pid = 4711, .comm = "hog", .cpu_ns = MS, .container = "web\033", .ns_pid = 7 },
		{ .pid = 12, .comm = "kworker/0:1", .container = "" },
	};
	struct run_summary s = fixture_summary();

	s.target = RUN_HOST;
	s.by_process = rows;
	s.n_by_process = 2;
	s.seen_processes = 2;
	assert_has(text_of(&s), "      pid  inside  command          container\n");
	assert_has(text_of(&s), "     4711       7  hog              web\xef\xbf\xbd\n");
	assert_has(text_of(&s), "       12          kworker/0:1\n");
}

static void a_container_has_its_name_its_id_and_what_became_of_it(void **state)
{
	const struct summary_process inside = { .pid = 4711, .comm = "hog", .ns_pid = 1 };
	struct summary_group g[] = {
		{ .path = "/docker/0123456789ab",
		  .name = "web",
		  .id = "0123456789ab",
		  .engine = "docker",
		  .image = "hog:1",
		  .restarts = 2,
		  .gone_ns = 1500 * MS },
		{ .path = "/system.slice/x.service" },
	};
	struct run_summary s = fixture_summary();

	s.target = RUN_GROUPS;
	s.groups = g;
	s.n_groups = 1;
	s.n_members = 9;
	s.processes = &inside;
	s.n_processes = 1;
	assert_has(text_of(&s), "container web, 2025-");
	assert_has(text_of(&s), "  docker 0123456789ab, hog:1, /docker/0123456789ab\n");
	assert_has(text_of(&s), "  restarted 2 times during the run\n");
	assert_has(text_of(&s), "  gone for the last 1.5 s\n");
	assert_has(text_of(&s), "  9 processes in it during the run\n");
	assert_has(text_of(&s), "pid 1 inside");
	s.n_groups = 2;
	assert_has(text_of(&s), "container web and 1 more, 2025-");
	assert_has(text_of(&s), "  control group x.service: /system.slice/x.service\n");
}

static void locations_without_a_name_add_up(void **state)
{
	struct run_summary s = fixture_summary();

	s.symbols.locations = 1600;
	s.symbols.ranges = 20;
	s.symbols.offset_only = 45;
	s.symbols.no_module = 275;
	assert_has(text_of(&s), "  40 unsymbolized in libjemalloc.so.2: no symbol table\n");
	assert_has(text_of(&s), "  25 unsymbolized in other images\n");
	assert_has(text_of(&s), " 275 unsymbolized in no mapping: [unknown]\n");
}

static void tables_without_room_are_shown(void **state)
{
	struct run_summary s = fixture_summary();

	s.unwind.known = true;
	s.unwind.budget_bytes = 4 << 20;
	s.unwind.evicted = 7;
	assert_has_not(text_of(&s), "Unwinding"); /* nobody was in need of them */
	s.unwind.evicted_in_use = 3;
	s.unwind.refused = 1;
	assert_has(text_of(&s),
		   "4.0 MiB for unwind tables is too little (--mem): 3 evicted while in use, "
		   "1 refused");
}

static void cost_of_our_own_probes_is_shown(void **state)
{
	struct run_summary s = fixture_summary();

	assert_has_not(text_of(&s), "allocation probes");
	s.oncpu.probe_samples = 456;
	assert_has(text_of(&s), "50.0% of the samples are in the traps of allocation probes");
}

static void cost_is_shown_beside_its_limit(void **state)
{
	struct run_summary s = fixture_summary();

	assert_has(text_of(&s), "2.1% of one CPU (limit 5%) in the target; 0.01% in untraced");
	assert_has_not(text_of(&s), "Over the limit");
	s.cost.limit_percent = 2; /* and what that gives in a second: 220 ms, of 206 */
	assert_has_not(text_of(&s), "Over the limit");
	s.cost.limit_percent = 1;
	assert_has(text_of(&s), "Over the limit");
	s.cost.limit_percent = 0; /* something was asked for whatever it costs */
	assert_has_not(text_of(&s), "(limit");
	assert_has_not(text_of(&s), "Over the limit");
}

static void end_of_the_command_is_shown(void **state)
{
	struct run_summary s = fixture_summary();

	s.child.known = true;
	s.child.exited = true;
	s.child.code = 3;
	assert_has(text_of(&s), "the command's exit status: 3");
	s.child.exited = false;
	s.child.signal = 11;
	assert_has(text_of(&s), "killed by signal 11");
}

static void overcounted_time_is_not_hidden(void **state)
{
	struct run_summary s = fixture_summary();

	s.time.runnable_ns += 1000 * MS;
	assert_has(text_of(&s), "overcounted");
	assert_has(text_of(&s), "940.0 ms");
}

static void garbage_collection_has_a_row_a_runtime(void **state)
{
	struct run_summary s = fixture_summary();

	assert_has_not(text_of(&s), "garbage collection takes");
	s.oncpu.samples = 1000;
	s.oncpu.gc_by_runtime[GC_CPYTHON] = 123;
	s.oncpu.gc_by_runtime[GC_GO] = 0;
	assert_has(text_of(&s), "CPython: garbage collection takes 12.3% of the time on CPU");
	s.langs.processes = s.langs.unreadable = 0;
	assert_has(text_of(&s), "Languages       CPython: garbage collection takes 12.3%");
	assert_has_not(text_of(&s), "Go: garbage");
}

/* A line by its r2 where every call was traced; of estimates how many blocks say so. */
static void the_evidence_of_a_leak_is_that_of_its_tier(void **state)
{
	static const struct site_row site = { .function = "leak_here" };
	struct run_summary s = fixture_summary();
	struct summary_leak *l = &s.alloc.leaks[0];

	(void)state;
	s.alloc.n_leaks = 1;
	*l = (struct summary_leak){ .site = site,
				    .live = 1 << 20,
				    .slope = 1000,
				    .slope_low = 800,
				    .slope_high = 1300,
				    .r2 = 0.98,
				    .survived = 1 };
	assert_has(text_of(&s), ", r2 0.980, steadily since second 0\n");
	l->sampled = 57;
	l->ended = 1;
	l->sampled_age_s = 37.5;
	assert_has_not(text_of(&s), "r2 0.980");
	assert_has(text_of(&s),
		   "57 of 58 sampled blocks that reached an age of 37.5 s are still in use\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_evidence_of_a_leak_is_that_of_its_tier),
		cmocka_unit_test(everything_known_is_shown),
		cmocka_unit_test(garbage_collection_has_a_row_a_runtime),
		cmocka_unit_test(verdict_is_the_second_and_the_last_paragraph),
		cmocka_unit_test(locks_are_listed_with_who_held_them),
		cmocka_unit_test(waits_are_listed_with_who_ended_them),
		cmocka_unit_test(system_calls_are_listed_with_their_errors),
		cmocka_unit_test(events_are_listed_with_what_their_stacks_stand_for),
		cmocka_unit_test(calls_are_listed_with_their_times_and_what_became_of_the_others),
		cmocka_unit_test(run_queue_delay_is_listed_by_who_ran_instead),
		cmocka_unit_test(files_and_peers_that_were_waited_for_are_listed),
		cmocka_unit_test(goroutines_are_listed_by_what_they_wait_for),
		cmocka_unit_test(the_first_screen_has_at_most_40_lines),
		cmocka_unit_test(tracing_of_a_short_run_costs_time_and_no_share),
		cmocka_unit_test(a_diagnosis_says_what_the_verdict_does_not),
		cmocka_unit_test(the_verdict_again_makes_room_before_what_stands_nowhere_else),
		cmocka_unit_test(what_matters_is_on_the_first_screen_of_the_fullest_run),
		cmocka_unit_test(estimates_have_their_intervals_on_the_first_screen),
		cmocka_unit_test(no_table_of_allocations_is_a_heading_alone),
		cmocka_unit_test(a_command_of_several_lines_is_shown_in_one),
		cmocka_unit_test(a_run_that_took_longer_than_asked_says_why),
		cmocka_unit_test(colour_is_for_the_verdict_and_for_what_is_lost),
		cmocka_unit_test(no_line_is_wider_than_100_columns),
		cmocka_unit_test(long_name_loses_its_arguments_or_its_middle),
		cmocka_unit_test(hostile_names_reach_no_terminal),
		cmocka_unit_test(empty_run_is_short_and_says_so),
		cmocka_unit_test(no_sample_at_all_is_few_samples),
		cmocka_unit_test(busy_target_is_not_asked_for_more_load),
		cmocka_unit_test(time_that_memscope_stopped_it_is_told_apart),
		cmocka_unit_test(processes_of_a_host_are_listed),
		cmocka_unit_test(labels_of_programs_have_their_shares),
		cmocka_unit_test(processes_of_containers_have_their_names_and_both_pids),
		cmocka_unit_test(a_container_has_its_name_its_id_and_what_became_of_it),
		cmocka_unit_test(locations_without_a_name_add_up),
		cmocka_unit_test(tables_without_room_are_shown),
		cmocka_unit_test(cost_of_our_own_probes_is_shown),
		cmocka_unit_test(cost_is_shown_beside_its_limit),
		cmocka_unit_test(end_of_the_command_is_shown),
		cmocka_unit_test(overcounted_time_is_not_hidden),
	};
	struct run_summary s = fixture_summary();

	if (getenv("SHOW"))
		puts(text_of(&s));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
