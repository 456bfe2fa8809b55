/*
 * The directory of what takes long to find out and can be found out again: unwind tables, the kernel's symbols.
 *
 * Usually /var/cache/memscope/rows, for others than root below XDG_CACHE_HOME or ~/.cache. It is used when it is ours
 * alone (mode 0700), and of the files in it those that are regular, ours, and that nobody else can write. A file
 * appears whole, under its name, or not at all.
 */
#ifndef MEMSCOPE_BASE_CACHE_DIR_H
#define MEMSCOPE_BASE_CACHE_DIR_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Another directory, for tests; it is made, with mode 0700. Empty: no cache. */
#define CACHE_DIR_ENV "MEMSCOPE_CACHE_DIR"

/* Files that are being written begin so. */
#define CACHE_DIR_TEMP ".new-"

/*
 * A descriptor of it. `path` NULL: the usual one. Makes what is missing of it. -EACCES, -EROFS and others: there will be
 * no cache, which is no reason to stop; -EPERM: it belongs to somebody else, or others may write it.
 */
int cache_dir_open(const char *path, struct err *e);

/* A descriptor of a file in it, and its length. -ENOENT: it is not there, or not as above. */
int cache_dir_file(int dir, const char *name, uint64_t *ret_bytes);

/* A file under another name, its contents part by part, and its name, if all went well (`r`). */
enum { CACHE_DIR_TEMP_BYTES = 64 };
int cache_dir_begin(int dir, char temp[CACHE_DIR_TEMP_BYTES]);
int cache_dir_end(int dir, const char *temp, int fd, int r, const char *name, bool keep_existing);

/* All at once. With `keep_existing` a file that is there already stays as it is. */
int cache_dir_write(int dir, const char *name, const void *data, size_t len, bool keep_existing);

#endif
