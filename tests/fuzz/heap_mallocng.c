/*
 * Groups of musl as anyone may have written them: the walk ends, and what it says is in use lies in mappings.
 *
 *   { op:1 … }…    op odd: a meta     number:1 mem:2 avail:2 freed:2 bits:4
 *                  op even: a word    where:1 offset:2 bytes:1 what:1 word:8, `what` being what it counts from
 */
#include "heap_input.h"
#include "mallocng_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool put_meta(struct fake_memory *f, struct bytes *in)
{
	uint16_t mem, avail, freed;
	uint32_t bits;
	uint8_t number;

	if (bytes_u8(in, &number) < 0 || bytes_u16(in, &mem) < 0 || bytes_u16(in, &avail) < 0 ||
	    bytes_u16(in, &freed) < 0 || bytes_u32(in, &bits) < 0)
		return false;
	ng_fill_meta(f, number % 101, NG_GROUP + mem % NG_LEN, avail, freed, bits);
	return true;
}

static bool put_word(struct fake_memory *f, struct bytes *in)
{
	static const uint64_t bases[] = { NG_BSS, NG_AREA, NG_GROUP, 0 };
	struct heap_word w;

	if (!heap_word_next(in, &w))
		return false;
	fake_put(f, bases[w.where % 3] + w.offset % NG_LEN, w.word + bases[w.what % 4], w.len);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = bytes_of(data, len);
	struct heap_blocks blocks = { .max = 1 << 16, .wants_parts = true };
	struct fake_memory f;
	uint8_t op;

	ng_init(&f);
	while (bytes_u8(&in, &op) == 0 && (op & 1 ? put_meta(&f, &in) : put_word(&f, &in)))
		;
	heap_check_walk(&f, heap_walk_mallocng, "musl", 10000000, &blocks);
	for (uint64_t i = 0; i < blocks.n; i++) {
		const struct heap_map *m = heap_map_of(&f.mem, blocks.rows[i].addr);

		/* Groups may lie in each other as they like: blocks as well. */
		if (!m || 8 * (uint64_t)blocks.rows[i].words > m->end - blocks.rows[i].addr)
			abort();
	}
	heap_blocks_free(&blocks);
	fake_fini(&f);
	return 0;
}
