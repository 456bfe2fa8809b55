#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/session/sources.h"

#include <errno.h>
#include <string.h>

/* pprof shows a value type by its index, and a profile's period by a type of its own. */
static void each_profile_has_a_name_and_shows_a_type_that_it_has(void **state)
{
	(void)state;
	for (int i = 0; i < profile_kinds(); i++) {
		const struct profile_row *row = &profile_rows[i];

		assert_non_null(row->name);
		assert_in_range(row->n_types, 1, sizeof(row->types) / sizeof(*row->types));
		assert_true(row->default_type < row->n_types);
		assert_non_null(row->period.name);
		for (uint32_t t = 0; t < row->n_types; t++)
			assert_true(row->types[t].name && row->types[t].unit);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(row->name, profile_rows[k].name);
	}
}

/* The names that pprof's tools, and scripts, ask for. */
static void value_types_are_spelled_as_pprof_expects(void **state)
{
	(void)state;
	assert_string_equal(profile_rows[PROFILE_ONCPU].types[1].name, "cpu");
	assert_string_equal(profile_rows[PROFILE_ONCPU].types[1].unit, "nanoseconds");
	assert_string_equal(profile_rows[PROFILE_HEAP].types[3].name, "inuse_space");
	assert_string_equal(profile_rows[PROFILE_HEAP].types[3].unit, "bytes");
	assert_string_equal(profile_rows[PROFILE_ALLOC].types[0].name, "alloc_objects");
}

/* What is read later is found under the name that it was written by. */
static void kinds_are_named_while_the_program_runs(void **state)
{
	char name[] = "page-faults", type[64];
	struct profile_row row = {
		.name = name, .source = SOURCE_GROWTH, .n_types = 1, .types = { { type, "count" } }
	};
	int before = profile_kinds(), kind;

	(void)state;
	profile_type_name(name, type);
	kind = profile_kind_add(&row);
	assert_int_equal(kind, before);
	assert_int_equal(profile_kind_add(&row), kind);
	assert_int_equal(profile_kinds(), before + 1);
	memset(name, 'x', sizeof(name) - 1);
	assert_string_equal(profile_rows[kind].name, "page-faults");
	assert_string_equal(profile_rows[kind].types[0].name, "page_faults");
	assert_string_equal(profile_rows[kind].period.name, "page_faults");
	row.name = "oncpu";
	assert_int_equal(profile_kind_add(&row), PROFILE_ONCPU);
	for (char other[] = "a"; profile_kinds() < N_PROFILE_KINDS; other[0]++) {
		row.name = other;
		assert_true(profile_kind_add(&row) >= PROFILE_NAMED);
	}
	row.name = "one-too-many";
	assert_int_equal(profile_kind_add(&row), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_profile_has_a_name_and_shows_a_type_that_it_has),
		cmocka_unit_test(value_types_are_spelled_as_pprof_expects),
		cmocka_unit_test(kinds_are_named_while_the_program_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
