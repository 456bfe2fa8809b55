#include "collect/stream/run_delays.h"
#include "run_fixture.h"

static struct run_config cfg = { .sources = { [SOURCE_OFFCPU] = true } };
static run_delay_fn on_event;
static void *on_event_ctx;

struct run_delays *run_delays_new(struct drain *d, run_delay_fn fn, void *ctx)
{
	on_event = fn;
	on_event_ctx = ctx;
	return (struct run_delays *)1;
}

void run_delays_free(struct run_delays *r)
{
}

static void whose(void *ctx, const struct proc_id *proc, uint64_t cgroup_id,
		  struct ingest_container *ret)
{
	ret->name = proc->pid == 8 ? "batch" : NULL;
}

static void delays_are_added_up_by_who_ran(void **state)
{
	const struct component *c = component_named("run_delays");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "run_delays");
	static struct run_summary s;
	struct run_delay_event event = { .proc = { .pid = 5, .exec_id = 1 },
					 .by = RUN_DELAY_PROCESS,
					 .other = { .pid = 8 },
					 .comm = "stress",
					 .count = 1,
					 .ns = 10 };
	struct session_opts opts = { 0 };

	(void)state;
	assert_int_equal(c->prepare(self, &opts, NULL), 0);
	assert_true(opts.run_delays);
	assert_int_equal(c->open(self, NULL), 0);
	ingest_container_lookup(r->ingest, whose, NULL);
	on_event(on_event_ctx, &event);
	event.proc.exec_id = 2; /* it executed something else: the same process */
	on_event(on_event_ctx, &event);
	event.other.pid = 5;
	event.ns = 7;
	on_event(on_event_ctx, &event);
	event.other.pid = 0;
	event.by = RUN_DELAY_KERNEL;
	memcpy(event.comm, "kworker", 8);
	on_event(on_event_ctx, &event);
	event.by = RUN_DELAY_IDLE;
	on_event(on_event_ctx, &event);
	event.by = RUN_DELAY_ELSEWHERE;
	on_event(on_event_ctx, &event);
	event.by = RUN_DELAY_UNKNOWN;
	on_event(on_event_ctx, &event);
	c->report(self, &s);
	assert_true(s.run_delays.known);
	assert_int_equal(s.run_delays.n, 3);
	assert_int_equal(s.run_delays.rows[0].by_pid, 8);
	assert_int_equal(s.run_delays.rows[0].ns, 20);
	assert_int_equal(s.run_delays.rows[0].count, 2);
	assert_string_equal(s.run_delays.rows[0].by_container, "batch");
	assert_string_equal(s.run_delays.rows[0].container, "");
	assert_int_equal(s.run_delays.sums.total_ns, 55);
	assert_int_equal(s.run_delays.sums.own_ns, 7);
	assert_int_equal(s.run_delays.sums.idle_ns, 7);
	assert_int_equal(s.run_delays.sums.elsewhere_ns, 7);
	assert_int_equal(s.run_delays.sums.unknown_ns, 7);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(s.run_delays.rows[i].own, s.run_delays.rows[i].by_pid == 5);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays_are_added_up_by_who_ran),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
