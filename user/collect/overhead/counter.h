/*
 * Counters of the BPF programs (stats.def), while they run; drain_stats() adds what is in no counter yet.
 */
#ifndef MEMSCOPE_COLLECT_OVERHEAD_COUNTER_H
#define MEMSCOPE_COLLECT_OVERHEAD_COUNTER_H

#include "collect/session/bpf_session.h"
#include "stat_ids.h"

/* Summed over CPUs; 0 when it cannot be read. */
uint64_t counter_read(const struct session *s, enum stat_id id);

/* The first `n` of a per-CPU array of numbers, each summed over CPUs; 0 for what cannot be read. One system call, where
 * the kernel has batches of such arrays (5.13). */
void counters_read(const struct session *s, enum session_map map, uint32_t n, uint64_t *ret_sums);

#endif
