#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <math.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "model/alloc_site.h"
#include "render/html/page_data.h"
#include "render/html/page_details.h"
#include "unit/profile_fixture.h"

#define SECOND 1000000000ull

static const struct value_type types[] = { { "alloc_objects", "count" },
					   { "alloc_space", "bytes" } };

static struct {
	uint64_t n, node[8], function[8];
	char names[8][64];
	float column[N_PAGE_DETAIL_COLUMNS][8];
	uint32_t sites;
	bool bursts;
} got;

static void decode(const struct profile *p, struct sample_times *t, double seconds,
		   const struct profile *sites)
{
	const struct page_times at = { t, SECOND };
	_cleanup_(strbuf_free) struct strbuf profile = { 0 }, out = { 0 };
	_cleanup_(freep) struct page_row *rows = NULL;
	struct bytes in;
	uint64_t n;

	assert_int_equal(page_profile_encode(p, &at, &profile, &rows), 0);
	assert_int_equal(
		page_details_encode(p, &at, seconds, rows, sites, &out, &got.sites, &got.bursts),
		0);
	in = bytes_of(out.s, out.len);
	assert_int_equal(bytes_uleb(&in, &n), 0);
	assert_int_equal(n, PAGE_DETAIL_VERSION);
	assert_int_equal(bytes_uleb(&in, &n), 0);
	assert_true(n >= 1 && n <= 8);
	memset(got.names, 0, sizeof(got.names));
	for (uint64_t i = 0, len; i < n; i++) {
		assert_int_equal(bytes_uleb(&in, &len), 0);
		assert_int_equal(bytes_copy(&in, got.names[i], len), 0);
	}
	assert_string_equal(got.names[0], "");
	assert_int_equal(bytes_uleb(&in, &got.n), 0);
	assert_true(got.n <= 8);
	for (uint64_t i = 0; i < got.n; i++)
		assert_int_equal(bytes_uleb(&in, &got.node[i]), 0);
	for (uint64_t i = 0; i < got.n; i++)
		assert_int_equal(bytes_uleb(&in, &got.function[i]), 0);
	for (uint64_t i = 0; i < got.n; i++)
		assert_int_equal(bytes_uleb(&in, &n), 0);
	for (int c = 0; c < N_PAGE_DETAIL_COLUMNS; c++)
		for (uint64_t i = 0; i < got.n; i++)
			assert_int_equal(bytes_copy(&in, &got.column[c][i], sizeof(float)), 0);
	assert_int_equal(in.len, 0);
}

static void assert_float(enum page_detail_column c, int row, double want)
{
	if (!(fabs(got.column[c][row] - want) <= 1e-6 * fabs(want)))
		fail_msg("column %d of row %d is %g, wanted %g", c, row, got.column[c][row], want);
}

/* Two threads of one stack are one site; another grows by 100 bytes a second each second. */
static void sites_have_their_statistics_largest_first(void **state)
{
	struct fixture f = fixture_new(types, 2);
	struct sample_times *t = sample_times_new((uint32_t[]){ 1 }, 1, SECOND, 1 << 16);

	(void)state;
	fixture_add(&f, "a;main;steady", (int64_t[]){ 2, 3000 });
	fixture_add(&f, "b;main;steady", (int64_t[]){ 1, 1000 });
	fixture_add(&f, "a;main;grows", (int64_t[]){ 4, 600 });
	for (uint64_t s = 0; s < 4; s++) {
		sample_times_add(t, 0, s * SECOND, (int64_t[]){ 750 });
		sample_times_add(t, 1, s * SECOND, (int64_t[]){ 250 });
		sample_times_add(t, 2, s * SECOND, (int64_t[]){ 100 * (int64_t)s });
	}
	decode(f.p, t, 4, NULL);
	assert_int_equal(got.n, 2);
	assert_int_equal(got.sites, 2);
	assert_float(PAGE_DETAIL_INTEGRAL, 0, 4000);
	assert_float(PAGE_DETAIL_MEAN, 0, 1000);
	assert_float(PAGE_DETAIL_DEVIATION, 0, 0);
	assert_float(PAGE_DETAIL_SLOPE, 0, 0);
	assert_float(PAGE_DETAIL_FIRST, 0, .5);
	assert_float(PAGE_DETAIL_LAST, 0, 3.5);
	assert_float(PAGE_DETAIL_INTEGRAL, 1, 600);
	assert_float(PAGE_DETAIL_SLOPE, 1, 100);
	assert_float(PAGE_DETAIL_INTERCEPT, 1, -50);
	assert_float(PAGE_DETAIL_R2, 1, 1);
	assert_float(PAGE_DETAIL_LOW, 1, got.column[PAGE_DETAIL_HIGH][1]); /* counted */
	assert_true(isnan(got.column[PAGE_DETAIL_TEMPORARY][0]));
	sample_times_free(t);
	fixture_free(&f);
}

