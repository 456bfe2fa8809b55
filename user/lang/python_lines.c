/*
 * Where a line of CPython's code begins, in the three forms that its tables have had.
 *
 *   to 3.9   Objects/lnotab_notes.txt: pairs  bytes:u8 lines:s8
 *   3.10     PEP 626, Objects/lnotab_notes.txt: the same, but a pair says of the bytes that it counts; -128: no
 *            line
 *   3.11 on  Objects/locations.md: entries of a first byte  1:1 code:4 length-1:3  and what its code has. The
 *            length is in units of 2 bytes
 */
#include "lang/python.h"

#include <errno.h>

enum {
	TABLE_MAX =
		1
		<< 20, /* bytes: a program makes it as long as it likes, and it is read from its begin */
	CODE_LONG = 14,
	CODE_NONE = 15,
	CODE_NO_COLUMNS = 13,
	CODE_ONE_LINE_0 = 10,
	NO_LINE_10 = -128,
	UNIT = 2,
};

static bool fill(struct python_table *t)
{
	uint64_t left = t->end - t->at;

	t->n = left < sizeof(t->part) ? (uint16_t)left : (uint16_t)sizeof(t->part);
	t->next = 0;
	if (!t->n)
		return false;
	if (!lang_read(t->mem, t->at, t->part, t->n)) {
		t->n = 0;
		t->lost = true;
		return false;
	}
	t->at += t->n;
	return true;
}

static bool next_byte(struct python_table *t, uint8_t *ret_byte)
{
	if (t->next == t->n && !fill(t))
		return false;
	*ret_byte = t->part[t->next++];
	return true;
}

static bool has_more(struct python_table *t)
{
	return t->next < t->n || fill(t);
}

static int64_t ended(const struct python_table *t, int64_t otherwise)
{
	return t->lost ? -EIO : otherwise;
}

static bool is_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX;
}

static int64_t line_lnotab(struct python_table *t, int64_t line, int64_t at)
{
	int64_t addr = 0;
	uint8_t bytes, lines;

	while (has_more(t)) {
		if (!next_byte(t, &bytes) || !next_byte(t, &lines))
			return ended(t, -EBADMSG);
		addr += bytes;
		if (addr > at)
			break;
		line += (int8_t)lines;
	}
	return ended(t, is_line(line) ? line : 0);
}

static int64_t line_3_10(struct python_table *t, int64_t line, int64_t at)
{
	int64_t addr = 0;
	uint8_t bytes, lines;

	while (has_more(t)) {
		if (!next_byte(t, &bytes) || !next_byte(t, &lines))
			return ended(t, -EBADMSG);
		addr += bytes;
		if ((int8_t)lines != NO_LINE_10)
			line += (int8_t)lines;
		if (addr > at)
			return (int8_t)lines != NO_LINE_10 && is_line(line) ? line : 0;
	}
	return ended(t, -EBADMSG);
}

/* Six bits a byte, the lowest first; bit 6: more follow. The lowest bit of a signed one is its sign. */
static bool varint(struct python_table *t, uint32_t *ret_value)
{
	uint32_t value = 0;
	uint8_t byte;

	for (unsigned shift = 0; shift < 36; shift += 6) {
		if (!next_byte(t, &byte) || byte & 0x80)
			return false;
		if (shift < 32)
			value |= (uint32_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static bool svarint(struct python_table *t, int64_t *ret_value)
{
	uint32_t value;

	if (!varint(t, &value))
		return false;
	*ret_value = value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
	return true;
}

/* What a code has behind its first byte; `ret_lines` is the distance from the line before. */
static bool location(struct python_table *t, unsigned code, int64_t *ret_lines)
{
	uint32_t skipped;
	uint8_t byte;

	*ret_lines = 0;
	switch (code) {
	case CODE_NONE:
		return true;
	case CODE_LONG:
		return svarint(t, ret_lines) && varint(t, &skipped) && varint(t, &skipped) &&
		       varint(t, &skipped);
	case CODE_NO_COLUMNS:
		return svarint(t, ret_lines);
	case CODE_ONE_LINE_0:
	case CODE_ONE_LINE_0 + 1:
	case CODE_ONE_LINE_0 + 2:
		*ret_lines = (int64_t)code - CODE_ONE_LINE_0;
		return next_byte(t, &byte) && next_byte(t, &byte);
	default:
		return next_byte(t, &byte);
	}
}

static int64_t line_locations(struct python_table *t, int64_t line, int64_t at)
{
	int64_t addr = 0, lines;
	uint8_t first;

	while (has_more(t)) {
		unsigned code;

		if (!next_byte(t, &first))
			return ended(t, -EBADMSG);
		code = first >> 3 & 15;
		if (!(first & 0x80) || !location(t, code, &lines))
			return ended(t, -EBADMSG);
		line += lines;
		addr += UNIT * (int64_t)((first & 7) + 1);
		if (addr > at)
			return code != CODE_NONE && is_line(line) ? line : 0;
	}
	return ended(t, -EBADMSG);
}

int64_t python_line(enum python_lines kind, struct python_table *t, uint32_t first_line, int64_t at)
{
	if (t->end < t->at || t->end - t->at > TABLE_MAX)
		return -EBADMSG;
	if (at < 0)
		return is_line(first_line) ? first_line : 0;
	switch (kind) {
	case PYTHON_LNOTAB:
		return line_lnotab(t, first_line, at);
	case PYTHON_LINES_10:
		return line_3_10(t, first_line, at);
	default:
		return line_locations(t, first_line, at);
	}
}
