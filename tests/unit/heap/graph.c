/*
 * Random graphs, and what each algorithm says of them beside the definition, taken at its word: reachability by walking,
 * dominators by removing each node, rings by who reaches whom.
 */
#include "heap/graph/dominator_tree.h"
#include "heap/graph/group_retained.h"
#include "heap/graph/leaks.h"
#include "heap/graph/reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_MAX = 12, ROOTS_MAX = 4, GRAPHS = 10000 };

static uint64_t state = 88172645463325252ULL;

static uint32_t draw(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 20) % n);
}

struct random_graph {
	uint32_t n, n_roots;
	bool edge[N_MAX][N_MAX];
	struct graph_root roots[ROOTS_MAX];
	struct graph *g, *reverse;
};

static int by_node(const void *a, const void *b)
{
	const struct graph_root *x = a, *y = b;

	return (x->node > y->node) - (x->node < y->node);
}

static void make(struct random_graph *r)
{
	uint32_t density;

	memset(r, 0, sizeof(*r));
	r->n = 1 + draw(N_MAX);
	density = 1 + draw(8);
	r->g = graph_new(r->n);
	assert_non_null(r->g);
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t k = 0; k < r->n; k++)
			r->edge[i][k] = draw(20) < density;
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t k = 0; k < r->n; k++)
			if (r->edge[i][k])
				graph_count(r->g, i);
	assert_int_equal(graph_lay_out(r->g), 0);
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t k = 0; k < r->n; k++)
			if (r->edge[i][k])
				assert_true(graph_add(r->g, i, k, 100 * i + k));
	graph_finish(r->g);
	r->n_roots = draw(ROOTS_MAX + 1);
	for (uint32_t i = 0; i < r->n_roots; i++)
		r->roots[i] = (struct graph_root){ draw(r->n), (uint8_t)draw(2) };
	qsort(r->roots, r->n_roots, sizeof(*r->roots), by_node);
	r->reverse = graph_reversed(r->g);
	assert_non_null(r->reverse);
}

static void unmake(struct random_graph *r)
{
	graph_free(r->g);
	graph_free(r->reverse);
}

/* Those that `from` reaches, itself among them, without going through `without`. */
static void walk(const struct random_graph *r, uint32_t from, uint32_t without, bool *ret)
{
	if (from == without || ret[from])
		return;
	ret[from] = true;
	for (uint32_t k = 0; k < r->n; k++)
		if (r->edge[from][k])
			walk(r, k, without, ret);
}

static void walk_roots(const struct random_graph *r, uint32_t without, bool *ret)
{
	memset(ret, 0, N_MAX);
	for (uint32_t i = 0; i < r->n_roots; i++)
		walk(r, r->roots[i].node, without, ret);
}

static void an_edge_is_there_both_ways(void **state_)
{
	struct random_graph r;

	(void)state_;
	for (int round = 0; round < 100; round++) {
		make(&r);
		assert_int_equal(graph_edges(r.g), graph_edges(r.reverse));
		for (uint32_t to = 0; to < r.n; to++)
			for (uint64_t e = r.reverse->first[to]; e < r.reverse->first[to + 1]; e++) {
				uint32_t from = r.reverse->edges[e].to;

				assert_true(r.edge[from][to]);
				assert_int_equal(r.reverse->edges[e].at, 100 * from + to);
			}
		unmake(&r);
	}
}

static void edges_that_are_gone_in_the_second_pass_leave_no_gap(void **state_)
{
	_cleanup_(graph_freep) struct graph *g = graph_new(3);

	(void)state_;
	for (uint32_t i = 0; i < 3; i++)
		for (int k = 0; k < 2; k++)
			graph_count(g, i);
	assert_int_equal(graph_lay_out(g), 0);
	assert_true(graph_add(g, 0, 1, 7));
	assert_true(graph_add(g, 2, 0, 8));
	assert_true(graph_add(g, 2, 1, 9));
	assert_false(graph_add(g, 2, 2, 10)); /* one more than was counted */
	graph_finish(g);
	assert_int_equal(graph_edges(g), 3);
	assert_int_equal(g->first[1], 1);
	assert_int_equal(g->first[2], 1);
	assert_int_equal(g->edges[1].at, 8);
	assert_int_equal(g->edges[2].at, 9);
}

static void what_is_reached_is_what_a_walk_meets(void **state_)
{
	(void)state_;
	for (int round = 0; round < GRAPHS; round++) {
		struct random_graph r;
		bool want[N_MAX];

		make(&r);
		walk_roots(&r, GRAPH_NONE, want);
		uint8_t *got = graph_reached(r.g, r.roots, r.n_roots);
		for (uint32_t i = 0; i < r.n; i++)
			assert_int_equal(got[i], want[i]);
		free(got);
		unmake(&r);
	}
}