/* A run that ends within a second has a last bin that is shorter, and a rate that is not too low there. */
static void the_last_bin_ends_with_the_run(void **state)
{
	struct fixture f = fixture_new(types, 2);
	struct sample_times *t = sample_times_new((uint32_t[]){ 1 }, 1, SECOND, 1 << 16);

	(void)state;
	fixture_add(&f, "a;main", (int64_t[]){ 1, 1250 });
	sample_times_add(t, 0, 0, (int64_t[]){ 1000 });
	sample_times_add(t, 0, SECOND, (int64_t[]){ 250 });
	decode(f.p, t, 1.25, NULL);
	assert_float(PAGE_DETAIL_MEAN, 0, 1000);
	assert_float(PAGE_DETAIL_DEVIATION, 0, 0);
	sample_times_free(t);
	fixture_free(&f);
}

static void what_came_of_blocks_is_of_all_of_a_sites_stacks_once(void **state)
{
	struct fixture f = fixture_new(types, 2);
	struct sample_times *t = sample_times_new((uint32_t[]){ 1 }, 1, SECOND, 1 << 16);
	struct profile *sites = profile_new(f.d, alloc_site_types, N_SITE_VALUES);
	int64_t values[N_SITE_VALUES] = { 0 };

	(void)state;
	fixture_add(&f, "a;main", (int64_t[]){ 1, 100 });
	fixture_add(&f, "b;main", (int64_t[]){ 1, 100 });
	sample_times_add(t, 0, 0, (int64_t[]){ 100 });
	sample_times_add(t, 1, 0, (int64_t[]){ 100 });
	values[SITE_OBJECTS] = 10;
	values[SITE_FREED] = 8;
	values[SITE_TEMPORARY] = 4;
	values[SITE_LIFE_NS] = 8000;
	values[SITE_LIVE_BYTES] = 77;
	profile_add(sites, profile_sample(f.p, 0).stack, profile_sample(f.p, 0).labels, values);
	decode(f.p, t, 1, sites);
	assert_int_equal(got.n, 1);
	assert_float(PAGE_DETAIL_TEMPORARY, 0, .4);
	assert_float(PAGE_DETAIL_LIFETIME, 0, 1000);
	assert_float(PAGE_DETAIL_LIVE, 0, 77);
	profile_free(sites);
	sample_times_free(t);
	fixture_free(&f);
}

static void lines_of_one_function_are_one_site(void **state)
{
	struct fixture f = fixture_new(types, 2);
	struct sample_times *t = sample_times_new((uint32_t[]){ 1 }, 1, SECOND, 1 << 16);
	module_id prog = fixture_module(&f, MODULE_ELF, "/usr/bin/prog");
	module_id other = fixture_module(&f, MODULE_ELF, "/usr/lib/other.so");
	struct line line = { .function = dict_string(f.d, "main") };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		location_id leaf;
		stack_id s = { 0 };

		line.line = 10 + i;
		leaf = dict_location_lines(f.d, i < 2 ? prog : other, 0x10 * i, &line, 1);
		s = dict_stack(f.d, &leaf, 1);
		profile_add(f.p, s, (labels_id){ 0 }, (int64_t[]){ 1, 100 });
		sample_times_add(t, i, 0, (int64_t[]){ 100 });
	}
	decode(f.p, t, 1, NULL);
	assert_int_equal(got.n, 2); /* the same name in another module is another function */
	assert_int_equal(got.node[0], 1);
	assert_float(PAGE_DETAIL_INTEGRAL, 0, 200);
	assert_float(PAGE_DETAIL_INTEGRAL, 1, 100);
	sample_times_free(t);
	fixture_free(&f);
}

/* What is allocated belongs to the function that asked, as everywhere else. */
static void a_site_is_named_by_the_function_that_asked(void **state)
{
	struct fixture f = fixture_new(types, 2);
	struct sample_times *t = sample_times_new((uint32_t[]){ 1 }, 1, SECOND, 1 << 16);

	(void)state;
	fixture_add(&f, "a;main;load;malloc", (int64_t[]){ 1, 100 });
	sample_times_add(t, 0, 0, (int64_t[]){ 100 });
	decode(f.p, t, 1, NULL);
	assert_string_equal(got.names[got.function[0]], "load");
	assert_true(isnan(got.column[PAGE_DETAIL_WAIT][0]));
	sample_times_free(t);
	fixture_free(&f);
}

