/*
 * The picture is drawn twice from the same numbers: here, so that any viewer shows it, and by
 * assets/flame.js whenever it is zoomed or searched, from the table in <metadata>. The formulas
 * marked (js) must stay the same in both; tests/browser/ compares them.
 *
 * Frames are <g><title/><rect/><text/></g>. Those under a pixel, and in a large picture all that
 * are too narrow for a label, are strokes in one <path> per colour: 14 bytes each instead of 150,
 * and there may be tens of thousands.
 */
#include "base/saturate.h"
#include "base/strbuf.h"
#include "model/about.h"
#include "render/code_name.h"
#include "render/formats/palette.h"
#include "render/formats/svg_change.h"
#include "render/formats/svg_parts.h"
#include "render/formats/text.h"
#include "render/formats/title.h"
#include "render/formats/writers.h"
#include "render/shown.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The script, the style and what surrounds them have 30 kB more. */
enum { MOST_BYTES = 900000 };

extern const char asset_flame_css[], asset_flame_js[], asset_flame_views_js[];

static void picture_fini(struct picture *p)
{
	svg_layout_fini(&p->layout);
	strbuf_free(&p->out);
}

/* The buffer keeps one printf per piece cheap; the sink gets it in large parts. */
void picture_flush(struct picture *p, size_t above)
{
	if (p->out.len <= above || strbuf_oom(&p->out))
		return;
	sink_write(p->sink, p->out.s, p->out.len);
	strbuf_reset(&p->out);
}

/* --- geometry --- */

/* Tenths of a pixel. (js) */
static int64_t left_edge(const struct picture *p, int64_t value)
{
	return (int64_t)((PAD + (double)value * p->scale) * 10 + 0.5);
}

static uint32_t row_y(const struct picture *p, uint32_t depth)
{
	return p->top + (p->opts->inverted ? depth : p->layout.max_depth - depth) * p->row;
}

/* "12.3", "12", ".3" */
static void add_tenths(struct strbuf *b, int64_t tenths)
{
	if (tenths >= 10 || tenths == 0)
		strbuf_printf(b, "%" PRId64, tenths / 10);
	if (tenths % 10)
		strbuf_printf(b, ".%d", (int)(tenths % 10));
}

bool picture_is_diff(const struct picture *p)
{
	return p->tree->sides != NULL;
}

struct svg_change picture_change(const struct picture *p, const struct frame_node *n)
{
	return svg_change(&p->tree->sides[n - p->tree->nodes], p->opts->before_scale);
}

/* Which colour of the palette: kinds that do not differ are one. Of a difference: how it changed. */
uint32_t picture_color_index(const struct picture *p, const struct frame_node *n)
{
	if (picture_is_diff(p))
		return svg_change_shade(picture_change(p, n));
	return (palette_shows_kinds(p->palette) ? n->kind : 0) * PALETTE_SHADES +
	       palette_shade(n->name);
}

uint32_t picture_color(const struct picture *p, uint32_t index)
{
	if (picture_is_diff(p))
		return svg_change_color(index);
	return palette_color(p->palette, index / PALETTE_SHADES, index % PALETTE_SHADES);
}

/* --- parts --- */

static void add_line(struct picture *p, const char *attributes, const char *text, uint32_t columns)
{
	strbuf_printf(&p->out, "<text %s>", attributes);
	text_add(&p->out, TEXT_XML, text, columns);
	strbuf_puts(&p->out, "</text>\n");
}

static void add_value(const struct picture *p, struct strbuf *b, enum text_form form, int64_t value)
{
	const char *noun = shown_noun(&p->shown, p->opts->countname);

	text_add(b, form, shown_text(&p->shown, p->opts->countname, value).s, UINT32_MAX);
	if (*noun) {
		strbuf_putc(b, ' ');
		text_add(b, form, noun, UINT32_MAX);
	}
}

/* "1.2 MiB → 3.4 MiB: +2.2 MiB, +183.3%" (js) */
static void add_change(const struct picture *p, struct strbuf *b, enum text_form form,
		       struct svg_change c)
{
	int64_t by = c.after > c.before ? c.after - c.before : c.before - c.after;

