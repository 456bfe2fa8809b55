/*
 * Functions whose calls were counted and timed (--count).
 */
#ifndef MEMSCOPE_ANALYSE_COUNTS_H
#define MEMSCOPE_ANALYSE_COUNTS_H

#include "analyse/syscalls.h"

struct count_row {
	const char *function; /* "malloc"                                                 */
	const char *profile;  /* of the item that it belongs to                            */
	int64_t calls;        /* that began                                                 */
	int64_t returned;     /* of these, timed; the others:                              */
	int64_t left;         /* will never return: exceptions, longjmp, ended threads     */
	int64_t open;         /* had not returned at the end of the run                    */
	int64_t lost;         /* the table of calls was full                               */
	int64_t ns, shortest_ns,
		longest_ns;      /* of `returned`; a call within another one is in both   */
	int64_t outer, outer_ns; /* of those that were not within another call of the function */
	int64_t parts[SYSCALL_HISTOGRAM]; /* how long they took                           */
	double counted_s, timed_s;        /* for so long alone, by --max-overhead; 0: to the end */
	const char *untimed;              /* why no call was timed; NULL: they were           */
};

/* Of calls that returned nothing is known: neither that they did, nor that they will not. 0 where all are accounted for. */
int64_t count_unseen(const struct count_row *row);

/* Most time first, then most calls, then by name. Functions that were never called come last. */
void counts_rank(struct count_row *rows, uint32_t n);

#endif
