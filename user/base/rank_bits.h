/*
 * A bit set with rank: values that only some elements of an array have are kept in a
 * second array, at rank_bits_before() of the element. 1.5 bits an element.
 */
#ifndef MEMSCOPE_BASE_RANK_BITS_H
#define MEMSCOPE_BASE_RANK_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: empty. */
struct rank_bits {
	uint64_t *words;
	uint32_t *before; /* set bits in the words before each one */
	uint32_t n, cap_words;
	uint32_t n_set;
};

/* Appends a bit. 0 or -ENOMEM. */
int rank_bits_add(struct rank_bits *b, bool bit);
/* Takes back the bit added last. */
void rank_bits_drop(struct rank_bits *b);
void rank_bits_free(struct rank_bits *b);

static inline bool rank_bits_get(const struct rank_bits *b, uint32_t i)
{
	return b->words[i / 64] >> i % 64 & 1;
}

/* Set bits among the first `i`; i < n. */
static inline uint32_t rank_bits_before(const struct rank_bits *b, uint32_t i)
{
	uint64_t below = ((uint64_t)1 << i % 64) - 1;

	return b->before[i / 64] + (uint32_t)__builtin_popcountll(b->words[i / 64] & below);
}

#endif
