/* What the child that reads debug info says, should the debug info have taken it over. */
#include "elf/dwarf.h"
#include "elf/dwarf_makes.h"
#include "elf/dwarf_members.h"
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

/* … and as layouts and variables: whatever is indexed by is there. */
static void as_members(const uint8_t *data, size_t size)
{
	_cleanup_(dwarf_members_freep) struct dwarf_members *m = NULL;
	char *text = malloc(size + 1);
	const struct dwarf_layout *layouts;
	const struct dwarf_variable *variables;
	uint32_t n_layouts, n;

	memcpy(text, data, size);
	if (dwarf_members_parse(text, size, &m) < 0)
		return;
	layouts = dwarf_members_layouts(m, &n_layouts);
	for (uint32_t i = 1; i < n_layouts; i++) {
		if (strlen(layouts[i].name) > size || layouts[i].head >= n_layouts)
			abort();
		for (uint32_t k = 0; k < layouts[i].n; k++)
			if (layouts[i].slots[k].layout >= n_layouts ||
			    layouts[i].slots[k].off + 8ULL > layouts[i].bytes)
				abort();
	}
	variables = dwarf_members_variables(m, &n);
	for (uint32_t i = 0; i < n; i++)
		if (variables[i].layout >= n_layouts)
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
	as_members(data, size);
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
