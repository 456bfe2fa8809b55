/*
 * Waits of threads that switch often, at a cost that a switch can bear: the length of every wait is
 * taken, its stack only of some (places.h). A switch whose stack is not looked at costs two look-ups in
 * the storage of tasks, and neither a read of the target's memory nor one of a clock: time is the
 * scheduler's, rq.clock, which it has read anyway.
 */
#ifndef MEMSCOPE_BUSY_BPF_H
#define MEMSCOPE_BUSY_BPF_H

#include "common.bpf.h"
#include "emit.bpf.h"
#include "places.h"

#define BUSY_PREEMPTED 1 /* a place: wherever it lost its CPU                 */
#define BUSY_NOWHERE   3 /* a place: of a thread whose places are too many    */

static __always_inline struct wait_begun *wait_begun_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&wait_begun, &zero);
}

/* The time that the scheduler has just taken, in a program at sched_switch: `task` is on this CPU. (The
 * variable itself has a name only where CONFIG_KALLSYMS_ALL is set.) */
static __always_inline __u64 rq_clock(const struct task_struct *task)
{
	return task->se.cfs_rq->rq->clock;
}

/*
 * How long `task`, which comes to a CPU, could have run: since it was queued, and where it was queued
 * before, if it was moved from CPU to CPU. (The scheduler adds this up after the tracepoint.)
 */
static __always_inline __u64 queued_ns(const struct task_struct *task, __u64 delay_ns,
				       __u64 clock_ns)
{
	__u64 from_ns = task->sched_info.last_queued,
	      before_ns = task->sched_info.run_delay - delay_ns;

	return before_ns + (from_ns && clock_ns > from_ns ? clock_ns - from_ns : 0);
}

/* That of a thread that is busy: NULL for all others. */
static __always_inline struct ms_busy *busy_find(struct task_struct *task)
{
	return cfg_busy && look_gap_ns ? bpf_task_storage_get(&busy, task, NULL, 0) : NULL;
}

static __always_inline bool busy_is(const struct ms_busy *b)
{
	return b && b->on;
}

/* What waited at a place goes to user space, without a detour by the totals: that is seldom. */
static __noinline void place_flush(const struct ms_busy *b, struct ms_place *p, __u64 clock_ns,
				   __u64 cgroup_id)
{
	struct wait_begun *w = wait_begun_here();

	if (!b || !p || !w || !(p->blocked | p->runnable))
		return;
	__builtin_memset(&w->key, 0, sizeof(w->key));
	w->key.source = MS_OFFCPU;
	w->key.state = MS_BLOCKED;
	w->key.tid = b->tid;
	w->key.as_gen = p->as_gen;
	w->key.bucket = emit_bucket(clock_ns + b->ahead_ns);
	w->key.proc = b->proc;
	w->key.user = p->user;
	w->key.kernel = p->kernel;
	if (p->blocked && !emit_send(&w->key, cgroup_id, p->blocked, p->blocked_ns))
		stat_add(STAT_TOTAL_FULL, p->blocked);
	w->key.state = MS_RUNNABLE;
	if (p->runnable && !emit_send(&w->key, cgroup_id, p->runnable, p->runnable_ns))
		stat_add(STAT_TOTAL_FULL, p->runnable);
	p->blocked = p->blocked_ns = p->runnable = p->runnable_ns = 0;
}

