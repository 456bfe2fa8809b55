#include "run/alloc/alloc.h"
#include "proc/proc_mem.h"
#include "run_fixture.h"

static struct run_config cfg = { .sources = { [SOURCE_ALLOC] = true },
				 .alloc = ALLOC_SAMPLED,
				 .all = true,
				 .max_overhead = 5,
				 .mem_mb = 64 };

static struct alloc *made(struct run **ret_run)
{
	struct run *r = bare_run(&cfg);
	struct alloc *al = alone(r, "allocations");

	assert_int_equal(component_named("allocations")->command(al, NULL), 0);
	assert_int_equal(component_named("allocations")->open(al, NULL), 0);
	*ret_run = r;
	return al;
}

static void calls_of_a_burst_that_nobody_began_go_no_further(void **state)
{
	struct drain_burst calls = { .no = 3, .calls = 1 };
	struct run *r;

	made(&r);
	assert_int_equal(deliver(DRAIN_BURST, &calls, NULL), DRAIN_TAKEN);
	bare_run_free(r);
}

static void calls_that_nobody_watches_go_no_further(void **state)
{
	struct drain_call call = { .pc = 0x1000 };
	struct run *r;
	struct alloc *al = made(&r);

	assert_int_equal(deliver(DRAIN_CALL, &call, NULL), DRAIN_TAKEN);
	/* Not while a sampler is listened to. */
	assert_int_equal(behaviour_find(al), 0);
	bare_run_free(r);
}

static void what_others_know_of_it_follows_the_tier(void **state)
{
	struct run *r;
	struct alloc *al = made(&r);

	assert_false(r->alloc.tracing || r->alloc.following);
	assert_int_equal(r->alloc.live_bytes(r->alloc.live_ctx), MEM_UNKNOWN);
	alloc_set_tier(al, ALLOC_TIER_EXACT);
	alloc_begun(al);
	assert_true(r->alloc.tracing && r->alloc.following);
	alloc_set_tier(al, ALLOC_TIER_SAMPLED);
	assert_false(r->alloc.tracing);
	assert_true(r->alloc.following);
	alloc_ended(al, now_ns());
	assert_false(r->alloc.following);
	bare_run_free(r);
}

static void its_whole_cost_can_be_less_and_before_it_begins_there_is_none(void **state)
{
	const struct component *c = component_named("allocations");
	struct cost_window w = { .fixed_ns = 1e6 };
	struct run *r;
	struct alloc *al = made(&r);

	assert_true(c->cost(al, &w) == 0);
	assert_true(w.fixed_ns == 0);
	c->limit(al, 2.5);
	assert_true(al->limit_percent == 2.5);
	bare_run_free(r);
}

static void a_sampler_that_is_listened_to_keeps_within_what_it_is_given(void **state)
{
	const struct component *c = component_named("allocations");
	struct cost_window w = { 0 };
	struct run *r;
	struct alloc *al = made(&r);

	alloc_set_tier(al, ALLOC_TIER_SAMPLED);
	alloc_begun(al);
	al->sample_throttle.recent = 1.5;
	assert_true(c->cost(al, &w) == 1.5);
	c->limit(al, 0.5);
	assert_true(al->sample_throttle.max_percent == 0.5);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_a_burst_that_nobody_began_go_no_further),
		cmocka_unit_test(calls_that_nobody_watches_go_no_further),
		cmocka_unit_test(what_others_know_of_it_follows_the_tier),
		cmocka_unit_test(its_whole_cost_can_be_less_and_before_it_begins_there_is_none),
		cmocka_unit_test(a_sampler_that_is_listened_to_keeps_within_what_it_is_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
