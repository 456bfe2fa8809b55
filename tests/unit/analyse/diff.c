#include "analyse/diff.h"
#include "analyse/row_sums.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/merge.h"
#include "unit/analyse/simulate.h"

static const struct value_type samples[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
static const struct value_type heap[] = { { "inuse_objects", "count" },
					  { "inuse_space", "bytes" } };
static const struct value_type exact[] = { { "blocked", "count" } };

static struct dict *d;

static int setup(void **state)
{
	d = dict_new();
	return 0;
}

static int teardown(void **state)
{
	dict_free(d);
	return 0;
}

/* "main;f": what is at the end of it. */
static void add(struct profile *p, const char *path, int64_t a, int64_t b)
{
	char copy[128], *rest = copy, *name;
	int64_t values[] = { a, b };
	stack_id s = { 0 };

	snprintf(copy, sizeof(copy), "%s", path);
	while ((name = strsep(&rest, ";"))) {
		struct module kernel = { .kind = MODULE_KERNEL,
					 .path = dict_string(d, "[kernel]") };
		module_id m = { 0 };
		struct line line;

		if (strstr(name, "_[k]"))
			m = dict_module(d, &kernel);
		name[strcspn(name, "[") - (m.ix != 0)] = '\0';
		line = (struct line){ .function = dict_string(d, name) };
		s = dict_stack_push(d, s, dict_location_lines(d, m, 0, &line, 1));
	}
	assert_int_equal(profile_add(p, s, (labels_id){ 0 }, values), 0);
}

static const struct diff_row *row(const struct diff *diff, const char *name)
{
	for (uint32_t i = 0; i < diff->n; i++)
		if (strcmp(diff->rows[i].name, name) == 0)
			return &diff->rows[i];
	return NULL;
}

static void near(double got, double want)
{
	if (fabs(got - want) > 1e-9 * fmax(1, fabs(want)))
		fail_msg("%.15g, not %.15g", got, want);
}

static double variance(const struct profile *p, const struct profile_sample *s, uint32_t type)
{
	struct value_error e;

	return sample_error(p, s, type, ERROR_OF_LAW, &e) ? value_error_variance(&e) : 0;
}

static void a_sample_of_n_varies_by_the_root_of_n(void **state)
{
	struct profile *p = profile_new(d, samples, 2);
	struct profile_sample s;

	add(p, "main", 9, 900);
	s = profile_sample(p, 0);
	near(variance(p, &s, 0), 9);
	near(variance(p, &s, 1), 9 * 100.0 * 100);
	profile_free(p);
}

static void a_heap_varies_by_what_was_not_sampled(void **state)
{
	struct profile *p = profile_new(d, heap, 2);
	struct profile_meta meta = { .period = 1000, .period_type = { "space", "bytes" } };
	struct profile_sample s;
	double chance = 1 - exp(-0.1);

	add(p, "main", 50, 5000);
	s = profile_sample(p, 0);
	near(variance(p, &s, 1), 0); /* not sampled at all */
	assert_int_equal(profile_set_meta(p, &meta), 0);
	near(variance(p, &s, 1), 50 * (1 - chance) / chance * 100 * 100);
	near(variance(p, &s, 0), 50 * (1 - chance) / chance);
	profile_free(p);
}

static void paths_of_both_are_there_and_differences_reach_the_parents(void **state)
{
	struct profile *a = profile_new(d, samples, 2), *b = profile_new(d, samples, 2);
	struct diff_opts o = { .before = a, .after = b, .least_share = 0.01 };
	struct diff diff;

	add(a, "main;gone", 100, 0);
	add(a, "main;kept", 50, 0);
	add(b, "main;kept", 50, 0);
	add(b, "main;new", 70, 0);
	assert_int_equal(diff_make(&o, &diff), 0);
	assert_int_equal(diff.tree->nodes[0].total, 220);
	near(row(&diff, "main")->total[0], 150);
	near(row(&diff, "main")->total[1], 120);
	assert_true(row(&diff, "gone")->changed);
	assert_true(row(&diff, "new")->changed);
	assert_false(row(&diff, "kept")->changed);
	assert_false(row(&diff, "main")->changed);
	/* 100 samples, and one that there may be where there is none. */
	near(row(&diff, "gone")->self_noise, 1.959963984540054 * sqrt(101));
	diff_fini(&diff);
	profile_free(a);
	profile_free(b);
}

static void a_machine_that_is_dearer_changes_no_function(void **state)
{
	struct profile *a = profile_new(d, samples, 2), *b = profile_new(d, samples, 2);
	struct diff_opts o = { .before = a, .after = b, .least_share = 0.01 };
	struct diff diff;

	for (int i = 0; i < 6; i++) {
		char name[16];

		snprintf(name, sizeof(name), "main;f%d", i);
		add(a, name, 1000 + 100 * i, 0);
		add(b, name, 1500 + 150 * i, 0);
	}
	assert_int_equal(diff_make(&o, &diff), 0);
	assert_int_equal(diff.n_changed, 0);
	for (uint32_t i = 0; i < diff.n; i++)
		assert_int_equal(diff.rows[i].as_the_rest, diff.rows[i].self[1] > 0);
	assert_true(fabs(diff.total[1] - diff.total[0]) > diff.total_noise);
	diff_fini(&diff);
	profile_free(a);
	profile_free(b);
}

static void one_change_among_many_is_named_alone_whatever_is_compared(void **state)
{
	struct profile *a = profile_new(d, samples, 2), *b = profile_new(d, samples, 2);
	struct profile_meta meta = { .duration_ns = 1000000000, .period_type = { "", "" } };
	struct diff_opts o = { .before = a, .after = b, .least_share = 0.01 };
	struct diff diff;

	for (int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "main;f%d", i);
		add(a, name, 200 + 10 * i, 0);
		add(b, name, (200 + 10 * i + (i % 2 ? 9 : -9)) * (i == 7 ? 2 : 1), 0);
	}
	profile_set_meta(a, &meta);
	profile_set_meta(b, &meta);
	for (int scale = DIFF_ABSOLUTE; scale <= DIFF_SECONDS; scale++) {
		o.scale = (enum diff_scale)scale;
		assert_int_equal(diff_make(&o, &diff), 0);
		assert_int_equal(diff.n_changed, 1);
		assert_string_equal(diff.rows[0].name, "f7");
		assert_true(diff.rows[0].changed);
		diff_fini(&diff);
	}
	profile_free(a);
	profile_free(b);
}

