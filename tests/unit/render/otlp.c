#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "render/formats/writers.h"

/* What is written of a sample with these labels. */
static struct sink *written(const char *trace, const char *span)
{
	static const struct value_type type = { "cpu", "nanoseconds" };
	_cleanup_(dict_freep) struct dict *d = dict_new();
	_cleanup_(profile_freep) struct profile *p = profile_new(d, &type, 1);
	const struct render_opts opts = { .value_type = -1 };
	const struct label labels[] = {
		{ .key = dict_string(d, "trace_id"), .str = dict_string(d, trace) },
		{ .key = dict_string(d, "span_id"), .str = dict_string(d, span) },
	};
	const int64_t value = 5;
	struct sink *out = NULL;

	assert_int_equal(profile_add(p, (stack_id){ 0 }, dict_labels(d, labels, 2), &value), 0);
	assert_int_equal(sink_open_memory(&out, NULL), 0);
	assert_int_equal(otlp_write(p, &opts, out, NULL), 0);
	assert_int_equal(sink_commit(out, NULL), 0);
	return out;
}

static bool has(struct sink *out, const char *bytes, size_t len)
{
	size_t all;
	const char *text = sink_memory(out, &all);

	return memmem(text, all, bytes, len) != NULL;
}

#define TRACE "00112233445566778899aabbccddeeFF"
#define SPAN  "0123456789abcdef"

/* A link of both, in place of attributes. */
static void a_span_is_a_link(void **state)
{
	struct sink *out = written(TRACE, SPAN);

	assert_true(has(out,
			"\x0a\x10\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"
			"\x12\x08\x01\x23\x45\x67\x89\xab\xcd\xef",
			28));
	assert_true(has(out, "\x18\x01\x22\x01\x05", 5)); /* the sample: link 1, values 5 */
	assert_false(has(out, "trace_id", 8));
	sink_close(out);
}

static void what_is_no_whole_span_is_an_attribute(void **state)
{
	static const char *const pairs[][2] = {
		{ "abc", SPAN },
		{ TRACE, "0123456789abcdeg" },
		{ "00000000000000000000000000000000", SPAN },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		struct sink *out = written(pairs[i][0], pairs[i][1]);

		assert_true(has(out, "trace_id", 8) && has(out, "span_id", 7));
		assert_true(has(out, pairs[i][1], strlen(pairs[i][1])));
		assert_false(has(out, "\x18\x01\x22", 3));
		sink_close(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_span_is_a_link),
		cmocka_unit_test(what_is_no_whole_span_is_an_attribute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
