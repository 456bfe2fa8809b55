/*
 * What is known of single functions by their names, where their CFI says nothing or Go's tables
 * not enough: where stacks end, where they are exchanged, and which code keeps frame pointers.
 */
#ifndef MEMSCOPE_UNWIND_ROOTS_H
#define MEMSCOPE_UNWIND_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum root_how {
	ROOT_PLAIN,   /* nothing special                                                      */
	ROOT_END,     /* nobody called it, or nobody that it returns to: MS_RULE_END          */
	ROOT_CHILD,   /* the same, from where a new thread begins in it                       */
	ROOT_FP,      /* keeps frame pointers: MS_RULE_FP                                     */
	ROOT_FP_HOLE, /* does the largest piece of code without CFI in its file, in place of names */
	ROOT_GUESS,   /* its stack is not what tables say: MS_RULE_NONE                       */
	ROOT_SWITCH,  /* runs its callee on another stack, and leaves the frame pointer alone:
		       * the caller's caller is found by it; the caller itself is not         */
	ROOT_EARLY,   /* its first byte is used as a return address, which is looked up one before   */
	ROOT_SP_KEPT, /* calls out on another stack, with sp kept in a saved register         */
};

struct root {
	const char *name;
	bool prefix;         /* any name that begins so */
	enum root_how how;
};

extern const struct root roots_elf[];  /* symbols; ends with a NULL name            */
extern const struct root roots_go[];   /* names of Go's table; ends with a NULL name */

/* The row for `name`, NULL when there is none. */
const struct root *root_find(const struct root *table, const char *name, size_t len);
/* Whether it is worth asking: `name` begins as one of the table does. */
bool root_may_be(const struct root *table, const char *name);

#endif
