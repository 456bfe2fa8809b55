/* Links to debug files, and compressed parts: every section unpacked, the input its own debug file. */
#include "elf/debug_link.h"
#include "elf/elf_syms.h"
#include "elf/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int open_path(void *ctx, const char *path, bool host)
{
	/* Whatever is opened has a place below a root, and no way up in it that we made. */
	if (path[0] != '/')
		abort();
	return host ? -ENOENT : dup(*(int *)ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL, *mini = NULL;
	_cleanup_(debug_file_freep) struct debug_file *debug = NULL, *alt = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	_cleanup_(freep) uint8_t *bytes = NULL;
	const struct elf_section *secs;
	static int fd = -1;
	uint32_t n = 0;

	if (fd < 0)
		fd = memfd_create("input", MFD_CLOEXEC);
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size ||
	    elf_file_open_debug(fd, "/srv/app", &elf, NULL) < 0)
		return 0;
	debug_link_find(elf, open_path, &fd, &debug);
	debug_link_alt(elf, "/srv/app", open_path, &fd, &alt);
	/* `mini` borrows `bytes`, which is declared later and so freed first: close it here. */
	if (debug_data_open(elf, &bytes, &mini, NULL) == 0)
		elf_syms_load(mini, &syms, NULL);
	elf_file_close(TAKE_PTR(mini));
	if (elf_file_sections(elf, &secs, &n, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < n && i < 32; i++) {
		_cleanup_(freep) uint8_t *out = NULL;
		uint64_t len;

		if (elf_section_unpack(elf, &secs[i], 1 << 20, &out, &len, NULL) == 0 && out[len])
			abort();
	}
	return 0;
}
