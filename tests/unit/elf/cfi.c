#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "code_image.h"
#include "elf/cfi.h"

enum { ROWS_MAX = 64, F = CODE_TEXT + 0x100 };

struct row {
	uint64_t start, end;
	struct cfi_rules rules;
};

static struct code_image im;
static struct row rows[ROWS_MAX];
static int n_rows;
static struct cfi_counts counts;
static struct cfi_fde first;
static uint32_t n_fdes;

static int setup(void **state)
{
	code_init(&im);
	n_rows = 0;
	return 0;
}

static int keep(void *arg, uint64_t start, uint64_t end, const struct cfi_rules *rules)
{
	assert_true(n_rows < ROWS_MAX && start < end);
	if (n_rows)
		assert_true(rows[n_rows - 1].end <= start);
	rows[n_rows++] = (struct row){ start, end, *rules };
	return 0;
}

/* Opens the image and keeps all rows of all functions. */
static int open_from(unsigned from)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	struct err e = { 0 };
	int r;

	code_finish(&im);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, &e), 0);
	r = cfi_open(elf, from, &cfi, &e);
	if (r < 0)
		return r;
	counts = cfi_counts(cfi);
	n_fdes = cfi_n_fdes(cfi);
	first = cfi_fde_at(cfi, 0);
	for (uint32_t i = 0; i < n_fdes; i++)
		assert_int_equal(cfi_rows(cfi, i, keep, NULL), 0);
	return 0;
}

static void run(const void *insns, size_t len)
{
	put_usual_cie(&im);
	put_fde(&im, F, 0x100, insns, len);
	assert_int_equal(open_from(CFI_EH_FRAME), 0);
}

static void assert_cfa(int row, enum cfi_cfa_kind kind, int reg, int off, int off2)
{
	assert_true(row < n_rows);
	assert_int_equal(rows[row].rules.cfa_kind, kind);
	if (kind == CFI_CFA_BAD)
		return;
	assert_int_equal(rows[row].rules.cfa_reg, reg);
	assert_int_equal(rows[row].rules.cfa_off, off);
	assert_int_equal(rows[row].rules.cfa_off2, off2);
}

static void assert_reg(int row, int reg, enum cfi_reg_kind kind, int base, int off)
{
	assert_true(row < n_rows);
	assert_int_equal(rows[row].rules.regs[reg].kind, kind);
	if (kind != CFI_REG_AT && kind != CFI_REG_IS)
		return;
	assert_int_equal(rows[row].rules.regs[reg].base, base);
	assert_int_equal(rows[row].rules.regs[reg].off, off);
}

/* --- instructions --- */

static void a_push_makes_a_second_row(void **state)
{
	run(INSNS(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2));
	assert_int_equal(n_rows, 2);
	assert_int_equal(rows[0].start, F);
	assert_int_equal(rows[0].end, F + 1);
	assert_int_equal(rows[1].end, F + 0x100);
	assert_cfa(0, CFI_CFA_REG, 7, 8, 0);
	assert_reg(0, 6, CFI_REG_UNSET, 0, 0);
	assert_reg(0, 16, CFI_REG_AT, CFI_BASE_CFA, -8);
	assert_cfa(1, CFI_CFA_REG, 7, 16, 0);
	assert_reg(1, 6, CFI_REG_AT, CFI_BASE_CFA, -16);
}

static void locations_advance_in_every_width(void **state)
{
	run(INSNS(DW_CFA_advance_loc1, 0x10, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc2, 0x20,
		  0, DW_CFA_def_cfa_offset, 24, DW_CFA_advance_loc4, 0x30, 0, 0, 0,
		  DW_CFA_def_cfa_offset, 32, 0x1d, 0x40, 0, 0, 0, 0, 0, 0, 0, DW_CFA_def_cfa_offset,
		  40));
	assert_int_equal(n_rows, 5);
	assert_int_equal(rows[1].start, F + 0x10);
	assert_int_equal(rows[2].start, F + 0x30);
	assert_int_equal(rows[3].start, F + 0x60);
	assert_int_equal(rows[4].start, F + 0xa0);
}

static void set_loc_goes_to_an_address(void **state)
{
	put_usual_cie(&im);
	size_t begin = begin_entry(&im);

	put32(&im, (uint32_t)(im.frames_len - im.cie));
	put_pointer(&im, im.enc, F);
	put_pointer(&im, im.enc & 0x0f, 0x100);
	put8(&im, 0);
	put8(&im, DW_CFA_set_loc);
	put_pointer(&im, im.enc, F + 0x50);
	put(&im, INSNS(DW_CFA_def_cfa_offset, 16));
	end_entry(&im, begin);
	assert_int_equal(open_from(CFI_EH_FRAME), 0);
	assert_int_equal(n_rows, 2);
	assert_int_equal(rows[1].start, F + 0x50);
}

