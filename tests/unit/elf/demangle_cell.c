#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "cell_fixture.h"
#include "elf/demangle_cell.h"

static bool ask(struct demangler *d, const char *name, char out[DEMANGLE_OUT_MAX])
{
	return demangler_ask(d, name, strlen(name), out);
}

static void names_are_as_they_are_here(void **state)
{
	static const char *const names[] = { "_ZTSN3hot3RunE",
					     "_ZTSSt6vectorIiSaIiEE",
					     "_ZNSt6vectorIiSaIiEE9push_backERKi",
					     "plain",
					     "",
					     "_Z" };
	char here[DEMANGLE_OUT_MAX], there[DEMANGLE_OUT_MAX];
	struct demangler d = DEMANGLER;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		bool is = demangle(names[i], strlen(names[i]), here);

		assert_int_equal(ask(&d, names[i], there), is);
		if (is)
			assert_string_equal(there, here);
	}
	assert_true(d.has_cell);
	assert_int_equal(d.ended, 0);
	demangler_end(&d);
	assert_false(d.has_cell);
}

static void a_name_that_is_too_long_is_not_asked_for(void **state)
{
	static char name[DEMANGLE_IN_MAX + 2], out[DEMANGLE_OUT_MAX];
	struct demangler d = DEMANGLER;

	(void)state;
	memset(name, 'A', DEMANGLE_IN_MAX + 1);
	memcpy(name, "_ZTS", 4);
	assert_false(ask(&d, name, out));
	assert_false(d.has_cell);
	demangler_end(&d);
}

static void a_cell_that_dies_costs_one_name_and_after_three_none_is_asked(void **state)
{
	char out[DEMANGLE_OUT_MAX];
	struct demangler d = DEMANGLER;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_true(ask(&d, "_ZTSN3hot3RunE", out));
		assert_string_equal(out, "typeinfo name for hot::Run");
		kill_the_cell();
		assert_false(ask(&d, "_ZTSN3hot3RunE", out));
		assert_int_equal(d.ended, i + 1);
	}
	assert_false(ask(&d, "_ZTSN3hot3RunE", out));
	assert_false(d.has_cell);
	demangler_end(&d);
}

static void answers_that_are_no_text_are_none(void **state)
{
	static char longest[DEMANGLE_OUT_MAX], out[DEMANGLE_OUT_MAX];
	bool bad;

	(void)state;
	memset(longest, 'a', sizeof(longest));
	assert_true(demangled_take(bytes_of("a::b(int)", 9), out, &bad));
	assert_string_equal(out, "a::b(int)");
	assert_false(demangled_take(bytes_of("", 0), out, &bad));
	assert_false(bad);
	assert_false(demangled_take(bytes_of("a\033[2J", 5), out, &bad));
	assert_true(bad);
	assert_false(demangled_take(bytes_of("a\0b", 3), out, &bad));
	assert_true(bad);
	assert_false(demangled_take(bytes_of(longest, sizeof(longest)), out, &bad));
	assert_true(bad);
	assert_true(demangled_take(bytes_of(longest, sizeof(longest) - 1), out, &bad));
	assert_int_equal(strlen(out), sizeof(longest) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_as_they_are_here),
		cmocka_unit_test(a_name_that_is_too_long_is_not_asked_for),
		cmocka_unit_test(a_cell_that_dies_costs_one_name_and_after_three_none_is_asked),
		cmocka_unit_test(answers_that_are_no_text_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
