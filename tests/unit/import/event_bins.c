#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>

#include <cmocka.h>

#include "import/event_bins.h"

enum { LEVEL, COUNTED, NEVER };
static const uint32_t columns[] = { LEVEL, COUNTED, NEVER };
static const char *const names[] = { "level", "counted", "never" };

static struct event_bins b;

static int setup(void **state)
{
	event_bins_init(&b, 3, 1u << COUNTED);
	return 0;
}

static int teardown(void **state)
{
	event_bins_fini(&b);
	return 0;
}

static struct time_table *table(void)
{
	struct time_table *t = NULL;

	assert_int_equal(event_bins_table(&b, columns, names, 3, 100, &t), 0);
	return t;
}

/* Events of another capability come later in the file and were earlier in time. */
static void rows_are_in_the_order_of_time(void **state)
{
	struct time_table *t;

	event_bins_add(&b, LEVEL, 5000000, 50);
	event_bins_add(&b, COUNTED, 5000000, 1);
	event_bins_add(&b, COUNTED, 2000000, 10);
	event_bins_add(&b, LEVEL, 2000001, 20);
	t = table();
	assert_int_equal(t->n_rows, 2);
	assert_int_equal(t->n_columns, 2); /* what never came has no column */
	assert_true(fabs(t->times_s[0] - (100.002000001)) <= 1e-12);
	assert_true(fabs(t->columns[0].values[0] - (20)) <= 0);
	assert_true(fabs(t->columns[1].values[0] - (10)) <= 0);
	assert_true(fabs(t->columns[1].values[1] - (11)) <=
		    0); /* what is counted adds up over time */
	time_table_free(t);
}

static void a_level_that_did_not_come_is_not_known(void **state)
{
	struct time_table *t;

	event_bins_add(&b, COUNTED, 1, 1);
	event_bins_add(&b, LEVEL, 9000000, 1);
	t = table();
	assert_true(isnan(t->columns[0].values[0]));
	assert_true(fabs(t->columns[1].values[1] - (1)) <= 0);
	time_table_free(t);
}

/* An hour of an event each 10 us: no more rows than bins, the highest value is there, nothing counted is lost. */
static void however_many_events_the_table_is_bounded(void **state)
{
	struct time_table *t;
	double high = 0;

	for (uint64_t i = 0; i < 3600 * 1000; i++) {
		event_bins_add(&b, LEVEL, i * 1000000, i == 1234567 ? 1e6 : (double)(i % 100));
		event_bins_add(&b, COUNTED, i * 1000000, 1);
	}
	t = table();
	assert_true(t->n_rows <= EVENT_BINS_MAX && t->n_rows > EVENT_BINS_MAX / 2);
	for (uint32_t i = 0; i < t->n_rows; i++)
		high = fmax(high, t->columns[0].values[i]);
	assert_true(fabs(high - (1e6)) <= 0);
	assert_true(fabs(t->columns[1].values[t->n_rows - 1] - (3600 * 1000)) <= 0);
	time_table_free(t);
}

static void a_time_beyond_all_others_takes_no_memory(void **state)
{
	struct time_table *t;

	event_bins_add(&b, LEVEL, 1, 1);
	event_bins_add(&b, LEVEL, UINT64_MAX, 2);
	t = table();
	assert_int_equal(t->n_rows, 2);
	time_table_free(t);
}

static void without_an_event_there_is_no_table(void **state)
{
	assert_null(table());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_are_in_the_order_of_time, setup, teardown),
		cmocka_unit_test_setup_teardown(a_level_that_did_not_come_is_not_known, setup,
						teardown),
		cmocka_unit_test_setup_teardown(however_many_events_the_table_is_bounded, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_time_beyond_all_others_takes_no_memory, setup,
						teardown),
		cmocka_unit_test_setup_teardown(without_an_event_there_is_no_table, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
