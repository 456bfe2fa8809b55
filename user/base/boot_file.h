/*
 * What was found out about the running kernel, kept until the next boot in cache_dir.h's directory: its symbols are at
 * the same addresses until then.
 */
#ifndef MEMSCOPE_BASE_BOOT_FILE_H
#define MEMSCOPE_BASE_BOOT_FILE_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

/* A mapping of a file; `data` is aligned for any type, and is writable memory of our own. */
struct boot_file {
	void *data;
	size_t len;
	void *mapped;
	size_t mapped_len;
};

/* -ENOENT: there is none, none of this boot, or no directory for it. Zero, or with this, it may be closed. */
int boot_file_open(const char *name, struct boot_file *ret_file);
void boot_file_close(struct boot_file *file);

struct boot_part {
	const void *data;
	size_t len;
};

/* All parts behind each other. Fails where there is no directory for it, which nobody needs to know. */
int boot_file_write(const char *name, const struct boot_part *parts, uint32_t n);

#endif
