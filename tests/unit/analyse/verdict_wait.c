#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "unit/run_fixture.h"

static void file_and_peer_are_named_where_they_are_nearly_always_the_same(void **state)
{
	struct run_summary s = run(0.1);
	struct summary_endpoint ends[] = { { "10.0.0.3:5432", true, 9 },
					   { "/var/lib/journal", false, 8 } };
	struct site_row wait = {
		.function = "ask", .wait = WAIT_SOCKET, .value = 8 * S_NS, .count = 400
	};

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	assert_null(strstr(verdict_of(&s).sentence, "("));
	s.endpoints.rows = ends;
	s.endpoints.n = 2;
	assert_says(verdict_of(&s).sentence,
		    "waited 8.0 s for a socket (10.0.0.3:5432), most of it in ask");
	wait.wait = WAIT_DISK;
	assert_says(verdict_of(&s).sentence, "for disk (/var/lib/journal)");
	ends[0].peer = false; /* another file half of the time */
	assert_says(verdict_of(&s).sentence, "for disk, most of it in ask");
}

static void who_runs_while_others_wait_for_the_gil_is_named(void **state)
{
	struct run_summary s = run(0.98);
	struct top_row top = { .name = "Handler.render (app.py)",
			       .module = "[Python]",
			       .self = (int64_t)s.oncpu.samples * 3 / 4 };
	const struct site_row wait = {
		.function = "serve", .wait = WAIT_GIL, .value = 8 * S_NS, .count = 4000
	};
	const struct lock_row gil = { .kind = "GIL",
				      .name = "",
				      .function = "other",
				      .waited_ns = 10 * S_NS,
				      .known_ns = 9 * S_NS,
				      .owner = 77,
				      .owner_ns = 9 * S_NS,
				      .owner_name = "",
				      .held_in = "crunch (app.py)",
				      .held_caller = "",
				      .held_ns = 5 * S_NS,
				      .held_in_ns = 5 * S_NS };

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	assert_says(verdict_of(&s).sentence, "the GIL");
	assert_null(strstr(verdict_of(&s).sentence, "meanwhile"));
	s.oncpu.interpreted = &top;
	s.oncpu.n_interpreted = 1;
	assert_says(
		verdict_of(&s).sentence,
		"for the GIL, most of it in serve; meanwhile Handler.render (app.py) ran most, 75% of");
	top.module = "[Ruby]";
	assert_null(strstr(verdict_of(&s).sentence, "meanwhile"));
	/* Who had it is known: what ran beside is no guess that anybody needs. */
	top.module = "[Python]";
	s.locks.rows = &gil;
	s.locks.n = 1;
	assert_says(
		verdict_of(&s).sentence,
		"for the GIL, most of it in serve; thread 77 held it for 90% of that, in crunch (app.py)");
	assert_null(strstr(verdict_of(&s).sentence, "meanwhile"));
}

static void the_lock_and_who_held_it_are_named_where_they_are_known(void **state)
{
	struct run_summary s = run(0.3);
	struct lock_row row = { .function = "add_one",
				.module = "redis-server",
				.name = "table_lock",
				.kind = "mutex",
				.owner = 4712,
				.owner_name = "keeper",
				.waited_ns = 8 * S_NS,
				.known_ns = 7 * S_NS,
				.owner_ns = 6 * S_NS,
				.n_owners = 3,
				.held_in = "rebuild",
				.held_caller = "keeper_main",
				.held_ns = 4 * S_NS,
				.held_in_ns = 3 * S_NS };
	const struct site_row wait = { .function = "add_one",
				       .module = "redis-server",
				       .wait = WAIT_LOCK,
				       .role = WAIT_ROLE_MUTEX,
				       .value = 8 * S_NS,
				       .count = 4000 };

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	s.locks.rows = &row;
	s.locks.n = 1;
	assert_says(
		verdict_of(&s).sentence,
		"waited 8.0 s for the lock table_lock, most of it in add_one; thread 4712 (keeper) "
		"held it for 75% of that, in rebuild (called by keeper_main).");
	row.owner_ns = 3 * S_NS;
	row.held_in_ns = S_NS;
	assert_says(verdict_of(&s).sentence, "in add_one; 3 threads held it in turn.");
	/* Little of it is known; the name is of one lock of many. */
	row.known_ns = row.owner_ns = 3 * S_NS;
	row.name = "";
	assert_says(verdict_of(&s).sentence,
		    "for a lock that others of them hold, most of it in add_one.");
	row.name = "table_lock";
	row.waited_ns = 3 * S_NS;
	assert_says(verdict_of(&s).sentence,
		    "for a lock that others of them hold, most of it in add_one.");
	row.waited_ns = 8 * S_NS;
	row.known_ns = row.owner_ns = 8 * S_NS;
	assert_says(verdict_of(&s).sentence, "4712");
	row.module = "other.so";
	assert_null(strstr(verdict_of(&s).sentence, "4712"));
}

