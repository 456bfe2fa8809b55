/* A flame graph while it is written: what svg.c and svg_data.c share. For these two only. */
#ifndef MEMSCOPE_RENDER_FORMATS_SVG_PARTS_H
#define MEMSCOPE_RENDER_FORMATS_SVG_PARTS_H

#include "base/strbuf.h"
#include "render/formats/palette.h"
#include "render/formats/svg_change.h"
#include "render/formats/svg_layout.h"
#include "render/render.h"
#include "render/shown.h"

enum {
	PAD = 10,
	LABEL_PAD = 3,
	LEAST_LABEL = 3,     /* columns */
	LEAST_SUBTITLE = 20, /* beside the legend, which makes way */
	LARGE_PICTURE = 400, /* frames  */
	N_COLORS = N_FRAME_KINDS * PALETTE_SHADES,
};

#define CHAR_WIDTH 0.6022 /* em: DejaVu Sans Mono, Menlo; other fixed fonts are narrower */

struct picture {
	const struct render_opts *opts;
	const struct frame_tree *tree;
	const struct palette *palette;
	struct shown shown;
	struct svg_layout layout;
	uint32_t width, fontsize, row;
	const struct profile *profile;
	double minwidth;      /* px below which a frame is left out */
	double scale;         /* px per unit of value */
	uint32_t top, height; /* of the rows' area; of all */
	int64_t thin;         /* tenths of a pixel below which a frame is a stroke */
	bool has_kind[N_FRAME_KINDS], has_legend;
	bool has_thin[N_COLORS];
	struct strbuf out;
	struct sink *sink;
};

/* The buffer keeps one printf per piece cheap; the sink gets it in large parts. */
void picture_flush(struct picture *p, size_t above);
bool picture_is_diff(const struct picture *p);
/* What a node was before, and is. */
struct svg_change picture_change(const struct picture *p, const struct frame_node *n);
/* Which colour of the palette: kinds that do not differ are one. Of a difference: how it changed. */
uint32_t picture_color_index(const struct picture *p, const struct frame_node *n);
uint32_t picture_color(const struct picture *p, uint32_t index);

/* 0 or -ENOMEM. */
int svg_write_data(struct picture *p);

#endif
