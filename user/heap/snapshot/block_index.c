#include "heap/snapshot/block_index.h"

enum { GAP = 1 << 20, UNIT = 8 }; /* stretches are further apart; what a bit stands for */

struct stretch {
	uint64_t start, end;
	uint64_t word; /* its first in `bits` and `before` */
};

struct block_index {
	const struct heap_block *blocks;
	uint64_t n; /* of an index without stretches */
	struct stretch *stretches;
	uint64_t n_stretches, n_words;
	uint64_t *bits;
	uint32_t *before; /* blocks that begin before this word's */
};

/* One of no bytes has an address, too. */
static uint64_t end_of(const struct heap_block *b)
{
	return b->addr + 8 * (uint64_t)(b->words ? b->words : 1);
}

/* Counts them, or fills them in. */
static uint64_t find_stretches(const struct heap_block *blocks, uint64_t n, struct stretch *ret)
{
	uint64_t found = 0, end = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (!i || blocks[i].addr > end + GAP) {
			found++;
			if (ret)
				ret[found - 1].start = blocks[i].addr & ~(uint64_t)(UNIT - 1);
		}
		end = end_of(&blocks[i]) > end || !i ? end_of(&blocks[i]) : end;
		if (ret)
			ret[found - 1].end = end;
	}
	return found;
}

static void lay_out(struct block_index *w)
{
	for (uint64_t i = 0; i < w->n_stretches; i++) {
		struct stretch *s = &w->stretches[i];

		s->word = w->n_words;
		w->n_words += (s->end - s->start) / (64 * UNIT) + 1;
	}
}

static void fill(struct block_index *w, uint64_t n)
{
	const struct stretch *s = w->stretches;
	uint32_t sum = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t bit;

		while (w->blocks[i].addr >= s->end)
			s++;
		bit = (w->blocks[i].addr - s->start) / UNIT;
		w->bits[s->word + bit / 64] |= 1ULL << bit % 64;
	}
	for (uint64_t i = 0; i < w->n_words; i++) {
		w->before[i] = sum;
		sum += (uint32_t)__builtin_popcountll(w->bits[i]);
	}
}

struct block_index *block_index_new(const struct heap_block *blocks, uint64_t n)
{
	_cleanup_(block_index_freep) struct block_index *w =
		n < BLOCK_NONE ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return NULL;
	w->blocks = blocks;
	w->n_stretches = find_stretches(blocks, n, NULL);
	w->stretches = calloc(w->n_stretches + 1, sizeof(*w->stretches));
	if (!w->stretches)
		return NULL;
	find_stretches(blocks, n, w->stretches);
	lay_out(w);
	w->bits = calloc(w->n_words + 1, sizeof(*w->bits));
	w->before = calloc(w->n_words + 1, sizeof(*w->before));
	if (!w->bits || !w->before)
		return NULL;
	fill(w, n);
	return TAKE_PTR(w);
}

struct block_index *block_index_sorted(const struct heap_block *blocks, uint64_t n)
{
	struct block_index *w = n < BLOCK_NONE ? calloc(1, sizeof(*w)) : NULL;

	if (w)
		*w = (struct block_index){ .blocks = blocks, .n = n };
	return w;
}

void block_index_free(struct block_index *w)
{
	if (!w)
		return;
	free(w->stretches);
	free(w->bits);
	free(w->before);
	free(w);
}

static const struct stretch *stretch_of(const struct block_index *w, uint64_t addr)
{
	uint64_t low = 0, high = w->n_stretches;

	if (!high || addr < w->stretches[0].start || addr >= w->stretches[high - 1].end)
		return NULL;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (addr >= w->stretches[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	return addr >= w->stretches[low].start ? &w->stretches[low] : NULL;
}

static uint32_t count_by_halves(const struct block_index *w, uint64_t addr)
{
	uint64_t low = 0, high = w->n;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (w->blocks[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return (uint32_t)low;
}

/* How many blocks begin at or before `addr`, which is in this stretch. */
static uint32_t count_by_bits(const struct block_index *w, const struct stretch *s, uint64_t addr)
{
	uint64_t bit, word, below;

	bit = (addr - s->start) / UNIT;
	word = s->word + bit / 64;
	below = w->bits[word] & (~0ULL >> (63 - bit % 64));
	return w->before[word] + (uint32_t)__builtin_popcountll(below);
}

uint32_t block_index_find(const struct block_index *w, uint64_t addr, uint32_t *ret_offset)
{
	const struct stretch *s = w->n ? NULL : stretch_of(w, addr);
	uint32_t n = w->n ? count_by_halves(w, addr) : s ? count_by_bits(w, s, addr) : 0;

	if (!n || addr < w->blocks[n - 1].addr || addr >= end_of(&w->blocks[n - 1]))
		return BLOCK_NONE;
	*ret_offset = (uint32_t)(addr - w->blocks[n - 1].addr);
	return n - 1;
}
