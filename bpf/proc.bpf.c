/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The set of targets changes by itself: the children of a target join it (cgroup.bpf.c: so do
 * processes that enter a control group), and memory may run out.
 */
#include "cgroup.bpf.h"
#include "common.bpf.h"
#include "walk/walk_cfi.bpf.h"

static __always_inline void lang_inherit(__u32 parent_tgid, const struct task_struct *child)
{
	__u32 tgid = BPF_CORE_READ(child, tgid);
	struct ms_lang_row *found = bpf_map_lookup_elem(&langs, &parent_tgid), row;

	if (!found)
		return;
	row = *found;
	row.start_ns = BPF_CORE_READ(child, start_time);
	bpf_map_update_elem(&langs, &tgid, &row, BPF_ANY);
}

/* A child begins with its parent's address space, and so with its spans and its runtime. */
static __always_inline void space_inherit(__u32 parent_tgid, const struct task_struct *child)
{
	__u32 tgid = BPF_CORE_READ(child, tgid);
	struct ms_space *found = bpf_map_lookup_elem(&spaces, &parent_tgid), space;

	if (!found)
		return;
	space = *found;
	space.start_ns = BPF_CORE_READ(child, start_time);
	bpf_map_update_elem(&spaces, &tgid, &space, BPF_ANY);
	if (cfg_lang)
		lang_inherit(parent_tgid, child);
}

static __always_inline void on_fork(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = BPF_CORE_READ(parent, tgid), tgid = BPF_CORE_READ(child, tgid);
	struct ms_target *target, fresh = { .flags = MS_TARGET_FORKED };

	if (tgid == parent_tgid)
		return;
	if (cfg_all)
		space_inherit(parent_tgid, child);
	if (!cfg_children)
		return;
	target = bpf_map_lookup_elem(&targets, &parent_tgid);
	if (target && target->start_ns &&
	    target->start_ns != BPF_CORE_READ(parent, group_leader, start_time))
		target = NULL; /* its pid was reused */
	/* A child may be made in another control group than its parent's (CLONE_INTO_CGROUP). */
	if (cfg_cgroups ? !task_is_member(child) : !target)
		return;
	if (!cfg_all)
		space_inherit(parent_tgid, child);
	/* The child has its parent's address space as it is now, so its generation too. */
	fresh.as_gen = target_as_gen(target);
	if (cfg_cgroups)
		fresh.ns_pid = task_ns_pid(child);
	fresh.start_ns = BPF_CORE_READ(child, start_time);
	fresh.exec_id = (__u32)BPF_CORE_READ(child, self_exec_id);
	if (bpf_map_update_elem(&targets, &tgid, &fresh, BPF_ANY))
		stat_inc(STAT_TARGETS_FULL);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork_btf, struct task_struct *parent, struct task_struct *child)
{
	on_fork(parent, child);
	return 0;
}

SEC("raw_tp/sched_process_fork")
int on_fork_raw(struct bpf_raw_tracepoint_args *ctx)
{
	on_fork((void *)ctx->args[0], (void *)ctx->args[1]);
	return 0;
}

/*
 * Memory has run out, of the machine or of a control group, and the kernel has picked a victim. The
 * argument is the victim's thread (kernel commit 72ba14deb40a, 6.8); before, it was its number.
 */
SEC("raw_tp/mark_victim")
int on_oom(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 victim = ctx->args[0];
	__u32 tgid =
		victim >> 32 ? BPF_CORE_READ((struct task_struct *)victim, tgid) : (__u32)victim;
	struct ms_target *target = bpf_map_lookup_elem(&targets, &tgid);

	if (target)
		target->flags |= MS_TARGET_OOM;
	return 0;
}

#define SPAN_STEPS 14 /* 2^13 = MS_MAX_SPANS */

static __always_inline const struct ms_span *span_at(const struct ms_space *space, __u32 i)
{
	__u32 word = space->spans + i * MS_SPAN_WORDS, ix = word / MS_POOL_PAGE_WORDS;
	const struct ms_pool_page *page = bpf_map_lookup_elem(&unwind_pool, &ix);

	return page ? (const struct ms_span *)&page->word[word % MS_POOL_PAGE_WORDS & ~7u] : NULL;
}

