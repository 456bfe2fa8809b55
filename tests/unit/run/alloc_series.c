#include "run/output/files.h"
#include "run_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static struct run_config cfg = { .sources = { [SOURCE_ALLOC] = true } };
static ingest_alloc_fn reported;
static void *reported_ctx;
static char text[1024];

void ingest_on_alloc(struct ingest *in, ingest_alloc_fn fn, void *ctx)
{
	reported = fn;
	reported_ctx = ctx;
}

int output_csv(struct run_output *to, const char *name,
	       int (*write)(void *ctx, struct sink *sink, struct err *e), void *ctx, struct err *e)
{
	char path[] = "/tmp/memscope-unit-alloc-series-XXXXXX";
	_cleanup_(sink_closep) struct sink *sink = NULL;
	int fd = mkstemp(path);
	ssize_t n;

	called(name);
	close(fd);
	assert_int_equal(sink_open_file(path, &sink, e), 0);
	assert_int_equal(write(ctx, sink, e), 0);
	assert_int_equal(sink_commit(sink, e), 0);
	fd = open(path, O_RDONLY);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	unlink(path);
	assert_true(n > 0);
	text[n] = '\0';
	return 0;
}

static void exact_calls_and_estimates_are_rates_by_the_same_clock(void **state)
{
	const struct component *c = component_named("allocation series");
	const struct proc_id proc = { .pid = 1 };
	struct run *r = bare_run(&cfg);
	location_id at = dict_location(r->dict, (module_id){ 0 }, 4096);
	stack_id stack = dict_stack(r->dict, &at, 1);
	void *self = alone(r, "allocation series");
	uint64_t start = now_ns() - 4000000000;

	setenv("TZ", "UTC", 1);
	fake.start_ns = start;
	assert_int_equal(c->attach(self, NULL), 0);
	c->drained(self, start);
	reported(reported_ctx, &proc, stack, 1, 4000, 0);
	reported(reported_ctx, &proc, stack, -1, -4000, 0);       /* a free allocates nothing */
	reported(reported_ctx, &proc, stack, 1, 4000, start + 1); /* nor what is still there  */
	c->row(self, start + 2000000000);
	c->row(self, start + 4000000000);
	r->alloc.allocated(r->alloc.allocated_ctx, NULL, 600, start + 2000000000,
			   start + 4000000000);
	r->clock.end_ns = start + 4000000000;
	c->closed(self);
	assert_int_equal(c->write(self, NULL, NULL), 0);
	assert_string_equal(fake.calls, "alloc_series");
	assert_non_null(strstr(
		text, ",OTHER\n1970-01-01 00:00:02.000,2000,0\n1970-01-01 00:00:04.000,0,300\n"));
	bare_run_free(r);
}

static void without_allocations_there_is_no_file(void **state)
{
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "allocation series");

	component_named("allocation series")->row(self, now_ns());
	assert_int_equal(component_named("allocation series")->write(self, NULL, NULL), 0);
	assert_string_equal(fake.calls, "");
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_calls_and_estimates_are_rates_by_the_same_clock),
		cmocka_unit_test(without_allocations_there_is_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
