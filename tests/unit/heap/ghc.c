/* Objects of GHC's heap as they lie in memory, made by hand: what each is, how large, and which of its words are references. */
#include "ghc_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { WORDS_MAX = 64 };

struct words {
	uint32_t n;
	struct {
		uint64_t word;
		uint32_t at;
		enum ghc_word what;
	} row[WORDS_MAX];
};

static void on_word(void *ctx, uint64_t word, uint32_t at, enum ghc_word what)
{
	struct words *w = ctx;

	assert_true(w->n < WORDS_MAX);
	w->row[w->n].word = word;
	w->row[w->n].at = at;
	w->row[w->n++].what = what;
}

static struct words words_of(struct ghc_fixture *f, uint64_t addr, uint64_t expected_words)
{
	struct words w = { 0 };
	struct ghc_closure c;

	assert_true(ghc_closure_at(&f->g, addr, &c));
	assert_int_equal(c.words, expected_words);
	ghc_closure_words(&f->g, &c, true, on_word, &w);
	return w;
}

static void is_word(const struct words *w, uint32_t i, uint64_t word, uint32_t at,
		    enum ghc_word what)
{
	assert_true(i < w->n);
	assert_int_equal(w->row[i].word, word);
	assert_int_equal(w->row[i].at, at);
	assert_int_equal(w->row[i].what, what);
}

static int setup(void **state)
{
	static struct ghc_fixture f;

	ghc_fixture_init(&f);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	ghc_fixture_fini(*state);
	return 0;
}

static void versions_have_the_layouts_that_are_known(void **state)
{
	(void)state;
	assert_null(ghc_layout_of(0x080804));
	assert_true(ghc_layout_of(0x090002)->tested);
	assert_false(ghc_layout_of(0x080a07)->tested);
	assert_false(ghc_layout_of(0x090403)->tested);
	assert_int_equal(ghc_layout_of(0x090002)->tso_words, 15);
	assert_int_equal(ghc_layout_of(0x090c01)->tso_words, 16);
	assert_string_equal(ghc_type_name(GHC_THUNK_1_0), "THUNK_1_0");
	assert_string_equal(ghc_type_name(GHC_COMPACT_NFDATA), "COMPACT_NFDATA");
	assert_int_equal(GHC_COMPACT_NFDATA, 63);
	assert_int_equal(GHC_STACK, 53);
}

static void constructors_and_thunks_have_pointers_first(void **state)
{
	struct ghc_fixture *f = *state;
	uint64_t con = ghc_info(f, GHC_CONSTR, GHC_SIZES(2, 1), 0);
	uint64_t thunk = ghc_info(f, GHC_THUNK_1_1, GHC_SIZES(1, 1), GHC_STATIC);
	uint64_t a = GHC_CLOSURE(f, con, 0x1111, 0x2222, 7);
	uint64_t b = GHC_CLOSURE(f, thunk, 0, a + 1, 9);
	struct words w = words_of(f, a, 4);

	assert_int_equal(w.n, 3);
	is_word(&w, 0, 0x1111, 8, GHC_POINTER);
	is_word(&w, 1, 0x2222, 16, GHC_POINTER);
	is_word(&w, 2, 7, 24, GHC_DATA);
	w = words_of(f, b, 4);
	assert_int_equal(w.n, 3);
	is_word(&w, 0, GHC_STATIC, 0, GHC_SRT);
	is_word(&w, 1, a + 1, 16, GHC_POINTER);
	is_word(&w, 2, 9, 24, GHC_DATA);
}

