/*
 * Functions that are active in optimized code, by what V8 keeps for going back to the interpreter: of a process made of
 * bytes, and of translations and safepoints that were recorded from node 18 to 24 (x86-64).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "v8_fixture.h"

static struct v8_process p;
static struct lang_runtime rt;
static struct lang_frames all;
static struct v8_active active[LANG_INLINED_MAX];

static int fresh(void **state)
{
	struct err e = { 0 };

	(void)state;
	v8f_init(&p);
	assert_int_equal(lang_runtime_find(&p.at, NULL, &p.memory.mem, &rt, &e), 0);
	memset(&all, 'x', sizeof(all));
	return 0;
}

static enum lang_decoded optimized(uint32_t off, uint32_t exact)
{
	uint64_t words[2];

	v8f_words(v8f_addr(V8F_OPTIMIZED_AT + 16 + off), v8f_cookie(V8F_NUMBER), MS_V8_CODE | exact,
		  words);
	return lang_decode_all(&rt, &p.memory.mem, words, &all);
}

static void check_frame(uint32_t i, const char *function, bool in_file, uint32_t line)
{
	assert_true(i < all.n);
	assert_string_equal(all.frame[i].function, function);
	assert_string_equal(all.frame[i].file, in_file ? "/srv/app/main.js" : "");
	assert_int_equal(all.frame[i].line, line);
}

/* With V8's own function between, which has no source. */
static void a_call_is_in_the_functions_that_error_stack_has(void **state)
{
	static const struct {
		uint32_t pc, line;
	} calls[] = { { 0x28, 3 }, { 0x38, 2 }, { 0x1f0, 2 } };

	(void)state;
	v8f_put(&p, V8F_INNER + 8, v8f_ptr(V8F_BYTECODES_AT), 8);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(optimized(calls[i].pc, 0), LANG_DECODED);
		assert_int_equal(all.n, 3);
		check_frame(0, "inner", true, calls[i].line);
		check_frame(1, "inner", false, 0);
		check_frame(2, "outer", true, 3);
	}
	/* One that says nothing, and what is no call of this table: by positions. */
	assert_int_equal(optimized(0x48, 0), LANG_DECODED);
	assert_int_equal(all.n, 1);
	check_frame(0, "outer", true, 3);
	assert_int_equal(optimized(0x21, 0), LANG_DECODED);
	assert_int_equal(all.n, 2);
	check_frame(0, "inner", true, 4);
}

/* A table of positions has only functions that have source. */
static void functions_of_v8_that_were_inlined_are_between(void **state)
{
	(void)state;
	p.bytes[V8F_TRANSLATIONS + 16 + 5] =
		8; /* outer has called at bytecode 4, as in the table of inlined functions */
	assert_int_equal(optimized(0x21, 0), LANG_DECODED);
	assert_int_equal(all.n, 3);
	check_frame(0, "inner", true, 4);
	check_frame(1, "inner", false, 0);
	check_frame(2, "outer", true, 3);
}

/* Positions of each instruction, not of calls alone: the last one before is where the thread is. */
static void with_all_positions_an_interrupted_thread_is_at_the_last_one(void **state)
{
	(void)state;
	v8f_put(&p, V8F_SAFEPOINTS, 0, 4);
	assert_int_equal(optimized(0x24, MS_V8_EXACT), LANG_DECODED);
	assert_int_equal(all.n, 2);
	check_frame(0, "inner", true, 4);
	check_frame(1, "outer", true, 3);
	v8f_put(&p, V8F_SAFEPOINTS, 3, 4);
	assert_int_equal(optimized(0x24, MS_V8_EXACT), LANG_DECODED);
	assert_int_equal(all.n, 1);
}

/* --- recorded --- */

