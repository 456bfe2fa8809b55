/*
 * The walker over this very process: its own tables, registers and stack, against what libgcc's
 * unwinder says of the same place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <execinfo.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf/elf_file.h"
#include "unwind/host_walk.h"
#include "unwind/publish.h"
#include "unwind/rows.h"

#define NOINLINE __attribute__((noinline, noclone))

enum { POOL_WORDS = 4 << 20, TABLES = 64, RULES = 1 << 16, STACK_MAX = 1 << 20, FRAMES_MAX = 2100 };

static struct ms_space the_space;

static int put_space(void *ctx, uint32_t pid, const struct ms_space *space)
{
	(void)ctx, (void)pid;
	the_space = *space;
	return 0;
}

static void drop_space(void *ctx, uint32_t pid)
{
	(void)ctx, (void)pid;
}

static struct publish *publish;

/* One executable mapping of ours becomes a span. */
static uint32_t add_span(const char *line, struct ms_span *ret_span)
{
	unsigned long start, end, off;
	char perms[8], path[256] = "";
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	const struct elf_segment *segs;
	struct publish_key key = { 0 };
	uint32_t n_segs, number;
	uint64_t vaddr;
	int fd;

	if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, perms, &off, path) < 4 ||
	    perms[2] != 'x' || path[0] != '/')
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(fd, path, &elf, NULL), 0);
	assert_int_equal(unwind_table_build(elf, &table, NULL), 0);
	key.len = (uint32_t)strnlen(path, sizeof(key.bytes));
	memcpy(key.bytes, path, key.len);
	assert_int_equal(publish_table(publish, &key, 1, &number), 0);
	assert_int_equal(publish_table_put(publish, number, table, true, 1, NULL), 0);
	segs = elf_file_segments(elf, &n_segs);
	assert_true(elf_segments_off_to_vaddr(segs, n_segs, off, &vaddr));
	*ret_span = (struct ms_span){ .start = start,
				      .end = end,
				      .bias = start - vaddr,
				      .table = number,
				      .kind = MS_SPAN_TABLE };
	close(fd);
	return 1;
}

static int setup(void **state)
{
	struct publish_mem mem = {
		.pool = calloc(POOL_WORDS, sizeof(uint32_t)),
		.n_words = POOL_WORDS,
		.tables = calloc(TABLES, sizeof(struct ms_table)),
		.n_tables = TABLES,
		.rules = calloc(RULES, sizeof(struct ms_rule)),
		.n_rules = RULES,
		.rule_stride = sizeof(struct ms_rule),
	};
	struct space_sink sink = { put_space, drop_space, NULL };
	struct ms_proc proc = { .tgid = (uint32_t)getpid() };
	struct ms_span spans[TABLES];
	char line[512];
	uint32_t n = 0;
	FILE *f;

	(void)state;
	assert_int_equal(publish_new(&mem, &sink, &publish, NULL), 0);
	f = fopen("/proc/self/maps", "re");
	assert_non_null(f);
	while (n < TABLES && fgets(line, sizeof(line), f))
		n += add_span(line, &spans[n]);
	fclose(f);
	assert_int_equal(publish_space_put(publish, &proc, 0, spans, n, false, 1), 0);
	return 0;
}

/* What is compared: both unwinders, called in one frame. */
static struct {
	uint64_t walked[MS_MAX_FRAMES];
	void *expected[FRAMES_MAX];
	uint32_t n_walked;
	int n_expected;
	enum ms_verdict verdict;
} here;

static void from_context(const ucontext_t *uc, uint64_t *pc, uint64_t *regs)
{
#if defined(__x86_64__)
	static const int order[16] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				       REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				       REG_R12, REG_R13, REG_R14, REG_R15 };

	for (int i = 0; i < 16; i++)
		regs[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	*pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
#else
	for (int i = 0; i < 31; i++)
		regs[i] = uc->uc_mcontext.regs[i];
	regs[MS_A64_SP] = uc->uc_mcontext.sp;
	*pc = uc->uc_mcontext.pc;
#endif
}

static char *stack_end(void)
{
	unsigned long start, end = 0;
	char line[512], here_too;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 &&
		    (unsigned long)&here_too >= start && (unsigned long)&here_too < end)
			break;
	fclose(f);
	return (char *)end;
}

