/* What a runtime that knows its objects brings into a snapshot, and what becomes of it among blocks of allocators. */
#include "heap/snapshot/exact.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Three objects in memory of its own, and references from each to the next. */
static const uint64_t objects[] = { 0x5000, 0x5020, 0x9000 };

enum { N_OBJECTS = sizeof(objects) / sizeof(*objects), OBJECT_BYTES = 16 };

static int opened, answer;

static int open_three(struct copy *copy, pid_t pid, void **ret_state, struct err *e)
{
	(void)copy;
	if (answer < 0)
		return err_set(e, answer, "process %d: its collector is at work", (int)pid);
	opened++;
	*ret_state = &opened;
	return 0;
}

static void close_three(void *state)
{
	assert_ptr_equal(state, &opened);
	opened--;
}

static int three_objects(void *state, struct types *types, exact_object_fn fn, void *ctx)
{
	uint32_t type = types_add(types, TYPE_GHC, "Three", 0);

	(void)state;
	for (int i = N_OBJECTS; i-- > 0;)
		fn(ctx, objects[i], OBJECT_BYTES, type);
	return type ? 0 : -ENOMEM;
}

static bool owns_three(void *state, const struct heap_map *map)
{
	(void)state;
	return map->start == 0x5000;
}

static bool edges_of_three(void *state, const struct snapshot *s, uint32_t node, exact_edge_fn fn,
			   void *ctx)
{
	(void)state;
	for (int i = 0; i + 1 < N_OBJECTS; i++)
		if (s->blocks.rows[node].addr == objects[i])
			fn(ctx, objects[i + 1], 8);
	return true;
}

static void use_of_three(void *state, struct heap_use *use)
{
	(void)state;
	use->free.bytes = 4096;
}

static void roots_of_three(void *state, const struct snapshot *s, exact_root_fn fn, void *ctx)
{
	(void)state;
	(void)s;
	fn(ctx, &(struct exact_root){ objects[0], 0x1234, "first", SNAPSHOT_ROOT_CAF });
}

static const struct exact_runtime three = {
	.name = "three",
	.open = open_three,
	.close = close_three,
	.objects = three_objects,
	.owns = owns_three,
	.use = use_of_three,
	.edges = edges_of_three,
	.roots = roots_of_three,
};

/* It has no objects of its own; of allocators' blocks it knows those of 32 bytes. */
static int open_blocks(struct copy *copy, pid_t pid, void **ret_state, struct err *e)
{
	(void)copy;
	(void)pid;
	(void)e;
	*ret_state = NULL;
	return 0;
}

static void close_blocks(void *state)
{
	(void)state;
}

static bool edges_of_blocks(void *state, const struct snapshot *s, uint32_t node, exact_edge_fn fn,
			    void *ctx)
{
	(void)state;
	if (s->blocks.rows[node].words != 4)
		return false;
	fn(ctx, 0x5008, 24);
	return true;
}

static const struct exact_runtime of_blocks = {
	.name = "blocks",
	.open = open_blocks,
	.close = close_blocks,
	.edges = edges_of_blocks,
};

static int open_nothing(struct copy *copy, pid_t pid, void **ret_state, struct err *e)
{
	(void)copy;
	(void)pid;
	(void)ret_state;
	(void)e;
	return -ENOENT;
}

static const struct exact_runtime not_there = {
	.name = "none",
	.open = open_nothing,
	.close = close_blocks,
	.edges = edges_of_blocks,
};

static const struct exact_runtime *const table[] = { &not_there, &three, &of_blocks, NULL };

struct case_ {
	struct snapshot s;
	struct exact x;
	uint32_t *types;
};

/* Two blocks of an allocator, on both sides of the runtime's. */
static void begin(struct case_ *c)
{
	*c = (struct case_){ .s.blocks.max = 100 };
	c->s.exact = &c->x;
	heap_blocks_add(&c->s.blocks, 0x1000, 32, 32);
	heap_blocks_add(&c->s.blocks, 0x6000, 64, 64);
	assert_int_equal(types_init(&c->s.types), 0);
	assert_int_equal(exact_runtimes_open(&c->x, table, NULL, 1, NULL), 0);
	assert_int_equal(exact_objects(&c->x, &c->s, &c->types), 0);
}

static void end(struct case_ *c)
{
	exact_runtimes_close(&c->x);
	heap_blocks_free(&c->s.blocks);
	types_fini(&c->s.types);
	free(c->types);
	assert_int_equal(opened, 0);
}

