/*
 * What a probe's hit costs on this machine, now: measured on a function of our own, with the program
 * that will be used and its gate closed, so that it looks and does nothing.
 */
#ifndef MEMSCOPE_COLLECT_TRAP_COST_H
#define MEMSCOPE_COLLECT_TRAP_COST_H

#include "collect/uprobes.h"

/*
 * ns a hit, on an instruction that the kernel emulates; the median of several trials, some 3 ms in
 * all. `prog` is attached as to an entry, or to both ends if it says that it does not want returns.
 * -errno when it cannot be attached.
 */
int trap_cost_measure(const struct bpf_program *prog, enum uprobe_end end, double *ret_ns);

#endif
