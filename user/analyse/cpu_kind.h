/*
 * What the CPU percentages of a memory log mean: of each interval, as memscope writes and top shows them,
 * or the average over the life of the process, as ps prints them. The two cannot be compared.
 *
 * An average over a life is bound by its own past: L(t) = C(t) / (t - t0), and CPU time C never falls, so
 * L(next) >= L(t) * (t - t0) / (next - t0), which is lowest for the latest start t0 that is possible, the
 * first row. And nobody uses more than all CPUs. A log that breaks these bounds again and again is of
 * intervals; one that never does, and is not steady, is of lives. Each start of another process breaks
 * them once. Where the values hardly change, both mean the same, and nothing is said.
 */
#ifndef MEMSCOPE_ANALYSE_CPU_KIND_H
#define MEMSCOPE_ANALYSE_CPU_KIND_H

#include "model/mem_log.h"

enum cpu_kind { CPU_UNKNOWN, CPU_OF_INTERVAL, CPU_OF_LIFE };

/* `n_cpus`: of the machine, as far as it is known. */
enum cpu_kind cpu_kind_of(const struct mem_log *log, uint32_t n_cpus);

/* interval, lifetime; NULL for CPU_UNKNOWN. For programs to read. */
const char *cpu_kind_name(enum cpu_kind kind);

#endif
