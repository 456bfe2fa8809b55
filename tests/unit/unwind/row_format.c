#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>

#include <cmocka.h>

#include "table_image.h"
#include "unwind/row_format.h"

static const struct row_digest digest = { "0123456789abcde" };

static struct unwind_table *table;
static uint8_t *data;
static size_t len;

static int begin(void **state)
{
	code_init(&im);
	put_usual_cie(&im);
	put_fde(&im, F, 0x100,
		INSNS(DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset,
		      24));
	put_fde(&im, F + 0x100, 0x40, INSNS(DW_CFA_def_cfa_offset, 32));
	table = table_of_image();
	data = NULL;
	return 0;
}

static int end(void **state)
{
	free(data);
	unwind_table_free(table);
	return 0;
}

static void write_it(void)
{
	free(data);
	data = NULL;
	assert_int_equal(row_format_write(table, &digest, &data, &len), 0);
}

/* What becomes of a table that was written as it is now: each number is checked, not the checksum alone. */
static int read_back(void)
{
	struct unwind_table *got = NULL;
	int r;

	write_it();
	r = row_format_read(data, len, &digest, &got);
	unwind_table_free(got);
	return r;
}

static void a_table_comes_back_as_it_was(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *got = NULL;

	(void)state;
	write_it();
	assert_int_equal(row_format_read(data, len, &digest, &got), 0);
	check_table(got);
	assert_int_equal(got->kind, table->kind);
	assert_int_equal(got->machine, table->machine);
	assert_int_equal(got->first_page, table->first_page);
	assert_int_equal(got->n_pages, table->n_pages);
	assert_int_equal(got->n_rows, table->n_rows);
	assert_int_equal(got->n_rules, table->n_rules);
	assert_memory_equal(got->dir, table->dir, 4 * (table->n_pages + 1));
	assert_memory_equal(got->rows, table->rows, 4 * table->n_rows);
	assert_memory_equal(got->rules, table->rules, sizeof(*table->rules) * table->n_rules);
	assert_memory_equal(&got->counts, &table->counts, sizeof(table->counts));
}

static void any_digest_is_taken_where_none_is_asked_for(void **state)
{
	struct unwind_table *got = NULL;
	struct row_digest other = digest;

	(void)state;
	write_it();
	assert_int_equal(row_format_read(data, len, NULL, &got), 0);
	unwind_table_free(got);
	other.bytes[15] ^= 1;
	assert_int_equal(row_format_read(data, len, &other, &got), -EBADMSG);
}

static void one_bit_that_is_another_is_found(void **state)
{
	struct unwind_table *got = NULL;

	(void)state;
	write_it();
	for (size_t i = 0; i < len; i++) {
		data[i] ^= 0x10;
		if (row_format_read(data, len, &digest, &got) != -EBADMSG)
			fail_msg("byte %zu of %zu", i, len);
		data[i] ^= 0x10;
	}
}

static void a_part_of_a_table_is_none(void **state)
{
	struct unwind_table *got = NULL;

	(void)state;
	write_it();
	for (size_t i = 0; i < len; i++)
		if (row_format_read(data, i, &digest, &got) != -EBADMSG)
			fail_msg("%zu bytes of %zu", i, len);
}

static void a_row_must_have_a_rule_that_is_there(void **state)
{
	uint32_t row = table->rows[1];

	(void)state;
	table->rows[1] = (row & ~(uint32_t)MS_ROW_RULE_MASK) | table->n_rules;
	assert_int_equal(read_back(), -EBADMSG);
	table->rows[1] = (row & ~(uint32_t)MS_ROW_RULE_MASK) | (table->n_rules - 1);
	assert_int_equal(read_back(), 0);
}

static void rows_must_be_in_order_and_begin_at_the_first_byte(void **state)
{
	uint32_t first = table->rows[0];

	(void)state;
	assert_true(table->n_rows > 2 && table->dir[1] > 2);
	table->rows[0] = first + (1u << MS_ROW_RULE_BITS);
	assert_int_equal(read_back(), -EBADMSG);
	table->rows[0] = first;
	table->rows[2] = (table->rows[1] & ~(uint32_t)MS_ROW_RULE_MASK) |
			 (table->rows[2] & MS_ROW_RULE_MASK);
	assert_int_equal(read_back(), -EBADMSG);
}

static void a_directory_must_lead_to_rows_that_are_there(void **state)
{
	uint32_t *dir = table->dir, last = dir[table->n_pages];

	(void)state;
	dir[table->n_pages] = last - 1;
	assert_int_equal(read_back(), -EBADMSG);
	dir[table->n_pages] = last;
	dir[0] = 1;
	assert_int_equal(read_back(), -EBADMSG);
	dir[0] = 0;
	if (table->n_pages > 1) {
		dir[1] = last + 1;
		assert_int_equal(read_back(), -EBADMSG);
	}
}

static void a_rule_must_be_one_that_the_walker_knows(void **state)
{
	struct ms_rule *r = &table->rules[MS_RULE_FIRST], was = *r;

	(void)state;
	assert_true(table->n_rules > MS_RULE_FIRST);
#define REFUSED(change)                                                                            \
	do {                                                                                       \
		change;                                                                            \
		assert_int_equal(read_back(), -EBADMSG);                                           \
		*r = was;                                                                          \
	} while (0)
	REFUSED(r->kind = MS_N_RULE_KINDS);
	REFUSED(r->reg = MS_N_REGS);
	REFUSED(r->ra_reg = MS_N_REGS);
	REFUSED(r->base_reg = MS_N_REGS);
	REFUSED(r->flags = 0x80);
	REFUSED(r->pad = 1);
	REFUSED(r->from_reg = 0x8000);
	REFUSED(r->lost = 0x8000);
	REFUSED(r->from_reg = r->lost = 1); /* saved there, and nowhere */
	r = &table->rules[0];               /* the fixed ones are where the walker looks for them */
	was = *r;
	REFUSED(r->kind = MS_RULE_BAD);
	assert_int_equal(read_back(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_table_comes_back_as_it_was, begin, end),
		cmocka_unit_test_setup_teardown(any_digest_is_taken_where_none_is_asked_for, begin,
						end),
		cmocka_unit_test_setup_teardown(one_bit_that_is_another_is_found, begin, end),
		cmocka_unit_test_setup_teardown(a_part_of_a_table_is_none, begin, end),
		cmocka_unit_test_setup_teardown(a_row_must_have_a_rule_that_is_there, begin, end),
		cmocka_unit_test_setup_teardown(rows_must_be_in_order_and_begin_at_the_first_byte,
						begin, end),
		cmocka_unit_test_setup_teardown(a_directory_must_lead_to_rows_that_are_there, begin,
						end),
		cmocka_unit_test_setup_teardown(a_rule_must_be_one_that_the_walker_knows, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
