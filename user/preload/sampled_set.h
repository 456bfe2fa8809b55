/*
 * The set of live blocks that are samples, which every free checks.
 *
 * Nearly every free is of a block that is not in it, so that check must be cheap: one byte for each
 * hash value counts the blocks of that hash. That is 16 KiB of bytes, zero for all but a few (a
 * heap of 1 GiB has some 2,000 samples at the default rate: 12 % of the bytes). Where it is not
 * zero, the slots are searched: 8 of a cache line at the hash, and three lines further if those
 * were full.
 *
 * The block itself carries no mark: its size, alignment and usable size are unchanged, and nothing
 * of the allocator need be known.
 *
 * Without locks, so that it can be used in a signal handler, and in the child of a fork whatever
 * other threads were doing: a slot is taken and given by one exchange. The byte is counted up
 * before and down after: it may be too high, which costs a look, and is never too low.
 */
#ifndef MEMSCOPE_PRELOAD_SAMPLED_SET_H
#define MEMSCOPE_PRELOAD_SAMPLED_SET_H

#include <stdbool.h>
#include <stdint.h>

#define SET_HASH_BITS 14
#define SET_LINES     (1u << SET_HASH_BITS)
#define SET_WAYS      8
#define SET_REACH     4 /* lines */

struct sampled_set {
	uint8_t counts[SET_LINES]; /* SET_WAYS * SET_REACH at most */
	uintptr_t slots[SET_LINES][SET_WAYS] __attribute__((aligned(64)));
};

static inline uint32_t set_hash(const void *block)
{
	return (uint32_t)((uintptr_t)block * 0x9e3779b97f4a7c15ULL >> (64 - SET_HASH_BITS));
}

/* false: certainly not in it. */
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

	__atomic_fetch_add(&set->counts[hash], 1, __ATOMIC_RELAXED);
	if (set_exchange(set, hash, 0, (uintptr_t)block))
		return true;
	__atomic_fetch_sub(&set->counts[hash], 1, __ATOMIC_RELAXED);
	return false;
}

/* Takes it out; false: it was not there. */
static inline bool set_take(struct sampled_set *set, const void *block)
{
	uint32_t hash = set_hash(block);

	if (!block || !set_exchange(set, hash, (uintptr_t)block, 0))
		return false;
	__atomic_fetch_sub(&set->counts[hash], 1, __ATOMIC_RELAXED);
	return true;
}

#endif
