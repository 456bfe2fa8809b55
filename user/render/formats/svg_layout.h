/*
 * Which frames of a tree a flame graph shows, and where: tree → boxes. Drawing them is svg.c.
 *
 * Boxes are in preorder: each is followed by what lies above it (its callees), children in the
 * tree's order, side by side from the parent's left edge; what is left on the right is self.
 * Frames narrower than the least width are left out with all their callees; those of one parent are one box without a
 * node, the last of its children, so that a reader of the picture's data knows that something is there.
 */
#ifndef MEMSCOPE_RENDER_FORMATS_SVG_LAYOUT_H
#define MEMSCOPE_RENDER_FORMATS_SVG_LAYOUT_H

#include "analyse/frame_tree.h"

#define SVG_LEFT_OUT UINT32_MAX

struct svg_box {
	uint32_t node;    /* of the tree, or SVG_LEFT_OUT                              */
	uint32_t depth;
	int64_t start;    /* left edge, in the tree's values from the root's left edge  */
	int64_t value;    /* width                                                     */
	uint32_t name;    /* index of the first box with this name, module and kind   */
};

struct svg_layout {
	struct svg_box *boxes;
	uint32_t n, cap;
	uint32_t max_depth;  /* of the boxes with a node */
	uint64_t n_left_out; /* frames without a box, those that the tree left out too */
};

/* `least`: values below it are too narrow. What `layout` had before is replaced. 0 or -ENOMEM; svg_layout_fini() in either case. */
int svg_layout_make(const struct frame_tree *tree, double least, struct svg_layout *layout);
void svg_layout_fini(struct svg_layout *layout);

#endif
