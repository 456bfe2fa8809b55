#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "render/html/packed.h"

static void numbers_are_leb128(void **state)
{
	static const uint64_t numbers[] = { 0, 1, 127, 128, 300, 1ull << 32, UINT64_MAX };
	_cleanup_(strbuf_free) struct strbuf out = { 0 };
	struct bytes in;
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		packed_number(&out, numbers[i]);
	in = bytes_of(out.s, out.len);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		assert_int_equal(bytes_uleb(&in, &n), 0);
		assert_true(n == numbers[i]);
	}
	assert_int_equal(in.len, 0);
	assert_memory_equal(out.s, "\x00\x01\x7f\x80\x01\xac\x02", 7);
}

static void signed_numbers_are_folded(void **state)
{
	static const int64_t numbers[] = { 0, -1, 1, -2, 2, -64, INT64_MAX, INT64_MIN };
	static const uint64_t folded[] = { 0, 1, 2, 3, 4, 127, UINT64_MAX - 1, UINT64_MAX };
	_cleanup_(strbuf_free) struct strbuf out = { 0 };
	struct bytes in;
	uint64_t n;

	(void)state;
	for (int i = 0; i < 8; i++)
		packed_signed(&out, numbers[i]);
	in = bytes_of(out.s, out.len);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(bytes_uleb(&in, &n), 0);
		assert_true(n == folded[i]);
	}
}

static void names_are_clean_utf8_of_known_length(void **state)
{
	_cleanup_(strbuf_free) struct strbuf out = { 0 };

	(void)state;
	packed_name(&out, "a\xff\n\xe2\x80\xae"
			  "b<");
	assert_int_equal(out.s[0], 12);
	assert_memory_equal(out.s + 1,
			    "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
			    "b<",
			    12);
}

static void deflated_bytes_come_back(void **state)
{
	_cleanup_(strbuf_free) struct strbuf out = { 0 };
	size_t len = 300000;
	uint8_t *in = malloc(len), *back = malloc(len);
	z_stream z = { 0 };

	(void)state;
	assert_true(in && back);
	for (size_t i = 0; i < len; i++)
		in[i] = (uint8_t)(i * i >> 7);
	assert_int_equal(packed_deflate(in, len, &out), 0);
	assert_int_equal(inflateInit2(&z, -MAX_WBITS), Z_OK);
	z.next_in = (Bytef *)out.s;
	z.avail_in = (uInt)out.len;
	z.next_out = back;
	z.avail_out = (uInt)len;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	assert_int_equal(z.total_out, len);
	assert_memory_equal(in, back, len);
	inflateEnd(&z);
	free(in);
	free(back);
	strbuf_reset(&out);
	assert_int_equal(packed_deflate("", 0, &out), 0);
	assert_true(out.len > 0);
}

/* RFC 4648, section 10 */
static void base64_is_padded(void **state)
{
	static const char *const of[] = { "",         "Zg==",     "Zm8=",    "Zm9v",
					  "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };

	(void)state;
	for (size_t n = 0; n < 7; n++) {
		_cleanup_(strbuf_free) struct strbuf out = { 0 };

		packed_base64("foobar", n, &out);
		assert_string_equal(out.s ? out.s : "", of[n]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_leb128),
		cmocka_unit_test(signed_numbers_are_folded),
		cmocka_unit_test(names_are_clean_utf8_of_known_length),
		cmocka_unit_test(deflated_bytes_come_back),
		cmocka_unit_test(base64_is_padded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
