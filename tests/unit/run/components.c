#include "run/push_config.h"
#include "run/serve/serve_config.h"
#include "run/trace/log.h"
#include "run_fixture.h"

static uint32_t place(const char *name)
{
	for (uint32_t i = 0; components[i]; i++)
		if (components[i] == component_named(name))
			return i;
	return 0;
}

static void probes_follow_a_mapping_before_its_unwind_table_is_asked_for(void **state)
{
	assert_true(place("allocations") < place("stacks"));
}

static void a_row_of_the_rss_breakdown_comes_after_the_one_of_the_trend(void **state)
{
	assert_true(place("memory trend") < place("live series"));
	assert_true(place("live series") < place("RSS breakdown"));
}

static void windows_come_after_all_whose_profiles_they_take(void **state)
{
	assert_true(place("windows") > place("allocations"));
	assert_true(place("windows") > place("off-CPU"));
}

static void names_are_distinct_and_states_begin_with_their_run(void **state)
{
	for (uint32_t i = 0; components[i]; i++) {
		assert_true(components[i]->size >= sizeof(struct run *));
		for (uint32_t j = 0; j < i; j++)
			assert_string_not_equal(components[i]->name, components[j]->name);
	}
}

static void who_shares_the_limit_says_what_it_costs_and_takes_a_limit(void **state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; components[i]; i++) {
		if (components[i]->share == BUDGET_NONE)
			continue;
		assert_non_null(components[i]->cost);
		assert_non_null(components[i]->limit);
		n++;
	}
	assert_int_equal(n, 2);
}

static void only_what_is_asked_for_takes_part(void **state)
{
	/* Nothing; a process with all sources; the host with all sources, in files; a trigger and a census. */
	static const struct serve_config serve = { .http.n_listen = 1, .own_memory_mb = 100 };
	static const struct push_config push;
	static const struct trace_config trace;
	struct run_config cfgs[4] = { { .tid = 1 },
				      { 0 },
				      { .all = true, .dir = "." },
				      { .dir = ".",
					.n_when = 1,
					.census_s = 1,
					.awaited = "web",
					.serve = &serve,
					.push = &push,
					.trace = &trace } };

	for (int i = 1; i < 3; i++)
		for (int k = 0; k < N_SOURCES; k++)
			cfgs[i].sources[k] = true;
	for (uint32_t i = 0; components[i]; i++) {
		uint32_t n = 0;

		if (!components[i]->wanted)
			continue;
		for (int k = 0; k < 4; k++)
			n += components[i]->wanted(&cfgs[k]);
		assert_true(n > 0 && n < 4);
		assert_false(components[i]->wanted(&cfgs[0]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_follow_a_mapping_before_its_unwind_table_is_asked_for),
		cmocka_unit_test(a_row_of_the_rss_breakdown_comes_after_the_one_of_the_trend),
		cmocka_unit_test(windows_come_after_all_whose_profiles_they_take),
		cmocka_unit_test(names_are_distinct_and_states_begin_with_their_run),
		cmocka_unit_test(who_shares_the_limit_says_what_it_costs_and_takes_a_limit),
		cmocka_unit_test(only_what_is_asked_for_takes_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
