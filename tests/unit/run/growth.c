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

/* Two stacks have touched as much in the end; one of them goes on. */
static void who_goes_on_touching_pages_is_named_with_the_rate(void **state)
{
	const struct component *c = component_named("growth");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "growth");
	location_id first = dict_location(r->dict, (module_id){ 0 }, 4096);
	location_id other = dict_location(r->dict, (module_id){ 0 }, 8192);
	struct profile *p = profile_new(r->dict, profile_rows[PROFILE_GROWTH].types,
					profile_rows[PROFILE_GROWTH].n_types);
	const int64_t mib[2] = { 1 << 20, 0 }, all[2] = { 40 << 20, 0 };
	static struct run_summary s;

	r->profiles[PROFILE_GROWTH] = p;
	fake.start_ns = 1000000000;
	assert_int_equal(c->start(self, NULL), 0);
	profile_add(p, dict_stack(r->dict, &other, 1), dict_labels(r->dict, NULL, 0), all);
	for (uint64_t i = 1; i <= 40; i++) {
		profile_add(p, dict_stack(r->dict, &first, 1), dict_labels(r->dict, NULL, 0), mib);
		c->row(self, (i + 1) * 1000000000);
	}
	c->report(self, &s);
	assert_int_equal(s.growth.n_growing, 1);
	assert_true(s.growth.growing[0].slope > 1.04e6 && s.growth.growing[0].slope < 1.06e6);
	assert_int_equal(s.growth.growing[0].live, 40 << 20);
	bare_run_free(r);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_spaces_that_have_gone_are_looked_for_once_in_five_seconds),
		cmocka_unit_test(
			events_are_set_against_rss_of_processes_that_were_there_from_the_start),
		cmocka_unit_test(who_goes_on_touching_pages_is_named_with_the_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
