/*
 * jemalloc's map of pages, made of bytes: sound, and as nobody's jemalloc has made it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heap/census.h"

#define BSS   0x7f5000000000ULL
#define ROOT  (BSS + 0x3040) /* begins anywhere in it */
#define LEAF  0x7f5040000000ULL
#define EDATA 0x7f5050000000ULL
#define MEM   0x7f5080000000ULL

enum { TABLE = 8 << 18, MEM_LEN = 64 << 12 };

/* Most of it zeros that nobody touched. */
static uint8_t bss[TABLE + 0x4000], leaf[TABLE], edata[1 << 16], memory[MEM_LEN];
static const struct heap_map maps[] = {
	{ BSS, BSS + sizeof(bss), 0, HEAP_MAP_ZEROED },
	{ LEAF, LEAF + sizeof(leaf), 0, HEAP_MAP_ANON },
	{ EDATA, EDATA + sizeof(edata), 0, HEAP_MAP_ANON },
	{ MEM, MEM + sizeof(memory), 0, HEAP_MAP_ANON },
};
static uint8_t *const bytes[] = { bss, leaf, edata, memory };
static struct heap_use use;
static struct heap_blocks blocks;
static uint64_t reads;

static uint8_t *at(uint64_t addr, size_t len)
{
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		if (addr >= maps[i].start && addr < maps[i].end && len <= maps[i].end - addr)
			return bytes[i] + (addr - maps[i].start);
	return NULL;
}

static bool read_fake(void *ctx, uint64_t addr, void *buf, size_t len)
{
	uint8_t *from = at(addr, len);

	(void)ctx;
	reads++;
	if (from)
		memcpy(buf, from, len);
	return from;
}

static uint64_t resident_fake(void *ctx, uint64_t addr, uint64_t len)
{
	(void)ctx;
	(void)addr;
	return len;
}

static const struct heap_memory mem = { maps, 4, read_fake, resident_fake, NULL };

static void put(uint64_t addr, uint64_t word)
{
	memcpy(at(addr, 8), &word, 8);
}

static void entry(uint64_t page, uint64_t class, uint64_t number, bool slab)
{
	put(LEAF + 8 * (page >> 12 & 0x3ffff), class << 48 | (EDATA + 128 * number) | slab);
}

/* An extent, its edata being the `number`th, and its entries in the leaf. */
static void extent(uint64_t number, uint64_t addr, uint64_t size, uint64_t state, uint64_t class,
		   bool slab, uint64_t nfree)
{
	uint64_t d = EDATA + 128 * number;

	put(d, (uint64_t)slab << 12 | state << 17 | class << 20 | nfree << 28);
	put(d + 8, addr);
	put(d + 16, size);
	for (uint64_t i = 0; i < nfree; i++) /* the first ones are free */
		at(d + 64, 64)[i / 8] |= (uint8_t)(1u << i % 8);
	for (uint64_t page = addr & ~4095ULL; page < addr + size; page += 4096)
		if (slab || page == (addr & ~4095ULL) || page + 4096 >= addr + size)
			entry(page, class, number, slab);
}

static int fresh(void **state)
{
	(void)state;
	memset(bss, 0, sizeof(bss));
	memset(leaf, 0, sizeof(leaf));
	memset(edata, 0, sizeof(edata));
	use = (struct heap_use){ 0 };
	blocks = (struct heap_blocks){ .max = 1 << 16 };
	reads = 0;
	put(ROOT + 8 * (MEM >> 30), LEAF);
	return 0;
}

static int done(void **state)
{
	(void)state;
	heap_blocks_free(&blocks);
	return 0;
}

static int walk(void)
{
	return heap_walk_jemalloc(&mem, &use, &blocks);
}

static void regions_of_slabs_and_large_ones_are_in_use(void **state)
{
	extent(1, MEM, 12288, 0, 10, true, 5); /* 192 bytes, 64 of them */
	extent(2, MEM + 0x4000 + 0x240, 5 * 4096, 0, 36, false,
	       0); /* 16 KiB, and a page of padding */
	extent(3, MEM + 0x10000, 8192, 1, 255, false, 0);
	extent(4, MEM + 0x20000, 16384, 3, 255, false, 0);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 59 + 1);
	assert_int_equal(use.live.bytes, 59 * 192 + 16384);
	assert_int_equal(use.free.bytes, 5 * 192 + 8192);
	assert_int_equal(use.top.bytes, 16384);
	assert_int_equal(use.unknown.bytes, 0);
	assert_int_equal(blocks.n, 60);
	assert_int_equal(blocks.rows[0].addr, MEM + 5 * 192);
	assert_int_equal(blocks.rows[59].addr, MEM + 0x4240);
}

static void bitmap_that_denies_its_count_is_unknown(void **state)
{
	extent(1, MEM, 12288, 0, 10, true, 5);
	put(EDATA + 128 + 64, 0xff);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 0);
	assert_int_equal(use.unknown.bytes, 12288);
	assert_non_null(use.doubt);
}

static void entry_whose_edata_is_of_another_place_is_none(void **state)
{
	extent(1, MEM, 4096, 0, 1, true, 0);
	entry(MEM + 0x5000, 1, 1, true);
	entry(MEM + 0x6000, 1, 9, true); /* zeros */
	put(LEAF + 8 * (MEM >> 12 & 0x3ffff) + 8 * 7, 0xffffffffffffffff);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 256);
}

static void extent_that_reaches_out_of_memory_is_none(void **state)
{
	extent(1, MEM, 4096, 0, 1, true, 0);
	extent(2, MEM + 0x8000, 4096, 0, 20, false, 0);
	put(EDATA + 256 + 16, 1ULL << 46);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 256);
}

static void root_that_leads_in_circles_ends(void **state)
{
	extent(1, MEM, 4096, 0, 1, true, 0);
	for (uint64_t i = MEM >> 30; i < 1 << 18; i++)
		put(ROOT + 8 * i, LEAF);
	assert_int_equal(walk(), 0);
	assert_true(reads < 1000000);
}

static void memory_without_a_map_of_pages_is_no_jemalloc(void **state)
{
	assert_int_equal(walk(), -ENOENT);
	put(LEAF, EDATA); /* an entry of nothing */
	assert_int_equal(walk(), -ENOENT);
}

static void list_that_points_everywhere_is_looked_at_for_a_while_only(void **state)
{
	for (uint64_t i = 0; i < sizeof(bss) / 8; i++)
		put(BSS + 8 * i, LEAF + 64 * (i % 16));
	memset(leaf, 0x40, sizeof(leaf));
	assert_int_equal(walk(), -ENOENT);
	assert_true(reads < 1000000);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup_teardown(f, fresh, done)
	const struct CMUnitTest tests[] = {
		FACT(regions_of_slabs_and_large_ones_are_in_use),
		FACT(bitmap_that_denies_its_count_is_unknown),
		FACT(entry_whose_edata_is_of_another_place_is_none),
		FACT(extent_that_reaches_out_of_memory_is_none),
		FACT(root_that_leads_in_circles_ends),
		FACT(memory_without_a_map_of_pages_is_no_jemalloc),
		FACT(list_that_points_everywhere_is_looked_at_for_a_while_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
