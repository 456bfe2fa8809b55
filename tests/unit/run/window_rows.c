/* The rows of memory that a window has: those of its time, and not too many. */
#include "run/memory/window_rows.h"
#include "run/serve/serve_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dir_fixture.h"

#define S 1000000000ULL

static const struct serve_config serve;
static const struct run_config of_ten_seconds = {
	.serve = &serve, .archive = (struct archive *)1, .every_s = 10, .interval_s = 1
};

static void rows_of_a_service_become_rarer_the_longer_it_runs(void **state)
{
	struct run_config cfg = { .serve = &serve, .archive = (struct archive *)1, .every_s = 120 };
	struct long_rows rows = { 0 }, of_a_run = { 0 };
	uint32_t n = 0, year = 365 * 86400 / 10, last = 0, gap = 0;

	(void)state;
	for (uint32_t i = 0; i < year; i++) {
		if (long_rows_due(&rows, &cfg)) {
			gap = i - last;
			last = i;
			n++;
		}
		if (i < LONG_ROWS)
			assert_int_equal(n, i + 1); /* all of the first */
	}
	/* Ten times as many for 2^9 times as long: 4096 * (2^k - 1) moments have 4096 * k rows. */
	assert_in_range(n, 9 * LONG_ROWS, 10 * LONG_ROWS);
	assert_int_equal(gap, 512);
	cfg.serve = NULL;
	for (uint32_t i = 0; i < 3 * LONG_ROWS; i++)
		assert_true(long_rows_due(&of_a_run, &cfg));
}

/* A row a second, with the second as its RSS, of windows that are `factor` times as long. */
static void add_of(struct window_rows *rows, uint32_t factor, uint64_t from_s, uint64_t to_s)
{
	for (uint64_t s = from_s; s < to_s; s++) {
		struct mem_sample sample = { .time_ns = (int64_t)((1795376880 + s) * S),
					     .rss_kb = (int64_t)s };
		struct mem_group group = { .processes = 1, .charged_kb = (int64_t)s + 5 };

		window_rows_add(rows, factor, s * S, &sample, MEM_UNKNOWN, &group);
		sample.rss_kb = MEM_UNKNOWN; /* ended meanwhile: no row */
		window_rows_add(rows, factor, s * S, &sample, MEM_UNKNOWN, &group);
	}
}

static void add(struct window_rows *rows, uint64_t from_s, uint64_t to_s)
{
	add_of(rows, 1, from_s, to_s);
}

/* Of the window of these seconds: how many rows there are, and the RSS of the first and the last. */
static int written(const struct window_rows *rows, uint64_t from_s, uint64_t to_s, long *ret_first,
		   long *ret_last)
{
	const struct run_window window = { dir, "20261122-194800", from_s * S, to_s * S };
	char path[512], line[512];
	int n = -1;
	FILE *f;

	assert_int_equal(window_rows_write(rows, &window, "web", NULL), 0);
	snprintf(path, sizeof(path), "%s/web/memory-20261122-194800.csv", dir);
	f = fopen(path, "r");
	for (; f && fgets(line, sizeof(line), f); n++) {
		*ret_last = strtol(strchr(line, ',') + 1, NULL, 10);
		if (n == 0)
			*ret_first = *ret_last;
	}
	if (f)
		fclose(f);
	unlink(path);
	return n;
}

static void a_window_has_the_rows_of_its_time_and_the_next_one_the_others(void **state)
{
	struct window_rows rows;
	long first, last;

	(void)state;
	window_rows_init(&rows, &of_ten_seconds);
	add(&rows, 0, 10);
	assert_int_equal(written(&rows, 0, 10, &first, &last), 10);
	assert_int_equal(first, 0);
	assert_int_equal(last, 9);
	add(&rows, 10, 20);
	assert_int_equal(written(&rows, 10, 20, &first, &last), 10);
	assert_int_equal(first, 10);
	assert_int_equal(last, 19);
	/* Of a time without rows there is no file. */
	assert_int_equal(written(&rows, 20, 30, &first, &last), -1);
	window_rows_fini(&rows);
}

static void a_long_window_has_some_of_its_rows_over_all_its_time(void **state)
{
	const struct run_config cfg = {
		.serve = &serve, .archive = (struct archive *)1, .every_s = 3600, .interval_s = 1
	};
	struct window_rows rows;
	long first, last;
	int n;

	(void)state;
	window_rows_init(&rows, &cfg);
	add(&rows, 0, 3600);
	n = written(&rows, 0, 3600, &first, &last);
	assert_in_range(n, 30, 64);
	assert_int_equal(first, 0);
	assert_in_range(last, 3480, 3599);
	window_rows_fini(&rows);
}

static void a_window_of_four_times_its_length_has_as_many_rows(void **state)
{
	struct window_rows rows;
	long first, last;

	(void)state;
	window_rows_init(&rows, &of_ten_seconds);
	add_of(&rows, 4, 0, 42); /* its end is a little late */
	assert_int_equal(written(&rows, 0, 40, &first, &last), 10);
	assert_int_equal(first, 0);
	assert_int_equal(last, 36);
	/* One that has begun as a short one, and goes on as a long one. */
	add(&rows, 100, 110);
	add_of(&rows, 2, 110, 120);
	assert_int_equal(written(&rows, 100, 120, &first, &last), 15);
	assert_int_equal(first, 100);
	window_rows_fini(&rows);
}

static void a_run_that_is_no_service_keeps_no_rows(void **state)
{
	const struct run_config cfg = { .every_s = 10, .interval_s = 1 };
	struct window_rows rows;
	long first, last;

	(void)state;
	window_rows_init(&rows, &cfg);
	add(&rows, 0, 10);
	assert_int_equal(written(&rows, 0, 10, &first, &last), -1);
	window_rows_fini(&rows);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, dir_fixture_begin, dir_fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_a_service_become_rarer_the_longer_it_runs),
		TEST(a_window_has_the_rows_of_its_time_and_the_next_one_the_others),
		TEST(a_long_window_has_some_of_its_rows_over_all_its_time),
		TEST(a_window_of_four_times_its_length_has_as_many_rows),
		TEST(a_run_that_is_no_service_keeps_no_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
