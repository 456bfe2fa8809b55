#include "base/boot_file.h"

#include "base/cache_dir.h"
#include "base/small_file.h"
#include "base/whole_file.h"

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

int boot_file_write(const char *name, const struct boot_part *parts, uint32_t n)
{
	_cleanup_(closep) int dir = cache_dir_open(NULL, NULL), fd = -1;
	char head[HEADER_BYTES], temp[CACHE_DIR_TEMP_BYTES];
	int r = dir < 0 ? dir : header(head);

	if (r == 0)
		r = fd = cache_dir_begin(dir, temp);
	if (r >= 0)
		r = whole_file_write(fd, head, sizeof(head));
	for (uint32_t i = 0; r >= 0 && i < n; i++)
		r = whole_file_write(fd, parts[i].data, parts[i].len);
	return fd < 0 ? r : cache_dir_end(dir, temp, TAKE_FD(fd), r, name, false);
}
