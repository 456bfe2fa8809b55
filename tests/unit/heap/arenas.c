/*
 * Sums of arenas and of classes of sizes, and what is free between blocks: of lists whose truth is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

#include "heap/arenas.h"
#include "heap/fragmentation.h"

enum { PAGE = 4096 };

static struct heap_blocks b;
static struct fragmentation f;

static int fresh(void **state)
{
	(void)state;
	b = (struct heap_blocks){ .max = 1 << 20, .wants_parts = true };
	return 0;
}

static int done(void **state)
{
	(void)state;
	heap_blocks_free(&b);
	fragmentation_fini(&f);
	return 0;
}

static void owners_are_arenas_of_allocators_by_their_numbers(void **state)
{
	(void)state;
	heap_blocks_allocator(&b, "first");
	heap_blocks_arena(&b, 3);
	heap_blocks_add(&b, 0x1000, 64, 64);
	heap_blocks_arena(&b, HEAP_NO_ARENA);
	heap_blocks_add(&b, 0x2000, 64, 64);
	heap_blocks_allocator(&b, "second");
	heap_blocks_arena(&b, 0);
	heap_blocks_add(&b, 0x7fffffff0000, 64, 64);
	assert_int_equal(sizeof(struct heap_block), 16);
	assert_string_equal(heap_blocks_owner(&b, b.rows[0].owner)->allocator, "first");
	assert_int_equal(heap_blocks_owner(&b, b.rows[0].owner)->arena, 3);
	assert_int_equal(heap_blocks_owner(&b, b.rows[1].owner)->arena, HEAP_NO_ARENA);
	assert_string_equal(heap_blocks_owner(&b, b.rows[2].owner)->allocator, "second");
	assert_int_equal(b.rows[2].addr, 0x7fffffff0000);
	assert_null(heap_blocks_owner(&b, 60000)->allocator);
}

static void arenas_beyond_what_fits_are_those_of_none(void **state)
{
	(void)state;
	heap_blocks_allocator(&b, "many");
	heap_blocks_arena(&b, 70000);
	heap_blocks_add(&b, 0x1000, 64, 64);
	assert_int_equal(heap_blocks_owner(&b, b.rows[0].owner)->arena, HEAP_NO_ARENA);
}

static void parts_that_are_taken_back_are_not_there(void **state)
{
	struct heap_mark mark;

	(void)state;
	heap_blocks_allocator(&b, "glibc");
	heap_blocks_arena(&b, 0);
	heap_blocks_metadata(&b, 8);
	heap_blocks_mark(&b, &mark);
	heap_blocks_metadata(&b, 8);
	heap_blocks_part(&b, HEAP_PART_FREE, 0x1000, 64);
	heap_blocks_rewind(&b, &mark);
	assert_int_equal(b.n_parts, 0);
	assert_int_equal(heap_blocks_owner(&b, b.owner)->metadata, 8);
}

static void sums_are_by_arena_and_by_class(void **state)
{
	struct heap_arenas a;

	(void)state;
	heap_blocks_allocator(&b, "glibc");
	for (uint32_t arena = 0; arena < 2; arena++) {
		heap_blocks_arena(&b, arena);
		heap_blocks_held(&b, 1 << 20);
		for (uint64_t i = 0; i < 3000; i++) {
			heap_blocks_add(&b, 0x100000 * (arena + 1) + 1024 * i, 24 + 16 * (i % 3),
					0);
			heap_blocks_metadata(&b, 8);
		}
		heap_blocks_part(&b, HEAP_PART_CACHED, 0x10, 24);
		heap_blocks_part(&b, HEAP_PART_FAST, 0x30, 24);
		heap_blocks_part(&b, HEAP_PART_FREE, 0x50,
				 32); /* of a chunk of 32: 24 and its header */
		heap_blocks_part(&b, HEAP_PART_TOP, 0x70, 640);
		heap_blocks_add(&b, 0x9000000 * (arena + 1), 5000, 0);
		heap_blocks_add(&b, 0x9100000 * (arena + 1), 5112, 0);
	}
	assert_int_equal(heap_arenas_sum(&b, &a), 0);
	assert_int_equal(a.n, 4); /* nobody's, those with mappings, two */
	assert_int_equal(a.arena[2].live.blocks, 3002);
	assert_int_equal(a.arena[2].live.bytes, 1000 * (24 + 40 + 56) + 5000 + 5112);
	assert_int_equal(heap_arena_active(&a.arena[3]),
			 a.arena[3].live.bytes + 24 + 24 + 32 + 8 * 3000);
	assert_int_equal(heap_arena_mapped(&a.arena[3]), heap_arena_active(&a.arena[3]) + 640);
	assert_int_equal(a.n_classes, 2 * 4);
	assert_int_equal(a.class[0].size, 24);
	assert_int_equal(a.class[0].live.blocks, 1000);
	assert_int_equal(a.class[0].cached.blocks, 1);
	assert_int_equal(a.class[0].free.blocks, 2);
	assert_int_equal(a.class[3].size, 5120);
	assert_int_equal(a.class[3].live.blocks, 2);
	heap_arenas_fini(&a);
}

