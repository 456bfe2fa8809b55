/* Which functions allocate, by calls that a test makes up: those that do, and those that only look so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/call_shapes.h"

enum { A, B, C, N, TID = 7, RA = 0x401005 };
#define SP    0x7ffc0000ULL
#define BLOCK 0x7f0000001000ULL

static struct call_judge *j;

/* Classes of 16 bytes each. */
static uint64_t room(uint64_t size)
{
	return (size + 15) & ~15ULL;
}

static int fresh(void **state)
{
	(void)state;
	j = call_judge_new(N, room);
	return j ? 0 : -1;
}

static int done(void **state)
{
	(void)state;
	call_judge_free(j);
	return 0;
}

static struct call_block in_use(uint64_t start, uint64_t size)
{
	return (struct call_block){ CALL_BLOCK_IN_USE, start, size };
}

static void enter(uint32_t function, uint64_t sp, uint64_t a, uint64_t b, struct call_block block)
{
	call_judge_entry(j, &(struct call_entry){ function, TID, sp, RA, { a, b }, block, true });
}

static void back(uint64_t sp, uint64_t ret, struct call_block block)
{
	call_judge_back(j, &(struct call_back){ TID, sp + 8, RA, ret, block });
}

/* One call that returns the beginning of a block of `size` bytes. */
static void call(uint32_t function, uint64_t a, uint64_t b, uint64_t size)
{
	enter(function, SP, a, b, (struct call_block){ 0 });
	back(SP, BLOCK, in_use(BLOCK, size));
}

static void assert_allocates(uint32_t function, enum call_shape shape)
{
	struct call_verdict v = call_judge_of(j, function);

	assert_int_equal(v.state, CALL_ALLOCATES);
	assert_int_equal(v.shape, shape);
	assert_int_equal(v.agreed, CALL_RESULTS_ENOUGH);
}

static void a_thousand_results_of_the_size_asked_for_make_a_malloc(void **state)
{
	for (int i = 0; i < CALL_RESULTS_ENOUGH; i++) {
		assert_int_equal(call_judge_of(j, A).state, CALL_OPEN);
		call(A, 100 + (uint64_t)i, 3, room(100 + (uint64_t)i));
	}
	assert_allocates(A, CALL_SIZE);
	assert_string_equal(call_shape_name(CALL_SIZE), "malloc");
}

static void one_result_of_another_size_begins_the_row_anew(void **state)
{
	for (int i = 0; i < CALL_RESULTS_ENOUGH - 1; i++)
		call(A, 100, 3, 112);
	call(A, 100, 3, 128);
	for (int i = 0; i < CALL_RESULTS_ENOUGH - 1; i++)
		call(A, 100, 3, 112);
	assert_int_equal(call_judge_of(j, A).state, CALL_OPEN);
	assert_false(call_judge_of(j, A).promising);
	call(A, 100, 3, 112);
	assert_allocates(A, CALL_SIZE);
}

static void what_returns_a_place_inside_a_block_or_none_does_not_allocate(void **state)
{
	for (int i = 0; i < 100; i++) {
		enter(A, SP, 100, 0, (struct call_block){ 0 });
		back(SP, BLOCK + 16, in_use(BLOCK, 112));
		enter(B, SP, 100, 0, (struct call_block){ 0 });
		back(SP, BLOCK, (struct call_block){ CALL_BLOCK_NONE, 0, 0 });
	}
	assert_int_equal(call_judge_of(j, A).state, CALL_DOES_NOT);
	assert_int_equal(call_judge_of(j, B).state, CALL_DOES_NOT);
}

static void calloc_is_known_from_malloc_once_its_count_is_not_one(void **state)
{
	/* calloc(n, 1): so far it may be either. */
	for (int i = 0; i < CALL_RESULTS_ENOUGH; i++)
		call(A, 100, 1, 112);
	assert_int_equal(call_judge_of(j, A).state, CALL_OPEN);
	assert_true(call_judge_of(j, A).promising);
	call(A, 10, 100, 1008);
	assert_int_equal(call_judge_of(j, A).state, CALL_ALLOCATES);
	assert_int_equal(call_judge_of(j, A).shape, CALL_COUNT_SIZE);
	/* calloc(1, n) is no aligned_alloc: nobody asks for an alignment of 1. */
	for (int i = 0; i < CALL_RESULTS_ENOUGH; i++)
		call(B, 1, 300, 304);
	assert_allocates(B, CALL_COUNT_SIZE);
}

static void aligned_blocks_may_be_larger(void **state)
{
	uint64_t at = BLOCK; /* aligned to 4096 */

	for (int i = 0; i < CALL_RESULTS_ENOUGH; i++) {
		enter(A, SP, 64, 100, (struct call_block){ 0 }); /* aligned_alloc(64, 100) */
		back(SP, at, in_use(at, 128));
		enter(B, SP, 100, 6,
		      (struct call_block){ 0 }); /* mallocx(100, MALLOCX_LG_ALIGN(6)) */
		back(SP, at, in_use(at, 128));
	}
	assert_allocates(A, CALL_ALIGN_SIZE);
	assert_allocates(B, CALL_SIZE);
}

