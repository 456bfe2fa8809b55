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

#include "base/boot_file.h"
#include "cache_fixture.h"
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

static void rows_out_of_order_come_to_their_places(void **state)
{
	static const char mixed[] = "ffffffff81000000 T a\n"
				    "ffffffff81000200 T _c\n"
				    "ffffffff81000200 T c\n"
				    "ffffffff81000300 T d\n"
				    "ffffffff81000100 T b\n"
				    "ffffffff80000000 T z\n"
				    "ffffffff81000200 T __c\n"
				    "ffffffff81000400 T e\n";
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;

	(void)state;
	assert_int_equal(load(mixed, sizeof(mixed) - 1, &k), 0);
	assert_at(k, 0xffffffff80000000, "z");
	assert_at(k, 0xffffffff810000ff, "a");
	assert_at(k, 0xffffffff810001ff, "b");
	assert_at(k, 0xffffffff810002ff, "c");
	assert_at(k, 0xffffffff810003ff, "d");
	assert_at(k, 0xffffffff810004ff, "e");
}

/* --- what is kept --- */

static const char kernel[] = "0000000000000000 A fixed_percpu_data\n"
			     "ffffffff81000000 T _stext\n"
			     "ffffffff81000000 T _text\n"
			     "ffffffff81000200 T __x64_sys_read\n"
			     "ffffffff81000200 W sys_read\n"
			     "ffffffff81000300 r some_table\n"
			     "ffffffff81000400 T last\n"
			     "ffffffff81000500 T _etext\n"
			     "ffffffff81000600 T beyond\n"
			     "ffffffffc0201000 t mod_fn\t[some_module]\n";

static void the_kernels_own_functions_are_kept_and_found_as_before(void **state)
{
	_cleanup_(kallsyms_freep) struct kallsyms *all = NULL, *kept = NULL;

	(void)state;
	assert_int_equal(kallsyms_kept(&kept), -ENOENT);
	assert_int_equal(load(kernel, sizeof(kernel) - 1, &all), 0);
	assert_int_equal(kallsyms_keep(all), 0);
	assert_int_equal(kallsyms_kept(&kept), 0);
	for (uint64_t addr = 0xffffffff81000000; addr < 0xffffffff81000500; addr += 0x20) {
		assert_true(kallsyms_covers(kept, addr));
		assert_at(kept, addr, kallsyms_find(all, addr));
	}
	assert_at(kept, 0xffffffff81000210, "sys_read");
	assert_at(kept, 0xffffffff81000310, NULL);
	assert_false(kallsyms_covers(kept, 0xffffffff80ffffff));
	assert_false(kallsyms_covers(kept, 0xffffffff81000500));
	assert_false(kallsyms_covers(kept, 0xffffffffc0201010));
}

static void a_kernel_without_the_ends_of_its_text_is_not_kept(void **state)
{
	_cleanup_(kallsyms_freep) struct kallsyms *all = NULL, *kept = NULL;

	(void)state;
	assert_int_equal(load(text, sizeof(text) - 1, &all), 0);
	assert_int_equal(kallsyms_keep(all), -ENOENT);
	assert_int_equal(kallsyms_kept(&kept), -ENOENT);
}

/* A file of which one number at a time is another: it is refused, or every answer is a name in it. */
static void a_damaged_file_is_refused_or_harmless(void **state)
{
	_cleanup_(kallsyms_freep) struct kallsyms *all = NULL;
	struct boot_file file;
	struct kallsyms *k;
	uint32_t refused = 0;

	(void)state;
	assert_int_equal(load(kernel, sizeof(kernel) - 1, &all), 0);
	assert_int_equal(kallsyms_keep(all), 0);
	assert_int_equal(boot_file_open("kernel-symbols", &file), 0);
	assert_int_equal(kallsyms_parse(file.data, file.len - 1, &k), -EBADMSG);
	assert_int_equal(kallsyms_parse(file.data, 8, &k), -EBADMSG);
	for (size_t i = 0; i < file.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			/* Of its own size, so that what reads behind it is found. */
			_cleanup_(freep) uint8_t *bytes = malloc(file.len);

			memcpy(bytes, file.data, file.len);
			bytes[i] ^= (uint8_t)(1 << bit);
			if (kallsyms_parse(bytes, file.len, &k) < 0) {
				refused++;
				continue;
			}
			for (uint64_t addr = 0xffffffff81000000; addr < 0xffffffff81000500;
			     addr += 0x80) {
				const char *name = kallsyms_find(k, addr);

				assert_true(!name || strlen(name) < file.len);
			}
			kallsyms_free(k);
		}
	assert_true(refused >= 16 * 8);
	boot_file_close(&file);
}

