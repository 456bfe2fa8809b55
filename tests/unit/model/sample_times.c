#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/sample_times.h"

#define SECOND 1000000000ULL

static const uint32_t types[] = { 1, 0 };

static int64_t total(const struct sample_times *t, uint32_t sample, int type)
{
	int64_t sums[SAMPLE_TIMES_TYPES];

	sample_times_sum(t, sample, 0, UINT32_MAX, sums);
	return sums[type];
}

static void assert_entry(const struct sample_times *t, uint32_t sample, uint32_t i, uint32_t bin,
			 int64_t first, int64_t second)
{
	struct sample_time_reader at = sample_times_read(t, sample);
	struct sample_time entry;

	do
		assert_true(sample_times_next(&at, &entry));
	while (i--);
	assert_int_equal(entry.bin, bin);
	assert_int_equal(entry.values[0], first);
	assert_int_equal(entry.values[1], second);
}

static void a_moment_is_in_its_bin(void **state)
{
	struct sample_times *t = sample_times_new(types, 2, SECOND, 100);
	const int64_t one[] = { 10, 1 };

	assert_int_equal(sample_times_type(t, 0), 1);
	assert_int_equal(sample_times_add(t, 3, 0, one), 0);
	assert_int_equal(sample_times_add(t, 3, SECOND - 1, one), 0);
	assert_int_equal(sample_times_add(t, 3, 7 * SECOND, one), 0);
	assert_int_equal(sample_times_add(t, 3, 2 * SECOND, one),
			 0); /* added later, of a time before */
	assert_int_equal(sample_times_count(t, 3), 3);
	assert_entry(t, 3, 0, 0, 20, 2);
	assert_entry(t, 3, 1, 2, 10, 1);
	assert_entry(t, 3, 2, 7, 10, 1);
	assert_int_equal(sample_times_n_bins(t), 8);
	assert_int_equal(sample_times_n_samples(t), 4);
	assert_int_equal(sample_times_n_entries(t), 3);
	assert_int_equal(sample_times_count(t, 2), 0);
	assert_int_equal(sample_times_count(t, 1000), 0);
	sample_times_free(t);
}

static void a_wait_is_spread_over_the_bins_that_it_spans(void **state)
{
	struct sample_times *t = sample_times_new(types, 1, SECOND, 100);
	const int64_t ns[] = { 3 * SECOND + 5 };

	assert_int_equal(sample_times_add_span(t, 0, SECOND / 2, 7 * SECOND / 2 + 5, ns), 0);
	assert_int_equal(sample_times_count(t, 0), 4);
	assert_entry(t, 0, 0, 0, SECOND / 2, 0);
	assert_entry(t, 0, 1, 1, SECOND, 0);
	assert_entry(t, 0, 2, 2, SECOND, 0);
	assert_entry(t, 0, 3, 3, SECOND / 2 + 5, 0);
	sample_times_free(t);
}

static void a_span_that_ends_where_a_bin_begins_is_not_in_that_bin(void **state)
{
	struct sample_times *t = sample_times_new(types, 1, SECOND, 100);
	const int64_t seven[] = { 7 };

	assert_int_equal(sample_times_add_span(t, 0, 0, 2 * SECOND, seven), 0);
	assert_int_equal(sample_times_count(t, 0), 2);
	assert_int_equal(total(t, 0, 0), 7);
	sample_times_free(t);
}

/* What is added, in any order, with any budget, is what the bins add up to; and there are no more entries than said. */
static void bins_add_up_to_what_was_added(void **state)
{
	for (uint32_t max = 1; max <= 4096; max *= 4) {
		struct sample_times *t = sample_times_new(types, 2, SECOND / 128, max);
		int64_t want[40][2] = { 0 };

		srand(max);
		for (int n = 0; n < 5000; n++) {
			uint32_t i = (uint32_t)rand() % 40;
			uint64_t at = (uint64_t)n * SECOND / 50 + (uint64_t)rand() % SECOND;
			const int64_t v[] = { rand() % 1000 - 100, rand() };
			uint64_t len = n % 3 ? 0 : (uint64_t)rand() * 8;

			assert_int_equal(
				sample_times_add_span(t, i, at > len ? at - len : 0, at, v), 0);
			want[i][0] += v[0];
			want[i][1] += v[1];
			assert_true(sample_times_n_entries(t) <= (max > 80 ? max : 80));
		}
		for (uint32_t i = 0; i < 40; i++)
			for (int k = 0; k < 2; k++)
				assert_int_equal(total(t, i, k), want[i][k]);
		assert_int_equal(SECOND % sample_times_bin_ns(t) && sample_times_bin_ns(t) % SECOND,
				 0);
		sample_times_free(t);
	}
}

