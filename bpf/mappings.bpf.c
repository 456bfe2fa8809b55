/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source: mappings. What a process itself maps, moves and unmaps: mmap, munmap, mremap, brk.
 *
 *   entry   keep arguments and time; not inside an allocator's call, where it is counted already
 *   exit    on success: send it to user space, which keeps who has mapped what
 *           (collect/stream/mappings.h)
 *
 * A tracepoint of system calls costs every system call of the host some 120 ns, including those of
 * processes that are not watched: it is attached only while every allocation is traced.
 *
 * Exits may be seen in another order than the calls took effect: a range that one thread unmapped
 * may be mapped by another before the first call's exit is seen. So each record has the time its
 * call began.
 */
#include "alloc_nested.bpf.h"
#include "common.bpf.h"
#include "stack.bpf.h"
#include "syscall_regs.bpf.h"

#if defined(__TARGET_ARCH_x86)
enum { NR_MMAP = 9, NR_MUNMAP = 11, NR_BRK = 12, NR_MREMAP = 25 };
#else
enum { NR_BRK = 214, NR_MUNMAP = 215, NR_MREMAP = 216, NR_MMAP = 222 };
#endif

/* include/uapi/asm-generic/mman-common.h, linux/mman.h */
#define MAP_SHARED_BIT     0x01 /* of MAP_SHARED and MAP_SHARED_VALIDATE, and of no other type */
#define MAP_ANONYMOUS_BIT  0x20
#define MAP_HUGETLB_BIT    0x40000
#define MAP_HUGE_SHIFT     26
#define HUGE_DEFAULT_SHIFT 21
#define MREMAP_DONTUNMAP   4
#define ERRNO_MAX          4095

static __always_inline bool is_of_mappings(__u64 nr)
{
	return nr == NR_MMAP || nr == NR_MUNMAP || nr == NR_MREMAP || nr == NR_BRK;
}

static __always_inline __u64 user_sp(const struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, sp);
}

/* To whole pages, upwards. */
static __always_inline __u64 whole_pages(__u64 bytes)
{
	__u64 page = cfg_page_bytes;

	return (bytes + page - 1) & ~(page - 1);
}

SEC("raw_tp/sys_enter")
int on_sys_enter(struct bpf_raw_tracepoint_args *ctx)
{
	const struct pt_regs *regs = (void *)ctx->args[0];
	const struct task_struct *task;
	struct ms_mapping_call call = { .nr = (__u32)ctx->args[1] };
	__u64 id = bpf_get_current_pid_tgid();
	const struct ms_inflight *in;
	struct ms_target *target;
	__u32 tid = (__u32)id;

	if (!is_of_mappings(ctx->args[1]) || !gate_alloc_open ||
	    !target_wants(NULL, id >> 32, tid, &target, &call.proc))
		return 0;
	task = (void *)bpf_get_current_task();
	if (is_compat(task))
		return 0;
	in = bpf_map_lookup_elem(&inflight, &tid);
	if (is_nested(in, user_sp(regs))) {
		stat_inc(STAT_MAPPINGS_NESTED);
		return 0;
	}
	call.began_ns = bpf_ktime_get_ns();
	call.as_gen = target_as_gen(target);
	call.brk = BPF_CORE_READ(task, mm, brk);
	args_read(regs, call.arg);
	if (bpf_map_update_elem(&mapping_calls, &tid, &call, BPF_ANY))
		stat_inc(STAT_MAPPINGS_LOST);
	return 0;
}

/* The mapping that an mmap() made; its length may be rounded to huge pages. */
static __always_inline void made(struct ms_mapping_rec *rec, const struct ms_mapping_call *call,
				 __u64 addr)
{
	__u64 flags = call->arg[3], huge = flags >> MAP_HUGE_SHIFT & 63;

	rec->what = MS_MAPPING_MADE;
	rec->addr = addr;
	rec->len = whole_pages(call->arg[1]);
	if (flags & MAP_HUGETLB_BIT && flags & MAP_ANONYMOUS_BIT) {
		if (!huge)
			huge = HUGE_DEFAULT_SHIFT;
		rec->len = (call->arg[1] + (1ULL << huge) - 1) & ~((1ULL << huge) - 1);
	}
	if (!(flags & MAP_ANONYMOUS_BIT))
		rec->memory = MS_MEMORY_FILE;
	else
		rec->memory = flags & MAP_SHARED_BIT ? MS_MEMORY_SHARED : MS_MEMORY_ANON;
}