static void arrays_are_as_long_as_they_say(void **state)
{
	struct ghc_fixture *f = *state;
	uint64_t bytes = GHC_CLOSURE(f, ghc_info(f, GHC_ARR_WORDS, 0, 0), 9, 0x41, 0x42);
	uint64_t array =
		GHC_CLOSURE(f, ghc_info(f, GHC_MUT_ARR_PTRS_CLEAN, 0, 0), 2, 3, 0x10, 0x20, 0xffff);
	uint64_t small =
		GHC_CLOSURE(f, ghc_info(f, GHC_SMALL_MUT_ARR_PTRS_FROZEN_CLEAN, 0, 0), 1, 0x30);
	struct words w = words_of(f, bytes, 4);

	assert_int_equal(w.n, 2);
	is_word(&w, 1, 0x42, 24, GHC_DATA);
	w = words_of(f, array, 6); /* cards behind the pointers */
	assert_int_equal(w.n, 2);
	is_word(&w, 1, 0x20, 32, GHC_POINTER);
	w = words_of(f, small, 3);
	assert_int_equal(w.n, 1);
	is_word(&w, 0, 0x30, 16, GHC_POINTER);
}

static void arguments_are_what_the_function_says(void **state)
{
	struct ghc_fixture *f = *state;
	/* Of a bitmap: three, the second no pointer; by a fixed pattern: NP; by a large bitmap. */
	uint64_t three =
		GHC_CLOSURE(f, ghc_fun_info(f, GHC_FUN_1_0, GHC_SIZES(1, 0), 0, 3 | 2 << 6), 0);
	uint64_t np = GHC_CLOSURE(f, ghc_fun_info(f, GHC_FUN_1_0, GHC_SIZES(1, 0), 13, 0), 0);
	uint64_t pap = GHC_CLOSURE(f, ghc_info(f, GHC_PAP, 0, 0), 3ULL << 32 | 1, three + 3, 0x10,
				   0x20, 0x30);
	uint64_t ap = GHC_CLOSURE(f, ghc_info(f, GHC_AP, 0, 0), 0, 2ULL << 32, np + 2, 0x40, 0x50);
	struct words w = words_of(f, pap, 6);

	assert_int_equal(w.n, 4);
	is_word(&w, 0, three + 3, 16, GHC_POINTER);
	is_word(&w, 1, 0x10, 24, GHC_POINTER);
	is_word(&w, 2, 0x20, 32, GHC_DATA);
	is_word(&w, 3, 0x30, 40, GHC_POINTER);
	w = words_of(f, ap, 6);
	is_word(&w, 1, 0x40, 32, GHC_DATA);
	is_word(&w, 2, 0x50, 40, GHC_POINTER);
}

static void frames_of_a_stack_are_read_by_their_bitmaps(void **state)
{
	struct ghc_fixture *f = *state;
	uint64_t fun =
		GHC_CLOSURE(f, ghc_fun_info(f, GHC_FUN_1_0, GHC_SIZES(1, 0), 15, 0), 0); /* PP */
	uint64_t big_bits = GHC_PUT_STATIC(f, 3, 4);
	uint64_t small = ghc_info(f, GHC_RET_SMALL, 2 | 1 << 6, GHC_STATIC);
	uint64_t big = ghc_info(f, GHC_RET_BIG, 0, 0);
	uint64_t ret_fun = ghc_info(f, GHC_RET_FUN, 0, 0), stop = ghc_info(f, GHC_STOP_FRAME, 0, 0);
	uint64_t stack = GHC_CLOSURE(f, ghc_info(f, GHC_STACK, 0, 0), 13, f->next + 24 + 8,
				     0xdead,                    /* below the stack pointer      */
				     small, 5, 0x10,            /* the first is no pointer      */
				     big, 0x20, 0x30, 6,        /* the third is none            */
				     ret_fun, 1, fun + 2, 0x40, /* called with one of two       */
				     stop);
	struct words w;

	ghc_put(f, big - 16, (uint32_t)(big_bits - big), 4);
	w = words_of(f, stack, 16);
	assert_int_equal(w.n, 6);
	is_word(&w, 0, GHC_STATIC, 32, GHC_SRT);
	is_word(&w, 1, 0x10, 48, GHC_POINTER);
	is_word(&w, 2, 0x20, 64, GHC_POINTER);
	is_word(&w, 3, 0x30, 72, GHC_POINTER);
	is_word(&w, 4, fun + 2, 104, GHC_POINTER);
	is_word(&w, 5, 0x40, 112, GHC_POINTER);
	assert_int_equal(f->g.bad_frames, 0);
	/* A thread that runs has it in a register: from the second frame on. */
	f->g.running[f->g.n_running++] = (struct ghc_running){ stack, stack + 56 };
	w = words_of(f, stack, 16);
	assert_int_equal(w.n, 4);
	is_word(&w, 0, 0x20, 64, GHC_GUESS); /* that may be about to be written */
	is_word(&w, 2, fun + 2, 104, GHC_POINTER);
}

