/* What the child that reads debug info says, should the debug info have taken it over. */
#include "elf/dwarf.h"
#include "elf/dwarf_makes.h"
#include "elf/dwarf_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same bytes as types of calls. */
static void as_types(const uint8_t *data, size_t size)
{
	_cleanup_(dwarf_types_freep) struct dwarf_types *types = NULL;
	char *text = malloc(size + 1);
	const struct dwarf_type *rows;
	uint32_t n;

	memcpy(text, data, size);
	if (dwarf_types_parse(text, size, &types) < 0)
		return;
	rows = dwarf_types_list(types, &n);
	for (uint32_t i = 0; i < n; i++)
		if (strlen(rows[i].name) > size || !rows[i].bytes)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(dwarf_lines_freep) struct dwarf_lines *lines = NULL;
	const struct dwarf_frame *frames;
	char *text = malloc(size + 1);
	size_t used = 0;
	int32_t code;

	as_types(data, size);
	memcpy(text, data, size);
	if (dwarf_answers_parse(text, size, &lines, &code) < 0)
		return 0;
	for (uint64_t vaddr = 0; vaddr < 16; vaddr++) {
		uint32_t n = dwarf_lines_find(lines, vaddr, &frames);

		for (uint32_t i = 0; i < n; i++) {
			used += frames[i].function ? strlen(frames[i].function) : 0;
			used += frames[i].file ? strlen(frames[i].file) : 0;
		}
	}
	if (used > 16ul * DWARF_FRAMES_MAX * 2 * size)
		abort();
	return 0;
}
