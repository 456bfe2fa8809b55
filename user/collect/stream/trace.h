/*
 * The log of system calls, as bpf/trace.bpf.c writes it: each call with what its arguments point to and the files of its
 * descriptors, in the order in which calls ended, about.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_TRACE_H
#define MEMSCOPE_COLLECT_STREAM_TRACE_H

#include "collect/session/bpf_session.h"
#include "model/trace_event.h"

#define TRACE_WINDOW_NS (1ULL << 27) /* of session_opts.trace_most */

/* What `event` points to lives until it returns. */
typedef void (*trace_fn)(void *ctx, const struct trace_event *event);

struct trace;
/* Writes `calls` (TRACE_CALLS of them, the last one for all that have none) to the kernel. 0 or -errno. */
int trace_new(struct session *s, const struct trace_call *calls, trace_fn fn, void *ctx,
	      struct trace **ret_trace, struct err *e);
void trace_free(struct trace *t);
DEFINE_CLEANUP(struct trace *, trace_freep, trace_free)

/* Readable when much has come. */
int trace_fd(const struct trace *t);
/*
 * Hands over what is there: when the gate is shut, all of it; before, some thousand calls at most, for targets may make them as fast
 * as they are read. 0 or -errno.
 */
int trace_take(struct trace *t, bool all);
/* Hands over the calls that threads are in, and forgets threads that have ended; `returns` is false in all. */
int trace_open_calls(struct trace *t, trace_fn fn, void *ctx);

#endif
