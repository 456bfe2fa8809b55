/*
 * Who is watched changes by itself: the children of a target join it, and memory may run out.
 */
#include "common.bpf.h"

/* A child begins with its parent's address space, and so with its spans. */
static __always_inline void space_inherit(__u32 parent_tgid, const struct task_struct *child)
{
	__u32 tgid = BPF_CORE_READ(child, tgid);
	struct ms_space *found = bpf_map_lookup_elem(&spaces, &parent_tgid), space;

	if (!found)
		return;
	space = *found;
	space.start_ns = BPF_CORE_READ(child, start_time);
	bpf_map_update_elem(&spaces, &tgid, &space, BPF_ANY);
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
	if (!target)
		return;
	if (target->start_ns && target->start_ns != BPF_CORE_READ(parent, group_leader, start_time))
		return; /* its pid, used again */
	if (!cfg_all)
		space_inherit(parent_tgid, child);
	/* The child has its parent's address space as it is now, so its generation too. */
	fresh.as_gen = target->as_gen;
	fresh.fork_ns = bpf_ktime_get_ns();
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
 * Memory has run out, of the machine or of a control group, and the kernel has picked whom to kill. The
 * argument is the victim's thread (kernel commit 72ba14deb40a, 6.8), and was its number before.
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

/* The watched processes, whether the gate is open or not. A leader may have ended before the others. */
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
