/*
 * stack_capture(): walk, store the stack once, return its hash.
 *
 * The walker behind it is chosen here (kernel: bpf_get_stack; user: frame pointers, walk_fp.bpf.h),
 * so that programs never know which one they use. Each program type brings its own scratch: a perf
 * interrupt may land inside a uprobe program.
 *
 * A uprobe program can also be preempted in the middle, and another thread's then uses the same
 * CPU's scratch. So the scratch remembers whose it is: a walk that finds another owner at its end
 * is done again, once. A record that was torn on the way out is not marked as sent, and user
 * space, which repeats the hash, throws it away.
 */
#ifndef MEMSCOPE_STACK_BPF_H
#define MEMSCOPE_STACK_BPF_H

#include "common.bpf.h"
#include "walk_fp.bpf.h"

struct stack_scratch {
	__u64 owner; /* pid_tgid of the walk under way */
	struct ms_stack_rec rec;
	__u64 frames[MS_MAX_FRAMES]; /* directly behind rec, as the record wants them */
};

/* The scratch of one program type: include after defining nothing else of that name. */
#define DEFINE_SCRATCH(map_name)                        \
	struct {                                        \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); \
		__uint(max_entries, 1);                 \
		__type(key, __u32);                     \
		__type(value, struct stack_scratch);    \
	} map_name SEC(".maps")

#define HASH_CHUNK 128 /* frames hashed; what bpf_get_stack gives at the usual sysctl is 127 */

static __always_inline void verdict_count(enum ms_source source, __u32 verdict)
{
	__u32 key = source * MS_N_VERDICTS + verdict;
	__u64 *slot = bpf_map_lookup_elem(&verdicts, &key);

	if (slot)
		__sync_fetch_and_add(slot, 1);
}

static __always_inline void stack_hash(const struct stack_scratch *s, __u32 n, struct ms_hash *h)
{
	h->lo = cfg_seed_lo;
	h->hi = cfg_seed_hi + n;
	for (__u32 i = 0; i < HASH_CHUNK; i++) {
		if (i >= n)
			break;
		ms_hash_step(h, s->frames[i]);
	}
	ms_hash_end(h);
}

/* Sends the stack in `s` unless user space has it. */
static __always_inline void stack_send(struct stack_scratch *s, enum ms_lane lane, __u32 n, __u64 me)
{
	__u8 one = 1;
	__u32 len = sizeof(s->rec) + n * sizeof(__u64);

	if (lane == MS_LANE_IRQ ? bpf_map_lookup_elem(&irq_seen, &s->rec.hash)
				: bpf_map_lookup_elem(&seen, &s->rec.hash))
		return;
	s->rec.kind = MS_EV_STACK;
	s->rec.time_ns = bpf_ktime_get_ns();
	if (len > sizeof(s->rec) + HASH_CHUNK * sizeof(__u64))
		return;
	if (bpf_ringbuf_output(&events, &s->rec, len, 0)) {
		stat_inc(STAT_STACK_RING_FULL);
		return;
	}
	if (s->owner != me)
		return;
	stat_inc(STAT_STACK_SENT);
	if (lane == MS_LANE_IRQ)
		bpf_map_update_elem(&irq_seen, &s->rec.hash, &one, BPF_ANY);
	else
		bpf_map_update_elem(&seen, &s->rec.hash, &one, BPF_ANY);
}

/*
 * Stores the stack of `len` bytes (or -errno) that a walker has put into `s->frames`. Returns its
 * verdict, or -1 when the scratch was taken over meanwhile. *ret_hash is all zero when there is no
 * stack.
 */
static __always_inline int stack_store(struct stack_scratch *s, enum ms_lane lane, long len,
				       __u32 flags, struct ms_hash *ret_hash)
{
	__u64 me = bpf_get_current_pid_tgid();
	struct ms_hash hash;
	__u32 n, verdict;

	ret_hash->lo = ret_hash->hi = 0;
	if (len <= 0)
		return MS_LOST;
	n = (__u32)len / sizeof(__u64);
	if (n > HASH_CHUNK)
		n = HASH_CHUNK;
	/* The kernel's list ends where the stack does, at its own bound, or at ours. */
	verdict = n >= HASH_CHUNK - 1 ? MS_TRUNCATED : flags & MS_STACK_KERNEL ? MS_COMPLETE : MS_GUESSED;
	stack_hash(s, n, &hash);
	s->rec.hash = hash;
	s->rec.n_frames = n;
	s->rec.verdict = verdict;
	s->rec.flags = flags;
	stack_send(s, lane, n, me);
	if (s->owner != me)
		return -1;
	*ret_hash = hash;
	return verdict;
}

static __always_inline int stack_walk(void *ctx, struct stack_scratch *s, enum ms_lane lane,
				      __u32 flags, struct ms_hash *ret_hash)
{
	long len;

	s->owner = bpf_get_current_pid_tgid();
	if (flags & MS_STACK_KERNEL)
		len = bpf_get_stack(ctx, s->frames, HASH_CHUNK * sizeof(__u64), 0);
	else if (flags & MS_STACK_AT_ENTRY)
		len = walk_fp_entry(ctx, s->frames, HASH_CHUNK);
	else
		len = walk_fp(ctx, s->frames, HASH_CHUNK * sizeof(__u64));
	return stack_store(s, lane, len, flags, ret_hash);
}

/*
 * Takes one stack of the current task: the kernel's (MS_STACK_KERNEL) or the user's. *ret_hash is
 * all zero when there is none. Verdicts are counted for user stacks: the kernel's are whole.
 */
static __always_inline void stack_capture(void *ctx, void *scratch, enum ms_source source,
					  __u32 flags, struct ms_hash *ret_hash)
{
	__u32 zero = 0;
	struct stack_scratch *s = bpf_map_lookup_elem(scratch, &zero);
	enum ms_lane lane = source == MS_ONCPU ? MS_LANE_IRQ : MS_LANE_TASK;
	int verdict;

	ret_hash->lo = ret_hash->hi = 0;
	if (!s)
		return;
	verdict = stack_walk(ctx, s, lane, flags, ret_hash);
	if (verdict < 0) {
		stat_inc(STAT_STACK_TORN);
		verdict = stack_walk(ctx, s, lane, flags, ret_hash);
		if (verdict < 0) {
			stat_inc(STAT_STACK_LOST);
			verdict = MS_LOST;
		}
	}
	if (flags & MS_STACK_KERNEL)
		return;
	if (verdict == MS_LOST)
		stat_inc(STAT_STACK_NO_USER);
	verdict_count(source, verdict);
}

#endif
