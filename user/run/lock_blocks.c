#include "run/lock_blocks.h"

#include "analyse/sites.h"
#include "base/units.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct lock_block *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->lock > y->lock) - (x->lock < y->lock);
}

struct search {
	struct lock_block *locks;
	uint32_t n;
};

/* The first lock at or behind an address. */
static uint32_t first_from(const struct lock_block *locks, uint32_t n, uint32_t pid, uint64_t addr)
{
	const struct lock_block at = { .pid = pid, .lock = addr };
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (compare(&locks[middle], &at) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void on_block(void *ctx, const struct drain_block *block)
{
	struct search *s = ctx;

	for (uint32_t i = first_from(s->locks, s->n, block->proc.pid, block->addr);
	     i < s->n && s->locks[i].pid == block->proc.pid &&
	     s->locks[i].lock - block->addr < block->size;
	     i++) {
		s->locks[i].found = true;
		s->locks[i].block = *block;
	}
}

void lock_blocks_find(struct run *r, struct lock_block *locks, uint32_t n)
{
	struct search s = { locks, n };
	struct err none;

	if (!n || !r->alloc.live_blocks || r->alloc.tier != ALLOC_TIER_EXACT)
		return;
	qsort(locks, n, sizeof(*locks), compare);
	r->alloc.live_blocks(r->alloc.live_ctx, on_block, &s, &none);
}

bool lock_block_text(struct run *r, const struct lock_block *locks, uint32_t n, uint32_t pid,
		     uint64_t lock, char *out, size_t cap)
{
	uint32_t i = first_from(locks, n, pid, lock);
	struct site_row site;
	stack_id stack;

	if (i >= n || locks[i].pid != pid || locks[i].lock != lock || !locks[i].found ||
	    !r->alloc.block_stack(r->alloc.live_ctx, &locks[i].block, &stack) ||
	    site_of_stack(r->dict, stack, &site) < 0 || !*site.function)
		return false;
	snprintf(out, cap, "a block of %s by %.80s", unit_bytes((int64_t)locks[i].block.size).s,
		 site.function);
	return true;
}