	add_value(p, b, form, c.before);
	strbuf_puts(b, " → ");
	add_value(p, b, form, c.after);
	if (!by)
		return;
	strbuf_puts(b, c.after > c.before ? ": +" : ": −");
	add_value(p, b, form, by);
	if (!c.before || !c.after)
		strbuf_puts(b, c.after ? ", new" : ", gone");
	else
		strbuf_printf(b, ", %s%s", c.after > c.before ? "+" : "−",
			      unit_percent(by, c.before).s);
}

static const char *width_name(const struct picture *p)
{
	if (p->opts->countname || *p->shown.noun)
		return shown_noun(&p->shown, p->opts->countname);
	return strcmp(p->shown.unit, "nanoseconds") == 0 ? "time" : p->shown.unit;
}

/* One entry of the legend, its right end at `*x`, which moves left. */
static void add_legend(struct picture *p, double *x, uint32_t y, const char *text, uint32_t color)
{
	uint32_t fs = p->fontsize;

	*x -= (double)strlen(text) * fs * CHAR_WIDTH;
	strbuf_printf(&p->out, "<text x=\"%.1f\" y=\"%u\" fill=\"#6b6b66\">%s</text>", *x, y, text);
	*x -= fs + 4;
	strbuf_printf(&p->out,
		      "<rect x=\"%.1f\" y=\"%u\" width=\"%u\" height=\"%u\" rx=\"2\" "
		      "fill=\"#%06x\"/>",
		      *x, y - fs + 2, fs - 1, fs - 1, color);
	*x -= fs;
}

static const struct {
	const char *text;
	struct svg_change change;
} change_legend[] = { { "new", { 0, 1 } },
		      { "more", { 2, 3 } },
		      { "equal", { 1, 1 } },
		      { "less", { 3, 2 } },
		      { "gone", { 1, 0 } } };

static void write_change_legend(struct picture *p, uint32_t y)
{
	double x = p->width - PAD;

	strbuf_puts(&p->out, "<g id=\"legend\">");
	for (size_t i = 0; i < sizeof(change_legend) / sizeof(change_legend[0]); i++)
		add_legend(p, &x, y, change_legend[i].text,
			   svg_change_color(svg_change_shade(change_legend[i].change)));
	strbuf_puts(&p->out, "</g>\n");
}

/* What the hues of frames mean, for those that occur. */
static void write_legend(struct picture *p, uint32_t y)
{
	double x = p->width - PAD;

	strbuf_puts(&p->out, "<g id=\"legend\">");
	for (int k = N_FRAME_KINDS - 1; k >= 0; k--) {
		if (p->has_kind[k])
			add_legend(p, &x, y, frame_kind_name(k),
				   palette_color(p->palette, k, PALETTE_SHADES / 2));
	}
	strbuf_puts(&p->out, "</g>\n");
}

/* What add_legend() takes for each, and a blank before the first. */
static uint32_t legend_columns(const struct picture *p)
{
	uint32_t fs = p->fontsize, columns = 0, n = 0;

	for (size_t i = 0;
	     picture_is_diff(p) && i < sizeof(change_legend) / sizeof(change_legend[0]); i++, n++)
		columns += (uint32_t)strlen(change_legend[i].text);
	for (int k = 0; !picture_is_diff(p) && palette_shows_kinds(p->palette) && k < N_FRAME_KINDS;
	     k++) {
		columns += p->has_kind[k] ? (uint32_t)strlen(frame_kind_name(k)) : 0;
		n += p->has_kind[k];
	}
	return n ? columns + (uint32_t)(n * (2 * fs + 4) / (fs * CHAR_WIDTH)) + 2 : 0;
}

/* What the width of a frame means; of a difference how much it is. */
static void add_default_subtitle(struct picture *p, struct strbuf *out)
{
	if (picture_is_diff(p)) {
		add_change(p, out, TEXT_PLAIN, picture_change(p, &p->tree->nodes[0]));
		if (p->opts->before_scale > 0 && p->opts->before_scale != 1)
			strbuf_printf(out, " (before × %.3g)", p->opts->before_scale);
	} else {
		strbuf_printf(out, "Width: %s", width_name(p));
	}
}

