/*
 * Inside a dict: one table per noun, each in the source file of that name. For model/ only.
 *
 * Every table is an array whose index is the id, with a hash index over it. Entries never move. Only label sets are ever used
 * again for others (dict_labels_sweep()).
 */
#ifndef MEMSCOPE_MODEL_TABLES_H
#define MEMSCOPE_MODEL_TABLES_H

#include "base/arena.h"
#include "base/chunks.h"
#include "base/hash.h"
#include "base/id_index.h"
#include "base/rank_bits.h"
#include "model/dict.h"

struct str_entry {
	const char *text;
	uint32_t len;
};

struct module_key {
	uint64_t dev, ino;
	uint32_t kind, path, build_id, zero;
};

struct module_entry {
	struct module_key key;
	struct module module;
	uint32_t ix;
	UT_hash_handle hh;
};

/* Found by (vaddr, module), or in `by_lines` by what location.c calls its named key. */
struct location_entry {
	struct location loc;
	uint32_t ix;
	UT_hash_handle hh;
};

/*
 * Stacks are the nodes of a tree, numbered as they came. Most have one child only, and it came right after them: such a
 * run of nodes is no more than its frames, 4 bytes each, and what a node's parent is follows from the number. What began
 * elsewhere begins a run of its own, below the node `parent`.
 *
 *	frames:  [0] main read parse | write | draw line ...      "main;read;parse", "main;write", "draw;line"
 *	begins:   1   0    0    0      1       1    0
 *	runs:     { 0, 0 } { 4, parent 1 } { 5, parent 0 }
 */
struct stack_run {
	uint32_t first, parent;
	uint32_t depth; /* of its first node */
};

struct stack_tree {
	uint32_t *frames; /* of each node; 0 is the empty stack's */
	uint32_t cap;
	struct rank_bits begins; /* of each node: does a run begin there? */
	struct stack_run *runs;
	uint32_t n_runs, cap_runs;
	struct id_index by_frame; /* the runs but the first, by their parent and first frame */
};

/* hh.key is an array of label_key, sorted; `labels` is the same as others see it. */
struct labels_entry {
	const struct label *labels;
	uint32_t ix;
	uint32_t n;
	uint32_t next_free; /* of as many labels, below */
	bool is_free;
	UT_hash_handle hh;
};

enum { FREE_SETS = 16 }; /* sets of fewer labels are used again */

/* Which ids are in use. */
struct id_marks {
	uint64_t *bits;
	uint32_t n;
};

static inline void id_mark(struct id_marks *m, uint32_t ix)
{
	m->bits[ix / 64] |= 1ull << ix % 64;
}

/* Who holds ids of label sets as long as it is there: profiles. It says which. */
struct dict_user {
	struct dict_user *next, **at; /* NULL: the dict is gone */
	void (*mark)(const struct dict_user *user, struct id_marks *used);
};

void dict_use(struct dict *d, struct dict_user *user, void (*mark)(const struct dict_user *, struct id_marks *));
void dict_use_end(struct dict_user *user);

struct dict {
	bool oom;
	struct arena arena;             /* strings, lines, label sets */

	struct chunks strings;          /* str_entry      */
	struct id_index by_text;

	struct chunks modules;          /* module_entry   */
	struct module_entry *by_identity;

	struct chunks locations;        /* location_entry */
	struct location_entry *by_vaddr, *by_lines;

	struct stack_tree stacks;

	struct chunks label_sets;       /* labels_entry   */
	struct labels_entry *by_labels;
	uint32_t free_sets[FREE_SETS];  /* by their number of labels, the first of a list; 0: none */
	uint32_t n_free, swept;         /* sets in those lists; dict_labels_swept() */
	struct dict_user *users;
};

int stack_tree_init(struct stack_tree *t);
void stack_tree_fini(struct stack_tree *t);

/* Remembers that memory ran out. */
static inline void *dict_got(struct dict *d, void *ptr)
{
	if (!ptr)
		d->oom = true;
	return ptr;
}

#endif
