/*
 * V8 in a process made of bytes: frames are named from sound objects, of the function that the kernel saw, and from
 * nothing else; its frames are walked by rbp, in the kernel's own code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/host_walk.h"
#include "v8_fixture.h"

static struct v8_process p;
static struct lang_runtime rt;
static struct lang_frames all;
static uint64_t words[2];

static int fresh(void **state)
{
	struct err e = { 0 };

	(void)state;
	v8f_init(&p);
	assert_int_equal(lang_runtime_find(&p.at, NULL, &p.memory.mem, &rt, &e), 0);
	memset(&all, 'x', sizeof(all));
	return 0;
}

static enum lang_decoded decode(void)
{
	return lang_decode_all(&rt, &p.memory.mem, words, &all);
}

static enum lang_decoded interpreted(uint32_t offset)
{
	v8f_words(v8f_addr(V8F_OUTER), v8f_cookie(V8F_NUMBER), 53 + offset, words);
	return decode();
}

static enum lang_decoded optimized(uint32_t off, uint32_t exact)
{
	v8f_words(v8f_addr(V8F_OPTIMIZED_AT + 16 + off), v8f_cookie(V8F_NUMBER), MS_V8_CODE | exact,
		  words);
	return decode();
}

static void check_frame(uint32_t i, const char *function, uint32_t line)
{
	assert_true(i < all.n);
	assert_string_equal(all.frame[i].function, function);
	assert_string_equal(all.frame[i].file, "/srv/app/main.js");
	assert_int_equal(all.frame[i].line, line);
}

/* --- functions --- */

static void an_interpreted_frame_has_its_function_file_and_line(void **state)
{
	(void)state;
	assert_string_equal(rt.name, "V8 11.3.244");
	assert_int_equal(interpreted(4), LANG_DECODED);
	assert_int_equal(all.n, 1);
	check_frame(0, "outer", 3);
	/* A place of the function's entry, and one that is not known. */
	v8f_words(v8f_addr(V8F_OUTER), v8f_cookie(V8F_NUMBER), MS_V8_AT, words);
	assert_int_equal(decode(), LANG_DECODED);
	check_frame(0, "outer", 0);
}

static void a_position_holds_from_its_bytecode_to_the_next(void **state)
{
	struct v8_reader r = { .rt = &rt.v8, .mem = &p.memory.mem };
	static const struct {
		int64_t at, before, after;
	} want[] = { { V8_ENTRY, 13, 35 }, { 0, 35, 42 }, { 3, 35, 42 },  { 4, 42, 51 },
		     { 5, 42, 51 },        { 6, 51, -1 }, { 999, 51, -1 } };
	struct v8_position before, after;

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_int_equal(
			v8_positions(&r, v8f_ptr(V8F_POSITIONS), want[i].at, &before, &after), 0);
		assert_int_equal(before.offset, want[i].before);
		assert_int_equal(after.offset, want[i].after);
		assert_int_equal(before.inlined, -1);
	}
}

static void another_function_in_its_place_is_not_named(void **state)
{
	(void)state;
	v8f_put(&p, V8F_OUTER + 52, V8F_NUMBER + 7, 4);
	assert_int_equal(interpreted(4), LANG_GONE);
	v8f_object(&p, V8F_OUTER, V8F_SCRIPT);
	assert_int_equal(interpreted(4), LANG_GONE);
}

static void functions_of_its_own_have_a_name_alone(void **state)
{
	(void)state;
	v8f_words(v8f_addr(V8F_BUILTIN), v8f_cookie(0xffffffff), MS_V8_AT, words);
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(all.frame[0].function, "inner");
	assert_string_equal(all.frame[0].file, "");
	assert_int_equal(all.frame[0].line, 0);
	assert_false(all.frame[0].stub);
	/* Without a name it is in none of the program's stacks. */
	v8f_put(&p, V8F_BUILTIN + 16, v8f_ptr(V8F_UNDEFINED), 8);
	assert_int_equal(decode(), LANG_DECODED);
	assert_true(all.frame[0].stub);
	v8f_put(&p, V8F_OUTER + 16, v8f_ptr(V8F_UNDEFINED), 8);
	assert_int_equal(interpreted(4), LANG_DECODED);
	check_frame(0, "(anonymous)", 3);
	assert_false(all.frame[0].stub);
}

