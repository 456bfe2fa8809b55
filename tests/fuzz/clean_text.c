/*
 * Names that others chose, made fit to be shown: what comes out is UTF-8 (RFC 3629) without a control character, what was that already
 * comes out as it was, and cleaning it again changes nothing.
 */
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* By the table of Unicode's chapter 3, "Well-Formed UTF-8 Byte Sequences"; 0: none begins here. */
static size_t sequence(const uint8_t *p, size_t len)
{
	static const struct {
		uint8_t first, last, low, high; /* of the first byte; of the second */
		size_t bytes;
	} rows[] = {
		{ 0x20, 0x7e, 0, 0, 1 },       { 0xc2, 0xc2, 0xa0, 0xbf, 2 },
		{ 0xc3, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (*p < rows[i].first || *p > rows[i].last)
			continue;
		if (len < rows[i].bytes ||
		    (rows[i].bytes > 1 && (p[1] < rows[i].low || p[1] > rows[i].high)))
			return 0;
		for (size_t k = 2; k < rows[i].bytes; k++)
			if (p[k] >> 6 != 2)
				return 0;
		return rows[i].bytes;
	}
	return 0;
}

static bool is_clean(const void *text, size_t len)
{
	const uint8_t *p = text;
	size_t n = 1;

	while (len && (n = sequence(p, len))) {
		p += n;
		len -= n;
	}
	return n != 0;
}

static bool is_same(const struct strbuf *b, const void *text, size_t len)
{
	return b->len == len && (!len || memcmp(b->s, text, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf once = { 0 }, twice = { 0 };

	strbuf_add_clean(&once, (const char *)data, size);
	strbuf_add_clean(&twice, once.s, once.len);
	if (!is_clean(once.s, once.len) || !is_same(&twice, once.s, once.len) ||
	    (is_clean(data, size) && !is_same(&once, data, size)) || once.len > 3 * size)
		abort();
	strbuf_free(&once);
	strbuf_free(&twice);
	return 0;
}
