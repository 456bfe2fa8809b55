/*
 * What counters of garbage collections say of a run: of one process from look to look, and summed by runtime. Pure.
 *
 * Where a runtime counts no time, `collecting` looks of `looks` found a collection under way: their part is an estimate of the part of the
 * time. Looks that follow each other may find the same collection, so the interval is that of as many looks as there were
 * different ones to find (a design effect of collecting / found).
 */
#ifndef MEMSCOPE_ANALYSE_GC_COUNTS_H
#define MEMSCOPE_ANALYSE_GC_COUNTS_H

#include "model/gc_counters.h"

enum { GC_ROWS = 4 };

/* Of one process, since the run began or it did. */
struct gc_counts {
	struct gc_counters first, last; /* the first is all 0 of what began in the run      */
	bool known, zero;               /* zero: count from 0, and not from the first look */
	uint64_t begin_ns, end_ns;      /* of the looks                                     */
	uint64_t looks, collecting;     /* looks that say it; those that found one          */
	uint64_t found;                 /* … as different collections                       */
	uint64_t found_count;           /* the count at the last of those                    */
	bool was_collecting;
	uint64_t paused_at;             /* gc_counters.last_at of the last pause that was seen */
	int64_t longest_ns;             /* of pauses; GC_UNKNOWN                            */
	bool longest_exact;             /* by the runtime: no longer one was missed          */
};

void gc_counts_begin(struct gc_counts *g, bool newborn, uint64_t now_ns);
void gc_counts_look(struct gc_counts *g, const struct gc_counters *c, uint64_t now_ns);

/* Of all processes with the same runtime. */
struct gc_row {
	const char *runtime;            /* "GHC"                                            */
	bool untested;                  /* a version that was never tried                   */
	const char *missing;            /* what is not counted, and why; NULL or "": all is  */
	uint32_t processes;
	uint64_t count, major;
	struct {
		char name[GC_KIND_NAME];
		uint64_t count;
	} kinds[GC_KINDS];
	uint32_t n_kinds;
	int64_t time_ns;                /* GC_UNKNOWN: see looks                              */
	int64_t seen_ns;                /* of the processes' lives, what was looked at        */
	uint64_t looks, collecting, found;
	int64_t looked_ns;              /* of seen_ns: of those whose time is estimated        */
	int64_t longest_ns;             /* GC_UNKNOWN                                        */
	bool longest_exact;
	int64_t live_bytes, heap_bytes; /* at the end, of processes that were there then; GC_UNKNOWN */
};

struct gc_totals {
	struct gc_row rows[GC_ROWS];
	uint32_t n;
};

/* The row of a runtime, a new one if need be; past the last: the last. */
uint32_t gc_totals_row(struct gc_totals *t, const char *runtime);
void gc_totals_add(struct gc_totals *t, uint32_t row, const struct gc_counts *g);
/* What a process that is there has at the end. */
void gc_totals_live(struct gc_totals *t, uint32_t row, const struct gc_counts *g);
/* All rows as one; of the heap nothing. */
void gc_totals_sample(const struct gc_totals *t, struct gc_sample *ret_sample);
/* Adds the heap of a process that is there. */
void gc_sample_heap(struct gc_sample *s, const struct gc_counts *g);

/* The time that collections took, where it is counted; else an estimate with its 95 % interval. false: not known. */
struct gc_time_of {
	bool estimated;
	int64_t ns, low_ns, high_ns;
};
bool gc_row_time(const struct gc_row *row, struct gc_time_of *ret_time);

#endif
