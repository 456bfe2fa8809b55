#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/alloc/burst_pieces.h"

#define SECOND 1000000000ULL

static void add(struct burst_pieces *p, double from_s, double to_s, double calls, double bytes)
{
	const struct burst_piece piece = { (uint64_t)(from_s * 1e9), (uint64_t)(to_s * 1e9), calls,
					   bytes };

	assert_int_equal(burst_pieces_add(p, &piece), 0);
}

static void bursts_of_a_second_are_one_piece(void **state)
{
	struct burst_pieces p = { 0 };

	for (int i = 0; i < 40; i++)
		add(&p, 0.1 * i, 0.1 * (i + 1), 1, 10);
	assert_in_range(p.n, 4, 5);
	assert_int_equal(p.list[0].from_ns, 0);
	assert_int_equal(p.list[p.n - 1].to_ns, 4 * SECOND);
	add(&p, 4, 9, 1, 10); /* a burst that stands for a long time */
	assert_int_equal(p.list[p.n - 1].from_ns, 4 * SECOND);
	for (int i = 10; i < 200; i += 2)
		add(&p, i, i + 2, 1, 10);
	assert_int_equal(p.n, 64);
	assert_int_equal(p.list[63].to_ns, 200 * SECOND);
	burst_pieces_clear(&p);
	assert_int_equal(p.n, 0);
}

static void parts_add_up_to_the_whole(void **state)
{
	struct burst_pieces p = { 0 };
	int64_t sums[2] = { 0 }, part[2];

	add(&p, 0, 1, 1.4, 3);
	add(&p, 1, 2, 0, 0);
	add(&p, 2, 3, 5.3, 40);
	add(&p, 3, 4, 2.2, 7);
	for (uint32_t i = 0; i < 4; i++) {
		burst_pieces_part(&p, i, (int64_t[]){ 9, 101 }, part);
		assert_true(part[0] >= 0 && part[1] >= 0);
		if (i == 2)
			assert_int_equal(part[1], 81); /* 101 of 50: 43 of them less 3 */
		sums[0] += part[0];
		sums[1] += part[1];
	}
	assert_int_equal(sums[0], 9);
	assert_int_equal(sums[1], 101);
	burst_pieces_clear(&p);
}

/* Rounding can leave a call where there were none. */
static void a_row_of_nothing_has_what_there_is_in_its_first_piece(void **state)
{
	struct burst_pieces p = { 0 };
	int64_t sums[2] = { 0 }, part[2];

	add(&p, 0, 1, 0, 0);
	add(&p, 1, 2, 0, 0);
	for (uint32_t i = 0; i < 2; i++) {
		burst_pieces_part(&p, i, (int64_t[]){ 1, 0 }, part);
		sums[0] += part[0];
		sums[1] += part[1];
	}
	assert_int_equal(sums[0], 1);
	assert_int_equal(sums[1], 0);
	burst_pieces_clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bursts_of_a_second_are_one_piece),
		cmocka_unit_test(parts_add_up_to_the_whole),
		cmocka_unit_test(a_row_of_nothing_has_what_there_is_in_its_first_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
