#include "analyse/stack_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static location_id place(struct dict *d, enum module_kind kind, const char *path, uint64_t vaddr,
			 const char *function, const char *system_name, const char *file,
			 uint32_t n)
{
	module_id m =
		dict_module(d, &(struct module){ .kind = kind, .path = dict_string(d, path) });
	struct line line = { .function = dict_string(d, function),
			     .system_name = dict_string(d, system_name),
			     .file = dict_string(d, file),
			     .line = n };

	return dict_location_lines(d, m, vaddr, &line, 1);
}

/* main → handle() of a language → an unnamed function → read */
static stack_id some_stack(struct dict *d)
{
	const location_id frames[] = {
		place(d, MODULE_ELF, "/lib/libc.so.6", 0xf7104, "read", "read", "", 0),
		place(d, MODULE_ELF, "/usr/bin/bu\033sy", 0x1234, "[busy+0x1200]", "", "", 0),
		place(d, MODULE_LANG, "[Python]", 0, "handle", "", "worker.py", 12),
		place(d, MODULE_ANON, "//anon", 0x7f00, "LazyCompile:\"f", "", "", 0),
		place(d, MODULE_NONE, "", 0x99, "[unknown]", "", "", 0),
	};

	return dict_stack(d, frames, 5);
}

static void each_frame_is_a_line_as_of_strace(void **state)
{
	struct dict *d = dict_new();
	struct strbuf b = { 0 };

	(void)state;
	stack_text_put(d, some_stack(d), STACK_COMPLETE, &b);
	assert_string_equal(b.s, " > /lib/libc.so.6(read) [0xf7104]\n"
				 " > /usr/bin/bu\\33sy() [0x1234]\n"
				 " > worker.py:12(handle)\n"
				 " > //anon(LazyCompile:\\\"f) [0x7f00]\n"
				 " > [unknown] [0x99]\n");
	strbuf_free(&b);
	dict_free(d);
}

static void a_stack_that_is_not_whole_says_why(void **state)
{
	struct dict *d = dict_new();
	struct strbuf b = { 0 };
	location_id leaf = place(d, MODULE_ELF, "/bin/a", 1, "f", "f", "", 0);

	(void)state;
	stack_text_put(d, dict_stack(d, &leaf, 1), STACK_NO_TABLE, &b);
	assert_string_equal(b.s, " > /bin/a(f) [0x1]\n > (incomplete: no table)\n");
	strbuf_reset(&b);
	stack_text_put(d, (stack_id){ 0 }, STACK_LOST, &b);
	assert_string_equal(b.s, " > (incomplete: lost)\n");
	strbuf_free(&b);
	dict_free(d);
}

static void json_has_the_same_frames_as_objects(void **state)
{
	struct dict *d = dict_new();
	struct strbuf b = { 0 };

	(void)state;
	stack_text_json(d, some_stack(d), STACK_TRUNCATED, &b);
	assert_string_equal(
		b.s,
		",\"stack\":[{\"function\":\"read\",\"module\":\"/lib/libc.so.6\",\"address\":\"0xf7104\"},"
		"{\"function\":\"\",\"module\":\"/usr/bin/bu\\\\33sy\",\"address\":\"0x1234\"},"
		"{\"function\":\"handle\",\"module\":\"[Python]\",\"file\":\"worker.py\",\"line\":12},"
		"{\"function\":\"LazyCompile:\\\\\\\"f\",\"module\":\"//anon\",\"address\":\"0x7f00\"},"
		"{\"function\":\"[unknown]\",\"module\":\"\",\"address\":\"0x99\"}]"
		",\"stack_incomplete\":\"truncated\"");
	strbuf_free(&b);
	dict_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_frame_is_a_line_as_of_strace),
		cmocka_unit_test(a_stack_that_is_not_whole_says_why),
		cmocka_unit_test(json_has_the_same_frames_as_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
