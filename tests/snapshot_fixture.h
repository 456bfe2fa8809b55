/*
 * A small heap, for what is computed of snapshots:
 *
 *   root → 0 web.App (64) → 1 dict (200) → 2 web.Session (48) → 4 str (32)
 *                                        → 3 web.Session (56) → 4
 *   5 web.Session (48) → 6 str (32)        nobody refers to 5
 */
#ifndef MEMSCOPE_TESTS_SNAPSHOT_FIXTURE_H
#define MEMSCOPE_TESTS_SNAPSHOT_FIXTURE_H

#include "heap/snapshot/snapshot.h"

#include <string.h>

enum { APP = 1, DICT, SESSION, STR, N_TYPES, N = 7 };

static const uint32_t words[N] = { 8, 25, 6, 7, 4, 6, 4 };
static const uint32_t edges[][2] = { { 0, 1 }, { 1, 2 }, { 1, 3 }, { 2, 4 }, { 3, 4 }, { 5, 6 } };

static struct type type_rows[N_TYPES] = {
	{ .name = "(unknown)" },   { .by = TYPE_CPYTHON, .name = "web.App" }, { .by = TYPE_CPYTHON, .name = "dict" },
	{ .by = TYPE_CPYTHON, .name = "web.Session" }, { .by = TYPE_CPYTHON, .name = "str" },
};

struct heap {
	struct snapshot s;
	struct heap_block blocks[N];
	uint32_t of[N];
	struct graph_root roots[1];
	struct snapshot_root snapshot_roots[1];
};

static void heap_init(struct heap *h)
{
	static const uint32_t of[N] = { APP, DICT, SESSION, SESSION, STR, SESSION, STR };

	*h = (struct heap){ .roots = { { 0, SNAPSHOT_ROOT_GLOBAL } },
			    .snapshot_roots = { { .kind = SNAPSHOT_ROOT_GLOBAL } } };
	memcpy(h->of, of, sizeof(of));
	for (uint32_t i = 0; i < N; i++)
		h->blocks[i] =
			(struct heap_block){ .addr = 0x1000 * (i + 1ull), .words = words[i] };
	h->s.blocks = (struct heap_blocks){ .rows = h->blocks, .n = N };
	h->s.types = (struct types){ .type = type_rows, .n = N_TYPES, .of = h->of };
	h->s.graph_roots = h->roots;
	h->s.roots = h->snapshot_roots;
	h->s.n_roots = 1;
	h->s.graph = graph_new(N);
	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		graph_count(h->s.graph, edges[i][0]);
	assert_int_equal(graph_lay_out(h->s.graph), 0);
	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		graph_add(h->s.graph, edges[i][0], edges[i][1], 0);
	graph_finish(h->s.graph);
	h->s.reverse = graph_reversed(h->s.graph);
	h->s.index = block_index_new(h->blocks, N);
	assert_true(h->s.reverse && h->s.index);
}

static void heap_fini(struct heap *h)
{
	graph_free(h->s.graph);
	graph_free(h->s.reverse);
	block_index_free(h->s.index);
}

#endif
