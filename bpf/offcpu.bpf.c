/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source: off-CPU. Each switch ends one interval of the thread that leaves and one of the thread
 * that comes:
 *
 *   on a CPU ──(switch out, state ≠ RUNNING)──► blocked ──(wake-up)──► runnable ──(switch in)──► on a CPU
 *        └─────(switch out, still RUNNING: preempted or yielded)──────► runnable ──┘
 *
 * Blocked time belongs to the stack where the thread left the CPU, and so does the runnable time
 * after it: the wait began there. "Still RUNNING" is read from the task's state, because the
 * preempt flag alone misses most of it (two spinning threads on one CPU: all switches have state R
 * and preempt false).
 *
 * Changes of one thread are serialised by the scheduler (its run queue's lock), so its entry needs
 * no atomics.
 */
#include "bench.bpf.h"
#include "common.bpf.h"
#include "descriptors.bpf.h"
#include "emit.bpf.h"
#include "labels.bpf.h"
#include "locks.bpf.h"
#include "runqueue.bpf.h"
#include "slices.h"
#include "stack.bpf.h"
#include "wait_sampler.bpf.h"
#include "wakers.bpf.h"
#include "walk/deferred.bpf.h"

#define TASK_RUNNING_STATE 0
#define TASK_TRACED_STATE  0x08 /* linux/sched.h: __TASK_TRACED */
#define TASK_DEAD_STATE    0x80 /* linux/sched.h: TASK_DEAD */

/* A part of a wait that ended at `end_ns`; `count`: for how many it stands. */
static __always_inline void wait_emit(const struct ms_thread *t, const struct task_struct *task,
				      __u32 tid, enum ms_state state, __u64 count, __u64 end_ns,
				      __u64 ns)
{
	struct wait_begun *w = wait_begun_here();
	__u64 before;

	if (!w)
		return;
	__builtin_memset(&w->key, 0, sizeof(w->key));
	w->key.source = MS_OFFCPU;
	w->key.state = state;
	w->key.slot = slot_of_wait(end_ns, ns, &before);
	w->key.tid = tid;
	w->key.as_gen = t->as_gen;
	w->key.bucket = t->labels;
	w->key.proc = t->proc;
	w->key.user = t->user;
	w->key.kernel = t->kernel;
	emit_add_all(MS_LANE_TASK, &w->key, task, 0, count, ns, before);
}

/* Of the source's slices: the present one, the time by their clock, and for how many waits one of now stands. */
static __always_inline const volatile struct ms_slice *wait_slice(void)
{
	return &wait_slices[wait_slice_no & 1];
}

static __always_inline __u64 wait_clock_ns(void)
{
	return slice_clock(wait_slice(), bpf_ktime_get_ns());
}

static __always_inline __u64 waits_for(__u64 n)
{
	return n << wait_slice()->shift % 32;
}

/* Of a thread that leaves its CPU, this time is one of them. */
static __always_inline __u32 task_switches(const struct task_struct *task)
{
	return (__u32)(BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw));
}

/* A thread not seen before: known from now on. An existing entry stays. */
static __always_inline struct ms_thread *thread_add_from(struct ms_thread *fresh, __u32 tid,
							 const struct task_struct *task,
							 const struct ms_proc *proc, __u64 now_ns,
							 enum ms_run_state state)
{
	__builtin_memset(fresh, 0, sizeof(*fresh));
	fresh->first_ns = fresh->since_ns = now_ns;
	fresh->slice = wait_slice_no;
	fresh->csw = task_switches(task);
	fresh->state = state;
	fresh->proc = *proc;
	fresh->ns_tid = task_ns_tid(task);
	ns_thread_add(fresh, tid);
	if (bpf_map_update_elem(&threads, &tid, fresh, BPF_NOEXIST) &&
	    !bpf_map_lookup_elem(&threads, &tid)) {
		stat_inc(STAT_THREADS_FULL);
		return NULL;
	}
	return bpf_map_lookup_elem(&threads, &tid);
}

/* The same where preemption is off. */
static __always_inline struct ms_thread *thread_add(__u32 tid, const struct task_struct *task,
						    const struct ms_proc *proc, __u64 now_ns,
						    enum ms_run_state state)
{
	struct wait_begun *w = wait_begun_here();

	return w ? thread_add_from(&w->fresh, tid, task, proc, now_ns, state) : NULL;
}