static void a_function_without_a_name_is_called_after_what_it_was_assigned_to(void **state)
{
	(void)state;
	/* No name, its slot, then that. */
	v8f_smi(&p, V8F_OUTER_SCOPE + 48, 0);
	v8f_text(&p, V8F_TEXTS, "Cache.refresh");
	v8f_put(&p, V8F_OUTER_SCOPE + 64, v8f_ptr(V8F_TEXTS), 8);
	assert_int_equal(interpreted(4), LANG_DECODED);
	check_frame(0, "Cache.refresh", 3);
	v8f_put(&p, V8F_OUTER_SCOPE + 64, v8f_ptr(V8F_UNDEFINED), 8);
	v8f_put(&p, V8F_OUTER_SCOPE + 72, v8f_ptr(V8F_INNER_SCOPE), 8);
	assert_int_equal(interpreted(4), LANG_DECODED);
	check_frame(0, "(anonymous)", 3);
}

/* --- lines --- */

static void lines_are_counted_where_nobody_has_asked_for_one(void **state)
{
	struct v8_reader r = { .rt = &rt.v8, .mem = &p.memory.mem };
	static const char text[] = "a\r\nb\rc\nd";

	(void)state;
	v8f_put(&p, V8F_SCRIPT_AT + 56, v8f_ptr(V8F_UNDEFINED), 8);
	assert_int_equal(interpreted(4), LANG_DECODED);
	check_frame(0, "outer", 3);
	/* All ends of lines. */
	v8f_text(&p, V8F_SOURCE, text);
	assert_int_equal(v8_line(&r, v8f_ptr(V8F_SCRIPT_AT), 0), 1);
	assert_int_equal(v8_line(&r, v8f_ptr(V8F_SCRIPT_AT), 3), 2);
	assert_int_equal(v8_line(&r, v8f_ptr(V8F_SCRIPT_AT), 5), 3);
	assert_int_equal(v8_line(&r, v8f_ptr(V8F_SCRIPT_AT), 7), 4);
	assert_int_equal(v8_line(&r, v8f_ptr(V8F_SCRIPT_AT), 8), 4);
	assert_int_equal(v8_line(&r, v8f_ptr(V8F_SCRIPT_AT), 9), 0);
	v8f_object(&p, V8F_SOURCE, V8F_TWO_BYTES);
	v8f_put(&p, V8F_SOURCE + 16, 0x0061202800612029ULL, 8);
	v8f_put(&p, V8F_SOURCE + 12, 4, 4);
	assert_int_equal(v8_line(&r, v8f_ptr(V8F_SCRIPT_AT), 3), 3);
	/* In the middle of a page of HTML. */
	v8f_smi(&p, V8F_SCRIPT_AT + 24, 100);
	assert_int_equal(v8_line(&r, v8f_ptr(V8F_SCRIPT_AT), 3), 103);
}

/* --- strings --- */

static void check_text(uint32_t off, const char *want)
{
	struct v8_reader r = { .rt = &rt.v8, .mem = &p.memory.mem };
	char text[64];
	bool cut;

	assert_int_equal(v8_text(&r, v8f_ptr(off), text, sizeof(text), &cut), 0);
	assert_string_equal(text, want);
	assert_false(cut);
}

