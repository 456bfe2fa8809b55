/* References of CPython's objects, by hand-made objects of 3.11 and 3.13 in memory of the test's own. */
#include "base/large.h"
#include "heap/python/python_heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	BASE = 0x100000,
	LEN = 0x10000,
	TYPE = BASE, /* types lie in an image, not in blocks */
	TYPE_BYTES = 0x400,
	HEAP = BASE + 0x8000,
	BLOCK = 0x100, /* bytes of each block                    */
	N = 16,
	EDGES_MAX = 64,
};

/* Types by their numbers. */
enum { UNKNOWN, T_TYPE, T_LIST, T_DICT, T_SET, T_WEAKREF, T_INSTANCE, T_GENERATOR, T_DEQUE, T_N };

static const char *const names[T_N] = { "(unknown)",   "type",      "list",
					"dict",        "set",       "weakref",
					"web.Session", "generator", "collections.deque" };

static uint8_t bytes[LEN];
static struct heap_memory mem;
static struct heap_block rows[N];
static struct type types[T_N + PYTHON_TABLES];
static uint32_t type_of[N];
static uint8_t object_of[N];
static struct snapshot s;
static struct python_heap *heap;
static struct stopped_thread thread;
static struct {
	uint64_t to;
	uint32_t at;
} edges[EDGES_MAX];
static uint32_t n_edges;

#include "fake_copy.h"

static bool read_bytes(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr < BASE || addr - BASE > LEN || len > LEN - (addr - BASE))
		return false;
	memcpy(buf, bytes + (addr - BASE), len);
	return true;
}

static void put(uint64_t addr, uint64_t word)
{
	memcpy(bytes + (addr - BASE), &word, 8);
}

static uint64_t type_at(uint32_t type)
{
	return TYPE + (type - 1) * (uint64_t)TYPE_BYTES;
}

static uint64_t block(uint32_t node)
{
	return HEAP + node * (uint64_t)BLOCK;
}

static void put_type(uint32_t type, uint64_t size, uint64_t flags)
{
	put(type_at(type) + 8, type_at(T_TYPE));
	put(type_at(type) + 32, size);
	put(type_at(type) + 168, flags);
}

/* An object behind `before` bytes of its block; returns its address. */
static uint64_t put_object(uint32_t node, uint32_t type, uint8_t before)
{
	type_of[node] = type;
	object_of[node] = before;
	put(block(node) + before, 1);
	put(block(node) + before + 8, type_at(type));
	return block(node) + before;
}

static void begin(uint64_t size_of_type)
{
	memset(bytes, 0, sizeof(bytes));
	memset(type_of, 0, sizeof(type_of));
	memset(object_of, 0, sizeof(object_of));
	memset(types, 0, sizeof(types));
	thread = (struct stopped_thread){ 0 };
	mem = (struct heap_memory){ .read = read_bytes };
	for (uint32_t i = 0; i < N; i++)
		rows[i] = (struct heap_block){ .addr = block(i), .words = BLOCK / 8 };
	for (uint32_t i = 1; i < T_N; i++)
		types[i] = (struct type){ .by = TYPE_CPYTHON, .name = names[i], .at = type_at(i) };
	types[0].name = names[0];
	s = (struct snapshot){ .blocks = { .rows = rows, .n = N },
			       .types = { types, T_N, T_N + PYTHON_TABLES, type_of, object_of } };
	s.index = block_index_new(rows, N);
	assert_non_null(s.index);
	put_type(T_TYPE, size_of_type, 1ULL << 31);
	put_type(T_LIST, 40, 1ULL << 25);
	put_type(T_DICT, 48, 1ULL << 29);
	put_type(T_SET, 200, 0);
	put_type(T_WEAKREF, 64, 0);
	put_type(T_INSTANCE, 16, 1ULL << 9 | 1ULL << 4 | 1ULL << 2);
	put_type(T_GENERATOR, 152, 0);
	put_type(T_DEQUE, 216, 0);
}

