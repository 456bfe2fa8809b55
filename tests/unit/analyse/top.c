#include "analyse/top.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

static void assert_row(const struct top_row *r, const char *name, int64_t self, int64_t total)
{
	assert_string_equal(r->name, name);
	assert_int_equal(r->self, self);
	assert_int_equal(r->total, total);
}

static void recursion_counts_once_per_sample(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct top_row rows[8];

	fixture_add1(&f, ";main;fib;fib;fib", 5);
	fixture_add1(&f, ";main;fib;help;fib", 2);
	fixture_add1(&f, ";main;help", 1);
	assert_int_equal(top_functions(f.p, 0, TOP_BY_TOTAL, rows, 8), 3);
	assert_row(&rows[0], "main", 0, 8);
	assert_row(&rows[1], "fib", 7, 7);
	assert_row(&rows[2], "help", 1, 3);
	fixture_free(&f);
}

static void by_self_leaves_out_functions_without_self(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct top_row rows[8];

	fixture_add1(&f, "comm;main;b", 2);
	fixture_add1(&f, "comm;main;a", 2);
	fixture_add1(&f, "comm;main;c", 3);
	assert_int_equal(top_functions(f.p, 0, TOP_BY_SELF, rows, 8), 3);
	assert_row(&rows[0], "c", 3, 3);
	assert_row(&rows[1], "a", 2, 2);
	assert_row(&rows[2], "b", 2, 2);
	assert_int_equal(top_functions(f.p, 0, TOP_BY_SELF, rows, 2), 2);
	fixture_free(&f);
}

static void an_inlined_copy_counts_with_its_function(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct top_row rows[8];

	fixture_add1(&f, ";main;copy", 2);
	fixture_add1(&f, ";main;loop;copy_[i]", 3);
	assert_int_equal(top_functions(f.p, 0, TOP_BY_SELF, rows, 8), 1);
	assert_row(&rows[0], "copy", 5, 5);
	assert_int_equal(rows[0].kind, FRAME_USER);
	fixture_free(&f);
}

static void a_function_is_a_name_in_an_image(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct top_row rows[8];

	fixture_add1(&f, ";main;read", 2);
	fixture_add1(&f, ";main;read;read_[k]", 3);
	assert_int_equal(top_functions(f.p, 0, TOP_BY_SELF, rows, 8), 2);
	assert_row(&rows[0], "read", 3, 3);
	assert_string_equal(rows[0].module, "[kernel]");
	assert_row(&rows[1], "read", 2, 5);
	assert_string_equal(rows[1].module, "prog");
	fixture_free(&f);
}

static void an_empty_profile_has_no_rows(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct top_row rows[1];

	assert_int_equal(top_functions(f.p, 0, TOP_BY_TOTAL, rows, 1), 0);
	fixture_free(&f);
}

static void what_is_allocated_is_that_of_the_site_and_the_allocator_has_no_row(void **state)
{
	static const struct value_type bytes = { "alloc_space", "bytes" };
	struct fixture f = fixture_new(&bytes, 1);
	struct top_row rows[8];

	fixture_add1(&f, "comm;main;load;malloc", 70);
	fixture_add1(&f, "comm;main;grow;xrealloc;realloc", 30);
	assert_int_equal(top_functions(f.p, 0, TOP_BY_SELF, rows, 8), 2);
	assert_row(&rows[0], "load", 70, 70);
	assert_row(&rows[1], "grow", 30, 30);
	assert_int_equal(top_functions(f.p, 0, TOP_BY_TOTAL, rows, 8), 3);
	assert_row(&rows[0], "main", 0, 100);
	fixture_free(&f);
}

static void a_wait_is_that_of_the_function_that_waits(void **state)
{
	static const struct value_type blocked = { "blocked", "nanoseconds" };
	struct fixture f = fixture_new(&blocked, 1);
	struct top_row rows[8];

	fixture_add1(&f, "comm;main;take;futex_wait_[k];schedule_[k]", 5);
	assert_int_equal(top_functions(f.p, 0, TOP_BY_SELF, rows, 8), 1);
	assert_row(&rows[0], "take", 5, 5);
	fixture_free(&f);
}