static void strings_of_every_shape_are_read(void **state)
{
	const uint32_t one = V8F_TEXTS, two = V8F_TEXTS + 0x40, cons = V8F_TEXTS + 0x80,
		       sliced = V8F_TEXTS + 0xc0, thin = V8F_TEXTS + 0x100,
		       outside = V8F_TEXTS + 0x140;
	struct v8_reader r = { .rt = &rt.v8, .mem = &p.memory.mem };
	char text[8];
	bool cut;

	(void)state;
	v8f_text(&p, one, "caf\xe9\n");
	check_text(one, "café\\x0a");
	v8f_object(&p, two, V8F_TWO_BYTES);
	v8f_put(&p, two + 12, 3, 4);
	v8f_put(&p, two + 16, 0xdc4ad83d0416ULL, 8);
	check_text(two, "Ж\xf0\x9f\x91\x8a");
	v8f_object(&p, cons, V8F_CONS);
	v8f_put(&p, cons + 12, 8, 4);
	v8f_put(&p, cons + 16, v8f_ptr(two), 8);
	v8f_put(&p, cons + 24, v8f_ptr(V8F_OUTER_NAME), 8);
	check_text(cons, "Ж\xf0\x9f\x91\x8aouter");
	v8f_object(&p, sliced, V8F_SLICED);
	v8f_put(&p, sliced + 12, 3, 4);
	v8f_put(&p, sliced + 16, v8f_ptr(V8F_OUTER_NAME), 8);
	v8f_smi(&p, sliced + 24, 2);
	check_text(sliced, "ter");
	v8f_object(&p, thin, V8F_THIN);
	v8f_put(&p, thin + 12, 3, 4);
	v8f_put(&p, thin + 16, v8f_ptr(sliced), 8);
	check_text(thin, "ter");
	v8f_object(&p, outside, V8F_EXTERNAL);
	v8f_put(&p, outside + 12, 5, 4);
	v8f_put(&p, outside + 24, v8f_addr(V8F_INNER_NAME + 16), 8);
	check_text(outside, "inner");
	/* What has no end, what is longer than the room, what is none. */
	v8f_put(&p, cons + 16, v8f_ptr(cons), 8);
	assert_int_not_equal(v8_text(&r, v8f_ptr(cons), text, sizeof(text), &cut), 0);
	assert_int_equal(v8_text(&r, v8f_ptr(V8F_FILE), text, sizeof(text), &cut), 0);
	assert_true(cut);
	assert_int_not_equal(v8_text(&r, v8f_ptr(V8F_OUTER), text, sizeof(text), &cut), 0);
	v8f_put(&p, sliced + 12, 9, 4);
	assert_int_not_equal(v8_text(&r, v8f_ptr(sliced), text, sizeof(text), &cut), 0);
}

/* --- code --- */

static void code_by_sparkplug_has_the_lines_of_its_bytecodes(void **state)
{
	static const struct {
		uint32_t end; /* of the call, in the code */
		uint32_t line;
	} want[] = { { 0x10, 2 }, { 0x14, 3 }, { 0x1c, 3 }, { 0x1d, 3 }, { 0x3c, 3 } };
	const uint32_t at = V8F_BASELINE_AT + 16;
	struct v8_reader r = { .rt = &rt.v8, .mem = &p.memory.mem };
	struct v8_code code;

	(void)state;
	v8f_put(&p, V8F_OUTER + 8, v8f_ptr(V8F_BASELINE), 8);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		v8f_words(v8f_addr(V8F_OUTER), v8f_cookie(V8F_NUMBER),
			  MS_V8_BASELINE | ((uint32_t)v8f_addr(at + want[i].end) & MS_V8_AT),
			  words);
		assert_int_equal(decode(), LANG_DECODED);
		check_frame(0, "outer", want[i].line);
	}
	/* Bytecodes of every size: the last instructions of one, the first of the next. */
	assert_true(v8_code_read(&r, v8f_ptr(V8F_BASELINE), &code));
	assert_int_equal(v8_baseline_offset(&r, &code, v8f_ptr(V8F_BYTECODES_AT), 0x10), V8_ENTRY);
	assert_int_equal(v8_baseline_offset(&r, &code, v8f_ptr(V8F_BYTECODES_AT), 0x11), 0);
	assert_int_equal(v8_baseline_offset(&r, &code, v8f_ptr(V8F_BYTECODES_AT), 0x14), 0);
	assert_int_equal(v8_baseline_offset(&r, &code, v8f_ptr(V8F_BYTECODES_AT), 0x15), 1);
	assert_int_equal(v8_baseline_offset(&r, &code, v8f_ptr(V8F_BYTECODES_AT), 0x1d), 4);
	assert_int_equal(v8_baseline_offset(&r, &code, v8f_ptr(V8F_BYTECODES_AT), 0x3d), 6);
	assert_int_equal(v8_baseline_offset(&r, &code, v8f_ptr(V8F_BYTECODES_AT), 0xcd), 12);
	assert_int_equal(v8_baseline_offset(&r, &code, v8f_ptr(V8F_BYTECODES_AT), 0x1ff),
			 V8_NOWHERE);
}

