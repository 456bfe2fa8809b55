#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "import/readers.h"
#include "model/about.h"

static struct dict *d;
static struct err e;
static struct import_info info;

static int setup(void **state)
{
	d = dict_new();
	memset(&e, 0, sizeof(e));
	memset(&info, 0, sizeof(info));
	return 0;
}

static int teardown(void **state)
{
	dict_free(d);
	return 0;
}

static int read_text(const char *text, struct profile **ret_profile)
{
	_cleanup_(input_freep) struct input *in = input_of_bytes(bytes_of(text, strlen(text)));

	return folded_read(d, in, "x", &info, ret_profile, &e);
}

/* Root first; inlined calls after /, the kernel's in []. */
static void expect(const struct profile *p, uint32_t i, int64_t count, const char *want)
{
	struct profile_sample s = profile_sample(p, i);
	struct strbuf got = { 0 };
	stack_id path[64];
	uint32_t n = 0;

	for (; s.stack.ix; s.stack = dict_stack_parent(d, s.stack))
		path[n++] = s.stack;
	while (n--) {
		const struct location *loc = dict_location_get(d, dict_stack_leaf(d, path[n]));
		bool kernel = dict_module_get(d, loc->module)->kind == MODULE_KERNEL;

		strbuf_puts(&got, got.len ? ";" : "");
		for (uint32_t l = loc->n_lines; l--;)
			strbuf_printf(&got, kernel ? "[%s]%s" : "%s%s",
				      dict_str(d, loc->lines[l].function), l ? "/" : "");
	}
	assert_string_equal(got.s, want);
	assert_int_equal(s.values[0], count);
	strbuf_free(&got);
}

static void stacks_come_with_their_counts(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("main;read 3\r\nmain 4\n\nmain;read 5", &p), 0);
	assert_int_equal(profile_n_samples(p), 2);
	assert_string_equal(profile_type(p, 0)->name, "samples");
	expect(p, 0, 8, "main;read");
	expect(p, 1, 4, "main");
	assert_int_equal(info.skipped_lines, 0);
	profile_free(p);
}

static void names_may_hold_blanks_and_digits(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("operator new(unsigned long);f 2 7\nvoid g<1>() 1\n", &p), 0);
	expect(p, 0, 7, "operator new(unsigned long);f 2");
	expect(p, 1, 1, "void g<1>()");
	profile_free(p);
}

static void suffixes_say_kernel_and_inlined(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("a;b;c_[i];d_[i];sys_read_[k] 1\n"
				   "x_[i];y_[j];_[k] 2\n",
				   &p),
			 0);
	expect(p, 0, 1, "a;b/c/d;[sys_read]");
	expect(p, 1, 2, "x;y_[j];_[k]"); /* nothing to be inlined into; a suffix needs a name */
	profile_free(p);
}

static void frame_of_one_name_is_one_place(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("a;b 1\nc;a;b 1\n", &p), 0);
	assert_int_equal(dict_stack_leaf(d, profile_sample(p, 0).stack).ix,
			 dict_stack_leaf(d, profile_sample(p, 1).stack).ix);
	profile_free(p);
}

static void counts_with_a_fraction_are_rounded(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("a 2.4\nb 2.5\nc 2.\n", &p), 0);
	expect(p, 0, 2, "a");
	expect(p, 1, 3, "b");
	expect(p, 2, 2, "c");
	profile_free(p);
}

static void bad_lines_are_skipped_and_counted(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("no stack\nmain 4\n;;; x\n 7\nmain -3\nmain 1e5\n"
				   "main 99999999999999999999\nmain 9223372036854775807.5\n",
				   &p),
			 0);
	assert_int_equal(profile_n_samples(p), 1);
	expect(p, 0, 4, "main");
	assert_int_equal(info.skipped_lines, 7);
	profile_free(p);
}

static void what_a_recording_is_known_by_is_read_and_other_comments_are_skipped(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("# Title: after 7 #\n# a comment\n# Label: env=prod #\n"
				   "#main 4\n",
				   &p),
			 0);
	assert_int_equal(profile_n_samples(p), 1);
	expect(p, 0, 4, "#main");
	assert_int_equal(info.skipped_lines, 0);
	assert_string_equal(profile_about(p, ABOUT_TITLE, 0), "after 7");
	assert_string_equal(profile_about(p, ABOUT_LABEL, 0), "env=prod");
	profile_free(p);
}

