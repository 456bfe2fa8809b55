/* What `memscope serve` has cost so far, all of it, for its own pages, metrics and the summary: run.own_cpu. */
#ifndef MEMSCOPE_RUN_SERVE_OWN_CPU_H
#define MEMSCOPE_RUN_SERVE_OWN_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of cost. */
enum own_cost {
	OWN_PROCESS,  /* the process itself, its threads                                   */
	OWN_CHILDREN, /* its children: writers of windows, answers over HTTP, decoders    */
	OWN_ONCPU,    /* interrupts of samples, and their program                           */
	OWN_WAITS,    /* programs at the scheduler, and the way to them                     */
	OWN_GROWTH,   /* … at changes of resident memory                                    */
	OWN_EVENTS,   /* … at forks, ends and mappings                                      */
	N_OWN_COSTS
};
extern const char *const own_cost_names[N_OWN_COSTS];

/* What is below its full rate. */
enum own_duty { OWN_DUTY_ONCPU, OWN_DUTY_WAITS, OWN_DUTY_GROWTH, N_OWN_DUTIES };
extern const char *const own_duty_names[N_OWN_DUTIES];

struct own_cpu_state {
	bool known;
	double limit;                    /* percent of one CPU                                                 */
	double minute[N_OWN_COSTS];      /* of the last minute, percent of one CPU                             */
	double minute_sum;
	uint64_t ns[N_OWN_COSTS];        /* since the run began                                                */
	uint32_t shift[N_OWN_DUTIES];    /* gathered in 1 of 2^shift of the time; of on-CPU, at hz / 2^shift   */
	uint32_t shift_most[N_OWN_DUTIES];
	uint64_t changes;                /* of these                                                           */
	bool over;                       /* the limit is passed although nothing more can be gathered less     */
};

#endif
