#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "analyse/gc_counts.h"

#define S  1000000000ULL
#define MS 1000000LL

static struct gc_counters counters(uint64_t count, int64_t time_ns)
{
	return (struct gc_counters){ .count = count,
				     .major = count / 10,
				     .kinds = { { "generation 0", count - count / 10 },
						{ "generation 1", count / 10 } },
				     .n_kinds = 2,
				     .time_ns = time_ns,
				     .longest_ns = GC_UNKNOWN,
				     .last_ns = GC_UNKNOWN,
				     .live_bytes = 1000,
				     .heap_bytes = 4000 };
}

static void look(struct gc_counts *g, uint64_t count, int64_t time_ns, uint64_t ns)
{
	const struct gc_counters c = counters(count, time_ns);

	gc_counts_look(g, &c, ns);
}

static void what_was_before_the_run_is_not_of_it(void **state)
{
	struct gc_totals t = { 0 };
	struct gc_counts g;

	(void)state;
	gc_counts_begin(&g, false, S);
	look(&g, 100, 50 * MS, S);
	look(&g, 130, 80 * MS, 3 * S);
	gc_totals_add(&t, gc_totals_row(&t, "GHC"), &g);
	assert_int_equal(t.rows[0].count, 30);
	assert_int_equal(t.rows[0].major, 3);
	assert_int_equal(t.rows[0].kinds[0].count, 27);
	assert_int_equal(t.rows[0].time_ns, 30 * MS);
	assert_int_equal(t.rows[0].seen_ns, 2 * S);
	assert_int_equal(t.rows[0].longest_ns, GC_UNKNOWN); /* several between two looks */
	gc_counts_begin(&g, true, S);
	look(&g, 100, 50 * MS, 2 * S);
	gc_totals_add(&t, gc_totals_row(&t, "GHC"), &g);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.rows[0].processes, 2);
	assert_int_equal(t.rows[0].count, 130);
	assert_int_equal(t.rows[0].time_ns, 80 * MS);
}

static void a_pause_is_known_where_one_collection_was_between_two_looks(void **state)
{
	struct gc_counts g;

	(void)state;
	gc_counts_begin(&g, false, 0);
	look(&g, 10, 100 * MS, 1);
	look(&g, 11, 107 * MS, 2);
	look(&g, 12, 110 * MS, 3);
	look(&g, 14, 160 * MS, 4); /* of two: nobody knows */
	assert_int_equal(g.longest_ns, 7 * MS);
	assert_false(g.longest_exact);
}

static void the_runtimes_own_longest_pause_is_the_runs_where_it_grew_in_it(void **state)
{
	struct gc_counters c = counters(10, 100 * MS);
	struct gc_counts g;

	(void)state;
	gc_counts_begin(&g, false, 0);
	c.longest_ns = 20 * MS;
	gc_counts_look(&g, &c, 1);
	assert_int_equal(g.longest_ns, GC_UNKNOWN);
	c.count = 11;
	c.time_ns += 5 * MS;
	gc_counts_look(&g, &c, 2);
	assert_int_equal(g.longest_ns, 5 * MS);
	c.count = 19;
	c.longest_ns = 30 * MS;
	gc_counts_look(&g, &c, 3);
	assert_int_equal(g.longest_ns, 30 * MS);
	assert_true(g.longest_exact);
}

static void a_pause_that_the_runtime_times_counts_once_and_if_it_ended_in_the_run(void **state)
{
	struct gc_counters c = counters(10, 100 * MS);
	struct gc_counts g;

	(void)state;
	gc_counts_begin(&g, false, 0);
	c.last_ns = 40 * MS;
	c.last_at = 7;
	gc_counts_look(&g, &c, 1);
	c.count = 11; /* has begun: the pause before is not the run's */
	gc_counts_look(&g, &c, 2);
	assert_int_equal(g.longest_ns, GC_UNKNOWN);
	c.last_ns = 3 * MS;
	c.last_at = 8;
	gc_counts_look(&g, &c, 3);
	assert_int_equal(g.longest_ns, 3 * MS);
	assert_false(g.longest_exact);
}