static void what_is_no_frame_yet_is_skipped_and_looked_at_for_pointers(void **state)
{
	struct ghc_fixture *f = *state;
	uint64_t con = GHC_CLOSURE(f, ghc_info(f, GHC_CONSTR_0_1, GHC_SIZES(0, 1), 0), 1);
	uint64_t stop = ghc_info(f, GHC_STOP_FRAME, 0, 0);
	uint64_t stack =
		GHC_CLOSURE(f, ghc_info(f, GHC_STACK, 0, 0), 3, f->next + 24, 3, con + 1, stop);
	struct words w = words_of(f, stack, 6);

	assert_int_equal(w.n, 1);
	is_word(&w, 0, con + 1, 32, GHC_GUESS);
	assert_int_equal(f->g.bad_frames, 0);
	ghc_put(f, stack + 40, 3, 8);
	w = words_of(f, stack, 6);
	assert_int_equal(w.n, 1);
	assert_int_equal(f->g.bad_frames, 1);
}

static void what_is_no_closure_is_counted(void **state)
{
	struct ghc_fixture *f = *state;
	uint64_t con = ghc_info(f, GHC_CONSTR_0_1, GHC_SIZES(0, 1), 0);
	uint64_t none = GHC_CLOSURE(f, 0x1234, 1), moved = GHC_CLOSURE(f, GHC_AT + 0x20001, 1);
	uint64_t wrong = GHC_CLOSURE(f, ghc_info(f, (enum ghc_type)GHC_CONTINUATION, 0, 0), 1);
	uint64_t huge = GHC_CLOSURE(f, ghc_info(f, GHC_ARR_WORDS, 0, 0), 1ULL << 40);
	uint64_t most =
		GHC_CLOSURE(f, ghc_info(f, GHC_MUT_ARR_PTRS_DIRTY, 0, 0), 1, UINT64_MAX - 1);
	uint64_t last = GHC_AT + GHC_LEN - 8;
	struct ghc_closure c;

	assert_false(ghc_closure_at(&f->g, none, &c));
	assert_false(ghc_closure_at(&f->g, wrong, &c)); /* 9.0 has no such type */
	assert_false(ghc_closure_at(&f->g, huge, &c));
	assert_int_equal(f->g.bad, 3);
	assert_true(ghc_closure_at(
		&f->g, most, &c)); /* its size wraps to 2 words: within the heap all the same */
	assert_true(c.words <= (f->g.end - most) / 8);
	ghc_put(f, last, con, 8);
	assert_false(ghc_closure_at(&f->g, last, &c));
	assert_false(ghc_closure_at(&f->g, none + 4, &c));
	assert_int_equal(f->g.bad, 5);
	assert_false(ghc_closure_at(&f->g, moved, &c));
	assert_int_equal(f->g.forwarded, 1);
	assert_false(ghc_looks_like_pointer(&f->g, none));
	assert_int_equal(f->g.bad, 5);
}

/* --- walks --- */

struct heap {
	struct ghc_space space;
	struct ghc_walk walk;
};

static void walk(struct ghc_fixture *f, struct heap *h)
{
	assert_int_equal(ghc_walk_finish(&h->walk), 0);
	for (uint64_t i = 1; i < h->walk.n; i++)
		assert_true(h->walk.objects[i - 1].addr < h->walk.objects[i].addr);
	(void)f;
}