/* Does a wait of that length pass --min-block and --max-block? If not, it is counted. */
static __always_inline bool wait_in_bounds(__u64 ns)
{
	if (ns >= cfg_wait_min_ns && ns <= cfg_wait_max_ns)
		return true;
	stat_inc(STAT_WAITS_LEFT_OUT);
	stat_add(STAT_WAITS_LEFT_OUT_NS, ns);
	return false;
}

/* A thread comes to a CPU at `in_ns`: ends the wait. */
static __always_inline void wait_end(struct ms_thread *t, const struct task_struct *task, __u32 tid,
				     __u64 in_ns, __u64 now_ns, __u64 clock_ns)
{
	__u64 runnable_from = t->since_ns, since_ns = t->since_ns;
	bool in_bounds = t->state == MS_RUN_HELD || wait_in_bounds(in_ns - t->since_ns);

	if (t->state == MS_RUN_HELD) {
		t->held_ns += in_ns - t->since_ns;
		runnable_from = in_ns;
	} else if (t->state == MS_RUN_BLOCKED) {
		runnable_from = t->wake_ns ?: in_ns;
		t->blocked_ns += runnable_from - t->since_ns;
		if (in_bounds)
			wait_emit(t, task, tid, MS_BLOCKED, waits_for(1), runnable_from,
				  runnable_from - t->since_ns);
	}
	if (in_ns > runnable_from) {
		t->runnable_ns += in_ns - runnable_from;
		if (in_bounds)
			wait_emit(t, task, tid, MS_RUNNABLE, waits_for(1), in_ns,
				  in_ns - runnable_from);
	}
	if (in_bounds) {
		const struct off_cpu off = { since_ns, in_ns, runnable_from - since_ns, 1,
					     wait_slice()->shift };

		if (wakers_known() && t->state == MS_RUN_BLOCKED)
			waker_switch_in(t, task, tid, &off);
		if (cfg_objects && t->object.lo && t->state == MS_RUN_BLOCKED)
			object_switch_in(t, task, &off);
		if (t->lock | t->owned)
			lock_switch_in(t, task, tid, &off);
		if (cfg_run_delays && clock_ns)
			runqueue_wait_end(task, &t->proc,
					  (in_ns - runnable_from) >> wait_slice()->shift % 32,
					  waits_for(1), clock_ns);
	}
	stat_inc(STAT_OFFCPU_WAITS);
	t->state = MS_RUN_ON_CPU;
	t->since_ns = in_ns;
}

/* By the scheduler's account it was runnable for `could_ns` before it ran. */
static __always_inline void wait_woken(struct ms_thread *t, __u64 could_ns, __u64 now_ns)
{
	if (t->state == MS_RUN_BLOCKED && could_ns)
		t->wake_ns = could_ns < now_ns - t->since_ns ? now_ns - could_ns : t->since_ns;
}

/*
 * A thread leaves a CPU without having been seen to come: the kernel skips a tracepoint now and
 * then. The scheduler keeps what a thread had run before it was picked (set_next_entity()), which
 * gives the time since it came, and how long it was runnable before, since it left a CPU the last time. Only
 * the fair class keeps the first; for others, a wait that ended with a wake-up is known, and the rest is counted
 * nowhere.
 */
static __always_inline void switch_in_missed(struct ms_thread *t, const struct task_struct *task,
					     __u32 tid, __u64 now_ns)
{
	__u64 from_ns = t->state == MS_RUN_BLOCKED && t->wake_ns ? t->wake_ns : t->since_ns;
	__u64 before_ns = BPF_CORE_READ(task, se.prev_sum_exec_runtime);
	__u64 oncpu_ns = waits_for(BPF_CORE_READ(task, se.sum_exec_runtime) - before_ns);

	if (before_ns && oncpu_ns <= now_ns - from_ns) {
		stat_inc(STAT_SWITCH_INFERRED);
		if (cfg_sched_account)
			wait_woken(
				t,
				waits_for(BPF_CORE_READ(task, sched_info.run_delay) - t->delay_ns),
				now_ns - oncpu_ns);
		wait_end(t, task, tid, now_ns - oncpu_ns, now_ns, 0);
		return;
	}
	stat_inc(STAT_SWITCH_MISSED);
	if (t->state != MS_RUN_BLOCKED || !t->wake_ns)
		return;
	t->blocked_ns += t->wake_ns - t->since_ns;
	if (wait_in_bounds(t->wake_ns - t->since_ns))
		wait_emit(t, task, tid, MS_BLOCKED, waits_for(1), t->wake_ns,
			  t->wake_ns - t->since_ns);
}

