/*
 * Frames of Ruby in a process made of bytes, in every version: named from sound methods and iseqs, and from nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ruby_fixture.h"

static const uint32_t versions[] = { 0x020704, 0x030007, 0x030107, 0x030209, 0x030308, 0x030405 };

enum { N_VERSIONS = sizeof(versions) / sizeof(versions[0]) };

static struct ruby_process p;

static enum lang_decoded decode(enum rbf_frame kind, uint32_t at, struct lang_frame *ret)
{
	struct lang_runtime rt = { .lang = MS_LANG_RUBY, .ruby = p.layout.rt };
	uint64_t words[2];

	rbf_words(kind, at, words);
	return lang_decode(&rt, &p.memory.mem, words, ret);
}

static void frames_have_class_method_file_and_line(void **state)
{
	struct lang_frame f;

	for (int i = 0; i < N_VERSIONS; i++) {
		bool named;

		assert_true(rbf_init(&p, versions[i]));
		/* Where the name of a class is in 3.2 is not known. */
		named = p.layout.rt.class_variables || p.layout.rt.class_path;
		assert_int_equal(decode(RBF_METHOD, 6, &f), LANG_DECODED);
		assert_string_equal(f.function, named ? "App::Job#run" : "run");
		assert_string_equal(f.file, "/a/job.rb");
		assert_int_equal(f.line, 51);
		assert_int_equal(f.first_line, RBF_FIRST_LINE);
		assert_false(f.cut);
		assert_int_equal(decode(RBF_BLOCK, 55, &f), LANG_DECODED);
		assert_string_equal(f.function, "block in run");
		assert_int_equal(f.line, 53);
		assert_int_equal(decode(RBF_INSIDE, 55, &f), LANG_DECODED);
		assert_string_equal(f.function, named ? "block in App::Job#run" : "block in run");
		assert_string_equal(f.file, "/a/job.rb");
		assert_int_equal(f.line, 53);
		assert_int_equal(decode(RBF_IN_C, 0, &f), LANG_DECODED);
		assert_string_equal(f.function, named ? "App::Job.sleep" : "sleep");
		assert_string_equal(f.file, "");
		assert_int_equal(f.line, 0);
	}
}

/* The place is that of the next instruction, but before the first. */
static void each_instruction_has_the_line_that_began_last(void **state)
{
	struct lang_frame f;
	uint32_t line = 0;

	assert_true(rbf_init(&p, 0x030107));
	for (uint32_t at = 0; at < RBF_SIZE; at++) {
		while (line < RBF_N_LINES && rbf_lines_at[line] <= at)
			line++;
		assert_int_equal(decode(RBF_BLOCK, at + 1, &f), LANG_DECODED);
		assert_int_equal(f.line, 49 + line);
	}
	assert_int_equal(decode(RBF_BLOCK, 0, &f), LANG_DECODED);
	assert_int_equal(f.line, 50);
	assert_int_equal(decode(RBF_BLOCK, MS_RUBY_AT, &f), LANG_DECODED);
	assert_int_equal(f.line, 0);
}

static void an_iseq_of_one_line_has_no_index(void **state)
{
	struct lang_frame f;

	assert_true(rbf_init(&p, 0x030308));
	rbf_put(&p, RBF_BODY_BLOCK + 112 + 16, 1, 4);
	rbf_put(&p, RBF_BODY_BLOCK + 112 + 24, 0, 8);
	assert_int_equal(decode(RBF_BLOCK, 300, &f), LANG_DECODED);
	assert_int_equal(f.line, 50);
	rbf_put(&p, RBF_BODY_BLOCK + 112 + 16, 0, 4);
	assert_int_equal(decode(RBF_BLOCK, 300, &f), LANG_DECODED);
	assert_int_equal(f.line, 0);
}

