#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "analyse/ledger.h"

static struct ledger one(int64_t rss, const char *allocators)
{
	struct ledger l = { .processes = 1, .rss = rss, .took_ns = 10 };

	l.parts[LEDGER_LIVE] = (struct ledger_row){ 100, 300, 2 };
	l.parts[LEDGER_FILE].resident = 50;
	strcpy(l.allocators, allocators);
	return l;
}

static void rest_is_what_no_part_explains(void **state)
{
	struct ledger l = one(160, "glibc");

	assert_int_equal(ledger_unexplained(&l), 10);
	l.rss = 140;
	assert_int_equal(ledger_unexplained(&l), -10);
}

static void processes_add_up(void **state)
{
	struct ledger sum = { 0 }, a = one(160, "glibc"), b = one(200, "glibc, jemalloc");

	b.caveat = "why";
	ledger_add(&sum, &a);
	ledger_add(&sum, &b);
	assert_int_equal(sum.processes, 2);
	assert_int_equal(sum.parts[LEDGER_LIVE].bytes, 600);
	assert_int_equal(sum.parts[LEDGER_LIVE].blocks, 4);
	assert_int_equal(ledger_unexplained(&sum), 60);
	assert_string_equal(sum.allocators, "glibc, jemalloc");
	assert_string_equal(sum.caveat, "why");
	assert_int_equal(sum.took_ns, 20);
}

static void every_part_has_its_words(void **state)
{
	for (int i = 0; i < N_LEDGER_PARTS; i++) {
		assert_true(*ledger_name((enum ledger_part)i));
		assert_true(*ledger_title((enum ledger_part)i));
		assert_true(*ledger_how((enum ledger_part)i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(ledger_name((enum ledger_part)i),
						ledger_name((enum ledger_part)k));
	}
	assert_true(ledger_of_heap(LEDGER_HELD));
	assert_false(ledger_of_heap(LEDGER_ANONYMOUS));
}

static void what_is_shared_counts_in_part_in_a_sum_by_pss(void **state)
{
	struct ledger sum = { 0 }, l = { .processes = 1, .rss = 300, .pss = 150, .by_pss = true };

	/* Forked, with all that its heap has: half of it is each one's. */
	l.heap_pss = 0.5;
	l.parts[LEDGER_LIVE].resident = 200;
	l.parts[LEDGER_FREE].resident = 60;
	l.parts[LEDGER_FILE] = (struct ledger_row){ .resident = 40, .pss = 10 };
	ledger_apportion(&l);
	assert_int_equal(l.parts[LEDGER_LIVE].pss, 100);
	ledger_add(&sum, &l);
	l.not_read = 1;
	l.not_read_rss = 7;
	ledger_add(&sum, &l);
	assert_int_equal(ledger_total(&sum), 300);
	assert_int_equal(ledger_part_bytes(&sum, &sum.parts[LEDGER_FREE]), 60);
	assert_int_equal(ledger_unexplained(&sum), 300 - 200 - 60 - 20);
	assert_int_equal(sum.not_read, 1);
	assert_int_equal(sum.not_read_rss, 7); /* in no part */
	assert_true(ledger_known(&(struct ledger){ .not_read = 1 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rest_is_what_no_part_explains),
		cmocka_unit_test(processes_add_up),
		cmocka_unit_test(every_part_has_its_words),
		cmocka_unit_test(what_is_shared_counts_in_part_in_a_sum_by_pss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
