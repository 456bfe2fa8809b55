#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/session/stats.h"

#include <ctype.h>
#include <string.h>

static void every_counter_has_a_name_of_its_own_and_a_sentence(void **state)
{
	(void)state;
	for (int i = 0; i < N_STATS; i++) {
		assert_non_null(stat_rows[i].name);
		assert_true(strlen(stat_rows[i].help) > 0);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(stat_rows[i].name, stat_rows[k].name);
	}
}

/* They are keys of --json and of metrics. */
static void names_are_lower_case_words_joined_by_underscores(void **state)
{
	(void)state;
	for (int i = 0; i < N_STATS; i++)
		for (const char *c = stat_rows[i].name; *c; c++)
			assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) ||
				    *c == '_');
}

static void what_is_lost_is_marked_and_what_is_counted_is_not(void **state)
{
	(void)state;
	assert_true(stat_rows[STAT_TOTAL_FULL].loss);
	assert_true(stat_rows[STAT_STACK_LOST].loss);
	assert_false(stat_rows[STAT_ONCPU_SAMPLES].loss);
	assert_false(stat_rows[STAT_STACK_SENT].loss);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_counter_has_a_name_of_its_own_and_a_sentence),
		cmocka_unit_test(names_are_lower_case_words_joined_by_underscores),
		cmocka_unit_test(what_is_lost_is_marked_and_what_is_counted_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
