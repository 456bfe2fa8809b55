/*
 * Tables of images that a test writes byte by byte (code_image.h), for the tests of what makes them.
 */
#ifndef MEMSCOPE_TESTS_TABLE_IMAGE_H
#define MEMSCOPE_TESTS_TABLE_IMAGE_H

#include "unit/elf/go_image.h"
#include "unwind/rows.h"

enum { F = CODE_TEXT + 0x100 };

static struct code_image im;

static inline int setup(void **state)
{
	code_init(&im);
	return 0;
}

static inline struct unwind_table *table_of_image(void)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct unwind_table *table = NULL;
	struct err e = { 0 };

	code_finish(&im);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, &e), 0);
	if (unwind_table_build(elf, &table, &e) < 0)
		fail_msg("%s", e.msg);
	return table;
}

static inline int kind_at(const struct unwind_table *table, uint64_t vaddr)
{
	return unwind_table_find(table, vaddr)->kind;
}

/* What the walker takes for granted. */
static inline void check_table(const struct unwind_table *t)
{
	assert_int_equal(t->dir[0], 0);
	assert_int_equal(t->dir[t->n_pages], t->n_rows);
	assert_true(t->dir[1] > 0 && t->rows[0] >> MS_ROW_RULE_BITS == 0);
	for (uint32_t p = 0; p < t->n_pages; p++)
		for (uint32_t i = t->dir[p]; i < t->dir[p + 1]; i++) {
			assert_true((t->rows[i] & MS_ROW_RULE_MASK) < t->n_rules);
			assert_true(i == t->dir[p] || t->rows[i] > t->rows[i - 1]);
			assert_true(i == 0 || (t->rows[i] & MS_ROW_RULE_MASK) !=
						      (t->rows[i - 1] & MS_ROW_RULE_MASK));
		}
}

#endif
