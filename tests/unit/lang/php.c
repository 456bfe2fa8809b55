/*
 * Frames of PHP between native ones (bpf/walk/php.h), on a stack and in a chain that are made up here: native frames of
 * 0x100 bytes, with a frame pointer each, and PHP's of php_fixture.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "php_fixture.h"
#include "unwind/host_walk.h"

#define CODE     0x400000ULL /* native code …                             */
#define EVAL     0x500000ULL /* … of which this is execute_ex()           */
#define EVAL_END 0x501000ULL
#define PROLOGUE 0x30
#define STACK    0x7e0000000000ULL
#define FRAME    0x100ULL

enum { NATIVE_MAX = 16, POOL_WORDS = 4096, TOP = 1 << 17, FILE_CODE = 1 << 16, OBJECT = 8 };

static struct {
	struct php_process php;
	uint8_t stack[NATIVE_MAX * FRAME];
	uint64_t frame_reg, opline_reg;     /* at the leaf; 0: not known */
	uint64_t pc;                        /* 0: in the middle of the first function */
	bool no_registers, copied, no_rows; /* … of the native functions but the first */
	bool threads; /* built for them; the word that the thread finds is at PHF_KEY */
	enum ms_verdict verdict;
	struct ms_chain_rec chain;
	struct ms_chain_link links[NATIVE_MAX];
	uint32_t pool[POOL_WORDS];
	struct ms_table tables[1];
	struct ms_rule rules[1];
	uint64_t frames[MS_MAX_FRAMES];
	uint32_t n;
} t;

static bool read_php(void *ctx, void *dst, size_t size, uint64_t addr)
{
	(void)ctx;
	return fake_process_read(&t.php.memory, addr, dst, size);
}

static uint64_t frame_at(uint32_t i)
{
	return phf_addr(phf_frame(i));
}

static uint64_t method_op(uint32_t i)
{
	return phf_addr(PHF_OPS + 32 * i);
}

/* `natives`, leaf first: n, or e for execute_ex(). */
static void walk(const char *natives)
{
	struct publish_mem mem = { .pool = t.pool,
				   .n_words = POOL_WORDS,
				   .tables = t.tables,
				   .n_tables = 1,
				   .rules = t.rules,
				   .n_rules = 1,
				   .rule_stride = sizeof(t.rules[0]) };
	/* The first function, those that call it, execute_ex(). */
	struct ms_span spans[] = {
		{ .start = CODE, .end = CODE + 0x80, .kind = MS_SPAN_FP },
		{ .start = CODE + 0x80,
		  .end = EVAL,
		  .kind = t.no_rows ? MS_SPAN_GUESS : MS_SPAN_FP },
		{ .start = EVAL, .end = EVAL_END, .kind = MS_SPAN_FP },
	};
	struct ms_space space = { .spans = 0, .n_spans = 3 };
	struct lang_runtime rt;
	uint64_t regs[MS_N_REGS] = { 0 }, missing;
	uint32_t n = (uint32_t)strlen(natives);
	struct host_stack stack = { .regs = regs,
				    .addr = STACK,
				    .bytes = t.stack,
				    .len = sizeof(t.stack),
				    .space = &space,
				    .read = read_php,
				    .lang = &rt.row,
				    .chain = t.copied ? &t.chain : NULL,
				    .links = t.links };

	t.php.php.php.has_registers = !t.no_registers;
	assert_int_equal(lang_runtime_find(&t.php.at, NULL, &t.php.memory.mem, &rt, NULL), 0);
	if (t.threads) {
		phf_put(&t.php, PHF_KEY, phf_addr(PHF_STORAGE), 8);
		rt.row.off = phf_addr(PHF_KEY);
		rt.row.php.current = PHF_CURRENT - PHF_STORAGE;
	}
	rt.row.range[0].start = EVAL;
	rt.row.range[0].end = EVAL_END;
	memcpy(t.pool, spans, sizeof(spans));
	for (uint32_t i = 0; i < n; i++) {
		uint64_t fp = (i + 1) * FRAME - 16, caller = STACK + fp + FRAME;
		uint64_t next = i + 1 < n ? (natives[i + 1] == 'e' ? EVAL : CODE) + 0x80 + i : 0;

		memcpy(t.stack + fp, &caller, 8);
		memcpy(t.stack + fp + 8, &next, 8);
	}
	stack.pc = t.pc ? t.pc : (natives[0] == 'e' ? EVAL : CODE) + 0x40;
	regs[MS_WALK_SP] = STACK;
	regs[MS_WALK_FP] = STACK + FRAME - 16;
	regs[14] = t.frame_reg;
	regs[15] = t.opline_reg;
	t.verdict = host_walk(&mem, &stack, t.frames, &t.n, &missing);
}

