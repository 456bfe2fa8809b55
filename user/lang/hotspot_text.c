/*
 * HotSpot's Symbols (oops/symbol.hpp): a length in bytes, and modified UTF-8: code points from 0x10000 on are two
 * surrogates of three bytes each, and 0 is two bytes.
 */
#include "lang/hotspot.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the character at p, `*ret_c`; 0: it is none. */
static size_t char_at(const uint8_t *p, size_t n, uint32_t *ret_c)
{
	if (p[0] < 0x80) {
		*ret_c = p[0];
		return 1;
	}
	if (p[0] >> 5 == 6 && n >= 2 && p[1] >> 6 == 2) {
		*ret_c = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
		return *ret_c >= 0x80 ? 2 : 0;
	}
	if (p[0] >> 4 == 14 && n >= 3 && p[1] >> 6 == 2 && p[2] >> 6 == 2) {
		*ret_c = (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
		return *ret_c >= 0x800 ? 3 : 0;
	}
	return 0;
}

static bool is_text(uint32_t c)
{
	return !(c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) ||
		 (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
		 (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c & 0xfffe) == 0xfffe);
}

/* Appends `n` bytes as text. false: there is no room left. */
static bool append(char *text, size_t room, const uint8_t *bytes, size_t n, bool slashes)
{
	size_t len = 0;

	for (size_t i = 0, used; i < n; i += used) {
		char one[8];
		uint32_t c = 0;
		size_t bytes_of;

		used = char_at(bytes + i, n - i, &c);
		if (used && is_text(c)) {
			bytes_of = utf8_encode(slashes && c == '/' ? '.' : c, one);
		} else {
			used = 1;
			bytes_of = (size_t)snprintf(one, sizeof(one), "\\x%02x", bytes[i]);
		}
		if (len + bytes_of + 1 > room)
			return false;
		memcpy(text + len, one, bytes_of);
		len += bytes_of;
		text[len] = '\0';
	}
	return true;
}

int hotspot_symbol(const struct hotspot_rt *rt, const struct lang_memory *mem, uint64_t at,
		   bool slashes, char *ret_text, size_t room, bool *ret_cut)
{
	uint8_t body[LANG_FILE_MAX];
	uint16_t n;

	if (!at || at % 8 || !room)
		return -EBADMSG;
	if (!lang_read(mem, at + rt->symbol_length, &n, sizeof(n)))
		return -EIO;
	if (!n)
		return -EBADMSG;
	*ret_cut = n > sizeof(body);
	if (*ret_cut)
		n = sizeof(body);
	if (!lang_read(mem, at + rt->symbol_body, body, n))
		return -EIO;
	ret_text[0] = '\0';
	if (!append(ret_text, room, body, n, slashes))
		*ret_cut = true;
	return 0;
}
