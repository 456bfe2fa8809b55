/* What the child that reads debug info says, should the debug info have taken it over. */
#include "elf/dwarf.h"
#include "elf/dwarf_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(dwarf_lines_freep) struct dwarf_lines *lines = NULL;
	const struct dwarf_frame *frames;
	char *text = malloc(size + 1);
	size_t used = 0;
	int32_t code;

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
