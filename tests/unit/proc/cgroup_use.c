#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "proc/cgroup_use.h"

static void a_value_is_found_by_its_whole_name(void **state)
{
	static const char text[] = "inactive_anon 1\nanon 4096\nanon_thp 2\nfile 12x\nkernel 9";

	assert_int_equal(cgroup_stat_value(text, "anon"), 4096);
	assert_int_equal(cgroup_stat_value(text, "inactive_anon"), 1);
	assert_int_equal(cgroup_stat_value(text, "kernel"), 9);
	assert_int_equal(cgroup_stat_value(text, "shmem"), MEM_UNKNOWN);
	assert_int_equal(cgroup_stat_value(text, "an"), MEM_UNKNOWN);
	assert_int_equal(cgroup_stat_value("", "anon"), MEM_UNKNOWN);
	assert_int_equal(cgroup_stat_value("anon\nanon -1\n", "anon"), MEM_UNKNOWN);
	assert_int_equal(cgroup_stat_value("\n\nanon 5\n\n", "anon"), 5);
}

static char root[] = "/tmp/memscope-unit-XXXXXX";

static int make_root(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/web", root, dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/web/%s", root, dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int remove_root(void **state)
{
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A hierarchy whose files are below the root. */
static struct cgroup_hierarchy at(uint32_t id, const char *controllers, const char *dir)
{
	struct cgroup_hierarchy h = { .id = id, .root = "/" };

	snprintf(h.controllers, sizeof(h.controllers), "%s", controllers);
	snprintf(h.mount, sizeof(h.mount), "%s/%s", root, dir);
	return h;
}

static void the_unified_hierarchy_s_account_is_read(void **state)
{
	struct cgroup_hierarchy list[] = { at(0, "", "v2") };
	struct cgroup_mounts m = { list, 1 };
	struct mem_group use;

	put("v2", "memory.current", "10485760\n");
	put("v2", "memory.max", "max\n");
	put("v2", "memory.stat",
	    "anon 4194304\nfile 2097152\nkernel_stack 1024\nslab 2048\nsock 0\n");
	put("v2", "cpu.stat", "usage_usec 1500\nuser_usec 1000\n");
	cgroup_use(&m, "/web", &use);
	assert_int_equal(use.charged_kb, 10240);
	assert_int_equal(use.anonymous_kb, 4096);
	assert_int_equal(use.file_kb, 2048);
	assert_int_equal(use.kernel_kb, 3); /* an older kernel: its parts */
	assert_int_equal(use.limit_kb, MEM_UNKNOWN);
	assert_int_equal(use.cpu_ns, 1500000);
	put("v2", "memory.max", "20971520\n");
	put("v2", "memory.stat", "anon 4194304\nfile 2097152\nkernel 8192\nslab 2048\n");
	cgroup_use(&m, "/web", &use);
	assert_int_equal(use.kernel_kb, 8);
	assert_int_equal(use.limit_kb, 20480);
}

/* As a group is before it runs out: the page cache is dropped first, and inodes; what is in a tmpfs stays. The
 * limit of the group above counts as well, and "max" is none. */
static void what_cannot_be_dropped_is_held_against_the_limit(void **state)
{
	struct cgroup_hierarchy list[] = { at(0, "", "v2") };
	struct cgroup_mounts m = { list, 1 };
	char inner[256];

	put("v2", "memory.max", "104857600\n");
	put("v2", "memory.current", "104857600\n");
	put("v2", "memory.stat",
	    "anon 20971520\nfile 73400320\nkernel 10485760\nshmem 0\nslab_reclaimable 8388608\n");
	assert_true(fabs(cgroup_fixed_part(&m, "/web") - 0.22) < 1e-6);
	put("v2", "memory.stat",
	    "anon 20971520\nfile 73400320\nkernel 10485760\nshmem 73400320\nslab_reclaimable 0\n");
	assert_true(fabs(cgroup_fixed_part(&m, "/web") - 1) < 1e-6);
	snprintf(inner, sizeof(inner), "%s/v2/web/one", root);
	assert_int_equal(mkdir(inner, 0700), 0);
	assert_true(fabs(cgroup_fixed_part(&m, "/web/one") - 1) < 1e-6);
	put("v2", "memory.max", "max\n");
	assert_true(isnan(cgroup_fixed_part(&m, "/web/one")));
}

static void v1_s_account_is_read_where_each_controller_is(void **state)
{
	struct cgroup_hierarchy list[] = { at(0, "", "unified"), at(4, "memory", "mem"),
					   at(2, "cpu,cpuacct", "cpu") };
	struct cgroup_mounts m = { list, 3 };
	struct mem_group use;

	put("unified", "cpu.stat", "usage_usec 7\n");
	put("cpu", "cpuacct.usage", "123456789\n");
	put("mem", "memory.usage_in_bytes", "1048576\n");
	put("mem", "memory.kmem.usage_in_bytes", "4096\n");
	put("mem", "memory.stat",
	    "cache 1\nrss 2\nhierarchical_memory_limit 9223372036854771712\ntotal_cache 524288\n"
	    "total_rss 262144\n");
	cgroup_use(&m, "/web", &use);
	assert_int_equal(use.charged_kb, 1024);
	assert_int_equal(use.anonymous_kb, 256);
	assert_int_equal(use.file_kb, 512);
	assert_int_equal(use.kernel_kb, 4);
	assert_int_equal(use.limit_kb, MEM_UNKNOWN);
	assert_int_equal(use.cpu_ns, 123456789);
}

static void what_a_group_is_charged_is_known_by_part(void **state)
{
	struct cgroup_hierarchy list[] = { at(0, "", "v2") };
	struct cgroup_mounts m = { list, 1 };
	struct cgroup_charge c;

	put("v2", "memory.current", "10485760\n");
	put("v2", "memory.max", "20971520\n");
	put("v2", "memory.stat",
	    "anon 4194304\nfile 2097152\nkernel 65536\nshmem 1048576\nslab 2048\nsock 512\n");
	put("v2", "memory.events", "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n");
	put("v2", "cpu.stat",
	    "usage_usec 1500\nnr_periods 20\nnr_throttled 5\nthrottled_usec 900\n");
	put("v2", "memory.pressure",
	    "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\n"
	    "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
	cgroup_charge_read(&m, "/web", &c);
	assert_int_equal(c.all, 10485760);
	assert_int_equal(c.limit, 20971520);
	assert_int_equal(c.anon, 4194304);
	assert_int_equal(c.file, 1048576); /* "file" has shared memory, too */
	assert_int_equal(c.shmem, 1048576);
	assert_int_equal(c.slab, 2048);
	assert_int_equal(c.sock, 512);
	assert_int_equal(c.kernel, 65536);
	assert_int_equal(c.oom_kills, 2);
	assert_int_equal(c.cpu_ns, 1500000);
	assert_int_equal(c.throttled_ns, 900000);
	assert_int_equal(c.periods, 20);
	assert_int_equal(c.periods_throttled, 5);
	assert_int_equal(c.stalled_memory_us, 12345);
	assert_int_equal(c.stalled_io_us, MEM_UNKNOWN);
}

static void v1_s_charge_is_read_where_each_controller_is(void **state)
{
	struct cgroup_hierarchy list[] = { at(4, "memory", "mem"), at(2, "cpu,cpuacct", "cpu") };
	struct cgroup_mounts m = { list, 2 };
	struct cgroup_charge c;

	put("cpu", "cpuacct.usage", "123456789\n");
	put("cpu", "cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 5000\n");
	put("mem", "memory.usage_in_bytes", "1048576\n");
	put("mem", "memory.limit_in_bytes", "9223372036854771712\n");
	put("mem", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n");
	put("mem", "memory.stat",
	    "cache 1\ntotal_cache 524288\ntotal_rss 262144\ntotal_shmem 4096\n");
	cgroup_charge_read(&m, "/web", &c);
	assert_int_equal(c.all, 1048576);
	assert_int_equal(c.limit, MEM_UNKNOWN);
	assert_int_equal(c.anon, 262144);
	assert_int_equal(c.file, 520192);
	assert_int_equal(c.shmem, 4096);
	assert_int_equal(c.sock, MEM_UNKNOWN);
	assert_int_equal(c.oom_kills, 6);
	assert_int_equal(c.cpu_ns, 123456789);
	assert_int_equal(c.throttled_ns, 5000);
	assert_int_equal(c.periods_throttled, 4);
}

static void what_is_not_there_is_not_known(void **state)
{
	struct cgroup_mounts m = { 0 };
	struct mem_group use;

	if (cgroup_mounts_read(&m, NULL) < 0)
		skip();
	cgroup_use(&m, "/no/such/group", &use);
	assert_int_equal(use.charged_kb, MEM_UNKNOWN);
	assert_int_equal(use.anonymous_kb, MEM_UNKNOWN);
	assert_int_equal(use.cpu_ns, MEM_UNKNOWN);
	assert_int_equal(use.limit_kb, MEM_UNKNOWN);
	cgroup_mounts_fini(&m);
}

static void quotas_of_a_group_and_of_those_above_it_hold_it_back(void **state)
{
	struct cgroup_hierarchy list[] = { at(0, "", "v2"), at(3, "cpu", "cpu") };
	struct cgroup_mounts m = { list, 1 };
	struct cgroup_throttled t;
	char inner[256];

	put("v2", "cpu.stat",
	    "usage_usec 1500\nnr_periods 9\nnr_throttled 3\nthrottled_usec 2500\n");
	assert_true(cgroup_throttled(&m, "/web", &t));
	assert_int_equal(t.ns, 2500000);
	assert_int_equal(t.periods, 9);
	assert_int_equal(t.used_up, 3);
	snprintf(inner, sizeof(inner), "%s/v2/web/two", root);
	assert_int_equal(mkdir(inner, 0700), 0);
	assert_true(cgroup_throttled(&m, "/web/two", &t));
	assert_int_equal(t.used_up, 3);
	m.n = 2;
	put("cpu", "cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 7000000\n");
	assert_true(cgroup_throttled(&m, "/web", &t));
	assert_int_equal(t.ns, 7000000);
	assert_false(cgroup_throttled(&m, "/none", &t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_is_found_by_its_whole_name),
		cmocka_unit_test(the_unified_hierarchy_s_account_is_read),
		cmocka_unit_test(what_cannot_be_dropped_is_held_against_the_limit),
		cmocka_unit_test(v1_s_account_is_read_where_each_controller_is),
		cmocka_unit_test(what_a_group_is_charged_is_known_by_part),
		cmocka_unit_test(v1_s_charge_is_read_where_each_controller_is),
		cmocka_unit_test(what_is_not_there_is_not_known),
		cmocka_unit_test(quotas_of_a_group_and_of_those_above_it_hold_it_back),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
