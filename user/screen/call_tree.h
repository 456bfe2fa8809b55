/*
 * Profiles of several kinds merged into one call tree: container, process, thread, frames; what each node took of each
 * resource, itself and with all below it. It only grows: nodes stay where they are, so that what is unfolded stays so
 * while values change.
 */
#ifndef MEMSCOPE_SCREEN_CALL_TREE_H
#define MEMSCOPE_SCREEN_CALL_TREE_H

#include "analyse/frame.h"

enum call_value {
	CALL_CPU,      /* ns on a CPU                            */
	CALL_BLOCKED,  /* ns                                     */
	CALL_RUNNABLE, /* ns that it waited for a CPU            */
	CALL_ALLOC,    /* bytes allocated                        */
	CALL_LIVE,     /* bytes that are live                    */
	CALL_RSS,      /* bytes first touched, less those released */
	CALL_OTHER,    /* what a foreign profile has; its unit is the tree's */
	N_CALL_VALUES,
};

enum call_kind { CALL_ROOT, CALL_CONTAINER, CALL_PROCESS, CALL_THREAD, CALL_FRAME };

struct call_node {
	const char *name;    /* borrowed from the dict */
	const char *module;  /* "" unknown; of frames  */
	uint32_t name_ix;
	uint32_t parent;     /* smaller than its own   */
	uint32_t first_child, next_sibling; /* 0: none */
	uint16_t depth;
	uint8_t kind;        /* enum call_kind         */
	uint8_t frame;       /* enum frame_kind        */
	bool open;
	int64_t self[N_CALL_VALUES], total[N_CALL_VALUES];
};

struct call_tree {
	struct call_node *nodes; /* 0: the root */
	uint32_t n, cap;
	uint32_t *slots, mask;   /* by parent, name and kind */
	struct frame_path path;
	bool has[N_CALL_VALUES]; /* a profile of it was added */
	char other_name[32], other_unit[32];
};

/* -ENOMEM. */
int call_tree_init(struct call_tree *t);
void call_tree_fini(struct call_tree *t);

#define CALL_BIT(value) (1u << (value))
/* Adds the samples of a profile, what each of its value types is known by its name; those of `without` are left out. -ENOMEM;
 * what was added stays. */
int call_tree_add(struct call_tree *t, const struct profile *p, unsigned without);
/* A value is 0 everywhere again; the nodes stay. */
void call_tree_zero(struct call_tree *t, enum call_value value);

/* Is there anything in it, of any resource? */
bool call_node_empty(const struct call_node *n);
/* Unfolds a node, and below it as long as there is only one way. */
void call_tree_open(struct call_tree *t, uint32_t node);
/* Unfolds the way of the largest value from a node on to its end. */
void call_tree_open_largest(struct call_tree *t, uint32_t node, enum call_value by);

#endif
