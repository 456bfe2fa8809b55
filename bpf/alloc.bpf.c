/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source: allocations and frees, by uprobes on the functions of an allocator; one program pair per
 * argument shape (abi.h).
 *
 *   entry   record the arguments and the stack: at the return it is damaged (the return probe has
 *           put its trampoline on it)
 *   return  the block exists: add to the totals and to the table of live blocks
 *
 * This order keeps one address right when several threads use it in turn: a block leaves the table
 * at the entry of free and realloc, before the allocator can hand out its address again, and enters
 * it at the return of the allocation, before the caller can pass on the pointer. A realloc that
 * fails puts its block back.
 *
 * Calls inside calls (calloc → malloc, reallocarray → realloc) are recognized by the stack pointer:
 * a call deeper than the one in flight is part of it, if that still has its frame; one at the same
 * depth is a tail call and replaces it; one above it shows that the other's return was missed.
 *
 * No return probe on `operator new` and its kin: on a function that throws it kills the target.
 * Most are counted by the malloc they call; those of allocators with an implementation of their
 * own, by probes on their return instructions (MS_SHAPE_NEW). A delete and the free that it calls
 * are one free.
 */
#include "alloc_call.bpf.h"
#include "alloc_nested.bpf.h"
#include "alloc_sites.bpf.h"
#include "common.bpf.h"
#include "emit.bpf.h"
#include "stack.bpf.h"

/* The watched thread that hit the probe. */
struct caller {
	struct ms_proc proc;
	struct ms_target *target;
	__u32 tid;
};

static __always_inline void alloc_close(void)
{
	gate_alloc_open = 0;
	if (!burst_closed_ns)
		burst_closed_ns = bpf_ktime_get_ns();
}

#define HITS_AT_ONCE 32 /* counted per CPU before they are added to burst_left */

/* The last hit that tracing may take closes the gate. */
static __always_inline void count_hit(void)
{
	__u32 key = STAT_PROBE_HITS;
	__u64 *slot = bpf_map_lookup_elem(&stats, &key);

	if (!slot)
		return;
	__sync_fetch_and_add(slot, 1);
	if (burst_no || *(volatile __u64 *)slot % HITS_AT_ONCE)
		return;
	__sync_fetch_and_add(&burst_left, -HITS_AT_ONCE);
	if (burst_left <= 0)
		alloc_close();
}

static __always_inline bool caller_get(struct caller *c, bool any_thread)
{
	__u64 id = bpf_get_current_pid_tgid();

	c->tid = (__u32)id;
	if (!gate_alloc_open ||
	    !target_wants(NULL, id >> 32, any_thread && cfg_tid ? cfg_tid : c->tid, &c->target,
			  &c->proc)) {
		stat_inc(STAT_PROBE_OTHER);
		return false;
	}
	count_hit();
	return true;
}

/* Takes the block at `addr` out of the table; false: it was not there. */
static __always_inline bool block_take(const struct ms_proc *proc, __u64 addr,
				       struct ms_block *ret_block)
{
	struct ms_block_key key = { .addr = addr };
	struct ms_block *block;

	key.proc = *proc;
	block = bpf_map_lookup_elem(&blocks, &key);
	if (!block)
		return false;
	*ret_block = *block;
	return !bpf_map_delete_elem(&blocks, &key);
}

/* A free of a block that is not in the table: was it inherited by fork? */
static __always_inline void block_missing(const struct ms_proc *proc)
{
	__u32 tgid = proc->tgid;
	const struct ms_target *target = bpf_map_lookup_elem(&targets, &tgid);

	if (target && (target->flags & MS_TARGET_FORKED) && target->exec_id == proc->exec_id)
		stat_inc(STAT_FREE_INHERITED);
	else
		stat_inc(STAT_FREE_UNKNOWN);
}

