/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits of threads that switch often, at a cost that a switch can bear: the length of every wait is
 * measured, its stack only of some (wait_sites.h). A switch whose stack is not sampled calls no
 * function of the kernel but one for its registers: both threads are found in an array, and the time
 * is rq.clock, which the scheduler has just updated.
 */
#ifndef MEMSCOPE_WAIT_SAMPLER_BPF_H
#define MEMSCOPE_WAIT_SAMPLER_BPF_H

#include "common.bpf.h"
#include "descriptors.bpf.h"
#include "emit.bpf.h"
#include "locks.bpf.h"
#include "runqueue.bpf.h"
#include "wait_sites.h"
#include "wakers.bpf.h"

#define WAIT_SITE_PREEMPTED 1 /* wherever the thread lost its CPU     */
#define WAIT_SITE_ANYWHERE  3 /* of a thread that has too many sites  */

/* The scheduler's present time, in a program at sched_switch: `task` is on this CPU. (The run
 * queue's own symbol is there only with CONFIG_KALLSYMS_ALL.) */
static __always_inline __u64 rq_clock(const struct task_struct *task)
{
	return task->se.cfs_rq->rq->clock;
}

/*
 * How long `task`, which comes to a CPU, was runnable: since it was queued, plus earlier run queues
 * if it was migrated. (The scheduler adds this up after the tracepoint.)
 */
static __always_inline __u64 queued_ns(const struct task_struct *task, __u64 delay_ns,
				       __u64 clock_ns)
{
	__u64 from_ns = task->sched_info.last_queued,
	      before_ns = task->sched_info.run_delay - delay_ns;

	return before_ns + (from_ns && clock_ns > from_ns ? clock_ns - from_ns : 0);
}

/* The slot of a thread: its own, or (beside) the other one that it may have. */
static __always_inline struct ms_sampled_thread *wait_sampler_slot(__u32 tid, __u32 beside,
								   __u32 *ret_slot)
{
	*ret_slot = (tid ^ beside) & (cfg_sampled_slots - 1);
	return bpf_map_lookup_elem(&sampled_threads, ret_slot);
}

/* Its record if the thread has a slot, else NULL. */
static __always_inline struct ms_sampled_thread *wait_sampler_find(__u32 tid)
{
	struct ms_sampled_thread *b;
	__u32 slot;

	if (!cfg_wait_sampler || !tid)
		return NULL;
	b = wait_sampler_slot(tid, 0, &slot);
	if (b && b->tid == tid)
		return b;
	b = wait_sampler_slot(tid, 1, &slot);
	return b && b->tid == tid ? b : NULL;
}

static __always_inline bool wait_sampler_is(const struct ms_sampled_thread *b)
{
	return b && b->on;
}

/* Takes a slot for a thread; NULL: both are taken. */
static __always_inline struct ms_sampled_thread *wait_sampler_take(__u32 tid)
{
	struct ms_sampled_thread *b = wait_sampler_find(tid);
	__u32 slot;

	for (__u32 beside = 0; !b && beside < 2; beside++) {
		b = wait_sampler_slot(tid, beside, &slot);
		if (b && bpf_map_update_elem(&sampled_slots, &slot, &tid, BPF_NOEXIST))
			b = NULL;
		if (b) {
			__builtin_memset(b, 0, sizeof(*b));
			b->tid = tid;
		}
	}
	return b;
}

/* The thread has ended. */
static __always_inline void wait_sampler_give_back(__u32 tid)
{
	struct ms_sampled_thread *b;
	__u32 slot;

	for (__u32 beside = 0; cfg_wait_sampler && beside < 2; beside++) {
		b = wait_sampler_slot(tid, beside, &slot);
		if (b && b->tid == tid) {
			b->tid = 0;
			bpf_map_delete_elem(&sampled_slots, &slot);
			return;
		}
	}
}

/*
 * How far apart samples of a site are, by the slices' clock, which goes 2^shift times faster (slices.h): by the time of day no closer
 * than all of the time. Else each wait in a slice would be sampled, and slow its thread down just while that is counted.
 */
static __always_inline __u64 sample_gap(const struct ms_sampled_thread *b)
{
	__u64 least = MS_SAMPLE_GAP_LEAST_NS << b->shift % 32;

	return sample_gap_ns > least ? sample_gap_ns : least;
}

