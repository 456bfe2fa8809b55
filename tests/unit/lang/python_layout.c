/*
 * Layouts: rows, and what 3.13.0 says of itself, word by word.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lang/python.h"

/* The words at _PyRuntime of a shared libpython 3.13.0 on x86-64 (584 bytes). */
static const uint64_t said_3_13[PYTHON_OFFSETS_BYTES / 8] = {
	0x7970677562656478,
	0x030d00f0,
	0,
	283320,
	608,
	632,
	194968,
	7272,
	7264,
	7344,
	7400,
	7656,
	7640,
	7648,
	16,
	7752,
	0,
	7768,
	7760,
	304,
	0,
	8,
	16,
	72,
	152,
	160,
	232,
	32,
	80,
	8,
	0,
	56,
	72,
	70,
	208,
	112,
	120,
	128,
	136,
	68,
	52,
	96,
	104,
	200,
	16,
	8,
	416,
	24,
	88,
	168,
	32,
	24,
	16,
	40,
	24,
	16,
	48,
	32,
	40,
	24,
	16,
	32,
	16,
	24,
	40,
	16,
	32,
	64,
	32,
	16,
	40,
	240,
	200,
};

static int find(uint32_t version, const uint64_t *words, struct python_layout *l, struct err *e)
{
	return python_layout_find(version, (const uint8_t *)words, l, e);
}

/* sizeof and offsetof in that version's headers. */
static void assert_3_13(const struct python_layout *l)
{
	assert_int_equal(l->frames.tstate_frame, 72);
	assert_int_equal(l->frames.cframe_frame, 0xffff);
	assert_int_equal(l->frames.frame_code, 0);
	assert_int_equal(l->frames.frame_previous, 8);
	assert_int_equal(l->frames.frame_instr, 56);
	assert_int_equal(l->frames.frame_boundary, 70);
	assert_int_equal(l->frames.code_first_line, 68);
	assert_int_equal(l->frames.code_name, 120);
	assert_int_equal(l->frames.code_linetable, 136);
	assert_int_equal(l->frames.frame_bytes, 72);
	assert_int_equal(l->frames.boundary_kind, MS_PYTHON_OWNER);
	assert_int_equal(l->frames.boundary, 3);
	assert_int_equal(l->frames.code_mask, 0);
	assert_int_equal(l->code_filename, 112);
	assert_int_equal(l->code_qualname, 128);
	assert_int_equal(l->code_bytecode, 200);
	assert_int_equal(l->str_ascii, 40);
	assert_int_equal(l->str_compact, 56);
	assert_int_equal(l->object, 16);
	assert_int_equal(l->ob_type, 8);
	assert_int_equal(l->type_name, 24);
	assert_int_equal(l->type_flags, 168);
	assert_int_equal(l->runtime_interpreters, 632);
	assert_int_equal(l->interp_next, 7264);
	assert_int_equal(l->interp_threads, 7344);
	assert_int_equal(l->tstate_next, 8);
	assert_int_equal(l->tstate_thread_id, 152);
	assert_false(l->untested);
}

static void a_runtime_that_says_its_layout_is_believed(void **state)
{
	struct python_layout l;
	struct err e;

	assert_int_equal(python_said_version((const uint8_t *)said_3_13), 0x030d00);
	assert_int_equal(find(0x030d00, said_3_13, &l, &e), 0);
	assert_3_13(&l);
}

static void a_free_threaded_one_has_larger_heads(void **state)
{
	uint64_t words[PYTHON_OFFSETS_BYTES / 8];
	struct python_layout l;
	struct err e;

	memcpy(words, said_3_13, sizeof(words));
	words[2] = 1;
	words[44] = 32;
	words[45] = 24;
	words[70] = 56;
	assert_int_equal(find(0x030d00, words, &l, &e), 0);
	assert_true(l.free_threaded);
	assert_true(l.untested);
	assert_int_equal(l.object, 32);
	assert_int_equal(l.str_ascii, 56);
	assert_int_equal(l.str_compact, 72);
}