/* By definition: those that are not reached any more without it. */
static void dominators_are_those_without_which_a_node_is_not_reached(void **state_)
{
	(void)state_;
	for (int round = 0; round < GRAPHS; round++) {
		bool reached[N_MAX], without[N_MAX];
		uint64_t sizes[N_MAX], *retained;
		struct graph_dominators d;
		struct random_graph r;

		make(&r);
		for (uint32_t i = 0; i < r.n; i++)
			sizes[i] = 1ULL << (4 * i);
		assert_int_equal(graph_dominators_find(r.g, r.reverse, r.roots, r.n_roots, &d), 0);
		retained = graph_retained(&d, sizes);
		assert_non_null(retained);
		walk_roots(&r, GRAPH_NONE, reached);
		for (uint32_t i = 0; i < r.n; i++) {
			uint64_t want = 0;

			assert_int_equal(d.of[i] != GRAPH_NONE, reached[i]);
			walk_roots(&r, i, without);
			for (uint32_t k = 0; k < r.n; k++) {
				bool dominates = reached[k] && !without[k] && reached[i];
				uint32_t up = k;

				while (up != r.n && up != i && d.of[k] != GRAPH_NONE)
					up = d.of[up];
				if (d.of[k] != GRAPH_NONE)
					assert_int_equal(up == i, dominates);
				want += dominates ? sizes[k] : 0;
			}
			assert_int_equal(retained[i], want);
		}
		free(retained);
		graph_dominators_fini(&d);
		unmake(&r);
	}
}

/* Of a leak that is direct: each unreached node that points at it is one of its ring, and it is the least of those. */
static void groups_retain_what_would_be_freed_without_all_of_their_nodes_dominated_ones_once(
	void **state_)
{
	enum { GROUPS = 3 };

	(void)state_;
	for (int round = 0; round < GRAPHS; round++) {
		uint64_t sizes[N_MAX], want[GROUPS] = { 0 }, *retained, *sums;
		struct graph_dominators d;
		uint32_t group[N_MAX];
		struct random_graph r;

		make(&r);
		for (uint32_t i = 0; i < r.n; i++) {
			sizes[i] = 1 + draw(100);
			group[i] = draw(GROUPS);
		}
		assert_int_equal(graph_dominators_find(r.g, r.reverse, r.roots, r.n_roots, &d), 0);
		retained = graph_retained(&d, sizes);
		sums = retained ? graph_group_retained(&d, retained, group, GROUPS) : NULL;
		assert_non_null(sums);
		/* A node counts once for each group that one of its dominators is of, itself among them. */
		for (uint32_t i = 0; i < r.n; i++) {
			bool of[GROUPS] = { false };

			for (uint32_t up = i; d.of[i] != GRAPH_NONE && up != r.n; up = d.of[up])
				of[group[up]] = true;
			for (uint32_t k = 0; k < GROUPS; k++)
				want[k] += of[k] ? sizes[i] : 0;
		}
		for (uint32_t k = 0; k < GROUPS; k++)
			assert_int_equal(sums[k], want[k]);
		free(sums);
		free(retained);
		graph_dominators_fini(&d);
		unmake(&r);
	}
}

static void direct_leaks_are_those_that_no_other_leak_holds(void **state_)
{
	(void)state_;
	for (int round = 0; round < GRAPHS; round++) {
		bool meets[N_MAX][N_MAX] = { 0 }, held[N_MAX];
		struct random_graph r;
		uint8_t *reached, *leaks;

		make(&r);
		reached = graph_reached(r.g, r.roots, r.n_roots);
		leaks = graph_leaks(r.g, reached);
		assert_non_null(leaks);
		walk_roots(&r, GRAPH_NONE, held);
		for (uint32_t i = 0; i < r.n; i++)
			walk(&r, i, GRAPH_NONE, meets[i]);
		for (uint32_t i = 0; i < r.n; i++) {
			bool direct = true;

			for (uint32_t k = 0; k < r.n; k++)
				if (!held[k] && meets[k][i] && (!meets[i][k] || k < i))
					direct = false;
			assert_int_equal(leaks[i], held[i]  ? GRAPH_HELD
						   : direct ? GRAPH_LEAK_DIRECT
							    : GRAPH_LEAK_INDIRECT);
		}
		free(leaks);
		free(reached);
		unmake(&r);
	}
}

/* Lengths by as many steps as it takes; last edges: those that leave node 0. */
static bool leaves_0(void *ctx, uint32_t from, const struct graph_edge *edge)
{
	(void)ctx;
	assert_int_equal(edge->at / 100, from);
	return from == 0;
}

