/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every program needs: counters, who is watched, and shims for renamed kernel fields.
 */
#ifndef MEMSCOPE_COMMON_BPF_H
#define MEMSCOPE_COMMON_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi.h"
#include "config.bpf.h"
#include "maps.bpf.h"

#define E2BIG 7 /* what a full hash map returns */

static __always_inline void stat_add(enum stat_id id, __u64 n)
{
	__u32 key = id;
	__u64 *slot = bpf_map_lookup_elem(&stats, &key);

	if (slot)
		__sync_fetch_and_add(slot, n); /* uprobe programs are preempted by others on their CPU */
}

static __always_inline void stat_inc(enum stat_id id)
{
	stat_add(id, 1);
}

/* task_struct.state became __state in kernel commit 2f064a59a11f (5.14). */
struct task_struct___old {
	volatile long state;
} __attribute__((preserve_access_index));

static __always_inline __u32 task_state(const struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return (__u32)BPF_CORE_READ((const struct task_struct___old *)task, state);
}

static __always_inline void task_proc(const struct task_struct *task, struct ms_proc *proc)
{
	proc->tgid = BPF_CORE_READ(task, tgid);
	proc->exec_id = (__u32)BPF_CORE_READ(task, self_exec_id);
	proc->start_ns = BPF_CORE_READ(task, group_leader, start_time);
}

/* The same of the current task: since 5.11 without a call for each field. */
static __always_inline void current_proc(struct ms_proc *proc)
{
	const struct task_struct *task;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)) {
		task_proc((void *)bpf_get_current_task(), proc);
		return;
	}
	task = bpf_get_current_task_btf();
	proc->tgid = task->tgid;
	proc->exec_id = (__u32)task->self_exec_id;
	proc->start_ns = task->group_leader->start_time;
}

/*
 * Is this thread (NULL: the current one) watched? Cheapest tests first: in a run of one process,
 * every other process costs a single look-up. *ret_target may be NULL under -a: then nothing is
 * known of the process and its generation is 0. *ret_proc is set when the thread is watched.
 */
static __always_inline bool target_wants(const struct task_struct *task, __u32 tgid, __u32 tid,
					 struct ms_target **ret_target, struct ms_proc *ret_proc)
{
	struct ms_target *target;

	*ret_target = NULL;
	if (!gate_open || !tid || (cfg_tid && tid != cfg_tid) || (cfg_all && tgid == cfg_self))
		return false;
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (!cfg_all && !target)
		return false;
	if (task)
		task_proc(task, ret_proc);
	else
		current_proc(ret_proc);
	if (target && target->start_ns != ret_proc->start_ns) {
		if (!target->start_ns)
			target->start_ns = ret_proc->start_ns;
		else if (cfg_all)
			target = NULL;
		else
			return false; /* its pid was reused */
	}
	*ret_target = target;
	return true;
}

static __always_inline __u32 target_as_gen(const struct ms_target *target)
{
	return target ? target->as_gen : 0;
}

/*
 * Flags for a record that need not be read at once: user space polls the ring several times a
 * second. Waking it costs the sender about 10 us in a virtual machine, so it is woken only when a
 * quarter of the ring is full.
 */
static __always_inline __u64 events_wake(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >
			       bpf_ringbuf_query(&events, BPF_RB_RING_SIZE) / 4
		       ? BPF_RB_FORCE_WAKEUP
		       : BPF_RB_NO_WAKEUP;
}

#endif
