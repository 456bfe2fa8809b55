#include "abi.h"
#include "run_fixture.h"

static struct run_config cfg = { .sources = { [SOURCE_OFFCPU] = true } };

static struct run *exact_run(void **ret_self)
{
	struct run *r;

	cfg.waits = WAITS_EXACT;
	r = bare_run(&cfg);
	r->profiles[PROFILE_OFFCPU] = profile_new(r->dict, profile_rows[PROFILE_OFFCPU].types,
						  profile_rows[PROFILE_OFFCPU].n_types);
	*ret_self = alone(r, "off-CPU");
	assert_int_equal(component_named("off-CPU")->open(*ret_self, NULL), 0);
	return r;
}

static void programs_for_threads_that_switch_often_are_left_out_where_every_wait_is_asked_for(
	void **state)
{
	const struct component *c = component_named("off-CPU");
	struct run *r = bare_run(&cfg);
	struct session_opts opts = { 0 };
	void *self = alone(r, "off-CPU");

	cfg.waits = WAITS_AUTO;
	assert_int_equal(c->prepare(self, &opts, NULL), 0);
	assert_true(opts.wait_sampler);
	cfg.waits = WAITS_EXACT;
	assert_int_equal(c->prepare(self, &opts, NULL), 0);
	assert_false(opts.wait_sampler);
	free(r->states[2]);
	r->states[2] = NULL;
	bare_run_free(r);
}

static enum drain_says at_boundary;

static void one_thread(void)
{
	const struct ms_thread thread = { .state = MS_RUN_BLOCKED, .since_ns = 1 };
	const uint32_t tid = 7;

	at_boundary = deliver(DRAIN_THREAD, &thread, &tid);
}

static void open_waits_are_kept_from_the_profile_only_while_a_boundary_is_made(void **state)
{
	const struct component *c = component_named("off-CPU");
	void *self;
	struct run *r = exact_run(&self);

	one_thread();
	assert_int_equal(at_boundary, DRAIN_NEXT);
	fake.on_threads = one_thread;
	assert_int_equal(c->boundary(self, false, NULL), 0);
	assert_int_equal(at_boundary, DRAIN_TAKEN);
	assert_int_equal(c->boundary(self, true, NULL), 0);
	one_thread();
	assert_int_equal(at_boundary, DRAIN_NEXT);
	assert_string_equal(fake.calls, "threads(all) threads(all)");
	bare_run_free(r);
}

static void with_every_wait_traced_its_cost_is_fixed_and_no_limit_applies(void **state)
{
	const struct component *c = component_named("off-CPU");
	uint64_t stats[N_STATS] = { [STAT_OFFCPU_SWITCHES] = 1000 };
	struct cost_window w = {
		.stats = stats, .fixed_ns = 5e6, .elapsed_ns = 1e9, .window_ns = 1e8
	};
	void *self;
	struct run *r = exact_run(&self);

	assert_true(c->cost(self, &w) == 0);
	assert_true(w.fixed_ns == 5e6);
	c->limit(self, 1);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			programs_for_threads_that_switch_often_are_left_out_where_every_wait_is_asked_for),
		cmocka_unit_test(
			open_waits_are_kept_from_the_profile_only_while_a_boundary_is_made),
		cmocka_unit_test(with_every_wait_traced_its_cost_is_fixed_and_no_limit_applies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
