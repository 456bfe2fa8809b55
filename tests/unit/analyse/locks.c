#include "analyse/locks.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

enum { WAITS_IN_LOOKUP, WAITS_IN_DROP, SLEEPS, COMPUTES, N_STACKS };

static void stacks_of(struct fixture *f, stack_id stacks[N_STACKS])
{
	fixture_add1(f, ";main;worker;lookup", 1);
	fixture_add1(f, ";main;worker;drop", 1);
	fixture_add1(f, ";main;keeper;rebuild;write_out", 1);
	fixture_add1(f, ";main;keeper;rebuild;compute;malloc", 1);
	for (uint32_t i = 0; i < N_STACKS; i++)
		stacks[i] = profile_sample(f->p, i).stack;
}

static void locks_are_ranked_by_what_was_waited_for_them(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	stack_id at[N_STACKS];
	struct lock_row rows[2];

	stacks_of(&f, at);
	struct lock_use uses[] = {
		{ 1, 0x100, "mutex", at[WAITS_IN_LOOKUP], 7, LOCK_WAITED, 2, 30, "" },
		{ 1, 0x200, "mutex", at[WAITS_IN_LOOKUP], 7, LOCK_WAITED, 1, 80, "" },
		{ 2, 0x100, "", at[WAITS_IN_LOOKUP], 0, LOCK_WAITED, 1, 90, "" },
		{ 1, 0x100, "mutex", at[WAITS_IN_DROP], 7, LOCK_WAITED, 2, 61, "" },
		{ 1, 0x300, "mutex", at[SLEEPS], 7, LOCK_HELD, 1, 500,
		  "" }, /* nobody waited for it */
	};

	(void)state;
	assert_int_equal(locks_rank(f.d, uses, 5, rows, 2), 2);
	assert_int_equal(rows[0].lock, 0x100);
	assert_int_equal(rows[0].pid, 1);
	assert_int_equal(rows[0].waited_ns, 91);
	assert_int_equal(rows[0].waits, 4);
	assert_string_equal(rows[0].function, "drop");
	assert_string_equal(rows[0].kind, "mutex");
	assert_int_equal(rows[1].pid, 2);
	assert_int_equal(rows[1].owner_ns, 0);
	assert_string_equal(rows[1].held_in, "");
	assert_int_equal(locks_rank(f.d, NULL, 0, rows, 2), 0);
	fixture_free(&f);
}

static void the_owner_of_most_of_the_time_is_named(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	stack_id at[N_STACKS];
	struct lock_row row;

	stacks_of(&f, at);
	struct lock_use uses[] = {
		{ 1, 0x100, "mutex", at[WAITS_IN_LOOKUP], 7, LOCK_WAITED, 1, 30, "" },
		{ 1, 0x100, "mutex", at[WAITS_IN_LOOKUP], 8, LOCK_WAITED, 1, 50, "" },
		{ 1, 0x100, "mutex", at[WAITS_IN_DROP], 7, LOCK_WAITED, 1, 40, "" },
		{ 1, 0x100, "", at[WAITS_IN_DROP], 0, LOCK_WAITED, 1, 5, "" },
	};

	(void)state;
	assert_int_equal(locks_rank(f.d, uses, 4, &row, 1), 1);
	assert_int_equal(row.known_ns, 120);
	assert_int_equal(row.n_owners, 2);
	assert_int_equal(row.owner, 7);
	assert_int_equal(row.owner_ns, 70);
	assert_string_equal(row.kind, "mutex");
	fixture_free(&f);
}

