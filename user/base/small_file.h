/* Files of /proc and /sys, which have no length of their own: as one string. */
#ifndef MEMSCOPE_BASE_SMALL_FILE_H
#define MEMSCOPE_BASE_SMALL_FILE_H

#include <stddef.h>

/*
 * The first `size` - 1 bytes of a file, without the newline at its end. `dir`: what `path` is relative to, or
 * AT_FDCWD. Returns the length, or -errno, and `buf` is empty then.
 */
int small_file_read(int dir, const char *path, char *buf, size_t size);

#endif