static uint32_t from_hex(const char *hex, uint8_t *to)
{
	uint32_t n = (uint32_t)strlen(hex) / 2;

	for (uint32_t i = 0; i < n; i++) {
		char two[3] = { hex[2 * i], hex[2 * i + 1] };

		to[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

static const struct recorded {
	uint32_t version;
	const char *translations;
	int16_t begins[16];   /* of each; -1: no more */
	int16_t bytecode[16]; /* where the innermost function is, as V8 keeps beside it */
	uint8_t n[16];        /* functions */
} recorded[] = {
	/* node 24, Maglev: f(), into which inner() was inlined */
	{ 13 << 16 | 6,
	  "0e0002020116020004280628032805270025270227012703250e190404332525252e010c000202260426062702270326082525260a"
	  "0e0004040116020004280628032805270025252525250122000202260426062702270326082525250e280404400e2d020201200200"
	  "04351d010e3902020120020004351e0a0e45040437010c00020234260a0e520202010302000430280432",
	  { 0, 25, 53, 93, 98, 110, 122, 135, -1 },
	  { 11, 6, 17, 17, 16, 16, 6, -1 },
	  { 1, 2, 2, 2, 1, 1, 2, 1 } },
	/* … middle() with inner() */
	{ 13 << 16 | 6,
	  "0e000202010c0200042604280328052807260614031e0a252526080e1b0404015a020004321402252f25010c000202260a260c2805"
	  "280726062525260e0e000404015a020004260428032805270226061402252525250122000202260a260c2805270226062525250e2b"
	  "0404410e3002020164020004361d010e3c02020164020004361e0e0e48040431280733010c00020230280730260e0e5b0202010302"
	  "00043028072e25310e6a0202014c0200043028072e26102612300e7c0202014c0200043028072e1e0c1e0e30",
	  { 0, 27, 61, 104, 109, 121, 133, 152, 167, 185, -1 },
	  { 6, 6, 17, 17, 50, 50, 6, -1, 38, 38 },
	  { 1, 2, 2, 2, 1, 1, 2, 1, 1, 1 } },
	/* node 22, TurboFan: middle() with inner() */
	{ 12 << 16 | 4,
	  "0c000404015a06082306230322012307230a180220202020010c00042108210a22012307210c2020210e0c2a04042c22073222072c"
	  "0c3504042c22073222072c0c4004042c22073222072c0c4b0202016406082b22072d18090c5904043c0c5e0202010306082a23052a"
	  "202c0c6c0202014c06082a23052a211021122b0c7d0202014c06082a23052a190c190e2b",
	  { 0, 42, 53, 64, 75, 89, 94, 108, 125, -1 },
	  { 6, 6, 6, 6, 50, 6, -1, 38, 38 },
	  { 2, 2, 2, 2, 1, 2, 1, 1, 1 } },
	/* node 20, the same */
	{ 11 << 16 | 3,
	  "02000404185a06081f061f031e011f071f0a0f021c1c1c1c180c00041d081d0a1e011f071d0c1c1c1d0e022a0404281e072e1e0728"
	  "02350404281e072e1e072802400404281e072e1e0728024b020218640608271e07290f080259040438025e020218030608261f0526"
	  "1c28026c0202184c0608261f05261d101d1227027d0202184c0608261f0526100c100e27",
	  { 0, 42, 53, 64, 75, 89, 94, 108, 125, -1 },
	  { 6, 6, 6, 6, 50, 6, -1, 38, 38 },
	  { 2, 2, 2, 2, 1, 2, 1, 1, 1 } },
	/* node 18: inner() */
	{ 10 << 16 | 2,
	  "06020200240c02040000300630032e043007300a2c042c042c0606020200240c02040000300630032e042e02300a2c042c042c0606"
	  "020200240c02040000300630032e042e02300a2c042c042c0606020200240c02040000300630032e042e02300a2c042c042c060602"
	  "0200240c02040000300630032e043007300a2c042c042c06060202002403020400003006300330053007300a2c042c042c04",
	  { 0, 26, 52, 78, 104, 130, -1 },
	  { 6, 6, 6, 6, 6, -1 },
	  { 1, 1, 1, 1, 1, 1 } },
};

static void translations_of_every_version_are_read(void **state)
{
	struct v8_reader r = { .rt = &rt.v8, .mem = &p.memory.mem };
	struct v8_code code = { .deopt = v8f_ptr(V8F_DEOPT) };

	(void)state;
	for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++) {
		const struct recorded *it = &recorded[i];
		uint8_t bytes[512];
		uint32_t n = 0;

		rt.v8.deopts = v8_deopt_layout(it->version);
		v8f_bytes(&p, V8F_TRANSLATIONS, bytes, from_hex(it->translations, bytes));
		for (; it->begins[n] >= 0; n++)
			v8f_smi(&p, V8F_FIRST_DEOPT + 24 * n + 8, it->begins[n]);
		v8f_smi(&p, V8F_DEOPT + 8, (int32_t)(11 + 3 * n));
		assert_int_equal(v8_deopts(&r, &code), n);
		for (uint32_t d = 0; d < n; d++) {
			assert_int_equal(v8_deopt_frames(&r, &code, d, active), it->n[d]);
			assert_int_equal(active[0].bytecode, it->bytecode[d]);
			assert_false(active[0].builtin);
		}
		assert_int_equal(v8_deopt_frames(&r, &code, n, active), 0);
	}
}

static void safepoints_of_every_version_are_read(void **state)
{
	static const struct {
		uint32_t version, kind;
		const char *table;
		uint32_t pc;
		int32_t deopt;
	} want[] = {
		{ 13 << 16 | 6, 12, "050000000200000091000000000000001c05fb00db000001", 0x1c, 4 },
		{ 13 << 16 | 6, 12, "050000000200000091000000000000001c05fb00db000001", 0xfa, 4 },
		{ 13 << 16 | 6, 12, "050000000200000091000000000000001c05fb00db000001", 0xdb, -1 },
		{ 12 << 16 | 4, 13, "03000000a1040000520107d601720108da01970109de01040404", 0x152,
		  6 },
		{ 12 << 16 | 4, 13, "03000000a1040000520107d601720108da01970109de01040404", 0x197,
		  8 },
		{ 12 << 16 | 4, 13, "03000000a1040000520107d601720108da01970109de01040404", 0x1d9,
		  7 },
		{ 11 << 16 | 3, 13, "03000000a1040000430107c701630108cb01880109cf01040404", 0x163,
		  7 },
		{ 10 << 16 | 2, 13, "03000000a1040000430107cc01630108d0018b0109d401040404", 0x18b,
		  8 },
		{ 9 << 16 | 4, 13,
		  "03000000010000008c0100000600000038020000b1010000070000003f020000de0100000800000046020000",
		  0x1b1, 7 },
		{ 9 << 16 | 4, 13,
		  "03000000010000008c0100000600000038020000b1010000070000003f020000de0100000800000046020000",
		  0x246, 8 },
		{ 9 << 16 | 4, 13,
		  "03000000010000008c0100000600000038020000b1010000070000003f020000de0100000800000046020000",
		  0x1b2, -1 },
	};
	struct v8_reader r = { .rt = &rt.v8, .mem = &p.memory.mem };

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct v8_code code = { .start = v8f_addr(V8F_SAFEPOINTS), .kind = want[i].kind };

		rt.v8.deopts = v8_deopt_layout(want[i].version);
		from_hex(want[i].table, p.bytes + V8F_SAFEPOINTS);
		assert_int_equal(v8_deopt_of_call(&r, &code, want[i].pc), want[i].deopt);
	}
	assert_null(v8_deopt_layout(9 << 16 | 3));
}

/* Whatever is missing or damaged: no function that is not one, and an end. */
static void what_does_not_fit_together_says_nothing(void **state)
{
	struct v8_reader r = { .rt = &rt.v8, .mem = &p.memory.mem };
	struct v8_code code = { .deopt = v8f_ptr(V8F_DEOPT) };
	static const struct {
		uint32_t at;
		uint8_t byte;
	} changes[] = {
		{ 0, 24 },               /* no begin */
		{ 2, 0x82 },             /* more functions than there may be */
		{ 4, 2 },                /* begins again */
		{ 6, 8 },                /* no such literal */
		{ 6, 3 },    { 23, 23 }, /* the earlier one begins before the array */
		{ 26, 36 },              /* … and is not used at all */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		uint32_t d = changes[i].at >= 22;

		assert_int_equal(v8_deopt_frames(&r, &code, d, active), 3);
		p.bytes[V8F_TRANSLATIONS + 16 + changes[i].at] = changes[i].byte;
		assert_int_equal(v8_deopt_frames(&r, &code, d, active), 0);
		fresh(NULL);
	}
	v8f_smi(&p, V8F_FIRST_DEOPT + 8, 1000);
	assert_int_equal(v8_deopt_frames(&r, &code, 0, active), 0);
	v8f_object(&p, V8F_INNER, V8F_SCRIPT);
	assert_int_equal(v8_deopt_frames(&r, &code, 1, active), 0);
	/* Another function's code. */
	fresh(NULL);
	v8f_put(&p, V8F_LITERALS + 24, v8f_ptr(V8F_BUILTIN), 8);
	assert_int_equal(optimized(0x28, 0), LANG_DECODED);
	check_frame(all.n - 1, "outer", true, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_call_is_in_the_functions_that_error_stack_has, fresh),
		cmocka_unit_test_setup(functions_of_v8_that_were_inlined_are_between, fresh),
		cmocka_unit_test_setup(with_all_positions_an_interrupted_thread_is_at_the_last_one,
				       fresh),
		cmocka_unit_test_setup(translations_of_every_version_are_read, fresh),
		cmocka_unit_test_setup(safepoints_of_every_version_are_read, fresh),
		cmocka_unit_test_setup(what_does_not_fit_together_says_nothing, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
