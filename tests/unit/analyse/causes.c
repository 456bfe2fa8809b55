#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "analyse/causes.h"

#define S_NS 1000000000LL

static const struct summary_source oncpu_ok[] = { { "oncpu", SOURCE_OK, NULL } };
static const struct idle_pool pool = { .name = "a pool", .loop = "loop" };

/* Ten seconds on two CPUs, of which it used `cpu` of one, was ready to run for `runnable` and others had `others`. */
static struct run_summary run(double cpu, double runnable, double others)
{
	struct run_summary s = {
		.duration_ns = 10 * S_NS,
		.n_processes = 1,
		.seen_processes = 1,
		.n_cpus = 2,
		.sources = oncpu_ok,
		.n_sources = 1,
		.cpus = { .known = true, .n = 2, .throttled_ns = -1 },
	};

	s.time.known = true;
	s.time.wall_ns = 40 * S_NS;
	s.time.oncpu_ns = (int64_t)(cpu * 10 * S_NS);
	s.time.runnable_ns = (int64_t)(runnable * 10 * S_NS);
	s.cpus.busy_ns = s.time.oncpu_ns + (int64_t)(others * 10 * S_NS);
	s.cpus.idle_ns = 20 * S_NS - s.cpus.busy_ns;
	s.oncpu.samples = 1000;
	return s;
}

static enum verdict_kind first(const struct run_summary *s)
{
	struct causes c;

	causes_find(s, &c);
	return c.kinds[0];
}

static void who_waits_while_others_compute_is_short_of_cpu(void **state)
{
	struct run_summary s = run(1.0, 1.0, 1.0);

	assert_int_equal(first(&s), VERDICT_STARVED);
}

static void who_waits_for_its_own_threads_is_not(void **state)
{
	/* Eight threads that compute, on two CPUs, alone. */
	struct run_summary s = run(1.95, 6.0, 0.05);

	assert_int_equal(first(&s), VERDICT_CPU);
}

static void where_a_cpu_was_idle_none_was_short(void **state)
{
	struct run_summary s = run(0.8, 0.5, 0.5);

	assert_int_equal(first(&s), VERDICT_CPU);
}

static void python_is_not_short_of_a_cpu_that_its_gil_would_not_let_it_use(void **state)
{
	struct run_summary s = run(0.97, 0.9, 1.0);

	assert_int_equal(first(&s), VERDICT_STARVED);
	s.langs.processes = 1;
	s.langs.name = "CPython 3.11.2";
	assert_int_equal(first(&s), VERDICT_CPU);
	/* Half of a CPU, because somebody else had the other half. */
	s = run(0.5, 0.5, 1.5);
	s.langs.processes = 1;
	s.langs.name = "CPython 3.11.2";
	assert_int_equal(first(&s), VERDICT_STARVED);
}

static void who_hardly_ran_did_not_want_to_but_for_a_quota(void **state)
{
	struct run_summary s = run(0.01, 0.6, 1.9);

	assert_int_equal(first(&s), VERDICT_IDLE);
	s.cpus.throttled_ns = 6 * S_NS;
	assert_int_equal(first(&s), VERDICT_STARVED);
}

static void who_was_pushed_off_its_cpu_wanted_it_however_little_it_had(void **state)
{
	/* A compiler on two CPUs with thirty others. */
	struct run_summary s = run(0.03, 0.9, 1.9);
	struct causes c;

	assert_int_equal(first(&s), VERDICT_IDLE);
	s.time.preempted_ns = 8 * S_NS;
	causes_find(&s, &c);
	assert_int_equal(c.kinds[0], VERDICT_STARVED);
	assert_true(c.starved > 0.96 && c.starved < 0.98);
}

static void who_waits_a_little_on_a_busy_machine_is_not_short_of_cpu(void **state)
{
	/* A cache that wakes up often: 8 % of the run is little, though it is 40 % of the time it wanted a CPU. */
	struct run_summary s = run(0.12, 0.08, 1.8);

	assert_int_equal(first(&s), VERDICT_MIXED);
	s = run(0.3, 0.25, 1.6);
	assert_int_equal(first(&s), VERDICT_STARVED);
	/* By a quota the same is worth saying: somebody has set it. */
	s = run(0.12, 0.08, 0.1);
	s.cpus.throttled_ns = S_NS * 8 / 10;
	assert_int_equal(first(&s), VERDICT_STARVED);
}