static void ready(void)
{
	struct err e = { 0 };
	void *state;

	assert_int_equal(python_runtime.open(NULL, 0, &state, &e), 0);
	heap = state;
	assert_int_equal(python_runtime.prepare(heap, &s), 0);
}

static void end(void)
{
	python_runtime.close(heap);
	block_index_free(s.index);
	large_free(s.lengths);
	s.lengths = NULL;
	for (uint32_t i = T_N; i < s.types.n; i++)
		free((char *)types[i].name);
}

static void on_edge(void *ctx, uint64_t to, uint32_t at)
{
	(void)ctx;
	assert_true(n_edges < EDGES_MAX);
	edges[n_edges].to = to;
	edges[n_edges++].at = at;
}

static bool look(uint32_t node)
{
	n_edges = 0;
	return python_edges(heap, &s, node, on_edge, NULL);
}

/* Does it refer there from that place? */
static bool has(uint64_t to, uint32_t at)
{
	for (uint32_t i = 0; i < n_edges; i++)
		if (edges[i].to == to && edges[i].at == at)
			return true;
	return false;
}

static bool refers_to(uint64_t to)
{
	for (uint32_t i = 0; i < n_edges; i++)
		if (edges[i].to == to)
			return true;
	return false;
}

static void a_list_has_the_items_that_its_length_says(void **state)
{
	uint64_t list;

	(void)state;
	begin(904);
	list = put_object(0, T_LIST, 16);
	put(list + 16, 2);
	put(list + 24, block(1));
	for (uint32_t i = 0; i < 4; i++)
		put(block(1) + 8 * i, block(4 + i));
	ready();
	assert_true(look(0));
	assert_true(has(block(1), 16 + 24));
	assert_true(look(1));
	assert_int_equal(n_edges, 2);
	assert_true(has(block(4), 0) && has(block(5), 8));
	assert_string_equal(s.types.type[type_of[1]].name, "list (items)");
	assert_int_equal(s.types.type[type_of[1]].blocks, 1);
	/* What is nobody's is scanned. */
	assert_false(look(7));
	end();
}

static void a_set_that_has_grown_has_no_items_in_itself(void **state)
{
	uint64_t set;

	(void)state;
	begin(904);
	set = put_object(0, T_SET, 16);
	put(set + 32, 7);
	put(set + 40, set + 64);
	put(set + 64, block(4));
	put(set + 72, block(5)); /* a hash */
	ready();
	assert_true(look(0));
	assert_true(refers_to(block(4)));
	assert_false(refers_to(block(5)));
	put(set + 40, block(1));
	assert_true(look(0));
	assert_false(refers_to(block(4)));
	assert_true(refers_to(block(1)));
	end();
}

static void a_weak_reference_is_none(void **state)
{
	uint64_t ref;

	(void)state;
	begin(904);
	ref = put_object(0, T_WEAKREF, 16);
	put(ref + 16, block(4));
	put(ref + 24, block(5));
	put(ref + 40, block(6));
	ready();
	assert_true(look(0));
	assert_false(refers_to(block(4)));
	assert_true(refers_to(block(5)));
	assert_false(refers_to(block(6)));
	end();
}

/* 3.11: a word before the object has values behind a prefix, whose keys the class has. */
static void an_instance_of_3_11_has_values_beside_it(void **state)
{
	uint64_t instance;

	(void)state;
	begin(904);
	put(type_at(T_INSTANCE) + 872, block(3));
	put(block(3) + 8,
	    3 | 3 << 8 | 2 << 16); /* keys of a split dict: log2 of size and of bytes */
	put(block(3) + 24, 2);
	instance = put_object(0, T_INSTANCE, 32);
	put(instance - 32, block(1) + 16);
	put(block(1) + 16, block(4));
	put(block(1) + 24, block(5));
	put(block(1) + 32, block(6)); /* more than keys */
	ready();
	assert_true(look(0));
	assert_true(has(block(1) + 16, 0));
	assert_true(look(1));
	assert_int_equal(n_edges, 2);
	assert_true(has(block(4), 16) && has(block(5), 24));
	end();
}

