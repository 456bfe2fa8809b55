/* What --contents words keeps of memory, and frames that are packed and unpacked. */
#include "heap/snapshot/contents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct heap_map maps[] = {
	{ .start = 0x7f0000000000, .end = 0x7f0000010000, .kind = HEAP_MAP_ANON }
};
static const struct heap_memory mem = { .maps = maps, .n_maps = 1 };

static uint64_t kept(uint64_t word)
{
	contents_keep_words(&mem, (uint8_t *)&word, sizeof(word));
	return word;
}

static void addresses_and_small_numbers_stay(void **state)
{
	(void)state;
	assert_int_equal(kept(0x7f0000000010), 0x7f0000000010);
	assert_int_equal(kept(4711), 4711);
	assert_int_equal(kept((1 << 24) - 1), (1 << 24) - 1);
	assert_int_equal(kept(UINT64_C(17) << 32 | 400), UINT64_C(17) << 32 | 400);
}

static void everything_else_is_zero(void **state)
{
	double number = 3.25;
	uint64_t word;

	(void)state;
	memcpy(&word, &number, 8);
	assert_int_equal(kept(word), 0);
	assert_int_equal(kept(0x7f0000010000), 0);
	assert_int_equal(kept(1 << 24), 0);
	assert_int_equal(kept(UINT64_C(0x123456789abcdef0)), 0);
}

static void no_four_letters_of_a_text_stay(void **state)
{
	static const char text[] = "correct horse battery staple: s3cr3t!";

	(void)state;
	for (size_t at = 0; at < 8; at++) {
		uint8_t bytes[64] = { 0 };
		size_t in_row = 0;

		memcpy(bytes + at, text, sizeof(text));
		contents_keep_words(&mem, bytes, sizeof(bytes));
		for (size_t i = 0; i < sizeof(bytes); i++) {
			in_row = bytes[i] ? in_row + 1 : 0;
			assert_true(in_row < 4);
		}
	}
}

static void the_end_of_a_long_text_does_not_stay(void **state)
{
	uint8_t bytes[24] = "0123456789abcdefgh", zeros[24] = { 0 };

	(void)state;
	contents_keep_words(&mem, bytes, sizeof(bytes));
	assert_memory_equal(bytes, zeros, sizeof(bytes));
}

static void wide_letters_do_not_stay(void **state)
{
	uint32_t text[8] = { 's', 'e', 'c', 'r', 'e', 't' }, zeros[8] = { 0 };

	(void)state;
	contents_keep_words(&mem, (uint8_t *)text, sizeof(text));
	assert_memory_equal(text, zeros, sizeof(text));
}

static void frames_are_unpacked_as_they_are_asked_for(void **state)
{
	enum { LEN = 2 * FILE_FRAME + 4096 };
	struct contents_packer *p = contents_packer_new(&mem, false);
	uint8_t *bytes = malloc(LEN), *packed = malloc(LEN + (1 << 20));
	uint64_t frames[4] = { 0 };
	struct contents *c = NULL;

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 4096);
	for (int i = 0; i < 3; i++) {
		size_t at = (size_t)i * FILE_FRAME,
		       part = LEN - at < FILE_FRAME ? LEN - at : FILE_FRAME, n;
		const uint8_t *frame;

		assert_int_equal(contents_pack(p, bytes + at, part, &frame, &n), 0);
		memcpy(packed + frames[i], frame, n);
		frames[i + 1] = frames[i] + n;
	}
	packed[frames[1] + 12] ^= 1; /* the second one is damaged */
	assert_int_equal(contents_open(packed, frames, 3, LEN, "/tmp", &c), 0);
	assert_true(contents_load(c, FILE_FRAME - 1, 1));
	assert_int_equal(contents_bytes(c)[FILE_FRAME - 1], bytes[FILE_FRAME - 1]);
	assert_false(contents_load(c, FILE_FRAME - 1, 2));
	assert_true(contents_load(c, 2 * FILE_FRAME, 4096));
	assert_memory_equal(contents_bytes(c) + 2 * FILE_FRAME, bytes + 2 * FILE_FRAME, 4096);
	assert_false(contents_load(c, LEN, 1));
	assert_false(contents_load(c, UINT64_MAX, 2));
	contents_close(c);
	contents_packer_free(p);
	free(bytes);
	free(packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_and_small_numbers_stay),
		cmocka_unit_test(everything_else_is_zero),
		cmocka_unit_test(no_four_letters_of_a_text_stay),
		cmocka_unit_test(the_end_of_a_long_text_does_not_stay),
		cmocka_unit_test(wide_letters_do_not_stay),
		cmocka_unit_test(frames_are_unpacked_as_they_are_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