static void sites_that_rise_and_fall_together_are_marked_and_bursts_are_found(void **state)
{
	static const int64_t shape[3][8] = { { 1, 2, 9, 4, 1, 0, 3, 1 },
					     { 10, 20, 90, 40, 10, 0, 30, 10 },
					     { 0, 0, 0, 0, 0, 700, 1, 0 } };
	struct fixture f = fixture_new(types, 2);
	struct sample_times *t = sample_times_new((uint32_t[]){ 1 }, 1, SECOND, 1 << 16);

	(void)state;
	fixture_add(&f, "a;main;small", (int64_t[]){ 1, 21 });
	fixture_add(&f, "a;main;large", (int64_t[]){ 1, 210 });
	fixture_add(&f, "a;main;once", (int64_t[]){ 1, 701 });
	for (uint32_t i = 0; i < 3; i++)
		for (uint64_t s = 0; s < 8; s++)
			sample_times_add(t, i, s * SECOND, &shape[i][s]);
	decode(f.p, t, 8, NULL);
	assert_string_equal(got.names[got.function[0]], "once");
	assert_float(PAGE_DETAIL_BURST_FROM, 0, 5);
	assert_float(PAGE_DETAIL_BURST_TO, 0, 6);
	assert_true(isnan(got.column[PAGE_DETAIL_MATE][0]));
	assert_float(PAGE_DETAIL_MATE, 1, 2);
	assert_float(PAGE_DETAIL_MATE, 2, 1);
	assert_float(PAGE_DETAIL_MATE_R, 1, 1);
	assert_true(isnan(got.column[PAGE_DETAIL_VARIANCE][1])); /* counted */
	sample_times_free(t);
	fixture_free(&f);
}

/* Of samples, each bin's error can be had from the site's: 4 samples of 10 ms. */
static void an_estimate_has_its_variance_and_what_a_sample_adds(void **state)
{
	static const struct value_type cpu[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
	struct fixture f = fixture_new(cpu, 2);
	struct sample_times *t = sample_times_new((uint32_t[]){ 1 }, 1, SECOND, 1 << 16);

	(void)state;
	fixture_add(&f, "a;main", (int64_t[]){ 4, 40000000 });
	sample_times_add(t, 0, 0, (int64_t[]){ 40000000 });
	decode(f.p, t, 1, NULL);
	assert_float(PAGE_DETAIL_VARIANCE, 0, 4e14);
	assert_float(PAGE_DETAIL_WEIGHT, 0, 1e7);
	sample_times_free(t);
	fixture_free(&f);
}

static void all_of_a_profile_has_an_interval_where_it_is_an_estimate(void **state)
{
	static const struct value_type heap[] = { { "inuse_objects", "count" },
						  { "inuse_space", "bytes" } };
	struct fixture f = fixture_new(heap, 2);
	struct interval i;
	double total;

	(void)state;
	fixture_add(&f, "a;main;load", (int64_t[]){ 1, 4000 });
	fixture_add(&f, "a;main;keep", (int64_t[]){ 1, 1000 });
	assert_int_equal(page_details_total(f.p, 1, &total, &i), 0);
	assert_true(total == 5000 && i.low == 5000 && i.high == 5000);
	profile_add_error(
		f.p, profile_sample(f.p, 0).stack, profile_sample(f.p, 0).labels, 1,
		&(struct value_error){ .samples = 4, .unseen = 3000, .v = 1e6, .vc = 1e9 });
	assert_int_equal(page_details_total(f.p, 1, &total, &i), 0);
	assert_true(total == 5000 && i.low < 5000 && i.low >= 2000 && i.high > 5000);
	fixture_free(&f);
}

static void waits_have_what_they_are_for(void **state)
{
	static const struct value_type waits[] = { { "blocked", "count" },
						   { "blocked", "nanoseconds" } };
	struct fixture f = fixture_new(waits, 2);
	struct sample_times *t = sample_times_new((uint32_t[]){ 1 }, 1, SECOND, 1 << 16);

	(void)state;
	fixture_add(&f, "a;main;lock_it;futex_wait_[k]", (int64_t[]){ 1, 5000 });
	sample_times_add(t, 0, 0, (int64_t[]){ 5000 });
	decode(f.p, t, 1, NULL);
	assert_true(got.column[PAGE_DETAIL_WAIT][0] >= 0);
	assert_true(got.column[PAGE_DETAIL_ROLE][0] >= 0);
	sample_times_free(t);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sites_have_their_statistics_largest_first),
		cmocka_unit_test(lines_of_one_function_are_one_site),
		cmocka_unit_test(the_last_bin_ends_with_the_run),
		cmocka_unit_test(what_came_of_blocks_is_of_all_of_a_sites_stacks_once),
		cmocka_unit_test(a_site_is_named_by_the_function_that_asked),
		cmocka_unit_test(sites_that_rise_and_fall_together_are_marked_and_bursts_are_found),
		cmocka_unit_test(an_estimate_has_its_variance_and_what_a_sample_adds),
		cmocka_unit_test(all_of_a_profile_has_an_interval_where_it_is_an_estimate),
		cmocka_unit_test(waits_have_what_they_are_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
