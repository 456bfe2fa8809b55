#include "run_fixture.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct run_config cfg = { .all = false };
static ingest_container_fn asked;
static void *asked_ctx;

void ingest_container_lookup(struct ingest *in, ingest_container_fn fn, void *ctx)
{
	asked = fn;
	asked_ctx = ctx;
}

static void a_container_that_was_made_in_the_run_is_known_after_it_has_gone(void **state)
{
	const struct component *c = component_named("containers");
	struct drain_cgroup rec = { .id = 987654321, .path = "/system.slice/docker-" ID ".scope" };
	const struct proc_id proc = { .pid = 0x3fffffff };
	struct ingest_container is = { 0 };
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "containers");

	assert_int_equal(c->open(self, NULL), 0);
	assert_int_equal(c->attach(self, NULL), 0);
	assert_int_equal(deliver(DRAIN_CGROUP, &rec, NULL), DRAIN_TAKEN);
	asked(asked_ctx, &proc, rec.id, &is);
	assert_string_equal(is.id, ID);
	assert_string_equal(is.name, "0123456789ab"); /* no engine knows it: its short id */
	bare_run_free(r);
}

struct target *target_of(const struct run *r, pid_t pid)
{
	return NULL;
}
pid_t target_ns_pid(const struct run *r, pid_t pid)
{
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_that_was_made_in_the_run_is_known_after_it_has_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
