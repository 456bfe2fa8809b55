/*
 * What --contents words keeps of memory: addresses of something that is mapped, and small numbers. Whatever the memory has, nothing is
 * changed but to zero, no text of four letters is left outside of such an address, and what is left stays when it is asked again.
 *
 *   first:6 pages:2   of a mapping; then memory
 */
#include "base/bytes.h"
#include "heap/snapshot/contents.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LEN_MAX = 4096, HEAD = 8, LETTERS = 4 };

static void check(bool is)
{
	if (!is)
		abort();
}

static bool is_letter(uint8_t c)
{
	return c >= 0x20 && c != 0x7f;
}

static bool is_kept(const struct heap_map *m, uint64_t word)
{
	return word < 1 << 24 || (word >> 32 < 1 << 16 && (uint32_t)word < 1 << 16) ||
	       (word >= m->start && word < m->end);
}

/* Letters behind each other, of one byte each and of four. */
static void check_text(const struct heap_map *m, const uint8_t *bytes, size_t len)
{
	uint32_t half;
	uint64_t word;
	size_t n = 0;

	for (size_t i = 0; i + 4 <= len; i += 4) {
		memcpy(&half, bytes + i, 4);
		n = half >= 0x20 && half < 1 << 16 && half != 0x7f ? n + 1 : 0;
		check(n < LETTERS);
	}
	n = 0;
	for (size_t i = 0; i < len; i++) {
		if (i % 8 == 0) {
			memcpy(&word, bytes + i, 8);
			if (word >= m->start && word < m->end) {
				i += 7;
				n = 0;
				continue;
			}
		}
		n = is_letter(bytes[i]) ? n + 1 : 0;
		check(n < LETTERS);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(8) uint8_t kept[LEN_MAX], again[LEN_MAX];
	struct heap_map map = { .kind = HEAP_MAP_ANON };
	struct heap_memory mem = { .maps = &map, .n_maps = 1 };
	uint64_t head, word;
	size_t len;

	if (size < HEAD)
		return 0;
	memcpy(&head, data, HEAD);
	/* Where a process may have memory, but for the first 4 GiB: there addresses are text, too. */
	map.start = ((head & 0x7fffffff) << 16) | 1ULL << 32;
	map.end = map.start + ((head >> 48) << 12);
	len = size - HEAD < LEN_MAX ? size - HEAD : LEN_MAX;
	memcpy(kept, data + HEAD, len);
	contents_keep_words(&mem, kept, len);
	for (size_t i = 0; i < len; i++)
		check(!kept[i] || kept[i] == data[HEAD + i]);
	for (size_t i = 0; i + 8 <= len; i += 8) {
		memcpy(&word, kept + i, 8);
		check(is_kept(&map, word));
	}
	for (size_t i = len - len % 8; i < len; i++)
		check(!kept[i]);
	check_text(&map, kept, len - len % 8);
	memcpy(again, kept, len);
	contents_keep_words(&mem, again, len);
	check(memcmp(again, kept, len) == 0);
	return 0;
}
