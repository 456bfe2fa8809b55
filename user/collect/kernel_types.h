/*
 * What the kernel's type information (BTF) says of what programs may use.
 */
#ifndef MEMSCOPE_COLLECT_KERNEL_TYPES_H
#define MEMSCOPE_COLLECT_KERNEL_TYPES_H

#include <stdbool.h>

struct btf;

/* How many arguments a tracepoint has, -1: there is none. */
int btf_tracepoint_args(const struct btf *btf, const char *name);
bool btf_has_tracepoint(const struct btf *btf, const char *name);
/*
 * Since page faults lock a mapping by itself (per-VMA locks, 6.4), the lock of all mappings is taken by
 * those who change them, and a program at its release costs the others nothing. Before that, exchanged
 * mappings are noticed when their record is read, some milliseconds late.
 */
bool btf_has_cheap_mmap_lock(const struct btf *btf);
/* The scheduler's clock, and when it queued a task: what is read instead of tracing wake-ups. */
bool btf_has_sched_account(const struct btf *btf);
/* Tracing programs may use storage of tasks since 5.12, one version after there is any; what registers a
 * task has in user space is known since 5.15. */
bool btf_has_task_storage(const struct btf *btf);

#endif
