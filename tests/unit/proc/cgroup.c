#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "proc/cgroup.h"

static uint32_t hierarchy;
static const char *controllers, *path;

static bool parse(const char *text)
{
	static char line[8192];

	snprintf(line, sizeof(line), "%s", text);
	return cgroup_parse_line(line, &hierarchy, &controllers, &path);
}

static void a_line_has_a_hierarchy_its_controllers_and_a_path(void **state)
{
	assert_true(parse("0::/system.slice/x.service\n"));
	assert_int_equal(hierarchy, 0);
	assert_string_equal(controllers, "");
	assert_string_equal(path, "/system.slice/x.service");
	assert_true(parse("4:cpu,cpuacct:/a b:c\n"));
	assert_int_equal(hierarchy, 4);
	assert_string_equal(controllers, "cpu,cpuacct");
	assert_string_equal(path, "/a b:c");
	assert_true(parse("12:name=systemd:/"));
	assert_string_equal(path, "/");
}

static void what_is_no_such_line_is_refused(void **state)
{
	static const char *const lines[] = { "",      "\n",        "0:",     "0::",
					     "x::/a", "0::a",      "-1::/a", "99999999999::/a",
					     ":/a:/", "1x:cpu:/a", " 1::/a" };

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_false(parse(lines[i]));
}

static void the_innermost_service_is_the_unit(void **state)
{
	static const struct {
		const char *path, *unit;
	} cases[] = {
		{ "/system.slice/redis-server.service", "redis-server.service" },
		{ "/system.slice/system-postgresql.slice/postgresql@15-main.service",
		  "postgresql@15-main.service" },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service/x",
		  "web.service" },
		{ "/user.slice/user-1000.slice/user@1000.service/init.scope", NULL },
		{ "/user.slice/user-1000.slice/session-3.scope", NULL },
		{ "/system.slice/.service", NULL },
		{ "/a.service.d/b", NULL },
		{ "/", NULL },
		{ "", NULL },
	};
	char unit[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(cgroup_unit_in(cases[i].path, unit, sizeof(unit)),
				 cases[i].unit != NULL);
		if (cases[i].unit)
			assert_string_equal(unit, cases[i].unit);
	}
	assert_false(cgroup_unit_in("/redis-server.service", unit, 20));
}

static struct cgroup_mounts mounts;

/* Every process is in a group of every hierarchy that is mounted. */
static void our_own_group_is_found_by_its_path_and_by_its_directory(void **state)
{
	static struct cgroup by_path, by_directory;
	char own[PATH_MAX], dir[2 * PATH_MAX];
	const struct cgroup_hierarchy *h = NULL;
	uint64_t id;

	if (cgroup_mounts_read(&mounts, NULL) < 0)
		skip();
	if (cgroup_of_process(getpid(), &hierarchy, own, sizeof(own)) < 0 ||
	    !(h = cgroup_hierarchy_find(&mounts, hierarchy)) || strcmp(h->root, "/") != 0 ||
	    cgroup_id_of(&mounts, hierarchy, own, &id) < 0)
		skip(); /* a namespace of control groups that shows less than there is */
	snprintf(dir, sizeof(dir), "%s%s", h->mount, own);
	assert_int_equal(cgroup_find(&mounts, dir, &by_directory, NULL), 0);
	assert_int_equal(by_directory.hierarchy, hierarchy);
	assert_int_equal(by_directory.id, id);
	assert_int_equal(cgroup_find(&mounts, own, &by_path, NULL), 0);
	assert_true(by_path.id != 0);
	assert_string_equal(by_path.path, own);
	cgroup_mounts_fini(&mounts);
}

static void a_directory_that_is_no_group_differs_from_a_name_that_is_none(void **state)
{
	static struct cgroup group;
	struct err e;

	if (cgroup_mounts_read(&mounts, NULL) < 0)
		skip();
	assert_int_equal(cgroup_find(&mounts, "/usr", &group, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "no control group"));
	assert_int_equal(cgroup_find(&mounts, "no.such/group", &group, &e), -ENOENT);
	assert_int_equal(cgroup_find(&mounts, "x/../../..", &group, &e), -ENOENT);
	cgroup_mounts_fini(&mounts);
}

static void the_unified_hierarchy_comes_first(void **state)
{
	if (cgroup_mounts_read(&mounts, NULL) < 0)
		skip();
	for (uint32_t i = 1; i < mounts.n; i++)
		assert_true(mounts.list[i].id != 0);
	for (uint32_t i = 0; i < mounts.n;
	     i++) { /* the root of a hierarchy alone has its first inode */
		struct stat st;

		assert_int_equal(stat(mounts.list[i].mount, &st), 0);
		assert_int_equal(mounts.list[i].whole, st.st_ino == 1);
		if (mounts.list[i].whole)
			assert_string_equal(mounts.list[i].root, "/");
	}
	cgroup_mounts_fini(&mounts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_a_hierarchy_its_controllers_and_a_path),
		cmocka_unit_test(the_innermost_service_is_the_unit),
		cmocka_unit_test(what_is_no_such_line_is_refused),
		cmocka_unit_test(our_own_group_is_found_by_its_path_and_by_its_directory),
		cmocka_unit_test(a_directory_that_is_no_group_differs_from_a_name_that_is_none),
		cmocka_unit_test(the_unified_hierarchy_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
