#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/shared_rules.h"

#include <errno.h>
#include <string.h>

#define ROOM   (MS_RULE_FIRST + 2)
#define STRIDE ((sizeof(struct ms_rule) + 7) & ~(size_t)7)
#define SEC    1000000000ULL

static char memory[64 * STRIDE];
static struct shared_rules rules;

static int setup(void **state)
{
	(void)state;
	memset(memory, 0xee, sizeof(memory));
	return shared_rules_init(&rules, memory, ROOM, STRIDE);
}

static int teardown(void **state)
{
	(void)state;
	shared_rules_fini(&rules);
	return 0;
}

static const struct ms_rule *at(uint32_t ix)
{
	return (const struct ms_rule *)(const void *)(memory + ix * STRIDE);
}

static struct ms_rule rule(int32_t off)
{
	return (struct ms_rule){ .kind = MS_RULE_REG, .off = off, .ra_off = -8 };
}

static uint32_t get(int32_t off, uint64_t now_ns)
{
	struct ms_rule r = rule(off);
	uint32_t ix;

	assert_int_equal(shared_rules_get(&rules, &r, now_ns, &ix), 0);
	assert_memory_equal(at(ix), &r, sizeof(r));
	return ix;
}

static void fixed_rules_have_their_places_and_take_no_other(void **state)
{
	static const struct {
		uint8_t kind;
		uint32_t ix;
	} fixed[] = { { MS_RULE_NONE, MS_RULE_IX_NONE },
		      { MS_RULE_END, MS_RULE_IX_END },
		      { MS_RULE_FP, MS_RULE_IX_FP },
		      { MS_RULE_BAD, MS_RULE_IX_BAD } };

	(void)state;
	for (unsigned i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
		struct ms_rule r = { .kind = fixed[i].kind };
		uint32_t ix;

		assert_int_equal(shared_rules_get(&rules, &r, 0, &ix), 0);
		assert_int_equal(ix, fixed[i].ix);
		assert_int_equal(at(ix)->kind, fixed[i].kind);
	}
	assert_int_equal(rules.n, MS_RULE_FIRST);
}

static void a_rule_is_stored_once_whoever_names_it(void **state)
{
	uint32_t first = get(16, 0);

	(void)state;
	assert_true(first >= MS_RULE_FIRST);
	assert_int_equal(get(16, 1), first);
	assert_int_not_equal(get(24, 2), first);
}

static void a_rule_that_a_table_names_is_never_replaced(void **state)
{
	struct ms_rule third = rule(32);
	uint32_t ix;

	(void)state;
	get(16, 0);
	get(24, 0);
	assert_int_equal(shared_rules_get(&rules, &third, 1000 * SEC, &ix), -ENOSPC);
	assert_int_equal(ix, MS_RULE_IX_BAD);
}

static void a_place_is_taken_again_when_no_walk_can_read_it(void **state)
{
	struct ms_rule third = rule(32);
	uint32_t ix, first = get(16, 0);

	(void)state;
	get(24, 0);
	shared_rules_put(&rules, first, 5 * SEC);
	assert_int_equal(shared_rules_get(&rules, &third, 5 * SEC + MS_POOL_GRACE_NS - 1, &ix),
			 -ENOSPC);
	assert_int_equal(at(first)->off, 16);
	assert_int_equal(get(32, 5 * SEC + MS_POOL_GRACE_NS), first);
}

static void one_that_is_named_twice_stays_until_both_are_gone(void **state)
{
	struct ms_rule third = rule(32);
	uint32_t ix, first = get(16, 0);

	(void)state;
	get(16, 0);
	get(24, 0);
	shared_rules_put(&rules, first, 0);
	assert_int_equal(shared_rules_get(&rules, &third, 100 * SEC, &ix), -ENOSPC);
	shared_rules_put(&rules, first, 100 * SEC);
	assert_int_equal(get(32, 200 * SEC), first);
}

static void what_nobody_names_is_found_again_until_its_place_is_needed(void **state)
{
	struct ms_rule third = rule(32);
	uint32_t ix, first = get(16, 0);

	(void)state;
	get(24, 0);
	shared_rules_put(&rules, first, 0);
	assert_int_equal(get(16, 50 * SEC), first);
	/* Named again, it is in use. */
	assert_int_equal(shared_rules_get(&rules, &third, 100 * SEC, &ix), -ENOSPC);
}

static void the_one_that_is_idle_longest_goes_first(void **state)
{
	uint32_t first = get(16, 0), second = get(24, 0);

	(void)state;
	shared_rules_put(&rules, second, 1 * SEC);
	shared_rules_put(&rules, first, 2 * SEC);
	assert_int_equal(get(32, 100 * SEC), second);
	assert_int_equal(get(40, 100 * SEC), first);
}

static void a_kind_that_is_not_known_is_a_bad_rule(void **state)
{
	struct ms_rule r = { .kind = MS_N_RULE_KINDS };
	uint32_t ix = 0;

	(void)state;
	assert_int_equal(shared_rules_get(&rules, &r, 0, &ix), 0);
	assert_int_equal(ix, MS_RULE_IX_BAD);
}

static void too_little_room_is_refused(void **state)
{
	struct shared_rules none;

	(void)state;
	assert_int_equal(shared_rules_init(&none, memory, MS_RULE_FIRST - 1, STRIDE), -EINVAL);
	assert_int_equal(shared_rules_init(&none, memory, 64, sizeof(struct ms_rule) - 1), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fixed_rules_have_their_places_and_take_no_other,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_rule_is_stored_once_whoever_names_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_rule_that_a_table_names_is_never_replaced, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_place_is_taken_again_when_no_walk_can_read_it,
						setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_is_named_twice_stays_until_both_are_gone,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_nobody_names_is_found_again_until_its_place_is_needed, setup,
			teardown),
		cmocka_unit_test_setup_teardown(the_one_that_is_idle_longest_goes_first, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_kind_that_is_not_known_is_a_bad_rule, setup,
						teardown),
		cmocka_unit_test(too_little_room_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