static void text_without_any_stack_is_refused_by_its_first_line(void **state)
{
	struct profile *p = NULL;

	assert_int_equal(read_text("\nhello \033[31mworld\nfoo\n", &p), -EBADMSG);
	assert_string_equal(
		e.msg,
		"x: no profile: neither pprof, perf script nor a heap dump, and no line is a folded stack (frame;frame;… COUNT); line 2 is "
		"\"hello \xef\xbf\xbd[31mworld\"");
	assert_int_equal(read_text("\n \n", &p), -EBADMSG);
	assert_string_equal(e.msg, "x: holds nothing but blank lines");
	assert_null(p);
}

static void two_columns_are_a_comparison_and_refused(void **state)
{
	struct profile *p = NULL;

	assert_int_equal(read_text("main;a 3 4\nmain;b 0 12\n", &p), -EBADMSG);
	assert_non_null(strstr(e.msg, "x: has two counts on each line, as difffolded.pl"));
	assert_null(p);
}

static void values_that_add_up_too_far_saturate(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("a 9223372036854775807\na 9\n", &p), 0);
	expect(p, 0, INT64_MAX, "a");
	profile_free(p);
}

#define test(fact) cmocka_unit_test_setup_teardown(fact, setup, teardown)

/* Lines that begin like the one before are not read from their beginning: each is what it is alone. */
static void a_line_is_the_same_whatever_came_before_it(void **state)
{
	static const char *const frames[] = { "a",         "a",     "ab", "b_[i]", "c_[k]",
					      "c_[k]_[i]", " d e ", "",   "a_[i]" };
	enum { N = 3000, N_FRAMES = sizeof(frames) / sizeof(*frames) };
	struct strbuf all = { 0 }, line = { 0 };
	struct profile *together, *alone;
	uint32_t seed = 1, sample;

	for (int pass = 0; pass < 2; pass++) {
		seed = 1;
		for (int i = 0; i < N; i++) {
			strbuf_reset(&line);
			seed = (uint32_t)(seed * 48271ull % 2147483647u);
			/* Two frames in common with the line before, mostly. */
			strbuf_puts(&line, seed % 5 ? "root;a" : "root");
			for (uint32_t k = 0, left = seed; k < seed % 6; k++, left /= N_FRAMES)
				strbuf_printf(&line, ";%s", frames[left % N_FRAMES]);
			strbuf_puts(&line, " 1\n");
			if (!pass) {
				strbuf_puts(&all, line.s);
				continue;
			}
			assert_int_equal(read_text(line.s, &alone), 0);
			assert_int_equal(profile_n_samples(alone), 1);
			/* The same dict: equal stacks have equal numbers. */
			assert_int_equal(profile_find_sample(together,
							     profile_sample(alone, 0).stack,
							     (labels_id){ 0 }, &sample),
					 0);
			assert_int_equal(profile_add(together, profile_sample(alone, 0).stack,
						     (labels_id){ 0 }, &(int64_t){ -1 }),
					 0);
			profile_free(alone);
		}
		if (!pass)
			assert_int_equal(read_text(all.s, &together), 0);
	}
	for (uint32_t i = 0; i < profile_n_samples(together); i++)
		assert_int_equal(profile_sample(together, i).values[0], 0);
	assert_true(profile_n_samples(together) > 100);
	profile_free(together);
	strbuf_free(&all);
	strbuf_free(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_line_is_the_same_whatever_came_before_it),
		test(stacks_come_with_their_counts),
		test(names_may_hold_blanks_and_digits),
		test(suffixes_say_kernel_and_inlined),
		test(frame_of_one_name_is_one_place),
		test(counts_with_a_fraction_are_rounded),
		test(bad_lines_are_skipped_and_counted),
		test(what_a_recording_is_known_by_is_read_and_other_comments_are_skipped),
		test(text_without_any_stack_is_refused_by_its_first_line),
		test(two_columns_are_a_comparison_and_refused),
		test(values_that_add_up_too_far_saturate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
