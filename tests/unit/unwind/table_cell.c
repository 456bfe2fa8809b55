/* The table that a cell makes is the one that is made here, and so are its reasons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "table_image.h"
#include "unwind/table_cell.h"

static void assert_same(const struct unwind_table *a, const struct unwind_table *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->machine, b->machine);
	assert_int_equal(a->first_page, b->first_page);
	assert_int_equal(a->n_pages, b->n_pages);
	assert_int_equal(a->n_rows, b->n_rows);
	assert_int_equal(a->n_rules, b->n_rules);
	assert_memory_equal(a->dir, b->dir, 4 * (a->n_pages + 1));
	assert_memory_equal(a->rows, b->rows, 4 * a->n_rows);
	assert_memory_equal(a->rules, b->rules, a->n_rules * sizeof(*a->rules));
	assert_memory_equal(&a->counts, &b->counts, sizeof(a->counts));
}

/* This very program: some thousand rows. */
static void a_cells_table_is_the_table(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *here = NULL, *there = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct err e = { 0 };

	(void)state;
	assert_int_equal(elf_file_open(fd, "self", &elf, NULL), 0);
	assert_int_equal(unwind_table_build(elf, &here, NULL), 0);
	if (unwind_table_in_cell(elf, &there, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(here->n_rows > 1000);
	assert_same(here, there);
	assert_in_range(there->cpu_ns, 1, 60000000000);
}

/* For a machine whose stacks are not walked: the reason is the same, word by word. */
static void its_reason_is_the_reason(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = memfd_create("image", MFD_CLOEXEC);
	struct err here = { 0 }, there = { 0 };

	(void)state;
	code_init(&im);
	put_usual_cie(&im);
	code_finish(&im);
	((Elf64_Ehdr *)im.bytes)->e_machine = EM_S390;
	assert_int_equal(write(fd, im.bytes, im.len), im.len);
	assert_int_equal(elf_file_open(fd, "other", &elf, NULL), 0);
	assert_int_equal(unwind_table_build(elf, &table, &here), -EOPNOTSUPP);
	assert_int_equal(unwind_table_in_cell(elf, &table, &there), -EOPNOTSUPP);
	assert_string_equal(there.msg, here.msg);
	assert_non_null(strstr(there.msg, "other"));
}

/* It is cut while it is read: whatever comes of it is a table, or a reason. */
static void a_file_that_shrinks_is_no_harm(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = memfd_create("image", MFD_CLOEXEC);
	struct err e = { 0 };
	int r;

	(void)state;
	code_init(&im);
	put_usual_cie(&im);
	code_finish(&im);
	assert_int_equal(write(fd, im.bytes, im.len), im.len);
	assert_int_equal(elf_file_open(fd, "shrinks", &elf, NULL), 0);
	assert_int_equal(ftruncate(fd, 100), 0);
	r = unwind_table_in_cell(elf, &table, &e);
	assert_true(r < 0);
	assert_non_null(strstr(e.msg, "shrinks"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cells_table_is_the_table),
		cmocka_unit_test(its_reason_is_the_reason),
		cmocka_unit_test(a_file_that_shrinks_is_no_harm),
	};

	if (getenv("MEMSCOPE_VALGRIND")) {
		puts("1..0 # SKIP valgrind has never heard of what a cell asks the kernel for");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
