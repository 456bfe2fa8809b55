/* What changed between snapshots of a small heap. */
#include "heap/snapshot/compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "snapshot_fixture.h"

static const struct compare_row *row_of(const struct compare *c, const char *name)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (strcmp(c->rows[i].name, name) == 0)
			return &c->rows[i];
	fail_msg("%s has no row", name);
	return NULL;
}

static void equal_snapshots_differ_by_nothing(void **state)
{
	_cleanup_(heap_fini) struct heap a, b;
	const struct snapshot *s[] = { &a.s, &b.s };
	_cleanup_(compare_fini) struct compare c = { 0 };

	heap_init(&a);
	heap_init(&b);
	assert_int_equal(compare_snapshots(s, 2, &c), 0);
	assert_int_equal(c.n, N_TYPES);
	for (uint32_t i = 0; i < c.n; i++) {
		assert_int_equal(c.rows[i].bytes[0], c.rows[i].bytes[1]);
		assert_int_equal(c.rows[i].came + c.rows[i].gone, 0);
		assert_false(c.rows[i].always_more);
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(c.came[i], 0);
}

/* The last session of the first snapshot is gone; where a string was, a session is; the App is another one of that size. */
static void what_came_and_what_is_gone_is_known_by_address_size_and_type(void **state)
{
	_cleanup_(heap_fini) struct heap a, b;
	const struct snapshot *s[] = { &a.s, &b.s };
	_cleanup_(compare_fini) struct compare c = { 0 };
	const struct compare_row *row;

	heap_init(&a);
	heap_init(&b);
	b.blocks[5].addr += 0x100;
	b.of[4] = SESSION;
	b.blocks[0].words++;
	assert_int_equal(compare_snapshots(s, 2, &c), 0);
	row = row_of(&c, "web.Session");
	assert_ptr_equal(row, &c.rows[0]);
	assert_int_equal(row->objects[0], 3);
	assert_int_equal(row->objects[1], 4);
	assert_int_equal(row->bytes[1] - row->bytes[0], 32);
	assert_int_equal(row->came, 2);
	assert_int_equal(row->came_bytes, 80);
	assert_int_equal(row->gone, 1);
	assert_int_equal(row->gone_bytes, 48);
	row = row_of(&c, "str");
	assert_int_equal(row->gone, 1);
	assert_int_equal(row->came, 0);
	row = row_of(&c, "web.App");
	assert_int_equal(row->came + row->gone, 2);
	assert_int_equal(c.came[0] + c.came[4] + c.came[5], 3);
	assert_int_equal(c.came[1] + c.came[2] + c.came[3] + c.came[6], 0);
}

static void types_are_known_by_their_names_whatever_their_numbers(void **state)
{
	_cleanup_(heap_fini) struct heap a, b;
	const struct snapshot *s[] = { &a.s, &b.s };
	_cleanup_(compare_fini) struct compare c = { 0 };
	struct type others[N_TYPES];

	heap_init(&a);
	heap_init(&b);
	memcpy(others, type_rows, sizeof(others));
	others[STR] = type_rows[SESSION];
	others[SESSION] = type_rows[STR];
	b.s.types.type = others;
	for (int i = 0; i < N; i++)
		b.of[i] = b.of[i] == STR ? SESSION : b.of[i] == SESSION ? STR : b.of[i];
	assert_int_equal(compare_snapshots(s, 2, &c), 0);
	for (uint32_t i = 0; i < c.n; i++)
		assert_int_equal(c.rows[i].came + c.rows[i].gone, 0);
}

static void a_type_that_only_one_of_them_can_know_makes_no_difference(void **state)
{
	_cleanup_(heap_fini) struct heap a, b;
	const struct snapshot *s[] = { &a.s, &b.s };
	_cleanup_(compare_fini) struct compare c = { 0 };
	struct type traced[N_TYPES];
	const struct compare_row *row;

	(void)state;
	heap_init(&a);
	heap_init(&b);
	memcpy(traced, type_rows, sizeof(traced));
	traced[STR] = (struct type){ .by = TYPE_DEBUG, .name = "order" };
	b.s.types.type = traced;
	for (int i = 0; i < N; i++)
		a.of[i] = a.of[i] == STR ? 0 : a.of[i];
	assert_int_equal(compare_snapshots(s, 2, &c), 0);
	for (uint32_t i = 0; i < c.n; i++)
		assert_int_equal(c.rows[i].came + c.rows[i].gone, 0);
	row = row_of(&c, "(unknown)");
	assert_int_equal(row->objects[0], row->objects[1]);
	assert_int_equal(row->objects[1], 2);
	assert_string_equal(compare_type_name(&b.s.types, STR), "(unknown)");
	assert_string_equal(compare_type_name(&b.s.types, SESSION), "web.Session");
}

static void what_grew_in_each_step_is_marked(void **state)
{
	struct heap h[3];
	const struct snapshot *s[] = { &h[0].s, &h[1].s, &h[2].s };
	_cleanup_(compare_fini) struct compare c = { 0 };
	struct type types[3][N_TYPES];

	for (int i = 0; i < 3; i++) {
		heap_init(&h[i]);
		memcpy(types[i], type_rows, sizeof(types[i]));
		types[i][SESSION].bytes = 100 + 10 * (uint64_t)i;
		types[i][STR].bytes = i == 1 ? 90 : 64;
		h[i].s.types.type = types[i];
	}
	assert_int_equal(compare_snapshots(s, 3, &c), 0);
	assert_true(row_of(&c, "web.Session")->always_more);
	assert_false(row_of(&c, "str")->always_more);
	for (int i = 0; i < 3; i++)
		heap_fini(&h[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_snapshots_differ_by_nothing),
		cmocka_unit_test(what_came_and_what_is_gone_is_known_by_address_size_and_type),
		cmocka_unit_test(types_are_known_by_their_names_whatever_their_numbers),
		cmocka_unit_test(a_type_that_only_one_of_them_can_know_makes_no_difference),
		cmocka_unit_test(what_grew_in_each_step_is_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
