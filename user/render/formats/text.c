#include "render/formats/text.h"

#include "base/utf8.h"

#include <string.h>

enum { REPLACEMENT = 0xfffd };

/* The code point that starts at `s` and its length; REPLACEMENT and 1 for a byte out of place. */
static uint32_t decode(const unsigned char *s, unsigned *ret_len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned len = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	uint32_t c = len == 1 ? s[0] : s[0] & (0xffu >> (len + 1));

	*ret_len = 1;
	if (s[0] >= 0x80 && (s[0] < 0xc2 || s[0] > 0xf4))
		return REPLACEMENT;
	for (unsigned i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80) /* also stops at the terminating 0 */
			return REPLACEMENT;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return REPLACEMENT;
	*ret_len = len;
	return c;
}

static bool harmful(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || /* control                */
	       (c & 0xfffe) == 0xfffe ||              /* not characters         */
	       (c >= 0xfdd0 && c <= 0xfdef) || c == 0x2028 ||
	       c == 0x2029 ||                  /* line ends in scripts   */
	       (c >= 0x202a && c <= 0x202e) || /* text direction         */
	       (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x61c;
}

/* The next safe code point of `*s`, which moves on; 0 at the end. */
static uint32_t next(const char **s)
{
	unsigned len;
	uint32_t c;

	if (!**s)
		return 0;
	c = decode((const unsigned char *)*s, &len);
	*s += len;
	return harmful(c) ? REPLACEMENT : c;
}

/* East Asian scripts and pictographs; near enough for cutting labels. */
static unsigned width(uint32_t c)
{
	return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
			       (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
			       (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
			       (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd)
		       ? 2
		       : 1;
}

uint32_t text_columns(const char *s)
{
	uint32_t n = 0, c;

	while ((c = next(&s)))
		n += width(c);
	return n;
}

/* Also what only GitHub's dialect knows: tables and strikethrough. */
static const char *escape_markdown(uint32_t c)
{
	static const char marks[] = "\\`*_[]<>&#|~!";
	static const char *const escaped[] = { "\\\\", "\\`", "\\*", "\\_", "\\[", "\\]", "\\<",
					       "\\>",  "\\&", "\\#", "\\|", "\\~", "\\!" };
	const char *mark = c && c < 0x80 ? strchr(marks, (int)c) : NULL;

	return mark ? escaped[mark - marks] : NULL;
}

/* What stands for `c` in this form, NULL for itself. */
static const char *escape(enum text_form form, uint32_t c)
{
	switch (form) {
	case TEXT_XML:
		return c == '<'    ? "&lt;"
		       : c == '>'  ? "&gt;"
		       : c == '&'  ? "&amp;"
		       : c == '"'  ? "&quot;"
		       : c == '\'' ? "&#39;"
				   : NULL;
	case TEXT_JSON:
		return c == '<'    ? "\\u003c"
		       : c == '>'  ? "\\u003e"
		       : c == '&'  ? "\\u0026"
		       : c == '"'  ? "\\\""
		       : c == '\\' ? "\\\\"
				   : NULL;
	case TEXT_FOLDED:
		return c == ';' ? ":" : NULL;
	case TEXT_PLAIN:
		break;
	case TEXT_CSV:
		return c == '"' ? "\"\"" : NULL;
	case TEXT_MARKDOWN:
		return escape_markdown(c);
	case TEXT_DOT:
		return c == '"' ? "\\\"" : c == '\\' ? "\\\\" : NULL;
	}
	return NULL;
}

void text_add(struct strbuf *out, enum text_form form, const char *s, uint32_t max_columns)
{
	bool cut = text_columns(s) > max_columns;
	uint32_t room = cut ? max_columns - 1 : max_columns, c;

	if (!max_columns)
		return;
	while ((c = next(&s)) && width(c) <= room) {
		const char *instead = escape(form, c);
		char utf8[4];

		room -= width(c);
		if (instead)
			strbuf_puts(out, instead);
		else
			strbuf_add(out, utf8, utf8_encode(c, utf8));
	}
	if (cut)
		strbuf_puts(out, "…");
}

void text_add_csv(struct strbuf *out, const char *s)
{
	strbuf_putc(out, '"');
	if (*s && strchr("=+-@", *s))
		strbuf_putc(out, '\'');
	text_add(out, TEXT_CSV, s, UINT32_MAX);
	strbuf_putc(out, '"');
}
