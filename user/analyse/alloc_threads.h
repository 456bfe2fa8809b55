/*
 * Which threads allocated how much: a profile of allocations by its labels.
 */
#ifndef MEMSCOPE_ANALYSE_ALLOC_THREADS_H
#define MEMSCOPE_ANALYSE_ALLOC_THREADS_H

#include "model/profile.h"

#include <sys/types.h>

struct thread_row {
	pid_t pid, tid;
	const char *name;        /* the thread's, else its process's; borrowed from the dict */
	int64_t objects, bytes;
};

/*
 * At most `cap` rows of profile `alloc` (value types as in sources.h), most bytes first. `*ret_seen` is
 * how many threads there are. Returns the number of rows, or -ENOMEM.
 */
int alloc_threads(const struct profile *alloc, struct thread_row *out, uint32_t cap,
		  uint32_t *ret_seen);

#endif