static void time_that_is_not_counted_is_estimated_by_looks(void **state)
{
	struct gc_totals t = { 0 };
	struct gc_time_of time;
	struct gc_counts g;

	(void)state;
	gc_counts_begin(&g, false, 0);
	for (uint64_t i = 0; i < 100; i++) {
		struct gc_counters c = counters(i, GC_UNKNOWN);

		c.looks = true;
		c.collecting = i % 4 == 0;
		gc_counts_look(&g, &c, i * S / 10 + S / 10);
	}
	gc_totals_add(&t, gc_totals_row(&t, "CPython"), &g);
	assert_true(gc_row_time(&t.rows[0], &time));
	assert_true(time.estimated);
	assert_int_equal(time.ns, 10 * S / 4);
	/* Wilson's interval of 25 of 100: 17.55 to 34.30 %. */
	assert_in_range(time.low_ns, 1750 * MS, 1760 * MS);
	assert_in_range(time.high_ns, 3425 * MS, 3435 * MS);
}

static void looks_that_find_the_same_collection_say_less(void **state)
{
	struct gc_row few = { .looks = 100,
			      .collecting = 25,
			      .found = 5,
			      .looked_ns = 10 * S,
			      .time_ns = GC_UNKNOWN };
	struct gc_row many = few;
	struct gc_time_of a, b;

	(void)state;
	many.found = 25;
	assert_true(gc_row_time(&few, &a) && gc_row_time(&many, &b));
	assert_int_equal(a.ns, b.ns);
	assert_true(a.high_ns - a.low_ns > 2 * (b.high_ns - b.low_ns) * 9 / 10);
}

static void nothing_is_known_of_a_runtime_that_says_nothing(void **state)
{
	struct gc_row row = { .time_ns = GC_UNKNOWN };
	struct gc_totals t = { 0 };
	struct gc_sample s;
	struct gc_time_of time;

	(void)state;
	assert_false(gc_row_time(&row, &time));
	gc_totals_sample(&t, &s);
	assert_false(s.known);
	assert_int_equal(s.live_bytes, GC_UNKNOWN);
}

static void sums_of_processes_that_say_too_much_stay_at_the_most(void **state)
{
	struct gc_totals t = { 0 };
	struct gc_time_of time;
	struct gc_counts g;
	struct gc_sample s;

	(void)state;
	gc_counts_begin(&g, true, 0);
	for (int64_t i = 1; i <= 2; i++) {
		struct gc_counters c =
			counters((uint64_t)(i * GC_COUNTED_MAX / 2), i * GC_COUNTED_MAX / 2);

		c.live_bytes = GC_COUNTED_MAX;
		gc_counts_look(&g, &c, (uint64_t)i);
	}
	for (int i = 0; i < 600; i++) {
		gc_totals_add(&t, gc_totals_row(&t, "GHC"), &g);
		gc_totals_live(&t, 0, &g);
	}
	assert_int_equal(t.rows[0].time_ns, INT64_MAX);
	assert_int_equal(t.rows[0].live_bytes, INT64_MAX);
	t.rows[0].looks = t.rows[0].collecting = t.rows[0].found = 1;
	assert_true(gc_row_time(&t.rows[0], &time));
	assert_int_equal(time.high_ns, INT64_MAX);
	gc_totals_sample(&t, &s);
	assert_int_equal(s.count, INT64_MAX);
	assert_int_equal(s.time_ns, INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_before_the_run_is_not_of_it),
		cmocka_unit_test(a_pause_is_known_where_one_collection_was_between_two_looks),
		cmocka_unit_test(the_runtimes_own_longest_pause_is_the_runs_where_it_grew_in_it),
		cmocka_unit_test(
			a_pause_that_the_runtime_times_counts_once_and_if_it_ended_in_the_run),
		cmocka_unit_test(time_that_is_not_counted_is_estimated_by_looks),
		cmocka_unit_test(looks_that_find_the_same_collection_say_less),
		cmocka_unit_test(nothing_is_known_of_a_runtime_that_says_nothing),
		cmocka_unit_test(sums_of_processes_that_say_too_much_stay_at_the_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