static void a_caf_that_code_still_needs_is_a_root(void **state)
{
	struct ghc_fixture *f = *state;
	uint64_t con = ghc_info(f, GHC_CONSTR_0_1, GHC_SIZES(0, 1), 0),
		 ind = ghc_info(f, GHC_IND_STATIC, 0, 0);
	uint64_t value = GHC_CLOSURE(f, con, 1), lost = GHC_CLOSURE(f, con, 2);
	uint64_t caf = GHC_PUT_STATIC(f, ind, value, 0, 0),
		 unneeded = GHC_PUT_STATIC(f, ind, lost, 0, 0);
	/* Two CAFs of one piece of code, of which one has not been evaluated, are a constructor of the static objects. */
	uint64_t not_yet = GHC_PUT_STATIC(f, ghc_info(f, GHC_THUNK_STATIC, 0, 0), 0, 0, 0);
	uint64_t srt = GHC_PUT_STATIC(f, ghc_info(f, GHC_CONSTR, GHC_SIZES(2, 0), 0), caf, not_yet);
	uint64_t thunk = GHC_CLOSURE(f, ghc_info(f, GHC_THUNK_0_1, GHC_SIZES(0, 1), srt), 0, 5);
	struct heap h = { 0 };

	(void)unneeded;
	assert_int_equal(ghc_walk_begin(&h.walk, &f->g, &h.space), 0);
	ghc_walk_root(&h.walk, GHC_ROOT_STABLE, thunk, 1);
	walk(f, &h);
	assert_int_equal(h.walk.n, 2);
	assert_non_null(ghc_walk_object(&h.walk, value));
	assert_null(ghc_walk_object(&h.walk, lost));
	assert_int_equal(h.walk.n_roots, 2);
	assert_int_equal(h.walk.roots[1].kind, GHC_ROOT_CAF);
	assert_int_equal(h.walk.roots[1].at, caf);
	assert_int_equal(h.walk.roots[1].addr, value);
	assert_int_equal(h.walk.n_static, 3);
	ghc_walk_fini(&h.walk);
}

static void a_weak_pointer_keeps_its_value_as_long_as_its_key(void **state)
{
	struct ghc_fixture *f = *state;
	uint64_t con = ghc_info(f, GHC_CONSTR_0_1, GHC_SIZES(0, 1), 0),
		 weak_info = ghc_info(f, GHC_WEAK, 0, 0);
	uint64_t key = GHC_CLOSURE(f, con, 1), value = GHC_CLOSURE(f, con, 2);
	uint64_t dead = GHC_CLOSURE(f, con, 3), unkept = GHC_CLOSURE(f, con, 4);
	uint64_t second = GHC_CLOSURE(f, weak_info, 0, dead, unkept, 0, 0);
	uint64_t weak = GHC_CLOSURE(f, weak_info, 0, key, value, 0, second);
	uint64_t gen = GHC_PUT_STATIC(f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, weak);
	struct heap h = { .space.gens = { gen } };
	struct words w = { 0 };

	assert_int_equal(ghc_walk_begin(&h.walk, &f->g, &h.space), 0);
	ghc_walk_root(&h.walk, GHC_ROOT_STABLE, key, 1);
	walk(f, &h);
	assert_int_equal(h.walk.n, 3);
	assert_non_null(ghc_walk_object(&h.walk, value));
	assert_non_null(ghc_walk_object(&h.walk, weak));
	ghc_walk_weaks(&h.walk, key, on_word, &w);
	assert_int_equal(w.n, 1);
	assert_int_equal(w.row[0].word, weak);
	ghc_walk_fini(&h.walk);
}

