#include "run_fixture.h"

#include "base/clock.h"
#include "run/members.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

static struct group groups[3] = { { .at = { .path = "/outer" } },
				  { .at = { .path = "/outer/inner" } },
				  { .at = { .path = "/gone" }, .gone_ns = 1 } };
static struct container container = { .name = "web",
				      .path = "/web",
				      .running = true,
				      .id = (char *)"abc",
				      .pod = (char *)"shop-1",
				      .namespace = (char *)"prod" };
static char reported[256];
static uint64_t look_ns; /* a look at /proc takes so much CPU time */
static int looks;

/* 3 and 1 are in the outer group, 2 is in the inner one, and so in both; this process is in none. */
uint32_t cgroup_processes(const struct cgroup_mounts *m, const struct cgroup *group, pid_t *out,
			  uint32_t cap)
{
	static const pid_t outer[] = { 3, 2, 1 };

	if (strcmp(group->path, "/outer") == 0) {
		memcpy(out, outer, sizeof(outer));
		return 3;
	}
	out[0] = 2;
	return 1;
}

int cgroup_mounts_read(struct cgroup_mounts *ret_mounts, struct err *e)
{
	*ret_mounts = (struct cgroup_mounts){ 0 };
	return 0;
}

int containers_read(const char *root, const struct cgroup_mounts *m,
		    struct container_list *ret_list, struct err *e)
{
	*ret_list = (struct container_list){ .list = &container, .n = 1 };
	return 0;
}

void containers_fini(struct container_list *l)
{
}

DIR *opendir(const char *name)
{
	uint64_t until_ns = thread_cpu_ns() + look_ns;

	looks++;
	while (thread_cpu_ns() < until_ns)
		;
	return fdopendir(open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static void note(void *ctx, const char *owner, const char *path, const pid_t *pids, uint32_t n)
{
	size_t len = strlen(reported);

	len += (size_t)snprintf(reported + len, sizeof(reported) - len,
				"%s(%s):", owner ? owner : "-", path ? path : "-");
	for (uint32_t i = 0; i < n; i++) {
		bool self = !owner && pids[i] == getpid();

		if (owner || self)
			len += (size_t)snprintf(reported + len, sizeof(reported) - len, "%s%s%d",
						self ? "self" : "", self ? "" : " ",
						self ? 0 : (int)pids[i]);
	}
	snprintf(reported + len, sizeof(reported) - len, ";");
}

static void tell(const struct run_config *cfg)
{
	struct members *m;

	*reported = '\0';
	assert_int_equal(members_new(cfg, &m, NULL), 0);
	members_each(m, note, NULL);
	members_free(m);
}

static void a_process_is_in_the_innermost_group_alone(void **state)
{
	const struct run_config cfg = { .groups = groups, .n_groups = 3 };

	tell(&cfg);
	assert_string_equal(reported, "inner(/outer/inner): 2;outer(/outer): 1 3;");
}

static void of_a_host_the_rest_comes_last(void **state)
{
	const struct run_config cfg = { .all = true };

	tell(&cfg);
	assert_string_equal(reported, "web(/web): 2;-(-):self0;");
	container.running = false;
	tell(&cfg);
	assert_string_equal(reported, "-(-):self0;");
}

static void where_a_look_at_all_takes_long_the_next_ones_rest(void **state)
{
	const struct run_config cfg = { .all = true };
	struct members *m;

	assert_int_equal(members_new(&cfg, &m, NULL), 0);
	container.running = false;
	looks = 0;
	look_ns = 2 * MEMBERS_QUICK_NS;
	for (int i = 0; i < 2; i++) {
		*reported = '\0';
		members_each(m, note, NULL);
		assert_string_equal(reported, "-(-):self0;");
	}
	assert_int_equal(looks, 1);
	members_free(m);
	look_ns = 0;
}

static void note_pod(void *ctx, const char *owner, const char *path, const pid_t *pids, uint32_t n)
{
	const struct member_about *about = members_about(*(struct members **)ctx);
	size_t len = strlen(reported);

	snprintf(reported + len, sizeof(reported) - len, "%s: %s %s %s;", owner ? owner : "-",
		 about->id ? about->id : "-", about->pod ? about->pod : "-",
		 about->namespace ? about->namespace : "-");
}

static void each_is_handed_over_with_what_its_engine_says(void **state)
{
	const struct run_config host = { .all = true };
	const struct run_config asked = { .groups = groups, .n_groups = 2 };
	struct members *m;

	container.running = true;
	groups[1].pod = (char *)"shop-2";
	*reported = '\0';
	assert_int_equal(members_new(&host, &m, NULL), 0);
	members_each(m, note_pod, &m);
	members_free(m);
	assert_int_equal(members_new(&asked, &m, NULL), 0);
	members_each(m, note_pod, &m);
	members_free(m);
	assert_string_equal(reported,
			    "web: abc shop-1 prod;-: - - -;inner: - shop-2 -;outer: - - -;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_in_the_innermost_group_alone),
		cmocka_unit_test(of_a_host_the_rest_comes_last),
		cmocka_unit_test(where_a_look_at_all_takes_long_the_next_ones_rest),
		cmocka_unit_test(each_is_handed_over_with_what_its_engine_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