/* The two lines above the frames, as plain text. What does not fit on the first moves to the second. */
struct heading {
	struct strbuf full, first, second;
};

static void heading_fini(struct heading *h)
{
	strbuf_free(&h->full);
	strbuf_free(&h->first);
	strbuf_free(&h->second);
}

static void heading_make(struct heading *h, struct picture *p, uint32_t first_columns)
{
	const struct render_opts *o = p->opts;
	int64_t total = p->tree->nodes[0].total;
	bool fits;

	if (o->title)
		strbuf_puts(&h->full, o->title);
	else
		title_add(&h->full, p->profile, o, &p->shown, total);
	fits = o->title || !h->full.s || text_columns(h->full.s) <= first_columns;
	if (fits)
		strbuf_puts(&h->first, h->full.s ? h->full.s : "");
	else
		title_who_add(&h->first, p->profile, o, &p->shown, first_columns);
	if (o->subtitle) {
		strbuf_puts(&h->second, o->subtitle);
		return;
	}
	if (!fits) {
		title_facts_add(&h->second, p->profile, o, &p->shown, total);
		strbuf_puts(&h->second, " · ");
	}
	add_default_subtitle(p, &h->second);
	title_how_add(&h->second, p->profile, o, &p->shown);
	if (profile_about(p->profile, ABOUT_LABEL, 0)) {
		strbuf_puts(&h->second, " · ");
		title_labels_add(&h->second, p->profile);
	}
}

static void write_head(struct picture *p)
{
	uint32_t fs = p->fontsize, columns = (uint32_t)((p->width - 2 * PAD) / (fs * CHAR_WIDTH));
	/* The buttons, about 36 columns, are on the line of the title; the legend on the next. */
	uint32_t legend = legend_columns(p);
	uint32_t title_columns = columns > 60 ? (columns - 38) * fs / (fs + 4) : 20;
	_cleanup_(heading_fini) struct heading h = { 0 };
	char at[160];

	p->has_legend = legend && columns >= legend + LEAST_SUBTITLE;
	heading_make(&h, p, title_columns);
	p->out.oom |= h.full.oom || h.first.oom || h.second.oom;
	strbuf_printf(
		&p->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"memscope-flame\" width=\"%u\" "
		"height=\"%u\" viewBox=\"0 0 %u %u\" font-size=\"%u\" font-family=\"%s\">\n<title>",
		p->width, p->height, p->width, p->height, fs,
		"ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',Consolas,"
		"'Liberation Mono',monospace");
	text_add(&p->out, TEXT_XML, h.full.s ? h.full.s : "", 200);
	strbuf_printf(&p->out, "</title>\n<style>\n%s</style>\n", asset_flame_css);
	strbuf_printf(&p->out,
		      "<rect class=\"back\" width=\"%u\" height=\"%u\" fill=\"#fdfcf9\"/>\n",
		      p->width, p->height);
	snprintf(
		at, sizeof(at),
		"id=\"title\" x=\"%d\" y=\"%u\" font-size=\"%u\" font-weight=\"bold\" fill=\"#1f1f1f\"",
		PAD, 10 + fs + 3, fs + 4);
	add_line(p, at, h.first.s ? h.first.s : "", title_columns);
	snprintf(at, sizeof(at), "id=\"subtitle\" x=\"%d\" y=\"%u\" fill=\"#6b6b66\"", PAD,
		 10 + 2 * fs + 9);
	add_line(p, at, h.second.s ? h.second.s : "", p->has_legend ? columns - legend : columns);
}

/* Pixels of the narrowest frame with a label. */
static int64_t least_label(const struct picture *p)
{
	return (int64_t)(2 * LABEL_PAD + LEAST_LABEL * p->fontsize * CHAR_WIDTH) + 1;
}

