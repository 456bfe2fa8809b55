/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The members of watched control groups become targets: present ones, those that are moved there,
 * and (proc.bpf.c: on_fork) those that are forked there. A restarted container makes its group
 * anew: it is known by its path, so it is watched before any process is in it.
 */
#include "cgroup.bpf.h"
#include "common.bpf.h"

__noinline int cgroup_is_watched(__u64 at)
{
	const struct cgroup *group = (const void *)at;
	struct ms_cgroup key = { .hierarchy = (__u32)BPF_CORE_READ(group, root, hierarchy_id) };

	if (!(cgroup_hierarchies >> (key.hierarchy < 63 ? key.hierarchy : 63) & 1))
		return 0;
	for (int i = 0; i < MS_CGROUP_DEPTH && group; i++) {
		key.id = BPF_CORE_READ(group, kn, id);
		if (bpf_map_lookup_elem(&cgroups, &key))
			return 1;
		group = BPF_CORE_READ(group, self.parent, cgroup);
	}
	return 0;
}

__noinline int css_set_is_watched(__u64 at)
{
	const struct css_set *set = (const void *)at;
	__u64 head = at + __builtin_preserve_field_info(set->cgrp_links, BPF_FIELD_BYTE_OFFSET);
	__u64 back = __builtin_preserve_field_info(((struct cgrp_cset_link *)0)->cgrp_link,
						   BPF_FIELD_BYTE_OFFSET);
	const struct list_head *node = BPF_CORE_READ(set, cgrp_links.next);

	for (int i = 0; i < MS_HIERARCHIES && node && (__u64)node != head; i++) {
		const struct cgrp_cset_link *link = (const void *)((__u64)node - back);

		if (cgroup_is_watched((__u64)BPF_CORE_READ(link, cgrp)))
			return 1;
		node = BPF_CORE_READ(node, next);
	}
	return 0;
}

static __always_inline void member_add(const struct task_struct *task, __u32 tgid)
{
	struct ms_target fresh = { .flags = MS_TARGET_JOINED },
			 *known = bpf_map_lookup_elem(&targets, &tgid);

	fresh.start_ns = BPF_CORE_READ(task, group_leader, start_time);
	fresh.exec_id = (__u32)BPF_CORE_READ(task, self_exec_id);
	fresh.ns_pid = task_ns_pid(task);
	if (known && known->start_ns == fresh.start_ns)
		return;
	if (bpf_map_update_elem(&targets, &tgid, &fresh, BPF_ANY))
		stat_inc(STAT_TARGETS_FULL);
}

/* Arguments: (dst_cgrp, path, task, threadgroup); the task has been moved already. */
SEC("raw_tp/cgroup_attach_task")
int on_attach(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *leader =
		BPF_CORE_READ((struct task_struct *)ctx->args[2], group_leader);
	__u32 tgid = BPF_CORE_READ(leader, tgid);

	if (tgid == cfg_self)
		return 0;
	if (task_is_member(leader))
		member_add(leader, tgid);
	else
		bpf_map_delete_elem(&targets, &tgid);
	return 0;
}

/* Half of a BPF program's stack would be taken by one record. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ms_cgroup_rec);
} made_group __weak SEC(".maps");

/* Arguments: (cgrp, path); a lock is held that keeps others from being here on this CPU. */
SEC("raw_tp/cgroup_mkdir")
int on_cgroup_mkdir(struct bpf_raw_tracepoint_args *ctx)
{
	const struct cgroup *group = (const void *)ctx->args[0];
	struct ms_cgroup key = {};
	__u32 zero = 0;
	struct ms_cgroup_rec *rec = bpf_map_lookup_elem(&made_group, &zero);
	__u8 one = 1;

	if (!rec)
		return 0;
	__builtin_memset(rec, 0, sizeof(*rec));
	rec->kind = MS_EV_CGROUP;
	rec->id = key.id = BPF_CORE_READ(group, kn, id);
	rec->at.hierarchy = key.hierarchy = (__u32)BPF_CORE_READ(group, root, hierarchy_id);
	if (bpf_probe_read_kernel_str(rec->at.path, sizeof(rec->at.path), (void *)ctx->args[1]) <=
	    0)
		return 0;
	if (bpf_map_lookup_elem(&cgroup_paths, &rec->at))
		bpf_map_update_elem(&cgroups, &key, &one, BPF_ANY);
	/* If the record is lost, user space finds the group by its path. */
	bpf_ringbuf_output(&events, rec, sizeof(*rec), 0);
	return 0;
}

/* The present members. */
SEC("iter/task")
int list_members(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct ms_task out = {};

	if (!task || task->pid != task->tgid || (__u32)task->tgid == cfg_self ||
	    !task_is_member(task))
		return 0;
	member_add(task, task->tgid);
	out.seen_ns = bpf_ktime_get_ns();
	out.tid = task->pid;
	task_proc(task, &out.proc);
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
