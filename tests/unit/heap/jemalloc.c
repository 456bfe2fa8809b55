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

#include "heap/jemalloc.h"
#include "jemalloc_fixture.h"

static struct fake_memory fake;
static struct heap_use use;
static struct heap_blocks blocks;

static void put(uint64_t addr, uint64_t word)
{
	fake_word(&fake, addr, word);
}

static void entry(uint64_t page, uint64_t class, uint64_t number, bool slab)
{
	je_entry(&fake, page, class, number, slab);
}

static void extent(uint64_t number, uint64_t addr, uint64_t size, uint64_t state, uint64_t class,
		   bool slab, uint64_t nfree)
{
	je_extent(&fake, (struct je_extent){ number, addr, size, state, class, nfree, slab });
}

static int fresh(void **state)
{
	(void)state;
	je_init(&fake);
	use = (struct heap_use){ 0 };
	blocks = (struct heap_blocks){ .max = 1 << 16 };
	return 0;
}

static int done(void **state)
{
	(void)state;
	heap_blocks_free(&blocks);
	fake_fini(&fake);
	return 0;
}

static int walk(void)
{
	return heap_walk_jemalloc(&fake.mem, &use, &blocks);
}

static void regions_of_slabs_and_large_ones_are_in_use(void **state)
{
	extent(1, JE_MEM, 12288, 0, 10, true, 5); /* 192 bytes, 64 of them */
	extent(2, JE_MEM + 0x4000 + 0x240, 5 * 4096, 0, 36, false,
	       0); /* 16 KiB, and a page of padding */
	extent(3, JE_MEM + 0x10000, 8192, 1, 255, false, 0);
	extent(4, JE_MEM + 0x20000, 16384, 3, 255, false, 0);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 59 + 1);
	assert_int_equal(use.live.bytes, 59 * 192 + 16384);
	assert_int_equal(use.free.bytes, 5 * 192 + 8192);
	assert_int_equal(use.top.bytes, 16384);
	assert_int_equal(use.unknown.bytes, 0);
	assert_int_equal(blocks.n, 60);
	assert_int_equal(blocks.rows[0].addr, JE_MEM + 5 * 192);
	assert_int_equal(blocks.rows[59].addr, JE_MEM + 0x4240);
}

static void bitmap_that_denies_its_count_is_unknown(void **state)
{
	extent(1, JE_MEM, 12288, 0, 10, true, 5);
	put(JE_EDATA + 128 + 64, 0xff);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 0);
	assert_int_equal(use.unknown.bytes, 12288);
	assert_non_null(use.caveat);
}

static void entry_whose_edata_is_of_another_place_is_none(void **state)
{
	extent(1, JE_MEM, 4096, 0, 1, true, 0);
	entry(JE_MEM + 0x5000, 1, 1, true);
	entry(JE_MEM + 0x6000, 1, 9, true); /* zeros */
	put(JE_LEAF + 8 * (JE_MEM >> 12 & 0x3ffff) + 8 * 7, 0xffffffffffffffff);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 256);
}

static void extent_that_reaches_out_of_memory_is_none(void **state)
{
	extent(1, JE_MEM, 4096, 0, 1, true, 0);
	extent(2, JE_MEM + 0x8000, 4096, 0, 20, false, 0);
	put(JE_EDATA + 256 + 16, 1ULL << 46);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 256);
}

static void extent_across_what_is_not_mapped_is_none(void **state)
{
	uint64_t at = JE_EDATA + JE_EDATA_LEN - 4096;

	put(JE_ROOT + 8 * (JE_EDATA >> 30), JE_LEAF);
	extent(1, JE_MEM, 4096, 0, 1, true, 0);
	extent(2, at, JE_MEM + 0x9000 - at, 1, 255, false, 0);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 256);
	assert_int_equal(use.free.bytes, 0);
}

static void block_that_reaches_behind_its_extent_is_unknown(void **state)
{
	extent(1, JE_MEM + 0x10, 4096, 0, 1, true, 0);
	extent(2, JE_MEM + 0x4040, 16384, 0, 36, false, 0);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 0);
	assert_int_equal(use.unknown.bytes, 4096 + 16384);
}

static void root_that_leads_in_circles_ends(void **state)
{
	extent(1, JE_MEM, 4096, 0, 1, true, 0);
	for (uint64_t i = JE_MEM >> 30; i < 1 << 18; i++)
		put(JE_ROOT + 8 * i, JE_LEAF);
	assert_int_equal(walk(), 0);
	assert_true(fake.reads < 1000000);
}

static void memory_without_a_map_of_pages_is_no_jemalloc(void **state)
{
	assert_int_equal(walk(), -ENOENT);
	put(JE_LEAF, JE_EDATA); /* an entry of nothing */
	assert_int_equal(walk(), -ENOENT);
}

