/*
 * Memory and CPU use of a set of processes, from /proc, once per call.
 *
 * Each process is held through a descriptor of its /proc directory, so a pid that is used again
 * is never taken for the process that had it before. A process that has ended leaves the set;
 * its faults and CPU time stay in the sums, so that those never run backwards.
 *
 * Three files are read per process: stat, status, and smaps_rollup for pss, shared and private.
 * The last walks the target's page tables while holding its mmap lock, so it is read only
 * when a hundred times as long as the last read took has gone by (proc_mem_rollup_rest()): the three fields are
 * MEM_UNKNOWN in between. (A read took 2.4 ms for 1 GiB and 20 ms for 4 GiB in pages of 4 KiB,
 * 0.1 ms for 4 GiB in huge pages; the other two files under 0.1 ms: EPYC, kernel 6.18, Nov 2026.)
 * CPU time is the process's CPU clock where it can be read (ns), else
 * the ticks of stat.
 */
#ifndef MEMSCOPE_PROC_PROC_MEM_H
#define MEMSCOPE_PROC_PROC_MEM_H

#include "base/cleanup.h"
#include "base/err.h"
#include "model/mem_sample.h"

#include <stdbool.h>
#include <sys/types.h>

struct proc_mem;

/* NULL when out of memory. */
struct proc_mem *proc_mem_new(void);
void proc_mem_free(struct proc_mem *m);
DEFINE_CLEANUP(struct proc_mem *, proc_mem_freep, proc_mem_free)

/*
 * Adds a process; one that is in already is left alone. Its CPU time counts from now on. With
 * `newborn` (a child forked, a command started during the run) it counts from the process's start.
 * -ESRCH: there is no such process. -EMFILE, -ENOMEM.
 */
int proc_mem_add(struct proc_mem *m, pid_t pid, bool newborn, struct err *e);

/*
 * Leaves only those of `pids`, which are in ascending order: who is in a control group may be moved to
 * another one. What the others had counted stays in the sums.
 */
void proc_mem_keep(struct proc_mem *m, const pid_t *pids, uint32_t n);

/*
 * The processes summed, now. A field that is unknown for all is MEM_UNKNOWN; one that some
 * could is the sum of those. -ESRCH: none of them is left.
 */
int proc_mem_sample(struct proc_mem *m, struct mem_sample *ret_sample);

/* The next sample is the last: smaps_rollup is read for it, where that has not taken 0.2 s before. */
void proc_mem_last(struct proc_mem *m);

/* smaps_rollup is read when `times` as long as the last read took has gone by. */
void proc_mem_rollup_rest(struct proc_mem *m, double times);

/* smaps_rollup is not read for this set: pss, shared and private stay unknown. */
void proc_mem_quick(struct proc_mem *m);

/* How many processes are in the set. */
uint32_t proc_mem_count(const struct proc_mem *m);

/* Our own use: CPU time so far, and resident memory now and at most, but for what is mapped of BPF
 * maps, which session_map_bytes() counts. */
void proc_mem_self(int64_t *ret_cpu_ns, int64_t *ret_rss_kb, int64_t *ret_peak_kb);

#endif