/* By a helper: a pointer that is followed without one has the verifier search all types for its name. */
static __always_inline __u64 task_cgroup(const struct task_struct *task)
{
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

static __always_inline void busy_count(struct ms_busy *b)
{
	stat_add(STAT_OFFCPU_SWITCHES, b->switches);
	stat_add(STAT_BUSY_SWITCHES, b->switches);
	stat_add(STAT_OFFCPU_WAITS, b->waits);
	if (b->left_out) {
		stat_add(STAT_WAITS_LEFT_OUT, b->left_out);
		stat_add(STAT_WAITS_LEFT_OUT_NS, b->left_out_ns);
	}
	b->switches = b->waits = b->left_out = b->left_out_ns = 0;
}

/* It is like any other from now on, in the state in which it is. */
static __always_inline void busy_end(struct ms_busy *b, struct task_struct *task)
{
	__u32 tid = b->tid;
	struct ms_thread *t = bpf_map_lookup_elem(&threads, &tid);
	const struct ms_place *p = place_of(b);
	__u64 cgroup_id = task_cgroup(task);

	for (int i = 0; i < MS_PLACES; i++)
		place_flush(b, &b->places[i], b->since_ns, cgroup_id);
	if (t && t->state == MS_RUN_BUSY) {
		t->oncpu_ns += b->oncpu_ns;
		t->blocked_ns += b->blocked_ns;
		t->runnable_ns += b->runnable_ns;
		t->switches += b->switches;
		t->since_ns = b->since_ns + b->ahead_ns;
		t->delay_ns = b->delay_ns;
		t->wake_ns = 0;
		t->state = b->state;
		t->user = p->user;
		t->kernel = p->kernel;
		t->as_gen = p->as_gen;
	}
	b->oncpu_ns = b->blocked_ns = b->runnable_ns = 0;
	busy_count(b);
	b->on = 0;
}

/* A thread that was found to be busy has come to a CPU: from here on it is told so. */
static __always_inline void busy_begin(struct ms_busy *b, struct ms_thread *t, __u32 tid,
				       __u64 clock_ns, __u64 now_ns)
{
	b->proc = t->proc;
	b->tid = tid;
	b->since_ns = clock_ns;
	b->ahead_ns = now_ns - b->since_ns;
	b->state = MS_RUN_ON_CPU;
	b->on = 1;
	b->moved = 0;
	b->random = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
	for (int i = 0; i < MS_PLACES; i++)
		b->places[i].where = 0;
	t->state = MS_RUN_BUSY;
}

/* Of a thread that is in none: any number, of the instruction that faulted or was interrupted always. */
static __always_inline long syscall_number(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#else
	return regs->syscallno;
#endif
}

static __always_inline __u64 busy_where(const struct ms_busy *b, struct task_struct *task)
{
	struct pt_regs *regs;
	__u64 where;

	if (b->coarse > 1)
		return BUSY_NOWHERE;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	where = (PT_REGS_IP(regs) ^ (__u64)syscall_number(regs) << 48) * 0x9e3779b185ebca87ULL;
	if (!b->coarse)
		where = (where ^ PT_REGS_SP(regs)) * 0xc2b2ae3d27d4eb4fULL;
	return where | 1ULL << 63; /* none of the above */
}

static __always_inline void busy_on_cpu(struct ms_busy *b, __u64 clock_ns)
{
	b->oncpu_ns += clock_ns - b->since_ns;
	b->since_ns = clock_ns;
}

/* It leaves the CPU. true: its stack is to be looked at, and told to busy_looked(). */
static __always_inline bool busy_out(struct ms_busy *b, struct task_struct *task, bool runnable,
				     __u64 clock_ns)
{
	__u64 where = runnable ? BUSY_PREEMPTED : busy_where(b, task);

	busy_on_cpu(b, clock_ns);
	b->switches++;
	b->state = runnable ? MS_RUN_RUNNABLE : MS_RUN_BLOCKED;
	b->delay_ns = task->sched_info.run_delay;
	b->where = where;
	return place_enter(b, where, clock_ns, look_gap_ns);
}

/* The stack of the wait that begins is here. */
static __always_inline void busy_looked(struct ms_busy *b, const struct wait_begun *w,
					const struct task_struct *task, __u64 clock_ns)
{
	struct ms_place *p = place_of(b);

	b->user = w->user;
	b->kernel = w->kernel;
	stat_inc(STAT_BUSY_LOOKS);
	busy_count(b);
	if (p->where && p->where != b->where)
		place_flush(b, p, clock_ns, task_cgroup(task));
	place_looked(b, b->where, w->as_gen, clock_ns, look_gap_ns);
}

/* The wait that ends was looked at, and is not where it was expected. */
static __noinline void busy_moved(struct ms_busy *b, const struct task_struct *task, __u64 clock_ns,
				  __u64 blocked_ns, __u64 runnable_ns)
{
	struct ms_moved_rec *rec;
	struct ms_place *p;

	if (!b)
		return;
	p = place_of(b);
	stat_inc(STAT_BUSY_MOVED);
	rec = bpf_ringbuf_reserve(&events, sizeof(*rec), 0);
	if (rec) {
		rec->kind = MS_EV_MOVED;
		rec->shift = b->weight;
		__builtin_memset(&rec->key, 0, sizeof(rec->key));
		rec->key.source = MS_OFFCPU;
		rec->key.state = b->state == MS_RUN_BLOCKED ? MS_BLOCKED : MS_RUNNABLE;
		rec->key.tid = b->tid;
		rec->key.as_gen = p->as_gen;
		rec->key.bucket = emit_bucket(clock_ns + b->ahead_ns);
		rec->key.proc = b->proc;
		rec->key.user = b->user;
		rec->key.kernel = b->kernel;
		rec->from_user = p->user;
		rec->from_kernel = p->kernel;
		rec->from_as_gen = p->as_gen;
		rec->pad = 0;
		rec->blocked_ns = blocked_ns;
		rec->runnable_ns = runnable_ns;
		bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	} else {
		stat_inc(STAT_BUSY_MOVED_LOST);
	}
	if (!place_doubt(p)) {
		place_flush(b, p, clock_ns, task_cgroup(task));
		place_expect(p, b, p->as_gen);
	}
}

/* It comes to a CPU, or came there at clock_ns. `could_ns`: how long it could have run. */
static __always_inline void busy_in(struct ms_busy *b, const struct task_struct *task,
				    __u64 clock_ns, __u64 could_ns)
{
	__u64 ns = clock_ns - b->since_ns;
	__u64 runnable_ns = b->state == MS_RUN_RUNNABLE || could_ns > ns ? ns : could_ns;

	b->blocked_ns += ns - runnable_ns;
	b->runnable_ns += runnable_ns;
	b->waits++;
	if (ns < cfg_wait_min_ns || ns > cfg_wait_max_ns) {
		b->left_out++;
		b->left_out_ns += ns;
	} else {
		place_leave(b, ns, runnable_ns);
		if (b->moved)
			busy_moved(b, task, clock_ns, ns - runnable_ns, runnable_ns);
	}
	b->state = MS_RUN_ON_CPU;
	b->since_ns = clock_ns;
}

#endif