static void what_is_beyond_the_end_is_cut(void **state)
{
	run(INSNS(DW_CFA_advance_loc1, 0xff, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc1, 0xff,
		  DW_CFA_def_cfa_offset, 24));
	assert_int_equal(n_rows, 2);
	assert_int_equal(rows[1].start, F + 0xff);
	assert_int_equal(rows[1].end, F + 0x100);
}

static void remember_keeps_the_cfa_too(void **state)
{
	run(INSNS(DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 3, 3, DW_CFA_remember_state,
		  DW_CFA_advance_loc | 1, DW_CFA_def_cfa, 7, 8, DW_CFA_restore | 3,
		  DW_CFA_advance_loc | 1, DW_CFA_restore_state));
	assert_int_equal(n_rows, 3);
	assert_cfa(1, CFI_CFA_REG, 7, 8, 0);
	assert_reg(1, 3, CFI_REG_UNSET, 0, 0);
	assert_cfa(2, CFI_CFA_REG, 6, 16, 0);
	assert_reg(2, 3, CFI_REG_AT, CFI_BASE_CFA, -24);
}

static void restore_goes_back_to_the_cie(void **state)
{
	run(INSNS(DW_CFA_undefined, 16, DW_CFA_advance_loc | 1, DW_CFA_restore_extended, 16));
	assert_reg(0, 16, CFI_REG_UNDEFINED, 0, 0);
	assert_reg(1, 16, CFI_REG_AT, CFI_BASE_CFA, -8);
}

static void registers_are_found_in_every_way(void **state)
{
	run(INSNS(DW_CFA_offset_extended, 3, 2, DW_CFA_offset_extended_sf, 6, 0x7f, 0x2f, 12, 4,
		  DW_CFA_val_offset, 7, 0, DW_CFA_val_offset_sf, 13, 0x7e, DW_CFA_register, 16, 5,
		  DW_CFA_same_value, 14, DW_CFA_offset | 17, 5));
	assert_reg(0, 3, CFI_REG_AT, CFI_BASE_CFA, -16);
	assert_reg(0, 6, CFI_REG_AT, CFI_BASE_CFA, 8);
	assert_reg(0, 12, CFI_REG_AT, CFI_BASE_CFA, 32);
	assert_reg(0, 7, CFI_REG_IS, CFI_BASE_CFA, 0);
	assert_reg(0, 13, CFI_REG_IS, CFI_BASE_CFA, 16);
	assert_reg(0, 16, CFI_REG_IS, 5, 0);
	assert_reg(0, 14, CFI_REG_SAME, 0, 0);
	assert_int_equal(n_rows, 1);
}

static void cfas_are_given_in_every_way(void **state)
{
	run(INSNS(DW_CFA_def_cfa_sf, 6, 0x7e, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset_sf,
		  0x7d, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_register, 7, DW_CFA_GNU_args_size,
		  0x20, DW_CFA_GNU_window_save));
	assert_cfa(0, CFI_CFA_REG, 6, 16, 0);
	assert_cfa(1, CFI_CFA_REG, 6, 24, 0);
	assert_cfa(2, CFI_CFA_REG, 7, 24, 0);
}

/* --- expressions --- */

static void a_dereferenced_register_is_a_cfa(void **state)
{
	run(INSNS(DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref,
		  DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0x90, 1,
		  DW_OP_deref, DW_OP_plus_uconst, 56, DW_CFA_advance_loc | 1,
		  DW_CFA_def_cfa_expression, 5, DW_OP_bregx, 10, 8, DW_OP_lit2, DW_OP_minus));
	assert_cfa(0, CFI_CFA_DEREF, 6, -8, 0);
	assert_cfa(1, CFI_CFA_DEREF, 7, 144, 56);
	assert_cfa(2, CFI_CFA_REG, 10, 6, 0);
}

static void the_linkers_plt_is_known(void **state)
{
	run(INSNS(DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15,
		  DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus,
		  DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8,
		  DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit10, DW_OP_ge, DW_OP_lit3,
		  DW_OP_shl, DW_OP_plus));
	assert_cfa(0, CFI_CFA_PLT, 7, 8, 11);
	assert_cfa(1, CFI_CFA_PLT, 7, 8, 10);
}

