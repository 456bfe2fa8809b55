#include "run_fixture.h"

#include "model/sample_times.h"
#include "run/folders.h"
#include "run/output/files.h"

#include <errno.h>

#include <unistd.h>

static char dir[] = "/tmp/memscope-unit-folders-XXXXXX";
static struct group groups[3];
static struct run_config cfg;
static char written[4096]; /* "web/oncpu.pb.gz 3,…": with the samples in it */

int output_write(const struct run *r, const struct profile *p, const struct format *f,
		 const char *path, struct err *e)
{
	int64_t sum = 0;

	if (f->picture)
		return -ENODATA;
	for (uint32_t i = 0; i < profile_n_samples(p); i++)
		sum += profile_sample(p, i).values[0];
	assert_memory_equal(path, dir, strlen(dir));
	snprintf(written + strlen(written), sizeof(written) - strlen(written), "%s %lld,",
		 path + strlen(dir) + 1, (long long)sum);
	return 0;
}

static char named[4096];

void output_in_folder(struct run_output *to, const char *name, const char *file)
{
	snprintf(named + strlen(named), sizeof(named) - strlen(named), "%s/%s ", name, file);
}

static void add(struct run *r, const char *key, const char *owner, int64_t samples)
{
	location_id at = dict_location(r->dict, (module_id){ 0 }, 4096);
	struct label label = { .key = dict_string(r->dict, key) };
	const int64_t values[2] = { samples, 10 * samples };

	label.str = dict_string(r->dict, owner ? owner : "");
	assert_int_equal(profile_add(r->profiles[PROFILE_ONCPU], dict_stack(r->dict, &at, 1),
				     dict_labels(r->dict, &label, owner ? 1 : 0), values),
			 0);
}

static struct run *begin(void)
{
	static const char *const comments[] = { "Target: host", "Label: env=prod", NULL };
	struct profile_meta meta = { .time_ns = 7, .duration_ns = 9, .comments = comments };
	struct run *r;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	cfg.dir = dir;
	*written = *named = '\0';
	r = bare_run(&cfg);
	r->profiles[PROFILE_ONCPU] = profile_new(r->dict, profile_rows[PROFILE_ONCPU].types, 2);
	assert_int_equal(profile_set_meta(r->profiles[PROFILE_ONCPU], &meta), 0);
	return r;
}

static void end(struct run *r, const char *const *folders)
{
	char path[256];

	for (int i = 0; folders[i]; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, folders[i]);
		assert_int_equal(rmdir(path), 0);
	}
	assert_int_equal(rmdir(dir), 0);
	bare_run_free(r);
}

static void each_container_has_its_samples_and_the_host_the_rest(void **state)
{
	static const char *const folders[] = { "web", "host", "host_", NULL };
	struct run *r;
	void *self;

	cfg = (struct run_config){ .all = true };
	r = begin();
	add(r, "container", "web", 3);
	add(r, "container", NULL, 4);
	add(r, "container", "host", 5); /* that is its name */
	self = alone(r, "profiles of containers");
	assert_int_equal(component_named("profiles of containers")->write(self, NULL, NULL), 0);
	assert_non_null(strstr(written, "web/oncpu.pb.gz 3,"));
	assert_non_null(strstr(written, "host/oncpu.pb.gz 4,"));
	assert_non_null(strstr(written, "host_/oncpu.pb.gz 5,"));
	assert_non_null(strstr(named, "web/oncpu.pb.gz "));
	assert_null(strstr(named, "oncpu.svg")); /* there is no picture */
	end(r, folders);
}

static void a_part_says_what_it_is_of(void **state)
{
	static const char *const folders[] = { NULL };
	struct folders f;
	struct run *r;

	cfg = (struct run_config){ .all = true };
	r = begin();
	add(r, "container", "web", 3);
	add(r, "container", NULL, 4);
	assert_int_equal(folders_split(&cfg, r->profiles[PROFILE_ONCPU], &f, NULL), 0);
	assert_int_equal(f.n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct profile_meta *meta = profile_get_meta(f.list[i].profile);

		assert_int_equal(meta->time_ns, 7);
		assert_string_equal(meta->comments[0],
				    i ? "Target: host" : "Target: container web");
		assert_string_equal(meta->comments[1], "Label: env=prod");
	}
	folders_fini(&f);
	end(r, folders);
}

