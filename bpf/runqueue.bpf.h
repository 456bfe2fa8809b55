/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who ran while a thread waited for a CPU. Each CPU remembers the processes that it last switched to; when a thread comes to
 * a CPU, the time that it stood in that CPU's queue is divided among those that ran there meanwhile. Time in the queues of other
 * CPUs, from which it was moved, and time before the first switch that is remembered are nobody's.
 *
 * The scheduler's own account says since when a thread stands in the queue that it is picked from. Where that cannot
 * be read, all of its time runnable is taken to have been there.
 */
#ifndef MEMSCOPE_RUNQUEUE_BPF_H
#define MEMSCOPE_RUNQUEUE_BPF_H

#include "common.bpf.h"
#include "emit.bpf.h"
#include "locks.bpf.h"

#define PF_KTHREAD        0x00200000 /* linux/sched.h */
#define PF_KTHREAD_TO_TOP (63 - 21)

/* A process came to this CPU: `who` is its number, with the top bit for a thread of the kernel. By the clock of who calls it: only
 * differences count. */
__noinline int runqueue_run(__u64 clock_ns, __u64 who, __u64 start_ns, __u64 comm_lo, __u64 comm_hi)
{
	__u32 zero = 0;
	struct cpu_runs *c = bpf_map_lookup_elem(&cpu_runs, &zero);
	struct cpu_run *r;

	if (!c)
		return 0;
	if (c->slice != wait_slice_no) { /* who ran between two slices is not known */
		c->slice = wait_slice_no;
		c->n++;
		c->runs[c->n % CPU_RUNS].since_ns = 0;
	}
	c->n++;
	r = &c->runs[c->n % CPU_RUNS];
	r->since_ns = clock_ns;
	r->tgid = (__u32)who;
	r->kernel = who >> 63;
	r->start_ns = start_ns;
	r->comm[0] = comm_lo;
	r->comm[1] = comm_hi;
	return 0;
}

static __always_inline void runqueue_note(const struct task_struct *next, __u64 clock_ns)
{
	__u64 comm[2];

	__builtin_memcpy(comm, next->group_leader->comm, sizeof(comm));
	/* No branch: the verifier would look at all that follows twice. */
	runqueue_run(clock_ns, next->tgid | (__u64)(next->flags & PF_KTHREAD) << PF_KTHREAD_TO_TOP,
		     next->group_leader->start_time, comm[0], comm[1]);
}

static __always_inline void runqueue_note_raw(const struct task_struct *next, __u64 clock_ns)
{
	__u64 comm[2];

	BPF_CORE_READ_INTO(&comm, next, group_leader, comm);
	runqueue_run(clock_ns,
		     BPF_CORE_READ(next, tgid) |
			     (__u64)(BPF_CORE_READ(next, flags) & PF_KTHREAD) << PF_KTHREAD_TO_TOP,
		     BPF_CORE_READ(next, group_leader, start_time), comm[0], comm[1]);
}

/* Adds w->key's waits. A global function: verified once, and not in each turn of a loop. */
__noinline int runqueue_add(__u64 count, __u64 ns)
{
	struct wait_begun *w = wait_begun_here();

	if (w)
		emit_add_all(MS_LANE_TASK, &w->key, NULL, 0, count, count * ns, 0);
	return 0;
}

/*
 * Threads of w->key's process, `weight` of them, were runnable for `ns` until now, by the clock of runqueue_note(): since
 * `queued_at` (0: it is not known) in this CPU's queue, before that in others'. Whatever it does, the verifier sees one call.
 */
__noinline int runqueue_blame(__u64 end_ns, __u64 ns_in_all, __u64 queued_at, __u64 weight)
{
	struct wait_begun *w = wait_begun_here();
	__u32 zero = 0, n;
	struct cpu_runs *c = bpf_map_lookup_elem(&cpu_runs, &zero);
	__u64 here_ns = ns_in_all, other_ns, ns;

	if (!c || !w || !ns_in_all)
		return 0;
	if (cfg_sched_account)
		here_ns = queued_at && end_ns > queued_at ? end_ns - queued_at : 0;
	if (here_ns > ns_in_all)
		here_ns = ns_in_all;
	other_ns = ns_in_all - here_ns;
	n = c->n;
	w->key.state = MS_RAN;
	for (__u32 i = 1; i < CPU_RUNS && here_ns; i++) { /* the newest is the thread itself */
		const struct cpu_run *r = &c->runs[(n - i) % CPU_RUNS];

		if (!r->since_ns)
			break;
		ns = end_ns > r->since_ns ? end_ns - r->since_ns : 0;
		if (ns > here_ns)
			ns = here_ns;
		end_ns = r->since_ns;
		here_ns -= ns;
		w->key.tid = r->tgid;
		w->key.as_gen = r->kernel != 0;
		w->key.user.lo = r->start_ns;
		w->key.kernel.lo = r->comm[0];
		w->key.kernel.hi = r->comm[1];
		if (ns)
			runqueue_add(weight, ns);
	}
	w->key.tid = w->key.as_gen = 0;
	w->key.user.lo = w->key.kernel.lo = w->key.kernel.hi = 0;
	w->key.state = MS_RAN_UNKNOWN;
	if (here_ns)
		runqueue_add(weight, here_ns);
	w->key.state = MS_RAN_ELSEWHERE;
	if (other_ns)
		runqueue_add(weight, other_ns);
	return 0;
}

/* `task` has been runnable for `ns` when it comes to this CPU, now. */
static __always_inline void runqueue_wait_end(const struct task_struct *task, const struct ms_proc *proc, __u64 ns,
					      __u64 weight, __u64 clock_ns)
{
	struct wait_begun *w = wait_begun_here();

	if (!w)
		return;
	__builtin_memset(&w->key, 0, sizeof(w->key));
	w->key.source = MS_RUN_DELAYS;
	w->key.proc = *proc;
	runqueue_blame(clock_ns, ns, cfg_sched_account ? BPF_CORE_READ(task, sched_info.last_queued) : 0, weight);
}

#endif
