/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Deferred stacks, which user space walks: registers and a copy of the stack, sent as struct
 * ms_deferred_rec.
 *
 * The copy is no longer than it need be. For a main thread the end of the stack is known; for other
 * threads and small stacks MS_DEFERRED_SMALL bytes are tried. Copies go page by page and end where
 * the memory does. They begin at sp: what CFI says is saved below sp has been restored already. In
 * 2,125 files of Debian 12 that is so in 9.0 of 25.4 million rows, all of them in epilogues and
 * none in the red zone of a leaf; a walk in place reads those slots, too. No CPU sends more than
 * cfg_deferred_rate bytes in DEFERRED_PERIOD_NS, which 99 Hz never reaches.
 */
#ifndef MEMSCOPE_WALK_DEFERRED_BPF_H
#define MEMSCOPE_WALK_DEFERRED_BPF_H

#include "common.bpf.h"
#include "walk/walk_cfi.bpf.h"

#define DEFERRED_PERIOD_NS 10000000
#define STACK_LIMIT       (64ULL << 20) /* further from the main stack's end is another stack */

struct deferred_rate {
	__u64 since_ns;
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct deferred_rate);
} deferred_rates __weak SEC(".maps");

/*
 * Copies take at most half of the ring. The other half is for samples and walked stacks, which
 * would be lost otherwise: when a process loads libraries while user space has no CPU, copies fill
 * a ring of any size.
 */
static __always_inline bool deferred_has_room(__u32 bytes)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) + bytes <=
	       bpf_ringbuf_query(&events, BPF_RB_RING_SIZE) / 2;
}

static __always_inline bool deferred_may_send(__u64 now_ns, __u32 bytes)
{
	__u32 zero = 0;
	struct deferred_rate *rate = bpf_map_lookup_elem(&deferred_rates, &zero);

	if (!rate)
		return false;
	if (now_ns - rate->since_ns > DEFERRED_PERIOD_NS) {
		rate->since_ns = now_ns;
		rate->bytes = 0;
	}
	if (rate->bytes + bytes > cfg_deferred_rate)
		return false;
	rate->bytes += bytes;
	return true;
}

/* Copies up to `room` bytes of the stack at `sp` to `to`. Returns how many were readable. */
static __always_inline __u32 deferred_copy(__u8 *to, __u32 room, __u64 sp)
{
	__u32 part = MS_PAGE_BYTES - (sp & (MS_PAGE_BYTES - 1)), done = 0;

	if (part > MS_PAGE_BYTES || bpf_probe_read_user(to, part, (void *)sp))
		return 0;
	done = part;
	for (int i = 0; i < MS_DEFERRED_LARGE / MS_PAGE_BYTES; i++) {
		if (done > room - MS_PAGE_BYTES)
			break;
		if (bpf_probe_read_user(to + done, MS_PAGE_BYTES, (void *)(sp + done)))
			break;
		done += MS_PAGE_BYTES;
	}
	return done;
}

static __always_inline void deferred_fill(struct ms_deferred_rec *rec, const struct ms_walk *w,
					 const struct ms_proc *proc, __u32 tid, __u32 as_gen,
					 enum ms_source source, __u64 now_ns,
					 const struct ms_hash *hash)
{
	rec->kind = MS_EV_DEFERRED;
	rec->hash = *hash;
	rec->proc = *proc;
	rec->time_ns = now_ns;
	rec->as_gen = as_gen;
	rec->tid = tid;
	rec->source = source;
	rec->switches = 0;
	rec->pc = w->pc;
	rec->thread_base = w->lang.lang ? w->thread_base : 0;
	__builtin_memcpy(rec->regs, w->regs, sizeof(rec->regs));
}

/* A unique name for the stack of one thread at one time. */
static __always_inline struct ms_hash deferred_name(__u64 now_ns, __u32 tid)
{
	struct ms_hash hash = { .lo = cfg_seed_lo, .hi = cfg_seed_hi };

	ms_hash_step(&hash, now_ns);
	ms_hash_step(&hash, tid);
	ms_hash_end(&hash, MS_EV_DEFERRED);
	return hash;
}

/* May the stack of the current task go to user space now? Then s->hash is the name under which it will be stored. 0, or -1:
 * the rate is used up, or there is no room. */
static __always_inline int deferred_begin(struct stack_scratch *s, const struct task_struct *task)
{
	__u64 above = BPF_CORE_READ(task, mm, start_stack) - s->walk.regs[MS_WALK_SP];

	s->defer_ns = bpf_ktime_get_ns();
	if (!deferred_may_send(s->defer_ns, above <= MS_DEFERRED_LARGE ? (__u32)above
					    : above < STACK_LIMIT     ? MS_DEFERRED_LARGE
								      : MS_DEFERRED_SMALL)) {
		stat_inc(STAT_DEFERRED_LIMITED);
		return -1;
	}
	if (!deferred_has_room(MS_DEFERRED_LARGE)) {
		stat_inc(STAT_DEFERRED_RING_FULL);
		return -1;
	}
	s->hash = deferred_name(s->defer_ns, (__u32)bpf_get_current_pid_tgid());
	return 0;
}

/* Then sends the registers in `s->walk` and the stack they point to, of a thread of s->proc. 0, or -1. */
static __always_inline int deferred_send(struct stack_scratch *s, const struct task_struct *task, __u32 as_gen,
					enum ms_source source)
{
	__u64 sp = s->walk.regs[MS_WALK_SP], above = BPF_CORE_READ(task, mm, start_stack) - sp;
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), n;
	struct ms_deferred_rec *rec;

	if (above > MS_DEFERRED_SMALL && above < STACK_LIMIT) {
		rec = bpf_ringbuf_reserve(&events, sizeof(*rec) + MS_DEFERRED_LARGE, 0);
		if (!rec) {
			stat_inc(STAT_DEFERRED_RING_FULL);
			return -1;
		}
		deferred_fill(rec, &s->walk, &s->proc, tid, as_gen, source, s->defer_ns, &s->hash);
		rec->stack_bytes = deferred_copy((__u8 *)(rec + 1), MS_DEFERRED_LARGE, sp);
		bpf_ringbuf_submit(rec, 0);
	} else {
		deferred_fill(&s->pending, &s->walk, &s->proc, tid, as_gen, source, s->defer_ns, &s->hash);
		n = deferred_copy(s->bytes, MS_DEFERRED_SMALL, sp);
		if (n > MS_DEFERRED_SMALL)
			return -1;
		s->pending.stack_bytes = n;
		if (bpf_ringbuf_output(&events, &s->pending, sizeof(s->pending) + n, 0)) {
			stat_inc(STAT_DEFERRED_RING_FULL);
			return -1;
		}
	}
	stat_inc(STAT_STACK_DEFERRED);
	return 0;
}

/* The same for another task, which is blocked: its stack can only be read from user space. */
static __always_inline void deferred_send_blocked(struct stack_scratch *s, __u32 tid, __u32 switches,
						 __u32 as_gen, struct ms_hash *ret_hash)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct ms_hash hash = deferred_name(now_ns, tid);

	deferred_fill(&s->pending, &s->walk, &s->proc, tid, as_gen, MS_OFFCPU, now_ns, &hash);
	s->pending.stack_bytes = 0;
	s->pending.switches = switches;
	if (bpf_ringbuf_output(&events, &s->pending, sizeof(s->pending), 0)) {
		stat_inc(STAT_DEFERRED_RING_FULL);
		return;
	}
	stat_inc(STAT_STACK_DEFERRED);
	*ret_hash = hash;
}

#endif