static void code_that_was_freed_is_gone(void **state)
{
	static const struct {
		enum rbf_frame kind;
		uint32_t at;
		uint64_t value;
	} changes[] = {
		{ RBF_METHOD, RBF_ENTRY, 0 }, /* a free slot                  */
		{ RBF_METHOD, RBF_ENTRY + 16,
		  RBF_BIAS + RBF_DATA + RBF_DEF_C }, /* another method's     */
		{ RBF_METHOD, RBF_ENTRY + 32, 0 },
		{ RBF_METHOD, RBF_DEF, 1 }, /* it is one in C now           */
		{ RBF_METHOD, RBF_ISEQ, 0 },
		{ RBF_METHOD, RBF_ISEQ + 16, 8 }, /* no memory                    */
		{ RBF_IN_C, RBF_ENTRY_C + 32, RBF_BIAS + RBF_DATA + RBF_CLASS },
		{ RBF_BLOCK, RBF_ISEQ_BLOCK, RUBY_T_STRING }, /* another object               */
		{ RBF_BLOCK, RBF_ISEQ_BLOCK + 16,
		  RBF_BIAS + RBF_DATA + RBF_BODY }, /* another iseq      */
		{ RBF_BLOCK, RBF_BODY_BLOCK + 8, 0 },
		{ RBF_INSIDE, RBF_ENTRY, 0 },
		{ RBF_INSIDE, RBF_ENTRY + 32, RBF_BIAS + RBF_DATA + RBF_SINGLETON },
		{ RBF_INSIDE, RBF_ISEQ_BLOCK, RUBY_T_STRING },
		{ RBF_INSIDE, RBF_ISEQ_BLOCK + 16, RBF_BIAS + RBF_DATA + RBF_BODY },
	};
	struct lang_frame f = { .line = 1 };

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		assert_true(rbf_init(&p, 0x030107));
		rbf_put(&p, changes[i].at, changes[i].value, 8);
		assert_int_equal(decode(changes[i].kind, 6, &f), LANG_GONE);
		assert_int_equal(f.line, 1);
	}
}

/* Labels of all kinds, and the method that they are in. */
static void what_is_inside_of_a_method_has_its_class_before_its_name(void **state)
{
	static const struct {
		const char *label, *method, *name;
	} labels[] = {
		{ "block in run", "run", "block in App::Job#run" },
		{ "block (2 levels) in <=>", "<=>", "block (2 levels) in App::Job#<=>" },
		{ "rescue in run!", "run!", "rescue in App::Job#run!" },
		{ "run", "run", "App::Job#run" }, /* eval() */
		/* define_method() */
		{ "block in <class:Job>", "<class:Job>", "block in <class:Job>" },
		{ "block in <top (required)>", "<top (required)>", "block in <top (required)>" },
		{ "block in singleton class", "singleton class", "block in singleton class" },
		{ "block in run", "walk", "block in run" },
		{ "run", "", "run" },
		{ "un", "run", "un" },
	};
	struct lang_frame f;

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		assert_true(rbf_init(&p, 0x030308));
		rbf_long_string(&p, RBF_STRING_BLOCK, labels[i].label, strlen(labels[i].label));
		rbf_string(&p, RBF_STRING_RUN, labels[i].method);
		assert_int_equal(decode(RBF_INSIDE, 55, &f), LANG_DECODED);
		assert_string_equal(f.function, labels[i].name);
	}
}

static void files_have_their_path_alone(void **state)
{
	static const struct {
		const char *path, *file;
	} paths[] = {
		{ "<internal:/usr/lib/kernel_require.rb>", "/usr/lib/kernel_require.rb" },
		{ "<internal:kernel>", "<internal:kernel>" },
		{ "(eval at /a/job.rb:7)", "/a/job.rb:7" },
		{ "(eval at /a/job.rb:7", "(eval at /a/job.rb:7" },
		{ "(eval)", "(eval)" },
		{ "<internal:/", "<internal:/" },
	};
	struct lang_frame f;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_true(rbf_init(&p, 0x030308));
		rbf_long_string(&p, RBF_STRING_REAL, paths[i].path, strlen(paths[i].path));
		assert_int_equal(decode(RBF_BLOCK, 55, &f), LANG_DECODED);
		assert_string_equal(f.file, paths[i].file);
	}
}

