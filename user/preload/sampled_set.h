/*
 * The set of live blocks that are samples, which every free checks.
 *
 * Nearly every free is of a block that is not in it, so that check must be cheap, and most of all it must
 * not push the program's data out of the caches. So it begins with the block's page: a byte for each page of
 * 4 KiB, modulo 65,536 of them, counts the samples there. Blocks that are freed lie near others that are, so
 * frees within 256 KiB of addresses share one line (by a hash of the block, each would read one of 256 lines,
 * which is half of a first-level cache). At the default rate one page in 128 has a sample.
 *
 * For a block of such a page, one byte for each value of the block's hash counts the blocks of that hash: 16 KiB,
 * zero for all but a few (a heap of 1 GiB has some 2,000 samples: 12 % of the bytes). Where it is not zero, the
 * slots are searched: 8 of a cache line at the hash, and three lines further if those were full.
 *
 * The block itself carries no mark: its size, alignment and usable size are unchanged, and nothing
 * of the allocator need be known.
 *
 * Without locks, so that it can be used in a signal handler, and in the child of a fork whatever
 * other threads were doing: a slot is taken and given by one exchange. Both bytes are counted up
 * before and down after: they may be too high, which costs a look, and are never too low. A page's stays
 * at 255 once it is there, which takes so many samples at once.
 */
#ifndef MEMSCOPE_PRELOAD_SAMPLED_SET_H
#define MEMSCOPE_PRELOAD_SAMPLED_SET_H

#include <stdbool.h>
#include <stdint.h>

#define SET_HASH_BITS 14
#define SET_LINES     (1u << SET_HASH_BITS)
#define SET_WAYS      8
#define SET_REACH     4 /* lines */
#define SET_PAGE_BITS 12
#define SET_PAGES     (1u << 16)
#define SET_PAGE_MANY 255

struct sampled_set {
	uint8_t pages[SET_PAGES] __attribute__((aligned(64)));
	uint8_t counts[SET_LINES]; /* SET_WAYS * SET_REACH at most */
	uintptr_t slots[SET_LINES][SET_WAYS] __attribute__((aligned(64)));
};

static inline uint32_t set_hash(const void *block)
{
	return (uint32_t)((uintptr_t)block * 0x9e3779b97f4a7c15ULL >> (64 - SET_HASH_BITS));
}

static inline uint8_t *set_page(const struct sampled_set *set, const void *block)
{
	return (uint8_t *)&set->pages[(uint16_t)((uintptr_t)block >> SET_PAGE_BITS)];
}

/* false: certainly not in it. What every free asks. */
static inline bool set_page_maybe(const struct sampled_set *set, const void *block)
{
	return __atomic_load_n(set_page(set, block), __ATOMIC_RELAXED) != 0;
}

static inline void set_page_count(struct sampled_set *set, const void *block, int by)
{
	uint8_t *page = set_page(set, block), n = __atomic_load_n(page, __ATOMIC_RELAXED);

	while (n != SET_PAGE_MANY &&
	       !__atomic_compare_exchange_n(page, &n, (uint8_t)(n + by), false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

/* false: certainly not in it. What those of such a page ask next. */
static inline bool set_maybe(const struct sampled_set *set, const void *block)
{
	return __atomic_load_n(&set->counts[set_hash(block)], __ATOMIC_RELAXED) != 0;
}

static inline bool set_exchange(struct sampled_set *set, uint32_t hash, uintptr_t from,
				uintptr_t to)
{
	for (uint32_t i = 0; i < SET_REACH * SET_WAYS; i++) {
		uintptr_t *slot = &set->slots[(hash + i / SET_WAYS) % SET_LINES][i % SET_WAYS];
		uintptr_t found = __atomic_load_n(slot, __ATOMIC_RELAXED);

		if (found == from && __atomic_compare_exchange_n(slot, &found, to, false,
								 __ATOMIC_ACQ_REL,
								 __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/* false: no room near its hash. */
static inline bool set_add(struct sampled_set *set, const void *block)
{
	uint32_t hash = set_hash(block);

	set_page_count(set, block, 1);
	__atomic_fetch_add(&set->counts[hash], 1, __ATOMIC_RELAXED);
	if (set_exchange(set, hash, 0, (uintptr_t)block))
		return true;
	__atomic_fetch_sub(&set->counts[hash], 1, __ATOMIC_RELAXED);
	set_page_count(set, block, -1);
	return false;
}

/* Not in it, but asked about for good: both bytes say maybe. */
static inline void set_pin(struct sampled_set *set, const void *block)
{
	set_page_count(set, block, 1);
	__atomic_fetch_add(&set->counts[set_hash(block)], 1, __ATOMIC_RELAXED);
}

/* Takes it out; false: it was not there. */
static inline bool set_take(struct sampled_set *set, const void *block)
{
	uint32_t hash = set_hash(block);

	if (!block || !set_exchange(set, hash, (uintptr_t)block, 0))
		return false;
	__atomic_fetch_sub(&set->counts[hash], 1, __ATOMIC_RELAXED);
	set_page_count(set, block, -1);
	return true;
}

#endif