static void realloc_takes_the_beginning_of_a_block_or_nothing(void **state)
{
	for (int i = 0; i < CALL_RESULTS_ENOUGH; i++) {
		uint64_t old = i % 3 ? BLOCK + 0x4000 : 0;

		enter(A, SP, old, 200, in_use(old, 112));
		back(SP, BLOCK, in_use(BLOCK, 208));
		/* Inside of a block: it takes something else. */
		enter(B, SP, BLOCK + 0x4010, 200, in_use(BLOCK + 0x4000, 112));
		back(SP, BLOCK, in_use(BLOCK, 208));
	}
	assert_allocates(A, CALL_REALLOC);
	assert_int_equal(call_judge_of(j, B).state, CALL_DOES_NOT);
}

static void failures_and_no_size_are_not_judged(void **state)
{
	for (int i = 0; i < CALL_RESULTS_ENOUGH; i++) {
		call(A, 100, 3, 112);
		if (i % 10 == 0)
			call(A, 0, 3, 16);
		if (i % 10 == 1) {
			enter(A, SP, 1ULL << 62, 3, (struct call_block){ 0 });
			back(SP, 0, (struct call_block){ 0 });
		}
	}
	assert_allocates(A, CALL_SIZE);
	assert_int_equal(call_judge_of(j, A).unjudged, 100);
	/* What never returns anything is none. */
	for (int i = 0; i < 200; i++) {
		enter(B, SP, 100, 3, (struct call_block){ 0 });
		back(SP, 0, (struct call_block){ 0 });
	}
	assert_int_equal(call_judge_of(j, B).state, CALL_DOES_NOT);
}

static void a_slow_path_that_malloc_jumps_to_is_a_part_of_it(void **state)
{
	for (int i = 0; i < 10 * CALL_RESULTS_ENOUGH; i++) {
		enter(A, SP, 100, 3, (struct call_block){ 0 });
		if (i % 10 == 0)
			enter(B, SP, 100, 3, (struct call_block){ 0 });
		if (i % 10 == 1) /* deeper */
			enter(C, SP - 64, 100, 3, (struct call_block){ 0 });
		if (i % 10 == 1)
			back(SP - 64, BLOCK, in_use(BLOCK, 112));
		back(SP, BLOCK, in_use(BLOCK, 112));
	}
	assert_allocates(A, CALL_SIZE);
	assert_int_equal(call_judge_of(j, B).state, CALL_PART);
	assert_int_equal(call_judge_of(j, C).state, CALL_PART);
}

static void calls_that_are_not_seen_to_return_hold_nobody_up(void **state)
{
	for (int i = 0; i < CALL_RESULTS_ENOUGH; i++) {
		/* It never comes back: an exception, or it was not watched any more. */
		enter(B, SP - 200, 100, 3, (struct call_block){ 0 });
		if (i % 2)
			call_judge_break(j);
		call(A, 100, 3, 112);
	}
	assert_allocates(A, CALL_SIZE);
	assert_int_equal(call_judge_of(j, B).results, 0);
	assert_int_equal(call_judge_of(j, B).entries, CALL_RESULTS_ENOUGH);
}

static void threads_and_other_return_addresses_are_kept_apart(void **state)
{
	enter(A, SP, 100, 3, (struct call_block){ 0 });
	call_judge_back(j, &(struct call_back){ TID + 1, SP + 8, RA, BLOCK, in_use(BLOCK, 112) });
	call_judge_back(j, &(struct call_back){ TID + 256, SP + 8, RA, BLOCK, in_use(BLOCK, 112) });
	assert_int_equal(call_judge_of(j, A).results, 0);
	enter(A, SP, 100, 3, (struct call_block){ 0 });
	call_judge_back(j, &(struct call_back){ TID, SP + 8, RA + 1, BLOCK, in_use(BLOCK, 112) });
	assert_int_equal(call_judge_of(j, A).results, 0);
	call_judge_entry(j, &(struct call_entry){ .function = N, .tid = TID, .seen = true });
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup_teardown(f, fresh, done)
	const struct CMUnitTest tests[] = {
		FACT(a_thousand_results_of_the_size_asked_for_make_a_malloc),
		FACT(one_result_of_another_size_begins_the_row_anew),
		FACT(what_returns_a_place_inside_a_block_or_none_does_not_allocate),
		FACT(calloc_is_known_from_malloc_once_its_count_is_not_one),
		FACT(aligned_blocks_may_be_larger),
		FACT(realloc_takes_the_beginning_of_a_block_or_nothing),
		FACT(failures_and_no_size_are_not_judged),
		FACT(a_slow_path_that_malloc_jumps_to_is_a_part_of_it),
		FACT(calls_that_are_not_seen_to_return_hold_nobody_up),
		FACT(threads_and_other_return_addresses_are_kept_apart),
	};

	return cmocka_run_group_tests_name("analyse/call_shapes", tests, NULL, NULL);
}
