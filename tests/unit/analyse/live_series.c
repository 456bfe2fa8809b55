#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/live_series.h"

#define LEAKY   ((stack_id){ 7 })
#define CHURN   ((stack_id){ 8 })
#define BACKLOG ((stack_id){ 9 })
#define MIB     (1 << 20)

static void live_bytes_are_those_of_the_moment(void **state)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	const struct live_series_row *rows[2];
	const double *times;

	live_series_add(b, 1, LEAKY, 2, 200);
	live_series_tick(b, 1);
	live_series_add(b, 1, LEAKY, -1, -50);
	live_series_add(b, 2, LEAKY, 1, 1000);
	live_series_add(b, 1, CHURN, 1, 10);
	live_series_tick(b, 2);
	live_series_drop(b, 2);
	live_series_tick(b, 3);
	assert_int_equal(live_series_times(b, &times), 3);
	assert_true(times[0] == 1 && times[2] == 3);
	assert_int_equal(live_series_rank(b, rows, 2), 2);
	assert_int_equal(rows[0]->image, 2);
	assert_int_equal(rows[0]->bytes[0], 0);
	assert_int_equal(rows[0]->bytes[1], 1000);
	assert_int_equal(rows[0]->bytes[2], 0);
	assert_int_equal(rows[1]->bytes[0], 200);
	assert_int_equal(rows[1]->bytes[1], 150);
	assert_int_equal(rows[1]->made, 2);
	assert_int_equal(live_series_other(b, rows, 2, 1), 10);
	assert_int_equal(live_series_other(b, rows, 0, 1), 1160);
	(void)state;
}

static void long_runs_keep_fewer_moments_evenly_spaced(void **state)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	const struct live_series_row *row;
	const double *times;
	uint32_t n;

	for (int i = 0; i < 5000; i++) {
		live_series_add(b, 1, LEAKY, 1, 100);
		live_series_tick(b, i);
	}
	n = live_series_times(b, &times);
	assert_true(n > LIVE_SERIES_TICKS / 2 - 1 && n <= LIVE_SERIES_TICKS);
	live_series_rank(b, &row, 1);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(times[i] == i * (times[1] - times[0]));
		assert_true((double)row->bytes[i] == 100 * (times[i] + 1));
	}
	(void)state;
}

static void more_stacks_than_there_is_room_for_are_other(void **state)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	const struct live_series_row *rows[3];

	for (uint32_t i = 0; i < LIVE_SERIES_MAX + 500; i++)
		live_series_add(b, 1, (stack_id){ i }, 1, i == 3 ? 77 : 1);
	live_series_tick(b, 0);
	assert_int_equal(live_series_rank(b, rows, 3), 3);
	assert_int_equal(rows[0]->live, 77);
	assert_int_equal(live_series_other(b, rows, 1, 0), LIVE_SERIES_MAX + 500 - 1);
	(void)state;
}

/* Every row is taken when the leak begins, and hundreds of new stacks come at every tick that keep nothing for
 * long: it has a row, and the sum of all is what it was. */
static void a_leak_that_begins_late_among_many_stacks_has_a_row(void **state)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	const stack_id leaky = { 1 << 20 };
	const int64_t others = LIVE_SERIES_MAX + 100; /* of one byte each */
	struct leak leaks[2];
	uint32_t made = 0;

	for (uint32_t i = 0; i < others; i++)
		live_series_add(b, 1, (stack_id){ i }, 1, 1);
	for (int i = 0; i < 100; i++) {
		for (uint32_t k = 0; k < 300; k++)
			live_series_add(b, 1, (stack_id){ 10000 + 300 * (uint32_t)i + k }, 1, 1000);
		if (i >= 40)
			live_series_add(b, 1, leaky, 10, MIB / 10), made += 10;
		live_series_tick(b, i);
		for (uint32_t k = 0; k < 300; k++)
			live_series_add(b, 1, (stack_id){ 10000 + 300 * (uint32_t)i + k }, -1,
					-1000);
	}
	live_series_tick(b, 100);
	assert_int_equal(live_series_other(b, NULL, 0, 100), others + 60 * (MIB / 10));
	assert_true(live_series_moved(b).rows > 10000);
	live_series_old(b, 1, leaky, made / 2);
	assert_int_equal(live_series_leaks(b, 30, leaks, 2), 1);
	assert_int_equal(leaks[0].row->stack.ix, leaky.ix);
	assert_int_equal(leaks[0].row->live, 60 * (MIB / 10));
	(void)state;
}

/* One stack keeps everything; one gives all back within a tick; one keeps what it has for ten ticks
 * and makes more all the time: it grows too, but nothing of it lasts. */
