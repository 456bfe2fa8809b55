/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source: system calls. Both tracepoints cost every system call of the host their own way in; for a process that is not
 * watched the program ends with its look-up in `targets`.
 *
 *   entry   is the call one to be counted (1 in 2^syscall_shift, by chance)? Its time goes into the thread's row of
 *           `syscalls_now`, with what the call stands for
 *   exit    a thread that has such a row: the call is added to `syscall_totals`, its error to `syscall_errors`, and, where
 *           its stack is wanted, to the totals of its stack
 *
 * Rows are by task, not by number: an exec by another thread than the leader takes the leader's number within the call. The
 * number of the call is that of its entry, for rt_sigreturn replaces the registers. exit and exit_group never return, and
 * are counted when they are entered; a thread that another one ends within a call leaves its row to user space.
 *
 * Stacks are captured at the exit: then it is known how long the call took. One of SYSCALL_LONG_NS or more always has its
 * stack captured, of the others 1 in 2^syscall_stack_shift, by chance, which stands for as many.
 */
#include "common.bpf.h"
#include "emit.bpf.h"
#include "histogram.bpf.h"
#include "stack.bpf.h"
#include "syscall_regs.bpf.h"

#define SYSCALL_LONG_NS 1000000
#define ERRNO_MAX       4095

#if defined(__TARGET_ARCH_x86)
#define NR_IS_EXIT(nr)  ((nr) == 60 || (nr) == 231)
#define NR_IS_CLONE(nr) ((nr) == 56 || (nr) == 57 || (nr) == 58 || (nr) == 435)
#else
#define NR_IS_EXIT(nr)  ((nr) == 93 || (nr) == 94)
#define NR_IS_CLONE(nr) ((nr) == 220 || (nr) == 435)
#endif

