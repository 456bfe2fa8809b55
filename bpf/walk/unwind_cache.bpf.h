/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The unwind cache: stacks that need not be walked again. A program allocates and waits at the same
 * places, called by the same functions, again and again. The cache keeps what a walk depended on,
 * with the hash of its stack; while all of that is unchanged, so is the hash.
 *
 * This is exact, not a guess. From a frame to its caller a walk uses the pc and three things:
 *
 *   registers   only sp and the frame pointer; a walk that uses others is not cached (walk_uses).
 *               sp is the CFA of the frame before. The frame pointer is the one with which the walk
 *               began (needs_fp), or was read from the stack
 *   words       of the stack: return addresses, CFAs, and saved frame pointers where a rule uses
 *               one; each that was read is noted (walk_note)
 *   tables      the rule at the pc, in the table of the span that covers it
 *
 * So with the same pc, sp, frame pointer and words, each step is the same while the tables are, by
 * induction from the leaf. Other words may differ, and do. A walk that depends on more is not
 * cached: a signal's frame, a return that is probed (the kernel's list), the code at a leaf without
 * rows, memory that could not be read, more than MS_NOTES words, or words neither within
 * MS_WINDOW_BYTES nor in the first MS_FAR_WORDS behind that.
 *
 * Only MS_COMPLETE stacks are cached: they were walked by rows alone, or by frame pointer in code
 * known to keep them, so a table that is added or removed later does not change them. Rows belong
 * to a file, and a table's number is not given to another file while a list of spans names it
 * (unwind/publish.h). That leaves the spans. When a process's mappings change, it gets a new list;
 * pool words of an old list are not reused for MS_POOL_GRACE_NS. User space sets clock_s before it
 * publishes a list, and a walk is cached only if clock_s is the same as before the walk looked up
 * its spans. So a cached walk began within the grace time. It also looks up tables once a second,
 * which keeps their time of last use (ms_table.used).
 *
 * User space has been sent the stack of every cached walk.
 *
 * One entry is written by programs of one CPU and one type, which may preempt one another. A writer
 * registers itself and checks whether it is alone; a reader checks at its end whether anything was
 * written meanwhile.
 */
#ifndef MEMSCOPE_WALK_UNWIND_CACHE_BPF_H
#define MEMSCOPE_WALK_UNWIND_CACHE_BPF_H

#include "walk/walk_cfi.bpf.h"

struct cached_walk {
	__u32 writers, writes; /* now; in all so far */
	__u32 tgid, clock_s;
	struct ms_space space;
	struct ms_hash hash;
	struct ms_notes notes;
};

/* For each CPU: cfg_unwind_caches entries for each of the program types below. Written and read by
 * them; a new stack evicts the old one of its entry. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cached_walk);
} unwind_caches __weak SEC(".maps");

enum unwind_cache_lane {
	UNWIND_CACHE_SWITCH,
	UNWIND_CACHE_ALLOC,
	N_UNWIND_CACHE_LANES,
};

/* On-CPU samples of one CPU seldom find a stack twice in a second. */
static __always_inline bool unwind_cache_wanted(__u32 slot)
{
	return cfg_unwind_caches &&
	       (slot == SCRATCH_SWITCH || slot == SCRATCH_WAKING || slot == SCRATCH_ALLOC);
}

/* The entry of the walk that is about to begin, or has ended. */
static __always_inline struct cached_walk *unwind_cache_at(const struct stack_scratch *s,
							   __u32 slot)
{
	__u64 hash = s->walk.notes.pc ^ s->walk.notes.sp << 1 ^ s->caller << 2;
	__u32 ix;

	hash = hash * 0x9e3779b97f4a7c15ULL >> 32;
	ix = (__u32)(hash * cfg_unwind_caches >> 32);
	if (slot == SCRATCH_ALLOC)
		ix += UNWIND_CACHE_ALLOC * cfg_unwind_caches;
	return bpf_map_lookup_elem(&unwind_caches, &ix);
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