static void seconds_and_totals_scale_what_was_before(void **state)
{
	struct profile *a = profile_new(d, samples, 2), *b = profile_new(d, samples, 2);
	struct profile_meta meta = { .duration_ns = 1000000000, .period_type = { "", "" } };
	struct diff_opts o = { .before = a, .after = b, .scale = DIFF_SECONDS };
	struct diff diff;

	add(a, "f", 100, 0);
	add(b, "f", 150, 0);
	assert_int_equal(diff_make(&o, &diff), -EDOM);
	diff_fini(&diff);
	profile_set_meta(a, &meta);
	meta.duration_ns *= 3;
	profile_set_meta(b, &meta);
	assert_int_equal(diff_make(&o, &diff), 0);
	near(row(&diff, "f")->self[0], 300);
	near(diff.total_noise, 1.959963984540054 * sqrt(9 * 100 + 150));
	diff_fini(&diff);
	o.scale = DIFF_TOTALS;
	assert_int_equal(diff_make(&o, &diff), 0);
	near(row(&diff, "f")->self[0], 150);
	diff_fini(&diff);
	profile_free(a);
	profile_free(b);
}

static void bytes_that_grew_with_all_others_have_changed_all_the_same(void **state)
{
	struct profile *a = profile_new(d, heap, 2), *b = profile_new(d, heap, 2);
	struct profile_meta meta = { .period = 1000, .period_type = { "space", "bytes" } };
	struct diff_opts o = { .before = a, .after = b, .before_type = 1, .after_type = 1 };
	struct diff diff;

	profile_set_meta(a, &meta);
	profile_set_meta(b, &meta);
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "main;f%d", i);
		add(a, name, 1000, 1000000);
		add(b, name, 2000, 2000000);
	}
	assert_int_equal(diff_make(&o, &diff), 0);
	assert_int_equal(diff.n_changed, 4);
	diff_fini(&diff);
	profile_free(a);
	profile_free(b);
}

