#include "run/output/files.h"
#include "run_fixture.h"

static struct run_config cfg = { .sources = { [SOURCE_ALLOC] = true } };
static ingest_alloc_fn reported;
static void *reported_ctx;

void ingest_on_alloc(struct ingest *in, ingest_alloc_fn fn, void *ctx)
{
	reported = fn;
	reported_ctx = ctx;
}

int output_csv(struct run_output *to, const char *name,
	       int (*write)(void *ctx, struct sink *sink, struct err *e), void *ctx, struct err *e)
{
	called(name);
	return 0;
}

static struct run *with_one_block(void **ret_self)
{
	struct run *r = bare_run(&cfg);
	const struct proc_id proc = { .pid = 1 };
	location_id at = dict_location(r->dict, (module_id){ 0 }, 4096);

	*ret_self = alone(r, "live series");
	r->alloc.tier = ALLOC_TIER_EXACT;
	r->alloc.tracing = true;
	assert_int_equal(component_named("live series")->attach(*ret_self, NULL), 0);
	reported(reported_ctx, &proc, dict_stack(r->dict, &at, 1), 1, 100, 0);
	return r;
}

static void series_of_exact_allocations_are_written(void **state)
{
	void *self;
	struct run *r = with_one_block(&self);

	component_named("live series")->row(self, now_ns());
	assert_int_equal(component_named("live series")->write(self, NULL, NULL), 0);
	assert_string_equal(fake.calls, "live_series");
	bare_run_free(r);
}

/* A sampler says how many samples came and what lives of them: the same series, and the same evidence. */
static void what_a_sampler_says_that_grows_and_stays_is_a_leak(void **state)
{
	const struct component *c = component_named("live series");
	const struct proc_id proc = { .pid = 1 };
	void *self;
	struct run *r = with_one_block(&self);
	location_id at = dict_location(r->dict, (module_id){ 0 }, 8192);
	stack_id stack = dict_stack(r->dict, &at, 1);
	static struct run_summary s;
	uint64_t begin = now_ns() - 60000000000;

	fake.start_ns = begin;
	r->alloc.tier = ALLOC_TIER_SAMPLED;
	r->alloc.tracing = false;
	r->alloc.from_ns = begin;
	for (uint64_t i = 1; i <= 60; i++) {
		r->alloc.lives(r->alloc.lives_ctx, &proc, stack, 2, 1 << 20, 0);
		c->row(self, begin + i * 1000000000);
	}
	r->alloc.to_ns = begin + 60000000000;
	for (uint64_t i = 0; i < 120; i++)
		r->alloc.lives(r->alloc.lives_ctx, &proc, stack, 1, 1 << 19, begin + i * 500000000);
	c->report(self, &s);
	assert_int_equal(s.alloc.n_leaks, 1);
	assert_true(s.alloc.leaks[0].slope > 1040000 && s.alloc.leaks[0].slope < 1060000);
	assert_true(s.alloc.leaks[0].survived > 0.95);
	assert_true(s.alloc.leaks[0].age_s == 30);
	bare_run_free(r);
}

static void in_bursts_nobody_knows_what_lives_and_the_series_goes(void **state)
{
	void *self;
	struct run *r = with_one_block(&self);

	r->alloc.tier = ALLOC_TIER_BURSTS;
	r->alloc.tracing = false;
	component_named("live series")->row(self, now_ns());
	r->alloc.tier = ALLOC_TIER_EXACT; /* even so: it was given up */
	assert_int_equal(component_named("live series")->write(self, NULL, NULL), 0);
	assert_string_equal(fake.calls, "");
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(series_of_exact_allocations_are_written),
		cmocka_unit_test(what_a_sampler_says_that_grows_and_stays_is_a_leak),
		cmocka_unit_test(in_bursts_nobody_knows_what_lives_and_the_series_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
