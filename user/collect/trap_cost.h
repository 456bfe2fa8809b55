/*
 * What a probe's hit costs on this machine, now, without what its program does: measured on a function of
 * our own, which stays probed until trap_cost_close(), so that it can be asked again and again. It differs
 * by a third from one second to the next, with the clock of the CPU and with what runs on its other half.
 */
#ifndef MEMSCOPE_COLLECT_TRAP_COST_H
#define MEMSCOPE_COLLECT_TRAP_COST_H

#include "collect/bpf_session.h"

struct trap_cost;

/* -EOPNOTSUPP: this kernel has no uprobe sessions; -errno when it cannot be attached. */
int trap_cost_open(struct session *s, struct trap_cost **ret_cost);
void trap_cost_close(struct trap_cost *t);
DEFINE_CLEANUP(struct trap_cost *, trap_cost_closep, trap_cost_close)

/*
 * ns a hit, on an instruction that the kernel emulates; the median of several trials, some 0.2 ms in
 * all. 0: it could not be told.
 */
double trap_cost_ns(struct trap_cost *t);

#endif