static void what_is_counted_exactly_has_no_noise(void **state)
{
	struct profile *a = profile_new(d, exact, 1), *b = profile_new(d, exact, 1);
	struct diff_opts o = { .before = a, .after = b, .least_share = 0.01 };
	struct diff diff;

	add(a, "f", 1000, 0);
	add(b, "f", 1005, 0);
	add(a, "g", 100, 0);
	add(b, "g", 130, 0);
	assert_int_equal(diff_make(&o, &diff), 0);
	assert_int_equal(diff.noise, DIFF_COUNTED);
	assert_int_equal(diff.n_changed, 1);
	assert_string_equal(diff.rows[0].name, "g");
	diff_fini(&diff);
	profile_free(a);
	profile_free(b);
}

static void what_may_have_been_between_bursts_is_not_called_added(void **state)
{
	struct profile *a = profile_new(d, exact, 1), *b = profile_new(d, exact, 1);
	struct diff_opts o = { .before = a, .after = b, .least_share = 0.01 };
	const struct value_error bursts = { .group = { 10, -10 } };
	struct profile_sample s;
	struct diff diff;

	add(a, "f", 1000, 0);
	s = profile_sample(a, 0);
	assert_int_equal(profile_add_error(a, s.stack, s.labels, 0, &bursts), 0);
	add(b, "f", 1000, 0);
	add(b, "g", 700, 0);
	assert_int_equal(diff_make(&o, &diff), 0);
	assert_int_equal(diff.noise, DIFF_BURSTS);
	assert_int_equal(diff.n_changed, 0);
	diff_fini(&diff);
	profile_free(a);
	profile_free(b);
}

static void stacks_are_distinguished_where_functions_are_not(void **state)
{
	struct profile *a = profile_new(d, samples, 2), *b = profile_new(d, samples, 2);
	struct diff_opts o = { .before = a, .after = b, .by = DIFF_BY_STACK };
	struct diff diff;

	add(a, "x;f", 500, 0);
	add(a, "y;f", 100, 0);
	add(b, "x;f", 100, 0);
	add(b, "y;f", 500, 0);
	assert_int_equal(diff_make(&o, &diff), 0);
	assert_int_equal(diff.n_changed, 2);
	diff_fini(&diff);
	o.by = DIFF_BY_FUNCTION;
	assert_int_equal(diff_make(&o, &diff), 0);
	assert_int_equal(diff.n_changed, 0);
	diff_fini(&diff);
	profile_free(a);
	profile_free(b);
}

/* xorshift64*, and Poisson by counting exponential waits: the same on every machine. */
static uint64_t seed;

static double uniform(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (double)((seed * 0x2545f4914f6cdd1du) >> 11) * 0x1p-53 + 0x1p-54;
}

static int64_t poisson(double mean)
{
	int64_t n = -1;

	for (double at = 0; at < mean; n++)
		at -= log(uniform());
	return n;
}

/*
 * 400 pairs of runs of one program: some differences of each are outside their 95 % interval, but a
 * pair that names any is to be one in 100. Four sigma of that binomial above 4 are 12.
 */
