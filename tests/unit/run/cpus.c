#include "run_fixture.h"

static const struct run_config cfg = { .sources = { [SOURCE_OFFCPU] = true }, .all = true };

static void what_the_cpus_did_between_start_and_end_is_reported(void **state)
{
	struct run *r = bare_run(&cfg);
	const struct component *c = component_named("CPUs");
	void *self = alone(r, "CPUs");
	struct run_summary s = { 0 };

	assert_int_equal(c->start(self, NULL), 0);
	usleep(30000); /* ticks are 10 ms at most */
	c->closing(self);
	c->report(self, &s);
	assert_true(s.cpus.known);
	assert_int_equal(s.cpus.n, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(s.cpus.busy_ns >= 0 && s.cpus.idle_ns >= 0);
	assert_true(s.cpus.busy_ns + s.cpus.idle_ns > 0);
	assert_int_equal(s.cpus.throttled_ns, -1); /* of a host no group is asked */
	c->free(self);
	bare_run_free(r);
}

static void a_run_without_a_start_knows_nothing(void **state)
{
	struct run *r = bare_run(&cfg);
	const struct component *c = component_named("CPUs");
	void *self = alone(r, "CPUs");
	struct run_summary s = { 0 };

	c->closing(self);
	c->report(self, &s);
	assert_false(s.cpus.known);
	c->free(self);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_cpus_did_between_start_and_end_is_reported),
		cmocka_unit_test(a_run_without_a_start_knows_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
