/*
 * What a control group says of its own use of memory and CPU time.
 *
 *   unified   memory.current, memory.stat (anon, file, kernel), memory.max; cpu.stat
 *   v1        memory.usage_in_bytes, memory.kmem.usage_in_bytes, memory.stat (total_rss, total_cache,
 *             hierarchical_memory_limit); cpuacct.usage: each in the hierarchy of its controller
 *
 * A container's groups have the same path in each hierarchy, so a group is asked for by its path wherever
 * the controller is; where that hierarchy does not have it, the figure is not known.
 * (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of the kernel.)
 */
#ifndef MEMSCOPE_PROC_CGROUP_USE_H
#define MEMSCOPE_PROC_CGROUP_USE_H

#include "model/mem_sample.h"
#include "proc/cgroup.h"

/* What is not known is MEM_UNKNOWN; `processes` always is. */
void cgroup_use(const struct cgroup_mounts *m, const char *path, struct mem_group *ret_use);

/* The hierarchy in which memory is accounted for: 0, the unified one, where no other has it. */
uint32_t cgroup_memory_hierarchy(const struct cgroup_mounts *m);

/* The least limit of memory of a group and of those above it; MEM_UNKNOWN: there is none. */
int64_t cgroup_limit_kb(const struct cgroup_mounts *m, const char *path);

/* The part of its limit, or of one above it, that what cannot be dropped of a group takes; at 1 the kernel kills.
 * NAN: there is no limit, or not known. */
double cgroup_fixed_part(const struct cgroup_mounts *m, const char *path);

/* What CPU quotas have held back: periods, those in which the quota was used up, and the time after that. */
struct cgroup_throttled {
	int64_t periods, used_up, ns;
};

/*
 * By the quota of a group or of one above it, whichever has used up its own most often. Unified: throttled_usec of cpu.stat;
 * v1: throttled_time, in ns. False: none says so.
 */
bool cgroup_throttled(const struct cgroup_mounts *m, const char *path,
		      struct cgroup_throttled *ret_throttled);

/*
 * What a group is charged, by part, and what that has led to: all that counts when memory runs out. Bytes; MEM_UNKNOWN: not known, and
 * of `limit` also that there is none. `file` is page cache without tmpfs and shared memory, which are `shmem`. v1 does not say slab, sock
 * and pressure.
 */
struct cgroup_charge {
	int64_t all, anon, file, shmem, slab, sock,
		kernel;    /* `kernel` has slab, page tables, stacks */
	int64_t limit;     /* of this group                                         */
	int64_t oom_kills; /* processes of it and of those below it                 */
	int64_t cpu_ns, throttled_ns, periods, periods_throttled; /* by its own quota      */
	int64_t stalled_memory_us, stalled_cpu_us, stalled_io_us; /* some process waited (PSI) */
};
void cgroup_charge_read(const struct cgroup_mounts *m, const char *path,
			struct cgroup_charge *ret_charge);

/* The bytes of `name` in the text of a memory.stat; MEM_UNKNOWN. */
int64_t cgroup_stat_value(const char *text, const char *name);

#endif
