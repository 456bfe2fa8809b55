/*
 * An unwind table as bytes, and back with every number checked. For row_cache.c.
 */
#ifndef MEMSCOPE_UNWIND_ROW_FORMAT_H
#define MEMSCOPE_UNWIND_ROW_FORMAT_H

#include "unwind/rows.h"

struct row_digest {
	uint8_t bytes[16];
};

enum { ROW_FORMAT_BYTES_MAX = 512 << 20 };

/* free() the result. -ENOMEM; -EFBIG. */
int row_format_write(const struct unwind_table *table, const struct row_digest *digest,
		     uint8_t **ret_data, size_t *ret_len);

/* `digest` NULL: any. -EBADMSG: not usable; -ENOMEM. */
int row_format_read(const uint8_t *data, size_t len, const struct row_digest *digest,
		    struct unwind_table **ret_table);

#endif