/* What a thread was in ended at `at_ns`, nobody knows how: its time counts, and no wait. */
static __always_inline void thread_close(struct ms_thread *t, const struct task_struct *task,
					 __u32 tid, __u64 at_ns)
{
	__u64 ns = at_ns > t->since_ns ? at_ns - t->since_ns : 0, none = 0;

	/* Of a constant 0 clang makes an atomic |= 0 where it is added, which kernels before 5.12 do not know. */
	asm volatile("" : "+r"(none));
	if (t->state == MS_RUN_ON_CPU) {
		t->oncpu_ns += ns;
	} else if (t->state == MS_RUN_BLOCKED) {
		t->blocked_ns += ns;
		wait_emit(t, task, tid, MS_BLOCKED, none, at_ns, ns);
	} else if (t->state == MS_RUN_RUNNABLE) {
		t->runnable_ns += ns;
		wait_emit(t, task, tid, MS_RUNNABLE, none, at_ns, ns);
	}
}

/*
 * A thread is seen for the first time in this slice: it is `now` in that state since its `csw`th switch. Where that is what it was
 * last seen in, nothing happened to it meanwhile. `where`: as task_where() says, 0 where nobody knows. true: it is in another wait, or came to a CPU or left one.
 */
static __noinline bool thread_resume(struct ms_thread *t, const struct task_struct *task, __u32 csw,
				     __u32 now, __u32 where)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	__u64 at_ns = wait_slice()->at_ns;
	bool same;

	if (!t || t->state == MS_RUN_GONE || t->state == MS_RUN_SAMPLED)
		return false;
	same = t->csw == csw && (t->state == MS_RUN_ON_CPU) == (now == MS_RUN_ON_CPU);
	t->slice = wait_slice_no;
	t->csw = csw;
	if (same)
		return false;
	thread_close(t, task, tid, at_ns);
	if (t->since_ns < at_ns)
		t->since_ns = at_ns;
	t->state = now;
	t->wake_ns = t->lock = t->owned = t->labels = 0;
	/* What it was queued between two slices is of other waits. */
	if (cfg_sched_account)
		t->delay_ns = BPF_CORE_READ(task, sched_info.run_delay);
	t->waker.lo = t->waker.hi = t->object.lo = t->object.hi = 0;
	if (now == MS_RUN_ON_CPU || !t->where || t->where != where) {
		t->user.lo = t->user.hi = t->kernel.lo = t->kernel.hi = 0;
		t->where = 0;
	}
	return true;
}

/* A tracer is its tracee's parent. A thread stopped by a debugger is blocked like any other. */
static __always_inline bool held_by_us(const struct task_struct *task, __u32 state)
{
	return (state & TASK_TRACED_STATE) && cfg_self &&
	       (__u32)BPF_CORE_READ(task, parent, tgid) == cfg_self;
}

/* A launched command held by memscope is still our child, and has not yet called exec. */
static __always_inline bool is_before_exec(const struct task_struct *task)
{
	return cfg_self && (__u32)BPF_CORE_READ(task, real_parent, tgid) == cfg_self &&
	       BPF_CORE_READ(task, self_exec_id) == BPF_CORE_READ(task, real_parent, self_exec_id);
}

/* The stacks of the current task, which leaves its CPU. Nothing can take over the scratch: only
 * this program uses it, and it is not preempted. */
static __always_inline void wait_stacks(void *ctx, struct wait_begun *w)
{
	struct stack_of of = {
		.source = MS_OFFCPU, .slot = SCRATCH_SWITCH, .may_trap = true, .once = true
	};

	if (!w)
		return;
	of.proc = &w->proc;
	of.as_gen = w->as_gen;
	w->user.lo = w->user.hi = w->kernel.lo = w->kernel.hi = 0;
	if (cfg_user_stacks)
		stack_capture(ctx, &of, &w->user);
	of.flags = MS_STACK_KERNEL | MS_STACK_AT_SWITCH;
	if (cfg_kernel_stacks)
		stack_capture(ctx, &of, &w->kernel);
	bench_end(MS_OFFCPU, w->now_ns);
}

static __always_inline bool is_runnable(bool preempt, __u32 prev_state)
{
	return preempt || prev_state == TASK_RUNNING_STATE;
}

