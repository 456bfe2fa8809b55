/*
 * Frames of Python between native ones (bpf/walk/walk_lang.h, python.h), on a stack and in a chain that are made up
 * here: native frames of 0x100 bytes, with a frame pointer each, and structs of the three layouts that CPython has had.
 */
#include "unwind/host_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define CODE     0x400000ULL /* native code …                                         */
#define EVAL     0x500000ULL /* … of which this executes frames of the language        */
#define EVAL_END 0x501000ULL
#define STACK    0x7f0000000000ULL
#define FRAME    0x100ULL
#define OBJECTS  0x600000000000ULL /* the interpreter's: state, frames, code objects */
#define FS       0x7e0000000000ULL
#define STATE    OBJECTS
#define LOCAL    0x20ULL /* of a native frame: where its variables begin */

enum { NATIVE_MAX = 16, PY_BYTES = 256, POOL_WORDS = 4096 };

static struct {
	uint8_t stack[NATIVE_MAX * FRAME];
	uint8_t objects[64 * PY_BYTES];
	uint64_t slot; /* of the thread: its state */
	uint32_t pool[POOL_WORDS];
	struct ms_table tables[1];
	struct ms_rule rules[1];
	uint64_t frames[MS_MAX_FRAMES];
	uint32_t n;
} w;

static bool read_at(void *ctx, void *dst, size_t size, uint64_t addr)
{
	(void)ctx;
	if (addr >= OBJECTS && addr + size <= OBJECTS + sizeof(w.objects)) {
		memcpy(dst, w.objects + (addr - OBJECTS), size);
		return true;
	}
	if (addr == FS + 0x10 && size == 8) {
		memcpy(dst, &w.slot, 8);
		return true;
	}
	return false;
}

static void put(uint64_t addr, uint64_t word, size_t size)
{
	uint8_t *at = addr >= STACK ? w.stack + (addr - STACK) : w.objects + (addr - OBJECTS);

	memcpy(at, &word, size);
}

/* The address of the i-th object, which is a code object or a frame. */
static uint64_t object(uint32_t i)
{
	return OBJECTS + (uint64_t)PY_BYTES * (1 + i);
}

/* The address of a variable of native frame i. */
static uint64_t local(uint32_t i)
{
	return STACK + i * FRAME + LOCAL;
}

static const struct ms_python py310 = {
	.tstate_frame = 24, .cframe_frame = 0xffff, .frame_code = 32, .frame_previous = 24, .frame_instr = 96,
	.frame_boundary = 0, .boundary_kind = MS_PYTHON_EACH, .instr_kind = MS_PYTHON_LASTI, .frame_bytes = 104,
	.code_first_line = 40, .code_name = 112, .code_linetable = 120,
};
static const struct ms_python py311 = {
	.tstate_frame = 56, .cframe_frame = 8, .cframe_previous = 16, .frame_code = 32, .frame_previous = 48,
	.frame_instr = 56, .frame_boundary = 68, .boundary_kind = MS_PYTHON_ENTRY, .boundary = 1,
	.instr_kind = MS_PYTHON_POINTER, .frame_bytes = 72, .code_first_line = 72, .code_name = 128,
	.code_linetable = 136,
};
static const struct ms_python py313 = {
	.tstate_frame = 72, .cframe_frame = 0xffff, .frame_code = 0, .frame_previous = 8, .frame_instr = 56,
	.frame_boundary = 70, .boundary_kind = MS_PYTHON_OWNER, .boundary = 3, .instr_kind = MS_PYTHON_POINTER,
	.code_mask = 3, .frame_bytes = 72, .code_first_line = 68, .code_name = 128, .code_linetable = 136,
};

/* Code object i: its first line is 100 + i. */
static void make_code(const struct ms_python *p, uint32_t i)
{
	put(object(i) + p->code_first_line, 100 + i, 4);
	put(object(i) + p->code_name, 0x1000 + i, 8);
	put(object(i) + p->code_linetable, 0x2000 + i, 8);
}

static void make_frame(const struct ms_python *p, uint64_t at, uint32_t code, uint64_t previous, uint8_t boundary)
{
	put(at + p->frame_code, object(code) | (p->code_mask & 1), 8);
	put(at + p->frame_previous, previous, 8);
	if (p->instr_kind == MS_PYTHON_LASTI)
		put(at + p->frame_instr, 7, 4);
	else
		put(at + p->frame_instr, object(code) + 200, 8);
	if (p->boundary_kind != MS_PYTHON_EACH)
		put(at + p->frame_boundary, boundary, 1);
}

