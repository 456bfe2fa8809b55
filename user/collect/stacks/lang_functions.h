/*
 * Frames whose function had been freed when its name was read, by others of the same function (lang_function_key()): a
 * closure of PHP's has a copy of its code, which lives as long as it, and a request's functions are those of the next
 * one. Once one of them has been named, so are the others, those that came before it too.
 */
#ifndef MEMSCOPE_COLLECT_STACKS_LANG_FUNCTIONS_H
#define MEMSCOPE_COLLECT_STACKS_LANG_FUNCTIONS_H

#include "model/dict.h"
#include "proc/proc_table.h"

#include <stdbool.h>
#include <stdint.h>

struct lang_functions {
	struct lang_function *known;
	struct lang_unnamed *unnamed;
};

/* The function `key` of that process is `line`, whose number does not matter. Returns how many locations were named by that. */
uint32_t lang_functions_learn(struct lang_functions *f, struct dict *d, const struct proc_id *id, uint64_t key,
			      const struct line *line);
/* A frame of the function `key`, as it was recorded, and its line. */
struct lang_freed {
	struct proc_id id;
	uint64_t key, words[2];
	uint32_t number;
};

/* Its location in `module`. false: it has the name of `gone` until the function is known. */
bool lang_functions_find(struct lang_functions *f, struct dict *d, const struct lang_freed *frame, module_id module,
			 location_id gone, location_id *ret_location);
/*
 * Frames whose function is not known yet, up to `cap`, to be looked at again: by now it may lie there once more. One that
 * has been handed out LANG_FREED_TRIES times is not any more.
 */
enum { LANG_FREED_TRIES = 40 };
uint32_t lang_functions_again(struct lang_functions *f, struct lang_freed *out, uint32_t cap);
void lang_functions_free(struct lang_functions *f);

#endif