/* true: a wait has begun, and its stacks are wanted. */
static __always_inline bool switch_out(struct wait_begun *w, struct task_struct *prev, bool preempt,
				       __u32 prev_state, __u64 now_ns)
{
	__u32 tid = BPF_CORE_READ(prev, pid);
	struct ms_target *target;
	struct ms_thread *t;

	if (!target_wants(prev, BPF_CORE_READ(prev, tgid), tid, &target, &w->proc))
		return false;
	stat_inc(STAT_OFFCPU_SWITCHES);
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t) {
		/* Not seen before: when it came to this CPU is unknown. */
		t = thread_add(tid, prev, &w->proc, now_ns, MS_RUN_ON_CPU);
		if (!t)
			return false;
	}
	if (t->slice != wait_slice_no)
		thread_resume(t, prev, task_switches(prev) - 1, MS_RUN_ON_CPU, 0);
	if (t->state == MS_RUN_GONE || t->state == MS_RUN_SAMPLED)
		return false; /* the old leader, whose tid an exec has given away */
	if (t->state != MS_RUN_ON_CPU)
		switch_in_missed(t, prev, tid, now_ns);
	if (t->state == MS_RUN_ON_CPU)
		t->oncpu_ns += now_ns - t->since_ns;
	t->since_ns = now_ns;
	t->wake_ns = 0;
	t->csw = task_switches(prev);
	t->switches++;
	wait_sampler_notice(t, now_ns);
	t->as_gen = target_as_gen(target);
	t->proc = w->proc;
	if (prev_state & TASK_DEAD_STATE) {
		t->state = MS_RUN_GONE;
		return false;
	}
	if (held_by_us(prev, prev_state)) {
		t->state = MS_RUN_HELD;
		return false;
	}
	t->state = is_runnable(preempt, prev_state) ? MS_RUN_RUNNABLE : MS_RUN_BLOCKED;
	w->as_gen = t->as_gen;
	w->now_ns = now_ns;
	return true;
}

/* The stacks of that wait have been captured. */
static __always_inline void switch_out_taken(struct wait_begun *w, struct ms_thread *t,
					     const struct task_struct *prev, __u32 where,
					     bool blocked)
{
	__u32 tid = BPF_CORE_READ(prev, pid);

	t->user = w->user;
	t->kernel = w->kernel;
	t->where = where;
	t->as_gen = w->as_gen;
	t->labels = labels_now(&w->proc, SCRATCH_SWITCH);
	lock_switch_out(w, prev, t, tid, blocked, w->now_ns);
	if (cfg_objects && blocked)
		object_wait_begin(w, prev, t);
}

static __always_inline struct ms_thread *thread_of(const struct task_struct *task)
{
	__u32 tid = BPF_CORE_READ(task, pid);

	return tid ? bpf_map_lookup_elem(&threads, &tid) : NULL;
}

/* `typed`: the kernel says of what type `next` is, so that it may be asked where it is in user space. */
static __always_inline struct ms_thread *switch_in(struct task_struct *next, bool typed)
{
	struct ms_thread *t = thread_of(next);

	if (t && t->slice != wait_slice_no)
		thread_resume(t, next, task_switches(next), MS_RUN_BLOCKED,
			      typed ? task_where(next) : 0);
	return t && t->state != MS_RUN_ON_CPU && t->state != MS_RUN_GONE &&
			       t->state != MS_RUN_SAMPLED
		       ? t
		       : NULL;
}

static __always_inline void on_wakeup(struct task_struct *task, bool fresh)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	struct ms_thread *t = bpf_map_lookup_elem(&threads, &tid);
	__u64 now_ns = wait_clock_ns();
	struct ms_target *target;
	struct ms_proc proc;

	if (fresh) {
		/* A new thread: runnable from the start, without a stack. An entry under its tid
		 * belongs to a thread that has ended. */
		if (!target_wants(task, BPF_CORE_READ(task, tgid), tid, &target, &proc))
			return;
		if (t)
			bpf_map_delete_elem(&threads, &tid);
		thread_add(tid, task, &proc, now_ns, MS_RUN_RUNNABLE);
	} else if (gate_open && t && t->state == MS_RUN_BLOCKED && !t->wake_ns) {
		t->wake_ns = now_ns;
	}
}

