/*
 * Which blocks of memory locks are in, where every allocation is traced: what made them says what kind of lock it is.
 */
#ifndef MEMSCOPE_RUN_LOCK_BLOCKS_H
#define MEMSCOPE_RUN_LOCK_BLOCKS_H

#include "run/run.h"

struct lock_block {
	uint32_t pid;
	uint64_t lock; /* address */
	bool found;
	struct drain_block block;
};

/* Finds the live blocks around `n` locks, which it sorts. Before the gate closes; nothing where not every call is traced. */
void lock_blocks_find(struct run *r, struct lock_block *locks, uint32_t n);
/* What allocated that block: "a block of 64 B by session_new". After run_end(), when functions have names. false: not known. */
bool lock_block_text(struct run *r, const struct lock_block *locks, uint32_t n, uint32_t pid, uint64_t lock,
		     char *out, size_t cap);

#endif
