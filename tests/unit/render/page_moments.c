#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "render/html/page_moments.h"
#include "unit/profile_fixture.h"

#define SECOND  1000000000ull
#define SECONDS 40

static const struct value_type cpu[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
static const struct value_type waits[] = { { "blocked", "count" }, { "blocked", "nanoseconds" } };
static const struct value_type alloc[] = { { "alloc_objects", "count" },
					   { "alloc_space", "bytes" } };

struct part {
	const char *stack;
	int from, to;
	double a_second;
};

static cJSON *moments_of(const char *id, const struct value_type *types, const struct part *parts,
			 uint32_t n)
{
	struct fixture f = fixture_new(types, 2);
	struct sample_times *t = sample_times_new((uint32_t[]){ 1 }, 1, SECOND, 1 << 16);
	struct page_run run = { .profiles = { { .id = id, .p = f.p, .times = t } },
				.n_profiles = 1 };
	_cleanup_(strbuf_free) struct strbuf out = { 0 };
	cJSON *json;

	for (uint32_t i = 0; i < n; i++) {
		int64_t value = (int64_t)parts[i].a_second;

		fixture_add(&f, parts[i].stack,
			    (int64_t[]){ 10, value * (parts[i].to - parts[i].from) });
		for (int s = parts[i].from; s < parts[i].to; s++)
			sample_times_add(t, i, (uint64_t)s * SECOND, &value);
	}
	assert_int_equal(page_moments_json(&run, SECOND, SECONDS, &out), 0);
	json = cJSON_Parse(out.s);
	assert_non_null(json);
	sample_times_free(t);
	fixture_free(&f);
	return json;
}

static const cJSON *moment(const cJSON *all, int i, const char *function)
{
	const cJSON *m = cJSON_GetArrayItem(all, i);

	assert_non_null(m);
	assert_string_equal(cJSON_GetObjectItem(m, "function")->valuestring, function);
	return m;
}

static double number(const cJSON *m, const char *key)
{
	return cJSON_GetObjectItem(m, key)->valuedouble;
}

static void a_burst_of_cpu_time_is_named_with_its_seconds(void **state)
{
	static const struct part parts[] = { { "a;main;serve", 0, SECONDS, 3e8 },
					     { "a;main;recompute", 21, 24, 9e8 },
					     { "a;main;hardly", 30, 31, 2e7 } };
	cJSON *all = moments_of("oncpu", cpu, parts, 3);
	const cJSON *m = moment(all, 0, "recompute");

	(void)state;
	assert_int_equal(cJSON_GetArraySize(all), 1);
	assert_true(number(m, "from") == 21 && number(m, "to") == 24);
	assert_true(number(m, "value") == 2.7e9);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(m, "burst")));
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(m, "wait")));
	cJSON_Delete(all);
}

static void what_begins_late_and_goes_on_is_a_begin(void **state)
{
	static const struct part parts[] = { { "a;main;serve;malloc", 0, SECONDS, 1e6 },
					     { "a;main;leak;malloc", 12, SECONDS, 1e6 },
					     { "a;main;tiny;malloc", 12, SECONDS, 10 } };
	cJSON *all = moments_of("alloc", alloc, parts, 3);
	const cJSON *m = moment(all, 0, "leak");

	(void)state;
	assert_int_equal(cJSON_GetArraySize(all), 1);
	assert_true(number(m, "from") == 12 && number(m, "to") == SECONDS);
	assert_true(cJSON_IsFalse(cJSON_GetObjectItem(m, "burst")));
	cJSON_Delete(all);
}

/* A thread that sleeps for two seconds stands out in nothing; one that waits for a lock does. */
static void waits_for_a_lock_stand_out_and_those_for_a_time_do_not(void **state)
{
	static const struct part parts[] = {
		{ "a;main;rest;clock_nanosleep;do_nanosleep_[k];schedule_[k]", 15, 17, 1e9 },
		{ "a;main;serve;futex_wait_[k];schedule_[k]", 15, 17, 1e9 }
	};
	cJSON *all = moments_of("offcpu", waits, parts, 2);
	const cJSON *m = moment(all, 0, "serve");

	(void)state;
	assert_int_equal(cJSON_GetArraySize(all), 1);
	assert_string_equal(cJSON_GetObjectItem(m, "wait")->valuestring, "a lock (futex)");
	cJSON_Delete(all);
}

static void memory_that_is_taken_at_the_begin_is_no_moment(void **state)
{
	static const struct part parts[] = { { "a;main;warm;malloc", 0, 3, 5e7 },
					     { "a;main;late;malloc", 20, 23, 5e7 } };
	cJSON *all = moments_of("alloc", alloc, parts, 2);

	(void)state;
	assert_int_equal(cJSON_GetArraySize(all), 1);
	assert_true(number(moment(all, 0, "late"), "from") == 20);
	cJSON_Delete(all);
}

static void an_even_run_has_none(void **state)
{
	static const struct part parts[] = { { "a;main;serve", 0, SECONDS, 3e8 },
					     { "a;main;parse", 0, SECONDS, 5e8 } };
	cJSON *all = moments_of("oncpu", cpu, parts, 2);

	(void)state;
	assert_int_equal(cJSON_GetArraySize(all), 0);
	cJSON_Delete(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_of_cpu_time_is_named_with_its_seconds),
		cmocka_unit_test(what_begins_late_and_goes_on_is_a_begin),
		cmocka_unit_test(waits_for_a_lock_stand_out_and_those_for_a_time_do_not),
		cmocka_unit_test(memory_that_is_taken_at_the_begin_is_no_moment),
		cmocka_unit_test(an_even_run_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