/* The walk as text: n and e for native frames, for PHP's r (the method), m (the script), i (it, included) or u (PHP's own)
 * with the line, ? for one that is lost. */
static const char *text(void)
{
	static char out[256];
	size_t n = 0;

	for (uint32_t i = 0; i < t.n; i++) {
		uint64_t addr = t.frames[i] & MS_FRAME_ADDR_MASK;
		uint32_t line;
		char what;

		if (t.frames[i] >> MS_FRAME_TAG_SHIFT != MS_FRAME_LANG) {
			out[n++] = addr - 1 >= EVAL && addr < EVAL_END ? 'e' : 'n';
			continue;
		}
		line = (uint32_t)t.frames[++i];
		what = !addr                            ? '?'
		       : addr == phf_addr(PHF_METHOD)   ? 'r'
		       : addr == phf_addr(PHF_INTERNAL) ? 'u'
		       : line & MS_PHP_INCLUDED         ? 'i'
							: 'm';
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%c", what);
		if (addr && line & MS_PHP_LINE)
			n += (size_t)snprintf(out + n, sizeof(out) - n, "%u", line & MS_PHP_LINE);
	}
	out[n] = '\0';
	return out;
}

static int set_up(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	phf_init(&t.php);
	return 0;
}

static void head_is(uint64_t at)
{
	phf_put(&t.php, PHF_CURRENT, at, 8);
}

/* usleep() ◄ the method, line 11 ◄ the script, line 30: one run. */
static void make_call(void)
{
	phf_put_frame(&t.php, 0, PHF_INTERNAL, 0, 0, 0, frame_at(1));
	phf_put_frame(&t.php, 1, PHF_METHOD, PHF_OPS, 1, 0, frame_at(2));
	phf_put_frame(&t.php, 2, PHF_MAIN, PHF_MAIN_OPS, 0, TOP | FILE_CODE, 0);
	head_is(frame_at(0));
}

/* usleep() ◄ the method, called by usort() ◄ the script: two runs. */
static void make_callback(void)
{
	phf_put_frame(&t.php, 0, PHF_INTERNAL, 0, 0, 0, frame_at(1));
	phf_put_frame(&t.php, 1, PHF_METHOD, PHF_OPS, 1, TOP, frame_at(2));
	phf_put_frame(&t.php, 2, PHF_INTERNAL, 0, 0, 0, frame_at(3));
	phf_put_frame(&t.php, 3, PHF_MAIN, PHF_MAIN_OPS, 2, TOP | FILE_CODE, 0);
	head_is(frame_at(0));
}

static void a_run_ends_behind_code_that_was_called_from_c(void **state)
{
	(void)state;
	make_call();
	walk("nnen");
	assert_string_equal(text(), "nnur11m30en");
	make_callback();
	walk("nnennen");
	assert_string_equal(text(), "nnur11ennum32en");
	assert_false(host_lang_misplaced());
}

static void with_threads_the_chain_is_in_the_storage_of_the_thread(void **state)
{
	(void)state;
	make_callback();
	t.threads = true;
	walk("nnennen");
	assert_string_equal(text(), "nnur11ennum32en");
	assert_false(host_lang_misplaced());
}

static void php_functions_that_c_calls_end_no_run(void **state)
{
	(void)state;
	make_callback();
	phf_put(&t.php, phf_frame(0) + 40, TOP, 4);
	phf_put(&t.php, phf_frame(1) + 40, 0, 4);
	phf_put(&t.php, phf_frame(2) + 40, TOP, 4);
	walk("nnnen");
	assert_string_equal(text(), "nnnur11um32en");
	assert_false(host_lang_misplaced());
}