/* Returns whether it is in the table now. */
static __noinline bool block_add(const struct ms_proc *proc, __u64 addr,
				 const struct ms_block *block)
{
	struct ms_block_key key = { .addr = addr };
	struct ms_block old;
	long err;

	key.proc = *proc;
	err = bpf_map_update_elem(&blocks, &key, block, BPF_NOEXIST);
	if (!err)
		return true;
	if (block_take(proc, addr, &old)) {
		stat_inc(STAT_ALLOC_REUSED);
		site_freed(proc, &old, 0, false);
		err = bpf_map_update_elem(&blocks, &key, block, BPF_NOEXIST);
		if (!err)
			return true;
	}
	if (err == -E2BIG) {
		stat_inc(STAT_BLOCKS_FULL);
		stat_add(STAT_BLOCKS_FULL_BYTES, block->size);
	} else {
		stat_inc(STAT_BLOCKS_NOMEM);
	}
	return false;
}

/* The call that `in` describes will not return: the block it took out of the table goes back. */
static __always_inline void inflight_abandon(struct ms_inflight *in)
{
	struct ms_block_key key = { .addr = in->arg };

	stat_inc(in->shape == MS_SHAPE_NEW ? STAT_ALLOC_FAILED : STAT_ALLOC_MISSED); /* it threw */
	if (!in->has_old)
		return;
	key.proc = in->proc;
	bpf_map_update_elem(&blocks, &key, &in->old, BPF_NOEXIST);
	in->has_old = 0;
}

/*
 * A failing operator new throws: the call inside it then allocates the exception, which outlives
 * it. A successful one calls only the function that allocates the same block, of the same size.
 */
static __always_inline bool is_exception(const struct ms_inflight *in, __u64 size)
{
	return in->shape == MS_SHAPE_NEW && size != in->size;
}

/*
 * Does the call in flight continue as this one, by a jump? realloc(NULL, n), calloc and memalign
 * jump to others; the return probe's trampoline is in place by then. On arm64: those of glibc.
 */
static __always_inline bool is_tail_call(const struct ms_inflight *in, enum ms_shape to)
{
#if defined(__TARGET_ARCH_x86)
	return !in->ra && has_frame(in);
#else
	return in->shape == MS_SHAPE_REALLOC_N
		       ? to == MS_SHAPE_REALLOC || to == MS_SHAPE_SIZE
		       : (in->shape == MS_SHAPE_REALLOC || in->shape == MS_SHAPE_COUNT_SIZE) &&
				 to == MS_SHAPE_SIZE;
#endif
}

static const struct ms_inflight no_call;

/* The thread's record, created at its first call; NULL: the table is full. */
static __always_inline struct ms_inflight *inflight_get(__u32 tid)
{
	struct ms_inflight *in = bpf_map_lookup_elem(&inflight, &tid);

	if (in || bpf_map_update_elem(&inflight, &tid, &no_call, BPF_ANY))
		return in;
	return bpf_map_lookup_elem(&inflight, &tid);
}

/* The return address of the call at whose entry `ctx` is; 0: it cannot be read. */
static __always_inline __u64 return_address(struct pt_regs *ctx, __u64 sp)
{
#if defined(__TARGET_ARCH_x86)
	__u64 ra = 0;

	bpf_probe_read_user(&ra, sizeof(ra), (void *)sp);
	return ra;
#else
	return PT_REGS_RET(ctx);
#endif
}

#define NEAR_BYTES (1u << 20) /* one allocator's code is not larger */

static __always_inline bool burst_results(void)
{
	return cfg_burst_results && !burst_results_off;
}

/*
 * In a burst, is this call part of the previous one? If returns are not probed: if that jumped here (the
 * same return address, but another function), or still has its frame and the caller is the allocator's own
 * code. If they are, a return address on the stack is the trampoline's; but a call that has returned has no
 * record, and one of another burst is not meant.
 */
static __always_inline bool burst_nested(struct pt_regs *ctx, const struct ms_inflight *in,
					 enum ms_shape shape, __u64 sp, __u64 ra)
{
	if (!in->sp || !in->ra || !ra || in->site != burst_no)
		return false;
	if (sp == in->sp)
		return (burst_results() || ra == in->ra) && shape != in->shape;
	if (sp > in->sp || ra - PT_REGS_IP(ctx) + NEAR_BYTES > 2 * NEAR_BYTES)
		return false;
#if defined(__TARGET_ARCH_x86)
	return burst_results() || return_address(ctx, in->sp) == in->ra;
#else
	return true;
#endif
}