enum wait_sampler_does {
	WAIT_SAMPLER_COUNT,  /* count the wait at its site                */
	WAIT_SAMPLER_SAMPLE, /* the same, and sample its stack            */
	WAIT_SAMPLER_NONE,   /* the thread is no longer sampled           */
};

/* A sampled thread leaves a CPU. */
static __always_inline enum wait_sampler_does wait_sampler_switch_out(
	struct wait_begun *w, struct ms_sampled_thread *b, struct task_struct *prev, bool preempt,
	__u32 prev_state, __u64 clock_ns)
{
	struct ms_target *target;

	/* Not seen to come: treated like a thread that is not sampled. */
	if (b->state != MS_RUN_ON_CPU)
		return WAIT_SAMPLER_NONE;
	wait_sampler_on_cpu(b, clock_ns);
	if (prev_state & (TASK_DEAD_STATE | TASK_TRACED_STATE))
		return WAIT_SAMPLER_NONE;
	if (!wait_sampler_out(b, prev, is_runnable(preempt, prev_state), clock_ns))
		return WAIT_SAMPLER_COUNT;
	if (!target_wants(prev, prev->tgid, prev->pid, &target, &w->proc)) {
		b->state = MS_RUN_ON_CPU;
		return WAIT_SAMPLER_NONE;
	}
	w->as_gen = target_as_gen(target);
	w->now_ns = b->shift ? clock_ns : bpf_ktime_get_ns();
	b->ahead_ns = w->now_ns - clock_ns;
	return WAIT_SAMPLER_SAMPLE;
}

/*
 * A switch at `rq_ns` of the scheduler's clock. 0: between two slices; else the times by the slices' clock are in w. A global function, which
 * the verifier looks at alone: a branch here, whose outcome lives on, would double all that follows for it.
 */
__noinline int switch_in_slice(__u64 rq_ns)
{
	const volatile struct ms_slice *slice = wait_slice();
	struct wait_begun *w = wait_begun_here();

	if (!w)
		return 0;
	w->real_ns = w->sliced_ns = 0;
	w->clock_ns = rq_ns;
	if (!slice->shift)
		return 1;
	w->real_ns = bpf_ktime_get_ns();
	w->clock_ns = w->sliced_ns = slice_clock(slice, w->real_ns);
	return slice_has(slice, w->real_ns);
}

/* prev_state: the tracepoint's argument where it has one (see config.bpf.h); the task's own field
 * may already show it woken. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_btf, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	enum wait_sampler_does does = WAIT_SAMPLER_NONE;
	const volatile struct ms_slice *slice;
	struct ms_sampled_thread *b;
	struct wait_begun *w;
	struct ms_thread *t;
	__u64 rq_ns, clock_ns, now_ns;
	__u32 prev_state;

	if (!gate_open || waits_rest)
		return 0;
	prev_state = cfg_switch_has_state ? (__u32)ctx[3] : task_state(prev);
	rq_ns = cfg_sched_account ? rq_clock(prev) : 0;
	slice = wait_slice();
	w = wait_begun_here();
	if (!w || !switch_in_slice(rq_ns))
		return 0;
	clock_ns = w->clock_ns;
	now_ns = w->sliced_ns;
	if (cfg_run_delays) {
		if (!cfg_sched_account)
			rq_ns = bpf_ktime_get_ns();
		runqueue_note(next, rq_ns);
	}
	b = wait_sampler_find(prev->pid);
	if (wait_sampler_is(b) && b->slice != wait_slice_no)
		wait_sampler_end(b, prev);
	if (wait_sampler_is(b)) {
		does = wait_sampler_switch_out(w, b, prev, preempt, prev_state, clock_ns);
		if (does == WAIT_SAMPLER_NONE)
			wait_sampler_end(b, prev);
	}
	/* After on_sampled_exit() it may have waited once more, and been given a slot again. */
	if (b && prev_state & TASK_DEAD_STATE)
		wait_sampler_give_back(prev->pid);
	/* Read once, before stacks are captured: the scheduler charges all that follows to the next
	 * thread. */
	if (does != WAIT_SAMPLER_COUNT && !now_ns)
		now_ns = does == WAIT_SAMPLER_SAMPLE ? w->now_ns : wait_clock_ns();
	if (does == WAIT_SAMPLER_SAMPLE ||
	    (does == WAIT_SAMPLER_NONE && switch_out(w, prev, preempt, prev_state, now_ns))) {
		wait_stacks(ctx, w);
		b = wait_sampler_find(prev->pid);
		t = thread_of(prev);
		if (t && (!wait_sampler_is(b) || t->state == MS_RUN_SAMPLED))
			switch_out_taken(w, t, prev, task_where(prev),
					 !is_runnable(preempt, prev_state));
		if (wait_sampler_is(b)) {
			wait_sampler_sampled(b, w, prev, clock_ns);
		} else if (t) {
			if (cfg_sched_account) {
				t->delay_ns = prev->sched_info.run_delay;
				t->ahead_ns = (w->real_ns ?: now_ns) - rq_ns;
			}
		}
	}

	b = wait_sampler_find(next->pid);
	if (wait_sampler_is(b) && b->slice != wait_slice_no)
		wait_sampler_end(b, next);
	if (wait_sampler_is(b)) {
		if (b->state != MS_RUN_ON_CPU)
			wait_sampler_in(b, next, clock_ns,
					queued_ns(next, b->delay_ns, rq_ns) << slice->shift % 32,
					rq_ns);
		return 0;
	}
	t = switch_in(next, true);
	if (!t)
		return 0;
	if (!now_ns)
		now_ns = wait_clock_ns();
	if (cfg_sched_account)
		wait_woken(t, queued_ns(next, t->delay_ns, rq_ns) << slice->shift % 32, now_ns);
	wait_end(t, next, next->pid, now_ns, now_ns, rq_ns);
	if (cfg_wait_sampler && t->often)
		wait_sampler_begin(t, next, clock_ns, now_ns);
	return 0;
}

