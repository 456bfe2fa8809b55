/*
 * Reads the table of sites that exact tracing fills in the kernel: what each
 * site did since the last reading; at its end, what was live in it then and at its process's peak.
 *
 * The table is shared memory. Finished records are reused: those of images that have ended and,
 * when the table is nearly full, those that hold nothing and have not changed for a while (their
 * stack gets a new one when it allocates again). Their keys are removed first; a record is emptied
 * at the next reading. Between the two, the exchange of the totals maps (drain_flip()) waits for
 * all programs that had found the record.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_ALLOC_TABLE_H
#define MEMSCOPE_COLLECT_STREAM_ALLOC_TABLE_H

#include "collect/session/bpf_session.h"
#include "collect/stream/event_key.h"
#include "model/alloc_site.h"

struct alloc_table;

/* At the end of a process image, or of the run. */
struct table_image {
	struct proc_id proc;
	int64_t highest;     /* the most bytes that were live in it     */
	uint64_t highest_ns; /* when, CLOCK_MONOTONIC; 0: nothing ever was */
};

struct alloc_table_fns {
	/*
	 * What a site did since it was last reported: N_SITE_VALUES, with 0 for those of the peak
	 * and of the end; `untracked` of its blocks, `untracked_bytes` in all, are not followed.
	 * -EAGAIN: report it again with the next ones. `lost`: its process has long gone, there is
	 * nothing to wait for.
	 */
	int (*site)(void *ctx, const struct site_key *key, uint64_t cgroup_id,
		    const int64_t *values, int64_t untracked, int64_t untracked_bytes,
		    bool lost);
	/* The last report of a site: only the values of the peak and of the end are not 0. */
	int (*end)(void *ctx, const struct site_key *key, uint64_t cgroup_id,
		   const int64_t *values);
	/* The last report of an image, after all its sites. */
	void (*image)(void *ctx, const struct table_image *image);
	/* Has the memory of this image gone for good? */
	bool (*gone)(void *ctx, const struct proc_id *proc);
	void *ctx;
};

/* `fns` is copied. */
int alloc_table_open(const struct session *s, const struct alloc_table_fns *fns,
		     struct alloc_table **ret_table, struct err *e);
/* The same over `n` records, laid out as the kernel's, that no kernel writes to and that must outlive it;
 * NULL: out of memory. */
struct alloc_table *alloc_table_over(void *records, uint32_t n,
				     const struct alloc_table_fns *fns);
void alloc_table_close(struct alloc_table *t);
DEFINE_CLEANUP(struct alloc_table *, alloc_table_closep, alloc_table_close)

/* All return 0, or what a function returned other than -EAGAIN. */

/* After a drain_flip(). */
int alloc_table_read(struct alloc_table *t);
/*
 * Ends images that have gone. A site that waits for its stack keeps its image until the next sweep,
 * and no longer: between the two lie a drain_flip() and a reading of the ring, so every record that
 * was sent has been read. A stack that is still to be walked (not `all_here`) keeps it longer.
 */
int alloc_table_sweep(struct alloc_table *t, bool all_here);
/* Once, when no program runs any more: reads everything, and ends it. Behind `n` records that are free in a row there is no used one. */
int alloc_table_finish(struct alloc_table *t, uint32_t n);
/* The site of a block of that image; NULL: its record has been reused. */
const struct site_key *alloc_table_key(const struct alloc_table *t, uint32_t site,
				       const struct proc_id *proc);
/* More than half of the records are in use: read it sooner. */
bool alloc_table_filling(const struct alloc_table *t);
/* Allocations by size: ALLOC_SIZES classes. */
void alloc_table_sizes(const struct alloc_table *t, uint64_t *ret_sizes);

#endif
