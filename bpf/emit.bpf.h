/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Output of the programs: add to an in-kernel total (maps.bpf.h: totals).
 */
#ifndef MEMSCOPE_EMIT_BPF_H
#define MEMSCOPE_EMIT_BPF_H

#include "common.bpf.h"

/* Since the gate opened; what was before that counts as then. */
static __always_inline __u64 slots_since(__u64 ns)
{
	return ns > slots_from_ns ? ns - slots_from_ns : 0;
}

static __always_inline __u16 slot_at(__u64 ns, __u64 slot_ns)
{
	return (__u16)(slots_since(ns) / slot_ns);
}

/* A wait, or a part of one, of `ns` ends at `end_ns`: its slot, and what of it is before that. */
static __always_inline __u16 slot_of_wait(__u64 end_ns, __u64 ns, __u64 *ret_before)
{
	__u64 at = slots_since(end_ns), slot = at / MS_SLOT_NS, in = at - slot * MS_SLOT_NS;

	*ret_before = ns > in ? ns - in : 0;
	return (__u16)slot;
}

/* Its id in the unified hierarchy. Through a helper: for a direct pointer walk the verifier searches all types for the name. */
static __always_inline __u64 task_cgroup(const struct task_struct *task)
{
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

/* Sends an addition for which the totals have no room. */
static __noinline bool emit_send(const struct ms_total_key *key, __u64 cgroup_id, __u64 count,
				 __u64 value, __u64 before)
{
	struct ms_total_rec *rec = bpf_ringbuf_reserve(&events, sizeof(*rec), 0);

	if (!rec)
		return false;
	rec->kind = MS_EV_TOTAL;
	rec->pad = 0;
	rec->key = *key;
	rec->total = (struct ms_total){
		.count = count, .value = value, .before = before, .cgroup_id = cgroup_id
	};
	bpf_ringbuf_submit(rec, events_wake());
	stat_add(STAT_TOTAL_SENT, count);
	return true;
}

/*
 * Adds (count, value) to the total of `key`, an event of `task` (not always the current one; NULL: of a task of
 * that control group). What cannot be added is sent through the ring; what cannot be sent is counted as lost.
 */
static __always_inline void emit_add_all(enum ms_lane lane, const struct ms_total_key *key,
					 const struct task_struct *task, __u64 cgroup_id,
					 __u64 count, __u64 value, __u64 before)
{
	__u32 slot = lane;
	struct ms_total *total, fresh = {};
	void *map = bpf_map_lookup_elem(&totals_live, &slot);
	long err;

	if (!map)
		return;
	total = bpf_map_lookup_elem(map, key);
	if (!total) {
		fresh.cgroup_id = task ? task_cgroup(task) : cgroup_id;
		err = bpf_map_update_elem(map, key, &fresh, BPF_NOEXIST);
		total = bpf_map_lookup_elem(map, key);
		if (!total) {
			if (emit_send(key, fresh.cgroup_id, count, value, before))
				return;
			stat_add(err == -E2BIG ? STAT_TOTAL_FULL : STAT_TOTAL_BUSY, count);
			return;
		}
	}
	__sync_fetch_and_add(&total->count, count);
	__sync_fetch_and_add(&total->value, value);
	if (before)
		__sync_fetch_and_add(&total->before, before);
}

static __always_inline void emit_add(enum ms_lane lane, const struct ms_total_key *key,
				     const struct task_struct *task, __u64 count, __u64 value)
{
	emit_add_all(lane, key, task, 0, count, value, 0);
}

#endif