static void what_grows_and_stays_is_a_leak(void **state)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	struct leak leaks[4];

	for (int i = 0; i < 60; i++) {
		live_series_add(b, 1, LEAKY, 10, MIB);
		live_series_add(b, 1, CHURN, 1000, 50 * MIB);
		live_series_add(b, 1, CHURN, -1000, -50 * MIB);
		live_series_add(b, 1, BACKLOG, i, (int64_t)i * MIB);
		if (i >= 10)
			live_series_add(b, 1, BACKLOG, -(i - 10), -(int64_t)(i - 10) * MIB);
		live_series_tick(b, i);
	}
	for (int i = 0; i < 300; i++) /* all that LEAKY had made 30 s before the end */
		live_series_old(b, 1, LEAKY, 1);
	assert_int_equal(live_series_leaks(b, 30, leaks, 4), 1);
	assert_int_equal(leaks[0].row->stack.ix, LEAKY.ix);
	assert_true(leaks[0].shape.tail.slope > 1023.9 && leaks[0].shape.tail.slope < 1024.1);
	assert_true(leaks[0].survived > 0.99);
	assert_int_equal(live_series_leaks(b, 30, leaks, 0), 0);
	(void)state;
}

/* A line in `ticks` ticks of `tick_s`, `bytes` each: is it a leak, and of which slope? */
static bool line_leaks(int ticks, double tick_s, int64_t bytes,
		       const struct live_series_error *error, struct series_line *ret_line)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	struct leak leak;

	for (int i = 0; i < ticks; i++) {
		live_series_add(b, 1, LEAKY, 1, bytes);
		live_series_tick(b, i * tick_s);
	}
	live_series_old(b, 1, LEAKY, (uint64_t)ticks);
	live_series_error(b, 1, LEAKY, error);
	if (!live_series_leaks(b, tick_s, &leak, 1))
		return false;
	*ret_line = leak.shape.tail;
	return true;
}

/* 100 MiB in the end, 40 % less or 20 % more, and all of it 10 % more: of a line through a random walk 6/5 of the former. */
static void what_an_estimate_may_be_off_by_is_in_the_interval_of_its_rate(void **state)
{
	const double all = 100.0 * MIB;
	const struct live_series_error error = { .low2 = pow(0.4 * all, 2),
						 .high2 = pow(0.2 * all, 2),
						 .above = 0.1 * all };
	struct series_line l;

	assert_true(line_leaks(100, 1, MIB, &(struct live_series_error){ 0 }, &l));
	assert_true(l.slope_high - l.slope_low < 0.01);
	assert_true(line_leaks(100, 1, MIB, &error, &l));
	assert_true(fabs(1 - l.slope_low / 1024 - 0.4 * sqrt(1.2)) < 0.01);
	assert_true(fabs(l.slope_high / 1024 - 1 - hypot(0.2 * sqrt(1.2), 0.1)) < 0.01);
	(void)state;
}

/*
 * 100 blocks seen, one a second and none in the last 30: of an estimate that may be off by 60 % they may be
 * missing by chance; of one that is surer, and where half of the time it has stayed, growth has stopped.
 */
static bool stays_and_leaks(int ticks, double part)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	const double half = part * ticks * MIB;
	struct leak leak;

	for (int i = 0; i < 100; i++) {
		live_series_add(b, 1, LEAKY, 1, i < ticks ? MIB : 0);
		live_series_tick(b, i);
	}
	live_series_old(b, 1, LEAKY, 100);
	live_series_error(b, 1, LEAKY,
			  &(struct live_series_error){ .low2 = half * half, .high2 = half * half });
	return live_series_leaks(b, 30, &leak, 1) == 1;
}

static void growth_that_seems_to_stop_by_chance_goes_on(void **state)
{
	assert_true(stays_and_leaks(70, 0.6));
	assert_false(stays_and_leaks(70, 0.2));
	assert_false(stays_and_leaks(45, 0.6));
	(void)state;
}

/* 1 KB a second: 60 kB in a minute are less than what matters there, 600 kB in ten more, if they are sure. */
static void what_matters_is_less_the_longer_it_goes_on(void **state)
{
	const struct live_series_error sure = { .low2 = pow(200000, 2), .high2 = pow(200000, 2) };
	const struct live_series_error unsure = { .low2 = pow(700000, 2), .high2 = pow(700000, 2) };
	struct series_line l;

	assert_false(line_leaks(60, 1, 1000, &sure, &l));
	assert_true(line_leaks(250, 2, 2000, &sure, &l));
	assert_false(line_leaks(250, 2, 2000, &unsure, &l));
	(void)state;
}

