#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolize/kallsyms.h"

static int load(const char *text, size_t len, struct kallsyms **ret_syms)
{
	char path[] = "/tmp/kallsyms.XXXXXX";
	_cleanup_(closep) int fd = mkstemp(path);
	int r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	r = kallsyms_load(path, ret_syms);
	unlink(path);
	return r;
}

static void assert_at(const struct kallsyms *k, uint64_t addr, const char *name)
{
	const char *found = kallsyms_find(k, addr);

	if (!name)
		assert_null(found);
	else
		assert_string_equal(found ? found : "(none)", name);
}

static const char text[] = "0000000000000000 A fixed_percpu_data\n"
			   "ffffffff81000000 T _stext\n"
			   "ffffffff81000000 T _text\n"
			   "ffffffff81000100 t helper\n"
			   "ffffffff81000100 T do_work\n"
			   "ffffffff81000200 T __x64_sys_read\n"
			   "ffffffff81000200 W sys_read\n"
			   "ffffffff81000300 r some_table\n"
			   "ffffffff81000400 D data\n"
			   "ffffffffc0201000 t mod_fn\t[some_module]\n"
			   "ffffffffc0100000 t other_fn\t[other]\n"
			   "ffffffffc0300000 t bpf_prog_6deef7357e7b4530_mine\t[bpf]\n";

static void functions_reach_to_the_next_symbol_of_any_kind(void **state)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;

	assert_int_equal(load(text, sizeof(text) - 1, &k), 0);
	assert_at(k, 0xffffffff80ffffff, NULL);
	assert_at(k, 0xffffffff810000ff, "_text");
	assert_at(k, 0xffffffff81000100, "do_work");
	assert_at(k, 0xffffffff810001ff, "do_work");
	assert_at(k, 0xffffffff810002ff, "sys_read");
	assert_at(k, 0xffffffff81000300, NULL);
	assert_at(k, 0xffffffff81000400, NULL);
	assert_at(k, 0x10, NULL);
}

static void modules_and_bpf_programs_are_functions_too(void **state)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;

	assert_int_equal(load(text, sizeof(text) - 1, &k), 0);
	assert_at(k, 0xffffffffc0100010, "other_fn");
	assert_at(k, 0xffffffffc0201010, "mod_fn");
	assert_at(k, 0xffffffffc0300010, "bpf_prog_6deef7357e7b4530_mine");
}

static void no_function_reaches_across_a_gap(void **state)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;

	assert_int_equal(load(text, sizeof(text) - 1, &k), 0);
	assert_at(k, 0xffffffffc0100000 + KALLSYMS_FUNCTION_MAX - 1, "other_fn");
	assert_at(k, 0xffffffffc0100000 + KALLSYMS_FUNCTION_MAX, NULL);
	assert_at(k, UINT64_MAX, NULL);
}

static void hidden_addresses_are_told_apart(void **state)
{
	static const char hidden[] = "0000000000000000 T _stext\n0000000000000000 T do_work\n";
	struct kallsyms *k = NULL;

	assert_int_equal(load(hidden, sizeof(hidden) - 1, &k), -EPERM);
	assert_int_equal(load("", 0, &k), -ENOENT);
	assert_int_equal(load("garbage\n\n zz\nffff\nffff T\nffff T \n", 32, &k), -ENOENT);
	assert_int_equal(kallsyms_load("/nonexistent", &k), -ENOENT);
	assert_null(k);
}

static void odd_lines_are_skipped_and_a_last_one_needs_no_newline(void **state)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;
	_cleanup_(freep) char *long_line = malloc(200000);
	size_t len = 150000;

	memset(long_line, 'x', len);
	len += (size_t)sprintf(long_line + len, "\nnonsense\nffffffff81000000 T first\n"
						"ffffffff81000100 T last");
	assert_int_equal(load(long_line, len, &k), 0);
	assert_at(k, 0xffffffff81000001, "first");
	assert_at(k, 0xffffffff81000101, "last");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_reach_to_the_next_symbol_of_any_kind),
		cmocka_unit_test(modules_and_bpf_programs_are_functions_too),
		cmocka_unit_test(no_function_reaches_across_a_gap),
		cmocka_unit_test(hidden_addresses_are_told_apart),
		cmocka_unit_test(odd_lines_are_skipped_and_a_last_one_needs_no_newline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