static void inlined_functions_are_frames_innermost_first(void **state)
{
	(void)state;
	assert_int_equal(optimized(0x21, 0), LANG_DECODED);
	assert_int_equal(all.n, 2);
	check_frame(0, "inner", 4);
	check_frame(1, "outer", 3);
	/* The call before, that ends where the next position begins. */
	assert_int_equal(optimized(0x20, 0), LANG_DECODED);
	assert_int_equal(all.n, 1);
	check_frame(0, "outer", 3);
}

/* Between a place in a function that was inlined and one that is not: only the outer one is certain. */
static void an_interrupted_thread_is_in_what_both_places_are_in(void **state)
{
	(void)state;
	assert_int_equal(optimized(0x24, MS_V8_EXACT), LANG_DECODED);
	assert_int_equal(all.n, 1);
	check_frame(0, "outer", 3);
	assert_int_equal(optimized(0x2, MS_V8_EXACT), LANG_DECODED);
	assert_int_equal(all.n, 1);
	check_frame(0, "outer", 0);
}

static void code_of_another_function_is_not_named(void **state)
{
	(void)state;
	v8f_put(&p, V8F_DEOPT + 16 + 48, v8f_ptr(V8F_INNER), 8);
	assert_int_equal(optimized(0x21, 0), LANG_GONE);
	fresh(NULL);
	v8f_put(&p, V8F_OPTIMIZED + 56, 0x10, 4); /* it ends before */
	assert_int_equal(optimized(0x21, 0), LANG_GONE);
	fresh(NULL);
	v8f_put(&p, V8F_OPTIMIZED + 32, v8f_ptr(V8F_BASELINE_AT), 8); /* it has moved */
	assert_int_equal(optimized(0x21, 0), LANG_GONE);
}

static void code_without_a_frame_is_known_by_its_bytes(void **state)
{
	const uint64_t pc = v8f_addr(V8F_OPTIMIZED_AT + 16 + 0x100);

	(void)state;
	v8f_words(pc, ms_lang_cookie(0x9090909090909090ULL), MS_V8_BYTES | MS_V8_EXACT, words);
	assert_int_equal(decode(), LANG_DECODED);
	check_frame(0, "outer", 3);
	v8f_put(&p, V8F_OPTIMIZED + 48, 3, 4);
	assert_int_equal(decode(), LANG_DECODED);
	assert_string_equal(all.frame[0].function, "[regular expression]");
	v8f_put(&p, V8F_OPTIMIZED_AT + 16 + 0x100, 0xcc, 1);
	assert_int_equal(decode(), LANG_GONE);
}

/* Whatever part of memory is missing: no other name, and no line that is not the frame's. */
static void what_cannot_be_read_is_gone_or_unknown(void **state)
{
	(void)state;
	for (uint32_t hole = V8F_MAPS; hole < V8F_JIT_END; hole += 8) {
		p.memory.hole = hole;
		p.memory.hole_len = 8;
		for (int kind = 0; kind < 2; kind++) {
			enum lang_decoded d = kind ? optimized(0x21, 0) : interpreted(4);

			if (d != LANG_DECODED)
				continue;
			for (uint32_t i = 0; i < all.n; i++) {
				const char *name = all.frame[i].function;
				bool in = kind && all.n == 2 && !i;

				assert_true(!strcmp(name, in ? "inner" : "outer") ||
					    !strcmp(name, "(anonymous)"));
				assert_true(!all.frame[i].line ||
					    all.frame[i].line == (in ? 4 : 3));
			}
		}
	}
}

/* --- the walk --- */

#define STACK 0x7f0000000000ULL
#define BLOB  0x500000ULL /* V8's own code: frames by rbp, without rows */
#define CXX   0x600000ULL /* C++: frames of 0x40 bytes, the last page calls nobody */