static void other_expressions_are_no_rule_and_do_not_end_the_function(void **state)
{
	run(INSNS(DW_CFA_def_cfa_expression, 4, DW_OP_breg6, 0, DW_OP_deref, DW_OP_deref,
		  DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 4, DW_OP_breg6, 0, DW_OP_lit8,
		  DW_OP_mul, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 0,
		  DW_CFA_advance_loc | 1, DW_CFA_def_cfa, 7, 8));
	assert_int_equal(n_rows, 4);
	for (int i = 0; i < 3; i++) {
		assert_cfa(i, CFI_CFA_BAD, 0, 0, 0);
		assert_int_equal(rows[i].rules.why, CFI_WHY_EXPRESSION);
	}
	assert_cfa(3, CFI_CFA_REG, 7, 8, 0);
}

/* 2^33; a register that is not followed. */
static void another_register_keeps_the_offset_that_was_given(void **state)
{
	run(INSNS(DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x80, 0x20, DW_CFA_advance_loc | 1,
		  DW_CFA_def_cfa_register, 6, DW_CFA_advance_loc | 1, DW_CFA_def_cfa, 40, 16,
		  DW_CFA_advance_loc | 1, DW_CFA_def_cfa_register, 6));
	assert_int_equal(n_rows, 4);
	for (int i = 0; i < 3; i++)
		assert_cfa(i, CFI_CFA_BAD, 0, 0, 0);
	assert_cfa(3, CFI_CFA_REG, 6, 16, 0);
}

/* GCC's realigned stacks, and glibc's signal frames. */
static void expressions_say_where_registers_are(void **state)
{
	run(INSNS(DW_CFA_expression, 6, 2, DW_OP_breg6, 0, DW_CFA_expression, 3, 2, DW_OP_breg6,
		  0x78, DW_CFA_expression, 16, 3, DW_OP_breg7, 0xa8, 1, DW_CFA_val_expression, 7, 3,
		  DW_OP_breg7, 0xa0, 1, DW_CFA_val_expression, 12, 4, DW_OP_breg7, 0xa0, 1,
		  DW_OP_deref, DW_CFA_expression, 13, 3, DW_OP_lit8, DW_OP_minus, DW_OP_nop,
		  DW_CFA_expression, 14, 3, DW_OP_breg6, 0, DW_OP_deref));
	assert_reg(0, 6, CFI_REG_AT, 6, 0);
	assert_reg(0, 3, CFI_REG_AT, 6, -8);
	assert_reg(0, 16, CFI_REG_AT, 7, 168);
	assert_reg(0, 7, CFI_REG_IS, 7, 160);
	assert_reg(0, 12, CFI_REG_AT, 7, 160);
	assert_reg(0, 13, CFI_REG_AT, CFI_BASE_CFA, -8);
	assert_reg(0, 14, CFI_REG_BAD, 0, 0);
}

/* --- entries --- */

static void pointers_are_read_in_every_encoding(void **state)
{
	static const uint8_t encodings[] = {
		DW_EH_PE_absptr,
		DW_EH_PE_udata4,
		DW_EH_PE_udata8,
		DW_EH_PE_sdata4,
		DW_EH_PE_sdata8,
		DW_EH_PE_uleb128,
		DW_EH_PE_pcrel | DW_EH_PE_sdata4,
		DW_EH_PE_pcrel | DW_EH_PE_sdata8,
		DW_EH_PE_pcrel | DW_EH_PE_absptr,
		DW_EH_PE_textrel | DW_EH_PE_udata2,
		DW_EH_PE_datarel | DW_EH_PE_sdata4,
	};

	for (size_t i = 0; i < sizeof(encodings); i++) {
		setup(NULL);
		put_cie(&im, encodings[i], "zR", INSNS(DW_CFA_def_cfa, 7, 8));
		put_fde(&im, F, 0x80, INSNS(DW_CFA_nop));
		assert_int_equal(open_from(CFI_EH_FRAME), 0);
		assert_int_equal(rows[0].start, F);
		assert_int_equal(rows[0].end, F + 0x80);
	}
}

static void pointers_of_the_running_process_are_refused(void **state)
{
	put_cie(&im, DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4, "zR",
		INSNS(DW_CFA_def_cfa, 7, 8));
	put_fde(&im, F, 0x80, INSNS(DW_CFA_nop));
	put_usual_cie(&im);
	put_fde(&im, F + 0x80, 0x80, INSNS(DW_CFA_nop));
	assert_int_equal(open_from(CFI_EH_FRAME), 0);
	assert_int_equal(n_fdes, 1);
	assert_int_equal(counts.bad, 1);
	assert_int_equal(first.start, F + 0x80);
}

