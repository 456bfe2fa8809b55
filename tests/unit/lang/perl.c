/*
 * Perl's contexts in a walk: which belong to which loop, where a run ends, and what is half made or half gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "perl_fixture.h"
#include "unwind/host_walk.h"
#include "unwind/rows.h"

enum { NATIVE_MAX = 16, FRAME = 64, POOL_WORDS = MS_POOL_PAGE_WORDS };

#define STACK 0x7ffff000ULL
#define FS    0x7ffe0000ULL

static struct {
	struct perl_process p;
	struct lang_runtime rt;
	uint8_t stack[NATIVE_MAX * FRAME + 64];
	struct ms_chain_rec chain;
	struct ms_chain_link links[32];
	bool copied;
	_Alignas(8) uint32_t pool[POOL_WORDS]; /* it has spans */
	struct ms_table tables[1];
	struct ms_rule rules[1];
	uint64_t frames[MS_MAX_FRAMES];
	uint32_t n;
} t;

static bool read_process(void *ctx, void *dst, size_t size, uint64_t addr)
{
	(void)ctx;
	if (addr == FS + t.rt.row.off && size == 8) {
		memcpy(dst, t.p.bytes + PLF_SLOT, 8);
		return true;
	}
	return fake_process_read(&t.p.memory, addr, dst, size);
}

/* Code of each kind: n native, l a loop, m perl_run(), c docatch(). */
static uint64_t code_of(char kind)
{
	return PLF_BIAS + PLF_TEXT +
	       (kind == 'l'   ? 0
		: kind == 'm' ? 0x1000
		: kind == 'c' ? 0x2000
			      : 0x3000);
}

static void put_native(uint64_t addr, uint64_t word)
{
	memcpy(t.stack + (addr - STACK), &word, sizeof(word));
}

/* Native frames leaf first. */
static void walk(const char *natives)
{
	struct publish_mem mem = { .pool = t.pool,
				   .n_words = POOL_WORDS,
				   .tables = t.tables,
				   .n_tables = 1,
				   .rules = t.rules,
				   .n_rules = 1,
				   .rule_stride = sizeof(t.rules[0]) };
	struct ms_span span = { .start = PLF_BIAS,
				.end = PLF_BIAS + PLF_TEXT + 0x4000,
				.kind = MS_SPAN_FP };
	struct ms_space space = { .spans = 0, .n_spans = 1 };
	uint64_t regs[MS_N_REGS] = { 0 }, missing;
	uint32_t n = (uint32_t)strlen(natives);
	struct host_stack stack = { .regs = regs,
				    .addr = STACK,
				    .bytes = t.stack,
				    .len = sizeof(t.stack),
				    .space = &space,
				    .read = read_process,
				    .lang = &t.rt.row,
				    .thread_base = FS,
				    .chain = t.copied ? &t.chain : NULL,
				    .links = t.links };

	memcpy(t.pool, &span, sizeof(span));
	for (uint32_t i = 0; i < n; i++) {
		uint64_t fp = STACK + (i + 1) * FRAME - 16;

		put_native(fp, fp + FRAME);
		put_native(fp + 8, i + 1 < n ? code_of(natives[i + 1]) + 0x80 + i : 0);
	}
	stack.pc = code_of(natives[0]) + 0x40;
	regs[MS_WALK_SP] = STACK;
	regs[MS_WALK_FP] = STACK + FRAME - 16;
	host_walk(&mem, &stack, t.frames, &t.n, &missing);
}

/* The walk as text: native frames as in walk(), those of Perl by what they are and the number of their statement; ? is lost. */
static const char *text(void)
{
	static const char kinds[] = "?PERSVF";
	static char out[128];
	size_t n = 0;

	for (uint32_t i = 0; i < t.n; i++) {
		uint64_t addr = t.frames[i] & MS_FRAME_ADDR_MASK, at = addr - PLF_BIAS - PLF_TEXT;

		if (t.frames[i] >> MS_FRAME_TAG_SHIFT == MS_FRAME_LANG) {
			out[n++] = kinds[addr & 7];
			if (addr & MS_PERL_ADDR)
				out[n++] =
					(char)('0' +
					       ((addr & MS_PERL_ADDR) - plf_addr(PLF_COP)) / 0x80);
			i++;
		} else {
			out[n++] = "lmcn"[at / 0x1000 % 4];
		}
	}
	out[n] = '\0';
	return out;
}