static NOINLINE void look(void)
{
	uint64_t regs[MS_N_REGS] = { 0 }, pc, sp, missing;
	static uint8_t copy[STACK_MAX];
	struct host_stack stack = { .regs = regs, .bytes = copy, .space = &the_space };
	ucontext_t uc;

	here.n_expected = backtrace(here.expected, FRAMES_MAX);
	getcontext(&uc);
	from_context(&uc, &pc, regs);
	sp = regs[sizeof(void *) == 8 && MS_X86_RSP == 7 ?
#if defined(__x86_64__)
							 MS_X86_RSP
#else
							 MS_A64_SP
#endif
							 : 0];
	stack.pc = pc;
	stack.addr = sp & ~7ULL;
	stack.len = (size_t)(stack_end() - (char *)stack.addr);
	if (stack.len > sizeof(copy))
		stack.len = sizeof(copy);
	memcpy(copy, (void *)stack.addr, stack.len);
	here.verdict =
		host_walk(publish_memory(publish), &stack, here.walked, &here.n_walked, &missing);
	if (here.verdict != MS_COMPLETE)
		print_message("missing at %llx\n", (unsigned long long)missing);
}

/* The leaf is where each of the two was called; from there on the frames are the same. */
static void check_same(void)
{
	assert_int_equal(here.verdict, MS_COMPLETE);
	assert_int_equal(here.n_walked, here.n_expected);
	for (int i = 1; i < here.n_expected; i++)
		assert_int_equal(here.walked[i], (uint64_t)here.expected[i]);
}

static void own_stack_is_whole_and_as_libgcc_says(void **state)
{
	(void)state;
	look();
	check_same();
}

static void first_guess_is_the_first_frame_that_no_row_covers(void **state)
{
	uint64_t frames[MS_MAX_FRAMES];

	(void)state;
	look();
	check_same();
	assert_true(here.n_walked > 2);
	memcpy(frames, here.walked, sizeof(frames));
	assert_int_equal(
		host_first_guess(publish_memory(publish), &the_space, frames, here.n_walked),
		here.n_walked);
	frames[2] = (uint64_t)frames; /* no code is there */
	assert_int_equal(
		host_first_guess(publish_memory(publish), &the_space, frames, here.n_walked), 2);
}

static NOINLINE int down(int n)
{
	volatile char room[24];
	int r;

	room[0] = (char)n;
	if (n)
		r = down(n - 1) + room[0];
	else
		look(), r = 0;
	return r + 1;
}

static void deep_recursion_is_whole(void **state)
{
	(void)state;
	down(1500);
	check_same();
}

static void deeper_than_we_go_is_truncated(void **state)
{
	(void)state;
	down(MS_MAX_FRAMES);
	assert_int_equal(here.verdict, MS_TRUNCATED);
	assert_int_equal(here.n_walked, MS_MAX_FRAMES);
	for (int i = 1; i < MS_MAX_FRAMES; i++)
		assert_int_equal(here.walked[i], (uint64_t)here.expected[i]);
}

static int compare(const void *a, const void *b)
{
	look();
	return *(const int *)a - *(const int *)b;
}

static void libc_calling_back_is_whole(void **state)
{
	int v[2] = { 2, 1 };

	(void)state;
	qsort(v, 2, sizeof(v[0]), compare);
	check_same();
	assert_int_equal(v[0], 1);
}

static NOINLINE void with_room(size_t n)
{
	char *room = __builtin_alloca(n);

	memset(room, (int)n, n);
	look();
	__asm__ volatile("" : : "r"(room) : "memory");
}

static void frames_of_unknown_size_are_walked(void **state)
{
	(void)state;
	for (size_t n = 16; n < 40000; n = n * 3 + 8) {
		with_room(n);
		check_same();
	}
}

/* --- frames of a language ---
 *
 * Frames of Python between native ones (bpf/walk/walk_lang.h, python.h), on a stack and in a chain that are made up
 * here: native frames of 0x100 bytes, with a frame pointer each, and structs of the three layouts that CPython has had.
 */