/* Up to 90 MiB and down to 9, of estimates: of a series that is a tenth of its peak in the end, errors are the peak's. */
static void the_peak_is_the_highest_moment_with_its_interval(void **state)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	const struct live_series_error error = { .low2 = MIB * (double)MIB,
						 .high2 = 4 * MIB * (double)MIB };
	struct live_series_peak peak;

	assert_false(live_series_peak(b, &peak));
	for (int i = 0; i < 20; i++) {
		live_series_add(b, 1, LEAKY, i < 10 ? 1 : -1, i < 10 ? 8 * MIB : -8 * MIB);
		live_series_add(b, 1, CHURN, 1, i == 9 ? 10 * MIB : 0);
		live_series_tick(b, i);
	}
	live_series_add(b, 1, LEAKY, 1, 8 * MIB);
	live_series_add(b, 1, CHURN, 1, -9 * MIB);
	live_series_tick(b, 20);
	assert_true(live_series_peak(b, &peak));
	assert_true(peak.t_s == 9 && peak.bytes == 90. * MIB);
	assert_true(peak.low == peak.bytes && peak.high == peak.bytes);
	live_series_error(b, 1, LEAKY, &error);
	assert_true(live_series_peak(b, &peak));
	assert_true(fabs(peak.low - 80. * MIB) < 1 && fabs(peak.high - 110. * MIB) < 1);
	(void)state;
}

static void few_ticks_are_no_evidence(void **state)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	struct leak leak;

	for (int i = 0; i < TREND_SHAPE_POINTS - 1; i++) {
		live_series_add(b, 1, LEAKY, 10, MIB);
		live_series_tick(b, i);
	}
	for (int i = 0; i < 60; i++)
		live_series_old(b, 1, LEAKY, 1);
	assert_int_equal(live_series_leaks(b, 5, &leak, 1), 0);
	(void)state;
}

static void leaks_come_fastest_first(void **state)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	struct leak leaks[2];

	for (int i = 0; i < 40; i++) {
		for (uint32_t s = 0; s < 5; s++)
			live_series_add(b, 1, (stack_id){ s }, 1, (int64_t)(s * 3 % 5 + 1) * MIB);
		live_series_tick(b, i);
	}
	for (uint32_t s = 0; s < 5; s++)
		for (int i = 0; i < 30; i++)
			live_series_old(b, 1, (stack_id){ s }, 1);
	assert_int_equal(live_series_leaks(b, 10, leaks, 2), 2);
	assert_int_equal(leaks[0].row->stack.ix, 3); /* 3 * 3 % 5 + 1 = 5 MiB */
	assert_int_equal(leaks[1].row->stack.ix, 1); /* 4 */
	(void)state;
}

static void estimates_in_a_unit_of_their_own_become_bytes_in_the_end(void **state)
{
	const struct live_series_row *rows[1];
	struct live_series *b = live_series_new();

	live_series_add(b, 1, LEAKY, 1, 10);
	live_series_tick(b, 1);
	live_series_add(b, 1, LEAKY, 1, 10);
	live_series_tick(b, 2);
	live_series_final(b, 1, LEAKY, 1500);
	live_series_final(b, 1, LEAKY, 500);
	live_series_settle(b);
	assert_int_equal(live_series_rank(b, rows, 1), 1);
	assert_int_equal(rows[0]->bytes[0], 1000);
	assert_int_equal(rows[0]->bytes[1], 2000);
	assert_int_equal(rows[0]->live, 2000);
	live_series_free(b);
	(void)state;
}

/* What held a thousand units once and holds one at the end is not multiplied by what that one is in bytes. */
static void no_moment_has_more_than_is_held(void **state)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	const struct live_series_row *rows[2];
	struct live_series_peak peak;

	for (int i = 0; i < 20; i++) {
		live_series_add(b, 1, LEAKY, 1, 100);
		live_series_add(b, 1, CHURN, 1, i == 9 ? 1000 : i == 10 ? -999 : 0);
		live_series_held(b, i == 12 ? 300000 : 210000);
		live_series_tick(b, i);
	}
	live_series_final(b, 1, LEAKY, 200000);
	live_series_final(b, 1, CHURN, 5000);
	live_series_settle(b);
	assert_int_equal(live_series_rank(b, rows, 2), 2);
	assert_int_equal(rows[0]->stack.ix, LEAKY.ix);
	for (int i = 0; i < 20; i++)
		assert_true(fabs((double)rows[0]->bytes[i] - 10000. * (i + 1)) < 2);
	assert_true(rows[1]->bytes[9] > 90000 && rows[1]->bytes[9] <= 110000);
	assert_int_equal(rows[1]->live, 5000);
	assert_true(live_series_peak(b, &peak));
	assert_true(peak.held && peak.t_s == 12 && peak.bytes == 300000 && peak.high == 300000);
	(void)state;
}

