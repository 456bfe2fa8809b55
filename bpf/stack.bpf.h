/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stack_capture(): walk, store the stack once, return its hash.
 *
 * The walker is chosen here; programs never know which one they use. Kernel: bpf_get_stack. User,
 * in this order:
 *
 *   walk_cfi        by unwind tables, in place; the usual case. Its inputs are remembered;
 *                   while they are unchanged it is not repeated (unwind_cache.bpf.h)
 *   deferred.bpf.h  the kernel has no (current) tables of this process: registers and a copy of the
 *                   stack go to user space, which walks them
 *   walk_fp         where deferring would exceed its rate: frame pointers, and MS_NO_TABLE
 *
 * Each program type brings its own scratch: a perf interrupt may land inside a uprobe program.
 *
 * A uprobe program can also be preempted, and another thread's then uses the same CPU's scratch. So
 * the scratch remembers its owner: a walk that finds another owner at its end is done again, once.
 * A record that was torn on the way out is not marked as sent; user space repeats the hash and
 * throws it away.
 */
#ifndef MEMSCOPE_STACK_BPF_H
#define MEMSCOPE_STACK_BPF_H

#include "common.bpf.h"
#include "walk/walk_cfi.bpf.h"
#include "walk/walk_fp.bpf.h"

/* What to capture, and for whom. */
struct stack_of {
	enum ms_source source;
	__u32 slot;  /* enum scratch_slot */
	__u32 flags; /* MS_STACK_… */
	__u32 as_gen;
	bool may_trap; /* see walk_regs() */
	bool once;     /* nothing can take over the scratch meanwhile: no second walk to verify */
	const struct ms_proc *proc;
};

/* Besides enum ms_verdict: */
#define STACK_NONE    (-3) /* the task has no user side: a kernel thread, in exit or in exec */
#define STACK_TORN    (-1) /* the scratch was taken over: walk again */
#define STACK_DEFERRED (-2) /* user space walks it                     */

static __always_inline enum ms_lane stack_lane(const struct stack_of *of)
{
	return of->slot == SCRATCH_CPU ? MS_LANE_IRQ : MS_LANE_TASK;
}

static __always_inline void verdict_count(enum ms_source source, __u32 verdict)
{
	__u32 key = source * MS_N_VERDICTS + verdict;
	__u64 *slot = bpf_map_lookup_elem(&verdicts, &key);

	if (slot)
		__sync_fetch_and_add(slot, 1);
}

/* Makes a stack of the `n` frames in `s->frames`, with hash `s->hash`. Returns `verdict`. */
static __always_inline int stack_store(struct stack_scratch *s, __u32 slot, enum ms_lane lane, __u32 n,
				       __u32 flags, int verdict, struct ms_hash *ret_hash)
{
	__u64 me = bpf_get_current_pid_tgid();
	struct ms_hash hash = s->hash;

	s->rec.hash = hash;
	s->rec.n_frames = n;
	s->rec.verdict = verdict;
	s->rec.flags = flags;
	walk_send(slot, n, lane);
	if (s->owner != me)
		return STACK_TORN;
	*ret_hash = hash;
	return verdict;
}

/* The same for a list of frames that a kernel helper wrote: `len` bytes, or -errno. */
static __always_inline int stack_store_list(struct stack_scratch *s, __u32 slot, enum ms_lane lane,
					    long len, __u32 flags, int verdict,
					    struct ms_hash *ret_hash)
{
	__u32 n;

	if (len <= 0)
		return MS_LOST;
	n = (__u32)len / sizeof(__u64);
	if (n > LIST_MAX)
		n = LIST_MAX;
	walk_hash_list(slot, n);
	/* The kernel's list ends where the stack does, at its own bound, or at ours. */
	if (n >= LIST_MAX - 1 && verdict != MS_NO_TABLE)
		verdict = MS_TRUNCATED;
	return stack_store(s, slot, lane, n, flags, verdict, ret_hash);
}

static __always_inline int stack_by_fp(void *ctx, struct stack_scratch *s, const struct stack_of *of,
				       int verdict, struct ms_hash *ret_hash)
{
	long len = of->flags & MS_STACK_AT_ENTRY
			   ? walk_fp_entry(ctx, s->frames, LIST_MAX)
			   : walk_fp(ctx, s->frames, LIST_MAX * sizeof(__u64));

	return stack_store_list(s, of->slot, stack_lane(of), len, of->flags, verdict, ret_hash);
}

/* Is `spaces` current for a process: was nothing mapped over it since it was written? Checked
 * before the spaces are read: what is written after the check is newer. */
static __always_inline bool space_holds(__u32 tgid)
{
	__u32 slot = tgid % N_REMAPPED;
	const __u64 *at = bpf_map_lookup_elem(&remapped, &slot);

	return at && *at <= mappings_known_ns;
}

