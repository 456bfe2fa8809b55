/*
 * What a log of system calls adds up to: by call how many, how long, and which errors, in the form of strace -c -w.
 */
#ifndef MEMSCOPE_ANALYSE_TRACE_SUMS_H
#define MEMSCOPE_ANALYSE_TRACE_SUMS_H

#include "base/strbuf.h"
#include "model/trace_event.h"

struct trace_sum;
struct trace_sums {
	struct trace_sum *rows; /* a hash by call */
};

/* Adds a call that has ended, or that never returns. 0 or -ENOMEM. */
int trace_sums_add(struct trace_sums *sums, const struct trace_event *event);
/* The longest first; nothing where no call was added. `json`: an object on a line of its own. */
void trace_sums_put(struct trace_sums *sums, bool json, struct strbuf *b);
void trace_sums_fini(struct trace_sums *sums);

#endif
