#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/events/pmu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/pmu.XXXXXX";

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cpu/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* As /sys/bus/event_source/devices/cpu has it on x86-64. */
static int make(void **state)
{
	char path[128];

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (const char *const *sub = (const char *const[]){ "", "/format", "/events", NULL }; *sub;
	     sub++) {
		snprintf(path, sizeof(path), "%s/cpu%s", dir, *sub);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	put("type", "4\n");
	put("format/event", "config:0-7,32-35\n");
	put("format/umask", "config:8-15\n");
	put("format/any", "config:21\n");
	put("format/offcore_rsp", "config1:0-63\n");
	put("format/strange", "config:x\n");
	put("events/cpu-cycles", "event=0x3c\n");
	put("events/llc", "event=0x2e,umask=0x41,any\n");
	return 0;
}

static int clean(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void the_number_of_a_pmu_is_its_type(void **state)
{
	uint32_t type = 0;

	(void)state;
	assert_true(pmu_type(dir, "cpu", &type));
	assert_int_equal(type, 4);
	assert_false(pmu_type(dir, "gpu", &type));
	assert_false(pmu_type(dir, "../cpu", &type));
}

static void terms_go_to_the_bits_of_their_format(void **state)
{
	struct pmu_event event = { 0 };
	uint64_t value = 0x1c2, all = ~0ull;

	(void)state;
	assert_int_equal(pmu_term(dir, "cpu", "event", &value, &event), 0);
	assert_int_equal(event.config[0], 0x1000000c2);
	value = 0x41;
	assert_int_equal(pmu_term(dir, "cpu", "umask", &value, &event), 0);
	assert_int_equal(event.config[0], 0x1000041c2);
	assert_int_equal(pmu_term(dir, "cpu", "any", NULL, &event), 0);
	assert_int_equal(event.config[0], 0x1002041c2);
	assert_int_equal(pmu_term(dir, "cpu", "offcore_rsp", &all, &event), 0);
	assert_true(event.config[1] == all);
	value = 0x100;
	assert_int_equal(pmu_term(dir, "cpu", "umask", &value, &event), -ERANGE);
	assert_int_equal(pmu_term(dir, "cpu", "config2", &value, &event), 0);
	assert_int_equal(event.config[2], 0x100);
	assert_int_equal(pmu_term(dir, "cpu", "nothing", &value, &event), -ENOENT);
	assert_int_equal(pmu_term(dir, "cpu", "strange", &value, &event), -EINVAL);
}

static void an_event_by_name_is_its_terms(void **state)
{
	struct pmu_event event = { 0 };

	(void)state;
	assert_int_equal(pmu_term(dir, "cpu", "llc", NULL, &event), 0);
	assert_int_equal(event.config[0], 0x2e | 0x41 << 8 | 1 << 21);
	assert_int_equal(pmu_term(dir, "cpu", "../type", NULL, &event), -ENOENT);
}

static void count(void *ctx, const char *name)
{
	assert_true(!strcmp(name, "cpu/llc/") || !strcmp(name, "cpu/cpu-cycles/"));
	++*(int *)ctx;
}

static void all_named_events_are_listed(void **state)
{
	int n = 0;

	(void)state;
	pmu_events(dir, count, &n);
	assert_int_equal(n, 2);
}

static void it_counts_on_some_cpus(void **state)
{
	(void)state;
	assert_true(pmu_has_cpu(dir, "cpu", 5)); /* it has no list */
	put("cpumask", "0,64\n");
	assert_true(pmu_has_cpu(dir, "cpu", 64));
	assert_false(pmu_has_cpu(dir, "cpu", 6));
	put("cpus", "0-3,8,10-11\n");
	assert_true(pmu_has_cpu(dir, "cpu", 3) && pmu_has_cpu(dir, "cpu", 8) &&
		    pmu_has_cpu(dir, "cpu", 11));
	assert_false(pmu_has_cpu(dir, "cpu", 4) || pmu_has_cpu(dir, "cpu", 9) ||
		     pmu_has_cpu(dir, "cpu", 12));
	assert_true(pmu_has_cpu(dir, "no_such", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_counts_on_some_cpus),
		cmocka_unit_test(the_number_of_a_pmu_is_its_type),
		cmocka_unit_test(terms_go_to_the_bits_of_their_format),
		cmocka_unit_test(an_event_by_name_is_its_terms),
		cmocka_unit_test(all_named_events_are_listed),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
