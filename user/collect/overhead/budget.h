/*
 * How the limit of a run is divided. Many costs are fixed: the interrupt of each sample, the check
 * of each page fault's event, the bookkeeping of each switch. The rest of the limit is for what can
 * adapt: tracing of allocations, and sampling of wait stacks. Each may use what the other leaves,
 * and at least half of the rest. The two are guaranteed 40 % of the limit (BUDGET_REST_LEAST),
 * because a source that is allowed nothing reports nothing: then the run may exceed its limit by as
 * much.
 *
 * Pure arithmetic, in percent of one CPU.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_BUDGET_H
#define MEMSCOPE_COLLECT_OVERHEAD_BUDGET_H

struct budget {
	double limit;         /* of the run: --max-overhead       */
	double fixed;         /* costs that cannot adapt          */
	double allocs, looks; /* present costs of allocation tracing and wait samples   */
};

/* The share of the limit guaranteed to the two together, whatever the others cost. */
#define BUDGET_REST_LEAST 0.4

double budget_for_allocs(const struct budget *b);
double budget_for_stack_samples(const struct budget *b);

#endif