/* The last call that the burst may count closes it. */
static __always_inline bool burst_may(void)
{
	if (burst_left > 0) {
		__sync_fetch_and_add(&burst_left, -1);
		return true;
	}
	alloc_close();
	return false;
}

static __always_inline void burst_key(const struct ms_inflight *in, struct ms_total_key *key)
{
	key->source = MS_ALLOC;
	key->bucket = burst_no;
	key->proc = in->proc;
	key->user = in->user;
	key->tid = (__u32)bpf_get_current_pid_tgid();
	key->as_gen = in->as_gen;
}

/* In a burst a call only adds to its total. */
static __noinline void burst_add(const struct ms_inflight *in)
{
	struct ms_total_key key = {};

	burst_key(in, &key);
	emit_add(MS_LANE_TASK, &key, (void *)bpf_get_current_task(), 1, in->size);
	stat_inc(STAT_BURST_CALLS);
}

/*
 * How long a program runs, from its first to its last line. Not measured if it was preempted,
 * because what others did meanwhile is not our cost. Global functions: the verifier assumes nothing
 * of their results; inlined, it would check all that follows twice.
 */
struct run_time {
	__u64 ns, preempted;
};

__noinline __u64 times_preempted(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, nivcsw);
}

/* 0: no burst is open. */
__noinline __u64 burst_clock(void)
{
	return burst_no && gate_alloc_open ? bpf_ktime_get_ns() : 0;
}

static __always_inline void run_time_end(const struct run_time *t, enum stat_id runs,
					 enum stat_id ns)
{
	if (t->preempted != times_preempted())
		return;
	stat_inc(runs);
	stat_add(ns, bpf_ktime_get_ns() - t->ns);
}

enum begins {
	CALL_IS_PART, /* of the one in flight                     */
	CALL_GOES_ON, /* as another one, with the same stack       */
	CALL_BEGINS,
};

/* How a call relates to the one in flight, `in`; it replaces it unless it is part of it. */
static __always_inline enum begins call_begin(struct pt_regs *ctx, const struct caller *c,
					      struct ms_inflight *in, enum ms_shape shape, __u64 sp,
					      __u64 size, __u64 arg, bool burst)
{
	__u64 ra = burst || shape == MS_SHAPE_NEW ? return_address(ctx, sp) : 0;
	bool tail_call;

	if (burst ? burst_nested(ctx, in, shape, sp, ra)
		  : is_nested(in, sp) && !is_exception(in, size))
		return CALL_IS_PART;
	if (!burst && in->sp == sp && in->arg == arg && in->has_old) {
		/* reallocarray's jump to realloc: the block has been taken already. */
		in->size = size;
		in->shape = shape;
		return CALL_IS_PART;
	}
	tail_call = !burst && in->sp == sp && !in->has_old && is_tail_call(in, shape);
	if (!burst && in->sp && !tail_call)
		inflight_abandon(in);
	in->sp = sp;
	in->size = size;
	in->arg = arg;
	in->shape = shape;
	in->as_gen = target_as_gen(c->target);
	in->has_old = 0;
	in->proc = c->proc;
	in->ra = ra;
	if (!burst && is_realloc(shape) && arg)
		in->has_old = block_take(&c->proc, arg, &in->old);
	/* realloc(NULL, n) jumps to malloc: the call and its stack are the same, but the return
	 * address has been replaced by the return probe's trampoline. */
	return tail_call ? CALL_GOES_ON : CALL_BEGINS;
}

/*
 * Returns whether the call's return is wanted. `may_burst`: this program counts bursts; on kernels
 * without sessions its stack has no room for that.
 */
