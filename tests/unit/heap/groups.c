/* Groups of a small heap's objects. */
#include "heap/snapshot/groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "snapshot_fixture.h"

static void assert_groups(enum groups_by by, const struct group_row *want, uint32_t n)
{
	_cleanup_(heap_fini) struct heap h;
	_cleanup_(groups_fini) struct groups got = { 0 };

	heap_init(&h);
	assert_int_equal(groups_find(&h.s, by, &got), 0);
	assert_int_equal(got.n, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_string_equal(got.rows[i].name, want[i].name);
		assert_int_equal(got.rows[i].objects, want[i].objects);
		assert_int_equal(got.rows[i].bytes, want[i].bytes);
	}
}

static void by_type_each_type_is_a_row_and_the_largest_is_first(void **state)
{
	static const struct group_row want[] = { { "dict", 1, 200 },
						 { "web.Session", 3, 152 },
						 { "str", 2, 64 },
						 { "web.App", 1, 64 } };

	assert_groups(GROUPS_TYPE, want, 4);
}

static void by_module_types_are_added_up(void **state)
{
	static const struct group_row want[] = { { "builtins", 3, 264 }, { "web", 4, 216 } };

	assert_groups(GROUPS_MODULE, want, 2);
}

static void two_levels_are_an_object_and_what_it_refers_to(void **state)
{
	static const struct group_row want[] = {
		{ "dict → web.Session", 1, 200 },
		{ "web.Session → str", 3, 152 },
		{ "str", 2, 64 },
		{ "web.App → dict", 1, 64 },
	};

	assert_groups(GROUPS_TWO_LEVEL, want, 4);
}

static void by_referrer_what_is_lost_hangs_on_nothing(void **state)
{
	static const struct group_row want[] = {
		{ "dict ← web.App", 1, 200 },          { "web.Session ← dict", 2, 104 },
		{ "web.App ← (the variable)", 1, 64 }, { "web.Session ← (nothing)", 1, 48 },
		{ "str ← (nothing)", 1, 32 },          { "str ← web.Session", 1, 32 },
	};

	assert_groups(GROUPS_REFERRER, want, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_type_each_type_is_a_row_and_the_largest_is_first),
		cmocka_unit_test(by_module_types_are_added_up),
		cmocka_unit_test(two_levels_are_an_object_and_what_it_refers_to),
		cmocka_unit_test(by_referrer_what_is_lost_hangs_on_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