/* A thread that is not sampled leaves a CPU: does it do so often, by the time of day? */
static __always_inline void wait_sampler_notice(struct ms_thread *t, __u64 now_ns)
{
	if (!cfg_wait_sampler || !often_switches)
		return;
	if (now_ns - t->near_ns > MS_OFTEN_NS << wait_slices[wait_slice_no & 1].shift % 32) {
		t->near_ns = now_ns;
		t->near = 0;
	}
	if (++t->near >= often_switches)
		t->often = 1;
}

/* Adds waits of w->key to their total. A global function: the verifier looks at it once, and not at each call. */
__noinline int wait_key_add(__u32 state, __u64 cgroup_id, __u64 count, __u64 value, __u64 before)
{
	struct wait_begun *w = wait_begun_here();

	if (!w || !count)
		return 0;
	w->key.state = state;
	emit_add_all(MS_LANE_TASK, &w->key, NULL, cgroup_id, count, value, before);
	return 0;
}

/* Adds what a site has accumulated to its totals: once a second, and when the site is another's. */
static __noinline void wait_site_flush(struct ms_sampled_thread *b, __u32 site, __u64 cgroup_id)
{
	struct wait_begun *w = wait_begun_here();
	struct ms_wait_site *p;
	bool reached;

	if (!b || !w)
		return;
	p = &b->sites[site % MS_WAIT_SITES];
	reached = b->reached == site;
	if (!(p->blocked | p->runnable))
		return;
	__builtin_memset(&w->key, 0, sizeof(w->key));
	w->key.source = MS_OFFCPU;
	w->key.tid = b->tid;
	w->key.as_gen = p->as_gen;
	w->key.slot = b->slot;
	w->key.proc = b->proc;
	w->key.user = p->user;
	w->key.kernel = p->kernel;
	wait_key_add(MS_BLOCKED, cgroup_id, p->blocked, p->blocked_ns,
		     reached ? b->blocked_before : 0);
	wait_key_add(MS_RUNNABLE, cgroup_id, p->runnable, p->runnable_ns,
		     reached ? b->runnable_before : 0);
	p->blocked = p->blocked_ns = p->runnable = p->runnable_ns = 0;
	if (reached)
		b->blocked_before = b->runnable_before = 0;
}

static __always_inline void wait_sampler_count(struct ms_sampled_thread *b)
{
	stat_add(STAT_OFFCPU_SWITCHES, b->switches);
	stat_add(STAT_WAIT_SWITCHES, b->switches);
	stat_add(STAT_OFFCPU_WAITS, b->waits);
	if (b->left_out) {
		stat_add(STAT_WAITS_LEFT_OUT, b->left_out);
		stat_add(STAT_WAITS_LEFT_OUT_NS, b->left_out_ns);
	}
	b->switches = b->waits = b->left_out = b->left_out_ns = 0;
}

/* Thread `tid` is no longer sampled; its entry in `threads` takes over its present state. Global, as above. */
__noinline int wait_sampler_close(__u32 tid, __u64 cgroup_id)
{
	struct ms_sampled_thread *b = wait_sampler_find(tid);
	struct ms_thread *t = bpf_map_lookup_elem(&threads, &tid);
	const struct ms_wait_site *p;

	if (!wait_sampler_is(b))
		return 0;
	p = wait_site_of(b);
	for (int i = 0; i < MS_WAIT_SITES; i++)
		wait_site_flush(b, i, cgroup_id);
	if (t && t->state == MS_RUN_SAMPLED) {
		t->oncpu_ns += b->oncpu_ns;
		t->blocked_ns += b->blocked_ns;
		t->runnable_ns += b->runnable_ns;
		t->switches += b->switches;
		t->since_ns = b->since_ns + b->ahead_ns;
		t->delay_ns = b->delay_ns;
		t->wake_ns = t->labels = 0;
		t->state = b->state;
		t->csw = b->csw;
		t->slice = b->slice;
		t->where = 0;
		if (b->slice != wait_slice_no) /* a slice later it still does */
			t->often = 1;
		t->user = p->user;
		t->kernel = p->kernel;
		t->as_gen = p->as_gen;
	}
	b->oncpu_ns = b->blocked_ns = b->runnable_ns = 0;
	wait_sampler_count(b);
	b->on = 0;
	__sync_fetch_and_sub(&n_sampled, 1);
	return 0;
}

static __always_inline void wait_sampler_end(const struct ms_sampled_thread *b,
					     const struct task_struct *task)
{
	wait_sampler_close(b->tid, task_cgroup(task));
}

/* A thread that was found to switch often has come to a CPU: it is sampled from now on, if there is
 * a slot for it. If there is none, that is tried again when it has been found so once more. */
