/*
 * CPython's arenas as anyone may have written them: the walk ends, and what it says is there is no more
 * than what is mapped.
 *
 *   { where:1 offset:2 bytes:1 what:1 word:8 }…    `what` is what the word counts from
 */
#include "heap_input.h"
#include "pymalloc_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool put_word(struct fake_memory *f, struct bytes *in)
{
	static const uint64_t bases[] = { 0, PY_DATA, PY_TABLE, PY_AT, PY_FIRST };
	struct heap_word w;
	uint64_t map;

	if (!heap_word_next(in, &w))
		return false;
	map = w.where % f->mem.n_maps;
	fake_put(f, f->maps[map].start + w.offset % f->len[map], w.word + bases[w.what % 5], w.len);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = bytes_of(data, len);
	struct heap_blocks blocks = { .max = 1 << 16, .objects = true, .wants_parts = true };
	struct heap_use use = { 0 };
	struct fake_memory f;
	int r;

	py_init(&f);
	while (put_word(&f, &in))
		;
	r = heap_walk_pymalloc(&f.mem, &use, &blocks);
	for (uint64_t i = 0; i < blocks.n; i++)
		if (blocks.rows[i].addr < PY_AT || blocks.rows[i].addr >= PY_AT + 2 * PY_ARENA)
			abort();
	heap_blocks_free(&blocks);
	if ((r < 0 && r != -ENOENT) || f.reads > 10000000 ||
	    use.live.bytes + use.cached.bytes + use.free.bytes + use.top.bytes +
			    use.metadata.bytes + use.unknown.bytes >
		    2 * PY_ARENA)
		abort();
	if (heap_use_resident(&use) > 2 * PY_ARENA)
		abort();
	fake_fini(&f);
	return 0;
}
