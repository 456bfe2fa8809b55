/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who ended a wait. Each wait ends in try_to_wake_up(), which whoever ends it calls: at its tracepoint sched_waking the
 * waker is the current task, and its stack says why. What it was is noted in the waiting thread's entry in `threads`, and
 * when that thread comes to a CPU its wait is added to the total of (where it waited, who woke it).
 *
 *   waker   hash ─► struct ms_waker_rec: process, stacks, name         sent once, as stacks are
 *   wait    hash ─► struct ms_ended_rec: where in the kernel, waker
 *
 * In an interrupt the current task is whoever lost its CPU. Which it is the stack says: frames of code that interrupts lead
 * to (the section .irqentry.text) are above those of the task. Bottom halves that a task runs itself, on its way out of the
 * network's code for one, have no such frame, and are that task's doing.
 *
 * Of threads whose waits are sampled, this is of the waits whose stack is.
 */
#ifndef MEMSCOPE_WAKERS_BPF_H
#define MEMSCOPE_WAKERS_BPF_H

#include "common.bpf.h"
#include "emit.bpf.h"
#include "locks.bpf.h"
#include "stack.bpf.h"

/* Adds `n` words at `words` to a hash. */
#define HASH_WORDS(h, words, n)                                                                    \
	do {                                                                                       \
		for (int hash_i = 0; hash_i < (int)(n); hash_i++)                                  \
			ms_hash_step(h, ((const __u64 *)(words))[hash_i]);                         \
		ms_hash_end(h, n);                                                                 \
	} while (0)

/* Is the program at sched_waking attached? */
static __always_inline bool wakers_known(void)
{
	return cfg_wakers && interrupts_to;
}

/* Sends a record that user space does not have yet. false: it does not have it. */
static __always_inline bool record_send(const void *rec, __u32 size, const struct ms_hash *hash)
{
	__u8 one = 1;

	if (bpf_map_lookup_elem(&seen, hash))
		return true;
	if (bpf_ringbuf_output(&events, (void *)rec, size, events_wake()))
		return false;
	bpf_map_update_elem(&seen, hash, &one, BPF_ANY);
	return true;
}

/* How many of the `n` kernel frames in the scratch are an interrupt's; 0: there is none. */
__noinline int waker_interrupt_frames(__u32 n)
{
	__u64 from = interrupts_from, bytes = interrupts_to - from;
	__u32 slot = SCRATCH_WAKING;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);

	if (!s)
		return 0;
	for (__u32 i = 0; i < LIST_MAX; i++) {
		if (i >= n)
			break;
		if (s->frames[i] - from < bytes)
			return (int)i + 1;
	}
	return 0;
}

/* The kernel's frames of what runs now. true: it is an interrupt. */
static __always_inline bool waker_kernel_stack(void *ctx, struct ms_hash *ret_hash)
{
	__u32 slot = SCRATCH_WAKING, n;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	int of_interrupt;
	long len;

	if (!s)
		return false;
	s->owner = bpf_get_current_pid_tgid();
	len = bpf_get_stack(ctx, s->frames, LIST_MAX * sizeof(__u64), 0);
	n = len > 0 ? (__u32)len / sizeof(__u64) : 0;
	of_interrupt = waker_interrupt_frames(n);
	if (of_interrupt > 0)
		n = (__u32)of_interrupt;
	if (cfg_kernel_stacks)
		stack_store_list(s, slot, MS_LANE_TASK, n * sizeof(__u64),
				 MS_STACK_KERNEL | MS_STACK_AT_WAKING, MS_COMPLETE, ret_hash);
	return of_interrupt > 0;
}

/* Of the current task. Another thread of a target's process is one, whichever is watched (-t). */
static __always_inline void waker_task(void *ctx, struct ms_waker_rec *w)
{
	struct stack_of of = { .source = MS_WAKERS, .slot = SCRATCH_WAKING, .may_trap = true, .once = true };
	__u64 id = bpf_get_current_pid_tgid();
	struct ms_target *target;

	bpf_get_current_comm(w->comm, sizeof(w->comm));
	if (!target_wants(NULL, id >> 32, cfg_tid ?: (__u32)id, &target, &w->proc)) {
		current_proc(&w->proc);
		return;
	}
	w->as_gen = of.as_gen = target_as_gen(target);
	of.proc = &w->proc;
	if (cfg_user_stacks)
		stack_capture(ctx, &of, &w->user);
}

/* The current task wakes thread `tid`. If that has not left its CPU yet, the wait that it is about to begin ends with this. */
static __always_inline void waker_note(void *ctx, __u32 tid)
{
	struct ms_thread *t = bpf_map_lookup_elem(&threads, &tid);
	struct ms_waker_rec *w;
	__u32 zero = 0;

	if (!t || t->state == MS_RUN_GONE || t->state == MS_RUN_RUNNABLE || t->state == MS_RUN_HELD)
		return;
	w = bpf_map_lookup_elem(&waker_rooms, &zero);
	if (!w)
		return;
	__builtin_memset(w, 0, sizeof(*w));
	w->kind = MS_EV_WAKER;
	w->interrupt = waker_kernel_stack(ctx, &w->kernel);
	stat_inc(STAT_WAKER_STACKS);
	if (w->interrupt)
		stat_inc(STAT_WAKER_INTERRUPTS);
	else
		waker_task(ctx, w);
	w->hash = (struct ms_hash){ cfg_seed_lo, cfg_seed_hi };
	HASH_WORDS(&w->hash, &w->proc, (sizeof(*w) - __builtin_offsetof(struct ms_waker_rec, proc)) / 8);
	if (record_send(w, sizeof(*w), &w->hash))
		t->waker = w->hash;
	else
		t->waker.lo = t->waker.hi = 0;
}

/* A thread comes to a CPU after it was blocked; before lock_switch_in(), which forgets its lock. */
static __noinline void waker_switch_in(struct ms_thread *t, const struct task_struct *task, __u32 tid,
				       const struct off_cpu *off)
{
	struct wait_begun *w = wait_begun_here();
	struct ms_ended_rec *rec;

	if (!t || !off || !w)
		return;
	rec = &w->ended;
	rec->kind = MS_EV_ENDED;
	rec->pad = 0;
	rec->kernel = t->kernel;
	rec->waker = t->waker;
	rec->lock = t->lock;
	rec->hash = (struct ms_hash){ cfg_seed_lo, cfg_seed_hi };
	HASH_WORDS(&rec->hash, &rec->kernel, 5);
	if (!t->waker.lo)
		stat_add(STAT_WAKER_UNKNOWN, off_count(off));
	t->waker.lo = t->waker.hi = 0;
	if (!record_send(rec, sizeof(*rec), &rec->hash)) {
		stat_add(STAT_WAKER_LOST, off_count(off));
		return;
	}
	__builtin_memset(&w->key, 0, sizeof(w->key));
	w->key.source = MS_WAKERS;
	w->key.state = MS_BLOCKED;
	w->key.tid = tid;
	w->key.as_gen = t->as_gen;
	w->key.proc = t->proc;
	w->key.user = t->user;
	w->key.kernel = rec->hash;
	emit_add(MS_LANE_TASK, &w->key, task, off_count(off), off->weight * off->blocked_ns);
}

#endif