/* Native frames leaf first: 'e' executes frames of Python, 'E' the same but is about to (its first instructions). */
static void walk(const struct ms_python *p, const char *natives)
{
	struct publish_mem mem = { .pool = w.pool, .n_words = POOL_WORDS, .tables = w.tables, .n_tables = 1,
				   .rules = w.rules, .n_rules = 1, .rule_stride = sizeof(w.rules[0]) };
	struct ms_span span = { .start = CODE, .end = EVAL_END, .kind = MS_SPAN_FP };
	struct ms_space space = { .spans = 0, .n_spans = 1 };
	struct ms_lang_row row = { .lang = MS_LANG_PYTHON, .thread = MS_THREAD_TLS, .n_ranges = 1, .off = 0x10,
				   .range = { { EVAL, EVAL_END } }, .python = *p };
	uint64_t regs[MS_N_REGS] = { 0 }, missing;
	uint32_t n = (uint32_t)strlen(natives);
	struct host_stack stack = { .regs = regs, .addr = STACK, .bytes = w.stack, .len = sizeof(w.stack),
				    .space = &space, .read = read_at, .lang = &row, .thread_base = FS };

	memcpy(w.pool, &span, sizeof(span));
	for (uint32_t i = 0; i < n; i++) {
		uint64_t fp = STACK + (i + 1) * FRAME - 16;
		uint64_t next = i + 1 < n ? (natives[i + 1] == 'e' ? EVAL : CODE) + 0x80 + i : 0;

		put(fp, fp + FRAME, 8);
		put(fp + 8, next, 8);
	}
	stack.pc = (natives[0] == 'e' ? EVAL : CODE) + 0x40;
	regs[MS_WALK_SP] = STACK;
	regs[MS_WALK_FP] = STACK + FRAME - 16;
	host_walk(&mem, &stack, w.frames, &w.n, &missing);
}

/* The walk as text: n and e for native frames, digits for the code objects of Python's, ? for one that is lost. */
static const char *text(void)
{
	static char out[64];
	uint32_t n = 0;

	for (uint32_t i = 0; i < w.n; i++) {
		uint64_t addr = w.frames[i] & MS_FRAME_ADDR_MASK;

		if (w.frames[i] >> MS_FRAME_TAG_SHIFT == MS_FRAME_LANG) {
			out[n++] = addr ? (char)('0' + (addr - object(0)) / PY_BYTES) : '?';
			i++;
		} else {
			out[n++] = addr - 1 >= EVAL && addr < EVAL_END ? 'e' : 'n';
		}
	}
	out[n] = '\0';
	return out;
}

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.slot = STATE;
	return 0;
}

static void up_to_3_10_each_call_of_the_interpreter_has_one_frame(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		make_code(&py310, i);
		make_frame(&py310, object(10 + i), i, i < 2 ? object(11 + i) : 0, 0);
	}
	put(STATE + py310.tstate_frame, object(10), 8);
	walk(&py310, "nenene");
	assert_string_equal(text(), "n0en1en2e");
	assert_false(host_lang_misplaced());
}

/* Runs {0, 1} and {2}: of the calls in native frames 1 and 3. */
static void make_311(void)
{
	for (uint32_t i = 0; i < 3; i++) {
		make_code(&py311, i);
		make_frame(&py311, object(10 + i), i, i < 2 ? object(11 + i) : 0, i > 0);
	}
	put(STATE + py311.tstate_frame, local(1), 8);
	put(local(1) + py311.cframe_frame, object(10), 8);
	put(local(1) + py311.cframe_previous, local(3), 8);
	put(local(3) + py311.cframe_frame, object(12), 8);
}

static void in_3_11_a_run_ends_behind_the_frame_that_was_entered_from_c(void **state)
{
	(void)state;
	make_311();
	walk(&py311, "nenen");
	assert_string_equal(text(), "n01en2en");
	assert_false(host_lang_misplaced());
}

static void in_3_11_a_call_that_is_only_just_entered_has_no_frames_yet(void **state)
{
	(void)state;
	make_311();
	/* One more call of the interpreter above them: the first run belongs to native frame 1 still. */
	walk(&py311, "eenen");
	assert_string_equal(text(), "e01en2en");
	assert_false(host_lang_misplaced());
}