/* Each number fits into the words, beside all else. */
static void each_instruction_inside_of_a_method_has_its_line(void **state)
{
	struct lang_frame f, by_iseq;

	assert_true(rbf_init(&p, 0x030308));
	for (uint32_t at = 0; at <= RBF_SIZE; at++) {
		assert_int_equal(decode(RBF_INSIDE, at, &f), LANG_DECODED);
		assert_int_equal(decode(RBF_BLOCK, at, &by_iseq), LANG_DECODED);
		assert_int_equal(f.line, by_iseq.line);
	}
}

/* Whenever it happens: what comes out is what was there before, or nothing. */
static void code_that_is_freed_meanwhile_is_gone(void **state)
{
	struct lang_frame f;
	uint64_t n;

	assert_true(rbf_init(&p, 0x030107));
	assert_int_equal(decode(RBF_METHOD, 6, &f), LANG_DECODED);
	n = p.memory.reads;
	for (uint64_t i = 1; i <= n; i++) {
		assert_true(rbf_init(&p, 0x030107));
		p.memory.change = i;
		p.memory.change_at = RBF_ENTRY;
		if (decode(RBF_METHOD, 6, &f) == LANG_DECODED)
			assert_string_equal(f.function, "App::Job#run");
		else
			assert_true(i <= n);
	}
	assert_true(n < 64);
}

static void strings_are_text(void **state)
{
	static const struct {
		const char *bytes, *text;
	} strings[] = {
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "a\nb\x1b[2J", "a\\x0ab\\x1b[2J" },
		{ "\xff\xc3", "\\xff\\xc3" },
		{ "\xe2\x80\xae", "\\xe2\\x80\\xae" }, /* right to left   */
		{ "\xc0\x80", "\\xc0\\x80" },          /* too long a form */
		{ "\xf0\x9f\x92\x8e", "\xf0\x9f\x92\x8e" },
	};
	char text[64];
	bool cut = false;

	assert_true(rbf_init(&p, 0x030107));
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		text[0] = '\0';
		rbf_long_string(&p, RBF_STRING_RUN, strings[i].bytes, strlen(strings[i].bytes));
		assert_int_equal(ruby_text(&p.layout.rt, &p.memory.mem, rbf_addr(RBF_STRING_RUN),
					   text, sizeof(text), &cut),
				 0);
		assert_string_equal(text, strings[i].text);
	}
	assert_false(cut);
}

static void names_longer_than_their_room_are_cut(void **state)
{
	char name[3000];
	struct lang_frame f;

	assert_true(rbf_init(&p, 0x030308));
	memset(name, 'n', sizeof(name));
	memcpy(name + 254, "\xc3\xbc", 2); /* over the end of what is read at once */
	rbf_long_string(&p, RBF_STRING_RUN, name, sizeof(name));
	assert_int_equal(decode(RBF_METHOD, 6, &f), LANG_DECODED);
	assert_true(f.cut);
	assert_int_equal(strlen(f.function), LANG_NAME_MAX - 1);
	assert_memory_equal(f.function, "App::Job#nnn", 12);
	assert_memory_equal(f.function + 9, name, LANG_NAME_MAX - 10);
}

static void what_is_no_name_is_damaged(void **state)
{
	struct lang_frame f;

	assert_true(rbf_init(&p, 0x030107));
	rbf_put(&p, RBF_BODY_BLOCK + 80, rbf_addr(RBF_CLASS), 8);
	assert_int_equal(decode(RBF_BLOCK, 6, &f), LANG_DAMAGED);
	rbf_put(&p, RBF_BODY_BLOCK + 80, 20, 8);
	assert_int_equal(decode(RBF_BLOCK, 6, &f), LANG_DAMAGED);
}

