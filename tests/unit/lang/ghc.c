/*
 * Frames of Haskell (bpf/walk/ghc.h) in memory that is made up here: code with info tables, a stack in chunks, a C
 * stack as StgRun() leaves it, and the run-time system's structs in which a thread's stack is found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "unwind/host_walk.h"
#include "walk/lang.h"

#define CODE    0x400000ULL /* Haskell's: without rows              */
#define C_CODE  0x500000ULL /* C's: each frame has C_FRAME bytes    */
#define RTS     0x501000ULL /* … the scheduler, which calls StgRun() */
#define HEAP    0x4200000000ULL
#define STACK   0x7f0000000000ULL
#define C_FRAME 0x40ULL

#define CAPABILITY (HEAP + 0x2000)
#define BASE       (CAPABILITY + 24)
#define TSO        (HEAP + 0x3000)
#define CALL       (HEAP + 0x3100)
#define TASK       (HEAP + 0x3200)
#define THREAD     0x7e0000000000ULL
#define SAVED      0x400ULL /* bytes that StgRun() leaves free */

/* Types of info tables. */
enum { FUN = 8, RET_SMALL = 30, RET_BIG, RET_FUN, UPDATE, CATCH, UNDERFLOW, STOP };

enum { POOL_WORDS = 4096 };

static struct {
	uint8_t code[0x4000], c_code[0x4000], heap[0x8000], stack[0x2000];
	uint64_t chunk[2]; /* StgStack  */
	uint64_t sp;       /* where the next frame goes */
	uint32_t n_code;
	uint64_t regs[MS_N_REGS];
	uint32_t pool[POOL_WORDS];
	struct ms_table tables[1];
	struct ms_rule rules[MS_RULE_FIRST + 1];
	uint64_t frames[MS_MAX_FRAMES];
	uint32_t n;
	enum ms_verdict verdict;
} it;

static uint8_t *at(uint64_t addr, size_t size)
{
	const struct {
		uint64_t addr;
		uint8_t *bytes;
		size_t len;
	} part[] = { { CODE, it.code, sizeof(it.code) },
		     { C_CODE, it.c_code, sizeof(it.c_code) },
		     { HEAP, it.heap, sizeof(it.heap) },
		     { STACK, it.stack, sizeof(it.stack) } };

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
		if (addr - part[i].addr < part[i].len &&
		    size <= part[i].len - (addr - part[i].addr))
			return part[i].bytes + (addr - part[i].addr);
	return NULL;
}

static bool read_memory(void *ctx, void *dst, size_t size, uint64_t addr)
{
	const uint8_t *from = at(addr, size);

	(void)ctx;
	if (from)
		memcpy(dst, from, size);
	return from;
}

static void put(uint64_t addr, uint64_t word)
{
	assert_non_null(at(addr, 8));
	memcpy(at(addr, 8), &word, 8);
}

/* Code number i, of 0x40 bytes: its table, then instructions without anything that looks like one. */
static uint64_t code(uint32_t i)
{
	return CODE + 0x40ULL * (i + 1);
}

static uint64_t make_code(uint32_t type, uint64_t layout)
{
	uint64_t addr = code(it.n_code++);

	memset(at(addr - 16, 0x40), 0xcc, 0x40);
	put(addr - 16, layout);
	put(addr - 8, type);
	return addr;
}

static void push(uint64_t word)
{
	put(it.sp, word);
	it.sp += 8;
}

/* A frame of `words` words behind its return address. */
static void push_frame(uint64_t addr, uint32_t words)
{
	push(addr);
	for (uint32_t i = 0; i < words; i++)
		push(HEAP + 0x1008);
}

