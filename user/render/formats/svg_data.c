/* The table of a flame graph's frames for its script, in <metadata>. */
#include "base/cleanup.h"
#include "render/formats/svg_parts.h"
#include "render/formats/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void add_json(struct picture *p, const char *key, const char *text)
{
	strbuf_printf(&p->out, "\"%s\":\"", key);
	text_add(&p->out, TEXT_JSON, text, UINT32_MAX);
	strbuf_puts(&p->out, "\",");
}

/*
 * names, modules, color: one entry per distinct (name, module, kind), in order of appearance. A
 * module is 0 where it is the one before; color is an index into colors.
 * nodes: three numbers per box. The first is how many levels up from the box before: 0 is its
 * child, 1 its sibling. Then the value, then the name's entry, -1 for frames left out.
 */
static const struct frame_node *next_entry(const struct picture *p, uint32_t *box)
{
	for (; *box < p->layout.n; ++*box) {
		const struct svg_box *b = &p->layout.boxes[*box];

		if (b->node != SVG_LEFT_OUT && b->name == *box)
			return &p->tree->nodes[b->node];
	}
	return NULL;
}

static void add_json_text(struct picture *p, bool first, const char *text)
{
	strbuf_puts(&p->out, first ? "\"" : ",\"");
	text_add(&p->out, TEXT_JSON, text, UINT32_MAX);
	strbuf_putc(&p->out, '"');
	picture_flush(p, 1 << 16);
}

/* `entry[box]` becomes the number of that box's name. */
static void write_names(struct picture *p, uint32_t *entry)
{
	const struct frame_node *n;
	uint32_t count = 0;

	strbuf_puts(&p->out, "\"names\":[");
	for (uint32_t box = 0; (n = next_entry(p, &box)); box++) {
		add_json_text(p, !count, n->name);
		entry[box] = count++;
	}
	strbuf_puts(&p->out, "],\n");
}

static void write_modules(struct picture *p)
{
	const char *before = NULL;
	const struct frame_node *n;

	strbuf_puts(&p->out, "\"modules\":[");
	for (uint32_t box = 0; (n = next_entry(p, &box)); box++) {
		if (before && strcmp(n->module, before) == 0)
			strbuf_puts(&p->out, ",0");
		else
			add_json_text(p, !before, n->module);
		before = n->module;
	}
	strbuf_puts(&p->out, "],\n");
}

static void write_colors(struct picture *p)
{
	uint32_t number[N_COLORS] = { 0 }, used[N_COLORS], n_used = 0;
	const struct frame_node *n;

	strbuf_puts(&p->out, "\"color\":[");
	for (uint32_t box = 0; (n = next_entry(p, &box)); box++) {
		uint32_t c = picture_color_index(p, n);

		if (!number[c]) {
			used[n_used++] = c;
			number[c] = n_used;
		}
		strbuf_printf(&p->out, "%s%u", box ? "," : "", number[c] - 1);
	}
	strbuf_puts(&p->out, "],\n\"colors\":[");
	for (uint32_t i = 0; i < n_used; i++)
		strbuf_printf(&p->out, "%s\"#%06x\"", i ? "," : "", picture_color(p, used[i]));
	strbuf_puts(&p->out, "],\n");
}

/*
 * Of a difference, for each box: what it was before and after, and which of colors it has; then
 * `color` is not looked at. 0 for those left out.
 */
static void write_changes(struct picture *p)
{
	uint32_t number[N_COLORS] = { 0 }, used[N_COLORS], n_used = 0;

	strbuf_puts(&p->out, "\"changes\":[");
	for (uint32_t i = 0; i < p->layout.n; i++) {
		const struct svg_box *box = &p->layout.boxes[i];
		struct svg_change c;
		uint32_t shade;

		picture_flush(p, 1 << 16);
		if (box->node == SVG_LEFT_OUT) {
			strbuf_puts(&p->out, i ? ",0,0,0" : "0,0,0");
			continue;
		}
		c = picture_change(p, &p->tree->nodes[box->node]);
		shade = svg_change_shade(c);
		if (!number[shade]) {
			used[n_used++] = shade;
			number[shade] = n_used;
		}
		strbuf_printf(&p->out, "%s%" PRId64 ",%" PRId64 ",%u", i ? "," : "", c.before,
			      c.after, number[shade] - 1);
	}
	strbuf_puts(&p->out, "],\n\"color\":[],\n\"colors\":[");
	for (uint32_t i = 0; i < n_used; i++)
		strbuf_printf(&p->out, "%s\"#%06x\"", i ? "," : "", svg_change_color(used[i]));
	strbuf_puts(&p->out, "],\n");
}

static void write_nodes(struct picture *p, const uint32_t *entry)
{
	const struct svg_box *boxes = p->layout.boxes;
	uint32_t depth = 0;

	strbuf_puts(&p->out, "\"nodes\":[");
	for (uint32_t i = 0; i < p->layout.n; i++) {
		strbuf_printf(&p->out, "%s%u,%" PRId64 ",%d", i ? "," : "",
			      i ? depth + 1 - boxes[i].depth : 0, boxes[i].value,
			      boxes[i].node == SVG_LEFT_OUT ? -1 : (int)entry[boxes[i].name]);
		depth = boxes[i].depth;
		picture_flush(p, 1 << 16);
	}
	strbuf_puts(&p->out, "]");
}

int svg_write_data(struct picture *p)
{
	_cleanup_(freep) uint32_t *entry = calloc(p->layout.n, sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	strbuf_puts(&p->out, "<metadata id=\"profile\">{");
	add_json(p, "unit", p->shown.unit);
	add_json(p, "noun", shown_noun(&p->shown, p->opts->countname));
	strbuf_printf(&p->out,
		      "\"divisor\":%" PRId64
		      ",\"inverted\":%s,\"fit\":%s,\"width\":%u,\"height\":%u,\"pad\":%d,"
		      "\"top\":%u,\"rows\":%u,\"row\":%u,\"fontsize\":%u,\"charwidth\":%g,"
		      "\"minwidth\":%g,\"thin\":%" PRId64 ",\n",
		      p->opts->countname ? p->shown.divisor : 1,
		      p->opts->inverted ? "true" : "false", p->opts->width ? "false" : "true",
		      p->width, p->height, PAD, p->top, p->layout.max_depth + 1, p->row,
		      p->fontsize, CHAR_WIDTH, p->minwidth, p->thin);
	write_names(p, entry);
	write_modules(p);
	if (picture_is_diff(p))
		write_changes(p);
	else
		write_colors(p);
	write_nodes(p, entry);
	strbuf_puts(&p->out, "}</metadata>\n");
	return 0;
}
