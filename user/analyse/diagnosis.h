/*
 * What is wrong with a program's memory, if anything: the four classic diagnoses, each named only
 * with its evidence in numbers. None of them excludes another.
 *
 *   leak           memory that is never freed. A stack whose live bytes grow and whose blocks stay
 *                  (live_series.h); where stacks are not traced, only: the private memory grows
 *                  to the end of the run (trend_shape.h), by 16 MiB, or by 2 MiB if a series of work
 *                  was given and it grows without that. Not what grows with a level of work, or
 *                  less and less with a counter (leaks.h).
 *   churn          blocks that are freed soon after their allocation, at a cost: a quarter of all
 *                  allocations are temporary, or three quarters live less than a millisecond
 *                  (alloc_site.h), and a tenth of the CPU time is spent in the allocator. Where
 *                  calls are not traced: a quarter of the CPU time. Without the time of our own
 *                  probes. The samples must be so many that a smaller share gives them with
 *                  probability 1/40 at most.
 *   bloat          more memory than needed. At its peak the program held twice what it retains, or
 *                  blocks are so small that a third of the heap is allocator metadata and rounding.
 *   fragmentation  free memory that the allocator cannot release: a quarter of the heap's resident
 *                  memory (ledger.h).
 *
 * The last two need at least 16 MiB: smaller amounts are not reported.
 */
#ifndef MEMSCOPE_ANALYSE_DIAGNOSIS_H
#define MEMSCOPE_ANALYSE_DIAGNOSIS_H

#include "analyse/summary.h"

#include <stddef.h>

enum diagnosis_kind {
	DIAGNOSIS_LEAK,
	DIAGNOSIS_CHURN,
	DIAGNOSIS_BLOAT,
	DIAGNOSIS_FRAGMENTATION,
	N_DIAGNOSES,
};

struct diagnosis {
	enum diagnosis_kind kind;
	char evidence[480]; /* a sentence or two, without a full stop at the end */
};

const char *diagnosis_name(enum diagnosis_kind kind); /* one word, lower case */

/* The leak in a clause, for a sentence that says more: its rate, its site, and what work says of it. false:
 * there is none. */
bool diagnosis_leak_sentence(const struct run_summary *s, char *buf, size_t size);

/*
 * Is it a collector of garbage that has made room for itself, late in the run? It does so when it collects, which says little of
 * what lives; memory that goes on growing for more than half of the run is another matter.
 */
bool diagnosis_collector_made_room(const struct run_summary *s);

/* Who touches new memory first: what allocates, or a collector that moves memory there. A function of the program, of a
 * language before others; NULL: not known. */
const char *diagnosis_toucher(const struct run_summary *s);

/* The diagnoses that hold, in the order above. Returns how many. */
uint32_t diagnose(const struct run_summary *s, struct diagnosis ret_found[N_DIAGNOSES]);

#endif
