#include "render/formats/svg_change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint32_t red(uint32_t color)
{
	return color >> 16;
}

static uint32_t blue(uint32_t color)
{
	return color & 0xff;
}

static uint32_t color(int64_t before, int64_t after)
{
	return svg_change_color(svg_change_shade((struct svg_change){ before, after }));
}

static void new_is_the_reddest_and_gone_the_bluest(void **state)
{
	assert_int_equal(svg_change_shade((struct svg_change){ 0, 1 }), 2 * SVG_CHANGE_STEPS);
	assert_int_equal(svg_change_shade((struct svg_change){ 1, 0 }), 0);
	assert_int_equal(svg_change_shade((struct svg_change){ 5, 5 }), SVG_CHANGE_STEPS);
	assert_int_equal(svg_change_shade((struct svg_change){ 0, 0 }), SVG_CHANGE_STEPS);
	assert_true(red(color(0, 9)) > blue(color(0, 9)) + 100);
	assert_true(blue(color(9, 0)) > red(color(9, 0)) + 100);
}

static void the_larger_the_change_the_deeper_the_colour(void **state)
{
	for (int64_t by = 0; by < 100; by += 10) {
		assert_true(blue(color(100, 100 + by + 10)) <= blue(color(100, 100 + by)));
		assert_true(red(color(100, 100 - by - 10)) <= red(color(100, 100 - by)));
	}
}

static void turning_the_profiles_round_turns_the_colour_round(void **state)
{
	for (int64_t after = 0; after <= 200; after += 7)
		assert_int_equal(svg_change_shade((struct svg_change){ 100, after }) +
					 svg_change_shade((struct svg_change){ after, 100 }),
				 2 * SVG_CHANGE_STEPS);
}

static void no_number_is_too_large(void **state)
{
	struct frame_sides s = { .total = { INT64_MAX, INT64_MAX } };

	assert_true(svg_change(&s, 0).before == INT64_MAX);
	assert_true(svg_change(&s, 1e30).before == INT64_MAX);
	assert_true(svg_change(&s, 0.5).before > INT64_MAX / 3);
	assert_int_equal(svg_change_shade((struct svg_change){ 1, INT64_MAX }),
			 2 * SVG_CHANGE_STEPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_is_the_reddest_and_gone_the_bluest),
		cmocka_unit_test(the_larger_the_change_the_deeper_the_colour),
		cmocka_unit_test(turning_the_profiles_round_turns_the_colour_round),
		cmocka_unit_test(no_number_is_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
