/*
 * System calls by process, as bpf/syscalls.bpf.c adds them up.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_SYSCALLS_H
#define MEMSCOPE_COLLECT_STREAM_SYSCALLS_H

#include "collect/session/bpf_session.h"
#include "proc/proc_table.h"

#define SYSCALL_PARTS    32
#define SYSCALL_FIRST_NS 64 /* part i of a histogram has durations from this << i; the first also shorter ones */

struct syscall_total {
	struct proc_id proc;
	uint32_t nr;
	bool compat;        /* of a 32-bit program */
	uint64_t count, errors, ns, no_return, max_ns;
	uint64_t variance;  /* of `count`, where it is an estimate */
	uint64_t parts[SYSCALL_PARTS];
};

struct syscall_error {
	struct proc_id proc;
	uint32_t nr, error;
	bool compat;
	uint64_t count;
};

/* A call that has begun and not returned. */
struct syscall_open {
	struct proc_id proc;
	uint32_t tid, nr, weight;
	bool compat;
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
};

struct syscall_fns {
	void (*total)(void *ctx, const struct syscall_total *total);
	void (*error)(void *ctx, const struct syscall_error *error);
	void (*ended)(void *ctx, const struct syscall_open *call); /* its thread has ended within it */
	void (*open)(void *ctx, const struct syscall_open *call);  /* NULL where rows are not the last */
};

/*
 * Hands over what is in the tables: of processes that have ended (`all` false), whose rows are then removed, or all of
 * it. Each row once. 0 or -errno.
 */
int syscalls_take(struct session *s, bool all, const struct syscall_fns *fns, void *ctx);

#endif
