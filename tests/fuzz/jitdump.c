/* A jitdump, written by the target. */
#include "symbolize/jitdump.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t asked[] = { 0, 1, 0x1000, 0x1008, 0x2000, UINT64_MAX };
	const uint32_t n = sizeof(asked) / sizeof(asked[0]);
	static int fd = -1;
	struct jitdump *j;
	struct jit_place p;

	if (fd < 0)
		fd = memfd_create("jit.dump", MFD_CLOEXEC);
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		return 0;
	if (jitdump_read(fd, asked, n, &j) < 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (jitdump_find(j, asked[i], &p) == 0 && (!p.name || (p.file && !*p.file)))
			abort();
	jitdump_free(j);
	return 0;
}
