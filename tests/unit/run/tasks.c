#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/tasks.h"

/* What a look finds. */
static struct user_stacks_task found[4];
static uint32_t n_found;

void user_stacks_tasks(struct user_stacks *st, struct user_stacks_tasks *to)
{
	(void)st;
	to->processes += n_found > 0;
	to->seen += n_found;
	for (uint32_t i = 0; i < n_found; i++)
		to->task(to->ctx, &found[i]);
}

static stack_id stack(struct dict *d, const char *function)
{
	const struct line line = { .function = dict_string(d, function) };

	return dict_stack_push(d, (stack_id){ 0 },
			       dict_location_lines(d, (module_id){ 0 }, 0, &line, 1));
}

static void waits_are_counted_by_place_and_tasks_that_go_on_are_seen(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	const stack_id a = stack(d, "a (app.py)"), b = stack(d, "b (app.py)");
	struct run_summary s = { 0 };
	struct tasks t = { 0 };
	uint64_t second = 1000000000, now = 10 * second;

	found[0] = (struct user_stacks_task){ .pid = 1, .at = 100, .waits_for = 7, .stack = a };
	found[1] = (struct user_stacks_task){ .pid = 1, .at = 200, .waits_for = 8, .stack = a };
	n_found = 2;
	tasks_tick(&t, NULL, now);
	tasks_tick(&t, NULL, now + 1); /* too soon */
	found[0].stack = b;            /* one goes on, the other waits still */
	tasks_tick(&t, NULL, now += second);
	n_found = 1;
	found[0] = found[1];
	tasks_tick(&t, NULL, now += second); /* the first has ended */
	found[0].waits_for = 9;              /* the second waits again at the same place */
	tasks_tick(&t, NULL, now += second);
	n_found = 0;
	tasks_tick(&t, NULL, now += second); /* no asyncio any more: no look */
	tasks_report(&t, d, &s);
	assert_int_equal(s.tasks.looks, 4);
	assert_int_equal(s.tasks.seen, 6);
	assert_int_equal(s.tasks.n, 2);
	assert_string_equal(s.tasks.rows[0].function, "a (app.py)");
	assert_int_equal(s.tasks.rows[0].seen, 5);
	assert_int_equal(s.tasks.rows[0].looks, 4);
	assert_int_equal(s.tasks.rows[0].left, 3);
	assert_int_equal(s.tasks.rows[0].longest_ns, 2 * second);
	assert_int_equal(s.tasks.rows[1].seen, 1);
	assert_int_equal(s.tasks.rows[1].left, 1);
	tasks_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_counted_by_place_and_tasks_that_go_on_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