static __always_inline bool alloc_enter(struct pt_regs *ctx, enum ms_shape shape, __u64 sp,
					__u64 size, __u64 arg, bool may_burst)
{
	struct stack_of of = {
		.source = MS_ALLOC,
		.slot = SCRATCH_ALLOC,
		.flags = MS_STACK_AT_ENTRY,
	};
	bool burst = may_burst && burst_no;
	struct ms_inflight *in;
	enum begins begins;
	struct caller c;

	of.proc = &c.proc;
	if (!caller_get(&c, false) || (burst && !burst_may()))
		return false;
	in = inflight_get(c.tid);
	if (!in) {
		stat_inc(STAT_INFLIGHT_FULL);
		return false;
	}
	begins = call_begin(ctx, &c, in, shape, sp, size, arg, burst);
	if (begins == CALL_IS_PART) {
		stat_inc(STAT_ALLOC_NESTED);
		return false;
	}
	of.as_gen = in->as_gen;
	if (begins == CALL_BEGINS)
		stack_capture(ctx, &of, &in->user);
	if (!burst)
		return true;
	in->site = burst_no;
	burst_add(in);
	return burst_results();
}

/* The call has failed: the block it took out of the table still exists. */
static __always_inline void inflight_failed(struct ms_inflight *in)
{
	struct ms_block_key key = { .addr = in->arg };

	if (in->shape != MS_SHAPE_XALLOC) /* not growing in place is no failure */
		stat_inc(STAT_ALLOC_FAILED);
	if (!in->has_old)
		return;
	key.proc = in->proc;
	bpf_map_update_elem(&blocks, &key, &in->old, BPF_NOEXIST);
	in->has_old = 0;
}

/*
 * `sp`: after the return. Whether the thread is watched was decided at the entry: a call that began
 * unwatched has no record.
 */
static __always_inline int alloc_return(struct pt_regs *ctx, enum ms_shape shape, __u64 sp)
{
	__u64 ret = PT_REGS_RC(ctx), addr = ret;
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct ms_block block = {};
	struct ms_inflight *in;
	struct ms_proc proc;

	if (!gate_alloc_open || !gate_open)
		return 0;
	in = bpf_map_lookup_elem(&inflight, &tid);
	if (in)
		count_hit();
	else
		stat_inc(STAT_PROBE_OTHER);
	if (!in || !in->sp || sp < in->sp + RETURN_SP_DELTA)
		return 0; /* began before the run, a tail call's second return, or nested */
	proc = in->proc;
	if (sp != in->sp + RETURN_SP_DELTA) {
		inflight_abandon(in);
		in->sp = 0;
		return 0;
	}
	in->sp = 0;
	if (shape == MS_SHAPE_OUT_PTR) {
		addr = 0;
		if (!ret)
			bpf_probe_read_user(&addr, sizeof(addr), (void *)in->arg);
	}
	if (shape == MS_SHAPE_XALLOC)
		addr = ret >= in->size ? in->arg : 0;
	if (!addr && !(is_realloc(shape) && in->arg && !in->size)) {
		inflight_failed(in);
		return 0;
	}
	if (is_realloc(shape) && in->arg) {
		if (in->has_old)
			site_freed(&proc, &in->old, tid, in->last == in->arg);
		else
			block_missing(&proc);
		in->has_old = 0;
	}
	if (!addr)
		return 0; /* realloc(p, 0) */
	if (in->freed == addr)
		in->freed = 0;
	in->last = addr;
	block.site = site_index(in, tid);
	block.size = in->size;
	block.born_ns = bpf_ktime_get_ns();
	if (!block.site) {
		stat_inc(STAT_SITES_NONE);
		stat_add(STAT_SITES_NONE_BYTES, in->size);
		block_add(&proc, addr, &block); /* only its free matters */
		return 0;
	}
	site_allocated(&block, tid, block_add(&proc, addr, &block));
	return 0;
}

#define ENTER_PROGRAM(name, shape)                                                                 \
	SEC("uprobe")                                                                              \
	int enter_##name(struct pt_regs *ctx)                                                      \
	{                                                                                          \
		struct call call;                                                                  \
                                                                                                   \
		call_read(ctx, &call, call_args(shape));                                           \
		alloc_enter(ctx, shape, call.sp, call_size(&call, shape), call_arg(&call, shape),  \
			    false);                                                                \
		return 0;                                                                          \
	}

