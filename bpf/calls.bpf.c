/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source: calls of functions that have no name, while it is found out which of them allocate
 * (user/run/alloc/behaviour.c). At the entry of a function, and at the instruction behind a call of it: the
 * registers as they are there, and what jemalloc's map of pages says at that moment of the block that is
 * passed in, or has come out: a little later it may be another one. What belongs together is for user space
 * to say.
 *
 * Never at a return: of these functions it is not known whether they throw.
 */
#include "common.bpf.h"

/* user/heap/jemalloc.c draws the map. */
static __always_inline void extent_read(struct ms_call_rec *rec, __u64 addr)
{
	__u64 leaf = 0, edata;

	rec->addr = addr;
	if (addr >> 48 ||
	    bpf_probe_read_user(&leaf, sizeof(leaf), (void *)(calls_root + (addr >> 30) * 8)) ||
	    !leaf)
		return;
	if (bpf_probe_read_user(&rec->entry, sizeof(rec->entry),
				(void *)(leaf + (addr >> 12 & 0x3ffff) * 8)) ||
	    !rec->entry)
		return;
	edata = rec->entry & calls_edata;
	rec->known = !bpf_probe_read_user(rec->edata, sizeof(rec->edata), (void *)edata);
}

SEC("uprobe")
int see_call(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32;
	struct ms_call_rec *rec;

	if (calls_left <= 0 || !bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	__sync_fetch_and_add(&calls_left, -1);
	rec = bpf_ringbuf_reserve(&events, sizeof(*rec), 0);
	if (!rec) {
		stat_inc(STAT_CALLS_LOST);
		return 0;
	}
	__builtin_memset(rec, 0, sizeof(*rec));
	rec->kind = MS_EV_CALL;
	rec->tid = (__u32)id;
	rec->pc = PT_REGS_IP(ctx);
	rec->sp = PT_REGS_SP(ctx);
	rec->behind = cfg_cookies && bpf_get_attach_cookie(ctx) == MS_COOKIE_BEHIND;
	if (rec->behind) {
		extent_read(rec, PT_REGS_RC(ctx));
	} else {
		rec->arg[0] = PT_REGS_PARM1(ctx);
		rec->arg[1] = PT_REGS_PARM2(ctx);
		bpf_probe_read_user(&rec->word, sizeof(rec->word), (void *)rec->sp);
		extent_read(rec, rec->arg[0]);
	}
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
