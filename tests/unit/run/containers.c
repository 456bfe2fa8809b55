#include "container/container.h"
#include "container/engine.h"
#include "run_fixture.h"

#include <errno.h>
#include <time.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct run_config cfg = { .all = false };
static ingest_container_fn asked;
static void *asked_ctx;

void ingest_container_lookup(struct ingest *in, ingest_container_fn fn, void *ctx)
{
	asked = fn;
	asked_ctx = ctx;
}

static drain_group_fn learn;
static void *learn_ctx;

void drain_on_groups(struct drain *d, drain_group_fn fn, void *ctx)
{
	learn = fn;
	learn_ctx = ctx;
}

/* What engines know: nothing, or the container by its name, in a pod. */
static bool engines_know;
static unsigned n_read;

int containers_read(const char *root, const struct cgroup_mounts *m,
		    struct container_list *ret_list, struct err *e)
{
	const struct kubernetes_names names = { "shop", "web-0", "app" };

	*ret_list = (struct container_list){ 0 };
	n_read++;
	if (engines_know)
		container_add_kubernetes(ret_list, "crio", ID, &names, NULL);
	return 0;
}

enum { GROUP = 987654321 };
static const struct proc_id gone = { .pid = 0x3fffffff };

/* A run in which a container's group was made. */
static struct run *run_with_group(void)
{
	const struct component *c = component_named("containers");
	struct drain_cgroup rec = { .id = GROUP, .path = "/system.slice/docker-" ID ".scope" };
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "containers");

	assert_int_equal(c->open(self, NULL), 0);
	assert_int_equal(c->attach(self, NULL), 0);
	assert_int_equal(deliver(DRAIN_CGROUP, &rec, NULL), DRAIN_TAKEN);
	return r;
}

static void a_container_that_was_made_in_the_run_is_known_after_it_has_gone(void **state)
{
	struct ingest_container is = { 0 };
	struct run *r = run_with_group();

	asked(asked_ctx, &gone, GROUP, &is);
	assert_string_equal(is.id, ID);
	assert_string_equal(is.name, "0123456789ab"); /* no engine knows it: its short id */
	bare_run_free(r);
}

static const struct timespec a_while = { .tv_nsec = 120000000 };

/* Its group was seen before its engine had written it down. */
static void a_container_that_no_engine_knows_yet_gets_its_name_later(void **state)
{
	struct ingest_container is = { 0 };
	struct run *r = run_with_group();

	asked(asked_ctx, &gone, GROUP, &is);
	assert_string_equal(is.name, "0123456789ab");
	engines_know = true;
	nanosleep(&a_while, NULL);
	asked(asked_ctx, &gone, GROUP, &is);
	engines_know = false;
	assert_string_equal(is.id, ID);
	assert_string_equal(is.name, "web-0/app");
	assert_string_equal(is.pod, "web-0");
	assert_string_equal(is.namespace, "shop");
	nanosleep(&a_while, NULL);
	n_read = 0;
	asked(asked_ctx, &gone, GROUP, &is); /* its engine may have forgotten it */
	assert_string_equal(is.name, "web-0/app");
	assert_int_equal(n_read, 0);
	bare_run_free(r);
}

/* After 0.1 s, and each time after twice as long as before. */
static void a_name_that_nobody_has_is_asked_for_ever_more_rarely(void **state)
{
	uint64_t begin_ns = now_ns(), wait_ns = 100000000, due_ns = begin_ns;
	struct ingest_container is = { 0 };
	struct run *r = run_with_group();
	unsigned most = 0;

	n_read = 0;
	for (int i = 0; i < 8; i++) {
		nanosleep(&a_while, NULL);
		asked(asked_ctx, &gone, GROUP, &is);
	}
	for (; (due_ns += wait_ns) <= now_ns(); wait_ns *= 2)
		most++;
	assert_string_equal(is.name, "0123456789ab");
	assert_in_range(n_read, 1, most);
	assert_in_range(most, 1, 7);
	bare_run_free(r);
}

static void a_process_that_has_gone_is_where_its_totals_say_whoever_asked_before(void **state)
{
	struct ingest_container is = { 0 };
	struct run *r = run_with_group();

	asked(asked_ctx, &gone, 0, &is);
	assert_null(is.name);
	assert_true(is.unsure);
	learn(learn_ctx, &gone, GROUP);
	asked(asked_ctx, &gone, 0, &is);
	assert_string_equal(is.name, "0123456789ab");
	assert_false(is.unsure);
	bare_run_free(r);
}

enum { LIVES = 0x3ffffff0, ENDED, UNKNOWN };

int cgroup_path_in(pid_t pid, uint32_t hierarchy, char *out, size_t cap)
{
	if (pid != LIVES || hierarchy != 7)
		return -ESRCH;
	snprintf(out, cap, "/system.slice/web.service/worker");
	return 0;
}

static const char *group_of(pid_t pid)
{
	const struct proc_id proc = { .pid = (uint32_t)pid };
	struct ingest_container is = { 0 };

	asked(asked_ctx, &proc, 0, &is);
	assert_null(is.name); /* it is no container */
	return is.cgroup;
}

static void several_control_groups_are_told_apart_also_for_what_has_ended(void **state)
{
	static struct group groups[] = {
		{ .at = { .hierarchy = 7, .path = "/system.slice/web.service" } },
		{ .at = { .hierarchy = 7, .path = "/system.slice/db.service" } },
	};
	const struct component *c = component_named("containers");
	struct run_config of = { .groups = groups, .n_groups = 2 };
	struct run *r = bare_run(&of);
	void *self = alone(r, "containers");

	assert_int_equal(c->attach(self, NULL), 0);
	c->process(self, &(struct process_event){ .kind = PROCESS_ADDED, .pid = LIVES });
	c->process(self,
		   &(struct process_event){ .kind = PROCESS_FORKED, .pid = ENDED, .ppid = LIVES });
	assert_string_equal(group_of(LIVES), "web.service");
	assert_string_equal(group_of(ENDED), "web.service"); /* as its parent */
	assert_null(group_of(UNKNOWN));
	bare_run_free(r);

	of.n_groups = 1; /* of one there is nothing to tell */
	r = bare_run(&of);
	assert_int_equal(c->attach(alone(r, "containers"), NULL), 0);
	assert_null(group_of(LIVES));
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
		cmocka_unit_test(a_container_that_no_engine_knows_yet_gets_its_name_later),
		cmocka_unit_test(a_name_that_nobody_has_is_asked_for_ever_more_rarely),
		cmocka_unit_test(
			a_process_that_has_gone_is_where_its_totals_say_whoever_asked_before),
		cmocka_unit_test(several_control_groups_are_told_apart_also_for_what_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
