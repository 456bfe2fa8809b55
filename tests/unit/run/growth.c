#include "run_fixture.h"

#include <unistd.h>

static struct run_config cfg = { .sources = { [SOURCE_GROWTH] = true } };

/* One target: this process. */
void targets_each(const struct run *r, void (*fn)(void *ctx, const struct target *t), void *ctx)
{
	const struct target t = { .pid = getpid() };

	fn(ctx, &t);
}

static void address_spaces_that_have_gone_are_looked_for_once_in_five_seconds(void **state)
{
	const struct component *c = component_named("growth");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "growth");

	c->drained(self, 10000000000);
	c->drained(self, 14000000000);
	assert_string_equal(fake.calls, "memories");
	c->drained(self, 15000000000);
	assert_string_equal(fake.calls, "memories memories");
	bare_run_free(r);
}

static void events_are_set_against_rss_of_processes_that_were_there_from_the_start(void **state)
{
	const struct component *c = component_named("growth");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "growth");

	c->closed(self);
	assert_string_equal(fake.calls, ""); /* nobody was */
	assert_int_equal(c->start(self, NULL), 0);
	c->closed(self);
	assert_string_equal(fake.calls, "memories");
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_spaces_that_have_gone_are_looked_for_once_in_five_seconds),
		cmocka_unit_test(
			events_are_set_against_rss_of_processes_that_were_there_from_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
