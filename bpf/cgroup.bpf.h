/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Membership in watched control groups, of any hierarchy. Checked when a process is made or moved,
 * never for an event: members are in `targets` like processes named by the user.
 *
 *   task ─► css_set ─► dfl_cgrp                     its group in the unified hierarchy
 *                 └──► cgrp_links ─► link ─► cgrp   … and in each of the others
 *                                                    │ self.parent.cgroup
 *                                                    ▼ … up to the root of its hierarchy
 *
 * A css_set never changes, so its list can be walked without the lock; a task's css_set may be
 * exchanged. A process counts where its leader is: its threads may be in different groups.
 */
#ifndef MEMSCOPE_CGROUP_BPF_H
#define MEMSCOPE_CGROUP_BPF_H

#include "common.bpf.h"

/* 1: the group at this address, or one above it, is watched. */
int cgroup_is_watched(__u64 at);
/* 1: one of the groups of the css_set at this address is. */
int css_set_is_watched(__u64 at);

static __always_inline bool task_is_member(const struct task_struct *task)
{
	if (cfg_cgroups == 1)
		return cgroup_is_watched((__u64)BPF_CORE_READ(task, cgroups, dfl_cgrp));
	return css_set_is_watched((__u64)BPF_CORE_READ(task, cgroups));
}

/* The process's number in the innermost of its pid namespaces; 0: it is gone. */
static __always_inline __u32 task_ns_pid(const struct task_struct *task)
{
	const struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	const struct upid *own = (const void *)((__u64)__builtin_preserve_access_index(
							&pid->numbers[0]) +
						level * bpf_core_type_size(struct upid));

	return (__u32)BPF_CORE_READ(own, nr);
}

#endif