#define CODE     0x400000ULL /* native code …                                         */
#define EVAL     0x500000ULL /* … of which this executes frames of the language        */
#define EVAL_END 0x501000ULL
#define STACK    0x7f0000000000ULL
#define FRAME    0x100ULL
#define OBJECTS  0x600000000000ULL /* the interpreter's: state, frames, code objects */
#define FS       0x7e0000000000ULL
#define STATE    OBJECTS
#define LOCAL    0x20ULL /* of a native frame: where its variables begin */

enum { NATIVE_MAX = 16, PY_BYTES = 256, LANG_POOL_WORDS = 4096 };

static struct {
	uint8_t stack[NATIVE_MAX * FRAME];
	uint8_t objects[64 * PY_BYTES];
	uint64_t slot; /* of the thread: its state */
	bool copied;   /* the chain was, with the stack */
	struct ms_chain_rec chain;
	struct ms_chain_link links[NATIVE_MAX];
	uint32_t pool[LANG_POOL_WORDS];
	struct ms_table tables[1];
	struct ms_rule rules[1];
	uint64_t frames[MS_MAX_FRAMES];
	uint32_t n;
} lang;

static bool read_objects(void *ctx, void *dst, size_t size, uint64_t addr)
{
	(void)ctx;
	if (addr >= OBJECTS && addr + size <= OBJECTS + sizeof(lang.objects)) {
		memcpy(dst, lang.objects + (addr - OBJECTS), size);
		return true;
	}
	if (addr == FS + 0x10 && size == 8) {
		memcpy(dst, &lang.slot, 8);
		return true;
	}
	return false;
}

static void put_word(uint64_t addr, uint64_t word, size_t size)
{
	uint8_t *at = addr >= STACK ? lang.stack + (addr - STACK) : lang.objects + (addr - OBJECTS);

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
	.tstate_frame = 24,
	.cframe_frame = 0xffff,
	.frame_code = 32,
	.frame_previous = 24,
	.frame_instr = 96,
	.frame_boundary = 0,
	.boundary_kind = MS_PYTHON_EACH,
	.instr_kind = MS_PYTHON_LASTI,
	.frame_bytes = 104,
	.code_first_line = 40,
	.code_name = 112,
	.code_linetable = 120,
};
static const struct ms_python py311 = {
	.tstate_frame = 56,
	.cframe_frame = 8,
	.cframe_previous = 16,
	.frame_code = 32,
	.frame_previous = 48,
	.frame_instr = 56,
	.frame_boundary = 68,
	.boundary_kind = MS_PYTHON_ENTRY,
	.boundary = 1,
	.instr_kind = MS_PYTHON_POINTER,
	.frame_bytes = 72,
	.code_first_line = 72,
	.code_name = 128,
	.code_linetable = 136,
};
static const struct ms_python py313 = {
	.tstate_frame = 72,
	.cframe_frame = 0xffff,
	.frame_code = 0,
	.frame_previous = 8,
	.frame_instr = 56,
	.frame_boundary = 70,
	.boundary_kind = MS_PYTHON_OWNER,
	.boundary = 3,
	.instr_kind = MS_PYTHON_POINTER,
	.code_mask = 3,
	.frame_bytes = 72,
	.code_first_line = 68,
	.code_name = 128,
	.code_linetable = 136,
};

/* Code object i: its first line is 100 + i. */
static void make_code(const struct ms_python *p, uint32_t i)
{
	put_word(object(i) + p->code_first_line, 100 + i, 4);
	put_word(object(i) + p->code_name, 0x1000 + i, 8);
	put_word(object(i) + p->code_linetable, 0x2000 + i, 8);
}

static void make_frame(const struct ms_python *p, uint64_t at, uint32_t code, uint64_t previous,
		       uint8_t boundary)
{
	put_word(at + p->frame_code, object(code) | (p->code_mask & 1), 8);
	put_word(at + p->frame_previous, previous, 8);
	if (p->instr_kind == MS_PYTHON_LASTI)
		put_word(at + p->frame_instr, 7, 4);
	else
		put_word(at + p->frame_instr, object(code) + 200, 8);
	if (p->boundary_kind != MS_PYTHON_EACH)
		put_word(at + p->frame_boundary, boundary, 1);
}

