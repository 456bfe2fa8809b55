/* Which words a stopped thread works with: registers of all kinds, and its stack, wherever that is. */
#include "heap/snapshot/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
	BASE = 0x100000,
	LEN = 0x8000,
	HEAP = BASE, /* its second page is a block */
	BLOCK = BASE + 0x1000,
	STACK = BASE + 0x4000,
	MAIN_STACK = BASE + 0x6000,
	WORDS_MAX = 64,
};

static uint8_t bytes[LEN];
static const struct heap_map maps[] = {
	{ HEAP, HEAP + 0x4000, 0x4000, HEAP_MAP_ANON },
	{ STACK, STACK + 0x2000, 0x2000, HEAP_MAP_STACK },
	{ MAIN_STACK, MAIN_STACK + 0x2000, 0x2000, HEAP_MAP_STACK },
};
static const struct heap_memory mem = { .maps = maps, .n_maps = 3 };
static struct heap_block rows[] = { { .addr = BLOCK, .words = 0x1000 / 8 } };
static struct stopped_thread thread;
static struct snapshot s;
static uint64_t got[WORDS_MAX];
static enum thread_word kinds[WORDS_MAX];
static uint32_t n_got;

#include "fake_copy.h"

static void put(uint64_t addr, uint64_t word)
{
	memcpy(bytes + (addr - BASE), &word, 8);
}

static void on_word(void *ctx, enum thread_word kind, uint64_t at, uint64_t word)
{
	(void)ctx;
	(void)at;
	assert_true(n_got < WORDS_MAX);
	kinds[n_got] = kind;
	got[n_got++] = word;
}

static void look(void)
{
	n_got = 0;
	thread_words(&s, &thread, on_word, NULL);
}

static bool has(uint64_t word, enum thread_word kind)
{
	for (uint32_t i = 0; i < n_got; i++)
		if (got[i] == word)
			return kinds[i] == kind;
	return false;
}

static bool lacks(uint64_t word)
{
	for (uint32_t i = 0; i < n_got; i++)
		if (got[i] == word)
			return false;
	return true;
}

static int begin(void **state)
{
	(void)state;
	memset(bytes, 0, sizeof(bytes));
	s = (struct snapshot){ .blocks = { .rows = rows, .n = 1 }, .facts = { .pid = 7 } };
	s.index = block_index_new(rows, 1);
	thread = (struct stopped_thread){
		.tid = 7, .n_regs = 2, .regs = { 0x11, 0x12 }, .fp_bytes = 32
	};
	thread.fp[16] = 0x21;
	return s.index ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	block_index_free(s.index);
	return 0;
}

static void a_thread_that_computes_has_words_in_all_registers(void **state)
{
	(void)state;
	look();
	assert_true(has(0x11, THREAD_WORD_REGISTER) && has(0x12, THREAD_WORD_REGISTER));
	assert_true(has(0x21, THREAD_WORD_REGISTER));
	assert_int_equal(n_got, 3);
}

static void a_system_call_keeps_no_floating_point_registers(void **state)
{
	(void)state;
	thread.in_call = true;
	look();
	assert_true(has(0x11, THREAD_WORD_REGISTER) && lacks(0x21));
}

static void a_stack_is_what_is_above_the_red_zone_and_below_the_thread_s_variables(void **state)
{
	(void)state;
	thread.sp = STACK + 0x1000;
	thread.tp = STACK + 0x1800;
	put(thread.sp - 136, 0x31);
	put(thread.sp - 128, 0x32);
	put(thread.sp, 0x33);
	put(thread.tp - 8, 0x34);
	put(thread.tp, 0x35);
	put(MAIN_STACK, 0x36);
	look();
	assert_true(lacks(0x31) && lacks(0x36));
	assert_true(has(0x32, THREAD_WORD_STACK) && has(0x33, THREAD_WORD_STACK) &&
		    has(0x34, THREAD_WORD_STACK));
	assert_true(has(0x35, THREAD_WORD_TLS));
}

static void a_stack_that_is_a_block_ends_with_it(void **state)
{
	(void)state;
	thread.sp = BLOCK + 0x800;
	put(BLOCK + 0xff8, 0x41);
	put(BLOCK + 0x1000, 0x42); /* of others */
	look();
	assert_true(has(0x41, THREAD_WORD_STACK) && lacks(0x42));
}

/* The main thread's is the highest one; another's has its thread pointer in it. */
static void a_stack_that_its_thread_has_left_is_known(void **state)
{
	(void)state;
	thread.sp = MAIN_STACK + 0x100;
	assert_false(thread_left_stack(&s, &maps[2]));
	assert_false(thread_left_stack(&s, &maps[1]));
	thread.sp = BLOCK + 0x800;
	assert_true(thread_left_stack(&s, &maps[2]));
	assert_false(thread_left_stack(&s, &maps[1]));
	thread.tid = 8;
	assert_false(thread_left_stack(&s, &maps[2]));
	thread.tp = STACK + 0x1800;
	assert_true(thread_left_stack(&s, &maps[1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_thread_that_computes_has_words_in_all_registers,
						begin, end),
		cmocka_unit_test_setup_teardown(a_system_call_keeps_no_floating_point_registers,
						begin, end),
		cmocka_unit_test_setup_teardown(
			a_stack_is_what_is_above_the_red_zone_and_below_the_thread_s_variables,
			begin, end),
		cmocka_unit_test_setup_teardown(a_stack_that_is_a_block_ends_with_it, begin, end),
		cmocka_unit_test_setup_teardown(a_stack_that_its_thread_has_left_is_known, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