ENTER_PROGRAM(size, MS_SHAPE_SIZE)
ENTER_PROGRAM(count, MS_SHAPE_COUNT_SIZE)
ENTER_PROGRAM(align, MS_SHAPE_ALIGN_SIZE)
ENTER_PROGRAM(outptr, MS_SHAPE_OUT_PTR)
ENTER_PROGRAM(realloc, MS_SHAPE_REALLOC)
ENTER_PROGRAM(realloc_n, MS_SHAPE_REALLOC_N)
ENTER_PROGRAM(xalloc, MS_SHAPE_XALLOC)

/* The return of a call of the burst, `sp` being what it is behind the return: which block it made. */
static __noinline int burst_result(struct pt_regs *ctx, enum ms_shape shape, __u64 sp)
{
	__u64 ret = PT_REGS_RC(ctx), addr = ret;
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct ms_inflight *in = bpf_map_lookup_elem(&inflight, &tid);
	struct ms_result_rec *rec;

	if (!gate_alloc_open || !gate_open || !in) {
		stat_inc(STAT_PROBE_OTHER);
		return 0;
	}
	__sync_fetch_and_add(&burst_left, -1);
	if (!in->sp || in->site != burst_no)
		return 0;
	ret = in->sp + RETURN_SP_DELTA;
	in->sp = 0;
	if (sp != ret)
		return 0;
	if (shape == MS_SHAPE_OUT_PTR) {
		ret = addr;
		addr = 0;
		if (!(__u32)ret)
			bpf_probe_read_user(&addr, sizeof(addr), (void *)in->arg);
	}
	if (shape == MS_SHAPE_XALLOC)
		addr = addr >= in->size ? in->arg : 0;
	if (!addr && !(is_realloc(shape) && in->arg && !in->size))
		return 0;
	rec = bpf_ringbuf_reserve(&events, sizeof(*rec), 0);
	if (!rec) {
		stat_inc(STAT_BURST_RESULTS_LOST);
		return 0;
	}
	__builtin_memset(rec, 0, sizeof(*rec));
	rec->kind = MS_EV_RESULT;
	burst_key(in, &rec->key);
	rec->addr = addr;
	rec->old = is_realloc(shape) ? in->arg : 0;
	rec->size = in->size;
	rec->time_ns = bpf_ktime_get_ns();
	bpf_ringbuf_submit(rec, events_wake());
	stat_inc(STAT_BURST_RESULTS);
	return 0;
}

/* At the return, the instruction pointer is the return address. */
static __always_inline bool is_return(struct pt_regs *ctx)
{
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_func_ip))
		return false;
	return bpf_get_func_ip(ctx) != (__u64)PT_REGS_IP(ctx);
}

static __noinline int begin_any(struct pt_regs *ctx, enum ms_shape shape)
{
	struct call call;

	call_read(ctx, &call, 3);
	return alloc_enter(ctx, shape, call.sp, call_size(&call, shape), call_arg(&call, shape),
			   true);
}

static __noinline int end_any(struct pt_regs *ctx, enum ms_shape shape)
{
	return alloc_return(ctx, shape, PT_REGS_SP(ctx));
}

#define RETURN_UNWANTED 1 /* returned by a session's entry program */

/*
 * One program for both ends of a call and all shapes, where the kernel has sessions (6.13), and so
 * cookies. Returns that the entry does not want are never probed, and the verifier checks the walk,
 * which takes longest, only once.
 */
SEC("uprobe")
int both_ends(struct pt_regs *ctx)
{
	enum ms_shape shape = cfg_cookies ? bpf_get_attach_cookie(ctx) >> MS_COOKIE_SHAPE_SHIFT & 15
					  : MS_SHAPE_SIZE;

	bool wanted = true, back = is_return(ctx);
	struct run_time time;

	if (back && !burst_no)
		return end_any(ctx, shape);
	time.ns = burst_clock();
	time.preempted = burst_no ? times_preempted() : time.ns;
	if (back)
		burst_result(ctx, shape, PT_REGS_SP(ctx));
	else
		wanted = begin_any(ctx, shape);
	if (time.ns)
		run_time_end(&time, STAT_BURST_TIMED, STAT_BURST_NS);
	return wanted ? 0 : RETURN_UNWANTED;
}

