/*
 * A call tree's functions: what was spent in each (self) and in it and all it called (total; a
 * recursive function counts once per path). A function is a name in an image: its inlined copies
 * count with it. With a tree of two profiles, the same for each of them.
 */
#ifndef MEMSCOPE_ANALYSE_FUNCTIONS_H
#define MEMSCOPE_ANALYSE_FUNCTIONS_H

#include "analyse/frame_tree.h"

struct function {
	const char *name;    /* borrowed from the dict */
	const char *module;  /* base name of its image, "" when unknown */
	enum frame_kind kind;
	int64_t self, total;
	struct frame_sides sides; /* zero for a tree of one profile */
};

struct functions {
	struct function *rows;  /* by the addresses of their names: no order for people */
	uint32_t n;
	uint32_t *row_of;       /* by node: its row; of the root nothing */
};

/* 0 or -ENOMEM; functions_fini() in either case. */
int functions_make(const struct frame_tree *tree, struct functions *f);
/* The same of images: `name` is the image's, too; rows of what is no code have an empty one. */
int functions_make_modules(const struct frame_tree *tree, struct functions *f);
void functions_fini(struct functions *f);

/* The order of the rows: 0 when two are the same function. */
int function_compare(const struct function *a, const struct function *b);

#endif
