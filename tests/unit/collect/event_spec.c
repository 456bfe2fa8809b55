#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/events/event_spec.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

static struct event_spec specs[EVENT_SPECS_MAX];
static uint32_t n;
static struct err e;

static int parse(const char *list)
{
	memset(specs, 0, sizeof(specs));
	e = (struct err){ 0 };
	n = 0;
	return events_parse(list, specs, &n, &e);
}

static void names_are_those_of_perf(void **state)
{
	(void)state;
	assert_int_equal(parse("page-faults,minor-faults:u,cpu-cycles,LLC-load-misses"), 0);
	assert_int_equal(n, 4);
	assert_int_equal(specs[0].type, PERF_TYPE_SOFTWARE);
	assert_int_equal(specs[0].config, PERF_COUNT_SW_PAGE_FAULTS);
	assert_int_equal(event_unit(&specs[0]), EVENT_UNIT_COUNT);
	assert_string_equal(specs[0].name, "page-faults");
	assert_true(specs[1].no_kernel && !specs[1].no_user);
	assert_string_equal(specs[1].name, "minor-faults_u");
	assert_int_equal(specs[2].type, PERF_TYPE_HARDWARE);
	assert_int_equal(event_unit(&specs[2]), EVENT_UNIT_OF_HARDWARE);
	assert_int_equal(specs[3].type, PERF_TYPE_HW_CACHE);
	assert_int_equal(specs[3].config,
			 PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
	assert_int_equal(parse("cycles:ppp,instructions:uk"), 0);
	assert_int_equal(specs[0].precise, 3);
	assert_false(specs[1].no_kernel || specs[1].no_user);
}

static void terms_are_a_period_a_rate_and_a_name(void **state)
{
	(void)state;
	assert_int_equal(parse("page-faults/period=100/,cpu-clock/freq=50,name=clock/,task-clock"),
			 0);
	assert_int_equal(n, 3);
	assert_int_equal(specs[0].period, 100);
	assert_string_equal(specs[0].text, "page-faults");
	assert_int_equal(specs[1].freq, 50);
	assert_string_equal(specs[1].name, "clock");
	assert_int_equal(event_unit(&specs[2]), EVENT_UNIT_NS);
	assert_int_equal(parse("cycles/period=5/u"), -EINVAL); /* it is /…/:u, or :u alone */
	assert_int_equal(parse("page-faults/period=0/"), -EINVAL);
	assert_int_equal(parse("page-faults/freq=10/"), -EINVAL);
	assert_int_equal(parse("cycles/period=1,freq=1/"), -EINVAL);
	assert_int_equal(parse("cycles/period=1"), -EINVAL);
	assert_int_equal(parse("page-faults/name=..\\/x/"), -EINVAL);
	assert_int_equal(parse("page-faults/call-graph=fp/"), -EINVAL);
	assert_non_null(strstr(e.msg, "call-graph"));
}

/* As those that are made of an event: files and windows are called by them. */
static void names_are_those_that_files_can_have(void **state)
{
	static const char *const bad[] = { "a b", "a.b", "a-1", "1a", "-a", "a:b", "\303\244", "" };
	char item[200];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(item, sizeof(item), "page-faults/name=%s/", bad[i]);
		assert_int_equal(parse(item), -EINVAL);
	}
	assert_int_equal(parse("page-faults/name=My-faults_2/"), 0);
	assert_string_equal(specs[0].name, "My-faults_2");
	memset(item, 0, sizeof(item));
	snprintf(item, sizeof(item), "page-faults/name=%064d/", 0);
	memset(strchr(item, '=') + 1, 'a', 64);
	assert_int_equal(parse(item), -EINVAL);
}

static void modifiers_are_u_k_and_p(void **state)
{
	static const char *const bad[] = { "cycles:G",          "cycles:h",    "page-faults:uW",
					   "cycles:",           "cycles:pppp", "r1a8:D",
					   "cycles/period=5/:I" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(parse(bad[i]), -EINVAL);
		assert_non_null(strstr(e.msg, "modifier"));
	}
	if (parse("software/config=2/:u") != -ENODEV) { /* without /sys */
		assert_true(specs[0].no_kernel);
		assert_string_equal(specs[0].pmu, "software");
	}
}

