/* Who refers to what, by code that a test writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>

#include <cmocka.h>

#include "code_image.h"
#include "elf/code_refs.h"

/* Functions of 0x40 bytes; `table` is somewhere in .bss. */
enum { F0 = CODE_TEXT + 0x100, SIZE = 0x40, N = 6, TABLE = 0x500040 };
#define F(i) (F0 + (i) * (uint64_t)(SIZE + 16)) /* with filling between them */

static struct code_image im;
static struct elf_file *elf;
static struct cfi *cfi;

static int setup(void **state)
{
	(void)state;
	code_init(&im);
	put_usual_cie(&im);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cfi_free(cfi);
	elf_file_close(elf);
	cfi = NULL;
	elf = NULL;
	return 0;
}

/* `n` functions in the present CIE, from number `first` on. */
static void functions(int first, int n)
{
	for (int i = first; i < first + n; i++)
		put_fde(&im, F(i), SIZE, INSNS(DW_CFA_nop));
}

static void finish(void)
{
	code_finish(&im);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, NULL), 0);
	assert_int_equal(cfi_open(elf, CFI_EH_FRAME, &cfi, NULL), 0);
}

/* A jump or call of five bytes, or a lea of seven. */
static void refer(int from, int at, uint64_t to)
{
	uint64_t vaddr = F(from) + (uint64_t)at;
	int32_t by = (int32_t)((int64_t)to - (int64_t)(vaddr + 5));

	*code_text(&im, vaddr) = 0xe8;
	memcpy(code_text(&im, vaddr + 1), &by, sizeof(by));
}

static void refer_absolutely(int from, int at, uint32_t to)
{
	memcpy(code_text(&im, F(from) + (uint64_t)at), &to, sizeof(to));
}

static void users_of_an_address_are_found_in_either_form_once_each(void **state)
{
	uint64_t tables[] = { TABLE, TABLE + 0x1000 };
	uint32_t fdes[8] = { 0 };

	functions(0, N);
	refer(1, 3, TABLE);
	refer(1, 20, TABLE);
	refer_absolutely(3, 7, TABLE + 0x1000);
	refer(4, 0, TABLE + 1); /* its neighbour */
	refer(5, SIZE - 5, TABLE);
	finish();
	assert_int_equal(code_refs_users(elf, cfi, tables, 2, fdes, 8), 3);
	assert_int_equal(fdes[0], 1);
	assert_int_equal(fdes[1], 3);
	assert_int_equal(fdes[2], 5);
	assert_int_equal(code_refs_users(elf, cfi, tables, 2, fdes, 2), -E2BIG);
}

static void functions_that_only_the_others_call_are_parts_of_them(void **state)
{
	uint32_t fdes[] = { 1, 2, 3, 4 };

	functions(0, N);
	refer(0, 0, F(1)); /* called from outside */
	refer(1, 9, F(2)); /* only by 1 */
	refer(2, 9, F(2)); /* and by itself */
	refer(1, 20, F(3));
	refer(5, 20, F(3)); /* by 1, and from outside */
	/* Nobody calls 4, but zeros are before it: a distance of 0. */
	memset(code_text(&im, F(4) - 4), 0, 4);
	finish();
	assert_int_equal(code_refs_entries(elf, cfi, fdes, 4), 3);
	assert_int_equal(fdes[0], 1);
	assert_int_equal(fdes[1], 3);
	assert_int_equal(fdes[2], 4);
	assert_int_equal(code_refs_entries(elf, cfi, fdes, 0), 0);
}

static void what_leads_to_a_personality_routine_may_throw(void **state)
{
	functions(0, 5);
	/* "zPR": the routine's address, absolute in four bytes, and the encoding of the FDEs'. */
	{
		size_t begin = begin_entry(&im);

		im.cie = begin - 4;
		im.enc = DW_EH_PE_pcrel | DW_EH_PE_sdata4;
		put32(&im, 0);
		put(&im, "\1zPR", 5);
		put8(&im, 1);
		put8(&im, 0x78);
		put8(&im, 16);
		put8(&im, 6);
		put8(&im, DW_EH_PE_udata4);
		put32(&im, CODE_TEXT);
		put8(&im, DW_EH_PE_pcrel | DW_EH_PE_sdata4);
		end_entry(&im, begin);
	}
	functions(5, 1);
	refer(0, 0, F(1));
	refer(1, 0, F(2));
	refer(2, 0, F(5));
	refer(4, 0, F(0)); /* one step more */
	finish();
	assert_true(cfi_fde_at(cfi, 5).lands);
	assert_false(cfi_fde_at(cfi, 4).lands);
	assert_true(code_refs_may_throw(elf, cfi, 5));
	assert_true(code_refs_may_throw(elf, cfi, 2));
	assert_true(code_refs_may_throw(elf, cfi, 0));
	assert_false(code_refs_may_throw(elf, cfi, 3));
	assert_false(code_refs_may_throw(elf, cfi, 4));
}

static void other_machines_are_refused(void **state)
{
	uint64_t table = TABLE;
	uint32_t fdes[8] = { 0 };

	im.machine = EM_AARCH64;
	functions(0, N);
	finish();
	assert_int_equal(code_refs_users(elf, cfi, &table, 1, fdes, 8), -EOPNOTSUPP);
	assert_int_equal(code_refs_entries(elf, cfi, fdes, 1), -EOPNOTSUPP);
	assert_true(code_refs_may_throw(elf, cfi, 0));
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		FACT(users_of_an_address_are_found_in_either_form_once_each),
		FACT(functions_that_only_the_others_call_are_parts_of_them),
		FACT(what_leads_to_a_personality_routine_may_throw),
		FACT(other_machines_are_refused),
	};

	return cmocka_run_group_tests_name("elf/code_refs", tests, NULL, NULL);
}
