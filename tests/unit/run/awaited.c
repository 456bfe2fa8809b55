#include "run/serve/serve_config.h"
#include "run_ends_fixture.h"

#include <errno.h>

static int n_there, looks;

int groups_there(const struct cgroup_mounts *m, bool containers, const char *names,
		 struct group *out, struct strbuf *missing, struct err *e)
{
	assert_true(containers);
	assert_string_equal(names, "web,db");
	looks++;
	if (n_there > 0)
		out[0] = (struct group){ .name = strdup("web") };
	return n_there;
}

static void a_container_that_comes_begins_another_run(void **state)
{
	static const struct serve_config serve;
	const struct run_config cfg = { .serve = &serve,
					.awaited = "web,db",
					.awaited_containers = true };
	struct run *r = bare_run(&cfg);
	const struct component *c = component_named("awaited");
	void *self = alone(r, "awaited");
	uint64_t now = now_ns();

	assert_int_equal(c->ready(self, NULL), 0);
	c->tick(self, now + 1000000000);
	assert_int_equal(looks, 0);
	c->tick(self, now + 6000000000);
	assert_int_equal(looks, 1);
	n_there = -EIO; /* an engine that does not answer may answer later */
	c->tick(self, now + 7000000000);
	assert_int_equal(looks, 1);
	c->tick(self, now + 60000000000);
	assert_int_equal(looks, 2);
	assert_int_equal(r->end.why, RUN_END_UNKNOWN);
	n_there = 1;
	c->tick(self, now + 120000000000);
	assert_int_equal(r->end.why, RUN_END_AGAIN);
	assert_string_equal(ended, "web is there now");
	bare_run_free(r);
}

static void only_a_service_that_misses_something_looks(void **state)
{
	static const struct serve_config serve;
	const struct component *c = component_named("awaited");

	assert_true(c->wanted(&(struct run_config){ .serve = &serve, .awaited = "web" }));
	assert_false(c->wanted(&(struct run_config){ .serve = &serve }));
	assert_false(c->wanted(&(struct run_config){ .awaited = "web" }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_that_comes_begins_another_run),
		cmocka_unit_test(only_a_service_that_misses_something_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
