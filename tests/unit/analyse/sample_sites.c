#include "analyse/sample_sites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/functions.h"
#include "analyse/row_sums.h"
#include "base/sink.h"
#include "model/pprof.h"
#include "unit/analyse/simulate.h"
#include "unit/profile_fixture.h"

static const struct value_type bytes_type[] = { { "alloc_space", "bytes" } };

/* `n` samples of `size` bytes and this weight. */
static void put(struct fixture *f, const char *stack, int n, uint64_t size, uint64_t weight,
		struct estimate *all)
{
	struct estimate est = { 0 };
	struct value_error errors[2];
	struct profile_sample s;

	for (int i = 0; i < n; i++)
		estimate_add(&est, size, weight);
	fixture_add1(f, stack, (int64_t)est.bytes);
	estimate_errors(&est, &errors[0], &errors[1]);
	s = profile_sample(f->p, profile_n_samples(f->p) - 1);
	assert_int_equal(profile_add_error(f->p, s.stack, s.labels, 0, &errors[1]), 0);
	estimate_merge(all, &est);
}

static void interval_of_a_site_is_that_of_its_stacks_together(void **state)
{
	struct fixture f = fixture_new(bytes_type, 1);
	struct estimate load = { 0 }, big = { 0 };
	struct site_row rows[4], all;
	struct interval want;
	int64_t unmet;

	(void)state;
	put(&f, "app;main;load;malloc", 5, 100, 8192, &load);
	put(&f, "app;main;other;load;malloc", 7, 3000, 9600, &load);
	put(&f, "app;main;big;malloc", 2, 1 << 20, 1 << 20, &big);
	fixture_add1(&f, "app;main;counted;malloc", 1 << 19);

	assert_int_equal(sites_allocations(f.p, 0, -1, rows, 4), 3);
	assert_int_equal(site_intervals(f.p, 0, rows, 3, &all), 0);
	assert_string_equal(rows[0].function, "big");
	assert_int_equal(rows[0].samples, 2);
	assert_int_equal(rows[0].low, 2 << 20);
	/* Small blocks that were not met: z² times what one sample stands for here. */
	unmet = llround(1.959963984540054 * 1.959963984540054 * load.vc / load.v);
	assert_true(labs(rows[0].high - (2 << 20) - unmet) < 10);
	assert_string_equal(rows[1].function, "counted");
	assert_int_equal(rows[1].samples, 0);
	assert_int_equal(rows[1].low, 1 << 19);
	assert_int_equal(rows[1].high, 1 << 19);
	want = estimate_interval(&load);
	assert_string_equal(rows[2].function, "load");
	assert_int_equal(rows[2].samples, 12);
	/* Labels are whole numbers. */
	assert_true(rows[2].low > want.low - 10 && rows[2].low < want.low + 10);
	assert_true(rows[2].high > want.high - 10 && rows[2].high < want.high + 10);
	assert_int_equal(all.samples, 14);
	assert_int_equal(all.high - all.value, rows[2].high - rows[2].value);
	fixture_free(&f);
}

/* What `memscope report` makes of the file: intervals of each function itself, and of all. */
static void compare_with_file(struct dict *d, const struct profile *p, const struct site_row *rows,
			      uint32_t n, const struct site_row *all)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	_cleanup_(functions_fini) struct functions f = { 0 };
	struct row_sums sums[SIM_FUNCTIONS + 1] = { 0 };
	struct profile *again = NULL;
	struct sink *out = NULL;
	struct profile_sums of;
	struct interval i;
	uint32_t found = 0;
	const char *text;
	size_t len;

	assert_int_equal(sink_open_memory(&out, NULL), 0);
	assert_int_equal(pprof_write(p, (module_id){ 0 }, out, NULL), 0);
	assert_int_equal(sink_commit(out, NULL), 0);
	text = sink_memory(out, &len);
	assert_int_equal(pprof_read(d, text, len, "it", &again, NULL), 0);
	assert_int_equal(
		frame_tree_build(
			again, &(struct frame_tree_opts){ .type = 1, .keep_samples = true }, &tree),
		0);
	assert_int_equal(sites_charge(tree, sites_kind(again, 1)), 0);
	assert_int_equal(functions_make(tree, &f), 0);
	assert_true(f.n <= SIM_FUNCTIONS + 1);
	assert_int_equal(row_sums_add(again, 1, ERROR_OF_RUN, tree, NULL,
				      &(struct row_table){ tree, f.row_of, f.n }, sums, &of),
			 0);
	for (uint32_t k = 0; k < f.n; k++)
		for (uint32_t s = 0; s < n; s++) {
			if (strcmp(f.rows[k].name, rows[s].function) != 0)
				continue;
			i = row_interval(&sums[k].self, &of);
			assert_int_equal(rows[s].low, llround(i.low));
			assert_int_equal(rows[s].high, llround(i.high));
			assert_int_equal(rows[s].samples, llround(sums[k].self.error.samples));
			assert_true(rows[s].low < rows[s].value && rows[s].value < rows[s].high);
			found++;
		}
	assert_int_equal(found, n);
	i = row_interval(&of.all, &of);
	assert_int_equal(all->low, llround(i.low));
	assert_int_equal(all->high, llround(i.high));
	sink_close(out);
	profile_free(again);
}

static void intervals_of_a_run_are_those_of_its_file_to_the_digit(void **state)
{
	(void)state;
	for (enum sim_tier tier = SIM_SAMPLED; tier <= SIM_BURST; tier++)
		for (int run = 0; run < 20; run++) {
			struct dict *d = dict_new();
			struct sim_run r = { 0 };
			struct site_row rows[SIM_FUNCTIONS], all;
			struct profile *p;
			int n;

			for (int i = 0; i < SIM_FUNCTIONS; i++)
				r.amount[i] = 3000 * sim_part(i);
			p = sim_profile(d, tier, &r);
			n = sites_allocations(p, 1, 0, rows, SIM_FUNCTIONS);
			assert_true(n > 10);
			assert_int_equal(site_intervals(p, 1, rows, (uint32_t)n, &all), 0);
			compare_with_file(d, p, rows, (uint32_t)n, &all);
			profile_free(p);
			dict_free(d);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interval_of_a_site_is_that_of_its_stacks_together),
		cmocka_unit_test(intervals_of_a_run_are_those_of_its_file_to_the_digit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
