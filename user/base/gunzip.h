/*
 * Gzip read back, for files from anywhere.
 */
#ifndef MEMSCOPE_BASE_GUNZIP_H
#define MEMSCOPE_BASE_GUNZIP_H

#include "base/bytes.h"
#include "base/err.h"

static inline bool is_gzip(struct bytes b)
{
	return b.len >= 2 && b.data[0] == 0x1f && b.data[1] == 0x8b;
}

/*
 * All members of a gzip file, joined; free() the result. Memory grows with what comes out, never
 * with what a header claims. -EBADMSG: damaged or cut; -EFBIG: more than `max` bytes.
 */
int gunzip(struct bytes in, size_t max, void **ret_data, size_t *ret_len);

/*
 * The same for a whole file that someone named: as much as its size makes believable (256 times
 * and 16 MiB, at most 1 GiB; what we read compresses 2 to 30 times), with a sentence about `name`.
 */
int gunzip_file(struct bytes in, const char *name, void **ret_data, size_t *ret_len,
		struct err *e);

#endif
