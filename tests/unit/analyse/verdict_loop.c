#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "unit/run_fixture.h"

static void peer_that_an_event_loop_waits_for_is_named_with_how_it_is_known(void **state)
{
	struct summary_peer peer = { "10.0.0.3:5432", 38, 36, 38, 40, 90, 20 };
	struct run_summary s = run(0.1);

	s.peers.rows = &peer;
	s.peers.n = 1;
	s.peers.looks = 40;
	s.peers.waiting = s.peers.held = 36;
	s.peers.inbound = 108;
	s.peers.port = 8080;
	assert_int_equal(verdict_of(&s).kind, VERDICT_WAITING);
	assert_says(verdict_of(&s).sentence,
		    "waited for a socket (10.0.0.3:5432): a request to it was outstanding "
		    "90% of the time, while 3 requests to port 8080 waited");
	assert_says(verdict_of(&s).next, "Profile the process at 10.0.0.3:5432");
	peer.for_inbound = 0;
	assert_says(verdict_of(&s).sentence, "outstanding 95% of the time, for about 80.0 ms each");
}

static void coroutine_that_awaits_is_named_with_its_line(void **state)
{
	struct summary_peer peer = { "10.0.0.3:5432", 38, 36, 38, 40, 90, 20 };
	struct task_row rows[] = { { "main (app.py)", 9, "", TASK_WAIT_TIMER, 40, 40, 0, 1 },
				   { "fetch_price (app.py)", 33, "", TASK_WAIT_SOCKET, 100, 40, 20,
				     1 } };
	struct run_summary s = run(0.1);

	s.peers.rows = &peer;
	s.peers.n = 1;
	s.peers.looks = 40;
	s.tasks.rows = rows;
	s.tasks.n = 2;
	s.tasks.looks = 40;
	assert_says(verdict_of(&s).sentence,
		    ", with 2.5 of its tasks on average in fetch_price (app.py:33)");
	s.peers.n = 0;
	rows[1].wait = TASK_WAIT_LOCK;
	assert_says(verdict_of(&s).sentence,
		    "is held up by a lock: it used 10% of one CPU and its tasks take turns at an "
		    "asyncio lock, with 2.5 of them on average in fetch_price (app.py:33).");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_that_an_event_loop_waits_for_is_named_with_how_it_is_known),
		cmocka_unit_test(coroutine_that_awaits_is_named_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
