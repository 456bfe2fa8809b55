/*
 * The colours of a difference: what a frame has before and after → a shade. Red is more, blue is less,
 * the deeper the larger the change is against the larger of both: what is new is wholly red, what is
 * gone wholly blue, what is equal nearly white. Sides are told from each other by eyes that do not
 * see red and green apart.
 */
#ifndef MEMSCOPE_RENDER_FORMATS_SVG_CHANGE_H
#define MEMSCOPE_RENDER_FORMATS_SVG_CHANGE_H

#include "analyse/frame_tree.h"

/* Of each direction; a shade is a number below 2 * SVG_CHANGE_STEPS + 1. */
enum { SVG_CHANGE_STEPS = 20 };

struct svg_change {
	int64_t before, after; /* scaled */
};

/* `scale` is of before, 0: 1. */
struct svg_change svg_change(const struct frame_sides *s, double scale);
uint32_t svg_change_shade(struct svg_change c);
/* 0xrrggbb */
uint32_t svg_change_color(uint32_t shade);

#endif