static __always_inline void wait_sampler_begin(struct ms_thread *t, const struct task_struct *task,
					       __u64 clock_ns, __u64 now_ns)
{
	struct ms_sampled_thread *b = wait_sampler_take((__u32)task->pid);

	if (!b) {
		t->often = 0;
		t->near = 0;
		return;
	}
	b->proc = t->proc;
	b->since_ns = clock_ns;
	b->ahead_ns = now_ns - b->since_ns;
	b->state = MS_RUN_ON_CPU;
	b->slice = wait_slice_no;
	b->shift = (__u8)wait_slices[b->slice & 1].shift;
	b->csw = t->csw;
	b->on = 1;
	b->reassigned = 0;
	b->drawn = 0;
	b->random = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
	for (int i = 0; i < MS_WAIT_SITES; i++)
		b->sites[i].where = 0;
	__sync_fetch_and_add(&n_sampled, 1);
	t->state = MS_RUN_SAMPLED;
}

/* Outside of a system call this is some other number, always the same for one faulting or
 * interrupted instruction. */
static __always_inline long syscall_number(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#else
	return regs->syscallno;
#endif
}

/* Where `task` is in user space: at which instruction, in which system call, and, `fine`, with which stack. */
static __always_inline __u64 where_in_user(const struct task_struct *task, bool fine)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs((struct task_struct *)task);
	__u64 where = (PT_REGS_IP(regs) ^ (__u64)syscall_number(regs) << 48) *
		      0x9e3779b185ebca87ULL;

	if (fine)
		where = (where ^ PT_REGS_SP(regs)) * 0xc2b2ae3d27d4eb4fULL;
	return where | 1ULL << 63; /* never one of the special sites above */
}

/* The site at which `task` is about to wait. */
static __always_inline __u64 wait_sampler_where(const struct ms_sampled_thread *b,
						struct task_struct *task)
{
	return b->coarse > 1 ? WAIT_SITE_ANYWHERE : where_in_user(task, !b->coarse);
}

/* The same of any thread, as a number that is kept; 0: the kernel does not say. */
static __always_inline __u32 task_where(const struct task_struct *task)
{
	return cfg_wait_sampler ? (__u32)(where_in_user(task, true) >> 24) | 1 : 0;
}

static __always_inline void wait_sampler_on_cpu(struct ms_sampled_thread *b, __u64 clock_ns)
{
	b->oncpu_ns += clock_ns - b->since_ns;
	b->since_ns = clock_ns;
}

/* It leaves the CPU. true: capture its stack, then call wait_sampler_sampled(). */
static __always_inline bool wait_sampler_out(struct ms_sampled_thread *b, struct task_struct *task,
					     bool runnable, __u64 clock_ns)
{
	__u64 where = runnable ? WAIT_SITE_PREEMPTED : wait_sampler_where(b, task);

	wait_sampler_on_cpu(b, clock_ns);
	b->switches++;
	b->csw = (__u32)(task->nvcsw + task->nivcsw);
	b->state = runnable ? MS_RUN_RUNNABLE : MS_RUN_BLOCKED;
	b->delay_ns = task->sched_info.run_delay;
	b->where = where;
	return wait_site_enter(b, where, clock_ns, sample_gap(b));
}

/* The stack of the wait that begins has been captured, into `w`. */
static __always_inline void wait_sampler_sampled(struct ms_sampled_thread *b,
						 const struct wait_begun *w,
						 const struct task_struct *task, __u64 clock_ns)
{
	struct ms_wait_site *p = wait_site_of(b);

	b->user = w->user;
	b->kernel = w->kernel;
	stat_inc(STAT_WAIT_SAMPLES);
	wait_sampler_count(b);
	if (p->where && p->where != b->where)
		wait_site_flush(b, b->site % MS_WAIT_SITES, task_cgroup(task));
	wait_site_sampled(b, b->where, w->as_gen, clock_ns, sample_gap(b));
}

