/*
 * Pieces of a line of text, taken from its front: what the readers of text formats share. A piece
 * that is not there takes nothing.
 */
#ifndef MEMSCOPE_IMPORT_SCAN_H
#define MEMSCOPE_IMPORT_SCAN_H

#include "base/bytes.h"

static inline bool scan_is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

static inline bool scan_is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static inline void scan_blanks(struct bytes *b)
{
	while (b->len && scan_is_blank(b->data[0]))
		bytes_skip(b, 1);
}

/* Without blanks at its ends. */
static inline struct bytes scan_trim(struct bytes b)
{
	while (b.len && scan_is_blank(b.data[b.len - 1]))
		b.len--;
	scan_blanks(&b);
	return b;
}

/* `text`, blanks before it passed over. */
static inline bool scan_text(struct bytes *b, const char *text)
{
	struct bytes at = *b;
	size_t len = strlen(text);

	scan_blanks(&at);
	if (at.len < len || memcmp(at.data, text, len) != 0)
		return false;
	bytes_skip(&at, len);
	*b = at;
	return true;
}

/* Up to the next blank or the end; blanks before it passed over. False: there is none. */
static inline bool scan_word(struct bytes *b, struct bytes *ret_word)
{
	struct bytes at = *b;
	size_t len = 0;

	scan_blanks(&at);
	while (len < at.len && !scan_is_blank(at.data[len]))
		len++;
	if (!len)
		return false;
	bytes_take(&at, len, ret_word);
	*b = at;
	return true;
}

/* Decimal, with a minus or without; false also for what does not fit. */
static inline bool scan_number(struct bytes *b, int64_t *ret_number)
{
	struct bytes at = *b;
	bool negative;
	int64_t n = 0;
	size_t i = 0;

	scan_blanks(&at);
	negative = at.len && at.data[0] == '-';
	if (negative)
		bytes_skip(&at, 1);
	for (; i < at.len && scan_is_digit(at.data[i]); i++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, at.data[i] - '0', &n))
			return false;
	if (!i)
		return false;
	bytes_skip(&at, i);
	*b = at;
	*ret_number = negative ? -n : n;
	return true;
}

/* Hexadecimal, with 0x before it or not. */
static inline bool scan_hex(struct bytes *b, uint64_t *ret_number)
{
	struct bytes at = *b;
	uint64_t n = 0;
	size_t i = 0;

	scan_blanks(&at);
	if (at.len > 2 && at.data[0] == '0' && (at.data[1] | 0x20) == 'x')
		bytes_skip(&at, 2);
	for (; i < at.len; i++) {
		uint8_t c = at.data[i], lower = c | 0x20;

		if (!scan_is_digit(c) && (lower < 'a' || lower > 'f'))
			break;
		if (n >> 60)
			return false;
		n = n << 4 | (scan_is_digit(c) ? (unsigned)(c - '0') : (unsigned)(lower - 'a') + 10u);
	}
	if (!i)
		return false;
	bytes_skip(&at, i);
	*b = at;
	*ret_number = n;
	return true;
}

#endif
