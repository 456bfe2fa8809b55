/*
 * What memscope and its library in a process share while that one records every call: one memfd,
 * which the library makes (agent.c), and memscope sizes, fills and reads.
 *
 *   header ─► tables    unwind tables of the process, written by memscope; two sets, in turn
 *          ─► nodes     all stacks as one tree: a frame and its caller's node; each is written once
 *          ─► sites     struct ms_alloc_site (abi.h) for each stack and thread: what became of its
 *                       blocks, added up by the library as the kernel's programs do it
 *          ─► blocks    those that are live
 *
 * Nothing is sent: there is no ring that could be full, and nobody waits for a reader. When either
 * side is killed, the other has all that was recorded until then, but for one event of each thread.
 *
 * Here site.key.user.lo is the node of the stack's leaf, and key.tid the thread's number in the
 * process's own namespace; memscope writes the keys that it hands on itself. Site 1 is the root.
 *
 * memscope does not trust what the process can write: it copies, and checks each number. All places
 * are bytes from the beginning of the area; memory is touched by memscope first, whose memory it is
 * then counted as.
 */
#ifndef MEMSCOPE_PRELOAD_EXACT_AREA_H
#define MEMSCOPE_PRELOAD_EXACT_AREA_H

#include "abi.h"
#include "walk/lang.h"

#define EXACT_MAGIC 0x31454d41534f434dULL

/* --- stacks --- */

/* A frame: the word of a stack record (abi.h), with MS_FRAME_TAG_SHIFT and all. Node 0: nobody. The
 * outermost frame's caller is a node that stands for an address-space generation. A leaf is the
 * allocator's function at its first instruction, with the stack's verdict. */
struct exact_node {
	__u64 pc;
	__u32 caller; /* node */
	__u32 executes; /* it, or a caller, is code that executes frames of a language */
};

#define EXACT_GENERATION     (0xeULL << MS_FRAME_TAG_SHIFT) /* | lang_gen << 32 | as_gen */
#define EXACT_VERDICT_SHIFT  56                             /* of a leaf */
#define EXACT_LEAF_ADDR_MASK ((1ULL << EXACT_VERDICT_SHIFT) - 1)

/* --- blocks --- */

/*
 * Found by their address: EXACT_WAYS keys in one cache line, and their values behind it. A line that
 * is full spills over to the next ones, EXACT_REACH at most, and is marked for good.
 */
#define EXACT_WAYS  8
#define EXACT_REACH 32
#define EXACT_TAKEN 1 /* of a key: its value is not there yet */

struct exact_line {
	__u64 key[EXACT_WAYS]; /* address; 0: free */
	struct exact_block {
		__u64 size, born_ns;
		__u32 site;
		__u32 spilled; /* of the first: the line's mark */
	} value[EXACT_WAYS];
};

/* Blocks of the same KiB are in neighbouring lines: they are used together, and lie then in one page. */
static inline __u64 exact_line_of(__u64 addr, __u32 mask)
{
	return (((addr >> 10) * 0x9e3779b97f4a7c15ULL >> 30 & ~3ULL) | (addr >> 8 & 3)) & mask;
}

/* --- tables --- */

struct exact_tables {
	__u64 pool, tables, rules; /* where they are */
	__u32 n_words, n_tables, n_rules;
	__u32 spans, n_spans; /* as in struct ms_space */
	__u32 as_gen;
	__u32 lang_gen; /* of `lang`, in 16 bits */
	struct ms_lang_row lang; /* of MS_LANG_NONE: no runtime is known */
};

/* --- the whole --- */

enum exact_count {
	EXACT_FAILED,  /* calls that got no memory                                    */
	EXACT_UNKNOWN, /* frees of pre-existing blocks                                 */
	EXACT_REUSED,  /* addresses that came again: their free was not seen          */
	EXACT_FULL,    /* blocks for which the table had no room …                    */
	EXACT_FULL_BYTES,
	EXACT_SITES_FULL, /* calls whose stack or site had no room                       */
	EXACT_REENTERED,  /* calls of handlers, when too many of the thread were being recorded */
	EXACT_LEFT,       /* calls that a jump has left while they were being recorded   */
	EXACT_NO_THREAD,  /* calls of threads that had no room                           */
	EXACT_TIMED,      /* calls of which it was measured how long recording took …    */
	EXACT_TIMED_NS,
	N_EXACT_COUNTS,
};

struct exact_area {
	__u64 magic, bytes;
	__u64 nodes, node_slots; /* slots: node numbers, by hash; 0: free */
	__u64 sites, site_slots;
	__u64 lines;
	__u32 n_nodes, n_node_slots; /* room; numbers of slots and lines are powers of two */
	__u32 n_sites, n_site_slots;
	__u32 n_lines;
	__u32 on;          /* written by memscope: record */
	__u32 tables_seq;  /* sets[tables_seq & 1] is in force; 0: none yet */
	__u32 no_syscalls; /* written by memscope: the process has come under (more) seccomp */
	struct exact_tables sets[2];
	/* Written by the library. */
	__u32 used_nodes __attribute__((aligned(64)));
	__u32 used_sites;
	__u64 counts[N_EXACT_COUNTS];
	__u64 sizes[16][MS_SIZE_CLASSES] __attribute__((aligned(64))); /* by thread, and in all */
};

_Static_assert(sizeof(struct exact_line) == 256, "exact_line");

#endif
