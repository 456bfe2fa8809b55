/*
 * The stacks that are one frame longer than a stack: for going through all of them from the root. Made of what the dict
 * holds now; stacks that come later are not in it.
 */
#ifndef MEMSCOPE_MODEL_STACK_CHILDREN_H
#define MEMSCOPE_MODEL_STACK_CHILDREN_H

#include "model/dict.h"

struct stack_children;

/* NULL: out of memory. `d` is borrowed. */
struct stack_children *stack_children_new(const struct dict *d);
void stack_children_free(struct stack_children *c);
DEFINE_CLEANUP(struct stack_children *, stack_children_freep, stack_children_free)

/*
 * How many there are of `s`: the one that follows it in number, if any, goes to `ret_next` (0: none), and the others are
 * an array of as many as it returns.
 */
uint32_t stack_children_of(const struct stack_children *c, stack_id s, stack_id *ret_next,
			   const stack_id **ret_others);

#endif
