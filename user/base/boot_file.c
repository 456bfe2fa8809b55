#include "base/boot_file.h"

#include "base/cache_dir.h"
#include "base/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER_BYTES = 64 };

/* The whole of it must be equal: a version of the layout, and the boot. */
static int header(char text[HEADER_BYTES])
{
	char boot[40];

	memset(text, 0, HEADER_BYTES);
	if (small_file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) <= 0)
		return -ENOENT;
	snprintf(text, HEADER_BYTES, "memscope boot 1 %s\n", boot);
	return 0;
}

int boot_file_open(const char *name, struct boot_file *ret_file)
{
	_cleanup_(closep) int dir = cache_dir_open(NULL, NULL), fd = -1;
	struct boot_file file = { 0 };
	char want[HEADER_BYTES];
	uint64_t bytes;

	*ret_file = file;
	if (dir < 0 || header(want) < 0)
		return -ENOENT;
	fd = cache_dir_file(dir, name, &bytes);
	if (fd < 0 || bytes <= HEADER_BYTES)
		return -ENOENT;
	file.mapped_len = (size_t)bytes;
	file.mapped = mmap(NULL, file.mapped_len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (file.mapped == MAP_FAILED)
		return -ENOENT;
	file.data = (char *)file.mapped + HEADER_BYTES;
	file.len = file.mapped_len - HEADER_BYTES;
	if (memcmp(file.mapped, want, HEADER_BYTES) != 0) {
		boot_file_close(&file);
		return -ENOENT;
	}
	*ret_file = file;
	return 0;
}

void boot_file_close(struct boot_file *file)
{
	if (file->mapped)
		munmap(file->mapped, file->mapped_len);
	*file = (struct boot_file){ 0 };
}

int boot_file_write(const char *name, const void *data, size_t len)
{
	_cleanup_(closep) int dir = cache_dir_open(NULL, NULL);
	_cleanup_(freep) char *all = malloc(HEADER_BYTES + len);
	int r = dir < 0 ? dir : !all ? -ENOMEM : header(all);

	if (r < 0)
		return r;
	memcpy(all + HEADER_BYTES, data, len);
	return cache_dir_write(dir, name, all, HEADER_BYTES + len, false);
}
