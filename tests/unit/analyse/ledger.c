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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rest_is_what_no_part_explains),
		cmocka_unit_test(processes_add_up),
		cmocka_unit_test(every_part_has_its_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