SEC("raw_tp/sched_switch")
int on_switch_raw(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *prev = (void *)ctx->args[1], *next = (void *)ctx->args[2];
	__u32 prev_state = cfg_switch_has_state ? (__u32)ctx->args[3] : task_state(prev);
	__u64 now_ns = bpf_ktime_get_ns();
	struct wait_begun *w = wait_begun_here();
	struct ms_thread *t;

	if (!gate_open || !w)
		return 0;
	if (cfg_run_delays)
		runqueue_note_raw(next, now_ns);
	if (switch_out(w, prev, ctx->args[0], prev_state, now_ns)) {
		wait_stacks(ctx, w);
		t = thread_of(prev);
		if (t)
			switch_out_taken(w, t, prev, 0, !is_runnable(ctx->args[0], prev_state));
	}
	t = switch_in(next, false);
	if (t)
		wait_end(t, next, BPF_CORE_READ(next, pid), now_ns, now_ns, now_ns);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup_btf, struct task_struct *task)
{
	on_wakeup(task, false);
	return 0;
}

SEC("raw_tp/sched_wakeup")
int on_wakeup_raw(struct bpf_raw_tracepoint_args *ctx)
{
	on_wakeup((void *)ctx->args[0], false);
	return 0;
}

/* Runs in whoever wakes the task: sched_wakeup may run elsewhere. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking_btf, struct task_struct *task)
{
	const struct ms_sampled_thread *b;

	if (!gate_open || waits_rest)
		return 0;
	b = wait_sampler_find(task->pid);
	/* The present wait of a sampled thread has no stack. */
	if (!(wait_sampler_is(b) && !b->drawn))
		waker_note(ctx, task->pid);
	return 0;
}

SEC("raw_tp/sched_waking")
int on_waking_raw(struct bpf_raw_tracepoint_args *ctx)
{
	if (gate_open)
		waker_note(ctx, BPF_CORE_READ((struct task_struct *)ctx->args[0], pid));
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new_btf, struct task_struct *task)
{
	on_wakeup(task, true);
	return 0;
}

SEC("raw_tp/sched_wakeup_new")
int on_wakeup_new_raw(struct bpf_raw_tracepoint_args *ctx)
{
	on_wakeup((void *)ctx->args[0], true);
	return 0;
}

/*
 * A thread other than the leader calls exec: the leader is made to exit, and the thread goes on
 * under the leader's tid. Its own tid ends here.
 */
