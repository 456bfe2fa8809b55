#include "run/memory/census_child.h"
#include "run/output/files.h"
#include "run_fixture.h"

#include <unistd.h>

#define S 1000000000ULL

static struct run_config cfg = { .census_s = 10, .max_overhead = 5, .dir = "." };
static struct census_result result;
static bool is_done;
static pid_t asked;
static uint64_t asked_link_max;
static struct target here[2];

/* --- a child that finds what the test says --- */

int census_begin(struct census_child *c, pid_t pid, uint64_t link_max, struct err *e)
{
	(void)e;
	asked_link_max = link_max;
	called("begin");
	asked = pid;
	c->kid = 1;
	is_done = false;
	return 0;
}

const struct census_result *census_ended(struct census_child *c, uint32_t patience_ms)
{
	if (!is_done && !patience_ms)
		return NULL;
	c->kid = 0;
	return &result;
}

void census_child_fini(struct census_child *c)
{
	(void)c;
}

void targets_each(const struct run *r, void (*fn)(void *ctx, const struct target *t), void *ctx)
{
	(void)r;
	for (int i = 0; i < 2; i++)
		if (here[i].pid)
			fn(ctx, &here[i]);
}

struct target *target_of(const struct run *r, pid_t pid)
{
	(void)r;
	for (int i = 0; i < 2; i++)
		if (here[i].pid == pid)
			return &here[i];
	return NULL;
}

int output_csv(struct run_output *to, const char *name,
	       int (*write)(void *ctx, struct sink *sink, struct err *e), void *ctx, struct err *e)
{
	(void)to, (void)write, (void)ctx, (void)e;
	called(name);
	return 0;
}

static void found(uint64_t objects, uint64_t paused_ns)
{
	result = (struct census_result){ .wall_ns = 1,
					 .paused_ns = paused_ns,
					 .n_pauses = 1,
					 .all = { "", 10 * objects, objects },
					 .types = { { "web.Session", 10 * objects, objects } },
					 .n = 1,
					 .is_linked = true };
	is_done = true;
}

static struct run *begun(void **ret_self)
{
	struct run *r = bare_run(&cfg);

	memset(here, 0, sizeof(here));
	here[0].pid = getpid();
	*ret_self = alone(r, "census");
	assert_int_equal(component_named("census")->start(*ret_self, NULL), 0);
	return r;
}

/* --- */

static void one_follows_the_other_at_the_interval(void **state)
{
	const struct component *c = component_named("census");
	void *self;
	struct run *r = begun(&self);

	(void)state;
	c->tick(self, 100 * S);
	assert_string_equal(fake.calls, "begin");
	assert_int_equal(asked, getpid());
	c->tick(self, 111 * S); /* still at work: no second one beside it */
	assert_string_equal(fake.calls, "begin");
	found(100, S / 100);
	c->tick(self, 112 * S);
	assert_string_equal(fake.calls, "begin begin");
	found(300, S / 100);
	c->tick(self, 113 * S);
	c->tick(self, 121 * S);
	assert_string_equal(fake.calls, "begin begin");
	r->clock.end_ns = fake.start_ns + 10 * S;
	c->stop(self);
	c->report(self, NULL);
	assert_int_equal(r->notes.n, 1);
	assert_false(r->notes.partial);
	assert_non_null(
		strstr(r->notes.text[0],
		       "2 pauses of 20.0 ms in all, 0.20 % of the run; most grew web.Session by "));
	assert_non_null(strstr(r->notes.text[0], "(200 objects)"));
	assert_int_equal(c->write(self, NULL, NULL), 0);
	assert_string_equal(fake.calls, "begin begin census");
	bare_run_free(r);
}

static void long_pauses_make_the_interval_longer_and_count_in_the_overhead(void **state)
{
	const struct component *c = component_named("census");
	void *self;
	struct run *r = begun(&self);

	(void)state;
	c->tick(self, 100 * S);
	found(1, S); /* 5 % of 20 s */
	c->tick(self, 102 * S);
	assert_int_equal(r->counts.paused_ns, S);
	c->tick(self, 119 * S);
	assert_string_equal(fake.calls, "begin");
	c->tick(self, 120 * S);
	assert_string_equal(fake.calls, "begin begin");
	found(1, S / 10); /* and shorter ones shorter again */
	c->tick(self, 121 * S);
	c->tick(self, 130 * S);
	assert_string_equal(fake.calls, "begin begin begin");
	r->clock.end_ns = fake.start_ns + 40 * S;
	c->report(self, NULL);
	assert_int_equal(r->notes.n, 2);
	assert_non_null(strstr(r->notes.text[1], "every 20 s at times, not every 10"));
	bare_run_free(r);
}

