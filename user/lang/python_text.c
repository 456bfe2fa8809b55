/*
 * CPython's strings (Include/cpython/unicodeobject.h): a head with the length in code points and a word of state,
 * then 1, 2 or 4 bytes for each. What fits 7 bits has a shorter head.
 *
 *   state: interned:2 kind:3 compact:1 ascii:1 …   interned has 8 or 16 bits in some builds from 3.13 on
 */
#include "lang/python.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH_MAX = 1 << 24, AT_ONCE = 256 };

struct str {
	uint64_t length;
	uint8_t kind;
	bool compact, ascii;
};

/* In one layout alone it is not nothing. */
static bool read_state(uint32_t state, struct str *ret_str)
{
	static const uint8_t shifts[] = { 2, 8, 16 };

	for (size_t i = 0; i < sizeof(shifts); i++) {
		uint32_t s = state >> shifts[i];

		if (!(s & 7))
			continue;
		ret_str->kind = s & 7;
		ret_str->compact = s >> 3 & 1;
		ret_str->ascii = s >> 4 & 1;
		return (ret_str->kind == 1 || ret_str->kind == 2 || ret_str->kind == 4) &&
		       (!ret_str->ascii || ret_str->kind == 1);
	}
	return false;
}

static uint32_t point_at(const uint8_t *bytes, size_t i, unsigned kind)
{
	uint32_t c = 0;

	memcpy(&c, bytes + i * kind, kind);
	return c;
}

static bool is_harmless(uint32_t c)
{
	/* Controls, surrogates, marks of direction and of lines, and what is not a character. */
	return !(c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) ||
		 (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
		 (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c & 0xfffe) == 0xfffe ||
		 c > 0x10ffff);
}

/* One code point as text, in at most 10 bytes. */
static size_t encode(uint32_t c, char out[16])
{
	if (!is_harmless(c))
		return (size_t)snprintf(out, 16,
					c < 0x100     ? "\\x%02x"
					: c < 0x10000 ? "\\u%04x"
						      : "\\U%08x",
					c);
	return utf8_encode(c, out);
}

/* Appends; false: there is no room left. */
static bool append(char *text, size_t room, size_t *len, uint32_t c)
{
	char one[16];
	size_t n = encode(c, one);

	if (*len + n + 1 > room)
		return false;
	memcpy(text + *len, one, n);
	*len += n;
	text[*len] = '\0';
	return true;
}

int python_text(const struct lang_runtime *rt, const struct lang_memory *mem, uint64_t at,
		char *ret_text, size_t room, bool *ret_cut)
{
	uint8_t buf[128 + AT_ONCE];
	struct str s = { 0 };
	size_t have = rt->str_compact + AT_ONCE, len = 0, data, n;
	const uint8_t *part;
	uint64_t done = 0;
	uint32_t state;

	/* Most are shorter than what is read with the head. What lies at the end of a mapping is not. */
	if (at % 8 || !at)
		return -EBADMSG;
	if (!lang_read(mem, at, buf, have)) {
		have = rt->str_compact;
		if (!lang_read(mem, at, buf, have)) {
			have = rt->str_ascii;
			if (!lang_read(mem, at, buf, have))
				return -EIO;
		}
	}
	memcpy(&s.length, buf + rt->object_head, sizeof(s.length));
	memcpy(&state, buf + rt->object_head + 16, sizeof(state));
	if (!read_state(state, &s) || !s.compact || s.length > LENGTH_MAX)
		return -EBADMSG;
	data = s.ascii ? rt->str_ascii : rt->str_compact;
	part = buf + data;
	n = have > data ? (have - data) / s.kind : 0;
	if (n > s.length)
		n = (size_t)s.length;
	ret_text[0] = '\0';
	*ret_cut = false;
	for (;;) {
		for (size_t k = 0; k < n; k++) {
			uint32_t c = point_at(part, k, s.kind);

			if (s.ascii && c > 0x7f)
				return -EBADMSG;
			if (!append(ret_text, room, &len, c)) {
				*ret_cut = true;
				return 0;
			}
		}
		done += n;
		if (done == s.length)
			return 0;
		part = buf;
		n = sizeof(buf) / s.kind;
		if (n > s.length - done)
			n = (size_t)(s.length - done);
		if (!lang_read(mem, at + data + done * s.kind, buf, n * s.kind))
			return -EIO;
	}
}