static void a_rwlock_that_nobody_writes_is_found_by_its_futexes(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	stack_id at[N_STACKS];
	struct lock_row rows[3];

	stacks_of(&f, at);
	struct lock_use uses[] = {
		{ 1, 0x108, "", at[WAITS_IN_LOOKUP], 0, LOCK_WAITED, 1, 5, "" },
		{ 1, 0x10c, "", at[WAITS_IN_LOOKUP], 0, LOCK_WAITED, 1, 7, "" },
		{ 1, 0x100, "rwlock", at[WAITS_IN_LOOKUP], 7, LOCK_WAITED, 1, 80, "" },
		{ 2, 0x108, "", at[WAITS_IN_LOOKUP], 0, LOCK_WAITED, 1, 3, "" },
		{ 1, 0x110, "", at[WAITS_IN_LOOKUP], 0, LOCK_WAITED, 1, 2, "" },
	};

	(void)state;
	assert_int_equal(locks_rank(f.d, uses, 5, rows, 3), 3);
	assert_int_equal(rows[0].lock, 0x100);
	assert_int_equal(rows[0].waited_ns, 92);
	assert_int_equal(rows[0].known_ns, 80);
	assert_int_equal(rows[1].waited_ns, 3);
	assert_int_equal(rows[2].waited_ns, 2);
	fixture_free(&f);
}

/* It sleeps and computes under the lock: both are called by one function. */
static void what_an_owner_does_is_the_function_that_contains_most_of_it(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	stack_id at[N_STACKS];
	struct lock_row row;

	stacks_of(&f, at);
	struct lock_use uses[] = {
		{ 1, 0x100, "mutex", at[WAITS_IN_LOOKUP], 7, LOCK_WAITED, 1, 100, "" },
		{ 1, 0x100, "mutex", at[SLEEPS], 7, LOCK_HELD, 1, 70, "" },
		{ 1, 0x100, "mutex", at[COMPUTES], 7, LOCK_HELD, 1, 30, "" },
	};

	(void)state;
	assert_int_equal(locks_rank(f.d, uses, 3, &row, 1), 1);
	assert_int_equal(row.held_ns, 100);
	assert_string_equal(row.held_in, "rebuild");
	assert_int_equal(row.held_in_ns, 100);
	uses[0].ns = 100;
	for (int i = 0; i < 3; i++) /* ranking has reordered them */
		if (uses[i].part == LOCK_HELD && uses[i].stack.ix == at[COMPUTES].ix)
			uses[i].ns = 2;
	assert_int_equal(locks_rank(f.d, uses, 3, &row, 1), 1);
	assert_string_equal(row.held_in, "write_out");
	assert_string_equal(row.held_caller, "rebuild");
	fixture_free(&f);
}

static void who_releases_a_lock_is_the_function_that_ended_most_of_the_waits(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	stack_id at[N_STACKS];
	struct lock_row row;

	stacks_of(&f, at);
	struct lock_use uses[] = {
		{ 1, 0x100, "", at[WAITS_IN_LOOKUP], 0, LOCK_WAITED, 3, 100, "" },
		{ 1, 0x100, "", at[WAITS_IN_DROP], 0, LOCK_RELEASED, 1, 30, "other" },
		{ 1, 0x100, "", at[COMPUTES], 0, LOCK_RELEASED, 1, 25, "keeper" },
		{ 1, 0x100, "", at[COMPUTES], 0, LOCK_RELEASED, 1, 35, "builder" },
	};

	(void)state;
	assert_int_equal(locks_rank(f.d, uses, 4, &row, 1), 1);
	assert_string_equal(row.function, "lookup");
	assert_int_equal(row.waits, 3);
	assert_int_equal(row.released_ns, 90);
	assert_string_equal(row.released_in, "compute");
	assert_int_equal(row.released_in_ns, 60);
	assert_string_equal(row.releaser, "builder");
	assert_int_equal(row.held_ns, 0);
	assert_int_equal(row.owner_ns, 0);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_releases_a_lock_is_the_function_that_ended_most_of_the_waits),
		cmocka_unit_test(locks_are_ranked_by_what_was_waited_for_them),
		cmocka_unit_test(the_owner_of_most_of_the_time_is_named),
		cmocka_unit_test(a_rwlock_that_nobody_writes_is_found_by_its_futexes),
		cmocka_unit_test(what_an_owner_does_is_the_function_that_contains_most_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
