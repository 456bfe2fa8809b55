#include "run_fixture.h"

#include <unistd.h>

static pid_t self_pid[1];
static struct run_config cfg = { .pids = self_pid, .n_pids = 1, .mem_mb = 64, .quiet = true };

struct target *target_of(const struct run *r, pid_t pid)
{
	return NULL;
}
pid_t targets_command(const struct run *r)
{
	return 0;
}

static void rss_of_a_process_is_broken_down_and_adds_up(void **state)
{
	const struct component *c = component_named("RSS breakdown");
	struct run_summary s = { 0 };
	struct run *r;
	void *self;

	self_pid[0] = getpid();
	r = bare_run(&cfg);
	self = alone(r, "RSS breakdown");
	assert_int_equal(c->open(self, NULL), 0);
	assert_int_equal(c->start(self, NULL), 0);
	c->row(self, now_ns()); /* without a file there are no rows */
	c->report(self, &s);
	assert_int_equal(s.ledger.now.processes, 0);
	c->closing(self);
	c->report(self, &s);
	assert_int_equal(s.ledger.now.processes, 1);
	assert_true(s.ledger.now.rss > 0);
	assert_true(s.ledger.now.parts[LEDGER_FILE].resident > 0);
	bare_run_free(r);
}

static void a_thread_or_the_host_has_none(void **state)
{
	const struct run_config thread = { .tid = 1 }, host = { .all = true };

	assert_false(component_named("RSS breakdown")->wanted(&thread));
	assert_false(component_named("RSS breakdown")->wanted(&host));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rss_of_a_process_is_broken_down_and_adds_up),
		cmocka_unit_test(a_thread_or_the_host_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
