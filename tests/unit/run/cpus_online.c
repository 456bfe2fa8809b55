#include "proc/cpu_use.h"
#include "run/serve/serve_config.h"
#include "run_ends_fixture.h"

static const char *now_online;

bool cpus_online(cpu_set_t *ret)
{
	return now_online && cpu_list_parse(now_online, ret);
}

static struct serve_config serve;
static const struct run_config once = { .hz = 99 }, service = { .serve = &serve };

static struct run *r;
static void *self;
static const struct component *c;

static void begin(const struct run_config *cfg, const char *online)
{
	ended[0] = '\0';
	now_online = online;
	r = bare_run(cfg);
	self = alone(r, "online CPUs");
	c = component_named("online CPUs");
	assert_int_equal(c->start(self, NULL), 0);
}

static int gone(void **state)
{
	bare_run_free(r);
	return 0;
}

static void at(uint64_t s, const char *online)
{
	now_online = online;
	c->tick(self, fake.start_ns + s * 1000000000);
}

static void as_long_as_they_stay_nothing_is_said(void **state)
{
	begin(&once, "0-3");
	at(10, "0-3");
	at(20, NULL);
	c->closing(self);
	assert_int_equal(r->notes.n, 0);
}

static void what_ran_on_one_that_came_back_is_missing(void **state)
{
	begin(&once, "0-3");
	at(10, "0-1,3");
	assert_int_equal(r->notes.n, 0);
	at(20, "0-3");
	c->closing(self);
	assert_int_equal(r->notes.n, 1);
	assert_true(r->notes.missing[0]);
	assert_non_null(strstr(r->notes.text[0], "CPUs came online in the run (1)"));
	assert_int_equal(r->end.why, RUN_END_UNKNOWN);
}

static void one_that_is_new_is_seen_at_the_end_too(void **state)
{
	begin(&once, "0");
	now_online = "0-2";
	c->closing(self);
	assert_non_null(strstr(r->notes.text[0], "CPUs came online in the run (2)"));
}

static void those_that_only_went_are_no_loss(void **state)
{
	begin(&once, "0-3");
	at(10, "0");
	c->closing(self);
	assert_int_equal(r->notes.n, 1);
	assert_false(r->notes.missing[0]);
	assert_non_null(strstr(r->notes.text[0], "1 of 4 were left"));
}

static void a_service_begins_another_run_but_not_at_once(void **state)
{
	begin(&service, "0-3");
	at(10, "0-4");
	assert_int_equal(r->end.why, RUN_END_UNKNOWN);
	at(59, "0-4");
	assert_int_equal(r->end.why, RUN_END_UNKNOWN);
	at(70, "0-4");
	assert_int_equal(r->end.why, RUN_END_AGAIN);
	assert_string_equal(ended, "CPUs came online: 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(as_long_as_they_stay_nothing_is_said, gone),
		cmocka_unit_test_teardown(what_ran_on_one_that_came_back_is_missing, gone),
		cmocka_unit_test_teardown(one_that_is_new_is_seen_at_the_end_too, gone),
		cmocka_unit_test_teardown(those_that_only_went_are_no_loss, gone),
		cmocka_unit_test_teardown(a_service_begins_another_run_but_not_at_once, gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
