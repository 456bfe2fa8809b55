/*
 * jemalloc's map of pages as anyone may have written it: the walk ends, and what it says is in use lies
 * in it, each block apart.
 *
 *   { op:1 … }…    op odd: an extent  number:1 page:1 inside:2 bytes:2 state:1 class:1 nfree:2
 *                  op even: a word    where:1 offset:4 what:1 word:8, `what` being what it counts from
 */
#include "heap/jemalloc.h"
#include "heap_input.h"
#include "jemalloc_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool put_extent(struct fake_memory *f, struct bytes *in, bool slab)
{
	uint8_t number, page, state, class;
	uint16_t inside, size, nfree;

	if (bytes_u8(in, &number) < 0 || bytes_u8(in, &page) < 0 || bytes_u16(in, &inside) < 0 ||
	    bytes_u16(in, &size) < 0 || bytes_u8(in, &state) < 0 || bytes_u8(in, &class) < 0 ||
	    bytes_u16(in, &nfree) < 0)
		return false;
	je_extent(f, (struct je_extent){
			     .number = number,
			     .addr = JE_MEM + page * 4096ULL + inside % 4096,
			     .size = 64ULL * size,
			     .state = state & 7,
			     .class = class,
			     .nfree = nfree & 1023,
			     .slab = slab,
		     });
	return true;
}

static bool put_word(struct fake_memory *f, struct bytes *in)
{
	static const uint64_t bases[] = { 0, JE_BSS, JE_LEAF, JE_EDATA, JE_MEM };
	uint8_t where, what;
	uint32_t offset;
	uint64_t word, map;

	if (bytes_u8(in, &where) < 0 || bytes_u32(in, &offset) < 0 || bytes_u8(in, &what) < 0 ||
	    bytes_u64(in, &word) < 0)
		return false;
	map = where % FAKE_MAPS;
	fake_word(f, f->maps[map].start + 8ULL * (offset % (f->len[map] / 8)),
		  word + bases[what % 5]);
	return true;
}

/* What is found lies in .bss, and a block around the address that was asked for. */
static void find(struct fake_memory *f)
{
	uint64_t edata[16], start = 0, size = 0;
	struct heap_jemalloc je;

	je_tables(f, JE_BSS + 0x40, JE_BSS + 0x1000);
	if (heap_jemalloc_find(&f->mem, &je) < 0)
		return;
	if (je.root < JE_BSS || je.sizes - JE_BSS > JE_BSS_LEN || je.classes - JE_BSS > JE_BSS_LEN)
		abort();
	for (uint64_t i = 0; i < 64; i++) {
		uint64_t addr = JE_MEM + 1000 * i, at = JE_EDATA + 128 * (i % 8);

		if (f->mem.read(f->mem.ctx, at, edata, sizeof(edata)) &&
		    heap_jemalloc_block(&je, addr, at, edata, &start, &size) == HEAP_IN_USE &&
		    (!size || start > addr))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = bytes_of(data, len);
	struct fake_memory f;
	uint8_t op;

	je_init(&f);
	while (bytes_u8(&in, &op) == 0 &&
	       (op & 1 ? put_extent(&f, &in, op & 2) : put_word(&f, &in)))
		;
	heap_check_walk_apart(&f, heap_walk_jemalloc, "jemalloc", 10000000);
	find(&f);
	fake_fini(&f);
	return 0;
}
