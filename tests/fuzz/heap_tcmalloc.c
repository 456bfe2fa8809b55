/*
 * Spans of tcmalloc as anyone may have written them: the walk ends, and what it says is in use lies in mappings, each block
 * apart.
 *
 *   { op:1 … }…    op odd: a span     number:1 page:1 length:1 objects:2 bits:4
 *                  op even: a word    where:1 offset:2 bytes:1 what:1 word:8, `what` being what it counts from
 */
#include "heap_input.h"
#include "tcmalloc_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool put_span(struct fake_memory *f, struct bytes *in)
{
	uint8_t number, page, length;
	uint16_t objects;
	uint32_t bits;

	if (bytes_u8(in, &number) < 0 || bytes_u8(in, &page) < 0 || bytes_u8(in, &length) < 0 ||
	    bytes_u16(in, &objects) < 0 || bytes_u32(in, &bits) < 0)
		return false;
	tcf_put_span(f, number % 64, page % 8, length, objects ? TCF_HEAP + objects : 0, bits);
	return true;
}

static bool put_word(struct fake_memory *f, struct bytes *in)
{
	static const uint64_t places[] = { TCF_HEAP, TCF_BSS, TCF_META + TCF_SPANS, TCF_META };
	static const uint64_t bases[] = { 0, TCF_HEAP, TCF_BSS, TCF_META + TCF_SPANS };
	struct heap_word w;

	if (!heap_word_next(in, &w))
		return false;
	fake_put(f, places[w.where % 4] + w.offset, w.word + bases[w.what % 4], w.len);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = bytes_of(data, len);
	struct fake_memory f;
	uint8_t op;

	tcf_init(&f);
	while (bytes_u8(&in, &op) == 0 && (op & 1 ? put_span(&f, &in) : put_word(&f, &in)))
		;
	heap_check_walk_apart(&f, heap_walk_tcmalloc, "tcmalloc", 100000000);
	fake_fini(&f);
	return 0;
}
