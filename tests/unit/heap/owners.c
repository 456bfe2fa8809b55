/* Chains that prefer a container's own references, in a heap of five blocks. */
#include "heap/snapshot/owners.h"
#include "base/large.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/*
 *   a variable → 0 (the header is in it, from 16 on) → 1, the buffer of a vector → 2 by a live element, → 3 by one behind its end
 *   a stack → 1 (a pointer to an element)
 *   0 → 4 → 1 (another pointer to an element)
 */
enum { HEADER, BUFFER, LIVE, STALE, OTHER, N };

static const uint32_t edges[][3] = {
	{ HEADER, BUFFER, 16 }, { HEADER, OTHER, 48 }, { BUFFER, LIVE, 8 },
	{ BUFFER, STALE, 40 },  { OTHER, BUFFER, 0 },
};

struct fixture {
	struct snapshot s;
	struct heap_block blocks[N];
	uint32_t of[N];
	struct collection vector;
	struct snapshot_root roots[2];
	struct graph_root graph_roots[2];
};

static void begin(struct fixture *f, bool has_header)
{
	*f = (struct fixture){ 0 };
	for (uint32_t i = 0; i < N; i++)
		f->blocks[i] = (struct heap_block){ .addr = 0x1000 * (i + 1ULL), .words = 8 };
	f->s.blocks = (struct heap_blocks){ .rows = f->blocks, .n = N };
	f->vector = (struct collection){
		.kind = COLLECTION_VECTOR, .at = 0x1010, .in = HEADER, .table = BUFFER, .live = 32
	};
	f->of[BUFFER] = 1;
	f->s.collections = (struct collections){ &f->vector, 1, 0, f->of };
	f->roots[0] = (struct snapshot_root){ .node = has_header ? HEADER : OTHER,
					      .kind = SNAPSHOT_ROOT_STACK,
					      .at = 0x9000 };
	f->roots[1] = (struct snapshot_root){ .node = BUFFER,
					      .kind = SNAPSHOT_ROOT_GLOBAL,
					      .at = 0x8000 };
	for (int i = 0; i < 2; i++)
		f->graph_roots[i] = (struct graph_root){ f->roots[i].node, f->roots[i].kind };
	f->s.roots = f->roots;
	f->s.graph_roots = f->graph_roots;
	f->s.n_roots = 2;
	f->s.graph = graph_new(N);
	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		graph_count(f->s.graph, edges[i][0]);
	assert_int_equal(graph_lay_out(f->s.graph), 0);
	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		graph_add(f->s.graph, edges[i][0], edges[i][1], edges[i][2]);
	graph_finish(f->s.graph);
}

static void a_buffer_hangs_on_its_container(void **state)
{
	struct graph_tree t;
	struct fixture f;

	(void)state;
	begin(&f, true);
	assert_int_equal(owners_tree_grow(&f.s, ~0u, &t), 0);
	assert_int_equal(t.n_reached, N);
	assert_int_equal(t.from[BUFFER], HEADER);
	assert_int_equal(t.at[BUFFER], 16);
	assert_int_equal(t.from[LIVE], BUFFER);
	assert_int_equal(t.from[STALE], BUFFER);
	/* What is left over is last of all. */
	assert_int_equal(t.order[N - 1], STALE);
	graph_tree_fini(&t);
	graph_free(f.s.graph);
}

static void without_its_container_it_hangs_on_what_there_is(void **state)
{
	struct graph_tree t;
	struct fixture f;

	(void)state;
	begin(&f, false);
	assert_int_equal(owners_tree_grow(&f.s, ~0u, &t), 0);
	assert_false(t.reached[HEADER]);
	assert_true(t.reached[BUFFER] && t.reached[LIVE] && t.reached[STALE]);
	assert_int_equal(t.from[BUFFER], GRAPH_NONE);
	assert_int_equal(t.at[BUFFER], 1);
	graph_tree_fini(&t);
	graph_free(f.s.graph);
}

static void kinds_that_are_not_asked_for_do_not_count(void **state)
{
	struct graph_tree t;
	struct fixture f;

	(void)state;
	begin(&f, false);
	assert_int_equal(owners_tree_grow(&f.s, 1u << SNAPSHOT_ROOT_STACK, &t), 0);
	assert_int_equal(t.from[BUFFER], OTHER);
	graph_tree_fini(&t);
	graph_free(f.s.graph);
}

/* A block has 64 bytes. The variable's pointer into the buffer takes nothing from who has the container, unless that is gone. */
static void a_container_retains_its_elements_whoever_points_to_one(void **state)
{
	struct graph_dominators d;
	uint64_t *retained;
	struct fixture f;

	(void)state;
	begin(&f, true);
	f.s.reverse = graph_reversed(f.s.graph);
	assert_int_equal(owners_retained(&f.s, &d, &retained), 0);
	assert_int_equal(retained[HEADER], 64 * N);
	assert_int_equal(retained[BUFFER], 64 * 3);
	large_free(retained);
	graph_dominators_fini(&d);
	graph_free(f.s.reverse);
	graph_free(f.s.graph);

	begin(&f, false);
	f.s.n_roots = 1;
	f.roots[0] = f.roots[1];
	f.graph_roots[0] = f.graph_roots[1];
	f.s.reverse = graph_reversed(f.s.graph);
	assert_int_equal(owners_retained(&f.s, &d, &retained), 0);
	assert_int_equal(retained[HEADER], 0);
	assert_int_equal(retained[BUFFER], 64 * 3);
	large_free(retained);
	graph_dominators_fini(&d);
	graph_free(f.s.reverse);
	graph_free(f.s.graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_hangs_on_its_container),
		cmocka_unit_test(without_its_container_it_hangs_on_what_there_is),
		cmocka_unit_test(a_container_retains_its_elements_whoever_points_to_one),
		cmocka_unit_test(kinds_that_are_not_asked_for_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
