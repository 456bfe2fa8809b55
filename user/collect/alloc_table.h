/*
 * Reads the table of sites (struct ms_alloc_site) that exact tracing fills in the kernel: what each did
 * since it was last read, and at its end what was live in it, then and at its process's highest point.
 *
 * The table is shared memory. Records that are over are used again: those of images that have gone, and,
 * when the table is nearly full, those that hold nothing and have not changed for a while (their stack
 * gets another one when it allocates again). Their keys are taken out first; a record is emptied at the
 * next reading, when the exchange of the totals maps between them (drain_flip()) has waited for all
 * programs that had found it.
 */
#ifndef MEMSCOPE_COLLECT_ALLOC_TABLE_H
#define MEMSCOPE_COLLECT_ALLOC_TABLE_H

#include "collect/bpf_session.h"
#include "model/alloc_site.h"

struct alloc_table;

/* At the end of a process image, or of the run. */
struct table_image {
	struct ms_proc proc;
	int64_t highest;     /* the most bytes that were live in it     */
	uint64_t highest_ns; /* when, CLOCK_MONOTONIC; 0: nothing ever was */
};

struct alloc_table_fns {
	/*
	 * What a site did since it was last told: N_SITE_VALUES, of which those of the peak and of the end
	 * are 0; `untracked` blocks of them, of so many bytes, are not followed. -EAGAIN: tell it with the
	 * next ones. `lost`: there is nothing to wait for any more, its process has long gone.
	 */
	int (*site)(void *ctx, const struct ms_alloc_key *key, uint64_t cgroup_id,
		    const int64_t *values, int64_t untracked, int64_t untracked_bytes,
		    bool lost);
	/* The last of a site: only the values of the peak and of the end are not 0. */
	int (*end)(void *ctx, const struct ms_alloc_key *key, uint64_t cgroup_id,
		   const int64_t *values);
	/* The last of an image, after all its sites. */
	void (*image)(void *ctx, const struct table_image *image);
	/* Has the memory of this image gone for good? */
	bool (*gone)(void *ctx, const struct ms_proc *proc);
	void *ctx;
};

/* `fns` is copied. */
int alloc_table_open(const struct session *s, const struct alloc_table_fns *fns,
		     struct alloc_table **ret_table, struct err *e);
/* The same over `n` records that no kernel writes to, and that must outlive it; NULL: out of memory. */
struct alloc_table *alloc_table_over(struct ms_alloc_site *sites, uint32_t n,
				     const struct alloc_table_fns *fns);
void alloc_table_close(struct alloc_table *t);
DEFINE_CLEANUP(struct alloc_table *, alloc_table_closep, alloc_table_close)

/* All return 0 or what a function returned that was not -EAGAIN. */

/* After a drain_flip(). */
int alloc_table_read(struct alloc_table *t);
/*
 * Ends images that have gone. A site that waits for its stack keeps its image until the next sweep, and
 * no longer: with a drain_flip() and a reading of the ring between the two, all that came has been read.
 * Unless it is still to be walked, and so not `all_here`.
 */
int alloc_table_sweep(struct alloc_table *t, bool all_here);
/* Once, when no program runs any more: reads all that there is, and ends it. */
int alloc_table_finish(struct alloc_table *t);
/* The site of a block; NULL: it has been given away. */
const struct ms_alloc_key *alloc_table_key(const struct alloc_table *t, uint32_t site);
/* More than half of the records are in use: read it sooner. */
bool alloc_table_filling(const struct alloc_table *t);
/* Allocations by size: ALLOC_SIZES classes. */
void alloc_table_sizes(const struct alloc_table *t, uint64_t *ret_sizes);

#endif