/* What a hit costs apart from what programs do: it only measures its own time, as a call in a burst
 * does. */
SEC("uprobe")
int trap_only(struct pt_regs *ctx)
{
	struct run_time time = { bpf_ktime_get_ns(), times_preempted() };

	run_time_end(&time, STAT_TRAP_TIMED, STAT_TRAP_NS);
	return RETURN_UNWANTED;
}

/*
 * operator new with an implementation of its own: it throws, so its return is not probed, but each
 * of its return instructions is; before them sp is as at the entry.
 */
SEC("uprobe")
int enter_new(struct pt_regs *ctx)
{
	struct call call;

	call_read(ctx, &call, 1);
	alloc_enter(ctx, MS_SHAPE_NEW, call.sp, call.arg[0], 0, true);
	return 0;
}

SEC("uprobe")
int exit_new(struct pt_regs *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	const struct ms_inflight *in = bpf_map_lookup_elem(&inflight, &tid);

	/* Other functions may end in this instruction, too. */
	if (!in || in->shape != MS_SHAPE_NEW)
		return 0;
	if (burst_no)
		return burst_results()
			       ? burst_result(ctx, MS_SHAPE_NEW, PT_REGS_SP(ctx) + RETURN_SP_DELTA)
			       : 0;
	return alloc_return(ctx, MS_SHAPE_NEW, PT_REGS_SP(ctx) + RETURN_SP_DELTA);
}

SEC("uprobe")
int enter_free(struct pt_regs *ctx)
{
	struct ms_block block;
	struct ms_inflight *in;
	struct caller c;
	struct call call;

	if (!caller_get(&c, true))
		return 0;
	call_read(ctx, &call, 1);
	if (!call.arg[0]) {
		stat_inc(STAT_FREE_NULL);
		return 0;
	}
	in = inflight_get(c.tid);
	if (is_nested(in, call.sp)) {
		stat_inc(STAT_ALLOC_NESTED);
		return 0;
	}
	if (block_take(&c.proc, call.arg[0], &block)) {
		site_freed(&c.proc, &block, c.tid, in && in->last == call.arg[0]);
		if (in)
			in->freed = call.arg[0];
	} else if (in && in->freed == call.arg[0]) {
		stat_inc(STAT_ALLOC_NESTED); /* delete calls free */
	} else if (!cfg_tid) {
		block_missing(&c.proc);
	}
	return 0;
}

/* The return is the same for all shapes that return the pointer. */
SEC("uretprobe")
int BPF_KRETPROBE(return_ptr)
{
	return alloc_return(ctx, MS_SHAPE_SIZE, PT_REGS_SP(ctx));
}

SEC("uretprobe")
int BPF_KRETPROBE(return_outptr)
{
	return alloc_return(ctx, MS_SHAPE_OUT_PTR, PT_REGS_SP(ctx));
}

SEC("uretprobe")
int BPF_KRETPROBE(return_xalloc)
{
	return alloc_return(ctx, MS_SHAPE_XALLOC, PT_REGS_SP(ctx));
}

SEC("uretprobe")
int BPF_KRETPROBE(return_realloc)
{
	return alloc_return(ctx, MS_SHAPE_REALLOC, PT_REGS_SP(ctx));
}

/* The burst that measures the call rate, before anything costlier is attached. */
SEC("uprobe")
int BPF_KPROBE(count_call)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (bpf_map_lookup_elem(&targets, &tgid))
		stat_inc(STAT_RATE_CALLS);
	return 0;
}

static __always_inline void on_exit(struct task_struct *task)
{
	__u32 tid = BPF_CORE_READ(task, pid);

	bpf_map_delete_elem(&inflight, &tid);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit_btf, struct task_struct *task)
{
	on_exit(task);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int on_exit_raw(struct bpf_raw_tracepoint_args *ctx)
{
	on_exit((void *)ctx->args[0]);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
