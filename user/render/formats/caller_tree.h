/*
 * One value of a profile by who asked: the tree of callers that heap tools print. Below the root are the places
 * where a stack ends, below each its callers; places of equal function and line are one. What an allocator calls
 * inside is left off (analyse/alloc_frames.h).
 */
#ifndef MEMSCOPE_RENDER_FORMATS_CALLER_TREE_H
#define MEMSCOPE_RENDER_FORMATS_CALLER_TREE_H

#include "render/formats/code_path.h"

struct caller_node {
	struct code_place place; /* of the root: nothing. `vaddr`: one of those that are joined */
	int64_t value;           /* with that of all its callers; at most INT64_MAX              */
	uint32_t parent, first_child, next_sibling; /* children: largest value first; 0: none    */
};

struct caller_tree {
	struct caller_node *nodes; /* the root is the first */
	uint32_t n;
};

/* Of value type `type`; what is not above 0 is left out. 0 or -ENOMEM; caller_tree_free() only after 0. */
int caller_tree_build(const struct profile *p, uint32_t type, struct caller_tree *ret);
void caller_tree_free(struct caller_tree *t);

#endif
