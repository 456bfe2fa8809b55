#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"

static void grows_and_stays_terminated(void **state)
{
	struct strbuf b = { 0 };

	for (int i = 0; i < 1000; i++)
		strbuf_printf(&b, "%d;", i);
	strbuf_putc(&b, '!');
	assert_int_equal(strlen(b.s), b.len);
	assert_int_equal(b.len, 10 * 2 + 90 * 3 + 900 * 4 + 1);
	assert_memory_equal(b.s + b.len - 5, "999;!", 6);
	strbuf_reset(&b);
	assert_string_equal(b.s, "");
	strbuf_free(&b);
}

static void numbers_are_those_of_printf(void **state)
{
	static const uint64_t values[] = { 0,         1,          9,
					   10,        0x7fffffff, 0xffffffff,
					   INT64_MAX, 1ull << 63, UINT64_MAX - 1,
					   UINT64_MAX };

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		struct strbuf b = { 0 }, by_printf = { 0 };

		strbuf_unsigned(&b, values[i]);
		strbuf_putc(&b, ' ');
		strbuf_signed(&b, (int64_t)values[i]);
		strbuf_putc(&b, ' ');
		strbuf_hex(&b, values[i]);
		strbuf_putc(&b, ' ');
		strbuf_digits(&b, values[i], 6);
		strbuf_printf(&by_printf, "%" PRIu64 " %" PRId64 " %#" PRIx64 " %06" PRIu64,
			      values[i], (int64_t)values[i], values[i], values[i]);
		assert_string_equal(b.s, by_printf.s);
		strbuf_free(&b);
		strbuf_free(&by_printf);
	}
}

static void taking_an_empty_one_gives_an_empty_string(void **state)
{
	struct strbuf b = { 0 };
	char *s = strbuf_take(&b);

	assert_string_equal(s, "");
	free(s);
	assert_null(b.s);
}

static void impossible_size_sticks_as_out_of_memory(void **state)
{
	struct strbuf b = { 0 };

	strbuf_puts(&b, "x");
	strbuf_add(&b, "", SIZE_MAX / 2);
	strbuf_puts(&b, "y");
	assert_true(strbuf_oom(&b));
	assert_string_equal(b.s, "x");
	assert_null(strbuf_take(&b));
}

static void clean(const char *in, size_t len, const char *want)
{
	struct strbuf b = { 0 };

	strbuf_add_clean(&b, in, len);
	strbuf_add(&b, "", 0);
	assert_string_equal(b.s, want);
	strbuf_free(&b);
}

#define BAD             "\xef\xbf\xbd"
#define CLEAN(in, want) clean(in, sizeof(in) - 1, want)

static void well_formed_text_passes_unchanged(void **state)
{
	CLEAN("", "");
	CLEAN("operator new(unsigned long)", "operator new(unsigned long)");
	CLEAN("größe → 𝄞 \xf4\x8f\xbf\xbf", "größe → 𝄞 \xf4\x8f\xbf\xbf");
}

static void control_characters_are_replaced(void **state)
{
	CLEAN("a\nb\033[31mc\0d\x7f", "a" BAD "b" BAD "[31mc" BAD "d" BAD);
	CLEAN("\xc2\x9b"
	      "31m\xc2\xa0",
	      BAD "31m\xc2\xa0"); /* C1: CSI in one character */
}

static void each_byte_of_broken_utf8_is_replaced(void **state)
{
	CLEAN("\xff"
	      "a\x80",
	      BAD "a" BAD);
	CLEAN("\xc0\xaf", BAD BAD); /* overlong */
	CLEAN("\xe0\x80\xaf", BAD BAD BAD);
	CLEAN("\xed\xa0\x80", BAD BAD BAD);         /* surrogate */
	CLEAN("\xf4\x90\x80\x80", BAD BAD BAD BAD); /* above U+10FFFF */
	CLEAN("x\xe2\x82", "x" BAD BAD);            /* cut short */
	CLEAN("\xe2\x82\xac", "€");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_and_stays_terminated),
		cmocka_unit_test(numbers_are_those_of_printf),
		cmocka_unit_test(taking_an_empty_one_gives_an_empty_string),
		cmocka_unit_test(impossible_size_sticks_as_out_of_memory),
		cmocka_unit_test(well_formed_text_passes_unchanged),
		cmocka_unit_test(control_characters_are_replaced),
		cmocka_unit_test(each_byte_of_broken_utf8_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