/* Native frames leaf first: 'e' executes frames of Python, 'E' the same but is about to (its first instructions). */
static void walk_lang_of(const struct ms_python *p, const char *natives)
{
	struct publish_mem mem = { .pool = lang.pool,
				   .n_words = LANG_POOL_WORDS,
				   .tables = lang.tables,
				   .n_tables = 1,
				   .rules = lang.rules,
				   .n_rules = 1,
				   .rule_stride = sizeof(lang.rules[0]) };
	struct ms_span span = { .start = CODE, .end = EVAL_END, .kind = MS_SPAN_FP };
	struct ms_space space = { .spans = 0, .n_spans = 1 };
	struct ms_lang_row row = { .lang = MS_LANG_PYTHON,
				   .thread = MS_THREAD_TLS,
				   .n_ranges = 1,
				   .off = 0x10,
				   .range = { { EVAL, EVAL_END } },
				   .python = *p };
	uint64_t regs[MS_N_REGS] = { 0 }, missing;
	uint32_t n = (uint32_t)strlen(natives);
	struct host_stack stack = { .regs = regs,
				    .addr = STACK,
				    .bytes = lang.stack,
				    .len = sizeof(lang.stack),
				    .space = &space,
				    .read = read_objects,
				    .lang = &row,
				    .thread_base = FS,
				    .chain = lang.copied ? &lang.chain : NULL,
				    .links = lang.links };

	memcpy(lang.pool, &span, sizeof(span));
	for (uint32_t i = 0; i < n; i++) {
		uint64_t fp = STACK + (i + 1) * FRAME - 16;
		uint64_t next = i + 1 < n ? (natives[i + 1] == 'e' ? EVAL : CODE) + 0x80 + i : 0;

		put_word(fp, fp + FRAME, 8);
		put_word(fp + 8, next, 8);
	}
	stack.pc = (natives[0] == 'e' ? EVAL : CODE) + 0x40;
	regs[MS_WALK_SP] = STACK;
	regs[MS_WALK_FP] = STACK + FRAME - 16;
	host_walk(&mem, &stack, lang.frames, &lang.n, &missing);
}

/* The walk as text: n and e for native frames, digits for the code objects of Python's, ? for one that is lost. */
static const char *lang_text(void)
{
	static char out[64];
	uint32_t n = 0;

	for (uint32_t i = 0; i < lang.n; i++) {
		uint64_t addr = lang.frames[i] & MS_FRAME_ADDR_MASK;

		if (lang.frames[i] >> MS_FRAME_TAG_SHIFT == MS_FRAME_LANG) {
			out[n++] = addr ? (char)('0' + (addr - object(0)) / PY_BYTES) : '?';
			i++;
		} else {
			out[n++] = addr - 1 >= EVAL && addr < EVAL_END ? 'e' : 'n';
		}
	}
	out[n] = '\0';
	return out;
}

static int set_up_lang(void **state)
{
	(void)state;
	memset(&lang, 0, sizeof(lang));
	lang.slot = STATE;
	return 0;
}

/* The frames at `at` are copied, as the kernel would, and gone from memory. Those of `ends` have no code. */
static void copy_chain(const struct ms_python *p, const uint64_t *at, const char *boundaries,
		       uint32_t n)
{
	lang.copied = true;
	lang.chain.n_links = (uint16_t)n;
	lang.chain.entry = p->boundary_kind == MS_PYTHON_ENTRY ? local(1) : 0;
	for (uint32_t i = 0; i < n; i++) {
		struct ms_chain_link *l = &lang.links[i];

		l->at = at[i] | (uint64_t)(boundaries[i] - '0') << MS_CHAIN_SHIFT;
		if (at[i] < object(10) || at[i] >= object(20))
			continue;
		l->words[0] = object((uint32_t)((at[i] - object(10)) / PY_BYTES)) |
			      MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
		l->words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT;
	}
	memset(lang.objects, 0, sizeof(lang.objects));
	lang.slot = 0;
}

static void up_to_3_10_each_call_of_the_interpreter_has_one_frame(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		make_code(&py310, i);
		make_frame(&py310, object(10 + i), i, i < 2 ? object(11 + i) : 0, 0);
	}
	put_word(STATE + py310.tstate_frame, object(10), 8);
	walk_lang_of(&py310, "nenene");
	assert_string_equal(lang_text(), "n0en1en2e");
	assert_false(host_lang_misplaced());
}