static void of_two_runs_of_one_program_nothing_is_named(void **state)
{
	uint32_t pairs_with_any = 0, outside = 0, compared = 0;

	seed = 88172645463325252u;
	for (int pair = 0; pair < 400; pair++) {
		struct profile *a = profile_new(d, samples, 2), *b = profile_new(d, samples, 2);
		struct diff_opts o = { .before = a, .after = b };
		struct diff diff;

		for (int i = 0; i < 30; i++) {
			char name[16];
			double mean = 1 + 300.0 / (1 + i);

			snprintf(name, sizeof(name), "main;f%d", i);
			add(a, name, poisson(mean), 0);
			add(b, name, poisson(mean), 0);
		}
		assert_int_equal(diff_make(&o, &diff), 0);
		pairs_with_any += diff.n_changed > 0;
		for (uint32_t i = 0; i < diff.n; i++) {
			const struct diff_row *r = &diff.rows[i];

			if (r->self[0] + r->self[1] < 40)
				continue;
			compared++;
			outside += fabs(r->self[1] - r->self[0]) > r->self_noise;
		}
		diff_fini(&diff);
		profile_free(a);
		profile_free(b);
	}
	assert_true(pairs_with_any <= 12);
	/* The 95 % are 95 %, or wider where the pair's own spread was found large. */
	assert_true(outside > compared / 50 && outside < compared / 16);
}

static void growth_is_known_to_its_sampling_period(void **state)
{
	const struct value_type type = { "resident", "bytes" };
	struct dict *dict = dict_new();
	struct profile *p = profile_new(dict, &type, 1);
	struct profile_meta meta = { .period_type = type, .period = 127 * 4096 };
	struct profile_sample s = { .values = (const int64_t[]){ 10 * 127 * 4096 } };

	assert_int_equal(profile_set_meta(p, &meta), 0);
	/* Ten samples: their number varies by its root. */
	assert_float_equal(variance(p, &s, 0), 10 * 127.0 * 4096 * 127 * 4096, 1);
	meta.period = 1;
	assert_int_equal(profile_set_meta(p, &meta), 0);
	assert_float_equal(variance(p, &s, 0), 0, 0);
	profile_free(p);
	dict_free(dict);
}

static void memory_is_charged_to_who_asked_for_it(void **state)
{
	static const struct value_type resident[] = { { "resident", "bytes" } };
	struct profile *before = profile_new(d, resident, 1), *after = profile_new(d, resident, 1);
	struct diff_opts opts = { .before = before, .after = after, .least_share = 0.01 };
	struct diff diff;

	add(before, "main;cache_put;asm_exc_page_fault_[k];do_anonymous_page_[k]", 5 << 20, 0);
	add(after, "main;cache_put;asm_exc_page_fault_[k];do_anonymous_page_[k]", 8 << 20, 0);
	add(before, "main;other;malloc;asm_exc_page_fault_[k];do_anonymous_page_[k]", 5 << 20, 0);
	add(after, "main;other;malloc;asm_exc_page_fault_[k];do_anonymous_page_[k]", 5 << 20, 0);
	add(before, "khugepaged_[k]", 1 << 20, 0);
	add(after, "khugepaged_[k]", 1 << 20, 0);
	assert_int_equal(diff_make(&opts, &diff), 0);
	assert_int_equal(diff.n_changed, 1);
	assert_string_equal(diff.rows[0].name, "cache_put");
	near(diff.rows[0].self[1] - diff.rows[0].self[0], 3 << 20);
	near(row(&diff, "other")->self[1], 5 << 20);
	near(row(&diff, "main")->total[1], 13 << 20);
	near(row(&diff, "khugepaged")->self[1], 1 << 20);
	near(row(&diff, "do_anonymous_page")->total[1], 0);
	near(row(&diff, "malloc")->self[0], 0);
	diff_fini(&diff);
	/* A whole stack says more than its site. */
	opts.by = DIFF_BY_STACK;
	assert_int_equal(diff_make(&opts, &diff), 0);
	assert_string_equal(diff.rows[0].name, "do_anonymous_page");
	diff_fini(&diff);
	profile_free(before);
	profile_free(after);
}