enum { POOL_WORDS = 4096 };

static struct {
	uint8_t stack[0x1000];
	uint64_t sp;    /* where the next frame goes */
	uint64_t fp_at; /* … and the word that is to point to it */
	uint32_t pool[POOL_WORDS];
	struct ms_table tables[2];
	struct ms_rule rules[MS_RULE_FIRST + 1];
	uint64_t regs[MS_N_REGS], frames[MS_MAX_FRAMES];
	uint32_t n;
	enum ms_verdict verdict;
} it;

static bool read_memory(void *ctx, void *dst, size_t size, uint64_t addr)
{
	static const uint8_t call[] = { 0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0 };

	(void)ctx;
	if (addr - BLOB < 0x2000 && size <= sizeof(call)) {
		memcpy(dst, call, size);
		return true;
	}
	if (addr - BLOB < 0x2000) {
		memset(dst, 0x90, size);
		return true;
	}
	return fake_process_read(&p.memory, addr, dst, size);
}

static void put(uint64_t addr, uint64_t word)
{
	memcpy(it.stack + (addr - STACK), &word, 8);
}

/* A frame of `words` words below rbp, the first of which are given, that returns to `ra`. */
static void push(uint64_t ra, uint64_t mark, uint64_t function, uint64_t bytecodes, uint64_t offset)
{
	uint64_t fp = it.sp + 0x60;

	if (it.fp_at)
		put(it.fp_at, fp);
	else
		it.regs[MS_X86_RBP] = fp;
	put(fp - 8, mark);
	put(fp - 16, function);
	put(fp - 24, 2ULL << 32);
	put(fp - 32, bytecodes);
	put(fp - 40, offset);
	put(fp + 8, ra);
	it.fp_at = fp;
	it.sp = fp + 16;
}

static int set_up(void **state)
{
	const struct ms_span spans[] = {
		{ .start = BLOB, .end = BLOB + 0x2000, .kind = MS_SPAN_TABLE, .table = 0 },
		{ .start = CXX, .end = CXX + 0x2000, .kind = MS_SPAN_TABLE, .table = 1 },
		{ .start = v8f_addr(V8F_JIT), .end = v8f_addr(V8F_JIT_END), .kind = MS_SPAN_FP },
	};

	fresh(state);
	memset(&it, 0, sizeof(it));
	memcpy(it.pool, spans, sizeof(spans));
	for (uint32_t t = 0; t < 2; t++) {
		it.tables[t] =
			(struct ms_table){ .first_page = (t ? CXX : BLOB) >> MS_ROW_PAGE_SHIFT,
					   .n_pages = 2,
					   .dir = 512 + 8 * t,
					   .rows = 1024 + 8 * t,
					   .serial = t + 1 };
		for (uint32_t i = 0; i < 2; i++) {
			it.pool[512 + 8 * t + i] = i;
			it.pool[1024 + 8 * t + i] = ms_row(0, !t  ? MS_RULE_IX_FP
							      : i ? MS_RULE_IX_END
								  : MS_RULE_FIRST);
		}
		it.pool[512 + 8 * t + 2] = 2;
	}
	it.rules[MS_RULE_IX_FP].kind = MS_RULE_FP;
	it.rules[MS_RULE_IX_END].kind = MS_RULE_END;
	it.rules[MS_RULE_FIRST] = (struct ms_rule){
		.kind = MS_RULE_REG, .reg = MS_X86_RSP, .off = 0x40, .ra_off = -8
	};
	it.sp = STACK + 0x100;
	it.regs[MS_X86_RSP] = it.sp;
	return 0;
}

