#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

#include "unwind/rule_ranges.h"

static void add(struct rule_ranges *list, uint64_t vaddr, uint32_t rule)
{
	assert_int_equal(rule_ranges_add(list, vaddr, rule), 0);
}

static void neighbours_are_joined(void **state)
{
	struct rule_ranges list = { 0 };

	add(&list, 10, 1);
	add(&list, 20, 1);
	add(&list, 30, 2);
	assert_int_equal(list.n, 2);
	/* The later one counts, and may make its neighbours equal. */
	add(&list, 30, 1);
	assert_int_equal(list.n, 1);
	assert_int_equal(rule_ranges_find(&list, 9), RULE_RANGE_HOLE);
	assert_int_equal(rule_ranges_find(&list, 10), 1);
	assert_int_equal(rule_ranges_find(&list, UINT64_MAX), 1);
	rule_ranges_fini(&list);
}

static void an_address_that_falls_takes_back_what_is_above(void **state)
{
	struct rule_ranges list = { 0 };

	add(&list, 10, 1);
	add(&list, 20, 2);
	add(&list, 30, 3);
	add(&list, 15, 4);
	assert_int_equal(list.n, 2);
	assert_int_equal(rule_ranges_find(&list, 100), 4);
	rule_ranges_fini(&list);
}

/* Every address of two random lists: what lies above counts, where it has no hole. */
static void lists_are_laid_one_over_the_other(void **state)
{
	uint64_t random = 42;

	for (int round = 0; round < 200; round++) {
		struct rule_ranges low = { 0 }, high = { 0 }, was = { 0 };

		for (uint64_t at = 0; at < 100; at++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			if (random >> 60 < 4)
				add(&low, at,
				    random >> 40 & 3 ? random >> 40 & 3 : RULE_RANGE_HOLE);
			if (random >> 60 < 4)
				add(&was, at,
				    random >> 40 & 3 ? random >> 40 & 3 : RULE_RANGE_HOLE);
			if (random >> 50 & 1)
				add(&high, at, random >> 30 & 1 ? 7 : RULE_RANGE_HOLE);
		}
		assert_int_equal(round & 1 ? rule_ranges_underlay(&high, &low)
					   : rule_ranges_overlay(&low, &high),
				 0);
		if (!(round & 1)) {
			struct rule_ranges out = low;

			for (uint64_t at = 0; at < 101; at++)
				assert_int_equal(rule_ranges_find(&out, at),
						 rule_ranges_find(&high, at) == RULE_RANGE_HOLE
							 ? rule_ranges_find(&was, at)
							 : 7);
			for (uint32_t i = 1; i < out.n; i++)
				assert_true(out.m[i].vaddr > out.m[i - 1].vaddr &&
					    out.m[i].rule != out.m[i - 1].rule);
		} else {
			for (uint64_t at = 0; at < 101; at++)
				assert_true(rule_ranges_find(&high, at) == 7 ||
					    rule_ranges_find(&high, at) ==
						    rule_ranges_find(&low, at));
		}
		rule_ranges_fini(&low);
		rule_ranges_fini(&high);
		rule_ranges_fini(&was);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_are_joined),
		cmocka_unit_test(an_address_that_falls_takes_back_what_is_above),
		cmocka_unit_test(lists_are_laid_one_over_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
