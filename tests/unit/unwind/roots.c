#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/roots.h"

#include <string.h>

static enum root_how how(const struct root *table, const char *name)
{
	const struct root *r = root_find(table, name, strlen(name));

	return r ? r->how : ROOT_PLAIN;
}

static void functions_in_which_stacks_end_are_known(void **state)
{
	(void)state;
	assert_int_equal(how(roots_elf, "_start"), ROOT_END);
	assert_int_equal(how(roots_elf, "clone"), ROOT_CHILD);
	assert_int_equal(how(roots_go, "runtime.goexit"), ROOT_END);
	assert_int_equal(how(roots_go, "runtime.systemstack"), ROOT_SWITCH);
}

/* _start_thread is an ordinary function; so is restart. */
static void a_name_that_only_begins_or_ends_alike_is_another(void **state)
{
	(void)state;
	assert_int_equal(how(roots_elf, "_start_thread"), ROOT_PLAIN);
	assert_int_equal(how(roots_elf, "re_start"), ROOT_PLAIN);
	assert_int_equal(how(roots_elf, "_star"), ROOT_PLAIN);
	assert_int_equal(how(roots_elf, ""), ROOT_PLAIN);
	assert_int_equal(how(roots_go, "runtime.goexit1"), ROOT_PLAIN);
	/* Both are in the table: the longer one is not taken for the shorter. */
	assert_int_equal(how(roots_go, "runtime.systemstack_switch"), ROOT_EARLY);
}

static void a_prefix_stands_for_all_names_that_begin_so(void **state)
{
	(void)state;
	assert_int_equal(how(roots_elf, "Builtins_InterpreterEntryTrampoline"), ROOT_FP);
	assert_int_equal(how(roots_go, "_rt0_amd64_linux"), ROOT_END);
}

/* runtime.mcall.abi0: Go's assembly has its calling convention behind its name. */
static void the_calling_convention_of_gos_assembly_is_no_part_of_the_name(void **state)
{
	(void)state;
	assert_int_equal(how(roots_go, "runtime.mcall.abi0"), ROOT_END);
	assert_int_equal(how(roots_go, "runtime.mcall.abiinternal"), ROOT_END);
	assert_int_equal(how(roots_go, "runtime.mcall.ab"), ROOT_PLAIN);
	assert_int_equal(how(roots_go, "runtime.mcall.func1"), ROOT_PLAIN);
}

static void a_name_is_as_long_as_is_said(void **state)
{
	(void)state;
	assert_non_null(root_find(roots_elf, "_start@@GLIBC", strlen("_start")));
	assert_null(root_find(roots_elf, "_start", strlen("_star")));
}

/* What root_may_be() leaves out is never looked up. */
static void no_name_that_would_be_found_is_left_out_before(void **state)
{
	const struct root *tables[] = { roots_elf, roots_go };

	(void)state;
	for (int t = 0; t < 2; t++)
		for (const struct root *r = tables[t]; r->name; r++) {
			assert_true(root_may_be(tables[t], r->name));
			assert_ptr_equal(root_find(tables[t], r->name, strlen(r->name)), r);
		}
	assert_true(root_may_be(roots_go, "runtime.mcall.abi0"));
	assert_false(root_may_be(roots_elf, "malloc"));
	assert_false(root_may_be(roots_elf, "_star"));
	assert_false(root_may_be(roots_elf, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_in_which_stacks_end_are_known),
		cmocka_unit_test(a_name_that_only_begins_or_ends_alike_is_another),
		cmocka_unit_test(a_prefix_stands_for_all_names_that_begin_so),
		cmocka_unit_test(the_calling_convention_of_gos_assembly_is_no_part_of_the_name),
		cmocka_unit_test(a_name_is_as_long_as_is_said),
		cmocka_unit_test(no_name_that_would_be_found_is_left_out_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
