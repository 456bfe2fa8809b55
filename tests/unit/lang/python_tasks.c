#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>

#include <cmocka.h>

#include "python_tasks_fixture.h"

struct seen {
	struct python_task last;
	uint32_t n;
};

static void on_task(void *ctx, const struct python_task *task)
{
	struct seen *s = ctx;

	s->last = *task;
	s->n++;
}

static struct tasks_process p;
static struct python_tasks tasks;

static int look(struct seen *s, struct python_task_fn *fn)
{
	*s = (struct seen){ 0 };
	*fn = (struct python_task_fn){ .task = on_task, .ctx = s, .max = 100 };
	tasks = (struct python_tasks){ 0 };
	p.memory.reads = 0;
	return python_tasks(&p.rt, &p.memory.mem, &tasks, fn);
}

static void task_that_waits_has_its_chain_of_coroutines(void **state)
{
	struct python_task_fn fn;
	struct seen s;

	ptf_init(&p);
	assert_int_equal(look(&s, &fn), 0);
	assert_int_equal(fn.seen, 2);
	assert_int_equal(fn.ready, 1);
	assert_int_equal(fn.changed, 0);
	assert_int_equal(s.n, 1);
	assert_true(s.last.at == PTF_BASE + PTF_TASK);
	assert_true(s.last.waits_for == PTF_BASE + PTF_FUTURE);
	assert_int_equal(s.last.n, 2);
	assert_false(s.last.of_task);
	assert_true(s.last.words[0][0] == PTF_BASE + PTF_CODE);
	assert_int_equal((uint32_t)s.last.words[0][1], 192 + 6);
	/* Found once, then remembered. */
	p.memory.reads = 0;
	assert_int_equal(python_tasks(&p.rt, &p.memory.mem, &tasks, &fn), 0);
	assert_true(p.memory.reads < 40);
}

static void task_that_ran_while_it_was_looked_at_is_counted_and_not_believed(void **state)
{
	struct python_task_fn fn;
	struct seen s;
	uint32_t dropped = 0;

	for (uint64_t at = 1; at < 80; at++) {
		ptf_init(&p);
		p.memory.change = at;
		p.memory.change_at = PTF_TASK + PTF_WAITER_AT;
		p.memory.change_to = PTF_BASE + PTF_ITER;
		if (look(&s, &fn) < 0)
			continue;
		assert_int_equal(s.n + fn.changed + fn.ready, fn.seen);
		dropped += fn.changed;
	}
	assert_true(dropped > 5); /* between its two reads */
}

static void coroutine_that_runs_ends_the_chain(void **state)
{
	struct python_task_fn fn;
	struct seen s;

	ptf_init(&p);
	p.bytes[PTF_INNER + PTF_FRAME_AT - 5] = 0;
	assert_int_equal(look(&s, &fn), 0);
	assert_int_equal(s.last.n, 1);
	p.bytes[PTF_OUTER + PTF_FRAME_AT - 5] = 0;
	assert_int_equal(look(&s, &fn), 0);
	assert_int_equal(s.n, 0);
	assert_int_equal(fn.changed, 1);
}

static void what_awaits_itself_has_an_end(void **state)
{
	struct python_task_fn fn;
	struct seen s;

	ptf_init(&p);
	ptf_point(&p, PTF_INNER + PTF_FRAME_AT + PTF_LOCALS_AT, PTF_OUTER);
	assert_int_equal(look(&s, &fn), 0);
	assert_int_equal(s.last.n, PYTHON_TASK_FRAMES);
}

static void task_that_awaits_a_task_says_so(void **state)
{
	struct python_task_fn fn;
	struct seen s;

	ptf_init(&p);
	ptf_point(&p, PTF_ITER + 16, PTF_TASK_READY);
	assert_int_equal(look(&s, &fn), 0);
	assert_true(s.last.of_task);
}

static void program_without_asyncio_has_none(void **state)
{
	struct python_task_fn fn;
	struct seen s;

	ptf_init(&p);
	p.bytes[PTF_MODULE_NAME + 40] = 'b';
	assert_int_equal(look(&s, &fn), -ENOENT);
	/* It may come: it is searched for ever more rarely. */
	for (int i = 0, searched = 0; i < 200; i++) {
		uint64_t before = p.memory.reads;

		assert_int_equal(python_tasks(&p.rt, &p.memory.mem, &tasks, &fn), -ENOENT);
		searched += p.memory.reads > before;
		assert_true(searched < 10);
	}
	p.bytes[PTF_MODULE_NAME + 40] = 'a';
	for (int i = 0; i < 70 && !s.n; i++)
		python_tasks(&p.rt, &p.memory.mem, &tasks, &fn);
	assert_int_equal(s.n, 1);
	ptf_init(&p);
	p.rt.version = 0x030e00; /* they are in a list there */
	assert_int_equal(look(&s, &fn), -EOPNOTSUPP);
	ptf_init(&p);
	p.rt.object_head = 32; /* free-threaded */
	assert_int_equal(look(&s, &fn), -EOPNOTSUPP);
}

static void more_than_are_wanted_are_left(void **state)
{
	struct python_task_fn fn = { .task = on_task, .max = 1 };
	struct seen s = { 0 };

	ptf_init(&p);
	fn.ctx = &s;
	tasks = (struct python_tasks){ 0 };
	assert_int_equal(python_tasks(&p.rt, &p.memory.mem, &tasks, &fn), 0);
	assert_int_equal(fn.seen, 1);
	assert_true(fn.more);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(task_that_waits_has_its_chain_of_coroutines),
		cmocka_unit_test(task_that_ran_while_it_was_looked_at_is_counted_and_not_believed),
		cmocka_unit_test(coroutine_that_runs_ends_the_chain),
		cmocka_unit_test(what_awaits_itself_has_an_end),
		cmocka_unit_test(task_that_awaits_a_task_says_so),
		cmocka_unit_test(program_without_asyncio_has_none),
		cmocka_unit_test(more_than_are_wanted_are_left),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