static __always_inline void moved(struct ms_mapping_rec *rec, const struct ms_mapping_call *call,
				  __u64 addr)
{
	rec->what = MS_MAPPING_MOVED;
	rec->old_addr = call->arg[0];
	rec->old_len = whole_pages(call->arg[1]);
	rec->addr = addr;
	rec->len = whole_pages(call->arg[2]);
	if (!rec->old_len || (call->arg[3] & MREMAP_DONTUNMAP && addr != rec->old_addr))
		rec->what = MS_MAPPING_TWICE;
}

/* The end of the heap moved. false: it did not. */
static __always_inline bool heap_moved(struct ms_mapping_rec *rec,
				       const struct ms_mapping_call *call, __u64 now)
{
	__u64 from = whole_pages(call->brk), to = whole_pages(now);

	if (call->arg[0] && now != call->arg[0])
		stat_inc(STAT_MAPPINGS_FAILED);
	if (from == to || !call->brk)
		return false;
	rec->memory = MS_MEMORY_ANON;
	rec->what = to > from ? MS_MAPPING_MADE : MS_MAPPING_GONE;
	rec->addr = from;
	rec->len = to > from ? to - from : 0;
	rec->old_addr = to;
	rec->old_len = to > from ? 0 : from - to;
	return true;
}

/* The effect of the call; false: none. */
static __always_inline bool what_came(struct ms_mapping_rec *rec,
				      const struct ms_mapping_call *call, __u64 ret)
{
	if (call->nr == NR_BRK)
		return heap_moved(rec, call, ret);
	if (ret > -(__u64)ERRNO_MAX - 1) {
		stat_inc(STAT_MAPPINGS_FAILED);
		return false;
	}
	if (call->nr == NR_MMAP) {
		made(rec, call, ret);
	} else if (call->nr == NR_MREMAP) {
		moved(rec, call, ret);
	} else {
		rec->what = MS_MAPPING_GONE;
		rec->old_addr = call->arg[0];
		rec->old_len = whole_pages(call->arg[1]);
	}
	return true;
}

static __noinline int mapping_ends(void *ctx, __u32 nr, __u64 ret)
{
	struct stack_of of = { .source = MS_ALLOC, .slot = SCRATCH_ALLOC, .once = true };
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	const struct task_struct *task = (void *)bpf_get_current_task();
	struct ms_mapping_rec rec = { .kind = MS_EV_MAPPING };
	struct ms_mapping_call *call = bpf_map_lookup_elem(&mapping_calls, &tid);

	if (!call || call->nr != nr)
		return 0;
	rec.proc = call->proc;
	rec.began_ns = call->began_ns;
	rec.time_ns = bpf_ktime_get_ns();
	rec.as_gen = call->as_gen;
	rec.tid = tid;
	if (!what_came(&rec, call, ret)) {
		bpf_map_delete_elem(&mapping_calls, &tid);
		return 0;
	}
	bpf_map_delete_elem(&mapping_calls, &tid);
	rec.cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	of.proc = &rec.proc;
	of.as_gen = rec.as_gen;
	if (cfg_user_stacks && rec.what != MS_MAPPING_GONE)
		stack_capture(ctx, &of, &rec.user);
	if (bpf_ringbuf_output(&events, &rec, sizeof(rec), events_wake()))
		stat_inc(STAT_MAPPINGS_LOST);
	else
		stat_inc(STAT_MAPPINGS);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit_btf, struct pt_regs *regs, long ret)
{
	__u32 nr = SYSCALL_NR(regs);

	return is_of_mappings(nr) ? mapping_ends(ctx, nr, (__u64)ret) : 0;
}

SEC("raw_tp/sys_exit")
int on_sys_exit_raw(struct bpf_raw_tracepoint_args *ctx)
{
	struct pt_regs *regs = (void *)ctx->args[0];
	__u32 nr;

#if defined(__TARGET_ARCH_x86)
	nr = (__u32)BPF_CORE_READ(regs, orig_ax);
#else
	nr = (__u32)BPF_CORE_READ(regs, syscallno);
#endif
	return is_of_mappings(nr) ? mapping_ends(ctx, nr, ctx->args[1]) : 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
