#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/session/sources.h"
#include "collect/stream/wait_cut.h"
#include "model/profile.h"

enum { BLOCKED_NS = 1 };

static struct dict *d;
static struct profile *p;

static int made(void **state)
{
	const struct profile_row *row = &profile_rows[PROFILE_OFFCPU];

	d = dict_new();
	p = profile_new(d, row->types, row->n_types);
	return 0;
}

static int gone(void **state)
{
	profile_free(p);
	dict_free(d);
	return 0;
}

static stack_id stack(uint64_t at)
{
	location_id l = dict_location(d, (module_id){ 0 }, at);

	return dict_stack(d, &l, 1);
}

static labels_id thread(int64_t pid, int64_t tid, const char *comm)
{
	const struct label l[] = {
		{ .key = dict_string(d, "comm"), .str = dict_string(d, comm) },
		{ .key = dict_string(d, "pid"), .num = pid },
		{ .key = dict_string(d, "tid"), .num = tid },
	};

	return dict_labels(d, l, tid ? 3 : 2);
}

static void put(uint64_t at, labels_id labels, int64_t ns)
{
	const int64_t values[4] = { 0, ns };

	assert_int_equal(profile_add(p, stack(at), labels, values), 0);
}

static int64_t has(uint64_t at, labels_id labels)
{
	uint32_t i;

	assert_int_equal(profile_find_sample(p, stack(at), labels, &i), 0);
	return profile_sample(p, i).values[BLOCKED_NS];
}

/* 30 of a wait of 100 were in the window before, by the name that the thread had then. */
static void what_was_cut_under_another_name_is_taken_off_the_thread(void **state)
{
	put(1, thread(7, 8, "sh"), -30);
	put(1, thread(7, 8, "true"), 100);
	put(1, thread(7, 9, "true"), 100);
	assert_int_equal(wait_cut_make_up(p, false), 0);
	assert_int_equal(has(1, thread(7, 8, "sh")), 0);
	assert_int_equal(has(1, thread(7, 8, "true")), 70);
	assert_int_equal(has(1, thread(7, 9, "true")), 100);
}

/* Its stack has not come yet, but will: in the last window it has. */
static void under_the_same_name_it_is_waited_for(void **state)
{
	put(1, thread(7, 8, "sh"), -30);
	put(2, thread(7, 8, "sh"), 20);
	put(3, thread(7, 8, "sh"), 50);
	assert_int_equal(wait_cut_make_up(p, false), 0);
	assert_int_equal(has(1, thread(7, 8, "sh")), -30);
	assert_int_equal(wait_cut_make_up(p, true), 0);
	assert_int_equal(has(1, thread(7, 8, "sh")), 0);
	assert_int_equal(has(2, thread(7, 8, "sh")) + has(3, thread(7, 8, "sh")), 40);
	assert_true(has(2, thread(7, 8, "sh")) >= 0);
}

static void more_than_there_is_is_not_taken(void **state)
{
	put(1, thread(7, 8, "sh"), -30);
	put(1, thread(7, 8, "true"), 10);
	put(1, thread(7, 0, "sh"), -5);
	put(2, thread(7, 0, "true"), 50);
	assert_int_equal(wait_cut_make_up(p, true), 0);
	assert_int_equal(has(1, thread(7, 8, "sh")), -20);
	assert_int_equal(has(1, thread(7, 8, "true")), 0);
	/* Threads without a number are many. */
	assert_int_equal(has(1, thread(7, 0, "sh")), -5);
	assert_int_equal(has(2, thread(7, 0, "true")), 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_was_cut_under_another_name_is_taken_off_the_thread, made, gone),
		cmocka_unit_test_setup_teardown(under_the_same_name_it_is_waited_for, made, gone),
		cmocka_unit_test_setup_teardown(more_than_there_is_is_not_taken, made, gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