/* Letters and data; what the data say of pointers' encoding holds for the FDEs. */
static void put_augmented(const char *letters, const void *data, size_t len)
{
	size_t begin = begin_entry(&im);

	im.cie = begin - 4;
	im.enc = DW_EH_PE_pcrel | DW_EH_PE_sdata4;
	im.sized = true;
	put32(&im, 0);
	put8(&im, 1);
	put(&im, letters, strlen(letters) + 1);
	put(&im, INSNS(1, 0x78, 16));
	put8(&im, (uint8_t)len);
	put(&im, data, len);
	put(&im, INSNS(DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1));
	end_entry(&im, begin);
	put_fde(&im, F, 0x80, INSNS(DW_CFA_nop));
}

static void augmentations_are_read_letter_by_letter(void **state)
{
	put_augmented("zPLR", INSNS(0x9b, 1, 2, 3, 4, 0x1b, 0x1b));
	assert_int_equal(open_from(CFI_EH_FRAME), 0);
	assert_int_equal(first.start, F);
	assert_false(first.signal);
	assert_cfa(0, CFI_CFA_REG, 7, 8, 0);

	setup(NULL);
	put_augmented("zRSBG", INSNS(0x1b));
	assert_int_equal(open_from(CFI_EH_FRAME), 0);
	assert_true(first.signal);

	setup(NULL);
	put_augmented("zR?S", INSNS(0x1b, 7, 7));
	assert_int_equal(open_from(CFI_EH_FRAME), 0);
	assert_int_equal(first.start, F);
	assert_false(first.signal);
}

static void augmentations_without_a_length_are_refused(void **state)
{
	put_cie(&im, DW_EH_PE_absptr, "R", INSNS(DW_CFA_def_cfa, 7, 8));
	put_fde(&im, F, 0x80, INSNS(DW_CFA_nop));
	assert_int_equal(open_from(CFI_EH_FRAME), -ENOENT);
}

static void an_fde_before_its_cie_is_not_there(void **state)
{
	size_t begin = begin_entry(&im), id = im.frames_len;
	uint32_t back;

	im.enc = DW_EH_PE_pcrel | DW_EH_PE_sdata4;
	put32(&im, 0);
	put_pointer(&im, im.enc, F);
	put_pointer(&im, DW_EH_PE_udata4, 0x80);
	put8(&im, 0);
	end_entry(&im, begin);
	put_usual_cie(&im);
	back = (uint32_t)(id - im.cie);
	memcpy(im.frames + id, &back, 4);
	/* .eh_frame only points back. */
	assert_int_equal(open_from(CFI_EH_FRAME), -ENOENT);
}

/* CIE and FDE of .debug_frame in the 64-bit form of DWARF 4. */
static void put_debug_frame(uint8_t version, uint8_t address_size)
{
	size_t begin;

	im.frames_name = ".debug_frame";
	im.frames_flags = 0;
	put32(&im, UINT32_MAX);
	put64(&im, 0);
	begin = im.frames_len;
	put64(&im, UINT64_MAX);
	put8(&im, version);
	put8(&im, 0);
	if (version == 4)
		put(&im, INSNS(address_size, 0));
	put(&im, INSNS(1, 0x78, 16, DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1));
	memcpy(im.frames + begin - 8, &(uint64_t){ im.frames_len - begin }, 8);
	put32(&im, UINT32_MAX);
	put64(&im, 0);
	begin = im.frames_len;
	put64(&im, 0);
	put64(&im, F);
	put64(&im, 0x80);
	put(&im, INSNS(DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16));
	memcpy(im.frames + begin - 8, &(uint64_t){ im.frames_len - begin }, 8);
}

static void debug_frame_is_read_where_it_is_all_there_is(void **state)
{
	for (uint8_t version = 3; version <= 4; version++) {
		setup(NULL);
		put_debug_frame(version, 8);
		assert_int_equal(open_from(CFI_EH_FRAME), -ENOENT);
		assert_int_equal(open_from(CFI_EH_FRAME | CFI_DEBUG_FRAME), 0);
		assert_int_equal(n_rows, 2);
		assert_int_equal(rows[1].start, F + 4);
		assert_cfa(1, CFI_CFA_REG, 7, 16, 0);
	}
	setup(NULL);
	put_debug_frame(4, 4);
	assert_int_equal(open_from(CFI_DEBUG_FRAME), -ENOENT);
	setup(NULL);
	put_debug_frame(2, 8);
	assert_int_equal(open_from(CFI_DEBUG_FRAME), -ENOENT);
}