/* Runs {0, 1} and {2}: of the calls in native frames 1 and 3. */
static void make_311(void)
{
	for (uint32_t i = 0; i < 3; i++) {
		make_code(&py311, i);
		make_frame(&py311, object(10 + i), i, i < 2 ? object(11 + i) : 0, i > 0);
	}
	put_word(STATE + py311.tstate_frame, local(1), 8);
	put_word(local(1) + py311.cframe_frame, object(10), 8);
	put_word(local(1) + py311.cframe_previous, local(3), 8);
	put_word(local(3) + py311.cframe_frame, object(12), 8);
}

static void in_3_11_a_run_ends_behind_the_frame_that_was_entered_from_c(void **state)
{
	(void)state;
	make_311();
	walk_lang_of(&py311, "nenen");
	assert_string_equal(lang_text(), "n01en2en");
	assert_false(host_lang_misplaced());
}

static void in_3_11_a_call_that_is_only_just_entered_has_no_frames_yet(void **state)
{
	(void)state;
	make_311();
	/* One more call of the interpreter above them: the first run belongs to native frame 1 still. */
	walk_lang_of(&py311, "eenen");
	assert_string_equal(lang_text(), "e01en2en");
	assert_false(host_lang_misplaced());
}

static void in_3_11_a_call_that_calls_has_its_frames_or_is_of_another_interpreter(void **state)
{
	(void)state;
	make_311();
	put_word(STATE + py311.tstate_frame, local(3), 8); /* the chain of an outer call */
	put_word(local(3) + py311.cframe_frame, object(12), 8);
	walk_lang_of(&py311, "nenen");
	assert_string_equal(lang_text(), "nen2en");
	assert_true(host_lang_misplaced());
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
	put_word(STATE + py313.tstate_frame, object(10), 8);
}

static void from_3_12_on_a_run_ends_at_a_frame_of_the_c_stack(void **state)
{
	(void)state;
	make_313();
	walk_lang_of(&py313, "nenen");
	assert_string_equal(lang_text(), "n01en2en");
	assert_false(host_lang_misplaced());
}

static void from_3_12_on_a_run_of_an_outer_call_is_taken_back(void **state)
{
	(void)state;
	make_313();
	walk_lang_of(&py313, "eenen");
	assert_string_equal(lang_text(), "e01en2en");
	assert_false(host_lang_misplaced());
}

static void a_frame_records_where_in_its_code_it_is_and_a_cookie_of_that(void **state)
{
	(void)state;
	make_311();
	walk_lang_of(&py311, "nenen");
	assert_int_equal(lang.frames[1], object(0) | MS_FRAME_LANG << MS_FRAME_TAG_SHIFT);
	assert_int_equal(lang.frames[2] >> MS_FRAME_TAG_SHIFT, MS_FRAME_LANG_AT);
	assert_int_equal(lang.frames[2] >> MS_LANG_SHIFT & 15, MS_LANG_PYTHON);
	assert_int_equal(lang.frames[2] & MS_LANG_NO_INSTR, 200);
	assert_int_equal(lang.frames[2] >> 32 & MS_LANG_COOKIE_MASK,
			 ms_python_cookie(100, 0x1000, 0x2000));
}

static void an_interpreter_without_frames_left_makes_the_stack_a_guess(void **state)
{
	(void)state;
	make_code(&py310, 0);
	make_frame(&py310, object(10), 0, 0, 0);
	put_word(STATE + py310.tstate_frame, object(10), 8);
	walk_lang_of(&py310, "enene");
	assert_string_equal(lang_text(), "0enene");
	assert_true(host_lang_misplaced());
}

static void a_chain_that_was_copied_is_walked_in_place_of_memory(void **state)
{
	const uint64_t at311[] = { object(10), object(11), object(12) };
	const uint64_t at313[] = { object(10), object(11), local(1), object(12), local(3) };

	make_311();
	copy_chain(&py311, at311, "011", 3);
	walk_lang_of(&py311, "nenen");
	assert_string_equal(lang_text(), "n01en2en");
	assert_false(host_lang_misplaced());
	assert_false(host_lang_lost());
	set_up_lang(state);
	make_313();
	copy_chain(&py313, at313, "00313", 5);
	walk_lang_of(&py313, "eenen"); /* the first run is taken back, and comes again */
	assert_string_equal(lang_text(), "e01en2en");
	assert_false(host_lang_misplaced());
	assert_false(host_lang_lost());
}

