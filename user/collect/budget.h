/*
 * How the limit of a run is divided. Much of what a run does costs what it costs: the interrupt of each
 * sample, a look at each page fault's event, the bookkeeping of each switch. What is left of the limit is for
 * what can do with less of it: tracing of allocations, and looking at the stacks of waits. Each may have
 * what the other does not use, and half of the rest at least. Some rest there is always, because a source
 * that is allowed nothing says nothing: then the run may cost as much more than its limit.
 *
 * Pure arithmetic, in percent of one CPU.
 */
#ifndef MEMSCOPE_COLLECT_BUDGET_H
#define MEMSCOPE_COLLECT_BUDGET_H

struct budget {
	double limit;         /* of the run: --max-overhead       */
	double fixed;         /* what cannot be less              */
	double allocs, looks; /* what these two cost at present   */
};

/* Of the limit, for the two together, whatever the others cost. */
#define BUDGET_REST_LEAST 0.4

double budget_for_allocs(const struct budget *b);
double budget_for_looks(const struct budget *b);

#endif
