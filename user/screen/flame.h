/*
 * A call tree as blocks: a line for each level, the root above; a block is as wide as its share. Children are in the
 * order of their names, so that they stay where they are while values change.
 */
#ifndef MEMSCOPE_SCREEN_FLAME_H
#define MEMSCOPE_SCREEN_FLAME_H

#include "screen/call_tree.h"
#include "screen/view.h"

struct flame_block {
	uint32_t node;
	int level, from, to;     /* columns from … to - 1 */
};

enum { FLAME_ZOOMS = 64 };

struct flame {
	uint32_t root, at;       /* what has the whole width; what keys act on */
	enum call_value value;
	struct flame_block *blocks; /* level by level, from left to right */
	uint32_t n, cap;
	int top;                 /* the level on the first line */
	uint32_t zoomed[FLAME_ZOOMS], zooms; /* roots before this one */
};

void flame_fini(struct flame *f);

/* Makes the blocks for a screen of so many columns. What would be narrower than a column has none. -ENOMEM. */
int flame_layout(struct flame *f, const struct call_tree *t, int columns);
/* The block of a node; NULL: it has none. */
const struct flame_block *flame_block_of(const struct flame *f, uint32_t node);
/* The node at a place of the layout; 0 also where there is none. */
uint32_t flame_node_at(const struct flame *f, int level, int column);
/* The block below, above, beside the one at the cursor; the same where there is none. */
uint32_t flame_neighbour(const struct flame *f, const struct call_tree *t, enum action to);

/* Lines `from` to `to` - 1. `search`: blocks with it in their name stand out; "": none. */
void flame_draw(struct flame *f, const struct call_tree *t, const char *search, struct canvas *c, int from, int to);

#endif
