/*
 * Output of the programs: add to an in-kernel total (maps.bpf.h: totals).
 */
#ifndef MEMSCOPE_EMIT_BPF_H
#define MEMSCOPE_EMIT_BPF_H

#include "common.bpf.h"

static __always_inline __u32 emit_bucket(__u64 now_ns)
{
	return cfg_bucket_ns ? (__u32)((now_ns - cfg_start_ns) / cfg_bucket_ns) : 0;
}

/* Sends an addition for which the totals have no room. */
static __noinline bool emit_send(const struct ms_total_key *key, __u64 cgroup_id, __u64 count,
				 __u64 value)
{
	struct ms_total_rec *rec = bpf_ringbuf_reserve(&events, sizeof(*rec), 0);

	if (!rec)
		return false;
	rec->kind = MS_EV_TOTAL;
	rec->pad = 0;
	rec->key = *key;
	rec->total = (struct ms_total){ .count = count, .value = value, .cgroup_id = cgroup_id };
	bpf_ringbuf_submit(rec, events_wake());
	stat_add(STAT_TOTAL_SENT, count);
	return true;
}

/*
 * Adds (count, value) to the total of `key`, an event of `task` (not always the current one). What
 * cannot be added is sent through the ring; what cannot be sent is counted as lost.
 */
static __always_inline void emit_add(enum ms_lane lane, const struct ms_total_key *key,
				     const struct task_struct *task, __u64 count, __u64 value)
{
	__u32 slot = lane;
	struct ms_total *total, fresh = {};
	void *map = bpf_map_lookup_elem(&totals_live, &slot);
	long err;

	if (!map)
		return;
	total = bpf_map_lookup_elem(map, key);
	if (!total) {
		fresh.cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
		err = bpf_map_update_elem(map, key, &fresh, BPF_NOEXIST);
		total = bpf_map_lookup_elem(map, key);
		if (!total) {
			if (emit_send(key, fresh.cgroup_id, count, value))
				return;
			stat_add(err == -E2BIG ? STAT_TOTAL_FULL : STAT_TOTAL_BUSY, count);
			return;
		}
	}
	__sync_fetch_and_add(&total->count, count);
	__sync_fetch_and_add(&total->value, value);
}

#endif
