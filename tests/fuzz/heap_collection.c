/*
 * Memory of a process as anyone may have made it: the input is variables and, behind them, blocks of words; whatever it has, walks end,
 * stay within it, and a container has no more blocks than there are.
 *
 *   words of a block: 1 byte; then memory. A word whose highest byte is 0xb1 is the address of the block that its lowest
 *   byte counts, with the second one added.
 */
#include "base/bytes.h"
#include "heap/snapshot/collection.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { BASE = 0x100000, WORDS_MAX = 1024, VARIABLES = 32 };

static uint64_t words[WORDS_MAX];
static uint64_t n_words;

static const uint8_t *bytes_at(void *ctx, uint64_t addr, uint64_t *ret_len)
{
	(void)ctx;
	if (addr < BASE || addr >= BASE + 8 * n_words)
		return NULL;
	*ret_len = BASE + 8 * n_words - addr;
	return (const uint8_t *)words + (addr - BASE);
}

static void count(void *ctx, uint32_t block, enum collection_part part)
{
	uint64_t *n = ctx;

	(void)block;
	(void)part;
	++*n;
}

static void look(const struct collection_memory *m, uint64_t at, bool counted)
{
	uint64_t n = 0;
	struct collection c;
	uint32_t offset, to;

	to = block_index_find(m->index, words[(at - BASE) / 8], &offset);
	if (to == BLOCK_NONE || !collection_at(m, at, to, counted, &c))
		return;
	collection_each(m, &c, count, &n);
	if (n != c.blocks || c.table >= m->n_blocks || c.live > collection_size(m, c.table))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct heap_block blocks[WORDS_MAX];
	uint8_t visited[WORDS_MAX] = { 0 };
	struct collection_memory m = { .bytes = bytes_at, .blocks = blocks, .visited = visited };
	uint32_t block_words = len ? 3 + data[0] % 16 : 3;
	struct block_index *index;

	if (!len)
		return 0;
	n_words = (len - 1) / 8 < WORDS_MAX ? (len - 1) / 8 : WORDS_MAX;
	memcpy(words, data + 1, 8 * n_words);
	for (uint64_t at = VARIABLES; at + block_words <= n_words; at += block_words)
		blocks[m.n_blocks++] =
			(struct heap_block){ .addr = BASE + 8 * at, .words = block_words };
	for (uint64_t i = 0; i < n_words && m.n_blocks; i++)
		if (words[i] >> 56 == 0xb1)
			words[i] = blocks[words[i] % 256 % m.n_blocks].addr + words[i] / 256 % 256;
	index = block_index_new(blocks, m.n_blocks);
	if (!index)
		return 0;
	m.index = index;
	for (uint64_t i = 1; i < n_words; i++)
		look(&m, BASE + 8 * i, true);
	for (uint64_t i = 1; i < n_words; i++)
		look(&m, BASE + 8 * i, false);
	block_index_free(index);
	return 0;
}