static int set_up(void **state)
{
	static const struct ms_span spans[] = {
		{ .start = CODE, .end = CODE + 0x4000, .kind = MS_SPAN_GUESS },
		{ .start = C_CODE, .end = C_CODE + 0x4000, .kind = MS_SPAN_TABLE },
	};
	uint32_t rows = 1024;

	(void)state;
	memset(&it, 0, sizeof(it));
	memcpy(it.pool, spans, sizeof(spans));
	/* Each page of C: one row, of a frame of C_FRAME bytes, the return address on top. */
	it.tables[0] = (struct ms_table){ .first_page = C_CODE >> MS_ROW_PAGE_SHIFT,
					  .n_pages = 4,
					  .dir = 512,
					  .rows = rows,
					  .serial = 1 };
	for (uint32_t i = 0; i < 4; i++) {
		it.pool[512 + i] = i;
		it.pool[rows + i] = ms_row(0, i == 3 ? MS_RULE_IX_END : MS_RULE_FIRST);
	}
	it.pool[512 + 4] = 4;
	it.rules[MS_RULE_IX_END].kind = MS_RULE_END;
	it.rules[MS_RULE_FIRST] = (struct ms_rule){
		.kind = MS_RULE_REG, .reg = MS_X86_RSP, .off = C_FRAME, .ra_off = -8
	};
	it.chunk[0] = HEAP + 0x4000;
	it.chunk[1] = HEAP + 0x6000;
	for (int i = 0; i < 2; i++)
		put(it.chunk[i] + 8, 0x200); /* words */
	put(BASE + 0x368, TSO);
	put(TSO + 0x18, it.chunk[0]);
	it.sp = it.chunk[0] + 24;
	/* What called StgRun(): a frame of the scheduler, and one that nobody called. */
	memset(at(RTS, 0x40), 0xe8, 0x40);
	put(STACK + 0x1000 + SAVED + 0x30, RTS + 0x20);
	put(STACK + 0x1000 + SAVED + 0x38 + C_FRAME - 8, C_CODE + 0x3010);
	it.regs[MS_X86_RSP] = STACK + 0x1000;
	it.regs[MS_X86_RBP] = it.sp;
	it.regs[13] = BASE;
	return 0;
}

static void walk(uint64_t pc)
{
	const struct publish_mem mem = { .pool = it.pool,
					 .n_words = POOL_WORDS,
					 .tables = it.tables,
					 .n_tables = 1,
					 .rules = it.rules,
					 .n_rules = MS_RULE_FIRST + 1,
					 .rule_stride = sizeof(it.rules[0]) };
	const struct ms_space space = { .n_spans = 2 };
	const struct ms_lang_row row = { .lang = MS_LANG_GHC,
					 .ghc = { .text = C_CODE,
						  .text_bytes = 0x4000,
						  .run_saved = SAVED,
						  .reg_tso = 0x368,
						  .tso_stack = 0x18,
						  .stack_sp = 0x10,
						  .reg_suspended = 0x3d0 } };
	const struct host_stack stack = { .pc = pc,
					  .regs = it.regs,
					  .addr = STACK + 0x1ff8,
					  .bytes = it.stack + 0x1ff8,
					  .len = 8,
					  .space = &space,
					  .read = read_memory,
					  .lang = &row,
					  .thread_base = THREAD };
	uint64_t missing;

	it.verdict = host_walk(&mem, &stack, it.frames, &it.n, &missing);
}

/* As text: digits for Haskell code, c for C, r for the scheduler, e for the outermost function. */
static const char *text(void)
{
	static char out[MS_MAX_FRAMES + 1];

	for (uint32_t i = 0; i < it.n; i++) {
		uint64_t addr = it.frames[i] & MS_FRAME_ADDR_MASK;

		out[i] = addr < C_CODE         ? (char)('0' + (addr + 16 - CODE) / 0x40 - 1)
			 : addr < RTS          ? 'c'
			 : addr < RTS + 0x1000 ? 'r'
					       : 'e';
	}
	out[it.n] = '\0';
	return out;
}

