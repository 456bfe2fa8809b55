#include "heap/gc/gc.h"
#include "run_fixture.h"

#include <errno.h>

#define S 1000000000ULL

static struct run_config cfg = { .dir = "." };

/* --- a runtime that counts what the test says --- */

static struct {
	int opens, open_result, read_result;
	struct gc_counters counters;
} runtime;

int gc_reader_open(pid_t pid, struct gc_reader **ret_reader)
{
	(void)pid;
	runtime.opens++;
	if (runtime.open_result == 0)
		*ret_reader = (struct gc_reader *)&runtime;
	return runtime.open_result;
}

void gc_reader_close(struct gc_reader *r)
{
	if (r)
		called("close");
}

const char *gc_reader_runtime(const struct gc_reader *r)
{
	(void)r;
	return "GHC";
}

const char *gc_reader_missing(const struct gc_reader *r)
{
	(void)r;
	return "";
}

bool gc_reader_untested(const struct gc_reader *r)
{
	(void)r;
	return false;
}

int gc_reader_read(struct gc_reader *r, struct gc_counters *ret_counters)
{
	(void)r;
	*ret_counters = runtime.counters;
	return runtime.read_result;
}

static const struct component *c;
static void *self;

static struct run *begun(void)
{
	struct run *r = bare_run(&cfg);

	c = component_named("garbage collections");
	self = alone(r, "garbage collections");
	memset(&runtime, 0, sizeof(runtime));
	runtime.counters = (struct gc_counters){ .count = 10,
						 .time_ns = 500,
						 .longest_ns = GC_UNKNOWN,
						 .last_ns = GC_UNKNOWN,
						 .live_bytes = 4096,
						 .heap_bytes = 8192 };
	assert_int_equal(c->prepare(self, NULL, NULL), 0);
	return r;
}

static void happens(enum process_event_kind kind, pid_t pid, bool newborn)
{
	struct process_event event = {
		.kind = kind, .pid = pid, .target = true, .newborn = newborn
	};

	c->process(self, &event);
}

/* --- */

static void each_row_has_what_was_collected_since_the_run_began(void **state)
{
	struct run_summary sum = { 0 };
	struct run *r = begun();

	(void)state;
	c->row(self, 0);
	assert_false(r->row.gc.known);
	happens(PROCESS_ADDED, 7, false);
	c->tick(self, S);
	runtime.counters.count = 13;
	runtime.counters.time_ns = 900;
	c->tick(self, 2 * S);
	c->row(self, 2 * S);
	assert_true(r->row.gc.known);
	assert_int_equal(r->row.gc.count, 3);
	assert_int_equal(r->row.gc.time_ns, 400);
	assert_int_equal(r->row.gc.live_bytes, 4096);
	c->row(self, 2 * S); /* again the same: it is no sum of rows */
	assert_int_equal(r->row.gc.count, 3);
	c->report(self, &sum);
	assert_int_equal(sum.gc.n, 1);
	assert_int_equal(sum.gc.rows[0].count, 3);
	assert_int_equal(sum.gc.rows[0].live_bytes, 4096);
	assert_string_equal(fake.calls, "close");
	bare_run_free(r);
}

static void what_has_ended_stays_in_the_sums(void **state)
{
	struct run *r = begun();

	(void)state;
	happens(PROCESS_ADDED, 7, true);
	c->tick(self, S);
	happens(PROCESS_ENDED, 7, false);
	c->row(self, S);
	assert_int_equal(r->row.gc.count, 10); /* it began in the run: all of them */
	assert_int_equal(r->row.gc.live_bytes, GC_UNKNOWN);
	happens(PROCESS_ADDED, 8, true);
	c->tick(self, 2 * S);
	runtime.read_result = -ESRCH; /* gone before the kernel says so */
	c->tick(self, 3 * S);
	c->row(self, 3 * S);
	assert_int_equal(r->row.gc.count, 20);
	happens(PROCESS_ENDED, 8, false);
	c->row(self, 4 * S);
	assert_int_equal(r->row.gc.count, 20);
	bare_run_free(r);
}

static void a_runtime_that_begins_late_is_tried_again_ever_less_often(void **state)
{
	struct run *r = begun();

	(void)state;
	runtime.open_result = -ENOENT;
	happens(PROCESS_ADDED, 7, true);
	for (uint64_t t = 0; t < 200 * S; t += S / 10)
		c->tick(self, t);
	assert_int_equal(runtime.opens, 12);
	happens(PROCESS_EXEC, 7, false); /* another program */
	runtime.open_result = 0;
	c->tick(self, 300 * S);
	c->row(self, 300 * S);
	assert_int_equal(r->row.gc.count, 10);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_has_what_was_collected_since_the_run_began),
		cmocka_unit_test(what_has_ended_stays_in_the_sums),
		cmocka_unit_test(a_runtime_that_begins_late_is_tried_again_ever_less_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