static void a_part_has_the_times_of_its_samples(void **state)
{
	static const char *const folders[] = { NULL };
	const struct profile_row *row = &profile_rows[PROFILE_ONCPU];
	int64_t sums[SAMPLE_TIMES_TYPES];
	struct sample_times *t;
	struct folders f;
	struct run *r;

	cfg = (struct run_config){ .all = true };
	r = begin();
	t = sample_times_new(row->times, row->n_times, SAMPLE_TIMES_BIN_NS, 100);
	profile_set_times(r->profiles[PROFILE_ONCPU], t);
	add(r, "container", "web", 3);
	add(r, "container", NULL, 4);
	assert_int_equal(sample_times_add(t, 0, 0, (int64_t[]){ 30, 3 }), 0);
	assert_int_equal(sample_times_add(t, 1, 5 * SAMPLE_TIMES_BIN_NS, (int64_t[]){ 40, 4 }), 0);
	assert_int_equal(folders_split(&cfg, r->profiles[PROFILE_ONCPU], &f, NULL), 0);
	sample_times_sum(profile_times(f.list[1].profile), 0, 5, 6, sums);
	assert_int_equal(sums[0], 40);
	assert_int_equal(sample_times_n_entries(profile_times(f.list[0].profile)), 1);
	folders_fini(&f);
	end(r, folders);
}

static void groups_that_are_no_containers_are_told_apart_by_their_own_label(void **state)
{
	static const char *const folders[] = { "a.service", "y_b.service", "unassigned", NULL };
	struct run *r;
	void *self;

	strcpy(groups[0].at.path, "/x/a.service");
	strcpy(groups[1].at.path, "/x/b.service");
	strcpy(groups[2].at.path, "/y/b.service");
	cfg = (struct run_config){ .groups = groups, .n_groups = 3 };
	assert_string_equal(group_unique_title(groups, 3, 0), "a.service");
	assert_string_equal(group_unique_title(groups, 3, 2), "y/b.service");
	r = begin();
	add(r, "cgroup", "a.service", 3);
	add(r, "cgroup", group_unique_title(groups, 3, 2), 4);
	add(r, "container", "web", 5); /* a container's, which is not asked for here */
	self = alone(r, "profiles of containers");
	assert_int_equal(component_named("profiles of containers")->write(self, NULL, NULL), 0);
	assert_non_null(strstr(written, "a.service/oncpu.pb.gz 3,"));
	assert_non_null(strstr(written, "y_b.service/oncpu.pb.gz 4,"));
	assert_non_null(strstr(written, "unassigned/oncpu.pb.gz 5,"));
	end(r, folders);
}

static void the_innermost_group_has_the_samples(void **state)
{
	strcpy(groups[0].at.path, "/x");
	strcpy(groups[1].at.path, "/x/b");
	strcpy(groups[2].at.path, "/y");
	groups[2].at.hierarchy = 3;
	assert_int_equal(group_of_path(groups, 3, 0, "/x/b/c"), 1);
	assert_int_equal(group_of_path(groups, 3, 0, "/x/bc"), 0);
	assert_int_equal(group_of_path(groups, 3, 0, "/y"), -1);
	assert_int_equal(group_of_path(groups, 3, 3, "/y"), 2);
	strcpy(groups[0].at.path, "/");
	assert_int_equal(group_of_path(groups, 3, 0, "/z"), 0);
	memset(groups, 0, sizeof(groups));
}

static void windows_have_folders_of_their_own(void **state)
{
	const struct component *c = component_named("profiles of containers");
	const struct run_config one = { .dir = "x", .groups = groups, .n_groups = 1 };
	const struct run_config all = { .dir = "x", .all = true };
	const struct run_config every = { .dir = "x", .all = true, .every_s = 1 };

	assert_false(c->wanted(&one));
	assert_true(c->wanted(&all));
	assert_false(c->wanted(&every));
	assert_true(folders_wanted(&every));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_container_has_its_samples_and_the_host_the_rest),
		cmocka_unit_test(a_part_says_what_it_is_of),
		cmocka_unit_test(a_part_has_the_times_of_its_samples),
		cmocka_unit_test(groups_that_are_no_containers_are_told_apart_by_their_own_label),
		cmocka_unit_test(the_innermost_group_has_the_samples),
		cmocka_unit_test(windows_have_folders_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
