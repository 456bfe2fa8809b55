#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

#define BYTES(...)                                                                                 \
	bytes_of((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void reads_take_from_the_front_and_never_past_the_end(void **state)
{
	struct bytes b = BYTES(1, 2, 3, 4, 5, 6, 7), part = { 0 };
	uint32_t u32 = 99;
	uint16_t u16;
	uint8_t u8;

	assert_int_equal(bytes_u32(&b, &u32), 0);
	assert_int_equal(u32, 0x04030201);
	assert_int_equal(bytes_u32(&b, &u32), -EBADMSG);
	assert_int_equal(u32, 0x04030201);
	assert_int_equal(b.len, 3);
	assert_int_equal(bytes_u16(&b, &u16), 0);
	assert_int_equal(u16, 0x0605);
	assert_int_equal(bytes_take(&b, 2, &part), -EBADMSG);
	assert_null(part.data);
	assert_int_equal(bytes_take(&b, 1, &part), 0);
	assert_int_equal(part.data[0], 7);
	assert_int_equal(bytes_u8(&b, &u8), -EBADMSG);
	assert_int_equal(bytes_skip(&b, 0), 0);
	assert_int_equal(bytes_skip(&b, SIZE_MAX), -EBADMSG);
}

static uint64_t uleb(struct bytes b)
{
	uint64_t v;

	assert_int_equal(bytes_uleb(&b, &v), 0);
	assert_int_equal(b.len, 0);
	return v;
}

static int64_t sleb(struct bytes b)
{
	int64_t v;

	assert_int_equal(bytes_sleb(&b, &v), 0);
	assert_int_equal(b.len, 0);
	return v;
}

static void leb128_reads_the_examples_of_the_standard(void **state)
{
	assert_int_equal(uleb(BYTES(2)), 2);
	assert_int_equal(uleb(BYTES(0x80, 1)), 128);
	assert_int_equal(uleb(BYTES(0xe5, 0x8e, 0x26)), 624485);
	assert_int_equal(sleb(BYTES(0x7e)), -2);
	assert_int_equal(sleb(BYTES(0xff, 0)), 127);
	assert_int_equal(sleb(BYTES(0x80, 0x7f)), -128);
}

static void leb128_holds_the_whole_range_and_padding(void **state)
{
	assert_true(uleb(BYTES(255, 255, 255, 255, 255, 255, 255, 255, 255, 1)) == UINT64_MAX);
	assert_true(sleb(BYTES(128, 128, 128, 128, 128, 128, 128, 128, 128, 0x7f)) == INT64_MIN);
	assert_true(sleb(BYTES(255, 255, 255, 255, 255, 255, 255, 255, 255, 0)) == INT64_MAX);
	assert_int_equal(uleb(BYTES(0x85, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0)), 5);
	assert_int_equal(sleb(BYTES(0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0x7f)), -2);
}

static void leb128_that_is_cut_or_too_large_is_refused(void **state)
{
	struct bytes cut = BYTES(0x80, 0x80), empty = { 0 };
	struct bytes large = BYTES(255, 255, 255, 255, 255, 255, 255, 255, 255, 2);
	struct bytes larger = BYTES(128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1);
	struct bytes slarge = BYTES(255, 255, 255, 255, 255, 255, 255, 255, 255, 1);
	uint64_t u = 1;
	int64_t s = 1;

	assert_int_equal(bytes_uleb(&cut, &u), -EBADMSG);
	assert_int_equal(cut.len, 2);
	assert_int_equal(bytes_uleb(&empty, &u), -EBADMSG);
	assert_int_equal(bytes_sleb(&empty, &s), -EBADMSG);
	assert_int_equal(bytes_uleb(&large, &u), -EBADMSG);
	assert_int_equal(bytes_uleb(&larger, &u), -EBADMSG);
	assert_int_equal(bytes_sleb(&slarge, &s), -EBADMSG);
	assert_int_equal(u, 1);
	assert_int_equal(s, 1);
}

static void string_without_nul_is_refused(void **state)
{
	struct bytes b = bytes_of("ab\0c", 4), s = { 0 };

	assert_int_equal(bytes_cstr(&b, &s), 0);
	assert_int_equal(s.len, 2);
	assert_string_equal((const char *)s.data, "ab");
	assert_int_equal(bytes_cstr(&b, &s), -EBADMSG);
	assert_int_equal(b.len, 1);
}

static void lines_come_without_their_ends(void **state)
{
	struct bytes b = bytes_of("a\r\n\nlast", 8), line;

	assert_true(bytes_line(&b, &line));
	assert_int_equal(line.len, 1);
	assert_true(bytes_line(&b, &line));
	assert_int_equal(line.len, 0);
	assert_true(bytes_line(&b, &line));
	assert_memory_equal(line.data, "last", 4);
	assert_int_equal(line.len, 4);
	assert_false(bytes_line(&b, &line));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_take_from_the_front_and_never_past_the_end),
		cmocka_unit_test(leb128_reads_the_examples_of_the_standard),
		cmocka_unit_test(leb128_holds_the_whole_range_and_padding),
		cmocka_unit_test(leb128_that_is_cut_or_too_large_is_refused),
		cmocka_unit_test(string_without_nul_is_refused),
		cmocka_unit_test(lines_come_without_their_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
