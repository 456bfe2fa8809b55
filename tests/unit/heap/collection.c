/* Collections by the shape of their words: laid out by hand as libstdc++ and redis do, then with one word of them wrong. */
#include "heap/snapshot/collection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Words: variables first, then blocks of eight words each. */
enum { BASE = 0x100000, VARIABLES = 64, BLOCK = 8, N = 64, HEADER = 8 };

static uint64_t words[VARIABLES + BLOCK * N];
static uint8_t visited[N];
static struct heap_block blocks[N];
static struct block_index *block_of;

static const uint8_t *bytes_at(void *ctx, uint64_t addr, uint64_t *ret_len)
{
	(void)ctx;
	if (addr < BASE || addr >= BASE + sizeof(words))
		return NULL;
	*ret_len = BASE + sizeof(words) - addr;
	return (const uint8_t *)words + (addr - BASE);
}

static struct collection_memory mem;

static uint64_t variable(uint32_t i)
{
	return BASE + 8 * (uint64_t)i;
}

static uint64_t block(uint32_t i)
{
	return variable(VARIABLES + BLOCK * i);
}

static uint64_t *at(uint64_t addr)
{
	return &words[(addr - BASE) / 8];
}

static void put(uint64_t addr, uint32_t n, ...)
{
	va_list list;

	va_start(list, n);
	for (uint32_t i = 0; i < n; i++)
		at(addr)[i] = va_arg(list, uint64_t);
	va_end(list);
}

/* One block has as many words as its neighbour begins behind. */
static void begin(uint32_t first_words)
{
	memset(words, 0, sizeof(words));
	memset(visited, 0, sizeof(visited));
	for (uint32_t i = 0; i < N; i++)
		blocks[i] = (struct heap_block){ .addr = block(i), .words = BLOCK };
	blocks[0].words = first_words;
	block_index_free(block_of);
	block_of = block_index_new(blocks, N);
	assert_non_null(block_of);
	mem = (struct collection_memory){ bytes_at, NULL, blocks, N, block_of, visited };
}

static bool find(uint64_t addr, bool counted, struct collection *c)
{
	uint32_t offset, to = block_index_find(block_of, *at(addr), &offset);

	return to != BLOCK_NONE && collection_at(&mem, addr, to, counted, c);
}

static uint32_t seen[N];

static void on_block(void *ctx, uint32_t i, enum collection_part part)
{
	(void)ctx;
	seen[i] += 1 + (uint32_t)part;
}

/* The first `n` blocks are its own, each once. */
static void check_blocks(const struct collection *c, uint32_t n)
{
	memset(seen, 0, sizeof(seen));
	collection_each(&mem, c, on_block, NULL);
	assert_int_equal(c->blocks, n);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(seen[i] > 0, i < n);
}

/* Each word from `addr` on changed alone: no collection of that kind is found, but for words in `free_words` (bits). */
static void check_fragile(uint64_t from, uint32_t n, uint32_t free_words, uint64_t asked,
			  bool counted)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t word = at(from)[i];
		struct collection c;

		if (free_words & 1U << i)
			continue;
		at(from)[i] = word ^ 0x1010;
		memset(visited, 0, sizeof(visited));
		assert_false(find(asked, counted, &c));
		at(from)[i] = word;
	}
	memset(visited, 0, sizeof(visited));
}

/* --- */

static void a_vector_is_three_ordered_words_about_its_block(void **state)
{
	uint64_t v = variable(HEADER);
	struct collection c;

	(void)state;
	begin(BLOCK);
	put(v, 3, block(0), block(0) + 40, block(0) + 64);
	assert_true(find(v, false, &c));
	assert_int_equal(c.kind, COLLECTION_VECTOR);
	assert_int_equal(c.elements, 5);
	assert_int_equal(c.live, 40);
	assert_int_equal(c.in, BLOCK_NONE);
	check_blocks(&c, 1);
	assert_false(find(v, true, &c));
	put(v, 3, block(0), block(0) + 48, block(0) + 40);
	assert_false(find(v, false, &c));
	put(v, 3, block(0), block(0), block(0) + 72); /* larger than the block */
	assert_false(find(v, false, &c));
	put(v, 3, block(0), block(0), block(0) + 8); /* too small for it */
	assert_false(find(v, false, &c));
}