static void waits_are_charged_to_who_waits_and_tested_against_chance(void **state)
{
	static const struct value_type types[] = { { "blocked", "count" },
						   { "blocked", "nanoseconds" } };
	struct profile *before = profile_new(d, types, 2), *after = profile_new(d, types, 2);
	struct diff_opts opts = { .before = before,
				  .after = after,
				  .before_type = 1,
				  .after_type = 1,
				  .least_share = 0.01 };
	struct diff diff;

	/* As many waits as chance gives, one that lasts the whole run, and one kind that is new. */
	add(before, "main;reads;sys_read_[k];schedule_[k]", 100, 100000000);
	add(after, "main;reads;sys_read_[k];schedule_[k]", 112, 115000000);
	add(before, "main;idle;futex_wait_[k];schedule_[k]", 1, 1000000000);
	add(after, "main;idle;futex_wait_[k];schedule_[k]", 1, 1400000000);
	add(after, "main;saves;sys_fsync_[k];schedule_[k]", 40, 60000000);
	assert_int_equal(diff_make(&opts, &diff), 0);
	assert_int_equal(diff.n_changed, 1);
	assert_true(row(&diff, "saves")->changed);
	near(row(&diff, "saves")->self[1], 60000000);
	near(row(&diff, "schedule")->total[1], 0);
	diff_fini(&diff);
	profile_free(before);
	profile_free(after);
}

/* --- simulated runs of each tier --- */

struct side_of_runs {
	struct profile *runs[8], *sum;
	uint32_t n;
};

static struct side_of_runs make_side(enum sim_tier tier, uint32_t n, double amount, double more,
				     double unlike)
{
	struct side_of_runs s = { .n = n };

	for (uint32_t i = 0; i < n; i++) {
		struct sim_run r = { .unlike = unlike, .steady = amount > 100000 ? 0.98 : 0 };

		for (int k = 0; k < SIM_FUNCTIONS; k++)
			r.amount[k] = amount * sim_part(k) * (k == 2 ? more : 1);
		/* Runs of one machine: none has quite the load of the other. */
		if (tier == SIM_COUNTED)
			for (int k = 0; k < SIM_FUNCTIONS; k++)
				r.amount[k] *= 1 + unlike * sim_normal();
		s.runs[i] = sim_profile(d, tier, &r);
		assert_int_equal(profile_merge(&s.sum, s.runs[i], "", MERGE_SAME, NULL, NULL), 0);
	}
	return s;
}

static void free_side(struct side_of_runs *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		profile_free(s->runs[i]);
	profile_free(s->sum);
}

struct named {
	uint32_t pairs, with_any, with_right, with_wrong, first_20;
};

/* `more`: by which f2 has changed; `n` runs a side. */
static struct named name_changes(enum sim_tier tier, uint32_t pairs, uint32_t n, double amount,
				 double more, double unlike, enum diff_scale scale)
{
	struct named named = { .pairs = pairs };

	sim_state = 88172645463325252u;
	for (uint32_t pair = 0; pair < pairs; pair++) {
		struct side_of_runs a = make_side(tier, n, amount, 1, unlike),
				    b = make_side(tier, n, amount, more, unlike);
		struct diff_opts o = { .before = a.sum,
				       .after = b.sum,
				       .before_type = SIM_TYPE,
				       .after_type = SIM_TYPE,
				       .runs = { (const struct profile *const *)a.runs,
						 (const struct profile *const *)b.runs },
				       .n_runs = { n, n },
				       .scale = scale };
		struct diff diff;
		bool right = false, wrong = false;

		assert_int_equal(diff_make(&o, &diff), 0);
		for (uint32_t i = 0; i < diff.n_changed; i++) {
			assert_true(diff.rows[i].changed);
			if (strcmp(diff.rows[i].name, "f2") == 0)
				right = true;
			else
				wrong = true;
		}
		named.with_any += diff.n_changed > 0;
		named.first_20 += diff.n_changed > 0 && pair < 20;
		named.with_right += right;
		named.with_wrong += wrong;
		diff_fini(&diff);
		free_side(&a);
		free_side(&b);
	}
	return named;
}

