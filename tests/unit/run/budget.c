#include "collect/overhead/budget.h"
#include "run/serve/serve_config.h"
#include "run_fixture.h"

/* A table of its own: two who share the limit. */
struct part {
	struct run *run;
	double cost, limit;
};

static double cost(void *self, struct cost_window *w)
{
	w->fixed_ns = 0;
	return ((struct part *)self)->cost;
}

static void limit(void *self, double percent)
{
	((struct part *)self)->limit = percent;
}

static const struct component allocs = { .name = "a",
					 .size = sizeof(struct part),
					 .share = BUDGET_ALLOCATIONS,
					 .source = SOURCE_ALLOC,
					 .cost = cost,
					 .limit = limit };
static const struct component waits = { .name = "w",
					.size = sizeof(struct part),
					.share = BUDGET_WAIT_STACKS,
					.source = SOURCE_OFFCPU,
					.cost = cost,
					.limit = limit };
const struct component *const components[] = { &allocs, &waits, NULL };

static struct program_cost program[N_COSTS];
struct costs *costs_new(struct session *s)
{
	return (struct costs *)program;
}
void costs_free(struct costs *c)
{
}
void costs_tick(struct costs *c, uint64_t now)
{
	called("tick");
}
void costs_stop(struct costs *c, uint64_t now)
{
	called("stop");
}
uint64_t costs_read(const struct costs *c, struct program_cost *ret)
{
	memcpy(ret, program, sizeof(program));
	return 100000000;
}

static const struct run_config cfg = { .max_overhead = 5, .all = true };

static void each_gets_what_the_fixed_part_and_the_other_leave(void **state)
{
	struct run *r = bare_run(&cfg);
	struct part *a = alone(r, "a"), *w = alone(r, "w");
	struct budget b = { .limit = 5, .allocs = 1, .looks = 0.5 };

	a->cost = 1;
	w->cost = 0.5;
	memset(program, 0, sizeof(program));
	budget_start(r);
	budget_tick(r, fake.start_ns + 1000000000);
	assert_true(a->limit == budget_for_allocs(&b));
	assert_true(w->limit == budget_for_stack_samples(&b));
	assert_string_equal(fake.calls, "tick");
	budget_free(r);
	bare_run_free(r);
}

static void looks_of_a_service_take_a_quarter_of_its_limit_and_come_every_20_s_at_most(void **state)
{
	static struct serve_config serve = { .own_limit = 1 };
	struct run_config c = { .max_overhead = 1 };

	(void)state;
	assert_int_equal(budget_look_rest_ns(&c, 1000000), 100000000);
	c.serve = &serve;
	assert_int_equal(budget_look_rest_ns(&c, 1000000000), 400000000000);
	assert_int_equal(budget_look_rest_ns(&c, 1000000),
			 20000000000); /* short ones are not more for that */
	c.max_overhead = 0.5;
	assert_int_equal(budget_look_rest_ns(&c, 1000000), 40000000000);
	c.max_overhead = 50; /* a hundredth at most, whatever it may take */
	assert_int_equal(budget_look_rest_ns(&c, 1000000000), 100000000000);
}

static void what_programs_take_is_told_by_source(void **state)
{
	struct run *r = bare_run(&cfg);
	struct budget_use uses[N_COSTS];

	(void)state;
	memset(program, 0, sizeof(program));
	assert_int_equal(budget_uses(r, uses), 0);
	budget_start(r);
	/* 1,000 samples of 10 us and an interrupt of 3 each in a tenth of a second: 0.13 of a CPU. */
	program[SOURCE_ONCPU] = (struct program_cost){ .runs = 1000, .run_ns = 10000000 };
	assert_int_equal(budget_uses(r, uses), N_COSTS);
	assert_string_equal(uses[SOURCE_ONCPU].name, "on-CPU");
	assert_true(uses[SOURCE_ONCPU].cpus > 0.1299 && uses[SOURCE_ONCPU].cpus < 0.1301);
	assert_true(uses[SOURCE_OFFCPU].cpus < 1e-9);
	budget_free(r);
	bare_run_free(r);
}

static void dearer_samples_leave_less_to_both(void **state)
{
	struct run *r = bare_run(&cfg);
	struct part *a = alone(r, "a"), *w = alone(r, "w");
	double before;

	memset(program, 0, sizeof(program));
	budget_start(r);
	budget_tick(r, fake.start_ns + 1000000000);
	before = a->limit;
	/* 1,000 samples of 10 us in a tenth of a second: 10 % of a CPU and the interrupts. */
	program[SOURCE_ONCPU] = (struct program_cost){ .runs = 1000, .run_ns = 10000000 };
	budget_tick(r, fake.start_ns + 1020000000); /* a tick later: not yet */
	assert_true(a->limit == before);
	budget_tick(r, fake.start_ns + 1100000000);
	assert_true(a->limit < before);
	/* Never nothing: then nobody would know what it costs. */
	assert_true(a->limit + w->limit >= BUDGET_REST_LEAST * 5);
	budget_free(r);
	bare_run_free(r);
}

static void pauses_for_censuses_leave_less_and_are_a_row_of_the_overhead(void **state)
{
	static const struct run_config all = { .max_overhead = 5,
					       .all = true,
					       .sources = { true, true, true, true, true, true } };
	struct run *r = bare_run(&all);
	struct part *a = alone(r, "a");
	struct run_summary s = { .duration_ns = 1000000000 };
	double before;

	(void)state;
	memset(program, 0, sizeof(program));
	budget_start(r);
	budget_tick(r, fake.start_ns + 1000000000);
	before = a->limit;
	budget_report(r, &s);
	assert_int_equal(s.cost.target_ns, 0);
	r->counts.paused_ns = 20000000; /* 2 % */
	r->counts.pauses = 4;
	budget_tick(r, fake.start_ns + 1100000000);
	assert_true(a->limit < before);
	memset(&s.cost, 0, sizeof(s.cost));
	budget_report(r, &s);
	assert_int_equal(s.cost.target_ns, 20000000);
	assert_int_equal(s.cost.ns, 20000000);
	assert_int_equal(s.cost.n, N_COSTS + 1); /* beside those of all sources */
	assert_string_equal(s.cost.sources[s.cost.n - 1].name, "pauses for censuses");
	assert_int_equal(s.cost.sources[s.cost.n - 1].events, 4);
	assert_true(s.cost.sources[s.cost.n - 1].program_ns == 5000000);
	budget_free(r);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_gets_what_the_fixed_part_and_the_other_leave),
		cmocka_unit_test(
			looks_of_a_service_take_a_quarter_of_its_limit_and_come_every_20_s_at_most),
		cmocka_unit_test(what_programs_take_is_told_by_source),
		cmocka_unit_test(dearer_samples_leave_less_to_both),
		cmocka_unit_test(pauses_for_censuses_leave_less_and_are_a_row_of_the_overhead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
