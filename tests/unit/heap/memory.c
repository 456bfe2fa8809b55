/* Words of tables that are mostly zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "heap/memory.h"

enum { WORDS = 3 * HEAP_PAGE / 8 + 5 };

static uint64_t words[WORDS];

static void the_next_word_is_found_wherever_it_lies(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < WORDS; at++) {
		memset(words, 0, sizeof(words));
		words[at] = 1ULL << at % 64;
		for (uint64_t from = 0; from <= WORDS; from += 13)
			assert_int_equal(heap_words_next(words, from, WORDS),
					 from <= at ? at : WORDS);
		assert_int_equal(heap_words_next(words, at, at), at);
	}
}

static void all_words_of_pages_without_a_zero_are_found(void **state)
{
	uint64_t n = 0;

	(void)state;
	memset(words, 0xff, sizeof(words));
	for (uint64_t i = heap_words_next(words, 0, WORDS); i < WORDS;
	     i = heap_words_next(words, i + 1, WORDS))
		assert_int_equal(i, n++);
	assert_int_equal(n, WORDS);
}

static void nothing_is_found_where_all_is_zero(void **state)
{
	(void)state;
	memset(words, 0, sizeof(words));
	for (uint64_t n = 0; n <= WORDS; n++)
		assert_int_equal(heap_words_next(words, 0, n), n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_word_is_found_wherever_it_lies),
		cmocka_unit_test(all_words_of_pages_without_a_zero_are_found),
		cmocka_unit_test(nothing_is_found_where_all_is_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
