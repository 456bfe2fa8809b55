/* Chains of a small heap of GHC's, whose objects hang on a table directly and through objects that stand for others. */
#include "heap/snapshot/retainers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TABLE, PLAIN, HOLE, BEHIND_HOLE, PARTIAL, IND, BEHIND_BOTH, N };
enum { T_UNKNOWN, T_TABLE, T_RECORD, T_BLACKHOLE, T_PAP, T_IND, TYPES };

static const uint32_t edges[][3] = {
	{ TABLE, PLAIN, 8 },    { TABLE, HOLE, 16 },  { HOLE, BEHIND_HOLE, 8 },
	{ TABLE, PARTIAL, 24 }, { PARTIAL, IND, 24 }, { IND, BEHIND_BOTH, 8 },
};

static struct type types[TYPES] = {
	[T_UNKNOWN] = { .name = "(unknown)" },
	[T_TABLE] = { TYPE_GHC, "main:Main.Table", 0, 0, 0 },
	[T_RECORD] = { TYPE_GHC, "main:Main.Record", 0, 0, 0 },
	[T_BLACKHOLE] = { TYPE_GHC, "BLACKHOLE", 0, 0, 0 },
	[T_PAP] = { TYPE_GHC, "PAP", 0, 0, 0 },
	[T_IND] = { TYPE_GHC, "IND", 0, 0, 0 },
};

struct fixture {
	struct snapshot s;
	struct heap_block blocks[N];
	uint32_t of[N], type[N];
	uint8_t object[N];
	struct snapshot_root root;
	struct graph_root graph_root;
};

static void begin(struct fixture *f)
{
	static const uint32_t type[N] = { T_TABLE, T_RECORD, T_BLACKHOLE, T_RECORD,
					  T_PAP,   T_IND,    T_RECORD };

	*f = (struct fixture){ 0 };
	for (uint32_t i = 0; i < N; i++)
		f->blocks[i] = (struct heap_block){ .addr = 0x1000 * (i + 1ULL), .words = 4 };
	memcpy(f->type, type, sizeof(type));
	f->s.blocks = (struct heap_blocks){ .rows = f->blocks, .n = N };
	f->s.types =
		(struct types){ .type = types, .n = TYPES, .of = f->type, .object = f->object };
	f->s.collections = (struct collections){ NULL, 0, 0, f->of };
	f->root = (struct snapshot_root){ .node = TABLE, .kind = SNAPSHOT_ROOT_CAF, .at = 0x9000 };
	f->graph_root = (struct graph_root){ TABLE, SNAPSHOT_ROOT_CAF };
	f->s.roots = &f->root;
	f->s.graph_roots = &f->graph_root;
	f->s.n_roots = 1;
	f->s.graph = graph_new(N);
	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		graph_count(f->s.graph, edges[i][0]);
	assert_int_equal(graph_lay_out(f->s.graph), 0);
	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		graph_add(f->s.graph, edges[i][0], edges[i][1], edges[i][2]);
	graph_finish(f->s.graph);
}

static void objects_that_stand_for_others_split_no_row(void **state)
{
	static const uint32_t records[] = { PLAIN, BEHIND_HOLE, BEHIND_BOTH };
	struct retainers found;
	struct fixture f;

	(void)state;
	begin(&f);
	assert_int_equal(retainers_find(&f.s, records, 3, ~0u, &found), 0);
	assert_int_equal(found.n, 1);
	assert_int_equal(found.rows[0].objects, 3);
	assert_int_equal(found.rows[0].n_links, 2);
	assert_string_equal(found.rows[0].links[0], "main:Main.Table");
	assert_string_equal(found.rows[0].links[1], "main:Main.Record");
	assert_int_equal(found.indirections, 3);
	retainers_fini(&found);
	graph_free(f.s.graph);
}

static void one_that_is_asked_about_stays_at_the_end_of_its_chain(void **state)
{
	static const uint32_t asked[] = { IND };
	struct retainers found;
	struct fixture f;

	(void)state;
	begin(&f);
	assert_int_equal(retainers_find(&f.s, asked, 1, ~0u, &found), 0);
	assert_int_equal(found.rows[0].n_links, 2);
	assert_string_equal(found.rows[0].links[1], "IND");
	assert_int_equal(found.indirections, 1);
	retainers_fini(&found);
	/* One of another runtime's that is called the same is a link like any other. */
	types[T_PAP].by = TYPE_RTTI;
	assert_int_equal(retainers_find(&f.s, asked, 1, ~0u, &found), 0);
	assert_int_equal(found.rows[0].n_links, 3);
	retainers_fini(&found);
	types[T_PAP].by = TYPE_GHC;
	graph_free(f.s.graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_that_stand_for_others_split_no_row),
		cmocka_unit_test(one_that_is_asked_about_stays_at_the_end_of_its_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