static void debug_frame_may_be_compressed(void **state)
{
	static uint8_t packed[CODE_FRAMES_LEN];
	Elf64_Chdr chdr = { .ch_addralign = 1 };
	uLongf len;

	for (int zstd = 0; zstd <= 1; zstd++) {
		setup(NULL);
		put_debug_frame(4, 8);
		chdr.ch_type = zstd ? 2 : ELFCOMPRESS_ZLIB;
		chdr.ch_size = im.frames_len;
		memcpy(packed, &chdr, sizeof(chdr));
		len = sizeof(packed) - sizeof(chdr);
		if (zstd)
			len = ZSTD_compress(packed + sizeof(chdr), len, im.frames, im.frames_len,
					    3);
		else
			assert_int_equal(
				compress(packed + sizeof(chdr), &len, im.frames, im.frames_len),
				Z_OK);
		im.packed = packed;
		im.packed_len = sizeof(chdr) + len;
		im.frames_flags = SHF_COMPRESSED;
		assert_int_equal(open_from(CFI_DEBUG_FRAME), 0);
		assert_int_equal(n_rows, 2);
		im.packed_len--;
		assert_int_equal(open_from(CFI_DEBUG_FRAME), -EBADMSG);
	}
}

static void without_sections_the_header_leads_there(void **state)
{
	put_usual_cie(&im);
	put_fde(&im, F, 0x80, INSNS(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16));
	put32(&im, 0);
	im.no_sections = true;
	assert_int_equal(open_from(CFI_EH_FRAME), 0);
	assert_int_equal(n_rows, 2);
	assert_int_equal(counts.bad, 0);
	assert_int_equal(counts.fdes, 1);
}

static void of_two_functions_at_one_place_the_first_counts(void **state)
{
	put_usual_cie(&im);
	put_fde(&im, F + 0x40, 0x20, INSNS(DW_CFA_nop));
	put_fde(&im, F, 0x50, INSNS(DW_CFA_def_cfa_offset, 16));
	put_fde(&im, F, 0x10, INSNS(DW_CFA_def_cfa_offset, 24));
	put_fde(&im, 0, 0x10, INSNS(DW_CFA_nop));
	put_fde(&im, CODE_TEXT + CODE_TEXT_LEN - 8, 0x10, INSNS(DW_CFA_nop));
	assert_int_equal(open_from(CFI_EH_FRAME), 0);
	assert_int_equal(n_fdes, 3);
	assert_int_equal(counts.overlaps, 2);
	assert_int_equal(counts.outside, 1);
	assert_cfa(0, CFI_CFA_REG, 7, 16, 0);
	assert_int_equal(rows[0].end, F + 0x40);
	assert_int_equal(rows[1].start, F + 0x40);
	assert_int_equal(rows[2].end, CODE_TEXT + CODE_TEXT_LEN);
}

/* --- damage --- */

static void a_damaged_program_ends_in_no_rule(void **state)
{
	run(INSNS(DW_CFA_advance_loc | 4, 0x3e));
	assert_int_equal(n_rows, 2);
	assert_cfa(0, CFI_CFA_REG, 7, 8, 0);
	assert_cfa(1, CFI_CFA_BAD, 0, 0, 0);
	assert_int_equal(rows[1].rules.why, CFI_WHY_PROGRAM);
	assert_int_equal(rows[1].start, F + 4);
	assert_int_equal(rows[1].end, F + 0x100);
}

static void wrong_programs_are_damage(void **state)
{
	static const struct {
		uint8_t insns[16], len;
	} wrong[] = {
		{ { DW_CFA_restore_state }, 1 },
		{ { DW_CFA_def_cfa_expression, 1, DW_OP_breg7, DW_CFA_def_cfa_offset, 8 }, 5 },
		{ { DW_CFA_def_cfa_expression, 99 }, 2 },
		{ { DW_CFA_set_loc, 0, 0xef, 0xff, 0xff }, 5 },
		{ { DW_CFA_offset_extended, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 },
		  12 },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setup(NULL);
		run(wrong[i].insns, wrong[i].len);
		assert_cfa(n_rows - 1, CFI_CFA_BAD, 0, 0, 0);
		assert_int_equal(rows[n_rows - 1].end, F + 0x100);
	}
}

