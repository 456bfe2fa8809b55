#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/let_go.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static void what_the_kernel_made_and_sockets_are_closed_and_files_and_pipes_stay(void **state)
{
	int pair[2];
	int event = eventfd(0, EFD_CLOEXEC), file = open("/dev/null", O_RDONLY | O_CLOEXEC),
	    ends[2];

	(void)state;
	assert_true(event >= 0 && file >= 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	let_go_of_the_kernel();
	assert_int_equal(fcntl(pair[0], F_GETFD), -1);
	assert_int_equal(fcntl(event, F_GETFD), -1);
	assert_true(fcntl(file, F_GETFD) >= 0);
	assert_true(fcntl(ends[0], F_GETFD) >= 0 && fcntl(ends[1], F_GETFD) >= 0);
	close(file);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			what_the_kernel_made_and_sockets_are_closed_and_files_and_pipes_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
