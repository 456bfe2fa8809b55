#include "collect/kernel_functions.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kernel_functions_find(const char *const *names, struct kernel_function *ret, uint32_t n)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/kallsyms", "re");
	struct kernel_function *open = NULL;
	char line[512], *type;

	memset(ret, 0, n * sizeof(*ret));
	while (f && fgets(line, sizeof(line), f)) {
		uint64_t addr = strtoull(line, &type, 16);
		size_t len = strlen(type) > 3 ? strcspn(type + 3, "\t\n") : 0;

		/* They are in order. Some have several names. */
		if (open && addr > open->addr) {
			open->size = addr - open->addr;
			open = NULL;
		}
		for (uint32_t i = 0; i < n && len; i++)
			if (!ret[i].addr && strlen(names[i]) == len &&
			    memcmp(type + 3, names[i], len) == 0) {
				ret[i].addr = addr;
				open = &ret[i];
			}
	}
}
