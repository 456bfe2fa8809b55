/*
 * A python's memory made of bytes: among the interpreter's variables usedpools and where the table of
 * arenas is; of two arenas one has a pool with free blocks, a full one, and one that is of no size any
 * more, the other was never used. Tests and the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_PYMALLOC_FIXTURE_H
#define MEMSCOPE_TESTS_PYMALLOC_FIXTURE_H

#include "fake_memory.h"

#define PY_DATA  0x600000ULL
#define PY_TABLE 0xa00010ULL
#define PY_AT    0x7f6000001000ULL /* no pool may begin there */
#define PY_FIRST 0x7f6000004000ULL

enum {
	PY_POOL = 16 << 10,
	PY_ARENA = 1 << 20,
	PY_DATA_LEN = 8192,
	PY_TABLE_LEN = 4096,
	PY_LEN = 16 * 4096, /* of the arenas what was ever used, and some more */
	PY_USEDPOOLS = 1000,
	PY_ARENAS = 4104,
	PY_CLASS = 6,
	PY_SIZE = 112,
	PY_BLOCKS = (PY_POOL - 48) / PY_SIZE,
	PY_COUNT = 20, /* in use of the first one */
	PY_TOUCHED = 30,
};

static inline uint64_t py_head(uint32_t szidx)
{
	return PY_DATA + PY_USEDPOOLS + 16 * (uint64_t)szidx;
}

static inline uint64_t py_pool_at(uint32_t number)
{
	return PY_FIRST + number * (uint64_t)PY_POOL;
}

static inline void py_pool(struct fake_memory *f, uint64_t at, uint64_t count, uint64_t freeblock,
			   uint64_t touched)
{
	fake_word(f, at, count);
	fake_word(f, at + 8, freeblock);
	fake_word(f, at + 16, py_head(PY_CLASS) - 16);
	fake_word(f, at + 24, py_head(PY_CLASS) - 16);
	fake_put(f, at + 32, 1, 4);
	fake_put(f, at + 36, PY_CLASS, 4);
	fake_put(f, at + 40, 48 + touched * PY_SIZE, 4);
	fake_put(f, at + 44, PY_POOL - PY_SIZE, 4);
}

static inline void py_arena(struct fake_memory *f, uint32_t number, uint64_t address,
			    uint64_t pool_address, uint32_t n_free)
{
	uint64_t at = PY_TABLE + 48 * (uint64_t)number;

	fake_word(f, at, address);
	fake_word(f, at + 8, pool_address);
	fake_put(f, at + 16, n_free, 4);
	fake_put(f, at + 20, 63, 4);
}

static inline void py_init(struct fake_memory *f)
{
	fake_init(f);
	fake_map(f, PY_DATA, PY_DATA_LEN, PY_DATA_LEN, HEAP_MAP_DATA);
	fake_map(f, PY_TABLE - 16, PY_TABLE_LEN, PY_TABLE_LEN, HEAP_MAP_BRK);
	fake_map(f, PY_AT, 2 * PY_ARENA, PY_LEN, HEAP_MAP_ANON);
	for (uint32_t i = 0; i < 32; i++) {
		uint64_t pool = i == PY_CLASS ? PY_FIRST : py_head(i) - 16;

		fake_word(f, py_head(i), pool);
		fake_word(f, py_head(i) + 8, pool);
	}
	fake_word(f, PY_DATA + PY_ARENAS, PY_TABLE);
	py_arena(f, 1, PY_AT, py_pool_at(3), 61);
	py_arena(f, 3, PY_AT + PY_ARENA, PY_FIRST + PY_ARENA, 63);
	py_pool(f, py_pool_at(0), PY_COUNT, PY_FIRST + 48 + 5 * PY_SIZE, PY_TOUCHED);
	py_pool(f, py_pool_at(1), PY_BLOCKS, 0, PY_BLOCKS);
	py_pool(f, py_pool_at(2), 0, py_pool_at(2) + 48, PY_TOUCHED);
}

#endif
