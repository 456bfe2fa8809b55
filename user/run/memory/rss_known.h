/*
 * What earlier looks at processes (rss_look.h) have found, for the next one: where their allocators' variables are, which then need not
 * be searched for, and where the memory of each was.
 *
 * A process that has neither used CPU time since (proc(5), stat: in hundredths of a second) nor had a page fault, nor has another size, has
 * its memory where it was: of a service (the looks of which cost its host something) that stands for RSS_KEPT_MAX looks. What others share with it, and
 * with that its PSS, may have changed.
 *
 * For one thread. Of RSS_KNOWN_MAX processes; of any more nothing is known.
 */
#ifndef MEMSCOPE_RUN_MEMORY_RSS_KNOWN_H
#define MEMSCOPE_RUN_MEMORY_RSS_KNOWN_H

#include "analyse/ledger.h"
#include "base/hash.h"
#include "heap/memory.h"

#include <sys/types.h>

enum {
	RSS_KNOWN_MAX = 4096,
	RSS_KEPT_MAX = 10,
	RSS_SEARCH_EVERY = 8 /* looks: an allocator that was not there is searched for again */
};

/* What changes when a process does something. */
struct rss_sign {
	uint64_t start, cpu_ticks, faults, bytes, pages;
};

struct rss_known_process {
	UT_hash_handle hh;
	pid_t pid;
	struct heap_found found; /* for heap_census_take() */
	struct ledger ledger;    /* of the last look       */
	bool same;               /* it still holds         */
	/* rss_known.c's. */
	struct rss_sign now, then;
	uint32_t kept, look;
	bool known;
};

struct rss_known {
	struct rss_known_process *all;
	uint32_t look;
};

/* A look begins, and ends: of processes that were not asked for in between nothing is known any more. */
void rss_known_begin(struct rss_known *k);
void rss_known_end(struct rss_known *k);
void rss_known_fini(struct rss_known *k);

/* Before a process is looked at. Good until rss_known_end(). NULL: it has ended, there are too many, or there is no memory. */
struct rss_known_process *rss_known_of(struct rss_known *k, pid_t pid);
/* That was looked at, in full. */
void rss_known_keep(struct rss_known_process *p, const struct ledger *found);

#endif