static uint32_t steps_to(const struct random_graph *r, uint32_t from, uint32_t to)
{
	bool now[N_MAX] = { 0 };

	now[from] = true;
	for (uint32_t length = 0; length < r->n; length++) {
		bool then[N_MAX] = { 0 };

		if (now[to])
			return length;
		for (uint32_t i = 1; i < r->n; i++)
			for (uint32_t k = 0; now[i] && k < r->n; k++)
				then[k] |= r->edge[i][k];
		memcpy(now, then, sizeof(now));
	}
	return GRAPH_NONE;
}

/* Of the roots whose kind is 1, or of all. */
static void chains_are_the_shortest(void **state_)
{
	(void)state_;
	for (int round = 0; round < GRAPHS; round++) {
		uint32_t kinds = draw(2) ? 2 : 3;
		bool any[N_MAX] = { 0 };
		struct random_graph r;
		struct graph_tree t;

		make(&r);
		assert_int_equal(
			graph_tree_grow(r.g, r.roots, r.n_roots, kinds, leaves_0, NULL, &t), 0);
		for (uint32_t i = 0; i < r.n_roots; i++)
			if (kinds & 1u << r.roots[i].kind)
				walk(&r, r.roots[i].node, GRAPH_NONE, any);
		for (uint32_t to = 0; to < r.n; to++) {
			uint32_t best = GRAPH_NONE, length = 0, node = to, kind = 2;

			for (uint32_t i = 0; i < r.n_roots; i++)
				if (kinds & 1u << r.roots[i].kind && r.roots[i].kind < kind &&
				    steps_to(&r, r.roots[i].node, to) != GRAPH_NONE)
					kind = r.roots[i].kind;
			for (uint32_t i = 0; i < r.n_roots; i++)
				if (r.roots[i].kind == kind &&
				    steps_to(&r, r.roots[i].node, to) < best)
					best = steps_to(&r, r.roots[i].node, to);
			assert_int_equal(t.reached[to], any[to]);
			if (!any[to])
				continue;
			/* Only by a last edge: by some chain of references. */
			if (best == GRAPH_NONE) {
				for (; t.from[node] != GRAPH_NONE; node = t.from[node])
					assert_true(r.edge[t.from[node]][node] && length++ < r.n);
				continue;
			}
			for (; t.from[node] != GRAPH_NONE; length++) {
				assert_int_equal(t.at[node], 100 * t.from[node] + node);
				assert_true(r.edge[t.from[node]][node]);
				node = t.from[node];
			}
			assert_int_equal(length, best);
			assert_int_equal(r.roots[t.at[node]].node, node);
			assert_int_equal(r.roots[t.at[node]].kind, kind);
		}
		graph_tree_fini(&t);
		unmake(&r);
	}
}

/*
 * 0 (10) → 1 (100) → 2 (1) → 3 (1) → 4 (500) → 5 (20), 6 (7)
 * 7 (50) → 8 (9)
 */
static void of_dominators_the_largest_are_rows_and_long_chains_their_ends(void **ignored)
{
	static const uint32_t of[] = { 9, 0, 1, 2, 3, 4, 4, 9, 7 };
	static const uint32_t order[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
	static const uint64_t retained[] = { 639, 629, 529, 528, 527, 20, 7, 59, 9 };
	static const struct dominator_row want[] = {
		{ 0, 0, 0 }, { 1, 1, 0 }, { 2, 2, 0 }, { 4, 3, 1 },
		{ 5, 4, 0 }, { 7, 0, 0 }, { 8, 1, 0 },
	};
	struct graph_dominators d = { 9, (uint32_t *)of, (uint32_t *)order, 9 };
	_cleanup_(freep) struct dominator_row *rows = NULL;
	uint32_t n;

	assert_int_equal(dominator_tree_rows(&d, retained, 9, 100, &rows, &n), 0);
	assert_int_equal(n, 7);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(rows[i].node, want[i].node);
		assert_int_equal(rows[i].depth, want[i].depth);
		assert_int_equal(rows[i].skipped, want[i].skipped);
	}
	free(TAKE_PTR(rows));
	assert_int_equal(dominator_tree_rows(&d, retained, 0, 3, &rows, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(rows[2].node, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_edge_is_there_both_ways),
		cmocka_unit_test(edges_that_are_gone_in_the_second_pass_leave_no_gap),
		cmocka_unit_test(what_is_reached_is_what_a_walk_meets),
		cmocka_unit_test(dominators_are_those_without_which_a_node_is_not_reached),
		cmocka_unit_test(
			groups_retain_what_would_be_freed_without_all_of_their_nodes_dominated_ones_once),
		cmocka_unit_test(direct_leaks_are_those_that_no_other_leak_holds),
		cmocka_unit_test(of_dominators_the_largest_are_rows_and_long_chains_their_ends),
		cmocka_unit_test(chains_are_the_shortest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
