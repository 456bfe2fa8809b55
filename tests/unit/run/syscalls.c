#include "run_fixture.h"

#include <errno.h>

static struct run_config cfg = { .sources = { [SOURCE_SYSCALLS] = true }, .max_overhead = 5 };

static void take(bool all, const struct syscall_fns *fns, void *ctx)
{
	struct syscall_total total = { .proc = { .pid = 5, .exec_id = 1 },
				       .nr = 0,
				       .count = 10,
				       .errors = 2,
				       .ns = 1000,
				       .max_ns = 300,
				       .parts = { [1] = 10 } };
	struct syscall_error error = {
		.proc = { .pid = 5, .exec_id = 1 }, .nr = 0, .error = EAGAIN, .count = 2
	};
	struct syscall_open open = { .proc = { .pid = 5 }, .nr = 0, .weight = 1, .begin_ns = 1 };

	if (!all)
		return;
	fns->total(ctx, &total);
	total.proc.exec_id = 2; /* it executed something else: the same process */
	total.variance = 4;
	fns->total(ctx, &total);
	total.proc.pid = 6;
	total.compat = true;
	fns->total(ctx, &total);
	fns->error(ctx, &error);
	fns->ended(ctx, &open);
	fns->open(ctx, &open);
}

static void calls_are_added_up_by_process(void **state)
{
	const struct component *c = component_named("syscalls");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "syscalls");
	static struct run_summary s;

	(void)state;
	fake.take_syscalls = take;
	fake.stats[STAT_SYSCALLS_BEFORE] = 3;
	assert_int_equal(c->start(self, NULL), 0);
	c->drained(self, 1);
	c->closed(self);
	c->drained(self, ~0ull);
	c->report(self, &s);
	assert_true(s.syscalls.known);
	assert_int_equal(s.syscalls.n, 2);
	assert_int_equal(s.syscalls.rows[0].pid, 5);
	assert_int_equal(s.syscalls.rows[0].calls, 20);
	assert_int_equal(s.syscalls.rows[0].errnos[0].error, EAGAIN);
	assert_int_equal(s.syscalls.rows[0].no_return, 1);
	assert_int_equal(s.syscalls.rows[0].open, 1);
	assert_int_equal(s.syscalls.sums.calls, 30);
	assert_int_equal(s.syscalls.sums.compat, 10);
	assert_int_equal(s.syscalls.sums.begun_before, 3);
	assert_int_equal(s.syscalls.n_by_call, 2); /* a 32-bit call is another one */
	bare_run_free(r);
	memset(&fake, 0, sizeof(fake));
}

static void calls_that_would_cost_too_much_are_sampled(void **state)
{
	const struct component *c = component_named("syscalls");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "syscalls");

	(void)state;
	c->start(self, NULL);
	assert_int_equal(fake.syscall_shift, 0);
	assert_true(fake.syscall_stack_shift > 0);
	c->tick(self, 1000000000);
	fake.stats[STAT_SYSCALLS] = 1000; /* in a second: all, and all their stacks */
	c->tick(self, 2000000000);
	assert_int_equal(fake.syscall_shift, 0);
	assert_int_equal(fake.syscall_stack_shift, 0);
	fake.stats[STAT_SYSCALLS] += 1000000; /* 2.5 % of a CPU are 62,500 a second, at 400 ns */
	c->tick(self, 3000000000);
	assert_int_equal(fake.syscall_shift, 4);
	assert_true(fake.syscall_stack_shift > 0);
	fake.stats[STAT_SYSCALLS] += 1000000 >> 5; /* a little less: as it was */
	c->tick(self, 4000000000);
	assert_int_equal(fake.syscall_shift, 4);
	c->tick(self, 5000000000); /* none */
	assert_int_equal(fake.syscall_shift, 0);
	bare_run_free(r);
	memset(&fake, 0, sizeof(fake));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_added_up_by_process),
		cmocka_unit_test(calls_that_would_cost_too_much_are_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