/* The same runs, with a frame without code behind each, which lies on the native stack. */
static void make_313(void)
{
	make_code(&py313, 0);
	make_code(&py313, 1);
	make_code(&py313, 2);
	make_frame(&py313, object(10), 0, object(11), 0);
	make_frame(&py313, object(11), 1, local(1), 0);
	make_frame(&py313, local(1), 0, object(12), 3);
	make_frame(&py313, object(12), 2, local(3), 1);
	make_frame(&py313, local(3), 0, 0, 3);
	put(STATE + py313.tstate_frame, object(10), 8);
}

static void from_3_12_on_a_run_ends_at_a_frame_of_the_c_stack(void **state)
{
	(void)state;
	make_313();
	walk(&py313, "nenen");
	assert_string_equal(text(), "n01en2en");
	assert_false(host_lang_misplaced());
}

static void from_3_12_on_a_run_of_an_outer_call_is_taken_back(void **state)
{
	(void)state;
	make_313();
	walk(&py313, "eenen");
	assert_string_equal(text(), "e01en2en");
	assert_false(host_lang_misplaced());
}

static void a_frame_records_where_in_its_code_it_is_and_a_cookie_of_that(void **state)
{
	(void)state;
	make_311();
	walk(&py311, "nenen");
	assert_int_equal(w.frames[1], object(0) | MS_FRAME_LANG << MS_FRAME_TAG_SHIFT);
	assert_int_equal(w.frames[2] >> MS_FRAME_TAG_SHIFT, MS_FRAME_LANG_AT);
	assert_int_equal(w.frames[2] >> MS_LANG_SHIFT & 15, MS_LANG_PYTHON);
	assert_int_equal(w.frames[2] & MS_LANG_NO_INSTR, 200);
	assert_int_equal(w.frames[2] >> 32 & MS_LANG_COOKIE_MASK, ms_python_cookie(100, 0x1000, 0x2000));
}

static void an_interpreter_without_frames_left_makes_the_stack_a_guess(void **state)
{
	(void)state;
	make_code(&py310, 0);
	make_frame(&py310, object(10), 0, 0, 0);
	put(STATE + py310.tstate_frame, object(10), 8);
	walk(&py310, "enene");
	assert_string_equal(text(), "0enene");
	assert_true(host_lang_misplaced());
}

static void a_state_that_cannot_be_read_is_a_frame_that_says_so(void **state)
{
	(void)state;
	make_311();
	w.slot = 0;
	walk(&py311, "nenen");
	assert_string_equal(text(), "n?enen");
	assert_int_equal(w.frames[2] & MS_LANG_NO_INSTR, MS_LOST_STATE);
}

static void a_frame_that_cannot_be_read_ends_the_chain(void **state)
{
	(void)state;
	make_311();
	put(object(10) + py311.frame_previous, OBJECTS - 0x1000, 8);
	walk(&py311, "nenen");
	assert_string_equal(text(), "n0?enen");
}

static void a_chain_in_a_circle_ends_with_the_room_for_frames(void **state)
{
	(void)state;
	make_code(&py311, 0);
	make_frame(&py311, object(10), 0, object(10), 0);
	put(STATE + py311.tstate_frame, local(1), 8);
	put(local(1) + py311.cframe_frame, object(10), 8);
	walk(&py311, "nen");
	assert_in_range(w.n, MS_MAX_FRAMES - 2, MS_MAX_FRAMES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(up_to_3_10_each_call_of_the_interpreter_has_one_frame, setup),
		cmocka_unit_test_setup(in_3_11_a_run_ends_behind_the_frame_that_was_entered_from_c, setup),
		cmocka_unit_test_setup(in_3_11_a_call_that_is_only_just_entered_has_no_frames_yet, setup),
		cmocka_unit_test_setup(from_3_12_on_a_run_ends_at_a_frame_of_the_c_stack, setup),
		cmocka_unit_test_setup(from_3_12_on_a_run_of_an_outer_call_is_taken_back, setup),
		cmocka_unit_test_setup(a_frame_records_where_in_its_code_it_is_and_a_cookie_of_that, setup),
		cmocka_unit_test_setup(an_interpreter_without_frames_left_makes_the_stack_a_guess, setup),
		cmocka_unit_test_setup(a_state_that_cannot_be_read_is_a_frame_that_says_so, setup),
		cmocka_unit_test_setup(a_frame_that_cannot_be_read_ends_the_chain, setup),
		cmocka_unit_test_setup(a_chain_in_a_circle_ends_with_the_room_for_frames, setup),
	};

	return cmocka_run_group_tests_name("unwind/walk_lang", tests, NULL, NULL);
}
