#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "proc/requests.h"

/* A client's connection in which a request came `ms` ago; nothing was answered in it. */
static struct tcp_conn asked(uint64_t cookie, uint32_t ms)
{
	return (struct tcp_conn){ .cookie = cookie,
				  .accepted = true,
				  .local_port = 8080,
				  .remote_port = (uint16_t)(40000 + cookie),
				  .recv_ms = ms,
				  .sent_ms = ms + 1000,
				  .data_in = 1,
				  .segs_in = 2,
				  .segs_out = 1 };
}

/* A connection to 10.0.0.3:5432, in which an answer came and a request was sent `ms` ago. */
static struct tcp_conn asking(uint64_t cookie, uint32_t ms)
{
	return (struct tcp_conn){ .cookie = cookie,
				  .remote = { 10, 0, 0, 3 },
				  .remote_port = 5432,
				  .local_port = (uint16_t)(50000 + cookie),
				  .sent_ms = ms,
				  .recv_ms = ms + 30,
				  .ack_ms = ms + 30,
				  .data_in = 5,
				  .data_out = 6,
				  .segs_in = 6,
				  .segs_out = 8 };
}

static void look(struct requests *r, const struct tcp_conn *conns, uint32_t n, uint64_t now_ms)
{
	struct tcp_conn copy[8];

	if (n)
		memcpy(copy, conns, n * sizeof(*conns));
	requests_look(r, copy, n, now_ms);
}

static void request_to_a_peer_is_for_the_one_that_waits(void **state)
{
	struct tcp_conn conns[] = { asking(1, 40), asked(2, 50), asked(3, 20) };
	struct requests r = { 0 };

	look(&r, NULL, 0, 1000);
	look(&r, conns, 3, 2000);
	look(&r, conns, 3, 3000);
	assert_int_equal(r.looks, 3);
	assert_int_equal(r.waiting, 2);
	assert_int_equal(r.held, 2);
	assert_int_equal(r.inbound, 4);
	assert_int_equal(r.port, 8080);
	assert_int_equal(r.n_peers, 1);
	assert_string_equal(r.peers[0].name, "10.0.0.3:5432");
	assert_int_equal(r.peers[0].looks, 2);
	assert_int_equal(r.peers[0].for_inbound, 2);
	assert_int_equal(r.peers[0].age_ms, 80);
	assert_int_equal(r.peers[0].oldest_ms, 40);
	requests_free(&r);
}

static void what_was_sent_before_the_request_came_is_not_for_it(void **state)
{
	struct tcp_conn conns[] = { asking(1, 700), asked(2, 50) }; /* a long poll */
	struct requests r = { 0 };

	look(&r, NULL, 0, 0);
	look(&r, conns, 2, 2000);
	assert_int_equal(r.waiting, 1);
	assert_int_equal(r.held, 0);
	assert_int_equal(r.peers[0].looks, 1);
	assert_int_equal(r.peers[0].for_inbound, 0);
	requests_free(&r);
}

static void what_stands_since_before_the_first_look_says_nothing(void **state)
{
	struct tcp_conn conns[] = { asking(1, 5000),
				    asked(2, 6000) }; /* a quiet stream through a proxy */
	struct requests r = { 0 };

	look(&r, NULL, 0, 0);
	look(&r, conns, 2, 2000);
	assert_int_equal(r.waiting, 0);
	assert_int_equal(r.held, 0);
	requests_free(&r);
}

static void connection_that_had_its_answer_is_at_rest(void **state)
{
	struct tcp_conn db = asking(1, 40), client = asked(2, 50), fresh = asking(3, 10),
			unread = asking(4, 10);
	struct tcp_conn conns[4];
	struct requests r = { 0 };

	db.recv_ms = 12; /* kept for the next query */
	client.data_out = 1;
	client.sent_ms = 12;
	fresh.data_in = fresh.data_out = 0; /* nothing was asked yet */
	unread.unread = 100;                /* its answer waits for the program */
	memcpy(conns, (struct tcp_conn[]){ db, client, fresh, unread }, sizeof(conns));
	look(&r, NULL, 0, 0);
	look(&r, conns, 4, 2000);
	assert_int_equal(r.waiting, 0);
	assert_int_equal(r.n_peers, 0);
	requests_free(&r);
}