static void joined_bins_are_sorted_and_each_there_once(void **state)
{
	struct sample_times *t = sample_times_new(types, 1, SECOND, 16);
	const int64_t one[] = { 1 };

	for (uint64_t s = 0; s < 1000; s++)
		assert_int_equal(sample_times_add(t, 0, s * SECOND, one), 0);
	assert_int_equal(sample_times_bin_ns(t), 64 * SECOND);
	assert_int_equal(sample_times_count(t, 0), 16);
	for (uint32_t i = 0; i < 15; i++)
		assert_entry(t, 0, i, i, 64, 0);
	assert_entry(t, 0, 15, 15, 40, 0);
	assert_int_equal(sample_times_n_bins(t), 16);
	sample_times_free(t);
}

static void a_part_of_the_time_has_the_bins_in_it(void **state)
{
	struct sample_times *t = sample_times_new(types, 2, SECOND, 100);
	int64_t sums[SAMPLE_TIMES_TYPES];

	for (uint64_t s = 0; s < 10; s++)
		assert_int_equal(
			sample_times_add(t, 0, s * SECOND, (int64_t[]){ 1 << s, (int64_t)s }), 0);
	sample_times_sum(t, 0, 2, 5, sums);
	assert_int_equal(sums[0], 4 + 8 + 16);
	assert_int_equal(sums[1], 2 + 3 + 4);
	sample_times_sum(t, 0, 5, 5, sums);
	assert_int_equal(sums[0], 0);
	sample_times_sum(t, 9, 0, 5, sums);
	assert_int_equal(sums[0], 0);
	sample_times_free(t);
}

/* Sampled waits are reassigned, and a stack's total is corrected in the end. */
static void a_corrected_total_is_what_the_bins_add_up_to(void **state)
{
	struct sample_times *t = sample_times_new(types, 2, SECOND, 100);

	assert_int_equal(sample_times_add(t, 0, 0, (int64_t[]){ 100, 7 }), 0);
	assert_int_equal(sample_times_add(t, 0, SECOND, (int64_t[]){ -50, 0 }), 0);
	assert_int_equal(sample_times_add(t, 0, 2 * SECOND, (int64_t[]){ 200, 4 }), 0);
	assert_int_equal(sample_times_fit(t, 0, (int64_t[]){ 100, 11 }, 0), 0);
	assert_entry(t, 0, 0, 0, 33, 7);
	assert_entry(t, 0, 1, 1, 0, 0);
	assert_entry(t, 0, 2, 2, 67, 4);
	assert_int_equal(sample_times_fit(t, 0, (int64_t[]){ 0, 0 }, 0), 0);
	assert_int_equal(total(t, 0, 0), 0);
	assert_int_equal(sample_times_fit(t, 5, (int64_t[]){ 9, 0 }, 3), 0);
	assert_entry(t, 5, 0, 3, 9, 0);
	assert_int_equal(sample_times_fit(t, 6, (int64_t[]){ 0, 0 }, 3), 0);
	assert_int_equal(sample_times_count(t, 6), 0);
	sample_times_free(t);
}

/* 12 years in bins of 8 ms: the number of a bin does not run over. */
static void a_moment_far_away_makes_bins_wider(void **state)
{
	struct sample_times *t = sample_times_new(types, 1, SAMPLE_TIMES_FINE_NS, 100);

	assert_int_equal(sample_times_add(t, 0, 0, (int64_t[]){ 1 }), 0);
	assert_int_equal(sample_times_add(t, 0, UINT64_MAX, (int64_t[]){ 1 }), 0);
	assert_int_equal(total(t, 0, 0), 2);
	assert_true(sample_times_bin_ns(t) > SAMPLE_TIMES_FINE_NS);
	sample_times_free(t);
}

static void what_is_forgotten_leaves_room_for_the_first_width(void **state)
{
	struct sample_times *t = sample_times_new(types, 1, SECOND, 16);

	for (uint64_t s = 0; s < 100; s++)
		assert_int_equal(sample_times_add(t, 0, s * SECOND, (int64_t[]){ 1 }), 0);
	sample_times_clear(t);
	assert_int_equal(sample_times_n_entries(t), 0);
	assert_int_equal(sample_times_n_bins(t), 0);
	assert_int_equal(sample_times_bin_ns(t), SECOND);
	assert_int_equal(sample_times_add(t, 0, 100 * SECOND, (int64_t[]){ 1 }), 0);
	assert_entry(t, 0, 0, 100, 1, 0);
	sample_times_free(t);
}

