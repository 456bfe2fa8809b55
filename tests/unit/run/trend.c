#include "run_fixture.h"

#include <stdio.h>
#include <unistd.h>

static char dir[] = "/tmp/memscope-unit-trend-XXXXXX";
static struct run_config cfg = { .interval_s = 1, .quiet = true, .dir = dir };

static void rows_of_the_targets_memory_are_written_and_the_last_one_reported(void **state)
{
	const struct component *c = component_named("memory trend");
	struct process_event added = { .kind = PROCESS_ADDED, .pid = getpid(), .target = true };
	struct run_summary s = { 0 };
	struct session_opts opts = { 0 };
	char path[64], line[256];
	int lines = 0;
	struct run *r;
	void *self;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	r = bare_run(&cfg);
	self = alone(r, "memory trend");
	assert_int_equal(c->prepare(self, &opts, NULL), 0);
	c->process(self, &added);
	assert_int_equal(c->ready(self, NULL), 0);
	c->report(self, &s);
	assert_false(s.rss.known);
	c->row(self, now_ns());
	c->closing(self);
	c->report(self, &s);
	assert_true(s.rss.known && s.rss.last_kb > 0);
	bare_run_free(r);
	snprintf(path, sizeof(path), "%s/trend.csv", dir);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		lines++;
	fclose(f);
	assert_int_equal(lines, 3); /* the header, the row, the last one */
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_the_targets_memory_are_written_and_the_last_one_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
