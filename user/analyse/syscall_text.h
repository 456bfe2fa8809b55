/*
 * A system call as a line of text, in the form of strace -y.
 */
#ifndef MEMSCOPE_ANALYSE_SYSCALL_TEXT_H
#define MEMSCOPE_ANALYSE_SYSCALL_TEXT_H

#include "analyse/syscall_shapes.h"
#include "base/strbuf.h"

/* Argument `i`. */
void call_arg_put(struct strbuf *b, const struct call_shape *shape, const struct trace_event *event,
		  uint32_t i);
/* How many arguments are shown: the mode of openat only where it has a meaning. */
uint32_t call_n_args(const struct call_shape *shape, const struct trace_event *event);
/* "3</etc/passwd>", "-1 ENOENT (No such file or directory)", "?". */
void call_result_put(struct strbuf *b, const struct call_shape *shape,
		     const struct trace_event *event);
/* The errno of a call that failed, 0: it did not. */
int call_error(const struct trace_event *event);

#endif