/* 60 blocks in use, of 3 MiB each second; `stop`: born until that part. */
static struct survival ages_until(int stop)
{
	struct survival s = {
		.from_s = 100, .span_s = 320, .looked = true, .lived = 28, .blocks = 60
	};

	for (int i = 0; i < stop; i++) {
		s.stay[i] = i < SURVIVAL_PARTS - SURVIVAL_YOUNG ? 2 : 0;
		s.bytes[i] = 30. * MIB;
		s.squares[i] = 450. * MIB * MIB;
	}
	for (int m = 0; m < SURVIVAL_SINCE; m++)
		s.claim[m] = s.room[m] = 320. * MIB;
	return s;
}

/* A series of estimates that stays where it was for half of the run, because few blocks are seen, says less than their ages. */
static void of_estimates_ages_decide_and_not_the_shape(void **state)
{
	const struct live_series_error error = { .below = 500. * MIB, .above = 1000. * MIB };
	struct survival leak_ages = ages_until(SURVIVAL_PARTS), stopped = ages_until(16);

	(void)state;
	for (int leaky = 0; leaky < 2; leaky++) {
		_cleanup_(live_series_freep) struct live_series *b = live_series_new();
		struct leak leak;

		for (int i = 0; i < 20; i++) {
			live_series_add(b, 1, LEAKY, 1, i < 10 ? 100 * MIB : 0);
			live_series_tick(b, 100 + 16 * i);
		}
		live_series_old(b, 1, LEAKY, 20);
		live_series_error(b, 1, LEAKY, &error);
		live_series_by_age(b);
		assert_int_equal(live_series_leaks(b, 30, &leak, 1), 0);
		assert_int_equal(live_series_survival(b, 1, LEAKY, leaky ? &leak_ages : &stopped),
				 0);
		assert_int_equal(live_series_leaks(b, 30, &leak, 1), leaky);
		assert_int_equal(live_series_stopped(b, 30, &leak, 1), !leaky);
		if (!leaky)
			continue;
		live_series_leaks(b, 30, &leak, 1);
		assert_true(leak.sampled == 60 && leak.ended == 0 && leak.sampled_age_s == 20);
		assert_true(fabs(leak.shape.tail.slope - 3 * 1024) < 1 && leak.shape.since_s == 0);
		/* 1,000 MiB are estimated; of weights half of it is certain: more than of 60 blocks. */
		assert_true(leak.shape.tail.slope_low > 3 * 1024 * 0.45);
		assert_true(leak.shape.tail.slope_low < 3 * 1024 * 0.5);
		assert_true(leak.shape.tail.slope_high > 3 * 1024 * 2);
	}
}

/* Three looks may be enough. */
static void of_estimates_few_looks_are_enough(void **state)
{
	_cleanup_(live_series_freep) struct live_series *b = live_series_new();
	struct survival ages = ages_until(SURVIVAL_PARTS);
	struct leak leak;

	(void)state;
	for (int i = 0; i < 3; i++) {
		live_series_add(b, 1, LEAKY, 20, 300 * MIB);
		live_series_tick(b, 100 + 100 * i);
	}
	live_series_old(b, 1, LEAKY, 60);
	live_series_by_age(b);
	live_series_survival(b, 1, LEAKY, &ages);
	assert_int_equal(live_series_leaks(b, 30, &leak, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_bytes_are_those_of_the_moment),
		cmocka_unit_test(long_runs_keep_fewer_moments_evenly_spaced),
		cmocka_unit_test(more_stacks_than_there_is_room_for_are_other),
		cmocka_unit_test(a_leak_that_begins_late_among_many_stacks_has_a_row),
		cmocka_unit_test(what_grows_and_stays_is_a_leak),
		cmocka_unit_test(what_an_estimate_may_be_off_by_is_in_the_interval_of_its_rate),
		cmocka_unit_test(growth_that_seems_to_stop_by_chance_goes_on),
		cmocka_unit_test(what_matters_is_less_the_longer_it_goes_on),
		cmocka_unit_test(the_peak_is_the_highest_moment_with_its_interval),
		cmocka_unit_test(few_ticks_are_no_evidence),
		cmocka_unit_test(leaks_come_fastest_first),
		cmocka_unit_test(estimates_in_a_unit_of_their_own_become_bytes_in_the_end),
		cmocka_unit_test(no_moment_has_more_than_is_held),
		cmocka_unit_test(of_estimates_ages_decide_and_not_the_shape),
		cmocka_unit_test(of_estimates_few_looks_are_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
