#include "screen/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void no_key_means_two_things_in_a_view(void **state)
{
	for (unsigned in = 1; in <= IN_ALL; in <<= 1)
		for (const struct key_row *a = key_rows; a->name; a++)
			for (const struct key_row *b = a + 1; b->name; b++)
				for (int i = 0; (a->in & b->in & in) && i < 4 && a->keys[i]; i++)
					for (int k = 0; k < 4 && b->keys[k]; k++)
						if (a->keys[i] == b->keys[k])
							fail_msg("%s and %s", a->name, b->name);
}

static void every_view_has_a_way_back_out_and_help(void **state)
{
	for (unsigned in = 1; in <= IN_ALL; in <<= 1) {
		assert_int_equal(key_action('q', (enum view_kind)in), ACT_QUIT);
		assert_int_equal(key_action(KEY_CTRL('c'), (enum view_kind)in), ACT_QUIT);
		assert_int_equal(key_action(KEY_ESCAPE, (enum view_kind)in), ACT_BACK);
		assert_int_equal(key_action('?', (enum view_kind)in), ACT_HELP);
	}
	assert_int_equal(key_action('h', IN_PICKER), ACT_HEAP);
	assert_int_equal(key_action('h', IN_HELP), ACT_NONE);
}

/* The help page has 80 columns on the smallest screen. */
static void help_fits_into_80_columns(void **state)
{
	for (const struct key_row *k = key_rows; k->name; k++) {
		if (strlen(k->name) > 14)
			fail_msg("%s is too long", k->name);
		if (strlen(k->help) > 63)
			fail_msg("%s: %s is too long", k->name, k->help);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_key_means_two_things_in_a_view),
		cmocka_unit_test(every_view_has_a_way_back_out_and_help),
		cmocka_unit_test(help_fits_into_80_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
