/*
 * What is kept of the kernel's symbols: it is refused, or every answer is a name within it.
 */
#include "symbolize/kallsyms.h"
#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;
	_cleanup_(freep) uint8_t *copy = malloc(size + 1); /* aligned, as a file's mapping is */
	uint64_t addr = 0;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (kallsyms_parse(copy, size, &k) < 0)
		return 0;
	for (size_t i = 0; i + sizeof(addr) <= size; i += sizeof(addr)) {
		const char *name;

		memcpy(&addr, copy + i, sizeof(addr));
		name = kallsyms_find(k, addr);
		if (name && strlen(name) >= size)
			abort();
	}
	return 0;
}
