/*
 * Events as a source, with probes that count what a test says.
 */
#include "run_fixture.h"

#include "analyse/summary.h"
#include "collect/events/event_probes.h"
#include "run/targets.h"

static struct event_spec specs[] = {
	{ .text = "page-faults", .name = "unit-page-faults" },
	{ .text = "sched:sched_switch", .name = "unit-sched_switch", .kind = EVENT_TRACEPOINT },
};
static struct run_config cfg = { .sources = { [SOURCE_EVENTS] = true },
				 .max_overhead = 5,
				 .events = (struct event_spec *)specs,
				 .n_events = 2 };

static struct {
	struct event_count counts[3];
	uint32_t more; /* events of the second item */
	const char *why[2];
	uint32_t one_in[2];
	bool stopped[2], untimed[2], begun, detached;
	uint32_t sweeps;
	pid_t added, dropped;
	double trap_ns, trap_more_ns;
} probes;

int event_probes_new(const struct event_spec *s, uint32_t n, struct event_probes **ret,
		     struct err *e)
{
	assert_ptr_equal(s, specs);
	assert_int_equal(n, 2);
	*ret = NULL;
	return 0;
}

void event_probes_free(struct event_probes *ep)
{
	(void)ep;
}
const char *event_why_not(const struct event_spec *spec)
{
	(void)spec;
	return NULL;
}
void event_probes_opts(const struct event_probes *ep, struct session_opts *opts)
{
	(void)ep;
	(void)opts;
}
void event_probes_attach(struct event_probes *ep, struct session *s, uint32_t hz)
{
	(void)ep;
	(void)s;
	(void)hz;
}
void targets_each(const struct run *r, void (*fn)(void *ctx, const struct target *t), void *ctx)
{
	(void)r;
	(void)fn;
	(void)ctx;
}
void event_probes_in(struct event_probes *ep, struct dict *d, struct proc_table *procs,
		     bool file_scope)
{
	(void)ep;
	(void)d;
	(void)procs;
	(void)file_scope;
}
int event_probes_add(struct event_probes *ep, pid_t pid)
{
	(void)ep;
	probes.added = pid;
	return 1;
}
void event_probes_drop(struct event_probes *ep, pid_t pid)
{
	(void)ep;
	probes.dropped = pid;
}
uint32_t event_probes_failed(const struct event_probes *ep, uint32_t spec, const char **ret_why)
{
	(void)ep;
	(void)spec;
	*ret_why = "";
	return 0;
}
double event_probes_return_ns(const struct event_probes *ep)
{
	(void)ep;
	return 9800;
}
void event_probes_times(const struct event_probes *ep, uint32_t number, struct call_times *ret)
{
	(void)ep;
	(void)number;
	*ret = (struct call_times){
		.returned = 7, .ns = 700, .outer = 5, .outer_ns = 500, .left = 2
	};
	ret->parts[1] = 7;
}
void event_probes_sweep(struct event_probes *ep, bool (*lives)(void *ctx, pid_t pid), void *ctx)
{
	(void)ep;
	(void)lives;
	(void)ctx;
	probes.sweeps++;
}
const char *event_probes_untimed(const struct event_probes *ep, uint32_t number)
{
	(void)ep;
	(void)number;
	return NULL;
}
void event_probes_untime(struct event_probes *ep, uint32_t spec)
{
	(void)ep;
	probes.untimed[spec] = true;
}
double event_probes_trap_ns(const struct event_probes *ep, uint32_t number)
{
	(void)ep;
	return number > 1 ? probes.trap_more_ns : probes.trap_ns;
}
void event_probes_begin(struct event_probes *ep)
{
	(void)ep;
	probes.begun = true;
}
void event_probes_detach(struct event_probes *ep)
{
	probes.detached = true;
}
void event_probes_stop(struct event_probes *ep, uint32_t spec)
{
	probes.stopped[spec] = true;
}
void event_probes_thin(struct event_probes *ep, uint32_t spec, uint32_t one_in)
{
	probes.one_in[spec] = one_in;
}
uint32_t event_probes_n_specs(const struct event_probes *ep)
{
	return 2;
}
const struct event_spec *event_probes_spec(const struct event_probes *ep, uint32_t spec)
{
	return &specs[spec];
}
const char *event_probes_why(const struct event_probes *ep, uint32_t spec)
{
	return probes.why[spec];
}
uint32_t event_probes_n(const struct event_probes *ep)
{
	return 2 + probes.more;
}
uint64_t event_probes_missed(const struct event_probes *ep, uint32_t spec)
{
	return spec ? 0 : 3;
}
uint64_t event_probes_missed_tracepoints(const struct event_probes *ep)
{
	return 4;
}