static void what_was_not_copied_of_a_chain_is_lost(void **state)
{
	const uint64_t at[] = { object(10), object(11) };

	(void)state;
	make_311();
	copy_chain(&py311, at, "01", 2);
	lang.chain.next = object(12);
	walk_lang_of(&py311, "nenen");
	assert_string_equal(lang_text(), "n01en?en");
	assert_true(host_lang_lost());
	lang.chain.lost = 1 + MS_LOST_STATE;
	walk_lang_of(&py311, "nenen");
	assert_string_equal(lang_text(), "n?enen");
	assert_int_equal(lang.frames[2] & MS_LANG_NO_INSTR, MS_LOST_STATE);
}

static void a_state_that_cannot_be_read_is_a_frame_that_says_so(void **state)
{
	(void)state;
	make_311();
	lang.slot = 0;
	walk_lang_of(&py311, "nenen");
	assert_string_equal(lang_text(), "n?enen");
	assert_int_equal(lang.frames[2] & MS_LANG_NO_INSTR, MS_LOST_STATE);
}

static void a_frame_that_cannot_be_read_ends_the_chain(void **state)
{
	(void)state;
	make_311();
	put_word(object(10) + py311.frame_previous, OBJECTS - 0x1000, 8);
	walk_lang_of(&py311, "nenen");
	assert_string_equal(lang_text(), "n0?enen");
}

static void a_chain_in_a_circle_ends_with_the_room_for_frames(void **state)
{
	(void)state;
	make_code(&py311, 0);
	make_frame(&py311, object(10), 0, object(10), 0);
	put_word(STATE + py311.tstate_frame, local(1), 8);
	put_word(local(1) + py311.cframe_frame, object(10), 8);
	walk_lang_of(&py311, "nen");
	assert_in_range(lang.n, MS_MAX_FRAMES - 2, MS_MAX_FRAMES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_stack_is_whole_and_as_libgcc_says),
		cmocka_unit_test(first_guess_is_the_first_frame_that_no_row_covers),
		cmocka_unit_test(deep_recursion_is_whole),
		cmocka_unit_test(deeper_than_we_go_is_truncated),
		cmocka_unit_test(libc_calling_back_is_whole),
		cmocka_unit_test(frames_of_unknown_size_are_walked),
		cmocka_unit_test_setup(up_to_3_10_each_call_of_the_interpreter_has_one_frame,
				       set_up_lang),
		cmocka_unit_test_setup(in_3_11_a_run_ends_behind_the_frame_that_was_entered_from_c,
				       set_up_lang),
		cmocka_unit_test_setup(in_3_11_a_call_that_is_only_just_entered_has_no_frames_yet,
				       set_up_lang),
		cmocka_unit_test_setup(
			in_3_11_a_call_that_calls_has_its_frames_or_is_of_another_interpreter,
			set_up_lang),
		cmocka_unit_test_setup(from_3_12_on_a_run_ends_at_a_frame_of_the_c_stack,
				       set_up_lang),
		cmocka_unit_test_setup(from_3_12_on_a_run_of_an_outer_call_is_taken_back,
				       set_up_lang),
		cmocka_unit_test_setup(a_frame_records_where_in_its_code_it_is_and_a_cookie_of_that,
				       set_up_lang),
		cmocka_unit_test_setup(an_interpreter_without_frames_left_makes_the_stack_a_guess,
				       set_up_lang),
		cmocka_unit_test_setup(a_chain_that_was_copied_is_walked_in_place_of_memory,
				       set_up_lang),
		cmocka_unit_test_setup(what_was_not_copied_of_a_chain_is_lost, set_up_lang),
		cmocka_unit_test_setup(a_state_that_cannot_be_read_is_a_frame_that_says_so,
				       set_up_lang),
		cmocka_unit_test_setup(a_frame_that_cannot_be_read_ends_the_chain, set_up_lang),
		cmocka_unit_test_setup(a_chain_in_a_circle_ends_with_the_room_for_frames,
				       set_up_lang),
	};

#if defined(__SANITIZE_ADDRESS__)
	puts("1..0 # SKIP AddressSanitizer lets nobody read a stack as it is");
	return 0;
#endif
	return cmocka_run_group_tests(tests, setup, NULL);
}
