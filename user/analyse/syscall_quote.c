#include "analyse/syscall_quote.h"

#include <string.h>

static void char_put(struct strbuf *b, unsigned char c, unsigned char next)
{
	static const char escapes[] = "\"\\\n\t\r\v\f", letters[] = "\"\\ntrvf";
	const char *at = c ? strchr(escapes, c) : NULL;

	uint32_t digits = next >= '0' && next <= '7' ? 3 : c > 077 ? 3 : c > 07 ? 2 : 1;

	if (!at && c >= ' ' && c < 0x7f) {
		strbuf_putc(b, (char)c);
		return;
	}
	strbuf_putc(b, '\\');
	if (at)
		strbuf_putc(b, letters[at - escapes]);
	while (!at && digits--)
		strbuf_putc(b, (char)('0' + (c >> 3 * digits & 7)));
}

void escaped_put(struct strbuf *b, const char *s, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		uint32_t n = 0;

		while (i + n < len && s[i + n] >= ' ' && s[i + n] < 0x7f && s[i + n] != '"' &&
		       s[i + n] != '\\')
			n++;
		if (n) {
			strbuf_add(b, s + i, n);
			i += n - 1;
		} else {
			char_put(b, (unsigned char)s[i], i + 1 < len ? (unsigned char)s[i + 1] : 0);
		}
	}
}

void quoted_put(struct strbuf *b, const char *s, uint32_t len, bool more)
{
	strbuf_add(b, "\"", 1);
	escaped_put(b, s, len);
	strbuf_puts(b, more ? "\"..." : "\"");
}

void hex_put(struct strbuf *b, uint64_t value)
{
	if (value)
		strbuf_hex(b, value);
	else
		strbuf_puts(b, "NULL");
}