struct event_probe event_probes_get(const struct event_probes *ep, uint32_t number)
{
	uint32_t spec = number > 1 ? 1 : number;

	return (struct event_probe){ .spec = spec, .name = specs[spec].text };
}

void event_probes_counts(const struct event_probes *ep, struct event_count *ret, uint32_t n)
{
	assert_int_equal(n, 2 + probes.more);
	memcpy(ret, probes.counts, n * sizeof(*ret));
}

static void come(uint32_t spec, uint64_t n)
{
	probes.counts[spec].fired += n;
	probes.counts[spec].count += n;
	probes.counts[spec].taken += n;
}

static void *begun(struct run *r, uint64_t now)
{
	const struct component *c = component_named("events");
	struct session_opts opts = { 0 };
	void *self = alone(r, "events");

	memset(&probes, 0, sizeof(probes));
	assert_int_equal(c->prepare(self, &opts, NULL), 0);
	assert_int_equal(c->attach(self, NULL), 0);
	fake.start_ns = now;
	c->tick(self, now + 1);
	return self;
}

static void each_event_is_counted_and_has_a_profile(void **state)
{
	const struct component *c = component_named("events");
	struct run *r = bare_run(&cfg);
	void *self = begun(r, 1000);
	static struct run_summary s;

	(void)state;
	come(0, 20);
	come(1, 30);
	c->stop(self);
	c->report(self, &s);
	assert_true(probes.detached);
	assert_true(s.events.known);
	assert_int_equal(s.events.n, 2);
	assert_string_equal(s.events.rows[0].profile, "unit-page-faults"); /* as asked for */
	assert_string_equal(s.events.rows[0].unit, "count");
	assert_int_equal(s.events.rows[0].count, 20);
	assert_int_equal(s.events.rows[0].missed, 3);
	assert_int_equal(s.events.rows[1].count, 30);
	assert_int_equal(s.events.missed_tracepoints, 4);
	bare_run_free(r);
}

/* Programs run while the gate is shut, too. */
static void rates_are_from_the_opening_of_the_gate_on(void **state)
{
	const struct component *c = component_named("events");
	struct run *r = bare_run(&cfg);
	struct session_opts opts = { 0 };
	void *self = alone(r, "events");

	(void)state;
	memset(&probes, 0, sizeof(probes));
	assert_int_equal(c->prepare(self, &opts, NULL), 0);
	assert_int_equal(c->attach(self, NULL), 0);
	come(1, 100000000);
	fake.start_ns = 1000;
	assert_int_equal(c->start(self, NULL), 0);
	assert_true(probes.begun);
	come(1, 100);
	for (uint64_t i = 1; i <= 5; i++)
		c->tick(self, 1001 + i * 1000000000);
	assert_int_equal(probes.one_in[1], 0);
	assert_false(probes.stopped[1]);
	bare_run_free(r);
}

static void stacks_that_would_cost_too_much_are_thinned(void **state)
{
	const struct component *c = component_named("events");
	struct run *r = bare_run(&cfg);
	void *self = begun(r, 1000);

	(void)state;
	come(0, 100);
	come(1, 100000); /* in a second: 2.5 % of a CPU are 10,000 stacks of 2.5 us */
	c->tick(self, 1000000001);
	assert_int_equal(probes.one_in[0], 0); /* as it was: few */
	assert_in_range(probes.one_in[1], 10, 16);
	assert_false(probes.stopped[1]);
	bare_run_free(r);
}

static void what_costs_too_much_without_stacks_is_given_up(void **state)
{
	const struct component *c = component_named("events");
	struct run *r = bare_run(&cfg);
	void *self = begun(r, 1000);

	(void)state;
	for (uint64_t i = 1; i <= 5; i++) {
		assert_false(probes.stopped[1]);
		come(1, 300000); /* a second; 250,000 of 200 ns are 5 % of a CPU */
		c->tick(self, 1001 + i * 1000000000);
	}
	assert_true(probes.stopped[1]);
	assert_false(probes.stopped[0]);
	bare_run_free(r);
}

static void a_trap_is_part_of_what_an_event_costs(void **state)
{
	const struct component *c = component_named("events");
	struct run *r = bare_run(&cfg);
	void *self = begun(r, 1000);

	(void)state;
	probes.trap_ns = 1800;
	for (uint64_t i = 1; i <= 5; i++) {
		come(1, 30000); /* a second; 25,000 of 2000 ns are 5 % of a CPU */
		c->tick(self, 1001 + i * 1000000000);
	}
	assert_true(probes.stopped[1]);
	bare_run_free(r);
}

