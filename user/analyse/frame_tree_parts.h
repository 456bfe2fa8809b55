/* The builder of a frame tree, shared by frame_tree.c and frame_tree_wide.c only. */
#ifndef MEMSCOPE_ANALYSE_FRAME_TREE_PARTS_H
#define MEMSCOPE_ANALYSE_FRAME_TREE_PARTS_H

#include "analyse/frame_table.h"
#include "analyse/frame_tree.h"

/*
 * A node is found by (parent, name, kind) through an open-addressed table of node numbers: 4 bytes a slot and no handle
 * in the node, where a uthash handle would add 56 bytes to each of what may be a million nodes.
 */
struct builder {
	struct frame_tree tree; /* first: the tree that is handed out is the builder's */
	struct frame_node *nodes;
	struct frame_sides *sides; /* NULL: of one profile      */
	bool two;
	uint32_t *sample_nodes, *charged;
	int64_t *left_out; /* NULL: nothing is */
	uint32_t *names;   /* string index of nodes[i].name */
	uint32_t cap;
	uint32_t *slots; /* node number, 0: free */
	uint32_t mask;
	struct frame_table table;
	uint32_t *label_roots; /* of each label set, the node below which its stacks begin, + 1; 0: not made yet */
	uint32_t n_label_roots;
};

/* A child of `parent` that there is not yet; it can be found, too, when `findable`. 0 or -ENOMEM. */
int builder_add_node(struct builder *b, uint32_t parent, const struct frame *f, bool findable,
		     uint32_t *ret_node);
/* What is above the frames of a sample with these labels. 0 or -ENOMEM. */
int builder_root(struct builder *b, const struct frame_tree_opts *opts, labels_id labels,
		 uint32_t *ret_node);
/* All samples of `p`, but only nodes whose total is `opts->least` and more. 0 or -ENOMEM. */
int builder_add_wide(struct builder *b, const struct profile *p, const struct frame_tree_opts *opts);

#endif