static void files_that_are_included_are_told_from_the_script(void **state)
{
	(void)state;
	make_call();
	phf_put_frame(&t.php, 1, PHF_MAIN, PHF_MAIN_OPS, 1, FILE_CODE, frame_at(2));
	walk("nen");
	assert_string_equal(text(), "nui31m30en");
}

/* What is in memory was written by an earlier instruction. */
static void the_line_is_that_of_the_instruction_in_the_register(void **state)
{
	(void)state;
	make_call();
	head_is(frame_at(1));
	t.frame_reg = frame_at(1);
	t.opline_reg = method_op(3);
	walk("en");
	assert_string_equal(text(), "r13m30en");
	assert_false(host_lang_misplaced());
}

static void without_a_register_the_line_of_what_executes_is_unknown(void **state)
{
	(void)state;
	make_call();
	head_is(frame_at(1));
	walk("nen"); /* the native function may have saved it anywhere */
	assert_string_equal(text(), "nrm30en");
	t.frame_reg = frame_at(1);
	t.opline_reg = method_op(PHF_N_OPS); /* of no instruction of this function */
	walk("en");
	assert_string_equal(text(), "rm30en");
	t.opline_reg = method_op(3);
	t.no_registers = true;
	walk("en");
	assert_string_equal(text(), "rm30en");
	assert_false(host_lang_misplaced());
}

static void in_the_first_instructions_registers_are_the_callers(void **state)
{
	(void)state;
	make_callback();
	head_is(frame_at(1));
	t.frame_reg = frame_at(3);
	t.opline_reg = 1;
	t.pc = EVAL + PROLOGUE - 1;
	walk("ennen");
	assert_string_equal(text(), "rennum32en");
	assert_false(host_lang_misplaced());
}

static void a_run_that_was_not_begun_yet_is_shown_where_it_is_called(void **state)
{
	(void)state;
	make_callback();
	head_is(frame_at(1));
	t.frame_reg = frame_at(3);
	t.opline_reg = phf_addr(PHF_MAIN_OPS + 32 * 2);
	walk("en");
	assert_string_equal(text(), "r11um32en");
	assert_false(host_lang_misplaced());
}

/* The callback returns: its frame is not in the chain any more, and the register still has it. */
static void a_run_that_has_been_left_is_not_the_outer_one(void **state)
{
	(void)state;
	make_callback();
	head_is(frame_at(2));
	t.frame_reg = frame_at(1);
	t.opline_reg = method_op(1);
	walk("ennen");
	assert_string_equal(text(), "ennum32en");
	assert_false(host_lang_misplaced());
	/* The script does. */
	head_is(0);
	t.frame_reg = frame_at(3);
	walk("en");
	assert_string_equal(text(), "en");
	assert_false(host_lang_misplaced());
}

static void a_function_that_returns_to_its_caller_is_left(void **state)
{
	(void)state;
	make_call();
	head_is(frame_at(2));
	t.frame_reg = frame_at(1);
	t.opline_reg = method_op(3);
	walk("en");
	assert_string_equal(text(), "m30en");
	assert_false(host_lang_misplaced());
}

