#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "unwind/walkers.h"

static const char *path_at(void *ctx, uint32_t i)
{
	return ((const char *const *)ctx)[i];
}

static const struct runtime_row *runtime(const char *const *paths, const char *cmdline, size_t len)
{
	return runtime_find(path_at, (void *)(uintptr_t)paths, cmdline, len);
}

static enum ms_span_kind anon(const struct runtime_row *row)
{
	return walker_choose(CODE_ANON, row)->span;
}

#define WORDS(s) s, sizeof(s)

static void code_of_v8_is_walked_by_frame_pointer(void **state)
{
	const char *node[] = { "/usr/bin/node", "/usr/lib/libc.so.6", NULL };
	const struct runtime_row *row = runtime(node, WORDS("node\0x.js"));

	assert_non_null(row);
	assert_int_equal(row->runtime, RUNTIME_V8);
	assert_int_equal(anon(row), MS_SPAN_FP);
	assert_int_equal(walker_choose(CODE_NOT_ELF, row)->span, MS_SPAN_FP);
	assert_int_equal(walker_choose(CODE_ELF, row)->span, MS_SPAN_TABLE);
	assert_int_equal(walker_choose(CODE_KERNELS, row)->span, MS_SPAN_GUESS);
	(void)state;
}

static void the_jvm_needs_an_option_to_keep_them(void **state)
{
	const char *java[] = { "/usr/bin/java", "/usr/lib/jvm/lib/server/libjvm.so", NULL };

	assert_int_equal(anon(runtime(java, WORDS("java\0-jar\0x.jar"))), MS_SPAN_GUESS);
	assert_int_equal(anon(runtime(java, WORDS("java\0-XX:+PreserveFramePointer\0-jar"))),
			 MS_SPAN_FP);
	assert_int_equal(anon(runtime(java, WORDS("java\0-XX:+PreserveFramePointers\0-jar"))),
			 MS_SPAN_GUESS);
	assert_int_equal(anon(runtime(java, WORDS("java\0-Dx=-XX:+PreserveFramePointer"))),
			 MS_SPAN_GUESS);
	(void)state;
}

static void a_word_may_need_another_after_it(void **state)
{
	const char *beam[] = { "/usr/lib/erlang/bin/beam.smp", NULL };

	assert_int_equal(anon(runtime(beam, WORDS("beam.smp\0+JPperf\0true"))), MS_SPAN_FP);
	assert_int_equal(anon(runtime(beam, WORDS("beam.smp\0+JPperf\0false"))), MS_SPAN_GUESS);
	/* Cut off in the middle, and at the end. */
	assert_int_equal(anon(runtime(beam, "beam.smp\0+JPperf\0true", 20)), MS_SPAN_GUESS);
	assert_int_equal(anon(runtime(beam, "beam.smp\0+JPperf", 16)), MS_SPAN_GUESS);
	assert_int_equal(anon(runtime(beam, "", 0)), MS_SPAN_GUESS);
	(void)state;
}

static void a_name_that_only_begins_alike_is_another_program(void **state)
{
	const char *other[] = { "/usr/bin/nodejs-helper", "/opt/rubyish", "/a/chrome_x", NULL };
	const char *versions[] = { "/usr/bin/ruby3.1", NULL };

	assert_null(runtime(other, WORDS("x")));
	assert_int_equal(anon(NULL), MS_SPAN_GUESS);
	assert_int_equal(runtime(versions, WORDS("ruby"))->runtime, RUNTIME_RUBY);
	(void)state;
}

static void every_kind_of_code_has_a_walker_and_a_reason(void **state)
{
	for (int code = 0; code < N_CODE_KINDS; code++) {
		for (const struct runtime_row *row = runtime_rows; row->name; row++) {
			const struct walker *w = walker_choose((enum code_kind)code, row);

			assert_int_equal(w->code, code);
			assert_true(strlen(w->why) > 0 && strlen(row->why) > 0);
			assert_true(w->span != MS_SPAN_FP || row->keeps_fp);
		}
		assert_int_not_equal(walker_choose((enum code_kind)code, NULL)->span, MS_SPAN_FP);
	}
	(void)state;
}

static void pages_of_the_kernels_are_not_taken_for_named_memory(void **state)
{
	assert_true(walker_is_kernels("[vsyscall]"));
	assert_true(walker_is_kernels("[uprobes]"));
	assert_false(walker_is_kernels("[anon:v8]"));
	assert_false(walker_is_kernels("//anon"));
	assert_false(walker_is_kernels("[vdso]"));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_of_v8_is_walked_by_frame_pointer),
		cmocka_unit_test(the_jvm_needs_an_option_to_keep_them),
		cmocka_unit_test(a_word_may_need_another_after_it),
		cmocka_unit_test(a_name_that_only_begins_alike_is_another_program),
		cmocka_unit_test(every_kind_of_code_has_a_walker_and_a_reason),
		cmocka_unit_test(pages_of_the_kernels_are_not_taken_for_named_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
