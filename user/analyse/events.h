/*
 * Events that a run was asked for (-e): how often each came, and on what its profile rests.
 */
#ifndef MEMSCOPE_ANALYSE_EVENTS_H
#define MEMSCOPE_ANALYSE_EVENTS_H

#include "model/profile.h"

#include <stdbool.h>
#include <stdint.h>

struct event_row {
	const char *event;   /* "sched:sched_process_fork", as it was asked for     */
	const char *part;    /* of a pattern: the one event that this row is of; "": all of them */
	const char *profile; /* "sched_process_fork"; "": there is none             */
	const char *unit;    /* "count", "nanoseconds"                                */
	int64_t count;       /* in `unit`: counted one by one, or what the periods add up to */
	int64_t samples;     /* stacks that were captured                             */
	int64_t on_stacks;   /* in `unit`: what they stand for                        */
	int64_t on_stacks_error; /* half of its interval, 95 times in 100; 0: no estimate */
	uint64_t period;         /* that was asked for; 0: none                         */
	uint32_t
		one_in; /* at most so many events for a stack, by --max-overhead; 1: none was left out for it */
	int64_t missed;                /* came while another program ran on the CPU: not counted */
	const char *function, *module; /* the program's own (sites.h) that has most; "" */
	int64_t function_value;
	double stopped_s; /* after so long it was given up, as it would cost too much; 0: it was not */
	const char *why; /* why it is not there; NULL: it is */
};

/* Most first: items by their count in the order that they were asked for, the parts of each behind it, by count. Parts beyond
 * `parts` of an item, and those that never came, are left out. Returns how many rows stay. */
uint32_t events_rank(struct event_row *rows, uint32_t n, uint32_t parts);
/*
 * How many events at most may stand for one of each source that costs `each_ns` for one, so that all together cost at most
 * `percent` of a CPU: those that cost more than an equal share are thinned to it. `rates`: a second.
 */
void events_divide(const double *rates, uint32_t n, double each_ns, double percent,
		   uint32_t *ret_one_in);
/* Sets what is known of an item by its profile, value type `type`; names are the dict's. 0 or -ENOMEM. */
int events_look(const struct profile *p, uint32_t type, struct event_row *row);

#endif