static void walk(uint64_t pc)
{
	const struct publish_mem mem = { .pool = it.pool,
					 .n_words = POOL_WORDS,
					 .tables = it.tables,
					 .n_tables = 2,
					 .rules = it.rules,
					 .n_rules = MS_RULE_FIRST + 1,
					 .rule_stride = sizeof(it.rules[0]) };
	const struct ms_space space = { .n_spans = 3 };
	const struct host_stack stack = { .pc = pc,
					  .regs = it.regs,
					  .addr = STACK,
					  .bytes = it.stack,
					  .len = sizeof(it.stack),
					  .space = &space,
					  .read = read_memory,
					  .lang = &rt.row };
	uint64_t missing;

	/* JSEntry, called by C++. */
	push(CXX + 0x100, 2, v8f_ptr(V8F_UNDEFINED), 0, 0);
	put(it.sp + 0x38, CXX + 0x1100);
	it.verdict = host_walk(&mem, &stack, it.frames, &it.n, &missing);
}

/* As text: i interpreted, s by Sparkplug, o optimized, b by its bytes, f a function without a place, n native. */
static const char *text(void)
{
	static char out[MS_MAX_FRAMES + 1];
	uint32_t n = 0;

	for (uint32_t i = 0; i < it.n; i++) {
		uint32_t low = (uint32_t)it.frames[i + 1];

		if (it.frames[i] >> MS_FRAME_TAG_SHIFT != MS_FRAME_LANG) {
			out[n++] = 'n';
			continue;
		}
		i++;
		out[n++] = (low & MS_V8_KIND) == MS_V8_CODE       ? 'o'
			   : (low & MS_V8_KIND) == MS_V8_BASELINE ? 's'
			   : (low & MS_V8_KIND) == MS_V8_BYTES    ? 'b'
			   : (low & MS_V8_AT) == MS_V8_AT         ? 'f'
								  : 'i';
	}
	out[n] = '\0';
	return out;
}

#define CONTEXT v8f_ptr(V8F_ENDS)
#define JIT_PC  (v8f_addr(V8F_OPTIMIZED_AT) + 16 + 0x100)

/* The walk through its frames is that of x86-64. */
static void needs_x86(void)
{
#if !defined(__x86_64__)
	print_message("frames of V8 are walked on x86-64 only\n");
	skip();
#endif
}

static void each_kind_of_frame_is_recorded_as_what_it_is(void **state)
{
	(void)state;
	needs_x86();
	push(BLOB + 0x20, 34, 0, 0, 0); /* a stub, called by … */
	push(JIT_PC, CONTEXT, v8f_ptr(V8F_JS), v8f_ptr(V8F_BYTECODES_AT),
	     57ULL << 32); /* … the interpreter */
	push(JIT_PC, CONTEXT, v8f_ptr(V8F_JS), v8f_ptr(V8F_BYTECODES_AT), v8f_ptr(V8F_ENDS));
	push(BLOB + 0x40, CONTEXT, v8f_ptr(V8F_JS), v8f_ptr(V8F_ENDS), 0);
	push(BLOB + 0x60, CONTEXT, v8f_ptr(V8F_CLOSURE), v8f_ptr(V8F_ENDS), 5ULL << 32);
	walk(BLOB + 0x10);
	/* Then JSEntry, and two of C++. */
	assert_string_equal(text(), "nisofnnn");
	assert_int_equal(it.verdict, MS_COMPLETE);
	assert_int_equal(it.frames[1] & MS_FRAME_ADDR_MASK, v8f_addr(V8F_OUTER));
	assert_int_equal(it.frames[2] & MS_V8_AT, 57);
	assert_int_equal(it.frames[3] & MS_FRAME_ADDR_MASK, v8f_addr(V8F_OUTER));
	assert_int_equal(it.frames[4] & MS_V8_AT, JIT_PC & MS_V8_AT);
	assert_int_equal(it.frames[5] & MS_FRAME_ADDR_MASK, JIT_PC);
	assert_int_equal(it.frames[7] & MS_FRAME_ADDR_MASK, v8f_addr(V8F_BUILTIN));
}

static void what_is_no_function_is_a_native_frame_and_a_guess(void **state)
{
	(void)state;
	needs_x86();
	push(BLOB + 0x20, CONTEXT, v8f_ptr(V8F_SOURCE), 0, 0);
	walk(BLOB + 0x10);
	assert_string_equal(text(), "nnnn");
	fresh(NULL);
	set_up(NULL);
	push(BLOB + 0x20, 34, 0, 0, 0);
	push(JIT_PC, CONTEXT, 1, 0, 0);
	walk(BLOB + 0x10);
	assert_string_equal(text(), "nnnnn");
}