static void who_is_stopped_waits_however_long_it_lasts(void **state)
{
	struct run_summary s = run(0.1, 0, 0);
	struct site_row wait = {
		.function = "serve", .wait = WAIT_STOPPED, .value = 6 * S_NS, .count = 1
	};

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	assert_int_equal(first(&s), VERDICT_WAITING);
	assert_false(summary_wait_is_idle(&s, &wait));
	wait.wait = WAIT_SOCKET; /* nobody asks it for anything */
	assert_int_equal(first(&s), VERDICT_MIXED);
}

static void quota_holds_back_where_other_cpus_are_idle(void **state)
{
	struct run_summary s = run(0.2, 0.8, 0);
	struct causes c;

	s.cpus.throttled_ns = 8 * S_NS;
	causes_find(&s, &c);
	assert_int_equal(c.kinds[0], VERDICT_STARVED);
	assert_true(c.throttled);
	/* Beside other programs: it used up what it may have, and lost the rest to them. */
	s = run(0.2, 0.8, 1.8);
	s.cpus.throttled_ns = S_NS / 10;
	s.cpus.used_up = 0.9;
	causes_find(&s, &c);
	assert_true(c.throttled);
}

static void mutex_is_contended_however_long_it_is_held(void **state)
{
	struct run_summary s = run(0.2, 0, 0);
	struct site_row wait = { .function = "add",
				 .wait = WAIT_LOCK,
				 .role = WAIT_ROLE_MUTEX,
				 .value = 9 * S_NS,
				 .count = 1 };

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	assert_int_equal(first(&s), VERDICT_CONTENDED);
	assert_false(summary_wait_is_idle(&s, &wait));
	/* A thread that is to be given something by another one of them; a worker of a pool. */
	wait.role = WAIT_ROLE_CONDITION;
	wait.count = 9000;
	assert_int_equal(first(&s), VERDICT_MIXED);
	wait.role = WAIT_ROLE_IDLE;
	wait.pool = &pool;
	assert_int_equal(first(&s), VERDICT_MIXED);
	assert_true(summary_wait_is_idle(&s, &wait));
}

static void futex_is_a_contended_lock_where_its_value_says_so(void **state)
{
	struct run_summary s = run(0.2, 0, 0);
	const struct site_row wait = { .function = "book",
				       .module = "app",
				       .wait = WAIT_LOCK,
				       .value = 9 * S_NS,
				       .count = 9000 };
	struct lock_row row = {
		.kind = "", .name = "", .function = "book", .module = "app", .waited_ns = 8 * S_NS
	};

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	assert_int_equal(first(&s), VERDICT_WAITING);
	s.locks.rows = &row;
	s.locks.n = 1;
	assert_int_equal(first(&s), VERDICT_CONTENDED);
	row.waited_ns = 4 * S_NS;
	assert_int_equal(first(&s), VERDICT_WAITING);
}

/* A lock that is waited for, and a write to disk, which are waited for `lock_s` and `disk_s`. */
struct commit {
	struct site_row waits[2];
};

static struct commit commit(double lock_s, double disk_s)
{
	return (struct commit){ { { .function = "commit",
				    .module = "app",
				    .wait = WAIT_LOCK,
				    .role = WAIT_ROLE_MUTEX,
				    .value = (int64_t)(lock_s * S_NS),
				    .count = 100 },
				  { .function = "write_log",
				    .module = "app",
				    .wait = WAIT_DISK,
				    .value = (int64_t)(disk_s * S_NS),
				    .count = 100 } } };
}

