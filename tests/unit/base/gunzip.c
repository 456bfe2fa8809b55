#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

#include "base/gunzip.h"
#include "base/sink.h"

/* `text` gzipped; the sink keeps the bytes until it is closed. */
static struct bytes zipped(const char *text, struct sink **ret_sink)
{
	const char *z;
	size_t len;

	sink_open_memory(ret_sink, NULL);
	sink_gzip(*ret_sink, NULL);
	sink_puts(*ret_sink, text);
	z = sink_memory(*ret_sink, &len);
	return bytes_of(z, len);
}

static void members_are_joined_and_padding_is_ignored(void **state)
{
	char file[256] = { 0 };
	struct sink *s;
	struct bytes z = zipped("hello", &s);
	void *data;
	size_t len;

	memcpy(file, z.data, z.len);
	memcpy(file + z.len, z.data, z.len);
	assert_int_equal(gunzip(bytes_of(file, 2 * z.len + 7), 100, &data, &len), 0);
	assert_int_equal(len, 10);
	assert_string_equal(data, "hellohello");
	free(data);
	sink_close(s);
}

static void bound_is_exact(void **state)
{
	struct sink *s;
	struct bytes z = zipped("hello", &s);
	void *data = NULL;
	size_t len;

	assert_int_equal(gunzip(z, 4, &data, &len), -EFBIG);
	assert_null(data);
	assert_int_equal(gunzip(z, 5, &data, &len), 0);
	free(data);
	sink_close(s);
}

static void every_cut_is_damage(void **state)
{
	struct sink *s;
	struct bytes z = zipped("hello, hello, hello, hello", &s);
	void *data = NULL;
	size_t len;

	for (size_t n = 0; n < z.len; n++)
		assert_int_equal(gunzip(bytes_of(z.data, n), 1000, &data, &len), -EBADMSG);
	assert_null(data);
	sink_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_joined_and_padding_is_ignored),
		cmocka_unit_test(bound_is_exact),
		cmocka_unit_test(every_cut_is_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