static void assert_walk(const char *natives, const char *expected)
{
	walk(natives);
	assert_string_equal(text(), expected);
	assert_false(host_lang_misplaced());
	assert_false(host_lang_lost());
}

static int fresh(void **state)
{
	struct err e;

	(void)state;
	memset(&t, 0, sizeof(t));
	plf_init(&t.p);
	return lang_runtime_find(&t.p.runtime_at, &t.p.libc_at, &t.p.memory.mem, &t.rt, &e);
}

static uint64_t cv(uint32_t i)
{
	return plf_addr(PLF_CV + i * 0x100);
}

/* f (entered at 0) calls g (at 1), which is at 2; between them blocks. */
static void make_calls(void)
{
	plf_stack(&t.p, 0, 5, -1);
	plf_cx(&t.p, 0, 0, PLF_BLOCK, 0, false, 0);
	plf_cx(&t.p, 0, 1, PLF_SUB, 0, true, cv(0));
	plf_cx(&t.p, 0, 2, PLF_LOOP, 1, false, 0);
	plf_cx(&t.p, 0, 3, PLF_SUB, 1, true, cv(1));
	plf_cx(&t.p, 0, 4, PLF_EVAL_BLOCK, 2, true, 0);
	plf_at(&t.p, 2, 0, plf_addr(PLF_OP));
}

static void a_frame_is_where_the_next_one_was_called(void **state)
{
	(void)state;
	make_calls();
	assert_walk("nlmn", "nS2S1P0lmn");
	assert_int_equal(t.frames[2] >> MS_LANG_SHIFT & 15, MS_LANG_PERL);
}

static void a_loop_within_a_loop_has_what_c_has_called(void **state)
{
	(void)state;
	make_calls();
	plf_cx(&t.p, 0, 3, PLF_SUB, 1, false, cv(1));
	assert_walk("nlnnlmn", "nS2lnnS1P0lmn");
	/* On a stack of its own: of a tie. */
	fresh(state);
	plf_stack(&t.p, 0, 1, -1);
	plf_cx(&t.p, 0, 0, PLF_SUB, 0, true, cv(0));
	plf_stack(&t.p, 1, 0, 0);
	plf_stack(&t.p, 2, 1, 1);
	plf_cx(&t.p, 2, 0, PLF_SUB, 1, false, cv(1));
	plf_at(&t.p, 2, 2, plf_addr(PLF_OP));
	assert_walk("nlnnlmn", "nS2lnnS1P0lmn");
}

static void a_loop_of_docatch_goes_on_with_that_around_it(void **state)
{
	(void)state;
	make_calls();
	plf_cx(&t.p, 0, 1, PLF_SUB, 0, false, cv(0));
	assert_walk("nlclnlmn", "nS2S1lclnP0lmn");
	/* Any number of times. */
	assert_walk("nlclclnlmn", "nS2S1lclclnP0lmn");
}

static void evaluated_strings_and_required_files_are_frames_and_blocks_are_not(void **state)
{
	(void)state;
	plf_stack(&t.p, 0, 5, -1);
	plf_cx(&t.p, 0, 0, PLF_REQUIRE, 0, true, 0);
	plf_cx(&t.p, 0, 1, PLF_EVAL_BLOCK, 1, true, 0);
	plf_cx(&t.p, 0, 2, PLF_EVAL, 2, false, 0);
	plf_cx(&t.p, 0, 3, PLF_EVAL_BLOCK, 3, false, 0);
	plf_cx(&t.p, 0, 4, PLF_SUB, 4, true, cv(0));
	plf_at(&t.p, 5, 0, plf_addr(PLF_OP));
	assert_walk("nlnlmn", "nS5E4lnR2P0lmn");
}