static void bins_are_widened_before_much_is_added(void **state)
{
	struct sample_times *t = sample_times_new(types, 1, SECOND, 1000);

	assert_int_equal(sample_times_add(t, 0, 3 * SECOND, (int64_t[]){ 5 }), 0);
	sample_times_reach(t, 15 * SECOND, 16);
	assert_int_equal(sample_times_bin_ns(t), SECOND);
	sample_times_reach(t, 16 * SECOND, 16);
	assert_int_equal(sample_times_bin_ns(t), 2 * SECOND);
	assert_entry(t, 0, 0, 1, 5, 0);
	sample_times_reach(t, UINT64_MAX, 16);
	assert_true(UINT64_MAX / sample_times_bin_ns(t) < 16);
	sample_times_free(t);
}

static void what_joins_into_one_entry_can_grow_again(void **state)
{
	struct sample_times *t = sample_times_new(types, 1, SECOND, 1000);

	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(sample_times_add(t, 0, i * sample_times_bin_ns(t),
							  (int64_t[]){ 5 }),
					 0);
		assert_int_equal(sample_times_count(t, 0), 4);
		assert_int_equal(total(t, 0, 0), turn ? 40 : 20);
		sample_times_reach(t, 4 * sample_times_bin_ns(t) - 1, 1);
		assert_int_equal(sample_times_count(t, 0), 1);
	}
	assert_entry(t, 0, 0, 0, 40, 0);
	sample_times_free(t);
}

struct seen {
	uint32_t n, bins[64], samples[64];
};

static int note(void *ctx, uint32_t sample, const struct sample_time *entry)
{
	struct seen *s = ctx;

	s->bins[s->n] = entry->bin;
	s->samples[s->n++] = sample;
	return s->n == 64 ? 1 : 0;
}

static void entries_come_in_the_order_of_time(void **state)
{
	struct sample_times *t = sample_times_new(types, 1, SECOND, 1000);
	struct seen seen = { 0 };

	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(
			sample_times_add(t, i % 7, (i * 11ull % 13) * SECOND, (int64_t[]){ 1 }), 0);
	assert_int_equal(sample_times_in_order(t, note, &seen), 0);
	assert_int_equal(seen.n, sample_times_n_entries(t));
	for (uint32_t i = 1; i < seen.n; i++)
		assert_true(seen.bins[i - 1] < seen.bins[i] ||
			    (seen.bins[i - 1] == seen.bins[i] &&
			     seen.samples[i - 1] < seen.samples[i]));
	seen.n = 63;
	assert_int_equal(sample_times_in_order(t, note, &seen), 1);
	assert_int_equal(seen.n, 64);
	sample_times_free(t);
}

/* A file may have any. */
static void values_stay_at_the_most(void **state)
{
	struct sample_times *t = sample_times_new(types, 2, SECOND, 100);
	const int64_t most[] = { INT64_MAX, INT64_MIN };

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(sample_times_add(t, 0, i / 2 * SECOND, most), 0);
	assert_entry(t, 0, 0, 0, INT64_MAX, INT64_MIN);
	assert_entry(t, 0, 1, 1, INT64_MAX, INT64_MIN);
	assert_int_equal(total(t, 0, 0), INT64_MAX);
	assert_int_equal(total(t, 0, 1), INT64_MIN);
	assert_int_equal(sample_times_fit(t, 0, (int64_t[]){ INT64_MAX, 7 }, 0), 0);
	assert_entry(t, 0, 0, 0, INT64_MAX / 2, 0);
	assert_int_equal(total(t, 0, 0), INT64_MAX);
	assert_int_equal(total(t, 0, 1), 7);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(sample_times_add(t, 1, i * SECOND, most), 0);
	assert_int_equal(sample_times_add(t, 2, UINT64_MAX, most), 0); /* joins bins */
	assert_entry(t, 1, 0, 0, INT64_MAX, INT64_MIN);
	sample_times_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_moment_is_in_its_bin),
		cmocka_unit_test(a_wait_is_spread_over_the_bins_that_it_spans),
		cmocka_unit_test(a_span_that_ends_where_a_bin_begins_is_not_in_that_bin),
		cmocka_unit_test(bins_add_up_to_what_was_added),
		cmocka_unit_test(joined_bins_are_sorted_and_each_there_once),
		cmocka_unit_test(a_part_of_the_time_has_the_bins_in_it),
		cmocka_unit_test(a_corrected_total_is_what_the_bins_add_up_to),
		cmocka_unit_test(a_moment_far_away_makes_bins_wider),
		cmocka_unit_test(bins_are_widened_before_much_is_added),
		cmocka_unit_test(what_is_forgotten_leaves_room_for_the_first_width),
		cmocka_unit_test(what_joins_into_one_entry_can_grow_again),
		cmocka_unit_test(entries_come_in_the_order_of_time),
		cmocka_unit_test(values_stay_at_the_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
