/*
 * What is wrong with a program's memory, if anything: the four classic diagnoses, each named only with
 * its evidence in numbers. None of them excludes another.
 *
 *   leak           memory that is not given back. A stack whose live bytes grow and whose blocks stay
 *                  (bands.h); where stacks are not traced, the program's own memory grows to the end
 *                  of the run (course.h), and that is all that is said.
 *   churn          memory that is hardly had before it is given back, at a cost: a quarter of all
 *                  allocations are temporary, or three quarters live less than a millisecond
 *                  (alloc_site.h), and a tenth of the CPU time is spent in the allocator. Where calls
 *                  are not traced: a quarter of the CPU time. Without the time of our own probes; and
 *                  the samples must be too many for a smaller part to give them but once in forty.
 *   bloat          more than is needed. For a moment it held twice of what it keeps, or blocks are so
 *                  small that a third of the heap is what the allocator needs to keep them.
 *   fragmentation  memory that nobody has and the allocator cannot give back: a quarter of the heap's
 *                  resident memory (ledger.h).
 *
 * The last two want 16 MiB at least: less is not worth a name.
 */
#ifndef MEMSCOPE_ANALYSE_DIAGNOSIS_H
#define MEMSCOPE_ANALYSE_DIAGNOSIS_H

#include "analyse/summary.h"

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

/* Those that hold, in the order above. Returns how many. */
uint32_t diagnose(const struct run_summary *s, struct diagnosis ret_found[N_DIAGNOSES]);

#endif