/* A false discovery rate of 1 %: so many of 2,000 equal pairs name something; 4 sigma of that more. */
static void of_equal_pairs_of_each_tier_one_in_100_names_anything(void **state)
{
	enum { PAIRS = 2000 };
	static const double amounts[SIM_TIERS] = { 1000, 1000, 1500, 1000, 100000 };

	(void)state;
	for (enum sim_tier tier = SIM_ON_CPU; tier < SIM_TIERS; tier++) {
		bool several = tier == SIM_COUNTED;
		struct named n = name_changes(tier, PAIRS, several ? 4 : 1, amounts[tier], 1,
					      several ? 0.05 : 0, DIFF_ABSOLUTE);

		print_message("%s: %u of %u pairs\n", sim_names[tier], n.with_any, n.pairs);
		if (n.with_any > PAIRS * 0.01 + 4 * sqrt(PAIRS * 0.01 * 0.99) || n.first_20)
			fail_msg("%s: too many", sim_names[tier]);
	}
}

static void of_equal_pairs_of_several_runs_one_in_100_names_anything(void **state)
{
	enum { PAIRS = 300 };
	static const double amounts[SIM_TIERS] = { 1000, 1000, 1000, 1000, 100000 };

	(void)state;
	for (enum sim_tier tier = SIM_ON_CPU; tier < SIM_TIERS; tier++) {
		struct named n = name_changes(tier, PAIRS, 3, amounts[tier], 1,
					      tier == SIM_COUNTED ? 0.05 : 0, DIFF_ABSOLUTE);

		print_message("%s: %u of %u pairs\n", sim_names[tier], n.with_any, n.pairs);
		if (n.with_any > PAIRS * 0.01 + 4 * sqrt(PAIRS * 0.01 * 0.99) || n.first_20)
			fail_msg("%s: too many", sim_names[tier]);
	}
}

