#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>

#include <cmocka.h>

#include "proc/connections.h"

static void message_is_read_to_its_last_attribute_and_no_further(void **state)
{
	struct {
		struct inet_diag_msg m;
		struct rtattr other;
		uint32_t value;
		struct rtattr head;
		uint8_t info[sizeof(struct tcp_info)];
	} msg = {
		.m = { .idiag_family = AF_INET6,
		       .idiag_state = 1,
		       .id = { .idiag_sport = htons(8080),
			       .idiag_dport = htons(443),
			       .idiag_cookie = { 1, 2 } },
		       .idiag_rqueue = 9,
		       .idiag_inode = 77 },
		.other = { RTA_LENGTH(4), INET_DIAG_MARK },
		.head = { RTA_LENGTH(sizeof(struct tcp_info)), INET_DIAG_INFO },
	};
	const struct tcp_info info = { .tcpi_last_data_sent = 12,
				       .tcpi_last_data_recv = 34,
				       .tcpi_unacked = 2,
				       .tcpi_segs_in = 5,
				       .tcpi_data_segs_in = 3 };
	struct tcp_conn c;
	char name[TCP_NAME_MAX];

	_Static_assert(offsetof(__typeof__(msg), other) == NLMSG_ALIGN(sizeof(msg.m)),
		       "as the kernel lays it out");
	memcpy(msg.info, &info, sizeof(info));
	assert_true(sock_diag_parse(&msg, sizeof(msg), &c));
	assert_int_equal(c.inode, 77);
	assert_true(c.cookie == 0x200000001ULL);
	assert_int_equal(c.local_port, 8080);
	assert_int_equal(c.sent_ms, 12);
	assert_int_equal(c.recv_ms, 34);
	assert_int_equal(c.unacked, 2);
	assert_int_equal(c.unread, 9);
	assert_int_equal(c.segs_in, 5);
	assert_int_equal(c.data_in, 3);
	assert_false(c.listens);
	tcp_conn_peer(&c, name);
	assert_string_equal(name, "[::]:443");
	memcpy(c.remote, (uint8_t[16]){ [10] = 0xff, [11] = 0xff, 10, 0, 0, 3 }, 16);
	tcp_conn_peer(&c, name);
	assert_string_equal(name, "10.0.0.3:443");
	/* An older kernel's struct tcp_info is shorter: what it does not say is 0. */
	msg.head.rta_len = RTA_LENGTH(60);
	assert_true(sock_diag_parse(&msg, offsetof(__typeof__(msg), info) + 60, &c));
	assert_int_equal(c.sent_ms, 12);
	assert_int_equal(c.segs_in, 0);
	/* Cut off, and of another family. */
	assert_false(sock_diag_parse(&msg, offsetof(__typeof__(msg), info) + 40, &c));
	assert_false(sock_diag_parse(&msg, sizeof(msg.m) - 1, &c));
	msg.m.idiag_family = AF_UNIX;
	assert_false(sock_diag_parse(&msg, sizeof(msg), &c));
}

static const struct tcp_conn *of_port(const struct connections *c, bool accepted, uint16_t port)
{
	for (uint32_t i = 0; i < c->n_conns; i++)
		if (c->conns[i].accepted == accepted &&
		    (accepted ? c->conns[i].local_port : c->conns[i].remote_port) == port)
			return &c->conns[i];
	return NULL;
}

static void both_ends_of_our_own_connection_are_found(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), made = socket(AF_INET, SOCK_STREAM, 0),
	    taken;
	const struct tcp_conn *ours, *theirs;
	socklen_t len = sizeof(at);
	struct connections c;

	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(made, (struct sockaddr *)&at, sizeof(at)), 0);
	taken = accept(listener, NULL, NULL);
	assert_int_equal(send(made, "ask", 3, 0), 3);
	assert_int_equal(connections_init(&c), 0);
	connections_begin(&c);
	connections_add(&c, getpid());
	if (c.failed || !c.n_inodes) {
		connections_fini(&c);
		skip(); /* no right to enter the namespace that we are in, or no sock_diag */
	}
	connections_read(&c);
	if (c.failed)
		skip();
	ours = of_port(&c, false, ntohs(at.sin_port));
	theirs = of_port(&c, true, ntohs(at.sin_port));
	assert_non_null(ours);
	assert_non_null(theirs);
	assert_int_equal(ours->data_out, 1);
	assert_int_equal(ours->data_in, 0);
	assert_int_equal(theirs->data_in, 1);
	assert_int_equal(theirs->unread, 3);
	connections_fini(&c);
	close(taken);
	close(made);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_is_read_to_its_last_attribute_and_no_further),
		cmocka_unit_test(both_ends_of_our_own_connection_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
