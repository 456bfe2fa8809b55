#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void code_comes_back_so_that_it_can_be_returned(void **state)
{
	struct err e = { 0 };

	assert_int_equal(err_set(&e, -ENOENT, "%s: %d", "x", 7), -ENOENT);
	assert_int_equal(e.code, -ENOENT);
	assert_string_equal(e.msg, "x: 7");
}

static void long_sentence_is_cut_not_overrun(void **state)
{
	struct err e = { 0 };
	char big[2 * sizeof(e.msg)];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	err_set(&e, -EINVAL, "%s", big);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
}

static void sentence_may_be_dropped(void **state)
{
	assert_int_equal(err_set(NULL, -EIO, "nobody reads this"), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_comes_back_so_that_it_can_be_returned),
		cmocka_unit_test(long_sentence_is_cut_not_overrun),
		cmocka_unit_test(sentence_may_be_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
