/*
 * A heap that anyone may have written: the walk ends, and what it says is in use lies in it.
 *
 *   flags:1 top:2 { where:1 offset:2 what:1 word:8 }…      `what` is what the word counts from
 */
#include "base/bytes.h"
#include "glibc_fixture.h"
#include "heap/census.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static uint64_t word_of(uint8_t what, uint64_t place, uint64_t word)
{
	static const uint64_t bases[] = { 0, FAKE_BRK, FAKE_HEAP, FAKE_DATA, FAKE_LARGE };

	if (what % 8 < 5)
		return word + bases[what % 8];
	return (FAKE_BRK + word % FAKE_LEN) ^ place >> 12; /* as lists are protected */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = bytes_of(data, len);
	struct heap_blocks blocks = { .max = 1 << 16, .wants_parts = true };
	struct heap_census c = { .blocks = &blocks };
	struct fake_memory f;
	uint8_t flags, where, what;
	uint16_t offset;

	fake_heap_init(&f);
	if (bytes_u8(&in, &flags) == 0 && bytes_u16(&in, &offset) == 0) {
		if (flags & 1)
			fake_second(&f);
		fake_top(&f, FAKE_BRK + 16ULL * (offset % (FAKE_LEN / 16 - 2)));
	}
	for (uint64_t word; bytes_u8(&in, &where) == 0 && bytes_u16(&in, &offset) == 0 &&
			    bytes_u8(&in, &what) == 0 && bytes_u64(&in, &word) == 0;) {
		uint64_t place = f.maps[where % FAKE_MAPS].start + 8ULL * (offset % (FAKE_LEN / 8));

		fake_word(&f, place, word_of(what, place, word));
	}
	if (heap_census_take(&f.mem, &c) < 0 || f.reads > 10000000 ||
	    !fake_blocks_lie_apart(&f, &blocks, 16))
		abort();
	for (uint32_t i = 0; i < c.n; i++)
		if (!blocks.over && !c.use[i].objects && c.use[i].live.blocks != blocks.n)
			abort();
	heap_blocks_free(&blocks);
	fake_fini(&f);
	return 0;
}