static __always_inline int stack_cached(struct stack_scratch *s, struct ms_hash *ret_hash)
{
	struct ms_hash hash = s->hash;

	if (s->owner != bpf_get_current_pid_tgid())
		return STACK_TORN;
	stat_inc(STAT_STACK_CACHED);
	*ret_hash = hash;
	return MS_COMPLETE;
}

static __always_inline void lang_count(const struct ms_walk *w)
{
	if (w->lang_lost)
		stat_inc(STAT_LANG_LOST);
	if (w->lang_short)
		stat_inc(STAT_LANG_SHORT);
}

static __always_inline int stack_user(void *ctx, struct stack_scratch *s, const struct stack_of *of,
				      struct ms_hash *ret_hash)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct ms_space *space = &s->walk.space, *found;
	__u32 tgid = of->proc->tgid;
	int verdict = MS_NO_TABLE, r;

	s->owner = bpf_get_current_pid_tgid();
	if (!BPF_CORE_READ(task, mm))
		return STACK_NONE;
	s->proc = *of->proc;
	if (!cfg_unwind || !walk_take_current(of->slot, of->may_trap))
		return stack_by_fp(ctx, s, of, MS_GUESSED, ret_hash);
	s->clock_s = *(volatile __u32 *)&clock_s; /* before the spaces are read */
	s->walk.at_entry = (of->flags & MS_STACK_AT_ENTRY) != 0;
	found = space_holds(tgid) ? bpf_map_lookup_elem(&spaces, &tgid) : NULL;
	if (found)
		*space = *found;
	if (found && space->start_ns == of->proc->start_ns &&
	    space->exec_id == of->proc->exec_id) {
		r = walk_stack(of->slot);
		verdict = s->walk.verdict;
		if (r == WALK_CACHED)
			return stack_cached(s, ret_hash);
	}
	/* Late in an exec the old memory is gone, and nothing of the stack is left. */
	if ((verdict == MS_NO_TABLE || verdict == MS_UNREADABLE) &&
	    BPF_CORE_READ_BITFIELD_PROBED(task, in_execve))
		return STACK_NONE;
	if (verdict != MS_NO_TABLE) {
		if (s->walk.lang.lang)
			lang_count(&s->walk);
		verdict = stack_store(s, of->slot, stack_lane(of), s->walk.n, of->flags, verdict, ret_hash);
		if (verdict == MS_COMPLETE)
			walk_remember(of->slot);
		return verdict;
	}
	/* The first walk has used up the registers. */
	walk_take_current(of->slot, of->may_trap);
	r = walk_defer_begin(of->slot);
	if (r == 0) {
		walk_chain(of->slot);
		r = walk_defer(of->slot, of->as_gen, of->source);
	}
	if (r < 0)
		return stack_by_fp(ctx, s, of, MS_NO_TABLE, ret_hash);
	*ret_hash = s->hash;
	return s->owner == bpf_get_current_pid_tgid() ? STACK_DEFERRED : STACK_TORN;
}

static __always_inline int stack_walk(void *ctx, struct stack_scratch *s, const struct stack_of *of,
				      struct ms_hash *ret_hash)
{
	long len;

	if (!(of->flags & MS_STACK_KERNEL))
		return stack_user(ctx, s, of, ret_hash);
	s->owner = bpf_get_current_pid_tgid();
	len = bpf_get_stack(ctx, s->frames, LIST_MAX * sizeof(__u64), 0);
	return stack_store_list(s, of->slot, stack_lane(of), len, of->flags, MS_COMPLETE, ret_hash);
}

static __always_inline int stack_lost(struct ms_hash *ret_hash)
{
	stat_inc(STAT_STACK_LOST);
	ret_hash->lo = ret_hash->hi = 0;
	return MS_LOST;
}

/*
 * Captures one stack of the current task: the kernel's (MS_STACK_KERNEL) or the user's. *ret_hash
 * is all zero when there is none. Verdicts are counted only for user stacks: kernel stacks are
 * complete.
 */
static __always_inline void stack_capture(void *ctx, const struct stack_of *of,
					  struct ms_hash *ret_hash)
{
	__u32 slot = of->slot;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &slot);
	int verdict;

	ret_hash->lo = ret_hash->hi = 0;
	if (!s)
		return;
	verdict = stack_walk(ctx, s, of, ret_hash);
	if (verdict == STACK_TORN && of->once) {
		verdict = stack_lost(ret_hash);
	} else if (verdict == STACK_TORN) {
		stat_inc(STAT_STACK_TORN);
		verdict = stack_walk(ctx, s, of, ret_hash);
		if (verdict == STACK_TORN)
			verdict = stack_lost(ret_hash);
	}
	if (verdict == STACK_NONE)
		stat_inc(STAT_STACK_NO_USER);
	if (of->flags & MS_STACK_KERNEL || verdict < 0 || of->source >= MS_N_SOURCES)
		return;
	verdict_count(of->source, verdict);
}

#endif
