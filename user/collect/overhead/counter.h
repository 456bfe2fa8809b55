/*
 * One counter of the BPF programs (stats.def), while they run; drain_stats() reads them all.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_COUNTER_H
#define MEMSCOPE_COLLECT_OVERHEAD_COUNTER_H

#include "collect/session/bpf_session.h"
#include "stat_ids.h"

/* Summed over CPUs; 0 when it cannot be read. */
uint64_t counter_read(const struct session *s, enum stat_id id);

#endif
