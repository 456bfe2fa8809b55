#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/overhead/sample_throttle.h"

#define TICK_NS 100000000ULL

struct load {
	struct sample_throttle t;
	uint64_t now, allocs, kept, frees;
};

/* So many samples and frees a second, for a while; the answers, ORed as bits. */
static unsigned run(struct load *l, double seconds, double per_s)
{
	unsigned said = 0;

	for (double s = 0; s < seconds; s += 0.1) {
		uint64_t n = (uint64_t)(per_s / 10);

		l->now += TICK_NS;
		l->allocs += n;
		l->frees += n;
		l->kept += n >> l->t.shift;
		said |= 1u << sample_throttle_tick(&l->t, l->now, l->allocs, l->kept, l->frees);
	}
	return said;
}

static void few_samples_are_all_kept(void **state)
{
	struct load l = { .t = { .max_percent = 5 } };

	(void)state;
	assert_int_equal(run(&l, 60, 2000), 1u << SAMPLE_THROTTLE_FINE);
	assert_int_equal(l.t.shift, 0);
}

/* 25,000 a second: 78 ms of CPU when all are kept, 39 ms for the traps alone. */
static void more_than_the_budget_is_thinned_until_it_fits(void **state)
{
	struct load l = { .t = { .max_percent = 5 } };
	uint64_t kept, frees;

	(void)state;
	assert_int_equal(run(&l, 20, 25000),
			 1u << SAMPLE_THROTTLE_FINE | 1u << SAMPLE_THROTTLE_CHANGED);
	assert_true(l.t.shift >= 2 && l.t.shift <= 4);
	kept = l.kept;
	frees = l.frees;
	run(&l, 10, 25000);
	assert_true((double)(l.frees - frees) * (520 + 520 + 500) +
			    (double)(l.kept - kept) * 1600 <=
		    10 * 0.05e9);
}

static void what_was_thinned_is_kept_again_when_it_is_quiet(void **state)
{
	struct load l = { .t = { .max_percent = 5 } };

	(void)state;
	run(&l, 20, 25000);
	assert_true(l.t.shift > 0);
	run(&l, 40, 500);
	assert_int_equal(l.t.shift, 0);
}

static void traps_that_are_too_much_by_themselves_end_it(void **state)
{
	struct load l = { .t = { .max_percent = 5 } };

	(void)state;
	assert_true(run(&l, 20, 200000) & 1u << SAMPLE_THROTTLE_STOP);
}

static void a_short_burst_changes_nothing(void **state)
{
	struct load l = { .t = { .max_percent = 5 } };

	(void)state;
	run(&l, 5, 100);
	assert_int_equal(run(&l, 0.1, 50000), 1u << SAMPLE_THROTTLE_FINE);
	assert_int_equal(run(&l, 10, 100), 1u << SAMPLE_THROTTLE_FINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_samples_are_all_kept),
		cmocka_unit_test(more_than_the_budget_is_thinned_until_it_fits),
		cmocka_unit_test(what_was_thinned_is_kept_again_when_it_is_quiet),
		cmocka_unit_test(traps_that_are_too_much_by_themselves_end_it),
		cmocka_unit_test(a_short_burst_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