static void remembering_has_an_end(void **state)
{
	uint8_t insns[CFI_REMEMBER_MAX + 1];

	memset(insns, DW_CFA_remember_state, sizeof(insns));
	run(insns, CFI_REMEMBER_MAX);
	assert_cfa(0, CFI_CFA_REG, 7, 8, 0);
	setup(NULL);
	run(insns, sizeof(insns));
	assert_cfa(0, CFI_CFA_BAD, 0, 0, 0);
}

/* Cut or changed at any byte: rows stay within the code, in order (see keep()). */
static void damage_anywhere_keeps_rows_in_order(void **state)
{
	size_t len;

	put_augmented("zPLR", INSNS(0x9b, 1, 2, 3, 4, 0x1b, 0x1b));
	put_fde(&im, F + 0x80, 0x80,
		INSNS(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78,
		      DW_OP_deref, DW_CFA_expression, 6, 2, DW_OP_breg6, 0, DW_CFA_advance_loc2, 4,
		      0, DW_CFA_remember_state, DW_CFA_restore_state));
	len = im.frames_len;
	for (size_t i = 0; i < len; i++) {
		uint8_t was = im.frames[i];

		for (int v = 0; v < 256; v += 5) {
			im.frames[i] = (uint8_t)v;
			n_rows = 0;
			if (open_from(CFI_EH_FRAME) == 0 && n_rows)
				assert_true(rows[0].start >= CODE_TEXT &&
					    rows[n_rows - 1].end <= CODE_TEXT + CODE_TEXT_LEN);
		}
		im.frames[i] = was;
	}
	for (im.frames_len = 0; im.frames_len < len; im.frames_len++) {
		n_rows = 0;
		open_from(CFI_EH_FRAME);
		assert_true(n_rows <= 5);
	}
}

static void other_machines_are_refused_with_a_sentence(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct cfi *cfi = NULL;
	struct err e = { 0 };

	im.machine = EM_RISCV;
	put_usual_cie(&im);
	code_finish(&im);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, &e), 0);
	assert_int_equal(cfi_open(elf, CFI_EH_FRAME, &cfi, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "x86-64"));
	assert_null(cfi);
}

static void functions_are_found_by_address(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	uint32_t i;

	put_usual_cie(&im);
	put_fde(&im, F + 0x40, 0x20, INSNS(DW_CFA_nop));
	put_fde(&im, F, 0x20, INSNS(DW_CFA_nop));
	code_finish(&im);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, NULL), 0);
	assert_int_equal(cfi_open(elf, CFI_EH_FRAME, &cfi, NULL), 0);
	assert_int_equal(cfi_find(cfi, F - 1, &i), -ENOENT);
	assert_int_equal(cfi_find(cfi, F + 0x20, &i), -ENOENT);
	assert_int_equal(cfi_find(cfi, F + 0x1f, &i), 0);
	assert_int_equal(i, 0);
	assert_int_equal(cfi_find(cfi, F + 0x40, &i), 0);
	assert_int_equal(i, 1);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		FACT(a_push_makes_a_second_row),
		FACT(locations_advance_in_every_width),
		FACT(set_loc_goes_to_an_address),
		FACT(what_is_beyond_the_end_is_cut),
		FACT(remember_keeps_the_cfa_too),
		FACT(restore_goes_back_to_the_cie),
		FACT(registers_are_found_in_every_way),
		FACT(cfas_are_given_in_every_way),
		FACT(a_dereferenced_register_is_a_cfa),
		FACT(the_linkers_plt_is_known),
		FACT(other_expressions_are_no_rule_and_do_not_end_the_function),
		FACT(another_register_keeps_the_offset_that_was_given),
		FACT(expressions_say_where_registers_are),
		FACT(pointers_are_read_in_every_encoding),
		FACT(pointers_of_the_running_process_are_refused),
		FACT(augmentations_are_read_letter_by_letter),
		FACT(augmentations_without_a_length_are_refused),
		FACT(an_fde_before_its_cie_is_not_there),
		FACT(debug_frame_is_read_where_it_is_all_there_is),
		FACT(debug_frame_may_be_compressed),
		FACT(without_sections_the_header_leads_there),
		FACT(of_two_functions_at_one_place_the_first_counts),
		FACT(a_damaged_program_ends_in_no_rule),
		FACT(wrong_programs_are_damage),
		FACT(remembering_has_an_end),
		FACT(damage_anywhere_keeps_rows_in_order),
		FACT(other_machines_are_refused_with_a_sentence),
		FACT(functions_are_found_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