static __always_inline void on_exec(struct task_struct *task, __u32 old_tid)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	__u64 now_ns = wait_clock_ns();
	struct ms_target *target;
	struct ms_thread *t;
	struct ms_proc proc;

	if (old_tid == tid || !target_wants(task, tid, tid, &target, &proc))
		return;
	t = bpf_map_lookup_elem(&threads, &old_tid);
	if (t && t->state != MS_RUN_GONE) {
		t->oncpu_ns += now_ns - t->since_ns;
		t->since_ns = now_ns;
		t->state = MS_RUN_GONE;
	}
	t = bpf_map_lookup_elem(&threads, &tid);
	if (t) {
		t->since_ns = now_ns;
		t->csw = task_switches(task);
		t->state = MS_RUN_ON_CPU;
	} else {
		thread_add(tid, task, &proc, now_ns, MS_RUN_ON_CPU);
	}
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec_btf, struct task_struct *task, pid_t old_tid)
{
	struct ms_sampled_thread *b = wait_sampler_find((__u32)old_tid);

	if (gate_open && wait_sampler_is(b))
		wait_sampler_end(b, task);
	if (old_tid != task->pid)
		wait_sampler_give_back((__u32)old_tid);
	on_exec(task, (__u32)old_tid);
	return 0;
}

static __always_inline void thread_gone(const struct task_struct *task)
{
	struct ms_thread *t = thread_of(task);
	__u64 now_ns = wait_clock_ns();
	__u32 tid = task->pid;

	if (!t || t->state == MS_RUN_GONE)
		return;
	if (t->slice != wait_slice_no)
		thread_resume(t, task, task_switches(task), MS_RUN_ON_CPU, 0);
	thread_close(t, task, tid, now_ns);
	if (t->since_ns < now_ns)
		t->since_ns = now_ns;
	t->state = MS_RUN_GONE;
}

/* Before drain.c sees that the thread has ended, its sampled sums must be in `threads`. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_sampled_exit, struct task_struct *task)
{
	struct ms_sampled_thread *b = wait_sampler_find(task->pid);

	if (!gate_open)
		return 0;
	if (b && wait_sampler_is(b))
		wait_sampler_end(b, task);
	if (b)
		wait_sampler_give_back(task->pid);
	/* Its last switch may be between two slices. */
	if (wait_slice()->shift)
		thread_gone(task);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int on_exec_raw(struct bpf_raw_tracepoint_args *ctx)
{
	on_exec((void *)ctx->args[0], (__u32)ctx->args[1]);
	return 0;
}

/* Of a thread that waits, in a task iterator: the kernel's frames, and of its own what user space needs to walk them. */
static __always_inline void blocked_stacks(struct task_struct *task, struct ms_thread *t,
					   const struct ms_proc *proc)
{
	__u32 slot = SCRATCH_LIST;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	long len;

	if (!s)
		return;
	s->owner = bpf_get_current_pid_tgid();
	if (cfg_unwind && cfg_user_stacks && task->mm &&
	    bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs) &&
	    walk_regs(&s->walk, task, (void *)bpf_task_pt_regs(task), false, false)) {
		s->proc = *proc;
		walk_take_lang(slot, task);
		deferred_send_blocked(s, task->pid, task_switches(task), t->as_gen, &t->user);
	}
	if (!cfg_kernel_stacks)
		return;
	len = bpf_get_task_stack(task, s->frames, LIST_MAX * sizeof(__u64), 0);
	stack_store_list(s, slot, MS_LANE_TASK, len, MS_STACK_KERNEL | MS_STACK_AT_SWITCH,
			 MS_COMPLETE, &t->kernel);
}

/*
 * Threads that exist at the start: recorded here, so that a wait which began before the run counts
 * from its beginning even if it never ends. A thread that had an event since attach is known
 * already. The kernel stack of a waiting thread can be read from here, its user stack by user
 * space.
 */
SEC("iter/task")
int list_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct ms_thread fresh;
	struct ms_task out = {};
	struct ms_target *target;
	struct ms_thread *t;

	if (!task || task->exit_state ||
	    !target_wants(task, task->tgid, task->pid, &target, &out.proc))
		return 0;
	out.seen_ns = bpf_ktime_get_ns();
	out.tid = task->pid;
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	if (!cfg_threads || bpf_map_lookup_elem(&threads, &out.tid))
		return 0;
	t = thread_add_from(&fresh, out.tid, task, &out.proc, wait_clock_ns(),
			    task->on_cpu                             ? MS_RUN_ON_CPU
			    : task_state(task) == TASK_RUNNING_STATE ? MS_RUN_RUNNABLE
								     : MS_RUN_BLOCKED);
	if (!t || t->state != MS_RUN_BLOCKED)
		return 0;
	if (held_by_us(task, task_state(task)) || is_before_exec(task)) {
		t->state = MS_RUN_HELD;
		return 0;
	}
	t->as_gen = target_as_gen(target);
	if (cfg_sched_account)
		t->delay_ns = task->sched_info.run_delay;
	blocked_stacks(task, t, &out.proc);
	return 0;
}

