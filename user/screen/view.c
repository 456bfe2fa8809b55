#include "screen/view.h"
#include "base/units.h"

#include <string.h>

void view_init(struct view *v, const struct view_ops *ops)
{
	*v = (struct view){ .ops = ops,
			    .columns = ops->columns,
			    .n_columns = ops->n_columns,
			    .sort = ops->sort,
			    .stale = true };
}

bool view_contains(const char *text, const char *part)
{
	return strcasestr(text, part) != NULL;
}

bool view_passes(const struct view *v, const char *text)
{
	return !*v->filter || view_contains(text, v->filter);
}

/* The row with this key, else where it was. */
static uint32_t row_of(const struct view *v, uint64_t key, uint32_t was)
{
	for (uint32_t i = 0; key && i < v->n_rows; i++)
		if (v->ops->row(v, i).key == key)
			return i;
	return !v->n_rows ? 0 : was < v->n_rows ? was : v->n_rows - 1;
}

uint64_t view_at(const struct view *v)
{
	return v->cursor < v->n_rows && v->ops->row ? v->ops->row(v, v->cursor).key : 0;
}

int view_arrange(struct view *v)
{
	uint32_t on_screen = v->cursor - v->top;
	int r;

	if (!v->stale)
		return 0;
	r = v->ops->arrange(v);
	if (r < 0)
		return r;
	v->stale = false;
	if (!v->ops->row)
		return 0;
	/* Who has not moved looks at the largest, whichever that is now. */
	v->cursor = v->moved ? row_of(v, v->at_key, v->cursor) : 0;
	v->at_key = view_at(v);
	v->top = v->cursor > on_screen ? v->cursor - on_screen : 0;
	return 0;
}

void view_move(struct view *v, int64_t rows, int page)
{
	int64_t to = (int64_t)v->cursor + rows * page;

	v->cursor = !v->n_rows || to < 0 ? 0 : to >= v->n_rows ? v->n_rows - 1 : (uint32_t)to;
	v->at_key = view_at(v);
	v->moved = true;
}

static void row_text(const struct view *v, uint32_t row, struct strbuf *to)
{
	strbuf_reset(to);
	for (uint32_t i = 0; i < v->n_columns; i++) {
		strbuf_putc(to, ' ');
		v->ops->cell(v, row, i, to);
	}
}

bool view_find(struct view *v, uint32_t from)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };

	for (uint32_t i = 0; *v->search && v->ops->cell && i < v->n_rows; i++) {
		uint32_t row = (from + i) % v->n_rows;

		row_text(v, row, &text);
		if (text.s && view_contains(text.s, v->search)) {
			view_move(v, (int64_t)row - (int64_t)v->cursor, 1);
			return true;
		}
	}
	return false;
}

void view_bytes(double bytes, bool sign, struct strbuf *to)
{
	struct unit_text text = unit_bytes((int64_t)bytes);

	if (sign && (int64_t)bytes == 0) {
		strbuf_putc(to, '0');
		return;
	}
	if (sign && bytes > 0)
		strbuf_putc(to, '+');
	for (const char *c = text.s; *c; c++)
		if (*c != ',')
			strbuf_putc(to, *c);
}

/* --- drawing --- */

static void draw_headings(const struct view *v, struct canvas *c, int y)
{
	int x = 0;

	canvas_style(c, y, 0, c->columns, STYLE_HEADING);
	for (uint32_t i = 0; i < v->n_columns; i++) {
		const struct column *col = &v->columns[i];
		enum style style = i == v->sort ? STYLE_SORTED : STYLE_HEADING;
		char title[48];

		if (col->from_width > c->columns)
			continue;
		snprintf(title, sizeof(title), "%s%s", col->title,
			 i != v->sort ? "" : canvas_glyph(c, v->reverse ? GLYPH_UP : GLYPH_DOWN));
		if (col->width && !col->left)
			canvas_put_right(c, y, x, col->width, style, title);
		else
			canvas_put(c, y, x, col->width ? col->width : c->columns - x, style, title);
		x += col->width + 1;
	}
}

static void draw_text(const struct view *v, struct canvas *c, int y, int x, uint32_t row,
		      const char *text)
{
	struct view_row r = v->ops->row(v, row);
	enum glyph g = r.fold == FOLD_OPEN     ? GLYPH_OPEN
		       : r.fold == FOLD_CLOSED ? GLYPH_CLOSED
					       : GLYPH_LEAF;
	/* A deep stack walks to the right no further than half of the line. */
	int step = c->columns < 120 ? 1 : 2, most = (c->columns - x) / 2;
	int indent = step * r.depth < most ? step * r.depth : most;

	x += indent;
	x += canvas_put(c, y, x, c->columns - x, STYLE_DIM, canvas_glyph(c, g));
	canvas_put(c, y, x, c->columns - x, r.dim ? STYLE_DIM : STYLE_TEXT, text);
}

static void draw_row(const struct view *v, struct canvas *c, int y, uint32_t row,
		     struct strbuf *text)
{
	int x = 0;

	for (uint32_t i = 0; i < v->n_columns; i++) {
		const struct column *col = &v->columns[i];

		if (col->from_width > c->columns)
			continue;
		strbuf_reset(text);
		v->ops->cell(v, row, i, text);
		if (!col->width)
			draw_text(v, c, y, x, row, text->s ? text->s : "");
		else if (text->s && *text->s && col->left)
			canvas_put(c, y, x, col->width, STYLE_TEXT, text->s);
		else if (text->s && *text->s)
			canvas_put_right(c, y, x, col->width, STYLE_TEXT, text->s);
		x += col->width + 1;
	}
}

void view_draw(struct view *v, struct canvas *c, int from, int to)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	uint32_t lines = to - from > 1 ? (uint32_t)(to - from - 1) : 1;

	if (v->cursor < v->top)
		v->top = v->cursor;
	if (v->cursor >= v->top + lines)
		v->top = v->cursor - lines + 1;
	if (v->top && v->top + lines > v->n_rows)
		v->top = v->n_rows > lines ? v->n_rows - lines : 0;
	draw_headings(v, c, from);
	for (uint32_t i = 0; i < lines && v->top + i < v->n_rows; i++) {
		int y = from + 1 + (int)i;

		draw_row(v, c, y, v->top + i, &text);
		if (*v->search) {
			row_text(v, v->top + i, &text);
			if (text.s && view_contains(text.s, v->search))
				canvas_style(c, y, 0, c->columns, STYLE_MATCH);
		}
		if (v->top + i == v->cursor)
			canvas_style(c, y, 0, c->columns, STYLE_CURSOR);
	}
}

uint32_t view_row_at(const struct view *v, int from, int y)
{
	uint32_t row = v->top + (uint32_t)(y - from - 1);

	return y > from && row < v->n_rows ? row : UINT32_MAX;
}
