/*
 * A chain of references in words: each object with what of it refers to the next, as its language has it (`web.SESSIONS`,
 * `web.User.cart`, `list[17]`), else the place in bytes (`+24`). The tables that CPython keeps beside a dict or a list are part of
 * it, no link of their own.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_CHAIN_H
#define MEMSCOPE_HEAP_SNAPSHOT_CHAIN_H

#include "heap/snapshot/snapshot.h"

enum { CHAIN_TEXT_MAX = 512 };

/* One node of a chain and the place in it that leads on; `at` of the last means nothing. */
struct chain_step {
	uint32_t node, at;
};

/*
 * The text of the link that begins with step[0], and how many of the `n` steps it has taken: more than one where the next
 * is its table. Not `exact`: which key or place it is is left out.
 */
uint32_t chain_link(const struct snapshot *s, const struct chain_step *step, uint32_t n, bool exact,
		    char text[CHAIN_TEXT_MAX]);

/* The same of an object of CPython (heap/python/); 0: it is none, or the last of its chain. */
uint32_t python_chain_link(const struct snapshot *s, const struct chain_step *step, uint32_t n,
			   bool exact, char text[CHAIN_TEXT_MAX]);

/*
 * All names that the above takes from memory, for a file that has none: of the place `at` in a node, in bytes; or, `of_type`, of that
 * place in all objects of a type, counted from where they begin. -ENOMEM.
 */
typedef void (*python_name_fn)(void *ctx, bool of_type, uint32_t node_or_type, int32_t at, const char *name);
int python_names(const struct snapshot *s, python_name_fn fn, void *ctx);

/* The name of the module object at `addr`. false: it has none. */
bool chain_module_name(const struct snapshot *s, uint64_t addr, char *name, size_t cap);

#endif