static void within_one_jiffy_acknowledgements_say_who_sent_last(void **state)
{
	struct tcp_conn quick = asking(1, 40), delayed = asking(2, 40), done = asking(3, 40);
	struct tcp_conn conns[3];
	struct requests r = { 0 };

	quick.recv_ms = delayed.recv_ms = done.recv_ms = 40;
	quick.ack_ms = delayed.ack_ms = done.ack_ms = 40;
	delayed.unacked = 1;
	quick.data_in = quick.data_out = done.data_in = done.data_out = 100;
	quick.segs_in = 200; /* each request is acknowledged before its answer comes … */
	quick.segs_out = 102;
	done.segs_in = 101; /* … and here each answer, for no request follows at once */
	done.segs_out = 200;
	memcpy(conns, (struct tcp_conn[]){ quick, delayed, done }, sizeof(conns));
	look(&r, conns, 3, 0);
	assert_int_equal(r.n_peers, 1);
	assert_int_equal(r.peers[0].requests, 2);
	requests_free(&r);
}

static void who_never_answers_is_not_waited_for(void **state)
{
	struct tcp_conn log = asking(1, 5);
	struct requests r = { 0 };

	log.data_in = 1; /* a greeting */
	for (uint32_t i = 0; i < 20; i++) {
		log.data_out++;
		log.segs_out++;
		look(&r, &log, 1, 100 * i);
	}
	assert_int_equal(r.peers[0].looks, 3); /* until that was known */
	assert_int_equal(r.peers[0].answers, 0);
	requests_free(&r);
}

static void upload_is_no_request_yet(void **state)
{
	struct tcp_conn upload = asked(1, 5);
	struct requests r = { 0 };

	look(&r, NULL, 0, 0);
	for (uint32_t i = 0; i < 20; i++) {
		upload.data_in += 100;
		look(&r, &upload, 1, 1000 + 100 * i);
	}
	assert_int_equal(r.waiting, 3);
	requests_free(&r);
}

static void connection_between_the_targets_is_no_wait_for_others(void **state)
{
	struct tcp_conn near = asking(1, 40), far = asked(2, 40);
	struct tcp_conn conns[2];
	struct requests r = { 0 };

	near.remote_port = far.local_port;
	near.local_port = far.remote_port;
	memcpy(conns, (struct tcp_conn[]){ near, far }, sizeof(conns));
	look(&r, NULL, 0, 0);
	look(&r, conns, 2, 2000);
	assert_int_equal(r.waiting, 1);
	assert_int_equal(r.n_peers, 0);
	requests_free(&r);
}

static void answers_are_seen_by_what_came_and_by_connections_that_end(void **state)
{
	struct tcp_conn c = asking(1, 10);
	struct requests r = { 0 };

	look(&r, &c, 1, 0);
	c.data_in++;
	c.data_out++;
	look(&r, &c, 1, 100); /* the next request is on its way */
	assert_int_equal(r.peers[0].answers, 1);
	look(&r, NULL, 0, 200);
	assert_int_equal(r.peers[0].answers, 2);
	assert_int_equal(r.peers[0].looks, 2);
	requests_free(&r);
}

static void who_does_not_take_the_call_is_waited_for(void **state)
{
	struct tcp_conn c = asking(1, 0), client = asked(2, 50);
	struct tcp_conn conns[2];
	struct requests r = { 0 };

	c.connecting = true;
	c.data_in = c.data_out = 0;
	memcpy(conns, (struct tcp_conn[]){ c, client }, sizeof(conns));
	look(&r, NULL, 0, 0);
	look(&r, conns, 2, 1000);
	assert_int_equal(r.held, 1);
	requests_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_to_a_peer_is_for_the_one_that_waits),
		cmocka_unit_test(what_was_sent_before_the_request_came_is_not_for_it),
		cmocka_unit_test(what_stands_since_before_the_first_look_says_nothing),
		cmocka_unit_test(connection_that_had_its_answer_is_at_rest),
		cmocka_unit_test(within_one_jiffy_acknowledgements_say_who_sent_last),
		cmocka_unit_test(who_never_answers_is_not_waited_for),
		cmocka_unit_test(upload_is_no_request_yet),
		cmocka_unit_test(connection_between_the_targets_is_no_wait_for_others),
		cmocka_unit_test(answers_are_seen_by_what_came_and_by_connections_that_end),
		cmocka_unit_test(who_does_not_take_the_call_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
