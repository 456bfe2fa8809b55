#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/overhead/cost_pace.h"

#define OFTEN_NS 16000000000ULL

static void window(struct cost_pace *p, double expected, double found)
{
	cost_pace_figure(p, expected, found);
	cost_pace_window(p);
}

static struct cost_pace known(void)
{
	struct cost_pace p = { 0 };

	for (int i = 0; i < COST_PACE_AGREE; i++) {
		assert_int_equal(cost_pace_every_ns(&p, OFTEN_NS), OFTEN_NS);
		window(&p, 400, 450);
	}
	return p;
}

static void a_cost_that_some_windows_agree_on_is_measured_rarely(void **state)
{
	struct cost_pace p = known();

	(void)state;
	assert_int_equal(cost_pace_every_ns(&p, OFTEN_NS), COST_PACE_RARELY_NS);
	window(&p, 400, 201);
	assert_int_equal(cost_pace_every_ns(&p, OFTEN_NS), COST_PACE_RARELY_NS);
	/* Whatever is rarer anyway stays so. */
	assert_int_equal(cost_pace_every_ns(&p, 2 * COST_PACE_RARELY_NS), 2 * COST_PACE_RARELY_NS);
}

static void one_window_that_does_not_agree_makes_it_learned_anew(void **state)
{
	struct cost_pace p = known();

	(void)state;
	cost_pace_figure(&p, 400, 601);
	cost_pace_figure(&p, 100, 100); /* another source's */
	cost_pace_window(&p);
	for (int i = 0; i < COST_PACE_AGREE; i++) {
		assert_int_equal(cost_pace_every_ns(&p, OFTEN_NS), OFTEN_NS);
		window(&p, 400, 400);
	}
	assert_int_equal(cost_pace_every_ns(&p, OFTEN_NS), COST_PACE_RARELY_NS);
	cost_pace_anew(&p);
	assert_int_equal(cost_pace_every_ns(&p, OFTEN_NS), OFTEN_NS);
}

static void a_window_of_too_few_events_says_nothing(void **state)
{
	struct cost_pace p = { 0 };

	(void)state;
	for (int i = 0; i < 10; i++)
		cost_pace_window(&p);
	assert_int_equal(cost_pace_every_ns(&p, OFTEN_NS), OFTEN_NS);
	p = known();
	cost_pace_window(&p);
	assert_int_equal(cost_pace_every_ns(&p, OFTEN_NS), COST_PACE_RARELY_NS);
}

static void what_was_not_expected_at_all_does_not_agree(void **state)
{
	struct cost_pace p = known();

	(void)state;
	window(&p, 0, 1);
	assert_int_equal(cost_pace_every_ns(&p, OFTEN_NS), OFTEN_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cost_that_some_windows_agree_on_is_measured_rarely),
		cmocka_unit_test(one_window_that_does_not_agree_makes_it_learned_anew),
		cmocka_unit_test(a_window_of_too_few_events_says_nothing),
		cmocka_unit_test(what_was_not_expected_at_all_does_not_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
