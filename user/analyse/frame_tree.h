/*
 * A profile merged into one call tree: the view behind folded text, flame graphs and top lists.
 *
 * Node 0 is the root ("all"). Frames of the same name and kind under the same parent are one node;
 * inlined calls are nodes of their own. With `by`, the first level is a label's text or number,
 * "[other]" where a sample has none, "[host]" where that is a container; a process is "redis-server
 * (pid 5099)", a thread "worker (tid 5101)". With `root_comm`, the next level is the process name
 * (label "comm"; a sample without one starts at the root); threads are below it. Children are
 * sorted by name, as flamegraph.pl does, so that equal profiles give equal output. Values are of
 * one value type: total = self + total of all children, those left out too, saturating at INT64_MAX. Samples with
 * values of zero or less have no share to draw and are left out; negative ones (from a difference
 * of two profiles) are counted.
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

/* A node's values in each of two profiles: [0] the one before, [1] the one after. */
struct frame_sides {
	int64_t self[2], total[2];
};

struct frame_tree {
	const struct frame_node *nodes;
	const struct frame_sides *sides;  /* of each node; NULL: there is no profile before */
	const uint32_t *sample_nodes;     /* with keep_samples: each sample's node, NO_NODE where it has none */
	const int64_t *left_out;          /* with `least`: of each node, the total of those of its children that are left out;
					   * else NULL */
	const uint32_t *charged;          /* where frame_tree_charge() moved each node's self; NULL: nowhere */
	uint32_t n_nodes;
	uint32_t max_depth;
	uint32_t n_samples;       /* shown                              */
	uint32_t n_negative;      /* left out for their negative value  */
	uint64_t n_left_out;      /* nodes, with `least`                */
	const char *type, *unit;  /* of the value shown */
};

#define NO_NODE UINT32_MAX

struct frame_tree_opts {
	uint32_t type;        /* index of the value type          */
	const char *by;       /* first level: this label; NULL: none */
	bool root_comm;       /* next level: process name; with by "thread" the first */
	bool leaf_first;      /* callers below callees (bottom-up); the process name comes last */
	const char *from;     /* only stacks with this function, cut to its callees; with `leaf_first`
			       * its callers. Of a recursive one the outermost call. NULL: all */
	const struct profile *before; /* of the same dict: a tree of both (below)   */
	uint32_t before_type;
	double scale[2];      /* of the values of each, 0: 1                       */
	bool keep_samples;    /* of a tree of one profile: sample_nodes                  */
	int64_t least;        /* nodes whose total is less are left out, and all below them; 0, 1: none. Only from the
			       * root, of one profile, without keep_samples and from */
};

/*
 * With a profile before, the tree has the paths of both, and a node's self is the larger of its two
 * (scaled): a path of only one profile has its full width, and what is equal in both is drawn once.
 * `sides` has the values themselves, not scaled.
 *
 * 0 or -ENOMEM. The tree borrows names from the profile's dict.
 */
int frame_tree_build(const struct profile *p, const struct frame_tree_opts *opts,
		     struct frame_tree **ret_tree);
/*
 * The same stacks from the leaf: a tree's paths to what has self, turned round, so that the first level is what did the work and a
 * node's total is that of the stacks that end so. Of a tree that was charged, from where it was charged to. The root's own
 * self stays there. 0 or -ENOMEM.
 */
int frame_tree_reversed(const struct frame_tree *t, struct dict *d, struct frame_tree **ret_tree);
/* Does any sample have the label that `by` names? */
bool frame_tree_has_label(const struct profile *p, const char *by);
/*
 * Moves each node's self to the node that `to` returns: the node itself or an ancestor. Nodes in
 * between lose it from their totals, too, and may be left with nothing. Once a tree. 0 or -ENOMEM.
 */
int frame_tree_charge(struct frame_tree *t,
		      uint32_t (*to)(const struct frame_tree *t, uint32_t node));
/*
 * The node of `in` for each node of `t`, which has no path that `in` has not; `ret_map` has room for all.
 */
void frame_tree_map(const struct frame_tree *t, const struct frame_tree *in, uint32_t *ret_map);
void frame_tree_free(struct frame_tree *t);
DEFINE_CLEANUP(struct frame_tree *, frame_tree_freep, frame_tree_free)

#endif
