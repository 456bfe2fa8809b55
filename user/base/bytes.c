#include "base/bytes.h"

int bytes_uleb(struct bytes *b, uint64_t *ret_value)
{
	uint64_t value = 0;
	unsigned shift = 0;
	size_t i = 0;
	uint8_t byte;

	do {
		if (i == b->len)
			return -EBADMSG;
		byte = b->data[i++];
		if (shift < 64) {
			if (shift == 63 && (byte & 0x7e))
				return -EBADMSG;
			value |= (uint64_t)(byte & 0x7f) << shift;
		} else if (byte & 0x7f) {
			return -EBADMSG;
		}
		shift += shift < 64 ? 7 : 0;
	} while (byte & 0x80);
	*ret_value = value;
	return bytes_skip(b, i);
}

int bytes_sleb(struct bytes *b, int64_t *ret_value)
{
	uint64_t value = 0;
	unsigned shift = 0;
	size_t i = 0;
	uint8_t byte;

	do {
		if (i == b->len)
			return -EBADMSG;
		byte = b->data[i++];
		if (shift < 63) {
			value |= (uint64_t)(byte & 0x7f) << shift;
		} else {
			/* From bit 63 on there is only sign: all ones or all zeros. */
			uint64_t sign = shift == 63 ? byte & 1 : value >> 63;

			if ((byte & 0x7f) != (sign ? 0x7f : 0))
				return -EBADMSG;
			value |= sign << 63;
		}
		shift += shift < 64 ? 7 : 0;
	} while (byte & 0x80);
	if (shift < 64 && (byte & 0x40))
		value |= ~0ULL << shift;
	*ret_value = (int64_t)value;
	return bytes_skip(b, i);
}

int bytes_cstr(struct bytes *b, struct bytes *ret_str)
{
	const uint8_t *nul = b->len ? memchr(b->data, 0, b->len) : NULL;

	if (!nul)
		return -EBADMSG;
	*ret_str = bytes_of(b->data, (size_t)(nul - b->data));
	return bytes_skip(b, ret_str->len + 1);
}

bool bytes_line(struct bytes *b, struct bytes *ret_line)
{
	const uint8_t *nl;
	struct bytes line;

	if (!b->len)
		return false;
	nl = memchr(b->data, '\n', b->len);
	line = bytes_of(b->data, nl ? (size_t)(nl - b->data) : b->len);
	bytes_skip(b, line.len + (nl ? 1 : 0));
	if (line.len && line.data[line.len - 1] == '\r')
		line.len--;
	*ret_line = line;
	return true;
}
