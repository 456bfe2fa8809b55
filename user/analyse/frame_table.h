/*
 * The frames of locations, each made once: what goes through a million stacks meets the same few thousand locations.
 */
#ifndef MEMSCOPE_ANALYSE_FRAME_TABLE_H
#define MEMSCOPE_ANALYSE_FRAME_TABLE_H

#include "analyse/frame.h"

/* Where frames of a location are; n 0: not made yet. */
struct frame_span {
	uint32_t first, n;
};

/* Zeroed but for the dict: empty. */
struct frame_table {
	struct dict *d;
	struct frame_span *spans; /* of each location */
	struct frame *frames;
	uint32_t n_locations, n, cap;
};

/*
 * Those of a location, the outermost first, good until the next call; how many goes to `ret_n`. NULL: out of memory.
 */
const struct frame *frame_table_get(struct frame_table *t, location_id loc, uint32_t *ret_n);
void frame_table_fini(struct frame_table *t);

#endif
