/*
 * A bounded view of untrusted bytes. Reading takes from the front; a read past the end is
 * -EBADMSG and takes nothing. Integers are little-endian, as on every machine we run on.
 */
#ifndef MEMSCOPE_BASE_BYTES_H
#define MEMSCOPE_BASE_BYTES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
	const uint8_t *data;
	size_t len;
};

static inline struct bytes bytes_of(const void *data, size_t len)
{
	return (struct bytes){ .data = (const uint8_t *)data, .len = len };
}

/* The next `len` bytes as a view of their own. */
static inline int bytes_take(struct bytes *b, size_t len, struct bytes *ret_part)
{
	if (len > b->len)
		return -EBADMSG;
	*ret_part = bytes_of(b->data, len);
	b->data += len;
	b->len -= len;
	return 0;
}

static inline int bytes_skip(struct bytes *b, size_t len)
{
	struct bytes part;

	return bytes_take(b, len, &part);
}

static inline int bytes_copy(struct bytes *b, void *ret_data, size_t len)
{
	struct bytes part;

	if (bytes_take(b, len, &part) < 0)
		return -EBADMSG;
	memcpy(ret_data, part.data, len);
	return 0;
}

static inline int bytes_u8(struct bytes *b, uint8_t *ret_value)
{
	return bytes_copy(b, ret_value, sizeof(*ret_value));
}

static inline int bytes_u16(struct bytes *b, uint16_t *ret_value)
{
	return bytes_copy(b, ret_value, sizeof(*ret_value));
}

static inline int bytes_u32(struct bytes *b, uint32_t *ret_value)
{
	return bytes_copy(b, ret_value, sizeof(*ret_value));
}

static inline int bytes_u64(struct bytes *b, uint64_t *ret_value)
{
	return bytes_copy(b, ret_value, sizeof(*ret_value));
}

/*
 * LEB128 (DWARF 5 §7.6; protobuf's varint is the unsigned form). Padding with redundant bytes is
 * allowed, a value that does not fit 64 bits is -EBADMSG.
 */
int bytes_uleb(struct bytes *b, uint64_t *ret_value);
int bytes_sleb(struct bytes *b, int64_t *ret_value);

/* A NUL-terminated string; its view has no NUL, its data does. -EBADMSG when no NUL follows. */
int bytes_cstr(struct bytes *b, struct bytes *ret_str);

/* The next line without its newline (and without a CR before it). False at the end. */
bool bytes_line(struct bytes *b, struct bytes *ret_line);

#endif