static void a_string_has_its_length_and_ends_there(void **state)
{
	uint64_t v = variable(HEADER);
	struct collection c;

	(void)state;
	begin(BLOCK);
	strcpy((char *)at(block(0)), "a text that is long enough");
	put(v, 3, block(0), 26ULL, 60ULL);
	assert_true(find(v, false, &c));
	assert_int_equal(c.kind, COLLECTION_STRING);
	assert_int_equal(c.elements, 26);
	put(v, 3, block(0), 25ULL, 60ULL); /* no NUL there */
	assert_false(find(v, false, &c));
	put(v, 3, block(0), 26ULL, 64ULL); /* no room for the NUL */
	assert_false(find(v, false, &c));
	put(v, 3, block(0), 26ULL, 8ULL);
	assert_false(find(v, false, &c));
}

static void put_tree(uint64_t header)
{
	/* The second in the middle, the first and third below it, the fourth below the third. */
	put(header, 5, 0ULL, block(1), block(0), block(3), 4ULL);
	put(block(1), 4, 1ULL, header, block(0), block(2));
	put(block(0), 4, 1ULL, block(1), 0ULL, 0ULL);
	put(block(2), 4, 1ULL, block(1), 0ULL, block(3));
	put(block(3), 4, 0ULL, block(2), 0ULL, 0ULL);
}

static void a_map_is_a_tree_of_as_many_nodes_as_it_says(void **state)
{
	uint64_t header = variable(HEADER);
	struct collection c;

	(void)state;
	begin(BLOCK);
	put_tree(header);
	assert_true(find(header + 8, true, &c));
	assert_int_equal(c.kind, COLLECTION_MAP);
	assert_int_equal(c.elements, 4);
	check_blocks(&c, 4);
	check_fragile(header, 5, 0, header + 8, true);
	for (uint32_t i = 0; i < 4; i++)
		check_fragile(block(i), 4, 0, header + 8, true);
	put_tree(header);
	*at(block(3) + 16) = block(1); /* a ring */
	assert_false(find(header + 8, true, &c));
}

static void put_list(uint64_t header, uint64_t count)
{
	put(header, 3, block(0), block(2), count);
	put(block(0), 3, block(1), header, 7ULL);
	put(block(1), 3, block(2), block(0), 3ULL);
	put(block(2), 3, header, block(1), 9ULL);
}

static void a_list_is_found_by_any_of_its_words_and_once(void **state)
{
	uint64_t header = variable(HEADER);
	struct collection c;

	(void)state;
	begin(BLOCK);
	put_list(header, 3);
	assert_true(find(block(0), true, &c));
	assert_int_equal(c.kind, COLLECTION_LIST);
	assert_int_equal(c.at, header);
	assert_int_equal(c.elements, 3);
	check_blocks(&c, 3);
	assert_false(find(header, true, &c));
	assert_false(find(block(1), true, &c));
	for (uint32_t i = 0; i < 3; i++)
		check_fragile(block(i), 2, 0, header, true);
	put_list(header, 4);
	assert_false(find(header, true, &c));
}

static void a_list_whose_header_begins_a_block_is_found_by_its_count(void **state)
{
	struct collection c;

	(void)state;
	begin(BLOCK);
	put_list(block(3), 3);
	*at(block(1) + 16) = 77;
	assert_true(find(block(1), true, &c));
	assert_int_equal(c.at, block(3));
	assert_int_equal(c.in, 3);
	check_blocks(&c, 3);
}

