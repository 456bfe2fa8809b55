/*
 * The stacks of the log of system calls: each is written out once, when its record has come and its functions have names, and
 * lines refer to it.
 */
#ifndef MEMSCOPE_RUN_TRACE_STACKS_H
#define MEMSCOPE_RUN_TRACE_STACKS_H

#include "base/strbuf.h"
#include "run/run.h"

struct trace_stacks;
struct trace_stack;

struct trace_stacks *trace_stacks_new(struct run *r, bool json);
void trace_stacks_free(struct trace_stacks *s);

/* The stack of a line. NULL: out of memory. Each is released once, by trace_stack_put(). */
struct trace_stack *trace_stack_get(struct trace_stacks *s, const struct event_key *key);
void trace_stack_put(struct trace_stack *stack);
/*
 * Writes out those that can be: with `anyway` all, and what has not come is said to be lost. Else reading the symbols of images takes
 * a part of the time at most, and some stacks wait.
 */
void trace_stacks_name(struct trace_stacks *s, bool anyway, uint64_t now_ns);
/* Its text; false: not yet. */
bool trace_stack_text(const struct trace_stack *stack, const char **ret_text, size_t *ret_len);

#endif
