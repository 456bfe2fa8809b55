#include "abi.h"
#include "run_fixture.h"

static struct run_config cfg = { .sources = { [SOURCE_ONCPU] = true, [SOURCE_GROWTH] = true },
				 .mem_mb = 64 };

static struct run *prepared(void **ret_self)
{
	struct run *r = bare_run(&cfg);
	struct session_opts opts = { 0 };

	*ret_self = alone(r, "stacks");
	assert_int_equal(component_named("stacks")->prepare(*ret_self, &opts, NULL), 0);
	return r;
}

static void a_stack_that_is_still_to_be_walked_waits_and_is_counted(void **state)
{
	const struct component *c = component_named("stacks");
	void *self;
	struct run *r = prepared(&self);
	struct ms_deferred_rec rec = { .stack_bytes = 8 };
	uint64_t bytes = 1;

	assert_int_equal(c->open(self, NULL), 0);
	assert_int_equal(deliver(DRAIN_DEFERRED, &rec, &bytes), DRAIN_TAKEN);
	assert_int_equal(deliver(DRAIN_DEFERRED, &rec, &bytes), DRAIN_TAKEN);
	assert_int_equal(r->counts.deferred, 2);
	bare_run_free(r);
}

static void chains_of_deferred_stacks_are_bounded_and_freed(void **state)
{
	const struct component *c = component_named("stacks");
	void *self;
	struct run *r = prepared(&self);
	struct ms_deferred_rec rec = { .stack_bytes = 8, .hash.lo = 7 };
	struct ms_chain_rec chain = { .n_links = 1 };
	struct ms_chain_link link = { .words = { 1, 2 } };
	uint64_t bytes = 1;

	assert_int_equal(c->open(self, NULL), 0);
	/* Some whose stacks never come; one that is taken by its stack. */
	for (chain.hash.lo = 1; chain.hash.lo < 1000; chain.hash.lo++)
		assert_int_equal(deliver(DRAIN_CHAIN, &chain, &link), DRAIN_TAKEN);
	chain.hash = rec.hash;
	assert_int_equal(deliver(DRAIN_CHAIN, &chain, &link), DRAIN_TAKEN);
	assert_int_equal(deliver(DRAIN_DEFERRED, &rec, &bytes), DRAIN_TAKEN);
	assert_int_equal(r->counts.deferred, 1);
	bare_run_free(r);
}

static void verdicts_are_reported_of_the_sources_that_were_asked_for(void **state)
{
	void *self;
	struct run *r = prepared(&self);
	struct run_summary s = { 0 };

	component_named("stacks")->report(self, &s);
	assert_int_equal(s.n_stacks, 2);
	assert_string_equal(s.stacks[0].source, "oncpu");
	assert_string_equal(s.stacks[1].source, "growth");
	bare_run_free(r);
}

static void without_user_stacks_there_are_no_tables(void **state)
{
	const struct component *c = component_named("stacks");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "stacks");
	struct session_opts opts = { .unwind_bytes = 1 };

	assert_int_equal(c->prepare(self, &opts, NULL), 0);
	assert_int_equal(opts.unwind_bytes, 0);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_that_is_still_to_be_walked_waits_and_is_counted),
		cmocka_unit_test(chains_of_deferred_stacks_are_bounded_and_freed),
		cmocka_unit_test(verdicts_are_reported_of_the_sources_that_were_asked_for),
		cmocka_unit_test(without_user_stacks_there_are_no_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