static const char modules[] = "ffffffff81000000 T _stext\n"
			      "ffffffff81000500 T _etext\n"
			      "ffffffffc0201000 t first\t[one]\n"
			      "ffffffffc0201100 T second\t[one]\n"
			      "ffffffffc0201200 t last\t[one]\n"
			      "ffffffffc0202000 d data\t[one]\n"
			      "ffffffffc0203000 t before\t[two]\n"
			      "ffffffffc0203400 t alone\t[three]\n"
			      "ffffffffc0203800 t behind\t[two]\n"
			      "ffffffffc0203900 t end\t[two]\n"
			      "ffffffffc0300000 t bpf_prog_1_a\t[bpf]\n"
			      "ffffffffc0300100 t bpf_prog_1_b\t[bpf]\n"
			      "ffffffffc0301000 t ftrace_trampoline\t[__builtin__ftrace]\n"
			      "ffffffffc0301100 t ftrace_trampoline\t[__builtin__ftrace]\n";

static void functions_of_modules_are_kept_while_the_same_ones_are_loaded(void **state)
{
	_cleanup_(kallsyms_freep) struct kallsyms *all = NULL, *kept = NULL;

	(void)state;
	assert_int_equal(kallsyms_modules_kept(7, &kept), -ENOENT);
	assert_int_equal(load(modules, sizeof(modules) - 1, &all), 0);
	assert_int_equal(kallsyms_modules_keep(all, 7), 0);
	assert_int_equal(kallsyms_modules_kept(8, &kept), -ENOENT);
	assert_int_equal(kallsyms_modules_kept(7, &kept), 0);
	assert_at(kept, 0xffffffffc0201010, "first");
	assert_at(kept, 0xffffffffc02011ff, "second");
	assert_at(kept, 0xffffffffc0203810, "behind");
	/* What lies behind the last one may be something else by now; and so may what another module lies behind. */
	assert_at(kept, 0xffffffffc0201200, NULL);
	assert_at(kept, 0xffffffffc0203010, NULL);
	assert_at(kept, 0xffffffffc0203410, NULL);
	assert_at(kept, 0xffffffffc0203910, NULL);
	/* These come and go. */
	assert_at(kept, 0xffffffffc0300010, NULL);
	assert_at(kept, 0xffffffffc0301010, NULL);
	assert_at(kept, 0xffffffff81000010, NULL);
}

static const char rows_of_none[] = "ffffffff81000000 T _stext\n"
				   "ffffffff81000100 T function\n"
				   "ffffffffc0300000 t bpf_prog_1_a\t[bpf]\n"
				   "ffffffffc0300100 t bpf_prog_1_b\t[bpf]\n";

static void a_kernel_without_modules_keeps_none(void **state)
{
	_cleanup_(kallsyms_freep) struct kallsyms *all = NULL;

	(void)state;
	assert_int_equal(load(rows_of_none, sizeof(rows_of_none) - 1, &all), 0);
	assert_int_equal(kallsyms_modules_keep(all, 7), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_reach_to_the_next_symbol_of_any_kind),
		cmocka_unit_test(modules_and_bpf_programs_are_functions_too),
		cmocka_unit_test(no_function_reaches_across_a_gap),
		cmocka_unit_test(hidden_addresses_are_told_apart),
		cmocka_unit_test(odd_lines_are_skipped_and_a_last_one_needs_no_newline),
		cmocka_unit_test(rows_out_of_order_come_to_their_places),
		cmocka_unit_test_setup_teardown(
			the_kernels_own_functions_are_kept_and_found_as_before, cache_fixture_begin,
			cache_fixture_end),
		cmocka_unit_test_setup_teardown(a_kernel_without_the_ends_of_its_text_is_not_kept,
						cache_fixture_begin, cache_fixture_end),
		cmocka_unit_test_setup_teardown(
			functions_of_modules_are_kept_while_the_same_ones_are_loaded,
			cache_fixture_begin, cache_fixture_end),
		cmocka_unit_test_setup_teardown(a_kernel_without_modules_keeps_none,
						cache_fixture_begin, cache_fixture_end),
		cmocka_unit_test_setup_teardown(a_damaged_file_is_refused_or_harmless,
						cache_fixture_begin, cache_fixture_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
