#include "run_fixture.h"

#include "run/output/files.h"

#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/memscope-unit-trends-XXXXXX";
static struct run_config cfg = { .all = true };
static char named[256];

void output_in_folder(struct run_output *to, const char *name, const char *file)
{
	snprintf(named + strlen(named), sizeof(named) - strlen(named), "%s/%s ", name, file);
}

/* Column `name` of line `nth`; -1: there is none. */
static long long cell(const char *path, int nth, const char *name)
{
	char head[1024], line[1024] = "", *h = head, *l = line, *title;
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_non_null(fgets(head, sizeof(head), f));
	while (nth-- && fgets(line, sizeof(line), f))
		;
	fclose(f);
	if (nth >= 0)
		return -1;
	while ((title = strsep(&h, ",\n"))) {
		const char *value = strsep(&l, ",\n");

		if (value && strcmp(title, name) == 0)
			return atoll(value);
	}
	return -1;
}

/* What others have here is not asked for. */
int containers_read(const char *root, const struct cgroup_mounts *m,
		    struct container_list *ret_list, struct err *e)
{
	return 0;
}

/* Without containers all processes are the host's, this one among them. */
static void what_is_in_no_container_is_the_host_s(void **state)
{
	const struct component *c = component_named("memory of containers");
	char path[300], folder[200];
	struct run *r;
	void *self;
	FILE *old;

	assert_non_null(mkdtemp(dir));
	cfg.dir = dir;
	snprintf(folder, sizeof(folder), "%s/host", dir);
	snprintf(path, sizeof(path), "%s/trend.csv", folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	old = fopen(path, "w");
	fputs("of an earlier run\n", old);
	fclose(old);

	assert_true(c->wanted(&cfg));
	r = bare_run(&cfg);
	self = alone(r, "memory of containers");
	assert_int_equal(c->ready(self, NULL), 0);
	c->row(self, now_ns());
	c->closing(self);
	assert_int_equal(c->write(self, NULL, NULL), 0);
	if (!*named) { /* no control groups are mounted here */
		bare_run_free(r);
		skip();
	}
	assert_string_equal(named, "host/trend.csv ");
	for (int row = 1; row <= 3; row++) {
		assert_true(cell(path, row, "processes") >= 1);
		assert_true(cell(path, row, "rss_kb") > 500);
	}
	assert_int_equal(cell(path, 4, "processes"), -1);
	assert_int_equal(r->notes.n, 0);
	unlink(path);
	rmdir(folder);
	rmdir(dir);
	bare_run_free(r);
}

/* A row may take a hundredth of the time at most: none comes right behind another. */
static void rows_rest_as_looks_at_memory_do(void **state)
{
	static char here[] = "/tmp/memscope-unit-trends-XXXXXX";
	struct run_config of = { .all = true, .dir = here };
	char path[300], folder[200];
	uint64_t now = now_ns();
	struct run *r;
	void *self;

	assert_non_null(mkdtemp(here));
	snprintf(folder, sizeof(folder), "%s/host", here);
	snprintf(path, sizeof(path), "%s/trend.csv", folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	r = bare_run(&of);
	self = alone(r, "memory of containers");
	assert_int_equal(component_named("memory of containers")->ready(self, NULL), 0);
	component_named("memory of containers")->row(self, now);
	component_named("memory of containers")->row(self, now);
	component_named("memory of containers")->row(self, now + 3600000000000);
	*named = '\0';
	component_named("memory of containers")->write(self, NULL, NULL);
	if (!*named) { /* no control groups are mounted here */
		bare_run_free(r);
		skip();
	}
	assert_true(cell(path, 3, "processes") >= 1);
	assert_int_equal(cell(path, 4, "processes"), -1);
	unlink(path);
	rmdir(folder);
	rmdir(here);
	bare_run_free(r);
}

static void one_container_has_no_folder(void **state)
{
	static struct group groups[2];
	const struct run_config one = { .dir = "x", .groups = groups, .n_groups = 1 };
	const struct run_config two = { .dir = "x", .groups = groups, .n_groups = 2 };

	assert_false(component_named("memory of containers")->wanted(&one));
	assert_true(component_named("memory of containers")->wanted(&two));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_no_container_is_the_host_s),
		cmocka_unit_test(rows_rest_as_looks_at_memory_do),
		cmocka_unit_test(one_container_has_no_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