static void add_label(struct picture *p, const struct frame_node *n, int64_t x, int64_t width,
		      uint32_t y)
{
	/* (js) */
	int64_t columns =
		(int64_t)(((double)width / 10 - 2 * LABEL_PAD) / (p->fontsize * CHAR_WIDTH));

	if (columns < LEAST_LABEL)
		return;
	strbuf_puts(&p->out, "<text x=\"");
	add_tenths(&p->out, x + 10 * LABEL_PAD);
	strbuf_puts(&p->out, "\" y=\"");
	add_tenths(&p->out, y * 10 + (p->row - 1) * 5 + p->fontsize * 7 / 2);
	strbuf_puts(&p->out, "\">");
	text_add(&p->out, TEXT_XML, code_name_begin(n->name, (size_t)columns), (uint32_t)columns);
	strbuf_puts(&p->out, "</text>");
}

/* Half a pixel between neighbours, where there is room for it. (js) */
static int64_t drawn_width(int64_t width)
{
	return width >= 30 ? width - 5 : width > 1 ? width : 1;
}

static void write_frame(struct picture *p, const struct svg_box *box)
{
	const struct frame_node *n = &p->tree->nodes[box->node];
	int64_t x = left_edge(p, box->start),
		width = left_edge(p, add_saturating(box->start, box->value)) - x;
	uint32_t y = row_y(p, box->depth);

	if (width < p->thin) {
		p->has_thin[picture_color_index(p, n)] = true;
		return;
	}
	strbuf_puts(&p->out, "<g><title>");
	text_add(&p->out, TEXT_XML, n->name, UINT32_MAX);
	strbuf_puts(&p->out, " (");
	if (picture_is_diff(p)) {
		add_change(p, &p->out, TEXT_XML, picture_change(p, n));
	} else {
		add_value(p, &p->out, TEXT_XML, box->value);
		strbuf_puts(&p->out, ", ");
		text_add(&p->out, TEXT_XML, unit_percent(box->value, p->tree->nodes[0].total).s,
			 UINT32_MAX);
	}
	strbuf_puts(&p->out, ")</title><rect x=\"");
	add_tenths(&p->out, x);
	strbuf_printf(&p->out, "\" y=\"%u\" width=\"", y);
	add_tenths(&p->out, drawn_width(width));
	strbuf_printf(&p->out, "\" height=\"%u\" fill=\"#%06x\"/>", p->row - 1,
		      picture_color(p, picture_color_index(p, n)));
	add_label(p, n, x, width, y);
	strbuf_puts(&p->out, "</g>\n");
}

static void write_thin(struct picture *p, uint32_t color)
{
	/* A frame is a stroke as wide as a row is high, so it needs no outline. */
	strbuf_printf(
		&p->out,
		"<path stroke=\"#%06x\" stroke-width=\"%u\" transform=\"translate(0 %g)\" d=\"",
		picture_color(p, color), p->row - 1, (p->row - 1) / 2.0);
	for (uint32_t i = 0; i < p->layout.n; i++) {
		const struct svg_box *box = &p->layout.boxes[i];
		int64_t x, width;

		if (box->node == SVG_LEFT_OUT ||
		    picture_color_index(p, &p->tree->nodes[box->node]) != color)
			continue;
		x = left_edge(p, box->start);
		width = left_edge(p, add_saturating(box->start, box->value)) - x;
		if (width >= p->thin)
			continue;
		strbuf_puts(&p->out, "M");
		add_tenths(&p->out, x);
		strbuf_printf(&p->out, " %uh", row_y(p, box->depth));
		add_tenths(&p->out, drawn_width(width));
		picture_flush(p, 1 << 16);
	}
	strbuf_puts(&p->out, "\"/>\n");
}

static void write_frames(struct picture *p)
{
	strbuf_puts(&p->out, "<g id=\"frames\" fill=\"#000\">\n");
	for (uint32_t i = 0; i < p->layout.n; i++) {
		if (p->layout.boxes[i].node != SVG_LEFT_OUT)
			write_frame(p, &p->layout.boxes[i]);
		picture_flush(p, 1 << 16);
	}
	for (uint32_t c = 0; c < N_COLORS; c++)
		if (p->has_thin[c])
			write_thin(p, c);
	strbuf_puts(&p->out, "</g>\n");
}

