/*
 * The present cost of a probe hit on this machine, without the run time of its program. It is
 * measured on a function of memscope itself, which stays probed until trap_cost_close(), so that it
 * can be measured again and again: it varies by a third from one second to the next, with the clock
 * of the CPU and with the load of its sibling thread.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_TRAP_COST_H
#define MEMSCOPE_COLLECT_OVERHEAD_TRAP_COST_H

#include "collect/session/bpf_session.h"

struct trap_cost;

/* On an instruction that the kernel emulates, or on one that it has to step over. */
enum trap_kind { TRAP_EMULATED, TRAP_STEPPED };
/* -EOPNOTSUPP: this kernel has no uprobe sessions; -errno when it cannot be attached. */
int trap_cost_open(struct session *s, enum trap_kind kind, struct trap_cost **ret_cost);
void trap_cost_close(struct trap_cost *t);
DEFINE_CLEANUP(struct trap_cost *, trap_cost_closep, trap_cost_close)

/* ns a hit; the median of several trials, some 0.2 ms in all, or 3 of steps. 0: the measurement failed. */
double trap_cost_ns(struct trap_cost *t);

#endif
