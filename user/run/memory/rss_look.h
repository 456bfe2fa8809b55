/*
 * Where the resident memory of one process is, now (analyse/ledger.h): a walk of its allocators' structures
 * and smaps.
 */
#ifndef MEMSCOPE_RUN_MEMORY_RSS_LOOK_H
#define MEMSCOPE_RUN_MEMORY_RSS_LOOK_H

#include "analyse/ledger.h"
#include "base/err.h"
#include "heap/census.h"

#include <sys/types.h>

struct rss_look {
	pid_t pid;
	int64_t budget_ns;          /* CPU time of all tries; mappings are read in any case              */
	bool objects_traced;        /* an interpreter's are (--python-objects)                           */
	struct heap_blocks *blocks; /* where those in use go, or NULL                                    */
	struct heap_found *found;   /* of earlier looks at it, or NULL                                   */
	int tries;                  /* looks where no allocator is found: one that is in the middle of a
	                             * call may not be, as what it writes does not add up for that moment */
};

/* -ESRCH: it has ended; -ENOMEM; what heap_process_open() says. */
int rss_look(const struct rss_look *at, struct ledger *ret_ledger, struct heap_census *ret_census,
	     struct err *e);
/*
 * The same by a thread of its own, while this one calls `meanwhile` every 20 ms or so: a look may take seconds,
 * and the kernel's maps and rings fill up. Returns when it is over.
 */
int rss_look_beside(const struct rss_look *at, void (*meanwhile)(void *ctx), void *ctx,
		    struct ledger *ret_ledger, struct heap_census *ret_census, struct err *e);
/* Of the heap, to a part. */
void rss_add(struct ledger_row *row, const struct heap_amount *a);

#endif