static void the_disk_that_a_lock_hands_on_is_the_cause(void **state)
{
	struct run_summary s = run(0.02, 0, 0);
	struct commit w = commit(9, 8);
	struct causes c;

	s.offcpu.waits = w.waits;
	s.offcpu.n_waits = 2;
	assert_int_equal(first(&s), VERDICT_CONTENDED);
	s.offcpu.mutex = &w.waits[0];
	s.offcpu.under_mutex = &w.waits[1];
	causes_find(&s, &c);
	assert_int_equal(c.n, 2);
	assert_int_equal(c.kinds[0], VERDICT_WAITING);
	assert_int_equal(c.kinds[1], VERDICT_CONTENDED);
	assert_ptr_equal(c.wait, &w.waits[1]);
	/* Several at a time: not under one lock; or too little for all that was waited. */
	w = commit(9, 15);
	assert_int_equal(first(&s), VERDICT_CONTENDED);
	w = commit(9, 3);
	assert_int_equal(first(&s), VERDICT_CONTENDED);
}

static void what_the_owner_of_a_lock_waits_for_is_the_cause(void **state)
{
	struct run_summary s = run(0.02, 0, 0);
	struct commit w = commit(9, 8);
	struct lock_row row = { .kind = "mutex",
				.name = "",
				.function = "commit",
				.module = "app",
				.waited_ns = 9 * S_NS,
				.known_ns = 9 * S_NS,
				.held_in = "write_log",
				.held_module = "app",
				.held_ns = 9 * S_NS,
				.held_in_ns = 9 * S_NS };

	s.offcpu.waits = w.waits;
	s.offcpu.n_waits = 2;
	s.locks.rows = &row;
	s.locks.n = 1;
	assert_int_equal(first(&s), VERDICT_WAITING);
	w.waits[1].wait = WAIT_SOCKET; /* it asks somebody else */
	assert_int_equal(first(&s), VERDICT_WAITING);
	w.waits[1].wait = WAIT_TIMER; /* its own doing */
	assert_int_equal(first(&s), VERDICT_CONTENDED);
	/* Elsewhere, whatever seems to be under the lock. */
	w.waits[1].wait = WAIT_DISK;
	row.held_in = "sort";
	s.offcpu.mutex = &w.waits[0];
	s.offcpu.under_mutex = &w.waits[1];
	assert_int_equal(first(&s), VERDICT_CONTENDED);
}

static void an_event_loop_at_rest_does_not_hide_who_is_held_up(void **state)
{
	struct run_summary s = run(0.02, 0, 0);
	const struct summary_endpoint peer = { "127.0.0.1:5432", true, 9 };
	struct site_row waits[] = { { .function = "loop",
				      .leaf = "do_epoll_wait",
				      .wait = WAIT_EVENTS,
				      .value = 9 * S_NS,
				      .count = 90 },
				    { .function = "write_log",
				      .leaf = "io_schedule",
				      .wait = WAIT_DISK,
				      .value = 8 * S_NS,
				      .count = 400 } };

	s.offcpu.waits = waits;
	s.offcpu.n_waits = 2;
	assert_int_equal(first(&s), VERDICT_WAITING);
	/* For a socket: whoever has made the connection waits for an answer; others may wait to be asked. */
	waits[1].wait = WAIT_SOCKET;
	assert_int_equal(first(&s), VERDICT_IDLE);
	s.endpoints.rows = &peer;
	s.endpoints.n = 1;
	assert_int_equal(first(&s), VERDICT_WAITING);
}

static void a_lesser_wait_beside_computing_is_named_where_it_surely_holds_up(void **state)
{
	struct run_summary s = run(1.0, 0, 0);
	struct commit w = commit(0, 8);
	struct causes c;

	s.offcpu.waits = w.waits;
	s.offcpu.n_waits = 2;
	causes_find(&s, &c);
	assert_int_equal(c.n, 2);
	assert_int_equal(c.kinds[0], VERDICT_CPU);
	assert_int_equal(c.kinds[1], VERDICT_WAITING);
	w.waits[1].wait = WAIT_SOCKET;
	causes_find(&s, &c);
	assert_int_equal(c.n, 1);
}