/* Whatever one of its words is: nothing outside of what a walk may read is believed. */
static void every_word_is_checked(void **state)
{
	static const uint64_t values[] = { 0,    1,         3,          4,     1016,
					   1024, 65536 + 8, 1ULL << 32, ~0ULL, ~7ULL };
	/* Used, and not the first two. */
	static const uint8_t used[] = { 2,  5,  8,  9,  21, 23, 24, 28, 29, 30, 31, 33,
					34, 35, 36, 37, 38, 39, 43, 44, 45, 47, 49, 70 };
	uint64_t words[PYTHON_OFFSETS_BYTES / 8];
	struct python_layout l;
	struct err e;

	for (size_t i = 0; i < sizeof(used); i++)
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			memcpy(words, said_3_13, sizeof(words));
			words[used[i]] = values[v];
			e = (struct err){ 0 };
			if (find(0x030d00, words, &l, &e) < 0) {
				assert_int_equal(e.code, -EOPNOTSUPP);
				continue;
			}
			assert_in_range(values[v], 0, (1 << 20) - 1);
			assert_in_range(l.frames.frame_bytes, 8, MS_LANG_BYTES);
			assert_true(l.frames.code_linetable + 8 -
					    l.frames.code_first_line / 8 * 8 <=
				    MS_LANG_BYTES);
			assert_true(l.frames.code_first_line < l.frames.code_name);
			assert_in_range(l.code_qualname, 0, 1016);
			assert_in_range(l.code_filename, 0, 1016);
		}
	for (size_t i = 0; i < sizeof(used); i++) {
		memcpy(words, said_3_13, sizeof(words));
		words[used[i]] = ~0ULL;
		assert_int_equal(find(0x030d00, words, &l, &e), -EOPNOTSUPP);
	}
}

static void versions_have_a_row_or_are_refused(void **state)
{
	struct python_layout l;
	struct err e = { 0 };

	for (uint32_t minor = 8; minor <= 12; minor++) {
		assert_int_equal(find(0x030000 | minor << 8 | 5, NULL, &l, &e), 0);
		assert_false(l.untested);
		assert_in_range(l.frames.frame_bytes, 64, 112);
		assert_in_range(l.frames.code_linetable, 120, 136);
		/* The walk reads 4 bytes there, and whole words elsewhere. */
		assert_int_equal(l.frames.frame_instr % 8, 0);
		assert_int_equal(l.frames.frame_previous % 8, 0);
		assert_int_equal(l.frames.code_first_line % 4, 0);
	}
	assert_int_equal(find(0x030705, NULL, &l, &e), -EOPNOTSUPP);
	assert_string_equal(e.msg,
			    "CPython 3.7.5: its layout is not known, as that of 3.8 to 3.14 is");
	assert_int_equal(find(0x030f00, NULL, &l, &e), -EOPNOTSUPP);
	assert_int_equal(find(0x020712, NULL, &l, &e), -EOPNOTSUPP);
	/* Those that say theirs are not taken without. */
	assert_int_equal(find(0x030d00, NULL, &l, &e), -EOPNOTSUPP);
	assert_int_equal(find(0x030d01, said_3_13, &l, &e), -EOPNOTSUPP);
}

static void what_is_no_description_says_no_version(void **state)
{
	uint64_t words[PYTHON_OFFSETS_BYTES / 8];

	memcpy(words, said_3_13, sizeof(words));
	words[0]++;
	assert_int_equal(python_said_version((const uint8_t *)words), 0);
	words[0]--;
	words[1] = 0x040000f0;
	assert_int_equal(python_said_version((const uint8_t *)words), 0);
	words[1] = ~0ULL;
	assert_int_equal(python_said_version((const uint8_t *)words), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_runtime_that_says_its_layout_is_believed),
		cmocka_unit_test(a_free_threaded_one_has_larger_heads),
		cmocka_unit_test(every_word_is_checked),
		cmocka_unit_test(versions_have_a_row_or_are_refused),
		cmocka_unit_test(what_is_no_description_says_no_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