/* The call of each thread, by its task's address. Written here, read by user space in the end, which removes those of
 * threads that have ended. Full: STAT_SYSCALLS_FULL. Not an LRU: it would forget the longest calls. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct ms_syscall_now);
} syscalls_now __weak SEC(".maps");

/* Calls by process and number, and how they failed. Written here, read by user space now and then, which removes those
 * of processes that have ended. Full: STAT_SYSCALLS_FULL. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ms_syscall_key);
	__type(value, struct ms_syscall_total);
} syscall_totals __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ms_syscall_key);
	__type(value, __u64);
} syscall_errors __weak SEC(".maps");

/* Empty totals, from which new ones are made: too large for the stack. Nobody writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ms_syscall_total);
} syscall_none __weak SEC(".maps");

static __always_inline struct ms_syscall_total *total_of(const struct ms_syscall_key *key)
{
	struct ms_syscall_total *total = bpf_map_lookup_elem(&syscall_totals, key), *none;
	__u32 zero = 0;

	if (total)
		return total;
	none = bpf_map_lookup_elem(&syscall_none, &zero);
	if (!none)
		return NULL;
	bpf_map_update_elem(&syscall_totals, key, none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&syscall_totals, key);
}

static __always_inline bool by_chance(__u32 shift)
{
	return !shift || !(bpf_get_prandom_u32() & ((1u << (shift & 31)) - 1));
}

static __always_inline void never_returns(const struct ms_proc *proc, __u32 nr, __u64 task)
{
	struct ms_syscall_key key = { .proc = *proc, .nr = nr };
	struct ms_syscall_total *total = total_of(&key);

	bpf_map_delete_elem(&syscalls_now, &task);
	if (total)
		__sync_fetch_and_add(&total->no_return, 1);
	else
		stat_inc(STAT_SYSCALLS_FULL);
}

SEC("raw_tp/sys_enter")
int on_call_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct ms_syscall_now fresh = {}, *now;
	__u64 id = bpf_get_current_pid_tgid(), task;
	__u32 nr = (__u32)ctx->args[1], shift = syscall_shift;
	struct ms_target *target;
	struct ms_proc proc;

	if (!target_wants(NULL, id >> 32, (__u32)id, &target, &proc))
		return 0;
	if (!NR_IS_EXIT(nr) && !by_chance(shift))
		return 0;
	task = bpf_get_current_task();
	if (is_compat((void *)task))
		nr |= MS_SYSCALL_COMPAT;
	if (NR_IS_EXIT(nr)) {
		never_returns(&proc, nr, task);
		return 0;
	}
	fresh.nr = nr;
	fresh.weight = 1u << (shift & 31);
	fresh.tid = (__u32)id;
	fresh.proc = proc;
	fresh.begin_ns = bpf_ktime_get_ns();
	now = bpf_map_lookup_elem(&syscalls_now, &task);
	if (now) {
		if (now->begin_ns)
			stat_inc(STAT_SYSCALLS_UNSEEN);
		*now = fresh;
	} else if (bpf_map_update_elem(&syscalls_now, &task, &fresh, BPF_ANY)) {
		stat_add(STAT_SYSCALLS_FULL, fresh.weight);
	}
	return 0;
}

static __always_inline void error_add(struct ms_syscall_key *key, __u32 error, __u64 weight)
{
	__u64 *n, zero = 0;

	key->error = error;
	n = bpf_map_lookup_elem(&syscall_errors, key);
	if (!n) {
		bpf_map_update_elem(&syscall_errors, key, &zero, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&syscall_errors, key);
	}
	if (n)
		__sync_fetch_and_add(n, weight);
	else
		stat_add(STAT_SYSCALL_ERRORS_FULL, weight);
}

static __always_inline void total_add(const struct ms_syscall_now *now, const struct ms_proc *proc,
				      __u64 ns, __s64 ret)
{
	struct ms_syscall_key key = { .proc = *proc, .nr = now->nr };
	struct ms_syscall_total *total = total_of(&key);
	__u64 w = now->weight;
	__u32 part = histogram_part(ns);

	if (!total) {
		stat_add(STAT_SYSCALLS_FULL, w);
		return;
	}
	__sync_fetch_and_add(&total->count, w);
	__sync_fetch_and_add(&total->ns, w * ns);
	__sync_fetch_and_add(&total->parts[part & (MS_SYSCALL_PARTS - 1)], w);
	if (w > 1)
		__sync_fetch_and_add(&total->variance, w * (w - 1));
	if (ns > total->max_ns)
		total->max_ns = ns;
	if (ret < 0 && ret >= -ERRNO_MAX) {
		__sync_fetch_and_add(&total->errors, w);
		error_add(&key, (__u32)-ret, w);
	}
}

/* Its stack, at the end of the call. */
static __noinline int stack_add(void *ctx, struct ms_syscall_now *now, __u64 ns, __u64 weight)
{
	struct stack_of of = { .source = MS_SYSCALLS, .slot = SCRATCH_ALLOC, .once = true };
	struct ms_total_key key = { .source = MS_SYSCALLS };
	__u64 id = bpf_get_current_pid_tgid();
	struct ms_target *target;

	if (!now || !target_wants(NULL, id >> 32, (__u32)id, &target, &key.proc))
		return 0;
	key.tid = (__u32)id;
	key.as_gen = of.as_gen = target_as_gen(target);
	key.bucket = now->nr;
	key.slot = slot_at(bpf_ktime_get_ns(), MS_SLOT_NS);
	of.proc = &key.proc;
	if (cfg_user_stacks)
		stack_capture(ctx, &of, &key.user);
	stat_inc(STAT_SYSCALL_STACKS);
	emit_add(MS_LANE_TASK, &key, (void *)bpf_get_current_task(), weight, weight * ns);
	return 0;
}

SEC("raw_tp/sys_exit")
int on_call_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), task, ns;
	__u32 tgid = id >> 32, shift = syscall_stack_shift;
	struct pt_regs *regs = (void *)ctx->args[0];
	struct ms_syscall_now *now;
	__s64 ret = (__s64)ctx->args[1];

	if (!gate_open || (!cfg_all && !bpf_map_lookup_elem(&targets, &tgid)))
		return 0;
	task = bpf_get_current_task();
	now = bpf_map_lookup_elem(&syscalls_now, &task);
	if (!now) {
		struct ms_target *target;
		struct ms_proc proc;
#if defined(__TARGET_ARCH_x86)
		__u32 nr = (__u32)BPF_CORE_READ(regs, orig_ax);
#else
		__u32 nr = (__u32)BPF_CORE_READ(regs, syscallno);
#endif

		/* A new thread comes out of a call that it did not enter. */
		if (!syscall_shift && !(NR_IS_CLONE(nr) && !ret) &&
		    target_wants(NULL, tgid, (__u32)id, &target, &proc))
			stat_inc(STAT_SYSCALLS_BEFORE);
		return 0;
	}
	if (!now->begin_ns)
		return 0;
	ns = bpf_ktime_get_ns() - now->begin_ns;
	stat_inc(STAT_SYSCALLS);
	total_add(now, &now->proc, ns, ret);
	if (ns >= SYSCALL_LONG_NS)
		stack_add(ctx, now, ns, now->weight);
	else if (by_chance(shift))
		stack_add(ctx, now, ns, (__u64)now->weight << (shift & 31));
	now->begin_ns = 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
