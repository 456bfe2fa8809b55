/*
 * Stacks that need not be walked again. A program allocates and waits at the same place, called by the
 * same functions, again and again; what a walk depended on is remembered with the hash that it had,
 * and where all of that is as it was the hash is the same.
 *
 * This is no guess. From a frame to its caller a walk goes by its pc and three things:
 *
 *   registers   of which only sp and the frame pointer are followed; a walk that takes any other is
 *               not remembered (walk_uses). sp is the frame before's CFA. The frame pointer is the one
 *               with which the walk began (needs_fp), or was read from the stack
 *   words       of the stack: return addresses, CFAs, and saved frame pointers where a rule goes by one;
 *               each that was read is noted (walk_note)
 *   tables      that of the span where the pc is: the rule at the pc
 *
 * So with the same pc, sp, frame pointer and words each step is the same as long as the tables are, by
 * induction from the leaf. Other words may differ, and do. What depends on more is not remembered: a
 * signal's frame, a return that is probed (the kernel's list), the code at a leaf without rows, memory
 * that could not be read, more than MS_NOTES words, or words neither within MS_WINDOW_BYTES nor in
 * the first MS_FAR_WORDS behind that.
 *
 * Only stacks that are MS_COMPLETE are: those went by rows alone, or where frame pointers are known to
 * be kept, so that no table that comes later says otherwise, and one that goes says nothing else.
 * Rows are a file's, and a file is never another's number while a list of spans names it
 * (unwind/publish.h). That leaves the spans. A process whose mappings have changed has other ones: the
 * pool words of a list are not reused for MS_POOL_GRACE_NS, and nothing is recalled when clock_s is not what
 * it was before the walk looked for its spans, which user space sets before it puts a list. With that,
 * the walk that is recalled is one that began within the grace time. It also looks up tables once a
 * second, so that those in use are known (ms_table.used).
 *
 * User space has been sent the stack: it would not be remembered otherwise.
 *
 * One entry is written by programs of one CPU and one type, that may preempt one another. Whoever
 * writes counts itself in, and finds out whether it is alone; whoever reads finds out at the end
 * whether anyone has written meanwhile.
 */
#ifndef MEMSCOPE_RECALL_BPF_H
#define MEMSCOPE_RECALL_BPF_H

#include "walk_cfi.bpf.h"

struct recall {
	__u32 writers, writes; /* at it now; so far */
	__u32 tgid, clock_s;
	struct ms_space space;
	struct ms_hash hash;
	struct ms_notes notes;
};

/* Of each CPU: cfg_recalls for each of the program types below. Written and read by them; another
 * stack of the same place takes its place. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct recall);
} recalls __weak SEC(".maps");

enum recall_lane {
	RECALL_SWITCH,
	RECALL_ALLOC,
	N_RECALL_LANES,
};

/* Samples of the CPU seldom find a stack twice in a second. */
static __always_inline bool recall_wanted(__u32 slot)
{
	return cfg_recalls && (slot == SCRATCH_SWITCH || slot == SCRATCH_ALLOC);
}

/* Where the walk that is about to begin, or has ended, would be remembered. */
static __always_inline struct recall *recall_at(const struct stack_scratch *s, __u32 slot)
{
	__u64 hash = s->walk.notes.pc ^ s->walk.notes.sp << 1 ^ s->caller << 2;
	__u32 ix;

	hash = hash * 0x9e3779b97f4a7c15ULL >> 32;
	ix = (__u32)(hash * cfg_recalls >> 32);
	if (slot == SCRATCH_ALLOC)
		ix += RECALL_ALLOC * cfg_recalls;
	return bpf_map_lookup_elem(&recalls, &ix);
}

static __always_inline bool same_space(const struct ms_space *a, const struct ms_space *b)
{
	return a->start_ns == b->start_ns && a->exec_id == b->exec_id && a->spans == b->spans &&
	       a->n_spans == b->n_spans && a->as_gen == b->as_gen;
}

static __always_inline bool same_beginning(const struct ms_notes *a, const struct ms_notes *b)
{
	return a->pc == b->pc && a->sp == b->sp && a->trampoline == b->trampoline &&
	       a->at_entry == b->at_entry && (!b->needs_fp || a->fp == b->fp);
}

#endif
