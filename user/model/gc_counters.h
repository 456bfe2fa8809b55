/*
 * What a runtime counts of its own garbage collections, at one moment: since the process began, but for what says otherwise. Read from
 * outside by heap/gc/, shown as columns of trend.csv and as a section of the summary.
 */
#ifndef MEMSCOPE_MODEL_GC_COUNTERS_H
#define MEMSCOPE_MODEL_GC_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#define GC_UNKNOWN     ((int64_t)-1)
#define GC_COUNTED_MAX ((int64_t)1 << 54) /* no value of a struct gc_counters is more */

enum { GC_KINDS = 4, GC_KIND_NAME = 48 };

struct gc_counters {
	uint64_t count;       /* collections: all kinds                                              */
	uint64_t major;       /* of those, the ones of the whole heap                                 */
	struct {
		char name[GC_KIND_NAME]; /* "generation 0", "G1 young collection pauses"              */
		uint64_t count;
	} kinds[GC_KINDS];
	uint32_t n_kinds;
	/* GC_UNKNOWN: the runtime does not count it, or nobody knows where. */
	int64_t time_ns;      /* the program stood still for a collection                              */
	int64_t longest_ns;   /* the longest pause                                                     */
	int64_t last_ns;      /* the last pause that has ended …                                       */
	uint64_t last_at;     /* … when, by a clock of the runtime's own                               */
	int64_t live_bytes;   /* what was alive after the last collection                             */
	int64_t heap_bytes;   /* what the runtime holds for its heap                                  */
	bool looks;           /* `collecting` is known: time is estimated by how often it is found so  */
	bool collecting;      /* a collection is under way                                              */
};

/* At one moment, of all targets, since the run began: what trend.csv has. */
struct gc_sample {
	bool known;           /* a runtime whose collections are counted was found                    */
	int64_t count, major;
	int64_t time_ns;      /* GC_UNKNOWN: of none of them; estimated where it is not counted         */
	int64_t live_bytes, heap_bytes; /* of processes that are there; GC_UNKNOWN                     */
};

#endif