static void list_that_points_everywhere_is_looked_at_for_a_while_only(void **state)
{
	for (uint64_t i = 0; i < JE_BSS_LEN / 8; i++)
		put(JE_BSS + 8 * i, JE_LEAF + 64 * (i % 16));
	for (uint64_t i = 0; i < JE_TABLE / 8; i++)
		put(JE_LEAF + 8 * i, 0x4040404040404040);
	assert_int_equal(walk(), -ENOENT);
	assert_true(fake.reads < 1000000);
}

enum { SIZES = 0x40, CLASSES_AT = 0x1000 }; /* in .bss, before the root */

static void structures_are_found_by_what_they_contain(void **state)
{
	struct heap_jemalloc je;

	extent(1, JE_MEM, 12288, 0, 10, true, 5);
	assert_int_equal(heap_jemalloc_find(&fake.mem, &je), -ENOENT); /* no tables yet */
	je_tables(&fake, JE_BSS + SIZES, JE_BSS + CLASSES_AT);
	assert_int_equal(heap_jemalloc_find(&fake.mem, &je), 0);
	assert_int_equal(je.root, JE_ROOT);
	assert_int_equal(je.sizes, JE_BSS + SIZES);
	assert_int_equal(je.classes, JE_BSS + CLASSES_AT);
	assert_int_equal(je.layout, 0);
	assert_int_equal(heap_jemalloc_edata_bits(&je), 0xffffffffff80);
	/* One wrong word: they are not it. */
	put(JE_BSS + SIZES + 8 * 200, 7);
	assert_int_equal(heap_jemalloc_find(&fake.mem, &je), -ENOENT);
}

static void pointers_before_the_root_do_not_hide_it(void **state)
{
	struct heap_jemalloc je;

	/* As jemalloc's own: many, close together, into memory of zeros. */
	for (uint64_t i = 0; i < 1000; i++)
		put(JE_BSS + 8 * i, JE_LEAF + 64 * i);
	je_tables(&fake, JE_BSS + 0x2040, JE_BSS + 0x2a00);
	extent(1, JE_MEM, 12288, 0, 10, true, 5);
	assert_int_equal(heap_jemalloc_find(&fake.mem, &je), 0);
	assert_int_equal(je.root, JE_ROOT);
}

/* The first word of an edata as 5.2 has it. */
static uint64_t bits_of_5_2(uint64_t slab, uint64_t state, uint64_t class, uint64_t nfree)
{
	return slab << 12 | state << 16 | class << 18 | nfree << 26;
}

static void edata_of_5_2_is_known_by_its_classes(void **state)
{
	struct heap_jemalloc je;
	uint64_t start, size, edata[16];

	extent(1, JE_MEM, 12288, 0, 10, true, 5);
	put(JE_EDATA + 128, bits_of_5_2(1, 0, 10, 5));
	extent(2, JE_MEM + 0x4000, 4 * 4096, 0, 36, false, 0);
	put(JE_EDATA + 256, bits_of_5_2(0, 0, 36, 0));
	je_tables(&fake, JE_BSS + SIZES, JE_BSS + CLASSES_AT);
	assert_int_equal(heap_jemalloc_find(&fake.mem, &je), 0);
	assert_int_equal(je.layout, 1);
	assert_int_equal(heap_jemalloc_edata_bits(&je), 0xffffffffffc0);
	assert_int_equal(walk(), 0);
	assert_int_equal(use.live.blocks, 59 + 1);
	assert_int_equal(use.live.bytes, 59 * 192 + 16384);
	assert_true(fake.mem.read(fake.mem.ctx, JE_EDATA + 256, edata, sizeof(edata)));
	assert_int_equal(heap_jemalloc_block(&je, JE_MEM + 0x4000, 1, edata, &start, &size),
			 HEAP_IN_USE);
	assert_int_equal(size, 16384);
}

static int block_at(const struct heap_jemalloc *je, uint64_t number, uint64_t addr, uint64_t *start,
		    uint64_t *size)
{
	uint64_t edata[16];

	assert_true(fake.mem.read(fake.mem.ctx, JE_EDATA + 128 * number, edata, sizeof(edata)));
	return heap_jemalloc_block(je, addr, JE_EDATA + 128 * number, edata, start, size);
}

