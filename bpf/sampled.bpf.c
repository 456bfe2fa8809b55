/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source: sampled allocations, reported by a sampler inside the target: at its USDT sites (the
 * otel_memory contract; user/preload/sites.h), or where a runtime's or an allocator's own sampler
 * records a sample (user/collect/probes/samplers.h). Only sampled calls trap: one in some 512 KiB.
 *
 * Only what cannot be had later is taken here, the stack and the time; user space keeps the live
 * set, weights and sums (collect/stream/samples.c). Records go through the ring, in order. Where
 * there are too many samples, some are dropped at random, and the others weigh as much more.
 */
#include "common.bpf.h"
#include "stack.bpf.h"

static __always_inline bool site_arg(struct pt_regs *ctx, const struct ms_site_arg *arg, __u64 *ret)
{
	__u32 size = arg->size;
	__u64 v = 0, reg = 0;

	if (size < 1 || size > 8)
		return false;
	if (arg->kind == MS_ARG_CONST) {
		*ret = arg->value;
		return true;
	}
	if (arg->kind == MS_ARG_CODE)
		reg = PT_REGS_IP(ctx);
	else if (bpf_probe_read_kernel(&reg, sizeof(reg), (void *)ctx + arg->reg_off))
		return false;
	if (arg->kind == MS_ARG_REG)
		v = reg;
	else if (bpf_probe_read_user(&v, size, (void *)(reg + arg->value)))
		return false;
	v <<= 64 - 8 * size;
	*ret = arg->is_signed ? (__u64)((__s64)v >> (64 - 8 * size)) : v >> (64 - 8 * size);
	return true;
}

/* The address, and for an allocation the size and weight. */
static __always_inline bool site_args(struct pt_regs *ctx, struct ms_sample_rec *rec)
{
	__u64 cookie = cfg_cookies ? bpf_get_attach_cookie(ctx) : 0;
	bool all = rec->what != MS_SAMPLE_FREE;
	__u64 plus = 0, less = 0;
	__u32 key = (__u32)cookie - 1;
	const struct ms_site *site;

	if (!cookie) {
		rec->addr = PT_REGS_PARM1(ctx);
		rec->size = all ? PT_REGS_PARM2(ctx) : 0;
		rec->weight = all ? PT_REGS_PARM3(ctx) : 0;
		return true;
	}
	site = bpf_map_lookup_elem(&sites, &key);
	if (!site)
		return false;
	rec->source = site->source;
	rec->weigh = site->weigh;
	if (!site_arg(ctx, &site->args[0], &rec->addr))
		return false;
	if (!all && !site->by_class)
		return true;
	if (!site_arg(ctx, &site->args[1], &rec->size) ||
	    !site_arg(ctx, &site->args[2], &rec->weight))
		return false;
	if (site->weigh != MS_WEIGH_COUNTER)
		return true;
	if (!site_arg(ctx, &site->args[3], &plus) || !site_arg(ctx, &site->args[4], &less))
		return false;
	rec->weight += plus - less;
	return true;
}

/* The weight of a sample, when others were dropped for `shift`. */
static __always_inline void weigh(struct ms_sample_rec *rec, __u32 shift)
{
	if (rec->weigh == MS_WEIGH_COUNTER)
		return;
	if (rec->weigh == MS_WEIGH_BYTES) {
		rec->weight <<= shift;
		return;
	}
	if (rec->weigh == MS_WEIGH_RATE_LOG2)
		rec->weight = 1ULL << (rec->weight & 63);
	rec->weigh = MS_WEIGH_RATE;
	rec->shift = shift;
}

static __always_inline void sample_lost(const struct ms_sample_rec *rec)
{
	if (rec->what == MS_SAMPLE_FREE) {
		stat_inc(STAT_SAMPLE_FREES_LOST);
		return;
	}
	stat_inc(STAT_SAMPLE_LOST);
	if (rec->weigh == MS_WEIGH_COUNTER)
		return; /* its thread's next one stands for it */
	/* By rate, a small block weighs that plus half its size, a large one its size. */
	if (rec->weigh == MS_WEIGH_BYTES)
		stat_add(STAT_SAMPLE_LOST_BYTES, rec->weight);
	else
		stat_add(STAT_SAMPLE_LOST_BYTES,
			 (rec->size > 2 * rec->weight ? rec->size : rec->weight + rec->size / 2)
				 << rec->shift);
}

static __always_inline int on_sample(struct pt_regs *ctx, enum ms_sample_what what)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, tid = (__u32)id;
	bool is_free = what == MS_SAMPLE_FREE;
	__u32 shift = sample_shift & 15;
	struct ms_sample_rec rec = { .kind = MS_EV_SAMPLE, .what = what, .tid = tid };
	struct stack_of of = { .source = MS_ALLOC, .slot = SCRATCH_ALLOC };
	struct ms_target *target;

	/* A block of the watched thread may be freed by any other. */
	if (!gate_alloc_open ||
	    !target_wants((void *)bpf_get_current_task(), tgid, is_free && cfg_tid ? cfg_tid : tid,
			  &target, &rec.proc)) {
		stat_inc(STAT_PROBE_OTHER);
		return 0;
	}
	stat_inc(STAT_PROBE_HITS);
	stat_inc(is_free ? STAT_SAMPLE_FREES : STAT_SAMPLE_ALLOCS);
	if (!is_free && shift && bpf_get_prandom_u32() & ((1u << shift) - 1)) {
		stat_inc(STAT_SAMPLE_THROTTLED);
		return 0;
	}
	if (!site_args(ctx, &rec)) {
		sample_lost(&rec);
		return 0;
	}
	/* Where frees are not reported, the address is a condition (samplers.h). */
	if (what == MS_SAMPLE_UNTRACKED && rec.source && !rec.addr)
		return 0;
	if (!is_free)
		weigh(&rec, shift);
	rec.as_gen = of.as_gen = target_as_gen(target);
	rec.time_ns = bpf_ktime_get_ns();
	of.proc = &rec.proc;
	if (!is_free)
		stack_capture(ctx, &of, &rec.user);
	if (bpf_ringbuf_output(&events, &rec, sizeof(rec), events_wake()))
		sample_lost(&rec);
	return 0;
}

SEC("uprobe")
int BPF_KPROBE(sampled_alloc)
{
	return on_sample(ctx, MS_SAMPLE_ALLOC);
}

SEC("uprobe")
int BPF_KPROBE(sampled_untrack)
{
	return on_sample(ctx, MS_SAMPLE_UNTRACKED);
}

SEC("uprobe")
int BPF_KPROBE(sampled_free)
{
	return on_sample(ctx, MS_SAMPLE_FREE);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