static void a_block_of_sort_is_no_frame_but_has_a_loop(void **state)
{
	(void)state;
	plf_stack(&t.p, 0, 1, -1);
	plf_cx(&t.p, 0, 0, PLF_SUB, 0, true, cv(0));
	plf_stack(&t.p, 1, 1, 0);
	plf_cx(&t.p, 1, 0, PLF_NULL, 1, false, 0);
	plf_at(&t.p, 2, 1, plf_addr(PLF_OP));
	assert_walk("nlnnlmn", "nlnnS2P0lmn");
	/* Its last op is a call: that has no successor. */
	plf_stack(&t.p, 1, 2, 0);
	plf_cx(&t.p, 1, 1, PLF_SUB, 2, false, cv(1));
	plf_at(&t.p, 3, 1, plf_addr(PLF_OP));
	assert_walk("nlnnlmn", "nS3lnnS2P0lmn");
}

static void between_two_elements_neither_sorts_block_nor_its_sub_is_executed(void **state)
{
	(void)state;
	plf_stack(&t.p, 0, 1, -1);
	plf_cx(&t.p, 0, 0, PLF_SUB, 0, true, cv(0));
	plf_stack(&t.p, 1, 1, 0);
	plf_cx(&t.p, 1, 0, PLF_NULL, 1, false, 0);
	plf_at(&t.p, 1, 1, 0);
	assert_walk("nnlmn", "nnS1P0lmn");
	plf_cx(&t.p, 1, 0, PLF_MULTICALL, 1, false, cv(1));
	plf_at(&t.p, 2, 1, 0); /* where it was */
	assert_walk("nnlmn", "nnS1P0lmn");
	/* The loop is at its end. */
	assert_walk("lnlmn", "S2lnS1P0lmn");
	/* It is being executed. */
	plf_at(&t.p, 2, 1, plf_addr(PLF_OP));
	assert_walk("nlnlmn", "nS2lnS1P0lmn");
}

static void code_in_a_regular_expression_is_no_frame_but_what_it_calls_is(void **state)
{
	(void)state;
	plf_stack(&t.p, 0, 1, -1);
	plf_cx(&t.p, 0, 0, PLF_SUB, 0, true, cv(0));
	plf_stack(&t.p, 1, 2, 0);
	plf_cx(&t.p, 1, 0, PLF_RE_FAKE, 1, false, cv(0));
	plf_cx(&t.p, 1, 1, PLF_SUB, 1, false, cv(1));
	plf_at(&t.p, 2, 1, plf_addr(PLF_OP));
	assert_walk("nlnlmn", "nS2lnS1P0lmn");
}

static void a_sub_that_is_being_entered_is_not_executed_yet(void **state)
{
	(void)state;
	make_calls();
	/* All of its context is there, but it has come to no statement. */
	plf_stack(&t.p, 0, 6, -1);
	plf_cx(&t.p, 0, 5, PLF_SUB, 2, true, cv(2));
	plf_at(&t.p, 2, 0, plf_addr(PLF_ENTERSUB));
	assert_walk("nlmn", "nS2S1P0lmn");
	/* The CV is another's, from a call that has ended. */
	plf_cx(&t.p, 0, 5, PLF_SUB, 5, true, cv(2));
	plf_cv(&t.p, 2, 0, 0);
	assert_walk("nlmn", "nS2S1P0lmn");
	plf_cx(&t.p, 0, 5, PLF_SUB, 5, true, 0x1234560);
	assert_walk("nlmn", "nS2S1P0lmn");
	/* By a function of C, whose op is on its stack and has no function. */
	plf_put(&t.p, PLF_ENTERSUB, 0, 8);
	plf_put(&t.p, PLF_ENTERSUB + 16, 0, 8);
	plf_cv(&t.p, 2, 0, 1);
	plf_cx(&t.p, 0, 5, PLF_SUB, 2, false, cv(2));
	assert_walk("nnlmn", "nnS2S1P0lmn");
}

