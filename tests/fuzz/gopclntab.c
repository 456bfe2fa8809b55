/*
 * Go's table of a hostile file: the bytes of its section in a well-formed image. Functions are in
 * order and their rows within them.
 */
#include "elf/gopclntab.h"
#include "unit/elf/code_image.h"
#include "unwind/rows.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t last_end;

static int check_row(void *arg, uint64_t start, uint64_t end, int32_t delta)
{
	const struct go_func *f = arg;

	(void)delta;
	if (start >= end || start < last_end || start < f->start || end > f->end)
		abort();
	last_end = end;
	return 0;
}

static void check_functions(const struct gopclntab *tab)
{
	last_end = 0;
	for (uint32_t i = 0; i < gopclntab_n_funcs(tab); i++) {
		struct go_func f = gopclntab_func(tab, i);
		uint32_t found;

		if (f.start > f.end || strlen(f.name) > CODE_CAP)
			abort();
		if (gopclntab_rows(tab, i, check_row, &f) != 0)
			abort();
		if (i < 16 && (gopclntab_find_name(tab, f.name, &found) < 0 || found > i))
			abort();
		gopclntab_args(tab, i);
		if (f.start < f.end && (gopclntab_find(tab, f.start, &found) < 0 || found < i))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	static struct code_image im;

	if (!size)
		return 0;
	code_init(&im);
	im.machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
	im.no_sections = data[0] & 2;
	im.frames_name = ".gopclntab";
	put(&im, data + 1, size - 1 < CODE_FRAMES_LEN ? size - 1 : CODE_FRAMES_LEN);
	code_finish(&im);
	if (elf_file_open_memory(im.bytes, im.len, "input", &elf, NULL) < 0)
		abort();
	if (gopclntab_open(elf, &tab, NULL) == 0)
		check_functions(tab);
	if (unwind_table_build(elf, &table, NULL) == 0 &&
	    table->dir[table->n_pages] != table->n_rows)
		abort();
	return 0;
}
