#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/small_file.h"
#include "run/memory/rss_known.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The process that there is. */
static struct {
	bool ended;
	unsigned long long minor, major, user, system, start, bytes;
	long long pages;
} it;

int small_file_read(int dir, const char *path, char *buf, size_t size)
{
	(void)dir;
	if (it.ended)
		return -ENOENT;
	assert_non_null(strstr(path, "/stat"));
	return snprintf(
		buf, size,
		"12 (a) S 1) S 1 12 12 0 -1 4194560 %llu 9000 %llu 9001 %llu %llu 77 78 20 0 1 0 "
		"%llu %llu %lld 184467 1 2 3",
		it.minor, it.major, it.user, it.system, it.start, it.bytes, it.pages);
}

static const struct ledger found = { .processes = 1, .pss = 600 };

static struct rss_known_process *look(struct rss_known *k, pid_t pid)
{
	struct rss_known_process *p;

	rss_known_begin(k);
	p = rss_known_of(k, pid);
	return p;
}

static int reset(void **state)
{
	(void)state;
	memset(&it, 0, sizeof(it));
	it.start = 5000;
	return 0;
}

static void who_has_done_nothing_has_its_memory_where_it_was(void **state)
{
	struct rss_known k = { 0 };
	struct rss_known_process *p = look(&k, 12);

	(void)state;
	assert_false(p->same); /* it was not looked at yet */
	rss_known_keep(p, &found);
	rss_known_end(&k);
	p = look(&k, 12);
	assert_true(p->same);
	assert_int_equal(p->ledger.pss, 600);
	rss_known_fini(&k);
}

static void who_ran_or_touched_or_mapped_memory_is_looked_at(void **state)
{
	unsigned long long *each[] = { &it.minor,  &it.major, &it.user,
				       &it.system, &it.bytes, (unsigned long long *)&it.pages };
	struct rss_known k = { 0 };

	(void)state;
	rss_known_keep(look(&k, 12), &found);
	for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
		struct rss_known_process *p;

		++*each[i];
		p = look(&k, 12);
		assert_false(p->same);
		rss_known_keep(p, &found);
		assert_true(look(&k, 12)->same);
	}
	rss_known_fini(&k);
}

static void what_changed_during_a_look_is_looked_at_again(void **state)
{
	struct rss_known k = { 0 };
	struct rss_known_process *p = look(&k, 12);

	(void)state;
	it.user++;
	rss_known_keep(p, &found);
	assert_false(look(&k, 12)->same);
	rss_known_fini(&k);
}

static void a_look_stands_for_some_only(void **state)
{
	struct rss_known k = { 0 };

	(void)state;
	rss_known_keep(look(&k, 12), &found);
	for (int i = 0; i < RSS_KEPT_MAX; i++)
		assert_true(look(&k, 12)->same);
	assert_false(look(&k, 12)->same);
	rss_known_fini(&k);
}

static void of_another_process_with_its_number_nothing_is_known(void **state)
{
	struct rss_known k = { 0 };
	struct rss_known_process *p = look(&k, 12);

	(void)state;
	p->found.py_pools = 4096;
	rss_known_keep(p, &found);
	it.start++;
	p = look(&k, 12);
	assert_false(p->same);
	assert_int_equal(p->found.py_pools, 0);
	it.ended = true;
	assert_null(look(&k, 12));
	rss_known_fini(&k);
}

static void who_was_not_asked_for_in_a_look_is_forgotten(void **state)
{
	struct rss_known k = { 0 };

	(void)state;
	rss_known_keep(look(&k, 12), &found);
	rss_known_keep(rss_known_of(&k, 13), &found);
	rss_known_end(&k);
	rss_known_keep(look(&k, 13), &found);
	rss_known_end(&k);
	assert_int_equal(HASH_COUNT(k.all), 1);
	assert_false(look(&k, 12)->same);
	rss_known_fini(&k);
}

static void of_too_many_nothing_is_known(void **state)
{
	struct rss_known k = { 0 };

	(void)state;
	rss_known_begin(&k);
	for (int i = 0; i < RSS_KNOWN_MAX; i++)
		assert_non_null(rss_known_of(&k, 1 + i));
	assert_null(rss_known_of(&k, 1 + RSS_KNOWN_MAX));
	assert_non_null(rss_known_of(&k, 1));
	rss_known_fini(&k);
}

static void an_allocator_that_was_not_there_is_searched_for_in_some_looks(void **state)
{
	struct rss_known k = { 0 };
	struct rss_known_process *p = look(&k, 12);

	(void)state;
	p->found.searched[1].wait = 63;
	assert_int_equal(look(&k, 12)->found.searched[1].wait, RSS_SEARCH_EVERY - 1);
	rss_known_fini(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_has_done_nothing_has_its_memory_where_it_was, reset),
		cmocka_unit_test_setup(who_ran_or_touched_or_mapped_memory_is_looked_at, reset),
		cmocka_unit_test_setup(what_changed_during_a_look_is_looked_at_again, reset),
		cmocka_unit_test_setup(a_look_stands_for_some_only, reset),
		cmocka_unit_test_setup(of_another_process_with_its_number_nothing_is_known, reset),
		cmocka_unit_test_setup(who_was_not_asked_for_in_a_look_is_forgotten, reset),
		cmocka_unit_test_setup(of_too_many_nothing_is_known, reset),
		cmocka_unit_test_setup(
			an_allocator_that_was_not_there_is_searched_for_in_some_looks, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
