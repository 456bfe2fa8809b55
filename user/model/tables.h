/*
 * Inside a dict: one table per noun, each in the source file of that name. For model/ only.
 *
 * Every table is an array whose index is the id, with a hash index over it. Entries never move.
 */
#ifndef MEMSCOPE_MODEL_TABLES_H
#define MEMSCOPE_MODEL_TABLES_H

#include "base/arena.h"
#include "base/chunks.h"
#include "base/hash.h"
#include "model/dict.h"

/* hh.key is the string itself. */
struct str_entry {
	uint32_t ix;
	UT_hash_handle hh;
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
 * A frame and the frames that call it. Most nodes have one child only, so the first is kept in the
 * node and found without hashing; the others are in `siblings`.
 */
struct stack_node {
	uint32_t parent, frame, depth;
	uint32_t first_child;  /* 0: none */
};

struct sibling_key {
	uint32_t parent, frame;
};

struct stack_sibling {
	struct sibling_key key;
	uint32_t ix;
	UT_hash_handle hh;
};

/* hh.key is an array of label_key, sorted; `labels` is the same as others see it. */
struct labels_entry {
	const struct label *labels;
	uint32_t ix;
	uint32_t n;
	UT_hash_handle hh;
};

struct dict {
	bool oom;
	struct arena arena;             /* strings, lines, label sets */

	struct chunks strings;          /* str_entry      */
	struct str_entry *by_text;

	struct chunks modules;          /* module_entry   */
	struct module_entry *by_identity;

	struct chunks locations;        /* location_entry */
	struct location_entry *by_vaddr, *by_lines;

	struct chunks nodes;            /* stack_node     */
	struct chunks siblings;         /* stack_sibling  */
	struct stack_sibling *by_frame;

	struct chunks label_sets;       /* labels_entry   */
	struct labels_entry *by_labels;
};

/* Remembers that memory ran out. */
static inline void *dict_got(struct dict *d, void *ptr)
{
	if (!ptr)
		d->oom = true;
	return ptr;
}

#endif
