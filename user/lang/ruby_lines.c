/*
 * Lines of Ruby's instructions (iseq.c, 2.6 on). An iseq has an entry for each instruction that begins a line or an event, and
 * a succinct index that says how many entries begin at or before a place: of the first 54 words in 6 words of nine
 * 7-bit counts, then in blocks of 512 words with a count for all before, seven 9-bit counts, and 512 bits.
 *
 *   insns_info: entries:8 positions:8 size:4 … index:8      entry: line:4 …
 */
#include "lang/ruby.h"

#include <errno.h>
#include <string.h>

enum {
	INFO_BYTES = 32,
	INFO_SIZE = 16,
	INFO_INDEX = 24,
	IMMEDIATE = 54, /* words */
	PER_WORD = 9,
	BLOCK_WORDS = 512,
	BLOCK_BYTES = 80, /* rank:4 pad:4 ranks:8 bits:64 */
	ENTRIES_MAX = 1 << 20,
};

/* How many entries begin at or before `at`. */
static int64_t rank_of(const struct lang_memory *mem, uint64_t index, uint32_t at)
{
	uint64_t block[BLOCK_BYTES / 8], word, part;
	uint32_t bit, before, rest;

	if (at < IMMEDIATE) {
		if (!lang_read(mem, index + at / PER_WORD * 8, &word, sizeof(word)))
			return -EIO;
		return (int64_t)(word >> at % PER_WORD * 7 & 0x7f);
	}
	at -= IMMEDIATE;
	if (!lang_read(mem,
		       index + IMMEDIATE / PER_WORD * 8 +
			       (uint64_t)(at / BLOCK_WORDS) * BLOCK_BYTES,
		       block, sizeof(block)))
		return -EIO;
	bit = at % BLOCK_WORDS;
	part = bit / 64;
	rest = bit % 64;
	before = part ? (uint32_t)(block[1] >> (part - 1) * 9 & 0x1ff) : 0;
	return (uint32_t)block[0] + before + __builtin_popcountll(block[2 + part] << (63 - rest));
}

int64_t ruby_line(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t body,
		  uint32_t at)
{
	uint8_t info[INFO_BYTES];
	uint64_t entries, index;
	uint32_t size;
	int32_t line;
	int64_t rank = 1;

	if (!lang_read(mem, body + ruby->lines, info, sizeof(info)))
		return -EIO;
	memcpy(&entries, info, sizeof(entries));
	memcpy(&size, info + INFO_SIZE, sizeof(size));
	memcpy(&index, info + INFO_INDEX, sizeof(index));
	if (!size || size > ENTRIES_MAX)
		return 0;
	/* The pc is that of the next instruction, except before the first. */
	if (size > 1)
		rank = rank_of(mem, index, at ? at - 1 : 0);
	if (rank < 0)
		return rank;
	if (rank < 1 || rank > size)
		return 0;
	if (!lang_read(mem, entries + (uint64_t)(rank - 1) * ruby->line_bytes, &line, sizeof(line)))
		return -EIO;
	return line > 0 ? line : 0;
}
