#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/events.h"

#include <string.h>

static void parts_of_an_item_follow_it_by_their_count(void **state)
{
	struct event_row rows[] = {
		{ .event = "a:*", .part = "", .count = 9 },
		{ .event = "a:*", .part = "a:x", .count = 2 },
		{ .event = "a:*", .part = "a:never" },
		{ .event = "a:*", .part = "a:y", .count = 7 },
		{ .event = "cs", .part = "", .count = 100 },
	};

	(void)state;
	assert_int_equal(events_rank(rows, 5, 10), 4);
	assert_string_equal(rows[1].part, "a:y");
	assert_string_equal(rows[2].part, "a:x");
	assert_string_equal(rows[3].event, "cs");
	assert_int_equal(events_rank(rows, 4, 1), 3);
	assert_string_equal(rows[2].event, "cs");
}

/* 2.5 % of a CPU at 2.5 us are 10,000 a second. */
static void who_needs_less_than_an_equal_share_is_not_thinned(void **state)
{
	const double rates[] = { 1000, 90000, 500 }, all[] = { 4000, 3000, 3000 },
		     none[] = { 0, 0, 1e9 };
	uint32_t one_in[3];

	(void)state;
	events_divide(rates, 3, 2500, 2.5, one_in);
	assert_int_equal(one_in[0], 1);
	assert_int_equal(one_in[1], 11); /* 90,000 for 8,500 */
	assert_int_equal(one_in[2], 1);
	events_divide(all, 3, 2500, 2.5, one_in);
	for (int i = 0; i < 3; i++)
		assert_int_equal(one_in[i], 1);
	events_divide(none, 3, 2500, 2.5, one_in);
	assert_int_equal(one_in[2], 100000);
}

static void sums_and_errors_are_those_of_the_profile(void **state)
{
	struct dict *d = dict_new();
	struct value_type type = { "page_faults", "count" };
	struct profile *p = profile_new(d, &type, 1);
	struct line line = { .function = dict_string(d, "touch") };
	module_id m = dict_module(
		d, &(struct module){ .kind = MODULE_ELF, .path = dict_string(d, "/bin/x") });
	location_id loc = dict_location_lines(d, m, 0, &line, 1);
	stack_id stack = dict_stack(d, &loc, 1);
	labels_id labels = dict_labels(d, NULL, 0);
	/* 100 stacks of 10 events each: 1,000 +- 1.96 sqrt(100 * 90) */
	struct value_error error = { .samples = 100, .unseen = 900, .v = 9000 };
	struct event_row row = { 0 };

	(void)state;
	assert_int_equal(profile_add(p, stack, labels, (int64_t[]){ 1000 }), 0);
	assert_int_equal(profile_add_error(p, stack, labels, 0, &error), 0);
	assert_int_equal(events_look(p, 0, &row), 0);
	assert_int_equal(row.on_stacks, 1000);
	assert_int_equal(row.on_stacks_error, 186);
	assert_string_equal(row.function, "touch");
	assert_string_equal(row.module, "x");
	assert_int_equal(row.function_value, 1000);
	profile_free(p);
	dict_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_an_item_follow_it_by_their_count),
		cmocka_unit_test(who_needs_less_than_an_equal_share_is_not_thinned),
		cmocka_unit_test(sums_and_errors_are_those_of_the_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
