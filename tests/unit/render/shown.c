#include "render/shown.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct shown pick(const struct value_type *types, uint32_t n, uint32_t default_type,
			 int wanted)
{
	struct fixture f = fixture_new(types, n);
	struct profile_meta m = { .default_type = default_type };
	struct shown s;

	profile_set_meta(f.p, &m);
	s = shown_pick(f.p, wanted);
	s.unit = ""; /* the profile's own; gone with it */
	fixture_free(&f);
	return s;
}

static const struct value_type cpu[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
static const struct value_type off[] = { { "blocked", "count" },
					 { "blocked", "nanoseconds" },
					 { "runnable", "count" },
					 { "runnable", "nanoseconds" } };
static const struct value_type heap[] = { { "alloc_objects", "count" },
					  { "alloc_space", "bytes" },
					  { "inuse_objects", "count" },
					  { "inuse_space", "bytes" } };

static void a_cpu_profile_shows_samples(void **state)
{
	struct shown s = pick(cpu, 2, 1, -1);

	assert_int_equal(s.type, 0);
	assert_int_equal(s.divisor, 1);
	assert_string_equal(s.noun, "samples");
}

static void an_offcpu_profile_shows_blocked_microseconds(void **state)
{
	struct shown s = pick(off, 4, 1, -1);

	assert_int_equal(s.type, 1);
	assert_int_equal(s.divisor, 1000);
	assert_string_equal(s.noun, "");
	assert_string_equal(s.palette, "wait");
}

static void a_heap_profile_shows_its_default_in_bytes(void **state)
{
	struct shown s = pick(heap, 4, 3, -1);

	assert_int_equal(s.type, 3);
	assert_int_equal(s.divisor, 1);
	assert_string_equal(s.title, "Memory live");
	assert_string_equal(s.palette, "memory");
}

static void what_is_asked_for_is_shown(void **state)
{
	struct shown s = pick(cpu, 2, 0, 1);

	assert_int_equal(s.type, 1);
	assert_int_equal(s.divisor, 1000);
	assert_int_equal(pick(off, 4, 1, 3).type, 3);
}

static void a_default_beyond_the_types_is_ignored(void **state)
{
	assert_int_equal(pick(heap, 4, 9, -1).type, 0);
}

static void numbers_are_rounded_to_the_nearest(void **state)
{
	struct shown us = { .divisor = 1000 }, one = { .divisor = 1 };

	assert_int_equal(shown_number(&us, 499), 0);
	assert_int_equal(shown_number(&us, 500), 1);
	assert_int_equal(shown_number(&us, 1499), 1);
	assert_true(shown_number(&us, INT64_MAX) == INT64_MAX / 1000 + 1);
	assert_true(shown_number(&one, INT64_MAX) == INT64_MAX);
}

static void a_countname_goes_with_the_folded_number(void **state)
{
	struct shown s = { .divisor = 1000, .unit = "nanoseconds", .noun = "" };

	assert_string_equal(shown_text(&s, NULL, 1234567).s, "1.2 ms");
	assert_string_equal(shown_noun(&s, NULL), "");
	assert_string_equal(shown_text(&s, "us", 1234567).s, "1,235");
	assert_string_equal(shown_noun(&s, "us"), "us");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cpu_profile_shows_samples),
		cmocka_unit_test(an_offcpu_profile_shows_blocked_microseconds),
		cmocka_unit_test(a_heap_profile_shows_its_default_in_bytes),
		cmocka_unit_test(what_is_asked_for_is_shown),
		cmocka_unit_test(a_default_beyond_the_types_is_ignored),
		cmocka_unit_test(numbers_are_rounded_to_the_nearest),
		cmocka_unit_test(a_countname_goes_with_the_folded_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