/* A collector leaves the new address in its place, and its old map there. */
static void a_function_that_is_being_moved_is_found(void **state)
{
	(void)state;
	needs_x86();
	v8f_put(&p, V8F_JS, v8f_addr(V8F_TEXTS), 8);
	v8f_object(&p, V8F_TEXTS, V8F_FUNCTION);
	v8f_put(&p, V8F_TEXTS + 24, v8f_ptr(V8F_OUTER), 8);
	push(BLOB + 0x20, CONTEXT, v8f_ptr(V8F_JS), v8f_ptr(V8F_BYTECODES_AT), 57ULL << 32);
	walk(BLOB + 0x10);
	assert_string_equal(text(), "innn");
}

/* The return address is on top of the stack, rbp still the caller's. */
static void code_without_a_frame_is_a_frame_of_its_own(void **state)
{
	(void)state;
	needs_x86();
	put(it.sp, BLOB + 0x105);
	push(BLOB + 0x20, CONTEXT, v8f_ptr(V8F_JS), v8f_ptr(V8F_BYTECODES_AT), 57ULL << 32);
	walk(BLOB + 0x10);
	assert_string_equal(text(), "ninnn");
	assert_int_equal(it.frames[2] & MS_V8_AT, 57);
	/* Where a compiled function begins, rdi has it … */
	for (int op = 0; op < 3; op++) {
		static const uint64_t code[] = { 0x5756e5894855ULL,
						 0x55909090ULL | 0xe58948ULL << 32, 0xc3 };

		set_up(NULL);
		v8f_put(&p, (uint32_t)(JIT_PC - V8F_BIAS), code[op], 8);
		put(it.sp, BLOB + 0x105);
		it.regs[5] = v8f_ptr(V8F_CLOSURE);
		push(BLOB + 0x20, CONTEXT, v8f_ptr(V8F_JS), v8f_ptr(V8F_BYTECODES_AT), 57ULL << 32);
		walk(JIT_PC);
		/* … and where it returns, anything else. */
		assert_string_equal(text(), op == 2 ? "binnn" : "finnn");
		if (op < 2)
			assert_int_equal(it.frames[0] & MS_FRAME_ADDR_MASK, v8f_addr(V8F_BUILTIN));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_interpreted_frame_has_its_function_file_and_line, fresh),
		cmocka_unit_test_setup(a_position_holds_from_its_bytecode_to_the_next, fresh),
		cmocka_unit_test_setup(another_function_in_its_place_is_not_named, fresh),
		cmocka_unit_test_setup(functions_of_its_own_have_a_name_alone, fresh),
		cmocka_unit_test_setup(
			a_function_without_a_name_is_called_after_what_it_was_assigned_to, fresh),
		cmocka_unit_test_setup(lines_are_counted_where_nobody_has_asked_for_one, fresh),
		cmocka_unit_test_setup(strings_of_every_shape_are_read, fresh),
		cmocka_unit_test_setup(code_by_sparkplug_has_the_lines_of_its_bytecodes, fresh),
		cmocka_unit_test_setup(inlined_functions_are_frames_innermost_first, fresh),
		cmocka_unit_test_setup(an_interrupted_thread_is_in_what_both_places_are_in, fresh),
		cmocka_unit_test_setup(code_of_another_function_is_not_named, fresh),
		cmocka_unit_test_setup(code_without_a_frame_is_known_by_its_bytes, fresh),
		cmocka_unit_test_setup(what_cannot_be_read_is_gone_or_unknown, fresh),
		cmocka_unit_test_setup(each_kind_of_frame_is_recorded_as_what_it_is, set_up),
		cmocka_unit_test_setup(what_is_no_function_is_a_native_frame_and_a_guess, set_up),
		cmocka_unit_test_setup(a_function_that_is_being_moved_is_found, set_up),
		cmocka_unit_test_setup(code_without_a_frame_is_a_frame_of_its_own, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
