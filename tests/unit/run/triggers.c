#include "proc/cgroup_use.h"
#include "proc/proc_mem.h"
#include "run_fixture.h"

#include <math.h>

static struct trigger when[3];
static struct run_config cfg = {
	.dir = "/tmp", .quiet = true, .when = when, .rearm_s = 60, .hz = 99
};
static int64_t rss_kb, group_kb;
static int processes_read;
static double total;

int proc_mem_sample(struct proc_mem *m, struct mem_sample *ret_sample)
{
	processes_read++;
	*ret_sample = (struct mem_sample){ .rss_kb = rss_kb, .cpu_ns = 0, .processes = 1 };
	return rss_kb ? 0 : -3;
}

void cgroup_use(const struct cgroup_mounts *mounts, const char *path, struct mem_group *ret_use)
{
	*ret_use = (struct mem_group){
		.charged_kb = group_kb, .file_kb = 0, .limit_kb = -1, .cpu_ns = 1
	};
}

void run_ask(struct run *r, const char *why)
{
	called(why);
}
bool session_ran_out_of_memory(const struct session *s, pid_t pid)
{
	return pid == 7;
}
void targets_each(const struct run *r, void (*fn)(void *ctx, const struct target *t), void *ctx)
{
}
static double total_bytes(void *ctx)
{
	return total;
}

static struct run *made(void **ret_self, const char *const *conditions)
{
	struct run *r;

	cfg.n_when = 0;
	while (conditions[cfg.n_when]) {
		assert_int_equal(trigger_parse(conditions[cfg.n_when], &when[cfg.n_when], NULL), 0);
		cfg.n_when++;
	}
	r = bare_run(&cfg);
	r->alloc.total_bytes = total_bytes;
	*ret_self = alone(r, "triggers");
	assert_int_equal(component_named("triggers")->prepare(*ret_self, NULL, NULL), 0);
	return r;
}

static bool is_noted(const struct run *r, const char *part)
{
	for (uint32_t i = 0; i < r->notes.n; i++)
		if (strstr(r->notes.text[i], part))
			return true;
	return false;
}

static void a_condition_that_is_met_asks_for_a_window_and_is_noted(void **state)
{
	static const char *const of[] = { "rss>1M", "allocated>1G", NULL };
	const struct component *c = component_named("triggers");
	struct run_summary s = { 0 };
	void *self;
	struct run *r = made(&self, of);

	rss_kb = 1000;
	total = NAN;
	c->tick(self, 1000000000);
	assert_string_equal(fake.calls, "");
	rss_kb = 2048;
	c->tick(self, 1100000000); /* too soon to look */
	assert_string_equal(fake.calls, "");
	c->tick(self, 1300000000);
	assert_string_equal(fake.calls, "rss_1M");
	c->tick(self, 2000000000);
	assert_string_equal(fake.calls, "rss_1M");
	rss_kb = 100;
	c->tick(self, 3000000000);
	rss_kb = 2048;
	c->tick(self, 4000000000); /* within a minute */
	assert_string_equal(fake.calls, "rss_1M");
	c->report(self, &s);
	assert_true(is_noted(r, "--when 'rss>1M' was met at "));
	assert_true(is_noted(r, "(2.0 MiB resident): profiles SOURCE_rss_1M-*"));
	assert_true(is_noted(r, "was met 1 more times within 60 s"));
	assert_true(is_noted(r, "'allocated>1G' could not be looked at"));
	bare_run_free(r);
	(void)state;
}

static void processes_are_not_read_where_their_groups_say_all(void **state)
{
	static const char *const of[] = { "rss>1M", NULL };
	struct group group = { .at.path = "/web" };
	const struct component *c = component_named("triggers");
	void *self;
	struct run *r;

	cfg.groups = &group;
	cfg.n_groups = 1;
	r = made(&self, of);
	processes_read = 0;
	rss_kb = 4096;
	group_kb = 100;
	c->tick(self, 1000000000);
	assert_string_equal(fake.calls, "");
	assert_int_equal(processes_read, 0);
	group_kb = -1; /* it says nothing of its memory */
	c->tick(self, 2000000000);
	assert_string_equal(fake.calls, "rss_1M");
	assert_int_equal(processes_read, 1);
	cfg.groups = NULL;
	cfg.n_groups = 0;
	bare_run_free(r);
	(void)state;
}

static void what_the_kernel_kills_fires_oom_at_the_latest_in_the_end(void **state)
{
	static const char *const of[] = { "oom", NULL };
	const struct component *c = component_named("triggers");
	struct process_event event = { .kind = PROCESS_ENDED, .pid = 6, .target = true };
	void *self;
	struct run *r = made(&self, of);

	rss_kb = 1000;
	c->tick(self, 1000000000);
	c->process(self, &event); /* it ended by itself */
	c->tick(self, 2000000000);
	assert_string_equal(fake.calls, "");
	event.pid = 7;
	c->process(self, &event);
	rss_kb = 0; /* nothing is left to look at */
	c->closing(self);
	assert_string_equal(fake.calls, "oom");
	assert_true(is_noted(r, "the kernel killed a process"));
	bare_run_free(r);
	(void)state;
}

static void without_conditions_nobody_looks(void **state)
{
	cfg.n_when = 0;
	assert_false(component_named("triggers")->wanted(&cfg));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_condition_that_is_met_asks_for_a_window_and_is_noted),
		cmocka_unit_test(processes_are_not_read_where_their_groups_say_all),
		cmocka_unit_test(what_the_kernel_kills_fires_oom_at_the_latest_in_the_end),
		cmocka_unit_test(without_conditions_nobody_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
