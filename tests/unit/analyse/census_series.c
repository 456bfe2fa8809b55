#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/census_series.h"
#include "render/tables/census_csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void largest_types_are_columns_and_the_rest_is_other(void **state)
{
	_cleanup_(census_series_freep) struct census_series *s = census_series_new();
	_cleanup_(sink_closep) struct sink *out = NULL;
	const struct census_count first[] = { { "dict", 500, 5 }, { "a\"b", 100, 2 } };
	const struct census_count second[] = { { "web.Session", 900, 9 }, { "dict", 400, 4 } };
	size_t len;

	(void)state;
	setenv("TZ", "UTC", 1);
	census_series_add(s, 1000000000, first, 2, &(struct census_count){ "", 650, 8 });
	census_series_add(s, 3000000000, second, 2, &(struct census_count){ "", 1300, 13 });
	assert_int_equal(sink_open_memory(&out, NULL), 0);
	census_csv_write(s, out);
	assert_int_equal(sink_commit(out, NULL), 0);
	assert_string_equal(
		sink_memory(out, &len),
		"timestamp,\"dict\",\"web.Session\",\"a\"\"b\",OTHER,\"dict objects\",\"web.Session objects\",\"a\"\"b objects\",OTHER objects\n"
		"1970-01-01 00:00:01.000,500,0,100,50,5,0,2,1\n"
		"1970-01-01 00:00:03.000,400,900,0,0,4,9,0,0\n");
}

static void only_so_many_columns_are_written_and_a_row_adds_up(void **state)
{
	_cleanup_(census_series_freep) struct census_series *s = census_series_new();
	const struct census_row *rows[CENSUS_COLUMNS];
	struct census_count types[20], other;

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		types[i] = (struct census_count){ .bytes = 100 - i, .objects = 1 };
		snprintf(types[i].name, CENSUS_NAME, "type%u", i);
	}
	census_series_add(s, 0, types, 20, &(struct census_count){ "", 1810, 20 });
	assert_int_equal(census_series_rank(s, rows, CENSUS_COLUMNS), CENSUS_COLUMNS);
	assert_string_equal(rows[0]->name, "type0");
	assert_string_equal(rows[CENSUS_COLUMNS - 1]->name, "type14");
	other = census_series_other(s, rows, CENSUS_COLUMNS, 0);
	assert_int_equal(other.bytes, 85 + 84 + 83 + 82 + 81);
	assert_int_equal(other.objects, 5);
}

static void types_that_grew_most_come_first_and_others_not_at_all(void **state)
{
	_cleanup_(census_series_freep) struct census_series *s = census_series_new();
	const struct census_count first[] = { { "falls", 900, 9 },
					      { "same", 50, 1 },
					      { "slow", 10, 1 } };
	const struct census_count last[] = {
		{ "falls", 800, 8 }, { "same", 50, 1 }, { "slow", 20, 2 }, { "fast", 40, 4 }
	};
	const struct census_count all = { "", 1000, 20 };
	const struct census_row *rows[3];

	(void)state;
	census_series_add(s, 1, first, 3, &all);
	assert_int_equal(census_series_grown(s, rows, 3), 0);
	census_series_add(s, 2, last, 4, &all);
	assert_int_equal(census_series_grown(s, rows, 3), 2);
	assert_string_equal(rows[0]->name, "fast");
	assert_string_equal(rows[1]->name, "slow");
	assert_int_equal(census_series_grown(s, rows, 1), 1);
	assert_string_equal(rows[0]->name, "fast");
}

static void a_long_run_keeps_its_first_and_last_census_and_evenly_spaced_ones(void **state)
{
	_cleanup_(census_series_freep) struct census_series *s = census_series_new();
	const struct census_row *row;
	const int64_t *times;
	uint32_t n = 0, every = 1;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		const struct census_count one = { "dict", 1000 + i, i };

		census_series_add(s, i, &one, 1, &one);
		n = census_series_times(s, &times);
		assert_true(n <= CENSUS_TIMES);
		assert_int_equal(times[n - 1], i);
		assert_int_equal(times[0], 0);
	}
	every = (uint32_t)times[1];
	assert_int_equal(every, 4); /* 256, 512: twice */
	for (uint32_t i = 0; i + 1 < n; i++)
		assert_int_equal(times[i], (int64_t)i * every);
	assert_int_equal(census_series_rank(s, &row, 1), 1);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(row->bytes[i], 1000 + times[i]);
		assert_int_equal(row->objects[i], times[i]);
		assert_int_equal(census_series_other(s, &row, 1, i).bytes, 0);
	}
}

static void a_new_large_type_takes_the_place_of_the_smallest(void **state)
{
	_cleanup_(census_series_freep) struct census_series *s = census_series_new();
	static struct census_count types[CENSUS_TYPES];
	const struct census_row *rows[2];
	const struct census_count all = { "", 1000000, 1000 };
	const struct census_count small = { "small", 1, 1 }, large = { "large", 90000, 3 };

	(void)state;
	for (uint32_t i = 0; i < CENSUS_TYPES; i++) {
		types[i] = (struct census_count){ .bytes = 10 + i, .objects = 1 };
		snprintf(types[i].name, CENSUS_NAME, "type%u", i);
	}
	census_series_add(s, 1, types, CENSUS_TYPES, &all);
	census_series_add(s, 2, &small, 1, &all);
	assert_int_equal(census_series_grown(s, rows, 2), 0);
	census_series_add(s, 3, &large, 1, &all);
	assert_int_equal(census_series_grown(s, rows, 2), 1);
	assert_string_equal(rows[0]->name, "large");
	assert_int_equal(rows[0]->bytes[0], 0);
	assert_int_equal(census_series_other(s, rows, 1, 2).bytes, 910000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(largest_types_are_columns_and_the_rest_is_other),
		cmocka_unit_test(only_so_many_columns_are_written_and_a_row_adds_up),
		cmocka_unit_test(types_that_grew_most_come_first_and_others_not_at_all),
		cmocka_unit_test(a_long_run_keeps_its_first_and_last_census_and_evenly_spaced_ones),
		cmocka_unit_test(a_new_large_type_takes_the_place_of_the_smallest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
