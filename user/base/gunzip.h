/*
 * Gzip read back, for files from anywhere.
 */
#ifndef MEMSCOPE_BASE_GUNZIP_H
#define MEMSCOPE_BASE_GUNZIP_H

#include "base/bytes.h"

static inline bool is_gzip(struct bytes b)
{
	return b.len >= 2 && b.data[0] == 0x1f && b.data[1] == 0x8b;
}

/*
 * All members of a gzip file, joined; free() the result. Memory grows with what comes out, never
 * with what a header claims. -EBADMSG: damaged or cut; -EFBIG: more than `max` bytes.
 */
int gunzip(struct bytes in, size_t max, void **ret_data, size_t *ret_len);

#endif