static void what_is_at_work_when_the_run_ends_is_waited_for(void **state)
{
	const struct component *c = component_named("census");
	void *self;
	struct run *r = begun(&self);

	(void)state;
	c->tick(self, 100 * S);
	found(7, 1000);
	is_done = false;
	c->stop(self);
	assert_int_equal(c->write(self, NULL, NULL), 0);
	assert_string_equal(fake.calls, "begin census");
	bare_run_free(r);
}

static void a_census_that_fails_is_said_and_the_next_one_is_tried(void **state)
{
	const struct component *c = component_named("census");
	void *self;
	struct run *r = begun(&self);

	(void)state;
	c->tick(self, 100 * S);
	result = (struct census_result){ .error = -1, .sentence = "no allocator" };
	is_done = true;
	c->tick(self, 101 * S);
	c->tick(self, 110 * S);
	assert_string_equal(fake.calls, "begin begin");
	c->report(self, NULL);
	assert_true(r->notes.partial);
	assert_non_null(strstr(r->notes.text[0], "1 of 1 failed; the last of them: no allocator"));
	assert_int_equal(c->write(self, NULL, NULL), 0);
	assert_string_equal(fake.calls, "begin begin");
	bare_run_free(r);
}

static void where_references_were_not_looked_at_that_is_said(void **state)
{
	const struct component *c = component_named("census");
	void *self;
	struct run *r = begun(&self);

	(void)state;
	c->tick(self, 100 * S);
	assert_int_equal(asked_link_max, 40 << 20);
	found(1, 1000);
	result.is_linked = false;
	c->tick(self, 101 * S);
	r->clock.end_ns = fake.start_ns + 10 * S;
	c->report(self, NULL);
	assert_int_equal(r->notes.n, 2);
	assert_non_null(strstr(r->notes.text[1], "in 1 of 1 the heap was larger than 40.0 MiB"));
	bare_run_free(r);
}

static void it_stays_with_a_process_until_that_ends(void **state)
{
	const struct component *c = component_named("census");
	void *self;
	struct run *r = begun(&self);

	(void)state;
	c->tick(self, 100 * S);
	found(1, 1000);
	here[1].pid = getppid();
	c->tick(self, 110 * S);
	assert_int_equal(asked, getpid());
	found(1, 1000);
	here[0].ended_ns = 1;
	c->tick(self, 120 * S);
	assert_int_equal(asked, getppid());
	bare_run_free(r);
}

static void without_a_target_nothing_is_begun(void **state)
{
	const struct component *c = component_named("census");
	void *self;
	struct run *r = begun(&self);

	(void)state;
	here[0].ended_ns = 1;
	c->tick(self, 100 * S);
	assert_string_equal(fake.calls, "");
	c->report(self, NULL);
	assert_true(r->notes.partial);
	bare_run_free(r);
}

static void it_takes_part_only_where_it_is_asked_for(void **state)
{
	const struct component *c = component_named("census");

	(void)state;
	assert_true(c->wanted(&cfg));
	assert_false(c->wanted(&(struct run_config){ .dir = "." }));
	assert_false(c->wanted(&(struct run_config){ .census_s = 1 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_follows_the_other_at_the_interval),
		cmocka_unit_test(long_pauses_make_the_interval_longer_and_count_in_the_overhead),
		cmocka_unit_test(what_is_at_work_when_the_run_ends_is_waited_for),
		cmocka_unit_test(a_census_that_fails_is_said_and_the_next_one_is_tried),
		cmocka_unit_test(where_references_were_not_looked_at_that_is_said),
		cmocka_unit_test(it_stays_with_a_process_until_that_ends),
		cmocka_unit_test(without_a_target_nothing_is_begun),
		cmocka_unit_test(it_takes_part_only_where_it_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
