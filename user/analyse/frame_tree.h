/*
 * A profile merged into one call tree: the view behind folded text, flame graphs and top lists.
 *
 * Node 0 is the root ("all"). Frames of the same name and kind under the same parent are one node;
 * inlined calls are nodes of their own. With `by`, the first level is a label's text or number, "[other]"
 * where a sample has none, "[host]" where that is a container. With `root_comm`, the next level is the process name
 * (label "comm"; a sample without one starts at the root). Children are sorted by name, as
 * flamegraph.pl does, so that equal profiles give equal output. Values are of one value type: total
 * = self + total of all children, saturating at INT64_MAX. Samples whose value is zero or less have
 * no place in a picture of shares and are left out; the negative ones (a difference of two
 * profiles) are counted.
 */
#ifndef MEMSCOPE_ANALYSE_FRAME_TREE_H
#define MEMSCOPE_ANALYSE_FRAME_TREE_H

#include "analyse/frame.h"

struct frame_node {
	const char *name;        /* borrowed from the dict or static                     */
	const char *module;      /* base name of the image, "" when unknown              */
	enum frame_kind kind;
	uint32_t parent;         /* always a smaller index than the node's own           */
	uint32_t first_child;    /* 0: none */
	uint32_t next_sibling;   /* 0: none */
	uint32_t depth;          /* the root is 0 */
	int64_t self, total;
};

/* What a node has in each of two profiles: [0] the one before, [1] the one after. */
struct frame_sides {
	int64_t self[2], total[2];
	double self_variance[2], total_variance[2];
};

struct frame_tree {
	const struct frame_node *nodes;
	const struct frame_sides *sides;  /* of each node; NULL: there is no profile before */
	uint32_t n_nodes;
	uint32_t max_depth;
	uint32_t n_samples;       /* shown                              */
	uint32_t n_negative;      /* left out for their negative value  */
	const char *type, *unit;  /* of the value shown */
};

struct frame_tree_opts {
	uint32_t type;        /* index of the value type          */
	const char *by;       /* first level: this label; NULL: none */
	bool root_comm;       /* next level: process name          */
	bool leaf_first;      /* callers below callees (bottom-up); the process name comes last */
	const struct profile *before; /* of the same dict: a tree of both (below)   */
	uint32_t before_type;
	double scale[2];      /* of the values of each, 0: 1                       */
	/* How far a sample's value may be from what it stands for, as a variance; NULL: not at all. */
	double (*variance)(const struct profile *p, const struct profile_sample *s, uint32_t type);
};

/*
 * With a profile before, the tree has the paths of both, and a node's self is the larger of its two
 * (scaled): what is only in one of them has its full width, and what is equal in both is drawn once.
 * `sides` has the values themselves, not scaled.
 *
 * 0 or -ENOMEM. The tree borrows names from the profile's dict. */
int frame_tree_build(const struct profile *p, const struct frame_tree_opts *opts,
		     struct frame_tree **ret_tree);
/*
 * What each node has of its own becomes that of the node that `to` says, which is the node itself or one
 * above it. Those in between lose it from their totals, too: they may be left with nothing.
 */
void frame_tree_charge(struct frame_tree *t, uint32_t (*to)(const struct frame_tree *t, uint32_t node));
void frame_tree_free(struct frame_tree *t);
DEFINE_CLEANUP(struct frame_tree *, frame_tree_freep, frame_tree_free)

#endif
