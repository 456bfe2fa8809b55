#include "render/formats/source_line.h"

#include <string.h>

void source_line_add(struct strbuf *out, enum text_form form, const char *line)
{
	_cleanup_(strbuf_free) struct strbuf spaced = { 0 };
	uint32_t column = 0;

	/* Of a character that is wider, or has more bytes than columns, a tab behind it stands a little off. */
	for (const char *s = line; *s && spaced.len < 8 * SOURCE_LINE_COLUMNS; s++) {
		if (*s == '\t') {
			do
				strbuf_putc(&spaced, ' ');
			while (++column % 8);
		} else {
			strbuf_putc(&spaced, *s);
			column += (*s & 0xc0) != 0x80;
		}
	}
	text_add(out, form, spaced.s ? spaced.s : "", SOURCE_LINE_COLUMNS);
	out->oom |= spaced.oom;
}
