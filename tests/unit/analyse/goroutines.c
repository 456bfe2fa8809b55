#include "analyse/goroutines.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type counts = { "goroutine", "count" };

static struct fixture f;
static struct goroutine_stack stacks[16];
static struct goroutine_row rows[16];
static uint32_t n;

static int set_up(void **state)
{
	(void)state;
	f = fixture_new(&counts, 1);
	n = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_free(&f);
	return 0;
}

static void add(const char *frames, const char *reason, const char *peer, int64_t time_ns)
{
	fixture_add1(&f, frames, 1);
	stacks[n] = (struct goroutine_stack){
		.stack = profile_sample(f.p, profile_n_samples(f.p) - 1).stack,
		.reason = reason,
		.peer = peer,
		.waits = strcmp(reason, "runnable") != 0,
		.now = 1,
		.time_ns = time_ns,
		.waits_n = 2,
		.longest_ns = time_ns / 2,
	};
	n++;
}

#define POLL                                                                                       \
	";internal/poll.(*FD).Read;internal/poll.runtime_pollWait;runtime.netpollblock;runtime.gopark"
#define SEMA ";sync.runtime_SemacquireMutex;runtime.semacquire1;runtime.gopark"

static void reasons_mean_locks_peers_and_new_work(void **state)
{
	(void)state;
	add(";main.book;sync.(*Mutex).lockSlow" SEMA, "semacquire", "", 90);
	add(";main.load;sync.(*RWMutex).RLock" SEMA, "semacquire", "", 80);
	add(";main.join;sync.(*WaitGroup).Wait;sync.runtime_Semacquire;runtime.gopark",
	    "semacquire", "", 70);
	add(";main.ask;net.(*conn).Read" POLL, "IO wait", "10.0.0.3:5432", 60);
	add(";main.serve;net.(*conn).Read" POLL, "IO wait", "", 50);
	add(";main.work;runtime.chanrecv2;runtime.gopark", "chan receive", "", 40);
	add(";main.pause;time.Sleep;runtime.gopark", "sleep", "", 30);
	add(";main.fetch;net/http.(*persistConn).roundTrip;runtime.selectgo;runtime.gopark",
	    "select", "", 20);
	add(";main.query;database/sql.(*DB).conn;runtime.selectgo;runtime.gopark", "select", "",
	    10);
	add(";main.old;sync.(*Mutex).Lock;runtime.gopark", "sync.Mutex.Lock", "", 5);
	assert_int_equal(goroutines_rank(f.d, stacks, n, rows, 16), n);
	/* What holds up comes first, by time: book, load, ask, fetch, query, old. */
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(goroutines_held_up(&rows[i]), i < 6);
	assert_string_equal(rows[0].at.function, "main.book");
	assert_int_equal(rows[0].at.role, WAIT_ROLE_MUTEX);
	assert_string_equal(rows[0].lock, "a sync.Mutex");
	assert_true(rows[0].own);
	assert_int_equal(rows[1].at.role, WAIT_ROLE_MUTEX);
	assert_string_equal(rows[1].lock, "a sync.RWMutex");
	assert_int_equal(rows[2].at.wait, WAIT_SOCKET);
	assert_string_equal(rows[2].at.function, "main.ask");
	assert_string_equal(rows[2].peer, "10.0.0.3:5432");
	assert_int_equal(rows[3].at.wait, WAIT_SOCKET);
	assert_string_equal(rows[3].at.function, "main.fetch");
	assert_int_equal(rows[4].at.role, WAIT_ROLE_MUTEX);
	assert_string_equal(rows[4].at.function, "main.query");
	assert_int_equal(rows[5].at.role, WAIT_ROLE_MUTEX);
	assert_int_equal(rows[6].at.role, WAIT_ROLE_JOIN);
	assert_int_equal(rows[7].at.wait, WAIT_EVENTS);
	assert_string_equal(rows[7].at.function, "main.serve");
	assert_int_equal(rows[8].at.role, WAIT_ROLE_CONDITION);
	assert_int_equal(rows[9].at.wait, WAIT_TIMER);
}

static void stacks_of_one_function_and_reason_are_one_row(void **state)
{
	(void)state;
	add(";main.a;main.book;sync.(*Mutex).lockSlow" SEMA, "semacquire", "", 10);
	add(";main.b;main.book;sync.(*Mutex).lockSlow" SEMA, "semacquire", "", 30);
	add(";main.book;time.Sleep;runtime.gopark", "sleep", "", 20);
	assert_int_equal(goroutines_rank(f.d, stacks, n, rows, 16), 2);
	assert_int_equal(rows[0].at.value, 40);
	assert_int_equal(rows[0].at.count, 4);
	assert_int_equal(rows[0].now, 2);
	assert_int_equal(rows[0].longest_ns, 15);
	assert_string_equal(rows[1].reason, "sleep");
	assert_int_equal(goroutines_rank(f.d, stacks, n, rows, 1), 1);
}

static void libraries_alone_are_named_by_what_they_are_for(void **state)
{
	(void)state;
	add(";runtime.goexit;net/http.(*persistConn).readLoop" POLL, "IO wait", "10.0.0.3:80", 10);
	add(";runtime.goexit;main.spin;runtime.mcall", "runnable", "", 99);
	assert_int_equal(goroutines_rank(f.d, stacks, n, rows, 16), 2);
	assert_string_equal(rows[0].at.function, "net/http.(*persistConn).readLoop");
	assert_false(rows[0].own);
	assert_false(goroutines_held_up(&rows[0]));
	/* Those that do not wait come last, and are held up by nothing. */
	assert_string_equal(rows[1].at.function, "main.spin");
	assert_int_equal(rows[1].at.role, WAIT_ROLE_CONDITION);
}

static void readers_wait_for_new_work(void **state)
{
	(void)state;
	add(";runtime.goexit;google.golang.org/grpc/internal/transport.(*http2Client).reader" POLL,
	    "IO wait", "10.0.0.3:80", 10);
	add(";runtime.goexit;main.forever.func1;main.reader" POLL, "IO wait", "10.0.0.3:80", 5);
	add(";runtime.goexit;main.bufferreader" POLL, "IO wait", "10.0.0.3:80", 4);
	assert_int_equal(goroutines_rank(f.d, stacks, n, rows, 16), 3);
	assert_string_equal(rows[0].at.function, "main.reader");
	assert_true(goroutines_held_up(&rows[1]));
	assert_int_equal(rows[2].at.wait, WAIT_EVENTS);
	assert_false(goroutines_held_up(&rows[2]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reasons_mean_locks_peers_and_new_work, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(stacks_of_one_function_and_reason_are_one_row,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(readers_wait_for_new_work, set_up, tear_down),
		cmocka_unit_test_setup_teardown(libraries_alone_are_named_by_what_they_are_for,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