static void each_return_address_is_a_frame(void **state)
{
	uint64_t f = make_code(FUN, 0), small = make_code(RET_SMALL, 3),
		 zero = make_code(RET_SMALL, 0);

	(void)state;
	push_frame(small, 3);
	push_frame(zero, 0);
	push_frame(small, 3);
	push_frame(make_code(STOP, 0), 0);
	walk(f + 4);
	assert_string_equal(text(), "0121re");
	assert_int_equal(it.verdict, MS_COMPLETE);
	/* Names are looked up at the address itself, not before it. */
	assert_int_equal(it.frames[1], small | MS_FRAME_EXACT << MS_FRAME_TAG_SHIFT);
}

static void each_kind_of_frame_has_its_size(void **state)
{
	uint64_t f = make_code(FUN, 0), big = make_code(RET_BIG, 0x1000),
		 fun = make_code(RET_FUN, 0), small = make_code(RET_SMALL, 1);

	(void)state;
	put(big + 0x1000, 100); /* its bitmap's size */
	push_frame(big, 100);
	push(fun);
	push(2);
	push(HEAP + 0x1000);
	push_frame(HEAP + 0x1010, 1);
	push_frame(small, 1);
	push_frame(make_code(CATCH, 2), 2);
	push_frame(make_code(UPDATE, 1), 1);
	push_frame(small, 1);
	push_frame(make_code(STOP, 0), 0);
	walk(f + 4);
	assert_string_equal(text(), "012343re");
	assert_int_equal(it.verdict, MS_COMPLETE);
}

static void a_stack_goes_on_in_the_next_chunk(void **state)
{
	uint64_t f = make_code(FUN, 0), small = make_code(RET_SMALL, 1);

	(void)state;
	push_frame(small, 1);
	push(make_code(UNDERFLOW, 1));
	push(it.chunk[1]);
	put(it.chunk[1] + 16, it.chunk[1] + 0x100);
	it.sp = it.chunk[1] + 0x100;
	push_frame(make_code(RET_SMALL, 0), 0);
	push_frame(make_code(STOP, 0), 0);
	walk(f + 4);
	assert_string_equal(text(), "013re");
	assert_int_equal(it.verdict, MS_COMPLETE);
}

static void code_whose_frame_is_on_top_does_not_call_itself(void **state)
{
	uint64_t small = make_code(RET_SMALL, 1), next = make_code(FUN, 0);

	(void)state;
	push_frame(small, 1);
	push_frame(make_code(RET_SMALL, 0), 0);
	push_frame(make_code(STOP, 0), 0);
	walk(small + 8);
	assert_string_equal(text(), "02re");
	/* The function behind it is called by it. */
	walk(next + 8);
	assert_string_equal(text(), "102re");
}

static void arguments_on_the_stack_are_passed_over(void **state)
{
	uint64_t f = make_code(FUN, 0);

	(void)state;
	push(HEAP + 0x1001);
	push(33);
	push(CODE + 4);
	push_frame(make_code(RET_SMALL, 0), 0);
	push_frame(make_code(STOP, 0), 0);
	walk(f + 4);
	assert_string_equal(text(), "01re");
}

/* C that Haskell code calls, without giving its capability away. */
static void a_call_of_c_is_followed_by_haskell(void **state)
{
	uint64_t f = make_code(FUN, 0);

	(void)state;
	push_frame(make_code(RET_SMALL, 1), 1);
	push_frame(make_code(STOP, 0), 0);
	/* rsp is a word lower while it calls. */
	it.regs[MS_X86_RSP] = STACK + 0x1000 - 8 - C_FRAME;
	put(STACK + 0x1000 - 16, f + 9);
	walk(C_CODE + 0x10);
	assert_string_equal(text(), "c01re");
	assert_int_equal(it.verdict, MS_COMPLETE);
}