static void parent_of_profiled_children_is_not_waiting(void **state)
{
	struct run_summary s = run(0.3, 0, 0);
	const struct site_row wait = {
		.function = "reap", .wait = WAIT_CHILD, .value = 4 * S_NS, .count = 40
	};

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	assert_int_equal(first(&s), VERDICT_WAITING);
	s.seen_processes = 40;
	assert_int_equal(first(&s), VERDICT_MIXED);
}

static void lock_of_who_is_short_of_cpu_is_what_follows(void **state)
{
	struct run_summary s = run(0.2, 0.8, 0);
	struct site_row wait = {
		.function = "write", .wait = WAIT_GIL, .value = 3 * S_NS, .count = 300
	};
	struct causes c;

	s.cpus.throttled_ns = 8 * S_NS;
	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	causes_find(&s, &c);
	assert_int_equal(c.kinds[0], VERDICT_STARVED);
	assert_int_equal(c.kinds[1], VERDICT_CONTENDED);
	wait.value = 30 * S_NS;
	assert_int_equal(first(&s), VERDICT_CONTENDED);
}

static void poll_for_a_single_peer_is_a_wait_for_it(void **state)
{
	struct run_summary s = run(0.1, 0, 0);
	struct site_row wait = { .function = "ask",
				 .leaf = "do_sys_poll",
				 .wait = WAIT_EVENTS,
				 .value = 8 * S_NS,
				 .count = 400 };

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	assert_int_equal(first(&s), VERDICT_MIXED);
	assert_true(summary_wait_is_idle(&s, &wait));
	s.endpoints.polls = 20;
	s.endpoints.polls_of_a_peer = 19;
	assert_int_equal(first(&s), VERDICT_WAITING);
	assert_false(summary_wait_is_idle(&s, &wait));
	wait.leaf = "ep_poll"; /* of any of many */
	assert_int_equal(first(&s), VERDICT_MIXED);
	wait.leaf = "do_sys_poll";
	s.endpoints.polls_of_a_peer = 10; /* others poll, too */
	assert_int_equal(first(&s), VERDICT_MIXED);
}

/* An event loop of which the connections were looked at 40 times. */
static struct run_summary loop_run(double cpu, const struct summary_peer *peer)
{
	static const struct site_row wait = { .function = "uv__io_poll",
					      .leaf = "ep_poll",
					      .wait = WAIT_EVENTS,
					      .value = 9 * S_NS,
					      .count = 400 };
	struct run_summary s = run(cpu, 0, 0);

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	s.peers.rows = peer;
	s.peers.n = 1;
	s.peers.looks = 40;
	return s;
}

static void loop_waits_for_whom_it_has_asked_while_requests_wait(void **state)
{
	struct summary_peer peer = { "10.0.0.3:5432", 38, 36, 38, 4000, 9000, 0 };
	struct run_summary s = loop_run(0.04, &peer);

	s.peers.waiting = s.peers.held = 36;
	s.peers.inbound = 72;
	assert_int_equal(first(&s), VERDICT_WAITING);
	peer.for_inbound = 10; /* a fourth of the time: mostly it has nothing to do */
	assert_int_equal(first(&s), VERDICT_IDLE);
	/* A busy loop: they wait for it rather than for a peer that answers at once. */
	s = loop_run(0.6, &peer);
	peer.for_inbound = 36;
	s.peers.waiting = 40;
	s.peers.inbound = 400;
	assert_int_equal(first(&s), VERDICT_MIXED);
	peer.requests = 300; /* most of them wait for the peer after all */
	assert_int_equal(first(&s), VERDICT_WAITING);
	s.peers.looks = 9; /* too few to say */
	assert_int_equal(first(&s), VERDICT_MIXED);
}

static void loop_that_asks_again_and_again_waits_and_who_waits_for_news_is_idle(void **state)
{
	struct summary_peer peer = { "10.0.0.3:6379", 39, 0, 39, 10, 20, 30 };
	struct run_summary s = loop_run(0.04, &peer);

	assert_int_equal(first(&s), VERDICT_WAITING);
	peer.age_ms = 500; /* a queue's blocking read, of a second */
	assert_int_equal(first(&s), VERDICT_IDLE);
	peer.age_ms = 10;
	peer.answers = 1; /* once, and nobody has answered since */
	assert_int_equal(first(&s), VERDICT_IDLE);
	peer.answers = 30;
	peer.looks = 20; /* now and then */
	assert_int_equal(first(&s), VERDICT_IDLE);
}