/*
 * When a slice has begun: threads that were not seen in it yet, and what they are in. Where such a thread waits at another place than when it was last
 * seen, its stack is sent, of resume_looks of them.
 */
SEC("iter/task")
int resume_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 state, csw, tid;
	struct ms_target *target;
	struct ms_thread *t;
	struct ms_proc proc;

	if (!task || task->exit_state)
		return 0;
	tid = task->pid;
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t || t->slice == wait_slice_no)
		return 0;
	csw = task_switches(task);
	state = task->on_cpu                             ? MS_RUN_ON_CPU
		: task_state(task) == TASK_RUNNING_STATE ? MS_RUN_RUNNABLE
							 : MS_RUN_BLOCKED;
	if (t->state == MS_RUN_SAMPLED) {
		struct ms_sampled_thread *b = wait_sampler_find(tid);

		if (!wait_sampler_is(b) || b->slice == wait_slice_no)
			return 0;
		wait_sampler_end(b, task);
	}
	/* Else it has just switched, and was seen. */
	if (csw != task_switches(task) || t->slice == wait_slice_no ||
	    !thread_resume(t, task, csw, state, task_where(task)) || state != MS_RUN_BLOCKED ||
	    t->where)
		return 0;
	if (cfg_sched_account)
		t->delay_ns = task->sched_info.run_delay;
	if (resume_looks <= 0 || !target_wants(task, task->tgid, tid, &target, &proc)) {
		stat_inc(STAT_WAITS_UNSEEN);
		return 0;
	}
	__sync_fetch_and_add(&resume_looks, -1);
	t->where = task_where(task);
	t->as_gen = target_as_gen(target);
	t->proc = proc;
	blocked_stacks(task, t, &proc);
	return 0;
}

/*
 * Threads with at least find_switches switches since this last ran are sampled from when they next
 * come to a CPU: those that are too slow to be noticed by themselves (wait_sampler_notice()).
 */
SEC("iter/task")
int find_sampled(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct ms_thread *t;
	__u64 switches;
	__u32 tid;

	if (!task || task->exit_state)
		return 0;
	tid = task->pid;
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t || t->state == MS_RUN_SAMPLED)
		return 0;
	switches = t->switches - t->noted;
	t->noted = t->switches;
	if (switches >= find_switches)
		t->often = 1;
	return 0;
}

/* Writes the records of all sampled threads. */
SEC("iter/task")
int list_sampled(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct ms_sampled_thread *b = task ? wait_sampler_find(task->pid) : NULL;

	if (wait_sampler_is(b))
		bpf_seq_write(ctx->meta->seq, b, sizeof(*b));
	return 0;
}

/*
 * Writes a struct ms_queued for each thread that was woken and has not run since. Where wake-ups
 * come from the scheduler's account, `threads` shows them only when a wait ends. A record is valid
 * if the thread's wait is the same when `threads` is read, after this.
 */
SEC("iter/task")
int list_queued(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct ms_queued out = {};
	__u64 ahead_ns, delay_ns;
	struct ms_thread *t;
	struct ms_sampled_thread *b;

	if (!task || task->exit_state)
		return 0;
	out.tid = task->pid;
	t = bpf_map_lookup_elem(&threads, &out.tid);
	b = wait_sampler_find(out.tid);
	if (wait_sampler_is(b)) {
		if (b->state != MS_RUN_BLOCKED || b->shift)
			return 0;
		ahead_ns = b->ahead_ns;
		delay_ns = b->delay_ns;
		out.since_ns = b->since_ns + ahead_ns;
	} else {
		if (!t || t->state != MS_RUN_BLOCKED || !t->ahead_ns)
			return 0;
		ahead_ns = t->ahead_ns;
		delay_ns = t->delay_ns;
		out.since_ns = t->since_ns;
	}
	out.wake_ns = task->sched_info.last_queued;
	if (!out.wake_ns)
		return 0;
	out.wake_ns += ahead_ns - (task->sched_info.run_delay - delay_ns);
	out.wake_ns = slice_clock(wait_slice(), out.wake_ns);
	if (out.wake_ns < out.since_ns)
		out.wake_ns = out.since_ns;
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
