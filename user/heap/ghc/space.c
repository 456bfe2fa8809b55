/*
 * Blocks of 4 KiB in megablocks of 1 MiB, whose first 16 KiB describe them, 64 bytes each. A group of blocks is described by
 * the first one's; a group of several megablocks has no descriptors in the others.
 */
#include "heap/ghc/ghc.h"

enum { TSO_LIST_MAX = 1 << 24 };

static uint64_t word(struct ghc *g, uint64_t addr)
{
	uint64_t w;

	return ghc_word(g, addr, &w) ? w : 0;
}

static uint32_t half(struct ghc *g, uint64_t addr)
{
	return (uint32_t)(word(g, addr & ~7ULL) >> 8 * (addr & 4));
}

static uint16_t quarter(struct ghc *g, uint64_t addr)
{
	return (uint16_t)(word(g, addr & ~7ULL) >> 8 * (addr & 6));
}

bool ghc_is_mblock(struct ghc *g, uint64_t mblock)
{
	uint32_t heads = 0;

	for (uint32_t i = GHC_FIRST_BLOCK; i < GHC_MBLOCK / GHC_BLOCK;) {
		uint64_t bd = mblock + (uint64_t)GHC_BD_BYTES * i;
		uint32_t blocks = half(g, bd + GHC_BD_BLOCKS);

		if (word(g, bd + GHC_BD_START) != mblock + (uint64_t)GHC_BLOCK * i)
			return false;
		heads += blocks != 0;
		if (blocks > GHC_MBLOCK / GHC_BLOCK - i)
			return heads == 1; /* of several megablocks: nothing is behind it */
		i += blocks ? blocks : 1;
	}
	return heads > 0;
}

static void add_cap(struct ghc_space *s, uint64_t cap)
{
	for (uint32_t i = 0; i < s->n_caps; i++)
		if (s->caps[i] == cap)
			return;
	if (cap && cap % 8 == 0 && s->n_caps < GHC_RUNNING_MAX)
		s->caps[s->n_caps++] = cap;
}

static void add_gen(struct ghc *g, struct ghc_space *s, uint64_t gen)
{
	uint32_t no;

	if (gen % 8 || ghc_in_heap(g, gen))
		return;
	for (uint32_t i = 0; i < GHC_GENS_MAX; i++)
		if (s->gens[i] == gen)
			return;
	no = half(g, gen + GHC_GEN_NO);
	if (no < GHC_GENS_MAX && !s->gens[no])
		s->gens[no] = gen;
}

static void add_group(struct ghc *g, struct ghc_space *s, uint64_t bd, uint32_t blocks)
{
	uint16_t flags = quarter(g, bd + GHC_BD_FLAGS);
	uint64_t gen = word(g, bd + GHC_BD_GEN);

	if (word(g, bd + GHC_BD_FREE) == UINT64_MAX) {
		s->free_blocks += blocks;
		return;
	}
	s->blocks += blocks;
	s->large += flags & GHC_BF_LARGE ? blocks : 0;
	s->pinned += flags & GHC_BF_PINNED ? blocks : 0;
	s->compact += flags & GHC_BF_COMPACT ? blocks : 0;
	s->nonmoving += flags & GHC_BF_NONMOVING ? blocks : 0;
	if (gen)
		add_gen(g, s, gen);
	else
		s->own += blocks;
}

/* Returns where the next one's begin. */
static uint64_t read_mblock(struct ghc *g, struct ghc_space *s, uint64_t mblock)
{
	for (uint32_t i = GHC_FIRST_BLOCK; i < GHC_MBLOCK / GHC_BLOCK;) {
		uint64_t bd = mblock + (uint64_t)GHC_BD_BYTES * i;
		uint32_t blocks = half(g, bd + GHC_BD_BLOCKS);

		if (blocks)
			add_group(g, s, bd, blocks);
		if (blocks > GHC_MBLOCK_BLOCKS) {
			uint64_t more = ((uint64_t)blocks - GHC_MBLOCK_BLOCKS) * GHC_BLOCK;

			return mblock + GHC_MBLOCK +
			       (more + GHC_MBLOCK - 1) / GHC_MBLOCK * GHC_MBLOCK;
		}
		i += blocks ? blocks : 1;
	}
	return mblock + GHC_MBLOCK;
}

/* The capabilities that threads belong to. */
static void add_caps(struct ghc *g, struct ghc_space *s, uint64_t tso)
{
	for (uint32_t n = 0; ghc_in_heap(g, tso) && n < TSO_LIST_MAX; n++) {
		add_cap(s, word(g, tso + GHC_TSO_CAP));
		tso = word(g, tso + GHC_TSO_GLOBAL_LINK);
	}
}

void ghc_space_list(struct ghc *g, struct ghc_space *s, uint64_t w)
{
	const struct ghc_info *i;

	if (!ghc_in_heap(g, w) || w % 8 || s->n_lists == GHC_LISTS_MAX)
		return;
	i = ghc_info_of(g, word(g, w));
	if (!i || (i->type != GHC_TSO && i->type != GHC_WEAK))
		return;
	s->lists[s->n_lists++] = w;
	if (i->type == GHC_TSO)
		add_caps(g, s, w);
}

/* Which run-time system it is, by how far its generations lie apart; and whether they are being collected. */
static void read_gens(struct ghc *g, struct ghc_space *s)
{
	for (uint32_t i = 0; i + 1 < GHC_GENS_MAX; i++)
		if (s->gens[i] && s->gens[i + 1])
			g->threaded = s->gens[i + 1] - s->gens[i] == GHC_GEN_BYTES_THREADED;
	for (uint32_t i = 0; i < GHC_GENS_MAX; i++) {
		uint64_t gen = s->gens[i], old;

		if (!gen)
			continue;
		old = gen + (g->threaded ? GHC_GEN_OLD_BLOCKS_THREADED : GHC_GEN_OLD_BLOCKS);
		s->collecting |= word(g, old) != 0;
		s->perhaps |= ghc_in_heap(g, word(g, old + GHC_GEN_OLD_THREADS)) ||
			      ghc_in_heap(g, word(g, old + GHC_GEN_OLD_THREADS + 8));
		s->collections[i] = half(g, gen + GHC_GEN_COLLECTIONS);
		add_caps(g, s, word(g, gen + GHC_GEN_THREADS));
	}
}

bool ghc_space_read(struct ghc *g, struct ghc_space *ret_space)
{
	uint64_t m = (g->begin + GHC_MBLOCK - 1) & ~(uint64_t)(GHC_MBLOCK - 1);

	*ret_space = (struct ghc_space){ 0 };
	while (m + GHC_MBLOCK <= g->end) {
		if (!ghc_is_mblock(g, m)) { /* released, or never used */
			m += GHC_MBLOCK;
			continue;
		}
		ret_space->mblocks++;
		m = read_mblock(g, ret_space, m);
	}
	if (!ret_space->blocks)
		return false;
	read_gens(g, ret_space);
	return true;
}