static void threads_say_better_what_they_wait_for_than_connections(void **state)
{
	struct summary_peer peer = { "10.0.0.3:6379", 39, 0, 39, 10, 20, 30 };
	struct run_summary s = loop_run(0.04, &peer);
	struct site_row wait = {
		.function = "ask", .wait = WAIT_SOCKET, .value = 8 * S_NS, .count = 400
	};
	struct causes c;

	s.offcpu.waits = &wait;
	causes_find(&s, &c);
	assert_int_equal(c.kinds[0], VERDICT_WAITING);
	assert_null(c.peer);
	wait = (struct site_row){
		.function = "park", .wait = WAIT_LOCK, .value = 8 * S_NS, .count = 20
	};
	causes_find(&s, &c); /* idle, by its length */
	assert_ptr_equal(c.peer, &peer);
}

static void tasks_that_take_turns_at_a_lock_are_contended(void **state)
{
	struct task_row row = { .function = "add (app.py)",
				.awaits = "Lock.acquire (locks.py)",
				.wait = TASK_WAIT_LOCK,
				.seen = 200,
				.looks = 39,
				.left = 20 };
	struct run_summary s = run(0.04, 0, 0);

	s.tasks.rows = &row;
	s.tasks.n = 1;
	s.tasks.looks = 40;
	assert_int_equal(first(&s), VERDICT_CONTENDED);
	row.left = 1; /* parked there: nobody gets it */
	assert_int_equal(first(&s), VERDICT_IDLE);
	row.left = 20;
	row.looks = 12; /* now and then */
	assert_int_equal(first(&s), VERDICT_IDLE);
	row.looks = 39;
	row.wait = TASK_WAIT_TURN; /* a semaphore is there to hold up */
	assert_int_equal(first(&s), VERDICT_IDLE);
}

static void several_causes_are_ranked_and_all_of_them_are_kept(void **state)
{
	struct run_summary s = run(1.5, 0.1, 0.1);
	const struct site_row wait = {
		.function = "add", .wait = WAIT_GIL, .value = 9 * S_NS, .count = 9000
	};
	struct causes c;

	s.offcpu.waits = &wait;
	s.offcpu.n_waits = 1;
	s.oncpu.gc_samples = 400;
	causes_find(&s, &c);
	assert_int_equal(c.n, 3);
	assert_int_equal(c.kinds[0], VERDICT_GC);
	assert_int_equal(c.kinds[1], VERDICT_CONTENDED);
	assert_int_equal(c.kinds[2], VERDICT_CPU);
}

static void time_that_the_runtime_counts_for_its_collections_is_a_cause(void **state)
{
	struct run_summary s = run(0.9, 0, 0);
	struct causes c;

	(void)state;
	s.gc = (struct gc_totals){
		.n = 1, .rows[0] = { .runtime = "GHC", .seen_ns = 10 * S_NS, .time_ns = 3 * S_NS }
	};
	causes_find(&s, &c);
	assert_int_equal(c.kinds[0], VERDICT_GC);
	assert_float_equal(c.gc_stopped, 0.3, 1e-9);
	s.gc.rows[0].time_ns = 2 * S_NS;
	assert_int_equal(first(&s), VERDICT_CPU);
	/* An estimate counts for what it is at least: 3 of 4 looks say nothing, 30 of 40 do. */
	s.gc.rows[0].time_ns = GC_UNKNOWN;
	s.gc.rows[0].looked_ns = 10 * S_NS;
	s.gc.rows[0].looks = 4;
	s.gc.rows[0].collecting = 3;
	s.gc.rows[0].found = 1;
	assert_int_equal(first(&s), VERDICT_CPU);
	s.gc.rows[0].looks = 40;
	s.gc.rows[0].collecting = s.gc.rows[0].found = 30;
	assert_int_equal(first(&s), VERDICT_GC);
}

