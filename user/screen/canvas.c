#include "screen/canvas.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

int canvas_begin(struct canvas *c, int rows, int columns)
{
	size_t n = (size_t)rows * (size_t)columns;

	if (rows != c->rows || columns != c->columns) {
		struct cell *cells = calloc(n + 1, sizeof(*cells));

		if (!cells)
			return -ENOMEM;
		free(c->cells);
		c->cells = cells;
		c->rows = rows;
		c->columns = columns;
	}
	for (size_t i = 0; i < n; i++)
		c->cells[i] = (struct cell){ ' ', STYLE_TEXT };
	return 0;
}

void canvas_fini(struct canvas *c)
{
	free(c->cells);
	*c = (struct canvas){ 0 };
}

/* The code point at `s`, and its bytes; U+FFFD where it is none that may be shown. */
static uint32_t decode(const char *s, int *ret_bytes)
{
	const unsigned char *p = (const unsigned char *)s;
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	int n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
	uint32_t c = n == 1 ? *p : n ? *p & (0x7fu >> n) : 0;

	*ret_bytes = 1;
	for (int i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0xfffd;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (!n || c < least[n] || c > 0x10ffff || c >> 11 == 0x1b)
		return 0xfffd;
	*ret_bytes = n;
	return c < 0x20 || (c >= 0x7f && c < 0xa0) ? 0xfffd : c;
}

/* Columns of a code point. wcwidth() knows what the locale knows. */
static int width_of(uint32_t c)
{
	int w = c < 0x80 ? 1 : wcwidth((wchar_t)c);

	return w < 0 ? 1 : w;
}

int canvas_width(const char *text)
{
	int width = 0, bytes;

	for (; *text; text += bytes)
		width += width_of(decode(text, &bytes));
	return width;
}

static void put_cell(struct canvas *c, int y, int x, uint32_t code, enum style style)
{
	if (x >= 0 && x < c->columns)
		c->cells[(size_t)y * (size_t)c->columns + (size_t)x] =
			(struct cell){ code, (uint8_t)style };
}

int canvas_put(struct canvas *c, int y, int x, int width, enum style style, const char *text)
{
	bool cut = canvas_width(text) > width;
	int used = 0, bytes;

	if (y < 0 || y >= c->rows || width <= 0)
		return 0;
	for (; *text; text += bytes) {
		uint32_t code = decode(text, &bytes);
		int w;

		if (c->ascii && code >= 0x80)
			code = '?';
		w = width_of(code);
		if (w == 0)
			continue; /* a mark upon the one before it */
		if (used + w > width - cut)
			break;
		put_cell(c, y, x + used, code, style);
		if (w == 2)
			put_cell(c, y, x + used + 1, 0, style);
		used += w;
	}
	if (cut)
		put_cell(c, y, x + used++, c->ascii ? '~' : 0x2026, style);
	return used;
}

void canvas_put_right(struct canvas *c, int y, int x, int width, enum style style, const char *text)
{
	int w = canvas_width(text), free_columns = w < width ? width - w : 0;

	canvas_put(c, y, x + free_columns, width - free_columns, style, text);
}

void canvas_style(struct canvas *c, int y, int x, int width, enum style style)
{
	if (y < 0 || y >= c->rows)
		return;
	for (int i = x < 0 ? 0 : x; i < x + width && i < c->columns; i++)
		c->cells[(size_t)y * (size_t)c->columns + (size_t)i].style = (uint8_t)style;
}

const char *canvas_glyph(const struct canvas *c, enum glyph g)
{
	static const char *const glyphs[N_GLYPHS][2] = {
		[GLYPH_OPEN] = { "▾ ", "- " }, [GLYPH_CLOSED] = { "▸ ", "+ " },
		[GLYPH_LEAF] = { "  ", "  " }, [GLYPH_DOWN] = { "▼", "v" },
		[GLYPH_UP] = { "▲", "^" },
	};

	return glyphs[g][c->ascii];
}

void canvas_print(const struct canvas *c, int y, FILE *to)
{
	const struct cell *row = c->cells + (size_t)y * (size_t)c->columns;
	int n = c->columns;

	while (n > 0 && (row[n - 1].c == ' ' || !row[n - 1].c))
		n--;
	for (int x = 0; x < n; x++) {
		char out[4];

		if (row[x].c)
			fwrite(out, 1, utf8_encode(row[x].c, out), to);
	}
	fputc('\n', to);
}
