#include "render/formats/palette.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

static void every_choice_but_auto_is_a_palette(void **state)
{
	char copy[] = PALETTE_CHOICES, *save = NULL;
	char *w = strtok_r(copy, "|", &save);
	int n = 0;

	assert_string_equal(w, "auto");
	assert_null(palette_find("auto"));
	for (; w; w = strtok_r(NULL, "|", &save), n++) {
		assert_string_equal(palette_choice(n), w);
		assert_true(!n || palette_find(w));
	}
	assert_true(n >= 10);
	assert_null(palette_find("chartreuse"));
}

static void shades_spread_and_do_not_change(void **state)
{
	uint32_t seen[PALETTE_SHADES] = { 0 };
	char name[16];

	for (int i = 0; i < 3200; i++) {
		snprintf(name, sizeof(name), "fn%d", i);
		assert_int_equal(palette_shade(name), palette_shade(name));
		seen[palette_shade(name)]++;
	}
	/* 100 each on average; 6 sigma of a binomial is 60. */
	for (int i = 0; i < PALETTE_SHADES; i++)
		assert_in_range(seen[i], 40, 160);
	/* Pinned: two versions of memscope must colour one name alike. */
	assert_int_equal(palette_shade("main"), 29);
}

static int hue(uint32_t rgb)
{
	int r = rgb >> 16, g = rgb >> 8 & 0xff, b = rgb & 0xff;

	return r >= g && r >= b ? (g >= b ? (g - b) * 60 / (r - b + 1) : 300) : g >= b ? 120 : 240;
}

static void kernel_frames_are_orange_and_told_apart(void **state)
{
	const struct palette *p = palette_find("cpu");

	assert_true(palette_shows_kinds(p));
	for (uint32_t k = 0; k < PALETTE_SHADES; k++) {
		assert_in_range(hue(palette_color(p, FRAME_KERNEL, k)), 10, 32);
		assert_in_range(hue(palette_color(p, FRAME_USER, k)), 36, 60);
	}
}

static void hot_is_what_flamegraph_users_know(void **state)
{
	const struct palette *p = palette_find("hot");

	assert_false(palette_shows_kinds(p));
	for (uint32_t k = 0; k < PALETTE_SHADES; k++) {
		uint32_t c = palette_color(p, FRAME_KERNEL, k);

		assert_int_equal(c, palette_color(p, FRAME_USER, k));
		assert_in_range(c >> 16, 205, 255);
		assert_in_range(c & 0xff, 0, 55);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_choice_but_auto_is_a_palette),
		cmocka_unit_test(shades_spread_and_do_not_change),
		cmocka_unit_test(kernel_frames_are_orange_and_told_apart),
		cmocka_unit_test(hot_is_what_flamegraph_users_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
