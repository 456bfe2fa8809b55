/*
 * What the kernel's type information (BTF) says of features that programs may use.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_KERNEL_TYPES_H
#define MEMSCOPE_COLLECT_SESSION_KERNEL_TYPES_H

#include <stdbool.h>

struct btf;

/* How many arguments a tracepoint has, -1: there is none. */
int btf_tracepoint_args(const struct btf *btf, const char *name);
bool btf_has_tracepoint(const struct btf *btf, const char *name);
/*
 * Since page faults lock a single mapping (per-VMA locks, 6.4), only changes of mappings take the
 * lock of all mappings, and a program at its release costs the others nothing. Before that,
 * replaced mappings are noticed when their record is read, some milliseconds late.
 */
bool btf_has_cheap_mmap_lock(const struct btf *btf);
/* The scheduler's clock and queueing times: read instead of tracing wake-ups. */
bool btf_has_sched_account(const struct btf *btf);
/* A task's user registers are readable, since 5.15. */
bool btf_has_task_regs(const struct btf *btf);

#endif