/* A generator that delegates to another one is not in the chain: a frame without a function stands for it. */
static void a_generator_that_delegates_is_in_its_place(void **state)
{
	const uint32_t fake = PHF_GENERATOR + 184;

	(void)state;
	/* The inner generator (method, line 12) ◄ what stands for the outer (method, line 10) ◄ the script. */
	phf_put_frame(&t.php, 0, PHF_METHOD, PHF_OPS, 2, TOP, phf_addr(fake));
	phf_put(&t.php, fake + 32, phf_addr(PHF_GENERATOR), 8);
	phf_put(&t.php, fake + 40, OBJECT, 4);
	phf_put(&t.php, fake + 48, frame_at(2), 8);
	phf_put(&t.php, PHF_GENERATOR + 56, frame_at(1), 8);
	phf_put_frame(&t.php, 1, PHF_METHOD, PHF_OPS, 0, TOP, 0x1234);
	phf_put_frame(&t.php, 2, PHF_MAIN, PHF_MAIN_OPS, 1, TOP | FILE_CODE, 0);
	head_is(frame_at(0));
	t.frame_reg = frame_at(0);
	t.opline_reg = method_op(2);
	walk("ennen");
	assert_string_equal(text(), "r12ennr10m31en");
	assert_false(host_lang_misplaced());
	/* Of several only the outermost is known. */
	phf_put(&t.php, PHF_GENERATOR + 152, phf_addr(PHF_GENERATOR + 0x400), 8);
	phf_put(&t.php, PHF_GENERATOR + 0x400 + 152, phf_addr(PHF_CLASS), 8);
	walk("ennen");
	assert_true(host_lang_misplaced());
}

static void frames_without_a_function_are_not_shown(void **state)
{
	(void)state;
	make_call();
	phf_put_frame(&t.php, 3, 0, 0, 0, OBJECT, frame_at(1)); /* of no generator */
	phf_put(&t.php, phf_frame(0) + 48, frame_at(3), 8);
	walk("nen");
	assert_string_equal(text(), "nur11m30en");
	phf_put(&t.php, PHF_INTERNAL + 8, 0, 8); /* where a fiber begins */
	walk("nen");
	assert_string_equal(text(), "nr11m30en");
}

/* execute_ex() without a run, although it calls something. */
static void native_frames_without_a_run_make_the_stack_a_guess(void **state)
{
	(void)state;
	make_call();
	walk("nenen");
	assert_string_equal(text(), "nur11m30enen");
	assert_true(host_lang_misplaced());
}

static void what_cannot_be_read_is_a_frame_that_says_so(void **state)
{
	(void)state;
	make_call();
	t.php.memory.hole = PHF_METHOD;
	t.php.memory.hole_len = 8;
	walk("nen");
	assert_string_equal(text(), "nu?en");
	assert_true(host_lang_lost());
	set_up(state);
	make_call();
	head_is(1);
	walk("nen");
	assert_string_equal(text(), "n?en");
}

/* It has the native frame of execute_ex(), and its register, but is elsewhere. */
static void compiled_code_is_in_the_frame_of_execute_ex(void **state)
{
	(void)state;
	make_call();
	head_is(frame_at(1));
	t.no_rows = true;
	t.pc = CODE + 0x1000;
	t.frame_reg = frame_at(1);
	t.opline_reg = method_op(3);
	walk("j");
	assert_string_equal(text(), "nrm30e");
	/* It has called a function of PHP's. */
	head_is(frame_at(0));
	walk("j");
	assert_string_equal(text(), "nur11m30e");
	/* It is returning. */
	head_is(frame_at(2));
	walk("j");
	assert_string_equal(text(), "nm30e");
	/* Other code without rows. */
	t.frame_reg = phf_addr(PHF_CLASS);
	walk("jn");
	assert_string_equal(text(), "nn");
	assert_int_equal(t.verdict, MS_GUESSED);
}

/* Below its first function there are no rows: there the stack is complete. */
static void a_fibers_stack_ends_where_its_chain_does(void **state)
{
	(void)state;
	make_callback();
	phf_put(&t.php, phf_frame(1) + 48, phf_addr(PHF_FRAMES + 0x400), 8);
	phf_put_frame(&t.php, 8, PHF_CLASS, 0, 0, 0, frame_at(3));
	phf_put(&t.php, PHF_CLASS, 1, 8); /* an internal function, without a name */
	phf_put(&t.php, PHF_CLASS + 8, 0, 8);
	t.no_rows = true;
	walk("nenn");
	assert_string_equal(text(), "nur11en");
	assert_int_equal(t.verdict, MS_COMPLETE);
	phf_put(&t.php, PHF_CLASS, 2, 8);
	walk("nenn");
	assert_string_equal(text(), "nur11enn");
	assert_int_equal(t.verdict, MS_GUESSED);
}

