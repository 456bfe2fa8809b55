/* Which allocators are looked for in a process, and how often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heap/census.h"
#include "jemalloc_fixture.h"

static struct fake_memory fake;

static int fresh(void **state)
{
	(void)state;
	je_init(&fake);
	return 0;
}

static int done(void **state)
{
	(void)state;
	fake_fini(&fake);
	return 0;
}

/* How many allocators are there. */
static uint32_t take(void)
{
	struct heap_census c = { 0 };

	assert_int_equal(heap_census_take(&fake.mem, &c), 0);
	return c.n;
}

/* Of a process that has none, ever fewer walks search for one; where an image is loaded, the next one does. */
static void what_is_not_there_is_searched_for_less_and_less(void **state)
{
	struct heap_found found = { 0 };
	uint32_t searches = 0, walks = 0;
	uint64_t searched;

	(void)state;
	for (uint64_t i = 0; i < 65; i++)
		fake_word(&fake, JE_BSS + 128 * i, i % 2 ? JE_LEAF : JE_EDATA);
	fake_word(&fake, JE_LEAF, JE_EDATA); /* an entry of nothing */
	fake.mem.found = &found;
	fake.reads = 0;
	assert_int_equal(take(), 0);
	searched = fake.reads;
	assert_true(searched > 10);
	for (int i = 0; i < 200; i++) {
		fake.reads = 0;
		assert_int_equal(take(), 0);
		searches += fake.reads > searched / 2;
	}
	assert_in_range(searches, 6, 8); /* after 1, 3, 7, 15, 31, 63 and then each 63 walks */
	found.images++;
	fake.reads = 0;
	assert_int_equal(take(), 0);
	assert_true(fake.reads > searched / 2);
	je_extent(&fake, (struct je_extent){ 1, JE_MEM, 12288, 0, 10, 5, true });
	while (take() == 0 && walks < 100)
		walks++;
	assert_int_equal(take(), 1);
	assert_in_range(walks, 1, 63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_not_there_is_searched_for_less_and_less,
						fresh, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
