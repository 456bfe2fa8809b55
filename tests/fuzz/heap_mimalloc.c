/*
 * A segment of mimalloc as anyone may have written it: the walk ends, and what it says is in use lies in
 * it, each block apart.
 *
 *   { op:1 … }…    op odd: a page     number:1 slices:2 capacity:2 reserved:2 used:2 size:4
 *                                     and, op & 2, its lists  free:2 local:2 thread:2
 *                  op even: a word    offset:2 bytes:1 what:1 word:8, `what` being what it counts from
 */
#include "heap_input.h"
#include "mimalloc_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool put_lists(struct fake_memory *f, struct bytes *in, uint64_t number)
{
	uint64_t start = MI_AT + number * MI_SLICE;
	uint16_t list[3];

	for (int i = 0; i < 3; i++)
		if (bytes_u16(in, &list[i]) < 0)
			return false;
	mi_lists(f, number, list[0] ? start + list[0] : 0, list[1] ? start + list[1] : 0,
		 list[2] ? start + list[2] : 0);
	return true;
}

static bool put_page(struct fake_memory *f, struct bytes *in, bool lists)
{
	struct mi_page p = { 0 };
	uint16_t slices, used;
	uint8_t number;

	if (bytes_u8(in, &number) < 0 || bytes_u16(in, &slices) < 0 ||
	    bytes_u16(in, &p.capacity) < 0 || bytes_u16(in, &p.reserved) < 0 ||
	    bytes_u16(in, &used) < 0 || bytes_u32(in, &p.size) < 0)
		return false;
	p.number = number % 8;
	p.slices = slices;
	p.used = used;
	mi_page(f, p);
	return !lists || put_lists(f, in, p.number);
}

static bool put_word(struct fake_memory *f, struct bytes *in)
{
	uint8_t bytes, what;
	uint16_t offset;
	uint64_t word;

	if (bytes_u16(in, &offset) < 0 || bytes_u8(in, &bytes) < 0 || bytes_u8(in, &what) < 0 ||
	    bytes_u64(in, &word) < 0)
		return false;
	fake_put(f, MI_AT + (what & 2 ? 8ULL * offset % MI_LEN : offset),
		 word + (what & 1 ? MI_AT : 0), 1 + bytes % 8);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = bytes_of(data, len);
	struct fake_memory f;
	uint8_t op;

	mi_init(&f);
	while (bytes_u8(&in, &op) == 0 && (op & 1 ? put_page(&f, &in, op & 2) : put_word(&f, &in)))
		;
	heap_check_walk_apart(&f, heap_walk_mimalloc, "mimalloc", 10000000);
	fake_fini(&f);
	return 0;
}