static void a_deque_is_a_map_of_chunks_between_two_places(void **state)
{
	uint64_t v = variable(HEADER);
	struct collection c;

	(void)state;
	begin(BLOCK);
	put(block(0) + 24, 2, block(1), block(2));
	put(v, 10, block(0), 8ULL, block(1) + 16, block(1), block(1) + 64, block(0) + 24,
	    block(2) + 8, block(2), block(2) + 64, block(0) + 32);
	assert_true(find(v, true, &c));
	assert_int_equal(c.kind, COLLECTION_DEQUE);
	assert_int_equal(c.elements, 8 - 2 + 1);
	check_blocks(&c, 3);
	check_fragile(v, 10, 0, v, true);
	/* Its first place looks like a vector that is empty when nothing was taken from its front. */
	*at(v + 16) = block(1);
	assert_true(find(v, true, &c));
	assert_int_equal(c.elements, 9);
}

static void an_unordered_map_has_buckets_and_a_chain_of_all_its_nodes(void **state)
{
	uint64_t v = variable(HEADER);
	float load = 1;
	uint64_t word = 0;
	struct collection c;

	(void)state;
	begin(BLOCK);
	memcpy(&word, &load, 4);
	put(v, 7, block(0), 7ULL, block(1), 3ULL, word, 7ULL, 0ULL);
	put(block(0), 3, block(2), v + 16, 0ULL);
	put(block(1), 1, block(2));
	put(block(2), 1, block(3));
	put(block(3), 1, 0ULL);
	assert_true(find(v, true, &c));
	assert_int_equal(c.kind, COLLECTION_UNORDERED);
	assert_int_equal(c.elements, 3);
	check_blocks(&c, 4);
	check_fragile(v, 4, 0, v, true);
	for (uint32_t i = 1; i < 4; i++)
		check_fragile(block(i), 1, 0, v, true);
}

static void a_dict_of_redis_has_as_many_entries_as_are_used(void **state)
{
	uint64_t v = variable(HEADER);
	struct collection c;

	(void)state;
	begin(BLOCK);
	*at(block(0) + 8) = block(1);
	*at(block(0) + 40) = block(3);
	put(block(1), 3, 5ULL, 0ULL, block(2));
	put(block(2), 3, 5ULL, 0ULL, 0ULL);
	put(block(3), 3, 5ULL, 0ULL, 0ULL);
	/* 7.0: behind rehashidx the exponents of 8 places and of none. */
	put(v, 6, block(0), 0ULL, 3ULL, 0ULL, UINT64_MAX, 0xff030000ULL);
	assert_true(find(v, true, &c));
	assert_int_equal(c.kind, COLLECTION_DICT);
	assert_int_equal(c.elements, 3);
	check_blocks(&c, 4);
	*at(v + 16) = 4;
	assert_false(find(v, true, &c));
	/* In the middle of a rehash: one of them is in the other table already. */
	*at(block(0) + 40) = 0;
	*at(block(4) + 16) = block(3);
	put(v, 6, block(0), block(4), 2ULL, 1ULL, 6ULL, 0x02030000ULL);
	assert_true(find(v, true, &c));
	assert_int_equal(c.elements, 3);
	check_blocks(&c, 5);
	*at(block(0) + 40) = block(3);
	*at(block(4) + 16) = 0;
	/* 6.2 */
	put(v, 9, block(0), 8ULL, 7ULL, 3ULL, 0ULL, 0ULL, 0ULL, 0ULL, UINT64_MAX);
	assert_true(find(v, true, &c));
	assert_int_equal(c.kind, COLLECTION_DICT);
	*at(block(2) + 16) = block(1); /* a ring */
	assert_false(find(v, true, &c));
}

static void a_string_of_libcxx_has_its_length_and_capacity_before(void **state)
{
	uint64_t v = variable(HEADER);
	struct collection c;

	(void)state;
	begin(BLOCK);
	strcpy((char *)at(block(0)), "a text that is long enough");
	put(v, 3, 64ULL | 1, 26ULL, block(0));
	assert_true(find(v + 16, false, &c));
	assert_int_equal(c.kind, COLLECTION_STRING);
	assert_int_equal(c.elements, 26);
	put(v, 3, 64ULL, 26ULL, block(0)); /* a short one has no buffer */
	assert_false(find(v + 16, false, &c));
	put(v, 3, 64ULL | 1, 25ULL, block(0)); /* no NUL there */
	assert_false(find(v + 16, false, &c));
	put(v, 3, 80ULL | 1, 26ULL, block(0)); /* larger than the block */
	assert_false(find(v + 16, false, &c));
}

