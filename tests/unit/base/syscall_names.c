#include "base/syscall_names.h"

#include <asm/unistd.h>
#include <errno.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void calls_have_the_names_of_the_headers(void **state)
{
	char room[SYSCALL_NAME_MAX];

	(void)state;
	assert_string_equal(syscall_name(__NR_openat, false, room), "openat");
	assert_string_equal(syscall_name(__NR_exit_group, false, room), "exit_group");
	assert_string_equal(syscall_name(99999, false, room), "syscall_99999");
	assert_string_equal(syscall_name(UINT32_MAX, false, room), "syscall_4294967295");
#if defined(__x86_64__)
	assert_string_equal(syscall_name(5, true, room), "32bit_open");
	assert_string_equal(syscall_name(252, true, room), "32bit_exit_group");
#endif
	assert_string_equal(syscall_name(511, true, room), "32bit_511");
	assert_string_equal(syscall_name(UINT32_MAX, true, room), "32bit_4294967295");
	assert_int_equal(syscall_number("openat"), __NR_openat);
	assert_int_equal(syscall_number("no such call"), -1);
}

static void errors_have_names(void **state)
{
	(void)state;
	assert_string_equal(errno_name(ENOENT), "ENOENT");
	assert_string_equal(errno_name(512), "ERESTARTSYS");
	assert_string_equal(errno_name(516), "ERESTART_RESTARTBLOCK");
	assert_null(errno_name(4000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_have_the_names_of_the_headers),
		cmocka_unit_test(errors_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