static void threads_are_roots_by_their_generations_list(void **state)
{
	struct ghc_fixture *f = *state;
	uint64_t tso = ghc_info(f, GHC_TSO, 0, 0), stop = ghc_info(f, GHC_STOP_FRAME, 0, 0);
	uint64_t stack = GHC_CLOSURE(f, ghc_info(f, GHC_STACK, 0, 0), 1, f->next + 24, stop);
	uint64_t a = GHC_CLOSURE(f, tso, 0, 0, stack, 0, 0, 41, 0, 0, 0, 0, 0, 0, 0, 0);
	uint64_t b = GHC_CLOSURE(f, tso, 0, a, stack, 0, 5, 42, 0, 0, 0, 0, 0, 0, 0, 0);
	uint64_t gen = GHC_PUT_STATIC(f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b, 0);
	struct heap h = { .space.gens = { gen } };

	/* A variable leads to one of them, too, and others to what is no thread. */
	ghc_space_list(&f->g, &h.space, a);
	ghc_space_list(&f->g, &h.space, stack);
	ghc_space_list(&f->g, &h.space, a + 4);
	assert_int_equal(h.space.n_lists, 1);
	assert_int_equal(ghc_walk_begin(&h.walk, &f->g, &h.space), 0);
	walk(f, &h);
	assert_int_equal(h.walk.n, 3);
	assert_int_equal(h.walk.n_roots, 2);
	assert_int_equal(h.walk.roots[0].at, 41);
	assert_int_equal(h.walk.roots[1].at, 42);
	assert_int_equal(f->g.bad, 0);
	ghc_walk_fini(&h.walk);
}

static void no_object_begins_in_another(void **state)
{
	struct ghc_fixture *f = *state;
	uint64_t con = ghc_info(f, GHC_CONSTR_0_1, GHC_SIZES(0, 1), 0);
	uint64_t bytes = GHC_CLOSURE(f, ghc_info(f, GHC_ARR_WORDS, 0, 0), 24, con, 1, con);
	struct heap h = { 0 };

	assert_int_equal(ghc_walk_begin(&h.walk, &f->g, &h.space), 0);
	ghc_walk_root(&h.walk, GHC_ROOT_STABLE, bytes, 1);
	ghc_walk_root(&h.walk, GHC_ROOT_STABLE, bytes + 16, 2);
	walk(f, &h);
	assert_int_equal(h.walk.n, 1);
	assert_int_equal(f->g.bad, 1);
	ghc_walk_fini(&h.walk);
}

/* In a register is what was a byte array once; two objects lie there now, and what it had refers to nothing. */
static void what_is_guessed_gives_way_to_what_is_known(void **state)
{
	struct ghc_fixture *f = *state;
	uint64_t con = ghc_info(f, GHC_CONSTR_0_1, GHC_SIZES(0, 1), 0),
		 pair = ghc_info(f, GHC_CONSTR_2_0, 2, 0);
	uint64_t stale = GHC_CLOSURE(f, ghc_info(f, GHC_ARR_WORDS, 0, 0), 32, con, 1, con, 2);
	uint64_t other = GHC_CLOSURE(f, pair, GHC_AT + 0x80000, 0);
	struct heap h = { 0 };

	assert_int_equal(ghc_walk_begin(&h.walk, &f->g, &h.space), 0);
	ghc_walk_root(&h.walk, GHC_ROOT_REGISTER, stale, 1);
	ghc_walk_root(&h.walk, GHC_ROOT_REGISTER, other, 2);
	ghc_walk_root(&h.walk, GHC_ROOT_STABLE, stale + 16, 1);
	ghc_walk_root(&h.walk, GHC_ROOT_STABLE, stale + 32, 2);
	walk(f, &h);
	assert_int_equal(h.walk.n, 3);
	assert_null(ghc_walk_object(&h.walk, stale));
	assert_non_null(ghc_walk_object(&h.walk, stale + 16));
	assert_non_null(ghc_walk_object(&h.walk, stale + 32));
	assert_non_null(ghc_walk_object(&h.walk, other));
	assert_int_equal(f->g.bad, 0);
	ghc_walk_fini(&h.walk);
}

/* --- blocks --- */

