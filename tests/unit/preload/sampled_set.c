#include "preload/sampled_set.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct sampled_set set;

static void *address(uint64_t i)
{
	return (void *)(uintptr_t)(0x7f0000000000 + i * 48);
}

static uint64_t sum_of_counts(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SET_LINES; i++)
		sum += set.counts[i];
	for (uint32_t i = 0; i < SET_PAGES; i++)
		sum += set.pages[i];
	return sum;
}

static void what_was_added_is_taken_once(void **state)
{
	(void)state;
	memset(&set, 0, sizeof(set));
	assert_false(set_maybe(&set, address(1)));
	assert_true(set_add(&set, address(1)));
	assert_true(set_maybe(&set, address(1)));
	assert_true(set_page_maybe(&set, address(1)));
	assert_false(set_take(&set, address(2)));
	assert_true(set_page_maybe(&set, address(1)));
	assert_true(set_take(&set, address(1)));
	assert_false(set_page_maybe(&set, address(1)));
	assert_false(set_take(&set, address(1)));
	assert_false(set_maybe(&set, address(1)));
	assert_false(set_take(&set, NULL));
}

/* The caches are the program's. */
static void what_frees_read_of_nearby_blocks_is_one_line(void **state)
{
	const uintptr_t base = 0x7f0000000000, near = 256 * 1024,
			far = (uintptr_t)SET_PAGES << SET_PAGE_BITS;

	(void)state;
	for (uintptr_t at = base; at < base + far; at += 1000)
		assert_true((uintptr_t)set_page(&set, (void *)at) / 64 ==
			    (uintptr_t)set_page(&set, (void *)(at / near * near)) / 64);
	assert_ptr_not_equal(set_page(&set, (void *)base),
			     set_page(&set, (void *)(base + far - 1)));
}

/* More of them than a byte can count. */
static void a_page_that_is_full_of_samples_asks_for_good(void **state)
{
	char *page = (char *)0x7f0000001000;

	(void)state;
	memset(&set, 0, sizeof(set));
	for (uintptr_t i = 0; i < 256; i++)
		assert_true(set_add(&set, page + i * 16));
	for (uintptr_t i = 0; i < 256; i++) {
		assert_true(set_page_maybe(&set, page + i * 16));
		assert_true(set_take(&set, page + i * 16));
	}
	assert_true(set_page_maybe(&set, page));
	assert_false(set_maybe(&set, page));
	assert_false(set_page_maybe(&set, page + 4096));
}

static void what_is_pinned_is_asked_about_and_not_there(void **state)
{
	(void)state;
	memset(&set, 0, sizeof(set));
	set_pin(&set, address(7));
	assert_true(set_page_maybe(&set, address(7)) && set_maybe(&set, address(7)));
	assert_false(set_take(&set, address(7)));
	assert_true(set_page_maybe(&set, address(7)));
}

static void half_full_every_block_has_room_and_is_found(void **state)
{
	const uint32_t n = SET_LINES * SET_WAYS / 2;

	(void)state;
	memset(&set, 0, sizeof(set));
	for (uint32_t i = 0; i < n; i++)
		assert_true(set_add(&set, address(i)));
	for (uint32_t i = 0; i < n; i++) {
		assert_true(set_page_maybe(&set, address(i)));
		assert_true(set_maybe(&set, address(i)));
		assert_true(set_take(&set, address(i)));
	}
	assert_int_equal(sum_of_counts(), 0);
}

static void a_full_set_refuses_and_stays_right(void **state)
{
	const uint32_t n = SET_LINES * SET_WAYS + 1000;
	static bool in[SET_LINES * SET_WAYS + 1000];
	uint32_t refused = 0;

	(void)state;
	memset(&set, 0, sizeof(set));
	for (uint32_t i = 0; i < n; i++) {
		in[i] = set_add(&set, address(i));
		refused += !in[i];
	}
	assert_true(refused >= 1000);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(set_take(&set, address(i)), in[i]);
	assert_int_equal(sum_of_counts(), 0);
}

/* Four threads on addresses of their own, which share lines. */
static void *churn(void *arg)
{
	uint64_t base = (uintptr_t)arg;
	uintptr_t lost = 0;

	for (int round = 0; round < 200; round++) {
		for (uint64_t i = 0; i < 500; i++)
			lost += !set_add(&set, address(base + i * 4));
		for (uint64_t i = 0; i < 500; i++)
			lost += !set_take(&set, address(base + i * 4));
	}
	return (void *)lost;
}

static void threads_do_not_disturb_each_other(void **state)
{
	pthread_t t[4];

	(void)state;
	memset(&set, 0, sizeof(set));
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, churn, (void *)i), 0);
	for (int i = 0; i < 4; i++) {
		void *lost;

		pthread_join(t[i], &lost);
		assert_null(lost);
	}
	assert_int_equal(sum_of_counts(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_added_is_taken_once),
		cmocka_unit_test(what_frees_read_of_nearby_blocks_is_one_line),
		cmocka_unit_test(a_page_that_is_full_of_samples_asks_for_good),
		cmocka_unit_test(what_is_pinned_is_asked_about_and_not_there),
		cmocka_unit_test(half_full_every_block_has_room_and_is_found),
		cmocka_unit_test(a_full_set_refuses_and_stays_right),
		cmocka_unit_test(threads_do_not_disturb_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