static void a_chain_in_a_circle_ends_with_the_room_for_frames(void **state)
{
	(void)state;
	make_call();
	phf_put(&t.php, phf_frame(1) + 48, frame_at(1), 8);
	walk("nen");
	assert_in_range(t.n, MS_MAX_FRAMES - 2, MS_MAX_FRAMES);
}

static void copy(uint32_t i, uint32_t func, uint32_t line, uint8_t boundary)
{
	struct ms_chain_link *l = &t.links[t.chain.n_links++];

	uint64_t words[2];

	phf_words(&t.php, func, line, words);
	l->at = frame_at(i) | (__u64)boundary << MS_CHAIN_SHIFT;
	l->words[0] = words[0];
	l->words[1] = words[1];
	t.copied = true;
}

/* A stack that is walked later: its chain is of then, its registers too, and its functions are still there. */
static void a_chain_that_was_copied_is_walked_in_place_of_memory(void **state)
{
	(void)state;
	make_callback();
	copy(0, PHF_INTERNAL, 0, 0);
	copy(1, PHF_METHOD, 11, 1 | 2);
	copy(2, PHF_INTERNAL, 0, 0);
	copy(3, PHF_MAIN, 32, 1 | 2);
	head_is(0);
	walk("nnennen");
	assert_string_equal(text(), "nnur11ennum32en");
	assert_false(host_lang_misplaced() || host_lang_lost());
	/* It was executing. */
	t.chain.n_links = 0;
	copy(1, PHF_METHOD, 11, 1);
	copy(3, PHF_MAIN, 32, 1 | 2);
	t.frame_reg = frame_at(1);
	t.opline_reg = method_op(3);
	walk("en");
	assert_string_equal(text(), "r13m32en");
	/* Its frame has another function by now. */
	phf_put(&t.php, phf_frame(1) + 24, phf_addr(PHF_MAIN), 8);
	walk("en");
	assert_string_equal(text(), "rm32en");
	/* A register of something else. */
	t.frame_reg = 0x1234;
	walk("en");
	assert_string_equal(text(), "rm32en");
	assert_false(host_lang_misplaced() || host_lang_lost());
}

int main(void)
{
#if !defined(__x86_64__)
	puts("1..0 # SKIP the PHP that is made for it has code of x86-64");
	return 0;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_run_ends_behind_code_that_was_called_from_c, set_up),
		cmocka_unit_test_setup(with_threads_the_chain_is_in_the_storage_of_the_thread,
				       set_up),
		cmocka_unit_test_setup(php_functions_that_c_calls_end_no_run, set_up),
		cmocka_unit_test_setup(files_that_are_included_are_told_from_the_script, set_up),
		cmocka_unit_test_setup(the_line_is_that_of_the_instruction_in_the_register, set_up),
		cmocka_unit_test_setup(without_a_register_the_line_of_what_executes_is_unknown,
				       set_up),
		cmocka_unit_test_setup(in_the_first_instructions_registers_are_the_callers, set_up),
		cmocka_unit_test_setup(a_run_that_was_not_begun_yet_is_shown_where_it_is_called,
				       set_up),
		cmocka_unit_test_setup(a_run_that_has_been_left_is_not_the_outer_one, set_up),
		cmocka_unit_test_setup(a_function_that_returns_to_its_caller_is_left, set_up),
		cmocka_unit_test_setup(a_generator_that_delegates_is_in_its_place, set_up),
		cmocka_unit_test_setup(frames_without_a_function_are_not_shown, set_up),
		cmocka_unit_test_setup(native_frames_without_a_run_make_the_stack_a_guess, set_up),
		cmocka_unit_test_setup(what_cannot_be_read_is_a_frame_that_says_so, set_up),
		cmocka_unit_test_setup(compiled_code_is_in_the_frame_of_execute_ex, set_up),
		cmocka_unit_test_setup(a_fibers_stack_ends_where_its_chain_does, set_up),
		cmocka_unit_test_setup(a_chain_in_a_circle_ends_with_the_room_for_frames, set_up),
		cmocka_unit_test_setup(a_chain_that_was_copied_is_walked_in_place_of_memory,
				       set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