static void who_runs_while_others_wait_for_the_gvl_is_named(void **state)
{
	struct run_summary s = run(0.98);
	struct top_row top = { .name = "Job#run (app.rb)",
			       .module = "[Ruby]",
			       .self = (int64_t)s.oncpu.samples * 3 / 4 };
	const struct site_row wait = {
		.function = "Job#run (app.rb)", .wait = WAIT_GVL, .value = 8 * S_NS, .count = 4000
	};

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	s.oncpu.interpreted = &top;
	s.oncpu.n_interpreted = 1;
	assert_says(
		verdict_of(&s).sentence,
		"for Ruby's GVL, most of it in Job#run (app.rb); meanwhile Job#run (app.rb) ran most");
	top.module = "[Python]";
	assert_null(strstr(verdict_of(&s).sentence, "meanwhile"));
}

static void a_wait_in_code_without_names_is_named_after_its_caller(void **state)
{
	struct run_summary s = run(0.1);
	struct site_row wait = { .function = "[postgres+0x1e84f0]",
				 .module = "postgres",
				 .wait = WAIT_DISK,
				 .value = 8 * S_NS,
				 .count = 400 };

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	assert_says(verdict_of(&s).sentence, "for disk, most of it in postgres (no names).");
	wait.caller = "XLogFlush";
	assert_says(verdict_of(&s).sentence, "for disk, most of it in XLogFlush.");
}

static void what_is_waited_for_under_a_lock_comes_before_the_lock(void **state)
{
	struct run_summary s = run(0.01);
	const struct site_row waits[] = { { .function = "LWLockAcquireOrWait",
					    .module = "postgres",
					    .wait = WAIT_LOCK,
					    .role = WAIT_ROLE_MUTEX,
					    .value = 9 * S_NS,
					    .count = 90 },
					  { .function = "write_log",
					    .module = "postgres",
					    .wait = WAIT_DISK,
					    .value = 8 * S_NS,
					    .count = 90 } };
	struct verdict v;

	s.offcpu.waits = waits;
	s.offcpu.n_waits = 2;
	assert_says(verdict_of(&s).sentence, "is held up by a lock");
	s.offcpu.mutex = &waits[0];
	s.offcpu.under_mutex = &waits[1];
	v = verdict_of(&s);
	assert_int_equal(v.kind, VERDICT_WAITING);
	assert_says(v.sentence,
		    "and waited 8.0 s for disk, most of it in write_log; it holds a lock "
		    "meanwhile, for which others waited 9.0 s, most of it in "
		    "LWLockAcquireOrWait.");
	assert_says(v.next, "iostat");
}

static void a_monitors_owner_is_one_thread_or_several(void **state)
{
	struct run_summary s = run(0.1);
	const struct site_row wait = { .function = "book",
				       .module = "[Java]",
				       .wait = WAIT_MONITOR,
				       .role = WAIT_ROLE_MUTEX,
				       .value = 9 * S_NS,
				       .count = 90 };

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	s.monitors.owner = "keeper";
	s.monitors.waits = 400;
	s.monitors.held = 360;
	assert_says(verdict_of(&s).sentence,
		    "; thread keeper held it in 90% of 400 sampled waits.");
	s.monitors.held = 180;
	assert_says(verdict_of(&s).sentence,
		    "; several threads held it in turn, most often keeper (45% of");
	s.monitors.waits = 4;
	assert_null(strstr(verdict_of(&s).sentence, "keeper"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_and_peer_are_named_where_they_are_nearly_always_the_same),
		cmocka_unit_test(who_runs_while_others_wait_for_the_gil_is_named),
		cmocka_unit_test(the_lock_and_who_held_it_are_named_where_they_are_known),
		cmocka_unit_test(who_runs_while_others_wait_for_the_gvl_is_named),
		cmocka_unit_test(a_wait_in_code_without_names_is_named_after_its_caller),
		cmocka_unit_test(what_is_waited_for_under_a_lock_comes_before_the_lock),
		cmocka_unit_test(a_monitors_owner_is_one_thread_or_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