static void an_instance_of_3_13_has_values_in_itself_while_they_are_valid(void **state)
{
	uint64_t instance;

	(void)state;
	begin(928);
	instance = put_object(0, T_INSTANCE, 32);
	put(instance + 16, 2 | 1 << 24);
	put(instance + 24, block(4));
	put(instance + 40, block(5)); /* behind its capacity */
	ready();
	assert_true(look(0));
	assert_true(refers_to(block(4)));
	assert_false(refers_to(block(5)));
	put(instance + 16, 2);
	put(instance - 24, block(6));
	assert_true(look(0));
	assert_false(refers_to(block(4)));
	assert_true(has(block(6), 8));
	end();
}

static void a_generator_has_what_its_frame_has(void **state)
{
	uint64_t generator;

	(void)state;
	begin(904);
	generator = put_object(0, T_GENERATOR, 16);
	put(generator + 72, 0xffULL << 24); /* suspended */
	put(generator + 80 + 8, block(4));  /* globals are borrowed */
	put(generator + 80 + 64, 1);
	put(generator + 80 + 72, block(5));
	put(generator + 80 + 80, block(6)); /* behind what it has on its stack */
	ready();
	assert_true(look(0));
	assert_true(refers_to(block(5)));
	assert_false(refers_to(block(4)) || refers_to(block(6)));
	put(generator + 72, 4ULL << 24); /* it has ended */
	assert_true(look(0));
	assert_false(refers_to(block(5)));
	end();
}

static void keys_of_a_dict_are_references_and_hashes_are_not(void **state)
{
	uint64_t dict;

	(void)state;
	begin(904);
	dict = put_object(0, T_DICT, 16);
	put(dict + 32, block(1));
	put(block(1) + 8, 3 | 3 << 8);
	put(block(1) + 24, 1);
	put(block(1) + 40, block(4)); /* hash, key, value */
	put(block(1) + 48, block(5));
	put(block(1) + 56, block(6));
	put(block(1) + 72, block(7)); /* an entry that is not there yet */
	ready();
	assert_true(look(1));
	assert_int_equal(n_edges, 2);
	assert_true(has(block(5), 48) && has(block(6), 56));
	end();
}

static void a_version_that_is_not_known_is_scanned(void **state)
{
	(void)state;
	begin(1000);
	put_object(0, T_LIST, 16);
	ready();
	assert_false(look(0));
	end();
}

/* A list without references whose items are still there. */
static void put_freed(void)
{
	uint64_t list;

	begin(904);
	list = block(0) + 16;
	put(list + 8, type_at(T_LIST));
	put(list + 24, block(1));
	put(block(1), 1);
	put_object(2, T_LIST, 16);
}

static void a_freed_object_that_is_kept_for_later_refers_to_nothing(void **state)
{
	(void)state;
	put_freed();
	ready();
	assert_true(look(0));
	assert_int_equal(n_edges, 0);
	end();
}

static void an_object_that_a_thread_is_freeing_still_has_what_it_had(void **state)
{
	(void)state;
	put_freed();
	thread = (struct stopped_thread){ .n_regs = 2, .regs = { 1, block(0) + 16 } };
	ready();
	assert_false(look(0)); /* which has it scanned */
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_has_the_items_that_its_length_says),
		cmocka_unit_test(a_set_that_has_grown_has_no_items_in_itself),
		cmocka_unit_test(a_weak_reference_is_none),
		cmocka_unit_test(an_instance_of_3_11_has_values_beside_it),
		cmocka_unit_test(an_instance_of_3_13_has_values_in_itself_while_they_are_valid),
		cmocka_unit_test(a_generator_has_what_its_frame_has),
		cmocka_unit_test(keys_of_a_dict_are_references_and_hashes_are_not),
		cmocka_unit_test(a_version_that_is_not_known_is_scanned),
		cmocka_unit_test(a_freed_object_that_is_kept_for_later_refers_to_nothing),
		cmocka_unit_test(an_object_that_a_thread_is_freeing_still_has_what_it_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
