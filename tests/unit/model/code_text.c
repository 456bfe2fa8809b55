/* Instructions by address, and the lines of a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/code_text.h"

#include <string.h>

static void an_address_within_an_instruction_finds_it(void **state)
{
	struct code_instruction in[] = { { .vaddr = 0x10, .size = 3 },
					 { .vaddr = 0x13, .size = 5 },
					 { .vaddr = 0x18, .size = 1 } };
	const struct code_text code = { .instructions = in, .n = 3 };

	assert_int_equal(code_text_find(&code, 0x0f), 0);
	assert_int_equal(code_text_find(&code, 0x10), 1);
	assert_int_equal(code_text_find(&code, 0x17), 2);
	assert_int_equal(code_text_find(&code, 0x18), 3);
	assert_int_equal(code_text_find(&code, 0x19), 0);
}

static void functions_and_files_are_found_among_others(void **state)
{
	struct code_text codes[] = { { .module = { 1 }, .start = 0x10, .end = 0x20 },
				     { .module = { 1 }, .start = 0x40, .end = 0x50 },
				     { .module = { 2 }, .start = 0x10, .end = 0x18 } };
	struct source_text texts[] = { { .path = (char *)"/a.c" }, { .path = (char *)"/b.c" } };
	const struct code_sources s = {
		.codes = codes, .n_codes = 3, .texts = texts, .n_texts = 2
	};

	assert_ptr_equal(code_sources_code(&s, (module_id){ 1 }, 0x4f), &codes[1]);
	assert_ptr_equal(code_sources_code(&s, (module_id){ 2 }, 0x10), &codes[2]);
	assert_null(code_sources_code(&s, (module_id){ 1 }, 0x20));
	assert_null(code_sources_code(&s, (module_id){ 2 }, 0x40));
	assert_null(code_sources_code(&s, (module_id){ 3 }, 0x10));
	assert_ptr_equal(code_sources_text(&s, "/b.c"), &texts[1]);
	assert_null(code_sources_text(&s, "/c.c"));
}

static void a_file_is_split_into_its_lines(void **state)
{
	static const char bytes[] = "one\ntwo\r\n\nlast";
	struct source_text t = { 0 };

	assert_int_equal(source_text_split(&t, strdup(bytes), strlen(bytes)), 0);
	assert_int_equal(t.n, 4);
	assert_string_equal(t.lines[0], "one");
	assert_string_equal(t.lines[1], "two");
	assert_string_equal(t.lines[2], "");
	assert_string_equal(t.lines[3], "last");
	source_text_fini(&t);
	assert_int_equal(source_text_split(&t, strdup(""), 0), 0);
	assert_int_equal(t.n, 0);
	source_text_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_within_an_instruction_finds_it),
		cmocka_unit_test(functions_and_files_are_found_among_others),
		cmocka_unit_test(a_file_is_split_into_its_lines),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
