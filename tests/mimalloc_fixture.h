/*
 * A process's memory made of bytes: a segment of mimalloc with a page of blocks and a free slice. Tests and
 * the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_MIMALLOC_FIXTURE_H
#define MEMSCOPE_TESTS_MIMALLOC_FIXTURE_H

#include "fake_memory.h"

#define MI_AT    0x7f6000000000ULL
#define MI_PAGES (MI_AT + 264) /* what is said of them */

enum { MI_LEN = 4 << 16, MI_SLICE = 1 << 16, MI_PAGE = 80, MI_INFO = 1, MI_SIZE = 512,
       MI_RESERVED = 127, MI_CAPACITY = 20 };

static inline uint64_t mi_block(int i)
{
	return MI_AT + MI_SLICE + 384 + (uint64_t)i * MI_SIZE;
}

/* The words of the page of slice `number`. */
struct mi_page {
	uint64_t number;
	uint32_t slices, used, size;
	uint16_t capacity, reserved;
};

static inline void mi_page(struct fake_memory *f, struct mi_page p)
{
	uint64_t at = MI_PAGES + p.number * MI_PAGE;

	fake_put(f, at, p.slices, 4);
	fake_put(f, at + 10, p.capacity, 2);
	fake_put(f, at + 12, p.reserved, 2);
	fake_put(f, at + 24, p.used, 4);
	fake_put(f, at + 28, p.size, 4);
}

static inline void mi_lists(struct fake_memory *f, uint64_t number, uint64_t first_free,
			    uint64_t local, uint64_t thread)
{
	uint64_t at = MI_PAGES + number * MI_PAGE;

	fake_word(f, at + 16, first_free);
	fake_word(f, at + 32, local);
	fake_word(f, at + 40, thread);
}

static inline void mi_init(struct fake_memory *f)
{
	fake_init(f);
	fake_map(f, MI_AT, 32 << 20, MI_LEN, HEAP_MAP_ANON);
	fake_word(f, MI_AT + 208, 1);
	fake_word(f, MI_AT + 216, MI_AT ^ 0x1234);
	fake_word(f, MI_AT + 224, 512);
	fake_word(f, MI_AT + 232, MI_INFO);
	fake_word(f, MI_AT + 248, 3);
	mi_page(f, (struct mi_page){ .number = 0, .slices = MI_INFO });
	mi_page(f, (struct mi_page){ .number = 1,
				     .slices = 1,
				     .capacity = MI_CAPACITY,
				     .reserved = MI_RESERVED,
				     .used = MI_CAPACITY - 3,
				     .size = MI_SIZE });
	mi_lists(f, 1, mi_block(4), mi_block(7), mi_block(9) | 2);
	fake_word(f, mi_block(4), mi_block(5));
	mi_page(f, (struct mi_page){ .number = 2, .slices = 1 }); /* free */
}

#endif
