#include "run_fixture.h"

static const struct run_config cfg = { .hz = 99, .sources = { [SOURCE_ONCPU] = true } };

static void without_the_schedulers_account_cpu_time_is_what_the_samples_weigh(void **state)
{
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "on-CPU");
	location_id at = dict_location(r->dict, (module_id){ 0 }, 4096);
	const int64_t values[2] = { 3, 30000000 };
	struct run_summary s = { 0 };

	r->profiles[PROFILE_ONCPU] = profile_new(r->dict, profile_rows[PROFILE_ONCPU].types, 2);
	assert_int_equal(profile_add(r->profiles[PROFILE_ONCPU], dict_stack(r->dict, &at, 1),
				     dict_labels(r->dict, NULL, 0), values),
			 0);
	component_named("on-CPU")->report(self, &s);
	assert_int_equal(s.oncpu.hz, 99);
	assert_int_equal(s.oncpu.cpu_ns, 30000000);
	assert_int_equal(s.oncpu.n_self, 1);
	bare_run_free(r);
}

static void it_has_no_part_of_the_limit(void **state)
{
	assert_int_equal(component_named("on-CPU")->share, BUDGET_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_the_schedulers_account_cpu_time_is_what_the_samples_weigh),
		cmocka_unit_test(it_has_no_part_of_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