static void objects_are_nodes_among_blocks_by_address(void **unused)
{
	static const uint64_t addr[] = { 0x1000, 0x5000, 0x5020, 0x6000, 0x9000 };
	static const bool brought[] = { false, true, true, false, true };
	struct case_ c;

	(void)unused;
	begin(&c);
	assert_int_equal(c.x.n, 2);
	assert_int_equal(c.s.blocks.n, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(c.s.blocks.rows[i].addr, addr[i]);
		assert_int_equal(exact_brought(&c.x, i), brought[i]);
		assert_int_equal(c.types[i], brought[i] ? 1 : 0);
	}
	assert_string_equal(c.s.types.type[1].name, "Three");
	assert_string_equal(heap_blocks_owner(&c.s.blocks, c.s.blocks.rows[1].owner)->allocator,
			    "three");
	assert_int_equal(c.s.census.n, 1);
	assert_string_equal(c.s.census.use[0].allocator, "three");
	assert_int_equal(c.s.census.use[0].live.bytes, N_OBJECTS * OBJECT_BYTES);
	assert_int_equal(c.s.census.use[0].free.bytes, 4096);
	end(&c);
}

struct edge {
	uint64_t to;
	uint32_t at, n;
};

/* One that only knows what is in blocks of others leaves a heap without any as empty as it is. */
static void only_who_brings_objects_has_a_heap(void **unused)
{
	static const struct exact_runtime *const blocks_alone[] = { &of_blocks, NULL };
	struct exact x = { 0 };

	(void)unused;
	assert_int_equal(exact_runtimes_open(&x, blocks_alone, NULL, 1, NULL), 0);
	assert_int_equal(x.n, 1);
	assert_false(exact_brings(&x));
	exact_runtimes_close(&x);
	assert_int_equal(exact_runtimes_open(&x, table, NULL, 1, NULL), 0);
	assert_true(exact_brings(&x));
	exact_runtimes_close(&x);
}

static void on_edge(void *ctx, uint64_t to, uint32_t at)
{
	struct edge *e = ctx;

	e->to = to;
	e->at = at;
	e->n++;
}

static void whoever_knows_a_node_says_its_references(void **unused)
{
	struct edge e = { 0 };
	struct case_ c;

	(void)unused;
	begin(&c);
	assert_true(exact_edges(&c.x, &c.s, 1, on_edge, &e));
	assert_true(e.to == 0x5020 && e.at == 8 && e.n == 1);
	assert_true(exact_edges(&c.x, &c.s, 4, on_edge, &e));
	assert_int_equal(e.n, 1);
	/* The allocator's: one that is known, one that is scanned. */
	assert_true(exact_edges(&c.x, &c.s, 0, on_edge, &e));
	assert_true(e.to == 0x5008 && e.at == 24 && e.n == 2);
	assert_false(exact_edges(&c.x, &c.s, 3, on_edge, &e));
	assert_int_equal(e.n, 2);
	end(&c);
}

static void on_root(void *ctx, const struct exact_root *root)
{
	assert_string_equal(root->name, "first");
	assert_int_equal(root->kind, SNAPSHOT_ROOT_CAF);
	++*(int *)ctx;
}

static void its_roots_and_its_memory_are_its_own(void **unused)
{
	struct heap_map own = { 0x5000, 0xa000, 0, HEAP_MAP_ANON },
			other = { 0xb000, 0xc000, 0, HEAP_MAP_ANON };
	struct case_ c;
	int n = 0;

	(void)unused;
	begin(&c);
	exact_roots(&c.x, &c.s, on_root, &n);
	assert_int_equal(n, 1);
	assert_true(exact_owns(&c.x, &own));
	assert_false(exact_owns(&c.x, &other));
	end(&c);
}

static void a_copy_taken_in_the_middle_of_a_change_is_said(void **unused)
{
	struct exact x;
	struct err e = { 0 };

	(void)unused;
	answer = -EAGAIN;
	assert_int_equal(exact_runtimes_open(&x, table, NULL, 7, &e), -EAGAIN);
	assert_string_equal(e.msg, "process 7: its collector is at work");
	assert_int_equal(x.n, 0);
	answer = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_are_nodes_among_blocks_by_address),
		cmocka_unit_test(only_who_brings_objects_has_a_heap),
		cmocka_unit_test(whoever_knows_a_node_says_its_references),
		cmocka_unit_test(its_roots_and_its_memory_are_its_own),
		cmocka_unit_test(a_copy_taken_in_the_middle_of_a_change_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