static void a_method_of_an_object_or_a_nameless_class_has_its_own_name_alone(void **state)
{
	struct lang_frame f;

	for (int i = 0; i < N_VERSIONS; i++) {
		assert_true(rbf_init(&p, versions[i]));
		/* The class that is named is of another object. */
		rbf_put(&p, RBF_CLASS + 8, rbf_addr(RBF_CLASS), 8);
		assert_int_equal(decode(RBF_IN_C, 0, &f), LANG_DECODED);
		assert_string_equal(f.function, "sleep");
		/* It has no name, or no variables. */
		rbf_put(&p, RBF_CLASS + p.layout.rt.class_path, 0, p.layout.rt.class_path ? 8 : 0);
		rbf_put(&p, RBF_EXT + 8, 0, 8);
		assert_int_equal(decode(RBF_METHOD, 0, &f), LANG_DECODED);
		assert_string_equal(f.function, "run");
	}
}

static void the_runtime_is_found(void **state)
{
	struct lang_runtime rt;

	assert_true(rbf_init(&p, 0x030308));
	assert_int_equal(lang_runtime_find(&p.at, NULL, &p.memory.mem, &rt, NULL), 0);
	assert_string_equal(rt.name, "Ruby 3.3.8");
	assert_int_equal(rt.row.thread, MS_THREAD_TLS);
	assert_int_equal(rt.row.off, 0x30);
	assert_int_equal(rt.ruby.names, rbf_addr(RBF_NAMES_VAR));
	assert_int_equal(rt.row.ruby.frame_bytes, 56);
	assert_int_equal(rt.row.ruby.cfp_reg, 15);
	assert_int_equal(rt.row.ruby.outer, 2);
	assert_int_equal(rt.row.range[1].end, RBF_BIAS + 0x10800);
	assert_true(rt.untested);
}

static void one_variable_for_all_threads_is_found(void **state)
{
	struct lang_runtime rt;

	assert_true(rbf_init(&p, 0x020704));
	p.image.ruby.current_ec = RBF_DATA + 0x10;
	assert_int_equal(lang_runtime_find(&p.at, NULL, &p.memory.mem, &rt, NULL), 0);
	assert_int_equal(rt.row.thread, MS_THREAD_GLOBAL);
	assert_int_equal(rt.row.off, rbf_addr(0x10));
	assert_int_equal(rt.row.ruby.stack_start, 152);
}

static void a_runtime_without_names_is_asked_again(void **state)
{
	struct lang_runtime rt;

	assert_true(rbf_init(&p, 0x030107));
	rbf_put(&p, RBF_NAMES_VAR, 0, 8);
	assert_int_equal(lang_runtime_find(&p.at, NULL, &p.memory.mem, &rt, NULL), -EAGAIN);
}

static void versions_without_a_row_are_refused(void **state)
{
	static const uint32_t others[] = { 0x020608, 0x030500, 0x040000 };
	struct lang_runtime rt;
	struct err e = { 0 };

	assert_true(rbf_init(&p, 0x030107));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		p.image.ruby.version = others[i];
		assert_int_equal(lang_runtime_find(&p.at, NULL, &p.memory.mem, &rt, &e),
				 -EOPNOTSUPP);
		assert_non_null(strstr(e.msg, "2.7 to 3.4"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_have_class_method_file_and_line),
		cmocka_unit_test(each_instruction_has_the_line_that_began_last),
		cmocka_unit_test(an_iseq_of_one_line_has_no_index),
		cmocka_unit_test(code_that_was_freed_is_gone),
		cmocka_unit_test(what_is_inside_of_a_method_has_its_class_before_its_name),
		cmocka_unit_test(files_have_their_path_alone),
		cmocka_unit_test(each_instruction_inside_of_a_method_has_its_line),
		cmocka_unit_test(code_that_is_freed_meanwhile_is_gone),
		cmocka_unit_test(strings_are_text),
		cmocka_unit_test(names_longer_than_their_room_are_cut),
		cmocka_unit_test(what_is_no_name_is_damaged),
		cmocka_unit_test(a_method_of_an_object_or_a_nameless_class_has_its_own_name_alone),
		cmocka_unit_test(the_runtime_is_found),
		cmocka_unit_test(one_variable_for_all_threads_is_found),
		cmocka_unit_test(a_runtime_without_names_is_asked_again),
		cmocka_unit_test(versions_without_a_row_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
