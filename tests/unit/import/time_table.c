#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "import/time_table.h"

static struct time_table *t;
static uint32_t skipped;

static int read_text(const char *text)
{
	struct err e = { 0 };
	int r;

	time_table_free(TAKE_PTR(t));
	r = time_table_parse(bytes_of(text, strlen(text)), "x.csv", &t, &skipped, &e);
	assert_int_equal(r < 0, *e.msg != 0);
	return r;
}

static void columns_have_their_names_and_values(void **state)
{
	(void)state;
	assert_int_equal(read_text("timestamp,rss_kb,\"a \"\"b\"\", c\",OTHER\n"
				   "2026-11-21 10:00:01,12,1.5,\n"
				   "2026-11-21 10:00:02.5,13,-2e3,4\n"),
			 0);
	assert_int_equal(t->n_columns, 3);
	assert_int_equal(t->n_rows, 2);
	assert_string_equal(t->columns[0].name, "rss_kb");
	assert_string_equal(t->columns[1].name, "a \"b\", c");
	assert_true(t->columns[0].values[1] == 13);
	assert_true(t->columns[1].values[1] == -2000);
	assert_true(isnan(t->columns[2].values[0]));
	assert_true(t->columns[2].values[1] == 4);
	assert_true(t->times_s[1] - t->times_s[0] == 1.5);
	assert_int_equal(skipped, 0);
}

static void times_are_local(void **state)
{
	(void)state;
	setenv("TZ", "IST-5:30", 1);
	tzset();
	assert_int_equal(read_text("timestamp,a\n1970-01-02 05:30:00,1\n"), 0);
	unsetenv("TZ");
	tzset();
	assert_true(t->times_s[0] == 86400);
}

static void milliseconds_of_a_column_of_their_own_are_of_the_time(void **state)
{
	(void)state;
	assert_int_equal(read_text("timestamp,a,timestamp_ms,b\n2026-11-21 10:00:05,1,250,2\n"
				   "2026-11-21 10:00:06,3,7,4\n2026-11-21 10:00:07,3,1000,4\n"),
			 0);
	assert_int_equal(t->n_columns, 2);
	assert_int_equal(t->n_rows, 2);
	assert_int_equal(skipped, 1);
	assert_string_equal(t->columns[1].name, "b");
	assert_true(fabs(t->times_s[1] - t->times_s[0] - .757) < 1e-6);
	assert_true(t->columns[0].values[1] == 3 && t->columns[1].values[1] == 4);
}

static void rows_that_are_none_are_counted(void **state)
{
	(void)state;
	assert_int_equal(read_text("timestamp,a,b\n1,2,3\nnever,2,3\n2,x,3\n3,4\n4,nan,5\n5,6,7\n"),
			 0);
	assert_int_equal(t->n_rows, 2);
	assert_int_equal(skipped, 4);
	assert_true(t->columns[1].values[1] == 7);
}

static void time_does_not_go_back(void **state)
{
	(void)state;
	assert_int_equal(read_text("timestamp,a\n10,1\n7,2\n11,3\n"), 0);
	assert_true(t->times_s[1] == 10);
	assert_true(t->times_s[2] == 11);
}

static void names_in_rows_become_columns(void **state)
{
	(void)state;
	assert_int_equal(
		read_text(
			"timestamp,name,value\n10,\"requests, all\",1\n10,errors,2\n11,\"requests, all\",5\n"),
		0);
	assert_int_equal(t->n_columns, 2);
	assert_int_equal(t->n_rows, 2);
	assert_string_equal(t->columns[0].name, "requests, all");
	assert_true(t->columns[0].values[1] == 5);
	assert_true(t->columns[1].values[0] == 2);
	assert_true(isnan(t->columns[1].values[1]));
}

static void many_rows_keep_their_columns(void **state)
{
	char text[8192] = "timestamp,a,b\n", *at = text + strlen(text);

	(void)state;
	for (int i = 0; i < 300; i++)
		at += sprintf(at, "%d,%d,%d\n", 100 + i, i, 2 * i);
	assert_int_equal(read_text(text), 0);
	assert_int_equal(t->n_rows, 300);
	assert_true(t->columns[1].values[299] == 598);
}

static void other_files_are_refused(void **state)
{
	(void)state;
	assert_int_equal(read_text(""), -EBADMSG);
	assert_int_equal(read_text("pid,comm\n1,x\n"), -EBADMSG);
}

static int done(void **state)
{
	(void)state;
	time_table_free(t);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_have_their_names_and_values),
		cmocka_unit_test(times_are_local),
		cmocka_unit_test(milliseconds_of_a_column_of_their_own_are_of_the_time),
		cmocka_unit_test(rows_that_are_none_are_counted),
		cmocka_unit_test(time_does_not_go_back),
		cmocka_unit_test(names_in_rows_become_columns),
		cmocka_unit_test(many_rows_keep_their_columns),
		cmocka_unit_test(other_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, done);
}
