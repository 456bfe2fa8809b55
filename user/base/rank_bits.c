#include "base/rank_bits.h"

#include <errno.h>
#include <stdlib.h>

static int grow(struct rank_bits *b)
{
	uint32_t cap = b->cap_words ? 2 * b->cap_words : 64;
	uint64_t *words = reallocarray(b->words, cap, sizeof(*words));
	uint32_t *before;

	if (!words)
		return -ENOMEM;
	b->words = words;
	before = reallocarray(b->before, cap, sizeof(*before));
	if (!before)
		return -ENOMEM;
	b->before = before;
	b->cap_words = cap;
	return 0;
}

int rank_bits_add(struct rank_bits *b, bool bit)
{
	uint32_t word = b->n / 64;

	if (b->n == UINT32_MAX || (word == b->cap_words && grow(b) < 0))
		return -ENOMEM;
	if (b->n % 64 == 0) {
		b->words[word] = 0;
		b->before[word] = b->n_set;
	}
	b->words[word] |= (uint64_t)bit << b->n % 64;
	b->n_set += bit;
	b->n++;
	return 0;
}

void rank_bits_drop(struct rank_bits *b)
{
	uint64_t bit = (uint64_t)1 << (b->n - 1) % 64, *word = &b->words[(b->n - 1) / 64];

	b->n_set -= (*word & bit) != 0;
	*word &= ~bit;
	b->n--;
}

void rank_bits_free(struct rank_bits *b)
{
	free(b->words);
	free(b->before);
	*b = (struct rank_bits){ 0 };
}