/* Another thread has the capability, and the collector has moved the stack: the old copy is something else by now. */
static void a_stack_that_was_moved_is_found_by_the_call(void **state)
{
	uint64_t f = make_code(FUN, 0), other = make_code(RET_SMALL, 0),
		 back = make_code(RET_SMALL, 1);

	(void)state;
	push_frame(other, 0);
	it.sp = it.chunk[1] + 0x100;
	push_frame(back, 1);
	push_frame(make_code(RET_SMALL, 0), 0);
	push_frame(make_code(STOP, 0), 0);
	put(BASE + 0x368, 0);
	put(BASE + 0x3d0, CALL + 0x80);
	put(CALL + 0x80 + 40, TASK + 8); /* of another thread */
	put(TASK + 8, THREAD + 0x1000);
	put(CALL + 0x80 + 64, CALL);
	put(CALL + 40, TASK);
	put(TASK, THREAD);
	put(CALL + 8, TSO);
	put(TSO + 0x18, it.chunk[1]);
	put(it.chunk[1] + 16, it.chunk[1] + 0x100);
	it.regs[MS_X86_RSP] = STACK + 0x1000 - 8 - C_FRAME;
	put(STACK + 0x1000 - 16, f + 9);
	walk(C_CODE + 0x10);
	/* The frame on top is where that call is to come back: the same function. */
	assert_string_equal(text(), "c03re");
	assert_int_equal(it.verdict, MS_COMPLETE);
}

static void a_frame_without_an_info_table_ends_haskell_and_is_a_guess(void **state)
{
	uint64_t f = make_code(FUN, 0);

	(void)state;
	push_frame(make_code(RET_SMALL, 1), 1);
	push(HEAP + 0x1000);
	walk(f + 4);
	assert_string_equal(text(), "01re");
	assert_int_equal(it.verdict, MS_GUESSED);
	assert_true(host_lang_misplaced());
}

static void code_that_is_no_haskell_is_walked_as_ever(void **state)
{
	uint64_t f = make_code(FUN, 0);

	(void)state;
	for (int i = 0; i < 16; i++)
		push(HEAP + 0x1000);
	walk(f + 4);
	assert_string_equal(text(), "0");
	assert_int_equal(it.verdict, MS_GUESSED);
	assert_false(host_lang_misplaced());
}

static void a_deep_recursion_is_cut_to_frames_that_differ(void **state)
{
	uint64_t f = make_code(FUN, 0), again = make_code(RET_SMALL, 0);

	(void)state;
	for (int i = 0; i < 300; i++)
		push_frame(again, 0);
	push_frame(make_code(RET_SMALL, 0), 0);
	push_frame(make_code(STOP, 0), 0);
	walk(f + 4);
	assert_int_equal(it.n, 1 + 64 + 1 + 2);
	assert_int_equal(it.verdict, MS_COMPLETE);
}

/* Frames in a circle: chunks that name each other. */
static void a_walk_ends(void **state)
{
	uint64_t f = make_code(FUN, 0);

	(void)state;
	push_frame(make_code(RET_SMALL, 0), 0);
	push(make_code(UNDERFLOW, 1));
	push(it.chunk[1]);
	put(it.chunk[1] + 16, it.chunk[0] + 24);
	walk(f + 4);
	assert_int_not_equal(it.verdict, MS_COMPLETE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_return_address_is_a_frame, set_up),
		cmocka_unit_test_setup(each_kind_of_frame_has_its_size, set_up),
		cmocka_unit_test_setup(a_stack_goes_on_in_the_next_chunk, set_up),
		cmocka_unit_test_setup(code_whose_frame_is_on_top_does_not_call_itself, set_up),
		cmocka_unit_test_setup(arguments_on_the_stack_are_passed_over, set_up),
		cmocka_unit_test_setup(a_call_of_c_is_followed_by_haskell, set_up),
		cmocka_unit_test_setup(a_stack_that_was_moved_is_found_by_the_call, set_up),
		cmocka_unit_test_setup(a_frame_without_an_info_table_ends_haskell_and_is_a_guess,
				       set_up),
		cmocka_unit_test_setup(code_that_is_no_haskell_is_walked_as_ever, set_up),
		cmocka_unit_test_setup(a_deep_recursion_is_cut_to_frames_that_differ, set_up),
		cmocka_unit_test_setup(a_walk_ends, set_up),
	};

#if !defined(__x86_64__)
	puts("1..0 # SKIP frames of Haskell are walked on x86-64 alone");
	return 0;
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