/* The wait that ends was sampled, and its stack is not the expected one. */
static __noinline void wait_sampler_reassign(struct ms_sampled_thread *b,
					     const struct task_struct *task, __u64 clock_ns,
					     __u64 blocked_ns, __u64 runnable_ns)
{
	struct ms_reassigned_rec *rec;
	struct ms_wait_site *p;

	if (!b)
		return;
	p = wait_site_of(b);
	stat_inc(STAT_WAIT_REASSIGNED);
	rec = bpf_ringbuf_reserve(&events, sizeof(*rec), 0);
	if (rec) {
		rec->kind = MS_EV_REASSIGNED;
		rec->shift = b->weight;
		__builtin_memset(&rec->key, 0, sizeof(rec->key));
		rec->key.source = MS_OFFCPU;
		rec->key.state = b->state == MS_RUN_BLOCKED ? MS_BLOCKED : MS_RUNNABLE;
		rec->key.tid = b->tid;
		rec->key.as_gen = p->as_gen;
		rec->key.slot = slot_at(clock_ns + b->ahead_ns, MS_SLOT_NS);
		rec->key.proc = b->proc;
		rec->key.user = b->user;
		rec->key.kernel = b->kernel;
		rec->from_user = p->user;
		rec->from_kernel = p->kernel;
		rec->from_as_gen = p->as_gen;
		rec->slice_shift = b->shift;
		rec->blocked_ns = blocked_ns;
		rec->runnable_ns = runnable_ns;
		bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	} else {
		stat_inc(STAT_WAIT_REASSIGNED_LOST);
	}
	if (!wait_site_is_sure(p)) {
		wait_site_flush(b, b->site % MS_WAIT_SITES, task_cgroup(task));
		wait_site_expect(p, b, p->as_gen);
	}
}

/* The wait that ends was sampled: what is known of locks and of who ended it was noted in `threads`. */
static __noinline void wait_sampler_ends(struct ms_sampled_thread *b,
					  const struct task_struct *task, __u64 clock_ns,
					  __u64 blocked_ns, __u64 rq_ns)
{
	struct off_cpu off;
	struct ms_thread *t;
	__u32 tid;

	if (!b)
		return;
	tid = b->tid;
	off = (struct off_cpu){ b->since_ns + b->ahead_ns, clock_ns + b->ahead_ns, blocked_ns,
				b->drawn, b->shift };
	if (cfg_run_delays)
		runqueue_wait_end(task, &b->proc,
				  (clock_ns - b->since_ns - blocked_ns) >> b->shift % 32, off_count(&off),
				  rq_ns);
	t = bpf_map_lookup_elem(&threads, &tid);
	if (t && wakers_known() && b->state == MS_RUN_BLOCKED)
		waker_switch_in(t, task, tid, &off);
	if (cfg_objects && t && t->object.lo && b->state == MS_RUN_BLOCKED)
		object_switch_in(t, task, &off);
	if (t && t->lock | t->owned)
		lock_switch_in(t, task, tid, &off);
}

/*
 * The wait that ends is the first one in another slot of time than those that the sites have accumulated: they
 * are added to their totals. What of it was before the slot is noted. (The scheduler's clock and that of slots
 * differ by ahead_ns, as when the thread was last sampled.)
 */
static __noinline void wait_sampler_turn(struct ms_sampled_thread *b, const struct task_struct *task,
					 __u64 clock_ns, __u64 ns, __u64 runnable_ns)
{
	__u64 at, before, cgroup_id;

	if (!b)
		return;
	cgroup_id = task_cgroup(task);
	for (int i = 0; i < MS_WAIT_SITES; i++)
		wait_site_flush(b, i, cgroup_id);
	at = slots_since(clock_ns + b->ahead_ns) % MS_SLOT_NS;
	b->slot = slot_of_wait(clock_ns + b->ahead_ns, ns, &before);
	b->until_ns = clock_ns + MS_SLOT_NS - at;
	b->reached = b->site % MS_WAIT_SITES;
	b->runnable_before = runnable_ns > at ? runnable_ns - at : 0;
	b->blocked_before = before - b->runnable_before;
}

/* It comes to a CPU, or came there at clock_ns. `could_ns`: how long it was runnable. */
static __always_inline void wait_sampler_in(struct ms_sampled_thread *b,
					    const struct task_struct *task, __u64 clock_ns,
					    __u64 could_ns, __u64 rq_ns)
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
		if (clock_ns >= b->until_ns)
			wait_sampler_turn(b, task, clock_ns, ns, runnable_ns);
		wait_site_leave(b, ns, runnable_ns);
		if (b->reassigned)
			wait_sampler_reassign(b, task, clock_ns, ns - runnable_ns, runnable_ns);
		if (b->drawn)
			wait_sampler_ends(b, task, clock_ns, ns - runnable_ns, rq_ns);
	}
	b->drawn = 0;
	b->state = MS_RUN_ON_CPU;
	b->since_ns = clock_ns;
}

#endif