static void put_group(struct ghc_fixture *f, uint32_t block, uint32_t blocks, uint64_t free,
		      uint64_t gen, uint32_t flags)
{
	uint64_t bd = GHC_AT + 64ULL * block;

	ghc_put(f, bd + GHC_BD_FREE, free, 8);
	ghc_put(f, bd + GHC_BD_GEN, gen, 8);
	ghc_put(f, bd + GHC_BD_FLAGS, flags, 2);
	ghc_put(f, bd + GHC_BD_BLOCKS, blocks, 4);
}

static void descriptors_say_what_is_in_use_and_of_which_generation(void **state)
{
	struct ghc_fixture *f = *state;
	uint64_t threads = GHC_PUT_STATIC(f, 0), old = GHC_STATIC + 1024;
	uint64_t gens[2] = { GHC_STATIC + 512, GHC_STATIC + 512 + GHC_GEN_BYTES };
	struct ghc_space s;

	(void)threads;
	(void)old;
	assert_false(ghc_is_mblock(&f->g, GHC_AT));
	for (uint32_t i = GHC_FIRST_BLOCK; i < 256; i++)
		ghc_put(f, GHC_AT + 64ULL * i, GHC_AT + 4096ULL * i, 8);
	put_group(f, 4, 2, GHC_AT + 5000, gens[0], 0);
	put_group(f, 6, 10, GHC_AT + 5000, gens[1], GHC_BF_LARGE | GHC_BF_PINNED);
	put_group(f, 16, 40, GHC_AT + 5000, 0, 0);
	put_group(f, 56, 200, UINT64_MAX, 0, 0);
	ghc_put(f, gens[1], 1, 4);
	ghc_put(f, gens[1] + GHC_GEN_COLLECTIONS, 77, 4);
	assert_true(ghc_is_mblock(&f->g, GHC_AT));
	/* A group of so many blocks that their number is 32 bits of ones. */
	ghc_put(f, GHC_AT + 64 * 56 + GHC_BD_BLOCKS, UINT32_MAX, 4);
	assert_false(ghc_is_mblock(&f->g, GHC_AT));
	ghc_put(f, GHC_AT + 64 * 56 + GHC_BD_BLOCKS, 200, 4);
	assert_true(ghc_space_read(&f->g, &s));
	assert_int_equal(s.blocks, 52);
	assert_int_equal(s.free_blocks, 200);
	assert_int_equal(s.collections[0], 0);
	assert_int_equal(s.collections[1], 77);
	assert_int_equal(s.mblocks, 1);
	assert_int_equal(s.own, 40);
	assert_int_equal(s.large, 10);
	assert_int_equal(s.pinned, 10);
	assert_int_equal(s.gens[0], gens[0]);
	assert_int_equal(s.gens[1], gens[1]);
	assert_false(f->g.threaded);
	assert_false(s.collecting);
	/* From-space that has not been freed: a collection is under way. */
	ghc_put(f, gens[0] + GHC_GEN_OLD_BLOCKS, GHC_AT + 256, 8);
	assert_true(ghc_space_read(&f->g, &s));
	assert_true(s.collecting);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(versions_have_the_layouts_that_are_known),
		TEST(constructors_and_thunks_have_pointers_first),
		TEST(arrays_are_as_long_as_they_say),
		TEST(arguments_are_what_the_function_says),
		TEST(frames_of_a_stack_are_read_by_their_bitmaps),
		TEST(what_is_no_frame_yet_is_skipped_and_looked_at_for_pointers),
		TEST(what_is_no_closure_is_counted),
		TEST(a_caf_that_code_still_needs_is_a_root),
		TEST(a_weak_pointer_keeps_its_value_as_long_as_its_key),
		TEST(threads_are_roots_by_their_generations_list),
		TEST(no_object_begins_in_another),
		TEST(what_is_guessed_gives_way_to_what_is_known),
		TEST(descriptors_say_what_is_in_use_and_of_which_generation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
