#include "analyse/by_label.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type on_types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
static const struct value_type off_types[] = { { "blocked", "count" },
					       { "blocked", "nanoseconds" } };

/* A sample of process 7 with up to two labels of its own. */
static void add(struct profile *p, const char *key, const char *value, const char *key2,
		const char *value2, const int64_t *values)
{
	struct dict *d = profile_dict(p);
	struct label labels[4] = {
		{ .key = dict_string(d, "pid"), .num = 7 },
		{ .key = dict_string(d, "comm"), .str = dict_string(d, "app") },
	};
	struct module m = { .kind = MODULE_ELF, .path = dict_string(d, "/app") };
	location_id loc = dict_location(d, dict_module(d, &m), 1);
	uint32_t n = 2;

	if (key)
		labels[n++] =
			(struct label){ .key = dict_string(d, key), .str = dict_string(d, value) };
	if (key2)
		labels[n++] = (struct label){ .key = dict_string(d, key2),
					      .str = dict_string(d, value2) };
	profile_add(p, dict_stack(d, &loc, 1), dict_labels(d, labels, n), values);
}

static void values_of_a_key_are_summed_over_both_profiles(void **state)
{
	struct dict *d = dict_new();
	struct profile *on = profile_new(d, on_types, 2), *off = profile_new(d, off_types, 2);
	struct label_row rows[4];

	(void)state;
	add(on, "route", "/a", "span", "1", (int64_t[]){ 3, 30 });
	add(on, "route", "/a", "span", "2", (int64_t[]){ 4, 40 });
	add(on, "route", "/b", "span", "3", (int64_t[]){ 5, 50 });
	add(on, "route", "/c", "span", "4", (int64_t[]){ 1, 10 });
	add(on, NULL, NULL, NULL, NULL, (int64_t[]){ 100, 1000 });
	add(off, "route", "/d", NULL, NULL, (int64_t[]){ 1, 7000 });
	add(off, "user", "anna", NULL, NULL, (int64_t[]){ 1, 1 });
	assert_int_equal(by_label(on, off, rows, 4), 3);
	/* As many samples: the one that waited. */
	assert_string_equal(rows[0].key, "route");
	assert_int_equal(rows[0].values, 4);
	assert_int_equal(rows[0].samples, 13);
	assert_int_equal(rows[0].blocked_ns, 7000);
	assert_int_equal(rows[0].n_top, 3);
	assert_string_equal(rows[0].top[0].value, "/a");
	assert_int_equal(rows[0].top[0].samples, 7);
	assert_string_equal(rows[0].top[1].value, "/b");
	assert_string_equal(rows[0].top[2].value, "/c");
	assert_string_equal(rows[1].key, "span");
	assert_int_equal(rows[1].values, 4);
	assert_string_equal(rows[1].top[0].value, "3");
	assert_string_equal(rows[2].key, "user");
	assert_int_equal(rows[2].samples, 0);
	assert_int_equal(by_label(on, off, rows, 1), 1);
	profile_free(on);
	profile_free(off);
	dict_free(d);
}

static void labels_of_memscopes_own_are_none(void **state)
{
	struct dict *d = dict_new();
	struct profile *off = profile_new(d, off_types, 2);
	struct label_row rows[4];

	(void)state;
	add(off, "container", "web", "app.pid", "x", (int64_t[]){ 1, 9 });
	assert_int_equal(by_label(NULL, off, rows, 4), 1);
	assert_string_equal(rows[0].key, "app.pid");
	assert_int_equal(by_label(NULL, NULL, rows, 4), 0);
	profile_free(off);
	dict_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_a_key_are_summed_over_both_profiles),
		cmocka_unit_test(labels_of_memscopes_own_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