/* The second in the middle, the first and third below it, the fourth below the third. */
static void put_libcxx_tree(uint64_t end)
{
	put(end - 8, 3, block(0), block(1), 4ULL);
	put(block(1), 4, block(0), block(2), end, 1ULL);
	put(block(0), 4, 0ULL, 0ULL, block(1), 1ULL);
	put(block(2), 4, 0ULL, block(3), block(1), 1ULL);
	put(block(3), 4, 0ULL, 0ULL, block(2), 0ULL);
}

static void a_map_of_libcxx_is_a_tree_of_as_many_nodes_as_it_says(void **state)
{
	uint64_t end = variable(HEADER);
	struct collection c;

	(void)state;
	begin(BLOCK);
	put_libcxx_tree(end);
	assert_true(find(end, true, &c));
	assert_int_equal(c.kind, COLLECTION_LIBCXX_MAP);
	assert_int_equal(c.elements, 4);
	check_blocks(&c, 4);
	check_fragile(end - 8, 3, 0, end, true);
	for (uint32_t i = 0; i < 4; i++)
		check_fragile(block(i), 4, 0, end, true);
	*at(block(3)) = block(1); /* a ring */
	assert_false(find(end, true, &c));
}

/* A chunk of 2 KiB, and the map behind it. */
static void a_deque_of_libcxx_has_chunks_between_two_places_of_its_map(void **state)
{
	uint64_t v = variable(HEADER), map = block(32);
	struct collection c;

	(void)state;
	begin(256);
	blocks[1].addr = map;
	block_index_free(block_of);
	block_of = block_index_new(blocks, 2);
	assert_non_null(block_of);
	mem.index = block_of;
	mem.n_blocks = 2;
	put(map + 8, 1, block(0));
	put(v, 6, map, map + 8, map + 16, map + 64, 2ULL, 20ULL);
	assert_true(find(v, true, &c));
	assert_int_equal(c.kind, COLLECTION_LIBCXX_DEQUE);
	assert_int_equal(c.elements, 20);
	assert_int_equal(c.unused, 8);
	assert_int_equal(c.live, 16);
	check_blocks(&c, 2);
	put(v, 6, map, map + 8, map + 24, map + 64, 2ULL, 20ULL); /* its second chunk is none */
	assert_false(find(v, true, &c));
	put(v, 6, map, map + 8, map + 16, map + 64, 2ULL, 5000ULL); /* more than bytes */
	assert_false(find(v, true, &c));
	blocks[0].words = 255; /* less than half a page */
	put(v, 6, map, map + 8, map + 16, map + 64, 2ULL, 20ULL);
	assert_false(find(v, true, &c));
}

static void put_table(uint64_t v, uint64_t mask, uint64_t room, uint64_t items)
{
	/* Elements of 8 bytes before, control bytes from 32 on. */
	uint8_t *ctrl = (uint8_t *)at(block(0) + 32);

	memset(ctrl, 0xff, 4 + 16);
	ctrl[0] = 0x11;
	ctrl[2] = 0x7f;
	put(v, 4, block(0) + 32, mask, room, items);
}

