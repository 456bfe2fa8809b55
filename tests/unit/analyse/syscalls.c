#include "analyse/syscalls.h"

#include <errno.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void rows_are_in_order_of_their_time(void **state)
{
	struct syscall_row rows[] = { { .name = "read", .ns = 5, .calls = 1 },
				      { .name = "write", .ns = 9 },
				      { .name = "close", .ns = 5, .calls = 1 },
				      { .name = "futex", .ns = 5, .calls = 2 } };

	(void)state;
	assert_int_equal(syscalls_rank(rows, 4, 3), 3);
	assert_string_equal(rows[0].name, "write");
	assert_string_equal(rows[1].name, "futex");
	assert_string_equal(rows[2].name, "close");
}

static void errors_are_kept_most_frequent_first(void **state)
{
	struct syscall_row row = { 0 };

	(void)state;
	syscall_error_add(&row, ENOENT, 3);
	syscall_error_add(&row, EAGAIN, 5);
	syscall_error_add(&row, ENOENT, 4);
	assert_int_equal(row.n_errnos, 2);
	assert_int_equal(row.errnos[0].error, ENOENT);
	assert_int_equal(row.errnos[0].count, 7);
	syscall_error_add(&row, EINTR, 1);
	syscall_error_add(&row, EPERM, 2);
	syscall_error_add(&row, EBADF, 1); /* not more than the rarest */
	assert_int_equal(row.errnos[3].error, EINTR);
	syscall_error_add(&row, EBADF, 6);
	assert_int_equal(row.n_errnos, SYSCALL_ERRNOS);
	assert_int_equal(row.errnos[1].error, EBADF);
	assert_int_equal(row.errnos[1].count, 6);
}

static void quantiles_are_ends_of_parts(void **state)
{
	struct syscall_row row = { .max_ns = 900, .parts = { [0] = 50, [2] = 49, [3] = 1 } };

	(void)state;
	assert_int_equal(syscall_quantile(&row, 0.5), 128);
	assert_int_equal(syscall_quantile(&row, 0.99), 512);
	assert_int_equal(syscall_quantile(&row, 1), 900); /* no call took longer */
	assert_int_equal(syscall_quantile(&(struct syscall_row){ 0 }, 0.5), 0);
}

static void rows_are_added_up(void **state)
{
	struct syscall_row to = { .calls = 1, .max_ns = 7, .parts = { 1 } };
	const struct syscall_row from = { .calls = 2,
					  .errors = 1,
					  .ns = 30,
					  .max_ns = 20,
					  .no_return = 1,
					  .open = 1,
					  .variance = 4,
					  .n_errnos = 1,
					  .errnos = { { EPERM, 1 } },
					  .parts = { 2 } };

	(void)state;
	syscall_row_add(&to, &from);
	assert_int_equal(to.calls, 3);
	assert_int_equal(to.max_ns, 20);
	assert_int_equal(to.parts[0], 3);
	assert_int_equal(to.errnos[0].error, EPERM);
	assert_int_equal(syscall_calls_error(to.variance), 4); /* 1.96 * 2 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_in_order_of_their_time),
		cmocka_unit_test(errors_are_kept_most_frequent_first),
		cmocka_unit_test(quantiles_are_ends_of_parts),
		cmocka_unit_test(rows_are_added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