/* The first span that ends after `start`; NULL: it begins at `end` or later, or there is none. */
static __always_inline const struct ms_span *span_over(const struct ms_space *space, __u64 start,
						       __u64 end)
{
	__u32 lo = 0, n = space->n_spans;
	const struct ms_span *s;

	for (int i = 0; i < SPAN_STEPS; i++) {
		__u32 half = n / 2;

		if (!n)
			break;
		s = span_at(space, lo + half);
		if (!s)
			return NULL;
		if (s->end <= start) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (lo >= space->n_spans)
		return NULL;
	s = span_at(space, lo);
	return s && s->start < end ? s : NULL;
}

#define PROT_EXEC 4
#define MAP_FIXED 0x10

/* The arguments of mmap(). */
struct mmap_args {
	__u64 addr, len;
	bool fixed, file, exec;
};

/* false: the current task is in another system call. */
static __always_inline bool in_mmap(struct mmap_args *ret_args)
{
	const struct pt_regs *regs = task_user_regs((void *)bpf_get_current_task());
	__u64 addr, len, prot, flags, fd;

#if defined(__TARGET_ARCH_x86)
	if (BPF_CORE_READ(regs, orig_ax) != 9)
		return false;
	addr = BPF_CORE_READ(regs, di);
	len = BPF_CORE_READ(regs, si);
	prot = BPF_CORE_READ(regs, dx);
	flags = BPF_CORE_READ(regs, r10);
	fd = BPF_CORE_READ(regs, r8);
#else
	if (BPF_CORE_READ(regs, syscallno) != 222)
		return false;
	addr = BPF_CORE_READ(regs, orig_x0);
	len = BPF_CORE_READ(regs, regs[1]);
	prot = BPF_CORE_READ(regs, regs[2]);
	flags = BPF_CORE_READ(regs, regs[3]);
	fd = BPF_CORE_READ(regs, regs[4]);
#endif
	*ret_args = (struct mmap_args){ addr, len, flags & MAP_FIXED, (__s32)fd >= 0,
					prot & PROT_EXEC };
	return true;
}

/*
 * A file's code was mapped over something else, as when one library is unloaded and another is
 * loaded in its place. Until user space has handled that, the spans of the process are outdated,
 * and its stacks are walked in user space (stack_user). This runs when mmap() releases the lock:
 * the record of the mapping has been written, and no code in it has run. A JIT's memory mapped over
 * its own is walked as before.
 */
SEC("tp_btf/mmap_lock_released")
int BPF_PROG(on_mmap, const struct mm_struct *mm, bool write)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, slot = tgid % N_REMAPPED;
	const struct ms_space *space;
	const struct ms_span *span;
	struct mmap_args args;
	__u64 *when;

	if (!write || !in_mmap(&args) || !args.exec || (!args.file && !args.fixed))
		return 0;
	space = bpf_map_lookup_elem(&spaces, &tgid);
	/* Who is not watched: on a host that compiles, others would use up all slots again and again. */
	if (!space && !cfg_all && !cfg_cgroups && !bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	when = bpf_map_lookup_elem(&remapped, &slot);
	if (!when)
		return 0;
	/* Without MAP_FIXED neither the address nor the spans to come are known here. */
	if (space && args.fixed) {
		span = span_over(space, args.addr, args.addr + args.len);
		if (!span || (!args.file && span->kind != MS_SPAN_TABLE))
			return 0;
	}
	*when = bpf_ktime_get_ns();
	return 0;
}

/* The watched processes, whether the gate is open or not. A leader may have ended before its other
 * threads. */
SEC("iter/task")
int name_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct ms_task out = {};

	if (!task || task->pid != task->tgid || (cfg_all && (__u32)task->tgid == cfg_self))
		return 0;
	out.seen_ns = bpf_ktime_get_ns();
	out.tid = task->pid;
	if (!cfg_all && !bpf_map_lookup_elem(&targets, &out.tid))
		return 0;
	task_proc(task, &out.proc);
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
