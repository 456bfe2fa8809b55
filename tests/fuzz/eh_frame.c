/*
 * .eh_frame of a hostile file, as an image or (first byte) as the bytes of the section alone in one
 * that is well-formed: rows stay within the code, a table has a row for every address.
 */
#include "elf/cfi.h"
#include "unit/elf/code_image.h"
#include "unwind/rows.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t last_end;

static int check_row(void *arg, uint64_t start, uint64_t end, const struct cfi_rules *rules)
{
	const struct cfi_fde *fde = arg;

	if (start >= end || start < last_end || start < fde->start || end > fde->end)
		abort();
	if (rules->cfa_kind > CFI_CFA_PLT || (rules->cfa_kind && rules->cfa_reg >= CFI_N_REGS))
		abort();
	last_end = end;
	return 0;
}

static void check_cfi(struct elf_file *elf)
{
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;

	if (cfi_open(elf, CFI_EH_FRAME | CFI_DEBUG_FRAME, &cfi, NULL) < 0)
		return;
	last_end = 0;
	for (uint32_t i = 0; i < cfi_n_fdes(cfi); i++) {
		struct cfi_fde fde = cfi_fde_at(cfi, i);

		if (cfi_rows(cfi, i, check_row, &fde) != 0 || last_end != fde.end)
			abort();
	}
}

static void check_table(struct elf_file *elf)
{
	_cleanup_(unwind_table_freep) struct unwind_table *t = NULL;

	if (unwind_table_build(elf, &t, NULL) < 0)
		return;
	if (t->dir[0] != 0 || t->dir[t->n_pages] != t->n_rows || t->dir[1] < 1 ||
	    t->rows[0] >> MS_ROW_RULE_BITS)
		abort();
	for (uint32_t p = 0; p < t->n_pages; p++)
		for (uint32_t i = t->dir[p]; i < t->dir[p + 1]; i++)
			if ((t->rows[i] & MS_ROW_RULE_MASK) >= t->n_rules ||
			    (i > t->dir[p] && t->rows[i] <= t->rows[i - 1]))
				abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	static struct code_image im;

	if (size && data[0] != 0x7f) {
		size_t n = size - 1 < CODE_FRAMES_LEN ? size - 1 : CODE_FRAMES_LEN;

		code_init(&im);
		im.machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
		im.no_sections = data[0] & 2;
		if (data[0] & 4)
			im.frames_name = ".debug_frame";
		if (data[0] & 8)
			im.frames_flags = SHF_COMPRESSED;
		if (data[0] & 16)
			code_sym(&im, "_start", CODE_TEXT + 0x100, 0x100);
		put(&im, data + 1, n);
		code_finish(&im);
		data = im.bytes;
		size = im.len;
	}
	if (elf_file_open_memory(data, size, "input", &elf, NULL) < 0)
		return 0;
	check_cfi(elf);
	check_table(elf);
	return 0;
}
