#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/over_time.h"
#include "model/sample_times.h"
#include "render/formats/moments.h"

#define S 1000000000ull

static struct dict *d;
static struct profile *p;

static int setup(void **state)
{
	static const struct value_type area = { "space_time", "byte-milliseconds" };

	d = dict_new();
	p = profile_new(d, &area, 1);
	return 0;
}

static int teardown(void **state)
{
	profile_free(p);
	dict_free(d);
	return 0;
}

static uint32_t add(const char *name)
{
	struct line line = { .function = dict_string(d, name) };
	location_id at = dict_location_lines(d, (module_id){ 0 }, 0, &line, 1);
	uint32_t sample;

	assert_int_equal(profile_add_to(p, dict_stack(d, &at, 1), (labels_id){ 0 },
					(int64_t[]){ 1 }, &sample),
			 0);
	return sample;
}

/* 300 bins of a second: 3 to a moment, the one that held most; the last bin is half as long. */
static void of_bins_the_one_that_held_most_stands_for_its_neighbours(void **state)
{
	struct sample_times *t = sample_times_new((uint32_t[]){ 0 }, 1, S, SAMPLE_TIMES_MAX);
	uint32_t a = add("a"), b = add("b");
	struct profile *at = NULL;
	struct moments m;

	for (uint64_t i = 0; i < 300; i++)
		sample_times_add(t, a, i * S,
				 (int64_t[]){ i == 299     ? 500 * 1000
					      : i % 3 == 1 ? 90 * 1000
							   : 1000 });
	sample_times_add(t, b, 4 * S, (int64_t[]){ 10 * 1000 });
	profile_set_times(p, t);
	profile_set_meta(p, &(struct profile_meta){ .duration_ns = 299 * S + S / 2,
						    .period_type = { "", "" } });
	assert_int_equal(moments_find(p, &m), 0);
	assert_int_equal(m.n, 100);
	assert_int_equal(m.all[0].bytes, 90);
	assert_int_equal(m.all[0].ns, S + S / 2);
	assert_int_equal(m.all[1].bytes, 100);
	assert_int_equal(m.all[99].bytes, 1000); /* 500 in half a second */
	assert_int_equal(moments_profile(&m, 1, &at), 0);
	assert_int_equal(profile_n_samples(at), 2);
	assert_int_equal(profile_total(at, 0), 100);
	profile_free(at);
}

static void a_table_has_stacks_by_their_names(void **state)
{
	static const char *const names[] = { "main;load;get", "OTHER" };
	struct time_table *t = time_table_new(names, 2, 2);
	struct over_time *o = over_time_new();
	struct profile *at = NULL;
	struct moments m;

	t->times_s[0] = 101;
	t->times_s[1] = 103.5;
	t->columns[0].values[1] = 70;
	t->columns[1].values[0] = 5;
	t->columns[1].values[1] = 7;
	over_time_add_series(o, "live_series", "x", t);
	profile_set_over_time(p, o);
	profile_set_meta(p,
			 &(struct profile_meta){ .time_ns = 100 * S, .period_type = { "", "" } });
	assert_int_equal(moments_find(p, &m), 0);
	assert_int_equal(m.n, 2);
	assert_int_equal(m.all[0].bytes, 5); /* what is not known is nothing */
	assert_int_equal(m.all[1].ns, 3 * S + S / 2);
	assert_int_equal(moments_profile(&m, 1, &at), 0);
	assert_int_equal(profile_total(at, 0), 77);
	assert_int_equal(dict_stack_depth(d, profile_sample(at, 0).stack), 3);
	profile_free(at);
}

static void of_other_profiles_there_are_none(void **state)
{
	struct moments m;

	add("a");
	assert_int_equal(moments_find(p, &m), 0);
	assert_int_equal(m.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			of_bins_the_one_that_held_most_stands_for_its_neighbours, setup, teardown),
		cmocka_unit_test_setup_teardown(a_table_has_stacks_by_their_names, setup, teardown),
		cmocka_unit_test_setup_teardown(of_other_profiles_there_are_none, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
