/* Equal contents, of blocks whose bytes are written by hand. */
#include "heap/snapshot/dups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N = 8, BLOCK = 64, AT = 0x10000 };
enum { OTHER, C_STRING };

static uint8_t memory[HEAP_PAGE];

struct fixture {
	struct snapshot s;
	struct heap_block blocks[N];
	uint32_t of[N], collection_of[N];
	struct collection vector;
	struct dups found;
};

/* Blocks of 64 bytes, each with bytes of its own, of no type and no container. */
static void begin(struct fixture *f)
{
	static const struct heap_map map = { .start = AT,
					     .end = AT + HEAP_PAGE,
					     .kind = HEAP_MAP_BRK };
	static const struct copy_run run = { AT, HEAP_PAGE, 0 };
	static struct type types[] = { { .name = "(unknown)" },
				       { .by = TYPE_TEXT, .name = "C string" } };
	struct copy_parts parts = { .maps = &map,
				    .runs = &run,
				    .n_maps = 1,
				    .n_runs = 1,
				    .has_bytes = true,
				    .bytes = memory };

	*f = (struct fixture){ 0 };
	for (uint32_t i = 0; i < N; i++) {
		memset(memory + BLOCK * i, (int)(1 + i), BLOCK);
		f->blocks[i] = (struct heap_block){ .addr = AT + BLOCK * i, .words = BLOCK / 8 };
	}
	assert_int_equal(copy_of_parts(&parts, &f->s.copy), 0);
	f->s.blocks = (struct heap_blocks){ .rows = f->blocks, .n = N };
	f->s.types = (struct types){ .type = types, .n = 2, .of = f->of };
	f->s.collections = (struct collections){ &f->vector, 1, 0, f->collection_of };
}

static void look(struct fixture *f)
{
	dups_fini(&f->found);
	assert_int_equal(dups_find(&f->s, &f->found), 0);
}

static void end(struct fixture *f)
{
	dups_fini(&f->found);
	copy_close(f->s.copy);
}

static void of_equal_blocks_all_but_one_could_be_saved(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	look(&f);
	assert_int_equal(f.found.n, 0);
	assert_int_equal(f.found.looked_at, N);
	memset(memory + BLOCK * 5, 3, BLOCK);
	memset(memory + BLOCK * 7, 3, BLOCK);
	memset(memory, 0, BLOCK);
	memset(memory + BLOCK, 0, BLOCK);
	look(&f);
	assert_int_equal(f.found.n, 2);
	assert_int_equal(f.found.rows[0].node, 2);
	assert_int_equal(f.found.rows[0].blocks, 3);
	assert_int_equal(f.found.rows[0].saved, 2 * BLOCK);
	assert_false(f.found.rows[0].zeros);
	assert_true(f.found.rows[1].zeros);
	assert_int_equal(f.found.blocks, 3);
	assert_int_equal(f.found.saved, 3 * BLOCK);
	end(&f);
}

static void texts_are_compared_up_to_their_end(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	strcpy((char *)memory + BLOCK, "an equal text");
	strcpy((char *)memory + BLOCK * 4, "an equal text");
	look(&f);
	assert_int_equal(f.found.n, 0);
	f.of[1] = f.of[4] = C_STRING;
	look(&f);
	assert_int_equal(f.found.n, 1);
	assert_true(f.found.rows[0].text);
	/* A std::string may have NULs: it has as many bytes as it says. */
	f.of[4] = OTHER;
	f.collection_of[4] = COLLECTION_TEXT | 13;
	look(&f);
	assert_int_equal(f.found.n, 1);
	f.collection_of[4] = COLLECTION_TEXT | 14;
	look(&f);
	assert_int_equal(f.found.n, 0);
	end(&f);
}

static void what_a_vector_has_behind_its_end_does_not_count(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	memcpy(memory + BLOCK * 6, memory + BLOCK * 2, 40);
	f.collection_of[2] = f.collection_of[6] = 1;
	f.vector = (struct collection){ .kind = COLLECTION_VECTOR, .table = 2, .live = 40 };
	look(&f);
	assert_int_equal(f.found.n, 0);
	/* Two of them, each with 40 bytes in use. */
	struct collection two[2] = { f.vector, f.vector };

	two[1].table = 6;
	f.s.collections.rows = two;
	f.s.collections.n = 2;
	f.collection_of[6] = 2;
	look(&f);
	assert_int_equal(f.found.n, 1);
	assert_int_equal(f.found.rows[0].blocks, 2);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_equal_blocks_all_but_one_could_be_saved),
		cmocka_unit_test(texts_are_compared_up_to_their_end),
		cmocka_unit_test(what_a_vector_has_behind_its_end_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