static void a_hash_map_of_rust_has_as_many_control_bytes_in_use_as_items(void **state)
{
	uint64_t v = variable(HEADER);
	struct collection c;

	(void)state;
	begin(BLOCK);
	put_table(v, 3, 1, 2);
	assert_true(find(v, true, &c));
	assert_int_equal(c.kind, COLLECTION_HASHBROWN);
	assert_int_equal(c.elements, 2);
	assert_int_equal(c.unused, 0);
	assert_int_equal(c.live, 32);
	check_blocks(&c, 1);
	check_fragile(v, 4, 0, v, true);
	assert_false(find(v, false, &c));
	put_table(v, 3, 0, 3); /* one more than there are */
	assert_false(find(v, true, &c));
	put_table(v, 3, 1, 2);
	*(uint8_t *)at(block(0) + 32) = 0x81; /* no such byte */
	assert_false(find(v, true, &c));
	/* Before 1.65. */
	put_table(v + 8, 0, 0, 0);
	put(v, 4, 3ULL, block(0) + 32, 1ULL, 2ULL);
	assert_true(find(v + 8, true, &c));
	assert_int_equal(c.elements, 2);
}

/* As a hostile process may have it: each of many words is the beginning of a collection, and all of them have the same nodes. */
static void all_walks_together_have_so_many_steps(void **state)
{
	uint64_t v = variable(HEADER), steps = 40;
	float load = 1;
	uint64_t word = 0;
	struct collection c;
	int found = 0;

	(void)state;
	begin(BLOCK);
	mem.steps = &steps;
	memcpy(&word, &load, 4);
	put(v, 7, block(0), 7ULL, block(1), 3ULL, word, 7ULL, 0ULL);
	put(block(0), 7, 0ULL, 0ULL, 0ULL, 0ULL, 0ULL, 0ULL, v + 16);
	put(block(1), 1, block(2));
	put(block(2), 1, block(3));
	put(block(3), 1, 0ULL);
	while (found < 100 && find(v, true, &c))
		found++;
	/* Seven buckets and three nodes each time. */
	assert_int_equal(found, 4);
	assert_int_equal(steps, 0);
	put_table(v, 3, 1, 2);
	assert_false(find(v, true, &c));
	steps = 1;
	assert_true(find(v, true, &c));
	assert_int_equal(steps, 0);
}

/* As a fuzzer would, but for the seeds: words of addresses and small numbers everywhere. */
static void any_words_end(void **state)
{
	uint64_t draw = 88172645463325252ULL;

	(void)state;
	for (int round = 0; round < 200; round++) {
		begin(BLOCK);
		for (uint32_t i = 0; i < sizeof(words) / 8; i++) {
			draw ^= draw << 13;
			draw ^= draw >> 7;
			draw ^= draw << 17;
			words[i] =
				draw % 3 ? block((uint32_t)(draw >> 20) % N) + (draw >> 40) % 2 * 8
					 : (draw >> 30) % 5;
		}
		for (uint32_t i = 1; i < sizeof(words) / 8; i++) {
			struct collection c;

			if (find(variable(i), draw & 1, &c))
				assert_true(c.blocks <= N && c.bytes <= sizeof(words));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vector_is_three_ordered_words_about_its_block),
		cmocka_unit_test(a_string_has_its_length_and_ends_there),
		cmocka_unit_test(a_map_is_a_tree_of_as_many_nodes_as_it_says),
		cmocka_unit_test(a_list_is_found_by_any_of_its_words_and_once),
		cmocka_unit_test(a_list_whose_header_begins_a_block_is_found_by_its_count),
		cmocka_unit_test(a_deque_is_a_map_of_chunks_between_two_places),
		cmocka_unit_test(an_unordered_map_has_buckets_and_a_chain_of_all_its_nodes),
		cmocka_unit_test(a_dict_of_redis_has_as_many_entries_as_are_used),
		cmocka_unit_test(a_string_of_libcxx_has_its_length_and_capacity_before),
		cmocka_unit_test(a_map_of_libcxx_is_a_tree_of_as_many_nodes_as_it_says),
		cmocka_unit_test(a_deque_of_libcxx_has_chunks_between_two_places_of_its_map),
		cmocka_unit_test(a_hash_map_of_rust_has_as_many_control_bytes_in_use_as_items),
		cmocka_unit_test(all_walks_together_have_so_many_steps),
		cmocka_unit_test(any_words_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
