#include "base/shell_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void words_come_back_from_a_shell_as_they_were(void **state)
{
	static const char *const words[][2] = {
		{ "-d", " -d" },     { "a=b,c@d%e", " a=b,c@d%e" }, { "", " ''" },
		{ "a b", " 'a b'" }, { "it's", " 'it'\\''s'" },     { "$x;`y`", " '$x;`y`'" },
		{ "~", " '~'" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct strbuf out = { 0 };

		shell_word_add(&out, words[i][0]);
		assert_string_equal(out.s, words[i][1]);
		strbuf_free(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
		words_come_back_from_a_shell_as_they_were) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