static void write_button(struct picture *p, const char *id, const char *label, double right,
			 uint32_t columns)
{
	double w = (columns + 2) * p->fontsize * CHAR_WIDTH;

	strbuf_printf(
		&p->out,
		"<g id=\"%s\" class=\"button\" role=\"button\" tabindex=\"0\" visibility=\"hidden\">"
		"<rect x=\"%.1f\" y=\"8\" width=\"%.1f\" height=\"%u\" rx=\"4\" fill=\"#efede6\"/>"
		"<text x=\"%.1f\" y=\"%u\" text-anchor=\"middle\" fill=\"#333\">%s</text></g>\n",
		id, right - w, w, p->fontsize + 10, right - w / 2, 8 + p->fontsize + 3, label);
}

/* What there is below what is drawn; the script says there what is under the mouse. */
static void add_left_out(const struct picture *p, struct strbuf *out)
{
	uint64_t n = p->layout.n_left_out;

	if (n)
		strbuf_printf(out, "%s %s narrower than %.3g px %s not drawn",
			      unit_count((int64_t)n).s, n == 1 ? "frame" : "frames", p->minwidth,
			      n == 1 ? "is" : "are");
	else
		strbuf_putc(out, ' ');
}

static void write_foot(struct picture *p)
{
	uint32_t y = p->height - 8, fs = p->fontsize;

	if (p->has_legend && picture_is_diff(p))
		write_change_legend(p, 10 + 2 * fs + 9);
	else if (p->has_legend)
		write_legend(p, 10 + 2 * fs + 9);
	write_button(p, "search", "Search", p->width - PAD, 6);
	write_button(p, "reset", "Reset zoom", p->width - PAD - 9 * fs * CHAR_WIDTH, 10);
	strbuf_printf(
		&p->out,
		"<g id=\"foot\"><rect id=\"bar\" x=\"0\" y=\"%u\" width=\"%u\" height=\"%u\" "
		"fill=\"#fdfcf9\" visibility=\"hidden\"/><text id=\"details\" aria-live=\"polite\" x=\"%d\" y=\"%u\" "
		"fill=\"#1f1f1f\">",
		p->height - fs - 16, p->width, fs + 16, PAD, y);
	add_left_out(p, &p->out);
	strbuf_printf(&p->out,
		      "</text><text id=\"matched\" x=\"%u\" y=\"%u\" text-anchor=\"end\" "
		      "fill=\"#a0009c\"> </text></g>\n",
		      p->width - PAD, y);
}

/* --- all of it --- */

/* What `box` takes in the file, about. */
static size_t box_bytes(const struct picture *p, uint32_t i)
{
	enum { TABLE = 14, STROKE = 15, FRAME = 150, NAME = 10, ESCAPED = 4 };
	const struct svg_box *box = &p->layout.boxes[i];
	size_t bytes = picture_is_diff(p) ? 2 * TABLE : TABLE, len, columns;
	double width = (double)box->value * p->scale;
	const struct frame_node *n;

	if (box->node == SVG_LEFT_OUT)
		return bytes;
	n = &p->tree->nodes[box->node];
	len = strlen(n->name);
	for (const char *c = n->name; (c = strpbrk(c, "<>&\"")); c++)
		len += ESCAPED - 1;
	if (box->name == i)
		bytes += len + strlen(n->module) + NAME;
	if (width * 10 < (double)p->thin)
		return bytes + STROKE;
	columns = (size_t)(width / (p->fontsize * CHAR_WIDTH));
	return bytes + FRAME + len + (columns < len ? columns : len);
}

static size_t layout_bytes(const struct picture *p)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < p->layout.n; i++)
		bytes += box_bytes(p, i);
	return bytes;
}