static void raw_events_are_numbers(void **state)
{
	(void)state;
	assert_int_equal(parse("r10000000000000000"), -EINVAL); /* of 65 bits */
	assert_int_equal(parse("rapid_pmu/event=1/"), -ENODEV);
	assert_non_null(strstr(e.msg, "rapid_pmu"));
	assert_int_equal(parse("r1a8,rC0:u"), 0);
	assert_int_equal(specs[0].type, PERF_TYPE_RAW);
	assert_int_equal(specs[0].config, 0x1a8);
	assert_int_equal(specs[1].config, 0xc0);
	assert_true(specs[1].no_kernel);
}

static void a_pmu_that_is_not_there_is_said_so(void **state)
{
	(void)state;
	assert_int_equal(parse("no_such_pmu/event=0x3c,umask=1/"), -ENODEV);
	assert_non_null(strstr(e.msg, "no_such_pmu"));
}

static void tracepoints_are_of_a_system(void **state)
{
	(void)state;
	assert_int_equal(parse("sched:sched_process_fork,t:syscalls:sys_enter_*,tracepoint:irq:*,"
			       "sched:sched_switch/period=10/"),
			 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(specs[i].kind, EVENT_TRACEPOINT);
	assert_string_equal(specs[0].group, "sched");
	assert_string_equal(specs[0].event, "sched_process_fork");
	assert_string_equal(specs[0].name, "sched_process_fork");
	assert_string_equal(specs[1].event, "sys_enter_*");
	assert_string_equal(specs[1].name, "sys_enter");
	assert_string_equal(specs[2].name, "irq");
	assert_int_equal(specs[3].period, 10);
	assert_int_equal(parse("a:b:c"), -EINVAL);
}

static void sites_and_functions_are_in_files(void **state)
{
	(void)state;
	assert_int_equal(
		parse("usdt:/usr/bin/python3:python:function__entry,usdt:libc:setjmp,sdt_libc:longjmp,"
		      "u:c:memory_sbrk_more,uprobe:/bin/bash:readline/period=3,name=lines/,p:c:mallo?"),
		0);
	assert_int_equal(n, 6);
	assert_string_equal(specs[0].file, "/usr/bin/python3");
	assert_string_equal(specs[0].group, "python");
	assert_string_equal(specs[0].event, "function__entry");
	assert_string_equal(specs[1].file, "");
	assert_string_equal(specs[1].group, "libc");
	assert_string_equal(specs[2].group, "libc");
	assert_string_equal(specs[2].event, "longjmp");
	assert_string_equal(specs[3].file, "c");
	assert_string_equal(specs[3].group, "*");
	assert_int_equal(specs[4].kind, EVENT_UPROBE);
	assert_string_equal(specs[4].file, "/bin/bash");
	assert_int_equal(specs[4].period, 3);
	assert_string_equal(specs[4].name, "lines");
	assert_string_equal(specs[5].event, "mallo?");
	assert_string_equal(specs[5].name, "mallo");
	assert_int_equal(parse("uretprobe:c:malloc,r:/bin/bash:readline/period=2/"), 0);
	assert_true(specs[0].at_return && specs[1].at_return);
	assert_string_equal(specs[0].file, "c");
	assert_string_equal(specs[0].name, "malloc_return");
	assert_int_equal(specs[1].period, 2);
	assert_int_equal(parse("p::vfs_read"), -EINVAL);
	assert_non_null(strstr(e.msg, "kernel"));
	assert_int_equal(parse("usdt:x"), -EINVAL);
	assert_int_equal(parse("uprobe:x"), -EINVAL);
}

static void functions_to_count_may_have_a_file(void **state)
{
	(void)state;
	memset(specs, 0, sizeof(specs));
	n = 0;
	assert_int_equal(counts_parse("work,libc:malloc,./prog:ns::parse,ns::Class::~Class,*:read*",
				      specs, &n, &e),
			 0);
	assert_int_equal(n, 5);
	assert_true(specs[0].timed && specs[0].kind == EVENT_UPROBE);
	assert_string_equal(specs[0].file, "");
	assert_string_equal(specs[0].event, "work");
	assert_string_equal(specs[1].file, "libc");
	assert_string_equal(specs[2].file, "./prog");
	assert_string_equal(specs[2].event, "ns::parse");
	assert_string_equal(specs[2].name, "ns_parse");
	assert_string_equal(specs[3].file, "");
	assert_string_equal(specs[3].event, "ns::Class::~Class");
	assert_string_equal(specs[4].event, "read*");
	n = 0;
	assert_int_equal(counts_parse("a,,b", specs, &n, &e), -EINVAL);
	assert_int_equal(counts_parse(":f", specs, &n, &e), -EINVAL);
	assert_int_equal(counts_parse("", specs, &n, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "empty"));
}

/* Two profiles cannot be in one file, nor in one that the rest of a run writes. */
static void names_of_profiles_are_different(void **state)
{
	(void)state;
	assert_int_equal(parse("page-faults,page-faults/period=2/,a:oncpu,b:oncpu"), 0);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(specs[i].name, specs[k].name);
	assert_string_not_equal(specs[2].name, "oncpu");
	assert_int_equal(parse("a:counts,a:live_series,a:alloc_series,a:workload,a:census,"
			       "a:rss_breakdown,a:syscalls"),
			 0);
	for (uint32_t i = 0; i < n; i++)
		assert_string_not_equal(specs[i].name, specs[i].event);
}

static void what_is_not_understood_is_said_with_what_was_meant(void **state)
{
	(void)state;
	assert_int_equal(parse("page-fault"), -EINVAL);
	assert_non_null(strstr(e.msg, "\"page-faults\"?"));
	assert_int_equal(parse("{cycles,instructions}"), -EINVAL);
	assert_non_null(strstr(e.msg, "groups"));
	assert_int_equal(parse("page-faults,,cs"), -EINVAL);
	assert_int_equal(parse(""), -EINVAL);
	assert_int_equal(parse("cs,"), -EINVAL);
	assert_int_equal(parse("./prog:main"), -EINVAL);
	assert_non_null(strstr(e.msg, "uprobe:./prog:main"));
	assert_non_null(strstr(e.msg, "--count ./prog:main"));
	assert_int_equal(parse("mem:0x1000"), -EINVAL);
	assert_int_equal(parse("cs,cs,cs,cs,cs,cs,cs,cs,cs,cs,cs,cs,cs,cs,cs,cs,cs"), -EINVAL);
	assert_non_null(strstr(e.msg, "16"));
}

static void patterns_stand_for_any_text(void **state)
{
	(void)state;
	assert_true(event_matches("sys_enter_*", "sys_enter_openat"));
	assert_true(event_matches("mallo?", "malloc"));
	assert_false(event_matches("malloc", "malloc2"));
	assert_true(event_is_pattern("a*") && event_is_pattern("?") && !event_is_pattern("a_b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_of_perf),
		cmocka_unit_test(terms_are_a_period_a_rate_and_a_name),
		cmocka_unit_test(names_are_those_that_files_can_have),
		cmocka_unit_test(modifiers_are_u_k_and_p),
		cmocka_unit_test(raw_events_are_numbers),
		cmocka_unit_test(a_pmu_that_is_not_there_is_said_so),
		cmocka_unit_test(tracepoints_are_of_a_system),
		cmocka_unit_test(sites_and_functions_are_in_files),
		cmocka_unit_test(functions_to_count_may_have_a_file),
		cmocka_unit_test(names_of_profiles_are_different),
		cmocka_unit_test(what_is_not_understood_is_said_with_what_was_meant),
		cmocka_unit_test(patterns_stand_for_any_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