static void one_block_is_known_from_its_extent(void **state)
{
	struct heap_jemalloc je;
	uint64_t start = 0, size = 0;

	extent(1, JE_MEM, 12288, 0, 10, true, 5); /* 192 bytes; the first five are free */
	extent(2, JE_MEM + 0x4000 + 0x240, 5 * 4096, 0, 36, false, 0);
	extent(3, JE_MEM + 0x10000, 8192, 1, 255, false, 0);
	je_tables(&fake, JE_BSS + SIZES, JE_BSS + CLASSES_AT);
	assert_int_equal(heap_jemalloc_find(&fake.mem, &je), 0);
	assert_int_equal(block_at(&je, 1, JE_MEM + 7 * 192 + 50, &start, &size), HEAP_IN_USE);
	assert_int_equal(start, JE_MEM + 7 * 192);
	assert_int_equal(size, 192);
	assert_int_equal(block_at(&je, 1, JE_MEM + 4 * 192, &start, &size), HEAP_FREE);
	assert_int_equal(block_at(&je, 2, JE_MEM + 0x4000 + 0x240, &start, &size), HEAP_IN_USE);
	assert_int_equal(start, JE_MEM + 0x4240);
	assert_int_equal(size, 16384);
	assert_int_equal(block_at(&je, 3, JE_MEM + 0x10000, &start, &size), HEAP_FREE);
	/* An edata of another place; none; no memory of jemalloc's. */
	assert_int_equal(block_at(&je, 1, JE_MEM + 0x8000, &start, &size), HEAP_CANNOT_SAY);
	assert_int_equal(heap_jemalloc_block(&je, JE_MEM, 1, NULL, &start, &size), HEAP_CANNOT_SAY);
	assert_int_equal(heap_jemalloc_block(&je, JE_MEM, 0, NULL, &start, &size), -ENOENT);
}

static void room_is_the_smallest_class_that_is_large_enough(void **state)
{
	static const uint64_t cases[][2] = { { 1, 8 },     { 8, 8 },         { 9, 16 },
					     { 17, 32 },   { 65, 80 },       { 200, 224 },
					     { 257, 320 }, { 14337, 16384 }, { 16385, 20480 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(heap_jemalloc_room(cases[i][0]), cases[i][1]);
	assert_int_equal(heap_jemalloc_room(UINT64_MAX), 0);
}

/* Of a program that has thousands of pointers in its .bss, before the root: a look that searches reads what each of
 * them points to, and the next does not. */
static void the_root_found_before_is_not_searched_for_again(void **state)
{
	struct heap_found found = { 0 };
	uint64_t searched, known;

	(void)state;
	extent(1, JE_MEM, 12288, 0, 10, true, 5);
	for (uint64_t i = 0; i < 65; i++)
		put(JE_BSS + 128 * i, i % 2 ? JE_LEAF : JE_EDATA);
	fake.mem.found = &found;
	fake.reads = 0;
	assert_int_equal(walk(), 0);
	searched = fake.reads;
	assert_true(found.jemalloc == JE_ROOT + 8 * (JE_MEM >> 30));
	use = (struct heap_use){ 0 };
	heap_blocks_clear(&blocks);
	fake.reads = 0;
	assert_int_equal(walk(), 0);
	known = fake.reads;
	assert_int_equal(use.live.blocks, 59);
	assert_true(known < searched / 2);
}

static void a_place_that_leads_nowhere_any_more_is_searched_for(void **state)
{
	const uint64_t places[] = { JE_BSS, JE_MEM + 8, JE_BSS + JE_BSS_LEN, 1, UINT64_MAX - 3 };

	(void)state;
	extent(1, JE_MEM, 12288, 0, 10, true, 5);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct heap_found found = { places[i] };

		use = (struct heap_use){ 0 };
		heap_blocks_clear(&blocks);
		fake.mem.found = &found;
		assert_int_equal(walk(), 0);
		assert_int_equal(use.live.blocks, 59);
		assert_true(found.jemalloc == JE_ROOT + 8 * (JE_MEM >> 30));
	}
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup_teardown(f, fresh, done)
	const struct CMUnitTest tests[] = {
		FACT(regions_of_slabs_and_large_ones_are_in_use),
		FACT(bitmap_that_denies_its_count_is_unknown),
		FACT(entry_whose_edata_is_of_another_place_is_none),
		FACT(extent_that_reaches_out_of_memory_is_none),
		FACT(extent_across_what_is_not_mapped_is_none),
		FACT(block_that_reaches_behind_its_extent_is_unknown),
		FACT(root_that_leads_in_circles_ends),
		FACT(memory_without_a_map_of_pages_is_no_jemalloc),
		FACT(list_that_points_everywhere_is_looked_at_for_a_while_only),
		FACT(structures_are_found_by_what_they_contain),
		FACT(pointers_before_the_root_do_not_hide_it),
		FACT(edata_of_5_2_is_known_by_its_classes),
		FACT(one_block_is_known_from_its_extent),
		FACT(the_root_found_before_is_not_searched_for_again),
		FACT(a_place_that_leads_nowhere_any_more_is_searched_for),
		FACT(room_is_the_smallest_class_that_is_large_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
