#include "analyse/nameless.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

static void the_image_and_who_calls_most_of_it_are_found(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct nameless_row row;

	/* Different functions of it, by different ones of the program: the one that asked for all is the answer. */
	fixture_add1(&f, ";main;md5_text;hash_init;libcrypto+0x12", 20);
	fixture_add1(&f, ";main;md5_text;hash_update;libcrypto+0x34;libcrypto+0x56", 50);
	fixture_add1(&f, ";main;tls;libcrypto+0x12", 10);
	fixture_add1(&f, ";main;libz+0x12", 30);
	fixture_add1(&f, ";main;md5_text", 200);
	fixture_add1(&f, ";main;md5_text;libcrypto+0x12;page_fault_[k]", 5);
	assert_int_equal(nameless_find(f.p, 0, &row), 1);
	assert_string_equal(row.module, "libcrypto");
	assert_int_equal(row.value, 80);
	assert_string_equal(row.caller, "md5_text");
	assert_int_equal(row.caller_value, 70);
	fixture_free(&f);
}

static void without_such_code_nothing_is_found(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct nameless_row row;

	fixture_add1(&f, ";main;work", 20);
	fixture_add1(&f, ";main;?", 20);
	fixture_add1(&f, ";main;//anon", 20);
	assert_int_equal(nameless_find(f.p, 0, &row), 0);
	fixture_free(&f);
}

static void a_program_without_any_name_has_no_caller(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct nameless_row row;

	fixture_add1(&f, ";prog2+0x12;prog2+0x34", 20);
	assert_int_equal(nameless_find(f.p, 0, &row), 1);
	assert_string_equal(row.module, "prog2");
	assert_string_equal(row.caller, "");
	fixture_free(&f);
}

/* A file may have any values. */
static void sums_stay_at_the_most(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct nameless_row row;

	fixture_add1(&f, ";main;hash;libcrypto+0x12", INT64_MAX);
	fixture_add1(&f, ";main;hash;libcrypto+0x34", INT64_MAX);
	assert_int_equal(nameless_find(f.p, 0, &row), 1);
	assert_int_equal(row.value, INT64_MAX);
	assert_string_equal(row.caller, "hash");
	assert_int_equal(row.caller_value, INT64_MAX);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_image_and_who_calls_most_of_it_are_found),
		cmocka_unit_test(without_such_code_nothing_is_found),
		cmocka_unit_test(a_program_without_any_name_has_no_caller),
		cmocka_unit_test(sums_stay_at_the_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