static void native_code_counts_with_the_interpreted_function_that_called_it(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct top_row rows[8];

	fixture_add1(&f, ";main;serve_[p];render_[p];dumps;memcpy", 5);
	fixture_add1(&f, ";main;serve_[p];eval;read;read_[k]", 3);
	fixture_add1(&f, ";main;serve_[p];render_[p]", 2);
	fixture_add1(&f, ";main;start", 100);
	/* A stub works for who called it; code that is gone was somebody's. */
	fixture_add1(&f, ";main;serve_[p];render_[p];[vtable chunks]_[p];[adapters]_[p];memcpy", 4);
	fixture_add1(&f, ";main;[entry]_[p];read", 1);
	fixture_add1(&f, ";main;serve_[p];[Java code that is gone]_[p]", 2);
	assert_int_equal(top_functions(f.p, 0, TOP_INTERPRETED, rows, 8), 4);
	assert_row(&rows[0], "render", 11, 11);
	assert_row(&rows[1], "serve", 3, 16);
	assert_row(&rows[2], "[Java code that is gone]", 2, 2);
	assert_row(&rows[3], "[entry]", 1, 1);
	assert_int_equal(top_functions(f.p, 0, TOP_INTERPRETED, rows, 1), 1);
	assert_int_equal(top_functions(f.p, 0, TOP_BY_SELF, rows, 8), 6);
	assert_row(&rows[1], "memcpy", 9, 9);
	fixture_free(&f);
}

static void the_trunk_is_the_last_function_that_half_of_all_is_for(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct top_row row;

	fixture_add1(&f, ";main;run;prog2+0x12;md5_text;hash_init;fetch", 20);
	fixture_add1(&f, ";main;run;prog2+0x12;md5_text;hash_init;lock", 20);
	fixture_add1(&f, ";main;run;prog2+0x12;md5_text;hash_update", 20);
	fixture_add1(&f, ";main;run;parse", 20);
	assert_int_equal(top_trunk(f.p, 0, &row), 1);
	assert_row(&row, "hash_init", 0, 40);
	fixture_add1(&f, ";main;run;prog2+0x12;print", 5);
	assert_int_equal(top_trunk(f.p, 0, &row), 1);
	assert_row(&row, "md5_text", 0, 60);
	fixture_add1(&f, ";main;run;prog2+0x12;print", 40);
	assert_int_equal(top_trunk(f.p, 0, &row), 1);
	assert_row(&row, "run", 0, 125);
	fixture_add1(&f, ";main;other", 200);
	assert_int_equal(top_trunk(f.p, 0, &row), 1);
	assert_row(&row, "other", 200, 200);
	fixture_free(&f);
}

static void the_trunk_of_a_language_is_its_own_function(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct top_row row;

	fixture_add1(&f, ";main;Py_Main;<module> (a.py)_[p];check (a.py)_[p];vectorcall;walk", 20);
	assert_int_equal(top_trunk(f.p, 0, &row), 1);
	assert_string_equal(row.name, "check (a.py)");
	fixture_free(&f);
	f = fixture_new(&samples, 1);
	fixture_add1(&f, ";main;a", 20);
	fixture_add1(&f, ";main;b", 20);
	fixture_add1(&f, ";main;c", 20);
	assert_int_equal(top_trunk(f.p, 0, &row), 0); /* main() is no answer */
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursion_counts_once_per_sample),
		cmocka_unit_test(by_self_leaves_out_functions_without_self),
		cmocka_unit_test(an_inlined_copy_counts_with_its_function),
		cmocka_unit_test(a_function_is_a_name_in_an_image),
		cmocka_unit_test(
			what_is_allocated_is_that_of_the_site_and_the_allocator_has_no_row),
		cmocka_unit_test(a_wait_is_that_of_the_function_that_waits),
		cmocka_unit_test(native_code_counts_with_the_interpreted_function_that_called_it),
		cmocka_unit_test(an_empty_profile_has_no_rows),
		cmocka_unit_test(the_trunk_is_the_last_function_that_half_of_all_is_for),
		cmocka_unit_test(the_trunk_of_a_language_is_its_own_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