static void goroutines_are_held_up_as_threads_are(void **state)
{
	struct run_summary s = run(0.02, 0, 0);
	struct goroutine_row rows[] = {
		{ .at = { .function = "main.work",
			  .role = WAIT_ROLE_CONDITION,
			  .value = 90 * S_NS,
			  .count = 90000 },
		  .reason = "chan receive",
		  .peer = "",
		  .lock = "",
		  .own = true,
		  .waits = true },
		{ .at = { .function = "net/http.(*persistConn).readLoop",
			  .wait = WAIT_SOCKET,
			  .value = 9 * S_NS,
			  .count = 90 },
		  .reason = "IO wait",
		  .peer = "10.0.0.3:80",
		  .lock = "",
		  .waits = true },
		{ .at = { .function = "main.ask",
			  .wait = WAIT_SOCKET,
			  .value = 8 * S_NS,
			  .count = 90 },
		  .reason = "IO wait",
		  .peer = "10.0.0.3:80",
		  .lock = "",
		  .own = true,
		  .waits = true },
	};
	struct causes c;

	(void)state;
	s.goroutines.rows = rows;
	s.goroutines.n_rows = 3;
	causes_find(&s, &c);
	assert_int_equal(c.kinds[0], VERDICT_WAITING);
	assert_ptr_equal(c.wait, &rows[2].at); /* the program's own function says more */
	assert_ptr_equal(causes_goroutines(&s, c.wait), &rows[2]);
	rows[2].at.count = rows[1].at.count = 1; /* nobody has answered, or was asked */
	assert_int_equal(first(&s), VERDICT_IDLE);
	rows[0].at.role = WAIT_ROLE_MUTEX;
	causes_find(&s, &c);
	assert_int_equal(c.kinds[0], VERDICT_CONTENDED);
	assert_ptr_equal(c.lock, &rows[0].at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_while_others_compute_is_short_of_cpu),
		cmocka_unit_test(who_waits_for_its_own_threads_is_not),
		cmocka_unit_test(where_a_cpu_was_idle_none_was_short),
		cmocka_unit_test(python_is_not_short_of_a_cpu_that_its_gil_would_not_let_it_use),
		cmocka_unit_test(who_hardly_ran_did_not_want_to_but_for_a_quota),
		cmocka_unit_test(who_was_pushed_off_its_cpu_wanted_it_however_little_it_had),
		cmocka_unit_test(who_waits_a_little_on_a_busy_machine_is_not_short_of_cpu),
		cmocka_unit_test(who_is_stopped_waits_however_long_it_lasts),
		cmocka_unit_test(quota_holds_back_where_other_cpus_are_idle),
		cmocka_unit_test(mutex_is_contended_however_long_it_is_held),
		cmocka_unit_test(futex_is_a_contended_lock_where_its_value_says_so),
		cmocka_unit_test(the_disk_that_a_lock_hands_on_is_the_cause),
		cmocka_unit_test(what_the_owner_of_a_lock_waits_for_is_the_cause),
		cmocka_unit_test(an_event_loop_at_rest_does_not_hide_who_is_held_up),
		cmocka_unit_test(a_lesser_wait_beside_computing_is_named_where_it_surely_holds_up),
		cmocka_unit_test(parent_of_profiled_children_is_not_waiting),
		cmocka_unit_test(lock_of_who_is_short_of_cpu_is_what_follows),
		cmocka_unit_test(poll_for_a_single_peer_is_a_wait_for_it),
		cmocka_unit_test(time_that_the_runtime_counts_for_its_collections_is_a_cause),
		cmocka_unit_test(goroutines_are_held_up_as_threads_are),
		cmocka_unit_test(loop_waits_for_whom_it_has_asked_while_requests_wait),
		cmocka_unit_test(
			loop_that_asks_again_and_again_waits_and_who_waits_for_news_is_idle),
		cmocka_unit_test(threads_say_better_what_they_wait_for_than_connections),
		cmocka_unit_test(tasks_that_take_turns_at_a_lock_are_contended),
		cmocka_unit_test(several_causes_are_ranked_and_all_of_them_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