static void a_sub_that_is_being_left_is_where_it_was_called(void **state)
{
	(void)state;
	make_calls();
	plf_stack(&t.p, 0, 4, -1);
	plf_cx(&t.p, 0, 3, PLF_SUB, 1, true, 0);
	assert_walk("nlmn", "nS1P0lmn");
	/* A destructor runs meanwhile. */
	plf_stack(&t.p, 1, 1, 0);
	plf_cx(&t.p, 1, 0, PLF_SUB, 2, false, cv(2));
	plf_at(&t.p, 3, 1, plf_addr(PLF_OP));
	assert_walk("nlnlmn", "nS3lnS1P0lmn");
	/* The loop has executed its last op: its context is gone. */
	make_calls();
	plf_at(&t.p, 2, 0, 0);
	assert_walk("lnlmn", "lnS2S1P0lmn");
}

static void a_sub_that_calls_itself_at_one_statement_keeps_all_its_frames(void **state)
{
	(void)state;
	plf_stack(&t.p, 0, 3, -1);
	for (uint32_t i = 0; i < 3; i++)
		plf_cx(&t.p, 0, i, PLF_SUB, i > 0, true, cv(0));
	plf_put(&t.p, PLF_SI + PLF_CX + 2 * PLF_CX_BYTES + 0x50, 2, 4);
	plf_cv(&t.p, 0, 0, 3);
	/* It calls a function of C, at the statement where it was called. */
	plf_put(&t.p, PLF_ENTERSUB, plf_addr(PLF_OP + 0x40), 8);
	plf_at(&t.p, 1, 0, plf_addr(PLF_ENTERSUB));
	assert_walk("nlmn", "nS1S1S1P0lmn");
}

static void a_thread_of_perls_begins_with_a_sub_and_has_no_program(void **state)
{
	(void)state;
	plf_stack(&t.p, 0, 2, -1);
	plf_cx(&t.p, 0, 0, PLF_EVAL_BLOCK, 0, false, 0);
	plf_cx(&t.p, 0, 1, PLF_SUB, 0, false, cv(0));
	plf_at(&t.p, 1, 0, plf_addr(PLF_OP));
	assert_walk("nlnn", "nS1lnn");
	/* One that computes a constant while it is compiled. */
	plf_stack(&t.p, 0, 1, -1);
	assert_walk("nlnn", "nlnn");
}

static void a_loop_that_computes_a_constant_has_no_frames(void **state)
{
	(void)state;
	make_calls();
	plf_stack(&t.p, 0, 6, -1);
	plf_cx(&t.p, 0, 4, PLF_REQUIRE, 2, true, 0);
	plf_cx(&t.p, 0, 5, PLF_EVAL_BLOCK, 3, false, 0);
	plf_put(&t.p, PLF_INTERP + 0xd0, STACK + 3 * FRAME, 8);
	assert_walk("nlnlmn", "nlnR3S2S1P0lmn");
	/* The same context, but its op is the last of sort's block: it has a statement of the program's. */
	plf_stack(&t.p, 1, 2, 0);
	plf_cx(&t.p, 1, 0, PLF_NULL, 3, false, 0);
	plf_cx(&t.p, 1, 1, PLF_EVAL_BLOCK, 3, false, 0);
	plf_stack(&t.p, 0, 5, -1);
	plf_at(&t.p, 4, 1, plf_addr(PLF_OP));
	assert_walk("nlnlmn", "nlnR4S2S1P0lmn");
}

static void more_runs_than_loops_are_a_guess(void **state)
{
	(void)state;
	make_calls();
	plf_cx(&t.p, 0, 3, PLF_SUB, 1, false, cv(1));
	walk("nlmn");
	assert_string_equal(text(), "nS2S1P0lmn");
	assert_true(host_lang_misplaced());
	/* And more loops than runs. */
	fresh(state);
	make_calls();
	walk("nlnlmn");
	assert_string_equal(text(), "nS2S1lnP0lmn");
	assert_true(host_lang_misplaced());
}

static void subs_without_a_glob_are_named_by_themselves(void **state)
{
	(void)state;
	make_calls();
	plf_cv(&t.p, 1, 0x8000, 1);
	assert_walk("nlmn", "nV2S1P0lmn");
	assert_int_equal(t.frames[2] & MS_PERL_ADDR, cv(1));
	plf_put(&t.p, PLF_CV + 0x100 + 0x58, 0, 8);
	plf_put(&t.p, PLF_CV + 0x100 + 0x7c, 0, 4);
	assert_walk("nlmn", "nV2S1P0lmn");
	assert_int_equal(t.frames[2] & MS_PERL_ADDR, 0);
}

