#include "base/name_template.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct name_field fields[] = { { "source", "oncpu" },
					    { "comm", "../a b/\xc3\xa9;x" },
					    { "pid", "7" },
					    { "container", NULL },
					    { 0 } };

static void fields_are_filled_in_and_lead_nowhere_else(void **state)
{
	static const char *const cases[][2] = {
		{ "profile-{source}-{pid}.pb.gz", "profile-oncpu-7.pb.gz" },
		{ "out/{comm}.svg", "out/_._a_b____x.svg" },
		{ "{pid}{pid}", "77" },
		{ "plain", "plain" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct strbuf out = { 0 };
		struct err e = { 0 };

		assert_int_equal(name_template_fill(cases[i][0], fields, &out, &e), 0);
		assert_string_equal(out.s, cases[i][1]);
		strbuf_free(&out);
	}
}

static void what_is_wrong_with_a_template_is_said(void **state)
{
	static const char *const cases[][2] = {
		{ "{sauce}",
		  "--names: there is no {sauce}; there are {source}, {comm}, {pid}, {container}" },
		{ "{container}",
		  "--names: {container} is not known of this profile, or has several values" },
		{ "a{", "--names: a brace stands alone; a field is like {source}" },
		{ "a}", "--names: a brace stands alone; a field is like {source}" },
		{ "", "--names: that is the name of no file" },
		{ "{pid}/", "--names: that is the name of no file" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct strbuf out = { 0 };
		struct err e = { 0 };

		assert_int_equal(name_template_fill(cases[i][0], fields, &out, &e), -EINVAL);
		assert_string_equal(e.msg, cases[i][1]);
		strbuf_free(&out);
	}
}

static void long_values_are_cut(void **state)
{
	struct strbuf out = { 0 };
	char value[1000];
	struct err e = { 0 };

	memset(value, 'a', sizeof(value));
	value[sizeof(value) - 1] = 0;
	assert_int_equal(name_template_fill("{x}",
					    (const struct name_field[]){ { "x", value }, { 0 } },
					    &out, &e),
			 0);
	assert_int_equal(out.len, 100);
	strbuf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_filled_in_and_lead_nowhere_else),
		cmocka_unit_test(what_is_wrong_with_a_template_is_said),
		cmocka_unit_test(long_values_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