/* f2 has a tenth of all; with so many samples, steady bursts or runs, a tenth more of it is beyond noise. */
static void a_tenth_more_of_one_function_is_named_alone_when_runs_are_long(void **state)
{
	enum { PAIRS = 100 };
	static const struct {
		enum sim_tier tier;
		uint32_t runs;
		double amount, unlike;
		enum diff_scale scale;
	} cases[] = {
		{ SIM_ON_CPU, 1, 200000, 0, DIFF_ABSOLUTE },
		{ SIM_SAMPLED, 1, 100000, 0, DIFF_ABSOLUTE },
		{ SIM_WAITS, 1, 200000, 0, DIFF_ABSOLUTE },
		{ SIM_BURST, 1, 900000, 0, DIFF_ABSOLUTE },
		{ SIM_COUNTED, 8, 100000, 0.01, DIFF_ABSOLUTE },
		{ SIM_ON_CPU, 3, 100000, 0, DIFF_ABSOLUTE },
		{ SIM_SAMPLED, 3, 40000, 0, DIFF_ABSOLUTE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct named n = name_changes(cases[i].tier, PAIRS, cases[i].runs, cases[i].amount,
					      1.1, cases[i].unlike, cases[i].scale);

		print_message("%s: %u of %u pairs name it, %u another\n", sim_names[cases[i].tier],
			      n.with_right, n.pairs, n.with_wrong);
		if (n.with_right < 0.95 * PAIRS ||
		    n.with_wrong > PAIRS * 0.01 + 4 * sqrt(PAIRS * 0.01 * 0.99))
			fail_msg("%s", sim_names[cases[i].tier]);
	}
}

static void put(struct profile *p, const char *name, int64_t value, const struct value_error *error)
{
	struct line line = { .function = dict_string(d, name) };
	stack_id s = dict_stack_push(d, (stack_id){ 0 },
				     dict_location_lines(d, (module_id){ 0 }, 0, &line, 1));

	add(p, name, 1, value);
	assert_int_equal(profile_add_error(p, s, (labels_id){ 0 }, 1, error), 0);
}

/* Sampled at 4 KiB and at 512 KiB: of what is rare the latter may have nothing, of what is not it has. */
static void nothing_of_what_is_rare_is_no_change(void **state)
{
	struct profile *a = profile_new(d, heap, 2), *b = profile_new(d, heap, 2);
	struct diff_opts o = { .before = a, .after = b, .before_type = 1, .after_type = 1 };
	struct value_error fine = { .samples = 200, .v = 800e3 * 4096, .vc = 800e3 * 4096 * 4096 };
	struct value_error coarse = { .samples = 40,
				      .v = 20e6 * 524288,
				      .vc = 20e6 * 524288 * 524288 };
	struct diff diff;

	put(a, "rare", 800000, &fine);
	put(a, "often", 20000000, &fine);
	put(a, "both", 20000000, &fine);
	put(b, "both", 20000000, &coarse);
	assert_int_equal(diff_make(&o, &diff), 0);
	assert_false(row(&diff, "rare")->changed);
	assert_true(row(&diff, "often")->changed);
	assert_false(row(&diff, "both")->changed);
	/* One sample of the coarse sampler at least is what may be missing. */
	assert_true(row(&diff, "rare")->self_noise > 1.9 * 524288);
	diff_fini(&diff);
	profile_free(a);
	profile_free(b);
}

/* Large blocks are sampled for certain: a difference is one although it has no variance. */
static void blocks_that_are_sampled_for_certain_are_compared_as_counts(void **state)
{
	struct profile *a = profile_new(d, heap, 2), *b = profile_new(d, heap, 2);
	struct diff_opts o = { .before = a, .after = b, .before_type = 1, .after_type = 1 };
	struct value_error certain = { .samples = 1 };
	struct value_error usual = { .samples = 40,
				     .v = 20e6 * 524288,
				     .vc = 20e6 * 524288 * 524288 };
	struct diff diff;

	put(a, "small", 20000000, &usual);
	put(b, "small", 20000000, &usual);
	put(a, "grown", 50 << 20, &certain);
	put(b, "grown", 60 << 20, &certain);
	put(b, "new", 60 << 20, &certain);
	assert_int_equal(diff_make(&o, &diff), 0);
	assert_false(row(&diff, "small")->changed);
	assert_true(row(&diff, "grown")->changed);
	assert_true(row(&diff, "new")->changed);
	diff_fini(&diff);
	profile_free(a);
	profile_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define FACT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		FACT(a_sample_of_n_varies_by_the_root_of_n),
		FACT(a_heap_varies_by_what_was_not_sampled),
		FACT(paths_of_both_are_there_and_differences_reach_the_parents),
		FACT(a_machine_that_is_dearer_changes_no_function),
		FACT(one_change_among_many_is_named_alone_whatever_is_compared),
		FACT(seconds_and_totals_scale_what_was_before),
		FACT(bytes_that_grew_with_all_others_have_changed_all_the_same),
		FACT(what_is_counted_exactly_has_no_noise),
		FACT(what_may_have_been_between_bursts_is_not_called_added),
		FACT(stacks_are_distinguished_where_functions_are_not),
		FACT(of_two_runs_of_one_program_nothing_is_named),
		FACT(memory_is_charged_to_who_asked_for_it),
		FACT(waits_are_charged_to_who_waits_and_tested_against_chance),
		cmocka_unit_test(growth_is_known_to_its_sampling_period),
		FACT(nothing_of_what_is_rare_is_no_change),
		FACT(blocks_that_are_sampled_for_certain_are_compared_as_counts),
		FACT(of_equal_pairs_of_each_tier_one_in_100_names_anything),
		FACT(of_equal_pairs_of_several_runs_one_in_100_names_anything),
		FACT(a_tenth_more_of_one_function_is_named_alone_when_runs_are_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