static const struct fragmentation_arena *find(const uint32_t *type_of, uint32_t n_types)
{
	heap_blocks_sort(&b);
	fragmentation_fini(&f);
	assert_int_equal(fragmentation_find(&b, type_of, n_types, &f), 0);
	return &f.arena[2];
}

static void page_with_one_small_block_is_pinned_by_its_type(void **state)
{
	static const uint32_t type_of[] = { 1, 2, 2 };
	const struct fragmentation_arena *a;

	(void)state;
	heap_blocks_allocator(&b, "glibc");
	heap_blocks_arena(&b, 0);
	/* Three pages: 64 bytes of type 1; nothing; 2,048 of type 2, and 64 of it in a fourth one. */
	heap_blocks_add(&b, 0x10000, 64, 64);
	heap_blocks_part(&b, HEAP_PART_FREE, 0x10040, 2 * PAGE - 64);
	heap_blocks_add(&b, 0x12000, 2048, 2048);
	heap_blocks_part(&b, HEAP_PART_FREE, 0x12800, 2048);
	heap_blocks_add(&b, 0x13000, 64, 64);
	heap_blocks_part(&b, HEAP_PART_TOP, 0x13040, PAGE - 64);
	a = find(type_of, 3);
	assert_int_equal(a->live, 64 + 2048 + 64);
	assert_int_equal(a->free, 4 * PAGE - a->live);
	assert_int_equal(a->between, a->free - (PAGE - 64));
	assert_int_equal(a->empty, PAGE);
	assert_int_equal(a->shared, a->free - PAGE);
	assert_int_equal(a->used, 3);
	assert_int_equal(a->sparse, 2);
	assert_int_equal(a->pinned, 2 * (PAGE - 64));
	assert_int_equal(a->last, 2);
	assert_int_equal(f.type[1].units, 1);
	assert_int_equal(f.type[1].pinned, PAGE - 64);
	assert_int_equal(f.type[2].blocks, 1);
	assert_int_equal(f.type[2].bytes, 64);
}

static void slab_is_one_unit_whatever_its_size(void **state)
{
	const struct fragmentation_arena *a;

	(void)state;
	heap_blocks_allocator(&b, "jemalloc");
	heap_blocks_arena(&b, 0);
	for (uint64_t slab = 0; slab < 2; slab++) {
		uint64_t at = 0x100000 + slab * 4 * PAGE;

		heap_blocks_part(&b, HEAP_PART_RUN, at, 4 * PAGE);
		for (uint64_t i = 0; i < 16; i++)
			if (i == 3 || (slab && i < 5))
				heap_blocks_add(&b, at + 1024 * i, 1024, 1024);
			else
				heap_blocks_part(&b, HEAP_PART_FREE, at + 1024 * i, 1024);
	}
	{
		static const uint32_t types[6] = { 1, 2, 2, 2, 2, 2 };

		a = find(types, 3);
	}
	assert_int_equal(a->used, 2);
	assert_int_equal(a->sparse, 1);
	assert_int_equal(a->pinned, 15 * 1024);
	assert_int_equal(a->empty, 0);
	assert_int_equal(f.type[1].pinned, 15 * 1024);
	assert_int_equal(f.type[2].units, 0);
}

static void large_blocks_and_large_free_parts_are_counted_whole(void **state)
{
	static const uint32_t type_of[] = { 0 };
	const struct fragmentation_arena *a;

	(void)state;
	heap_blocks_allocator(&b, "glibc");
	heap_blocks_arena(&b, 0);
	heap_blocks_add(&b, 0x100010, 100 * PAGE, 0);
	heap_blocks_part(&b, HEAP_PART_FREE, 0x100010 + 100 * PAGE, 1000 * PAGE - 16);
	a = find(type_of, 1);
	assert_int_equal(a->used, 101);
	assert_int_equal(a->live, 100 * PAGE);
	assert_int_equal(a->empty, 999 * PAGE);
	assert_int_equal(a->shared, PAGE - 16);
	assert_int_equal(a->sparse, 1);
	assert_int_equal(a->between, 0);
}

int main(void)
{
#define FACT(fact) cmocka_unit_test_setup_teardown(fact, fresh, done)
	const struct CMUnitTest tests[] = {
		FACT(owners_are_arenas_of_allocators_by_their_numbers),
		FACT(arenas_beyond_what_fits_are_those_of_none),
		FACT(parts_that_are_taken_back_are_not_there),
		FACT(sums_are_by_arena_and_by_class),
		FACT(page_with_one_small_block_is_pinned_by_its_type),
		FACT(slab_is_one_unit_whatever_its_size),
		FACT(large_blocks_and_large_free_parts_are_counted_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
