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

static void is_shown_as(const char *sentence, const char *want)
{
	char got[64] = "";
	FILE *f = fmemopen(got, sizeof(got), "w");

	assert_non_null(f);
	err_put(f, sentence);
	fclose(f);
	assert_string_equal(got, want);
}

static void other_people_s_bytes_control_no_terminal(void **state)
{
	is_shown_as("plain, \xc3\xa4 \xe2\x80\xa6 \xf0\x9f\x98\x80",
		    "plain, \xc3\xa4 \xe2\x80\xa6 \xf0\x9f\x98\x80");
	is_shown_as("\x1b[2J\n\r\t\x7f", "?[2J????");
	/* CSI of C1, as UTF-8 and as a byte, also one behind a character that was cut. */
	is_shown_as("\xc2\x9b"
		    "31m",
		    "?31m");
	is_shown_as("\x9b"
		    "31m",
		    "?31m");
	is_shown_as("\xc3\xa4\x9b"
		    "31m",
		    "\xc3\xa4?31m");
	is_shown_as("\xc2\xa0", "\xc2\xa0");
	is_shown_as("\xc2", "\xc2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_comes_back_so_that_it_can_be_returned),
		cmocka_unit_test(long_sentence_is_cut_not_overrun),
		cmocka_unit_test(sentence_may_be_dropped),
		cmocka_unit_test(other_people_s_bytes_control_no_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