static void the_words_of_a_frame_are_those_that_are_decoded(void **state)
{
	uint64_t words[2];

	(void)state;
	make_calls();
	walk("nlmn");
	plf_words(MS_PERL_SUB, 2, 1, words);
	assert_int_equal(t.frames[1], words[0]);
	assert_int_equal(t.frames[2], words[1]);
	plf_words(MS_PERL_MAIN, 0, 0, words);
	assert_int_equal(t.frames[5], words[0]);
	assert_int_equal(t.frames[6], words[1]);
}

static void a_chain_that_cannot_be_read_says_so(void **state)
{
	(void)state;
	make_calls();
	plf_put(&t.p, PLF_SLOT, 0, 8);
	walk("nlmn");
	assert_string_equal(text(), "n?lmn");
	assert_true(host_lang_lost());
	/* A statement of a frame further out. */
	fresh(state);
	make_calls();
	plf_put(&t.p, PLF_SI + PLF_CX + 3 * PLF_CX_BYTES + 0x10, 0x10000, 8);
	walk("nlmn");
	assert_string_equal(text(), "nS2?lmn");
	assert_true(host_lang_lost());
}

/* As the kernel copies it together with a stack. */
static void a_chain_that_was_copied_is_walked_in_place_of_memory(void **state)
{
	static const struct {
		enum ms_perl_kind kind;
		uint32_t cop, boundary;
	} frames[] = { { MS_PERL_SUB, 2, 4 | 1 }, { MS_PERL_SUB, 1, 0 }, { MS_PERL_MAIN, 0, 2 } };
	uint64_t words[2];

	(void)state;
	t.copied = true;
	t.chain.n_links = 3;
	for (uint32_t i = 0; i < 3; i++) {
		t.links[i].at = plf_addr(0x100 * i) | (uint64_t)frames[i].boundary
							      << MS_CHAIN_SHIFT;
		plf_words(frames[i].kind, frames[i].cop, i, words);
		t.links[i].words[0] = words[0];
		t.links[i].words[1] = words[1];
	}
	assert_walk("nlnlmn", "nS2lnS1P0lmn");
	t.chain.entry = 2; /* between two elements */
	assert_walk("nnlmn", "nnS1P0lmn");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_frame_is_where_the_next_one_was_called, fresh),
		cmocka_unit_test_setup(a_loop_within_a_loop_has_what_c_has_called, fresh),
		cmocka_unit_test_setup(a_loop_of_docatch_goes_on_with_that_around_it, fresh),
		cmocka_unit_test_setup(
			evaluated_strings_and_required_files_are_frames_and_blocks_are_not, fresh),
		cmocka_unit_test_setup(a_block_of_sort_is_no_frame_but_has_a_loop, fresh),
		cmocka_unit_test_setup(
			between_two_elements_neither_sorts_block_nor_its_sub_is_executed, fresh),
		cmocka_unit_test_setup(
			code_in_a_regular_expression_is_no_frame_but_what_it_calls_is, fresh),
		cmocka_unit_test_setup(a_sub_that_is_being_entered_is_not_executed_yet, fresh),
		cmocka_unit_test_setup(a_sub_that_is_being_left_is_where_it_was_called, fresh),
		cmocka_unit_test_setup(
			a_sub_that_calls_itself_at_one_statement_keeps_all_its_frames, fresh),
		cmocka_unit_test_setup(a_thread_of_perls_begins_with_a_sub_and_has_no_program,
				       fresh),
		cmocka_unit_test_setup(a_loop_that_computes_a_constant_has_no_frames, fresh),
		cmocka_unit_test_setup(more_runs_than_loops_are_a_guess, fresh),
		cmocka_unit_test_setup(subs_without_a_glob_are_named_by_themselves, fresh),
		cmocka_unit_test_setup(the_words_of_a_frame_are_those_that_are_decoded, fresh),
		cmocka_unit_test_setup(a_chain_that_cannot_be_read_says_so, fresh),
		cmocka_unit_test_setup(a_chain_that_was_copied_is_walked_in_place_of_memory, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
