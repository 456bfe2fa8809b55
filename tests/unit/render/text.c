#include "render/formats/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#define BAD "\xef\xbf\xbd"

static void assert_text(enum text_form form, const char *in, uint32_t columns, const char *want)
{
	struct strbuf b = { 0 };

	strbuf_puts(&b, "");
	text_add(&b, form, in, columns);
	assert_string_equal(b.s ? b.s : "", want);
	strbuf_free(&b);
}

static void what_is_valid_passes(void **state)
{
	assert_text(TEXT_FOLDED, "operator()(int) const", UINT32_MAX, "operator()(int) const");
	assert_text(TEXT_XML, "größe_函数_\xf0\x9f\x94\xa5", UINT32_MAX,
		    "größe_函数_\xf0\x9f\x94\xa5");
}

static void each_form_escapes_what_would_break_it(void **state)
{
	assert_text(TEXT_XML, "a<b>&\"'c;]]>", UINT32_MAX, "a&lt;b&gt;&amp;&quot;&#39;c;]]&gt;");
	assert_text(TEXT_JSON, "a<b>&\"'\\", UINT32_MAX, "a\\u003cb\\u003e\\u0026\\\"'\\\\");
	assert_text(TEXT_FOLDED, "a;b c<d>", UINT32_MAX, "a:b c<d>");
}

static void control_characters_are_replaced(void **state)
{
	assert_text(TEXT_XML, "a\n\x01\x1b[31m\x7f", UINT32_MAX, "a" BAD BAD BAD "[31m" BAD);
	assert_text(TEXT_FOLDED, "a\r\n\tb", UINT32_MAX, "a" BAD BAD BAD "b");
	assert_text(TEXT_JSON, "\xc2\x85", UINT32_MAX, BAD); /* C1: next line */
}

static void text_direction_cannot_be_turned(void **state)
{
	assert_text(TEXT_XML,
		    "\xe2\x80\xae"
		    "gpj.exe",
		    UINT32_MAX, BAD "gpj.exe");
	assert_text(TEXT_XML, "\xe2\x81\xa6", UINT32_MAX, BAD);
}

static void bytes_that_are_not_utf8_are_replaced_one_by_one(void **state)
{
	assert_text(TEXT_XML, "\xff\xfe", UINT32_MAX, BAD BAD);
	assert_text(TEXT_XML, "\xc0\xaf", UINT32_MAX, BAD BAD);         /* overlong '/'   */
	assert_text(TEXT_XML, "\xe0\x80\xaf", UINT32_MAX, BAD BAD BAD); /* overlong       */
	assert_text(TEXT_XML, "\xed\xa0\x80", UINT32_MAX, BAD BAD BAD); /* surrogate      */
	assert_text(TEXT_XML, "\xf4\x90\x80\x80", UINT32_MAX, BAD BAD BAD BAD);
	assert_text(TEXT_XML, "a\xe2\x82", UINT32_MAX, "a" BAD BAD); /* cut short      */
	assert_text(TEXT_XML, "\xef\xbf\xbf", UINT32_MAX, BAD);      /* U+FFFF         */
}

static void long_text_is_cut_with_an_ellipsis(void **state)
{
	assert_text(TEXT_XML, "abcdef", 6, "abcdef");
	assert_text(TEXT_XML, "abcdef", 5, "abcd…");
	assert_text(TEXT_XML, "a<b>cd", 4, "a&lt;b…");
	assert_text(TEXT_XML, "abc", 1, "…");
	assert_text(TEXT_XML, "abc", 0, "");
	assert_text(TEXT_XML, "函数名", 6, "函数名");
	assert_text(TEXT_XML, "函数名", 4, "函…");
	assert_int_equal(text_columns("函数a"), 5);
}

static void every_single_byte_gives_valid_utf8(void **state)
{
	for (int c = 1; c < 256; c++) {
		char in[2] = { (char)c, 0 };
		struct strbuf b = { 0 };
		const char *s;

		text_add(&b, TEXT_XML, in, UINT32_MAX);
		s = b.s;
		/* Reading it again changes nothing: it holds no byte that would be replaced. */
		if (c < 0x20 || c >= 0x7f)
			assert_string_equal(s, BAD);
		strbuf_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_valid_passes),
		cmocka_unit_test(each_form_escapes_what_would_break_it),
		cmocka_unit_test(control_characters_are_replaced),
		cmocka_unit_test(text_direction_cannot_be_turned),
		cmocka_unit_test(bytes_that_are_not_utf8_are_replaced_one_by_one),
		cmocka_unit_test(long_text_is_cut_with_an_ellipsis),
		cmocka_unit_test(every_single_byte_gives_valid_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