/* Nobody asked for a least width: the more there is to draw, the less is drawn of what nobody could see. */
static int lay_out(struct picture *p)
{
	bool fixed = p->opts->minwidth != 0;
	int r;

	for (;;) {
		size_t bytes;

		r = svg_layout_make(p->tree, p->minwidth / p->scale, &p->layout);
		if (r < 0)
			return r;
		p->thin = p->layout.n > LARGE_PICTURE ? 10 * least_label(p) : 10;
		if (fixed || p->minwidth >= 1)
			return 0;
		bytes = layout_bytes(p);
		if (bytes <= MOST_BYTES)
			return 0;
		p->minwidth *= bytes > 2 * MOST_BYTES ? 1.5 : 1.1;
	}
}

static int picture_init(struct picture *p, const struct render_opts *opts, struct err *e)
{
	const char *colors =
		opts->colors && strcmp(opts->colors, "auto") != 0 ? opts->colors : NULL;

	p->opts = opts;
	p->palette = palette_find(colors ? colors : p->shown.palette);
	if (!p->palette)
		return err_set(e, -EINVAL, "there are no colors named %.64s", colors);
	p->width = opts->width ? opts->width : 1200;
	p->fontsize = opts->fontsize ? opts->fontsize : 12;
	p->minwidth = opts->minwidth == 0 ? 0.1 : opts->minwidth < 0 ? 0 : opts->minwidth;
	p->row = p->fontsize + 4;
	if (p->width < 4 * PAD)
		return err_set(e, -EINVAL, "a picture %u px wide has no room for frames", p->width);
	return 0;
}

/* The least total of a frame that is wide enough; what is narrower is never made a node of. */
static int64_t least_total(const struct picture *p)
{
	int64_t total = 0;

	for (uint32_t i = 0; i < profile_n_samples(p->profile); i++) {
		int64_t value = profile_sample(p->profile, i).values[p->shown.type];

		if (value > 0 && __builtin_add_overflow(total, value, &total))
			return 0;
	}
	return (int64_t)ceil(p->minwidth * (double)total / (p->width - 2 * PAD));
}

static int picture_build(struct picture *p, struct frame_tree **ret_tree, struct err *e)
{
	const struct render_opts *opts = p->opts;
	struct frame_tree_opts tree_opts = {
		.type = p->shown.type,
		.by = opts->by,
		.root_comm = !opts->no_comm,
		.before = opts->before,
		.before_type = (uint32_t)opts->before_type,
		.scale = { opts->before_scale, 1 },
		.least = opts->before ? 0 : least_total(p),
	};
	int r = frame_tree_build(p->profile, &tree_opts, ret_tree);

	if (r < 0)
		return err_set(e, r, "out of memory for a flame graph");
	p->tree = *ret_tree;
	if (!p->tree->nodes[0].total)
		return err_set(e, -ENODATA, "there is nothing to draw: every value of %s is 0",
			       p->tree->type);
	p->scale = (p->width - 2 * PAD) / (double)p->tree->nodes[0].total;
	r = lay_out(p);
	if (r < 0)
		return err_set(e, r, "out of memory for a flame graph");
	for (uint32_t i = 1; i < p->layout.n; i++)
		if (p->layout.boxes[i].node != SVG_LEFT_OUT)
			p->has_kind[p->tree->nodes[p->layout.boxes[i].node].kind] = true;
	p->top = 10 + 2 * p->fontsize + 9 + 14;
	p->height = p->top + (p->layout.max_depth + 1) * p->row + p->fontsize + 20;
	return 0;
}

int svg_write(const struct profile *profile, const struct render_opts *opts, struct sink *out,
	      struct err *e)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	_cleanup_(picture_fini) struct picture p = { .profile = profile, .sink = out };
	int r;

	p.shown = shown_pick(profile, opts->value_type);
	r = picture_init(&p, opts, e);
	if (r == 0)
		r = picture_build(&p, &tree, e);
	if (r < 0)
		return r;
	write_head(&p);
	write_frames(&p);
	write_foot(&p);
	r = svg_write_data(&p);
	strbuf_printf(&p.out, "<script><![CDATA[\n%s%s]]></script>\n</svg>\n", asset_flame_js,
		      asset_flame_views_js);
	if (r < 0 || strbuf_oom(&p.out))
		return err_set(e, -ENOMEM, "out of memory for a flame graph");
	picture_flush(&p, 0);
	return 0;
}
