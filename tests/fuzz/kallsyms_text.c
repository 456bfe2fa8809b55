/*
 * /proc/kallsyms, in which names are those of whoever loaded a module or a BPF program: every function that is found at an address has a
 * name that stands in the text, and none is found where all addresses are hidden.
 */
#include "symbolize/kallsyms.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;
	_cleanup_(freep) char *text = strndup((const char *)data, size);
	static char path[64];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("kallsyms", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size ||
	    kallsyms_load(path, &k) < 0)
		return 0;
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		uint64_t addr = strtoull(line, NULL, 16);

		for (int i = 0; i < 2; i++) {
			const char *name = kallsyms_find(k, addr + i * KALLSYMS_FUNCTION_MAX);
			char first[8];

			/* A module's name is added in brackets: the begin of it is enough. */
			snprintf(first, sizeof(first), "%s", name ? name : "");
			first[strcspn(first, " [\t")] = '\0';
			if (name && strlen(text) == size && !strstr(text, first))
				abort();
		}
	}
	return 0;
}