/* One function of many whose instruction has to be stepped over says nothing of the others. */
static void each_event_of_an_item_has_its_own_price(void **state)
{
	const struct component *c = component_named("events");
	struct run *r = bare_run(&cfg);
	void *self = begun(r, 1000);

	(void)state;
	probes.more = 1;
	probes.trap_ns = 500;
	probes.trap_more_ns = 10000;
	for (uint64_t i = 1; i <= 6; i++) {
		come(1, 60000); /* a second: 700 ns each, 4.2 % of a CPU */
		come(2, 100);   /* 0.1 % */
		c->tick(self, 1001 + i * 1000000000);
	}
	assert_false(probes.stopped[1]);
	for (uint64_t i = 7; i <= 12; i++) {
		come(2, 6000); /* 6.1 % */
		c->tick(self, 1001 + i * 1000000000);
	}
	assert_true(probes.stopped[1]);
	bare_run_free(r);
}

static void calls_are_timed_until_that_costs_too_much_then_counted(void **state)
{
	const struct component *c = component_named("events");
	struct run *r = bare_run(&cfg);
	static struct run_summary s;
	void *self;

	(void)state;
	specs[1].timed = true;
	self = begun(r, 1000);
	for (uint64_t i = 1; i <= 10; i++) {
		come(1, 9000); /* a second: 200 ns each, and 10 us where it returns */
		probes.counts[1].returns += probes.untimed[1] ? 0 : 9000;
		c->tick(self, 1001 + i * 1000000000);
	}
	assert_true(probes.untimed[1]);
	assert_false(probes.stopped[1]);
	c->stop(self);
	assert_int_equal(probes.sweeps, 4); /* at the first tick, each 5 s, at the end */
	c->report(self, &s);
	assert_true(s.counts.known);
	assert_int_equal(s.counts.n, 1);
	assert_int_equal(s.counts.rows[0].calls, 90000);
	assert_int_equal(s.counts.rows[0].returned, 7);
	assert_int_equal(s.counts.rows[0].parts[1], 7);
	assert_true(s.counts.rows[0].timed_s > 4 && s.counts.rows[0].timed_s < 6);
	specs[1].timed = false;
	bare_run_free(r);
}

static void probes_follow_processes(void **state)
{
	const struct component *c = component_named("events");
	struct run *r = bare_run(&cfg);
	void *self = begun(r, 1000);
	struct process_event event = { .kind = PROCESS_MAPPED, .pid = 7, .ns = 5 };

	(void)state;
	c->process(self, &event); /* no target's */
	assert_int_equal(probes.added, 0);
	event.target = true;
	c->process(self, &event);
	assert_int_equal(probes.added, 7);
	event.kind = PROCESS_FORKED;
	event.child = true;
	event.pid = 8;
	c->process(self, &event);
	assert_int_equal(probes.added, 8);
	event.kind = PROCESS_ENDED;
	c->process(self, &event);
	assert_int_equal(probes.dropped, 8);
	c->stop(self);
	assert_int_equal(r->notes.n, 1);
	assert_non_null(strstr(r->notes.text[0], "2 times"));
	bare_run_free(r);
}

static void a_run_none_of_whose_events_is_here_is_refused(void **state)
{
	const struct component *c = component_named("events");
	struct run *r = bare_run(&cfg);
	struct session_opts opts = { 0 };
	void *self = alone(r, "events");
	struct err e = { 0 };

	(void)state;
	memset(&probes, 0, sizeof(probes));
	assert_int_equal(c->prepare(self, &opts, &e), 0);
	probes.why[0] = probes.why[1] = "not here";
	assert_true(c->attach(self, &e) < 0);
	assert_non_null(strstr(e.msg, "not here"));
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_event_is_counted_and_has_a_profile),
		cmocka_unit_test(rates_are_from_the_opening_of_the_gate_on),
		cmocka_unit_test(stacks_that_would_cost_too_much_are_thinned),
		cmocka_unit_test(what_costs_too_much_without_stacks_is_given_up),
		cmocka_unit_test(a_trap_is_part_of_what_an_event_costs),
		cmocka_unit_test(each_event_of_an_item_has_its_own_price),
		cmocka_unit_test(calls_are_timed_until_that_costs_too_much_then_counted),
		cmocka_unit_test(probes_follow_processes),
		cmocka_unit_test(a_run_none_of_whose_events_is_here_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
