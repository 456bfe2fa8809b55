/*
 * Blocks of equal contents: of the same bytes in use and, unless they are text, of the same size. What a block has behind the end
 * of a text or of a vector is left over and does not count; of other blocks every byte does, so that those that differ only in what an
 * allocator left behind them are not found. Compared by a hash of 64 bits (XXH3).
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_DUPS_H
#define MEMSCOPE_HEAP_SNAPSHOT_DUPS_H

#include "heap/snapshot/snapshot.h"

struct dup_group {
	uint32_t node;          /* the first of them, by address              */
	bool text, zeros;       /* zeros: every byte is 0                      */
	uint64_t blocks, bytes;
	uint64_t saved;         /* bytes of all but the largest of them        */
};

struct dups {
	struct dup_group *rows; /* most saved first                            */
	uint64_t n;
	uint64_t blocks, saved; /* of all groups: that have an equal one before them, their bytes */
	uint64_t looked_at;     /* blocks whose contents are known             */
};

/* -ENOMEM. */
int dups_find(const struct snapshot *s, struct dups *ret_dups);
void dups_fini(struct dups *d);

#endif
