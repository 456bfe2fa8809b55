#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "proc/blocked_call.h"

static void call_and_its_arguments_are_read(void **state)
{
	struct blocked_call call;

	(void)state;
	assert_true(blocked_call_parse("0 0x5 0x7ffd1000 0x40 0x0 0x0 0x0 0x7ffd0ff8 0x7f00aa12",
				       &call));
	assert_int_equal(call.nr, 0);
	assert_int_equal(call.args[0], 5);
	assert_int_equal(call.args[1], 0x7ffd1000);
}

static void thread_that_runs_or_faults_is_in_none(void **state)
{
	struct blocked_call call;

	(void)state;
	assert_false(blocked_call_parse("running", &call));
	assert_false(blocked_call_parse("-1 0x7ffd0ff8 0x7f00aa12", &call));
	assert_false(blocked_call_parse("0 0x5", &call));
	assert_false(blocked_call_parse("", &call));
}

static void calls_without_a_descriptor_have_none(void **state)
{
	struct blocked_call call = { .nr = SYS_fsync, .args = { 7 } };

	(void)state;
	assert_int_equal(blocked_call_fd(1, &call), 7);
	call.nr = SYS_futex;
	assert_int_equal(blocked_call_fd(1, &call), -1);
	/* Several are polled. */
	call = (struct blocked_call){ .nr = SYS_ppoll, .args = { 0x1000, 2 } };
	assert_true(blocked_call_is_poll(&call));
	assert_int_equal(blocked_call_fd(1, &call), -1);
}

/* As Linux 6.18 writes it: a listening socket, one that it has accepted, one that was made to port 5432, one of IPv6. */
static const char tcp[] =
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1001 1 ffff8 100 0 0 10 0\n"
	"   1: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 1002 1 ffff8 20 4 30 10 -1\n"
	"   2: 0200000A:C002 0300000A:1538 01 00000000:00000000 02:00000000 00000000     0        0 1003 1 ffff8 20 4 30 10 -1\n"
	"\n"
	"  sl  local_address                         remote_address                        st tx_queue rx_queue tr\n"
	"   0: 00000000000000000000000001000000:C003 00000000000000000000000001000000:1538 01 00000000:00000000 "
	"00:00000000 00000000     0        0 1004 1 ffff8 20 4 30 10 -1\n"
	"   1: 0000000000000000FFFF00000100007F:C004 0000000000000000FFFF00000100007F:1538 01 00000000:00000000 "
	"00:00000000 00000000     0        0 1005 1 ffff8 20 4 30 10 -1\n";

/* One that reads several messages waits for its socket; of sendfile(2) nobody says for which of its two descriptors it waits. */
static void calls_that_wait_for_one_descriptor_have_it(void **state)
{
	static const long one[] = { SYS_read,     SYS_preadv2,  SYS_pwritev2,
				    SYS_recvmmsg, SYS_sendmmsg, SYS_syncfs };
	static const long none[] = { SYS_sendfile, SYS_splice, SYS_accept4, SYS_epoll_pwait,
				     SYS_futex };

	(void)state;
	for (size_t i = 0; i < sizeof(one) / sizeof(*one); i++)
		assert_true(blocked_call_has_fd(one[i]));
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		assert_false(blocked_call_has_fd(none[i]));
}

static void peer_is_who_was_called_and_not_who_calls(void **state)
{
	char name[ENDPOINT_NAME_MAX];

	(void)state;
	assert_int_equal(endpoint_in_tcp(tcp, 1003, name, sizeof(name)), ENDPOINT_PEER);
	assert_string_equal(name, "10.0.0.3:5432");
	assert_int_equal(endpoint_in_tcp(tcp, 1002, name, sizeof(name)), ENDPOINT_CLIENT);
	assert_int_equal(endpoint_in_tcp(tcp, 1001, name, sizeof(name)), ENDPOINT_NONE);
	assert_int_equal(endpoint_in_tcp(tcp, 7, name, sizeof(name)), ENDPOINT_NONE);
	assert_int_equal(endpoint_in_tcp("", 7, name, sizeof(name)), ENDPOINT_NONE);
}

static void addresses_of_ipv6_are_in_brackets_and_mapped_ones_as_ipv4(void **state)
{
	char name[ENDPOINT_NAME_MAX];

	(void)state;
	assert_int_equal(endpoint_in_tcp(tcp, 1004, name, sizeof(name)), ENDPOINT_PEER);
	assert_string_equal(name, "[::1]:5432");
	assert_int_equal(endpoint_in_tcp(tcp, 1005, name, sizeof(name)), ENDPOINT_PEER);
	assert_string_equal(name, "127.0.0.1:5432");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(call_and_its_arguments_are_read),
		cmocka_unit_test(thread_that_runs_or_faults_is_in_none),
		cmocka_unit_test(calls_without_a_descriptor_have_none),
		cmocka_unit_test(calls_that_wait_for_one_descriptor_have_it),
		cmocka_unit_test(peer_is_who_was_called_and_not_who_calls),
		cmocka_unit_test(addresses_of_ipv6_are_in_brackets_and_mapped_ones_as_ipv4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
