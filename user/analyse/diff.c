#include "analyse/diff.h"

#include "analyse/beta.h"
#include "analyse/functions.h"
#include "analyse/gamma.h"
#include "analyse/row_sums.h"
#include "analyse/series.h"
#include "analyse/sites.h"
#include "model/about.h"
#include "model/merge.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define Z95             1.959963984540054
#define FALSE_DISCOVERY 0.01
#define QUARTILE_CHI2   0.1015310440101557 /* of z², z standard normal: a quarter is below */
#define SPREAD_MAX      10.0

enum {
	NORMAL_FROM = 200,     /* samples of both together */
	SPREAD_SAMPLES = 10,   /* on either side, of a function that counts for the spread … */
	SPREAD_FUNCTIONS = 16, /* … and the least number of them */
	FEW_SAMPLES = 10,      /* of a row of a side */
	USUAL_FUNCTIONS = 8,   /* the least number that says how much runs vary usually … */
	USUAL_MAX = 30,        /* … and no more degrees of freedom than these */
};

/*
 * Two-sided test: are a and b counts of one rate, with `p` of the exposure being b's? `share`: the
 * row's part of all samples, which bounds its counts.
 */
static double count_test(double a, double b, double p, double share)
{
	double n = a + b, high, low;

	if (n >= NORMAL_FROM) {
		double z = (fabs(b - n * p) - 0.5) / sqrt(n * p * (1 - p) * (1 - share));

		return z > 0 ? erfc(z / sqrt(2)) : 1;
	}
	high = binomial_tail(n, b, p);
	low = binomial_tail(n, a, 1 - p);
	return fmin(1, 2 * fmin(high, low));
}

/* --- rows --- */

enum { SELF, TOTAL };

/* A row, or all of a profile, in the runs of one side: scaled values. */
struct side {
	double mean[2];     /* self and total, of runs                 */
	double squares[2];  /* of deviations from it                   */
	double variance[2]; /* of the estimates, its mean over runs    */
	double samples[2];  /* that they rest on, of all runs          */
	double raw;         /* self of a single run, not scaled        */
	double raw_variance;
};

struct work {
	const struct diff_opts *opts;
	struct diff *diff;
	struct row_table table;
	uint32_t *row_of;      /* of stacks */
	struct side *sides[2]; /* of each row; behind the last that of all */
	uint32_t groups[2];    /* of bursts: the fewest of a run */
	double mean_scale[2];
	double weight[2]; /* of one more sample of the side's sampler; 0: its values are measured */
	bool on_cpu;
	/* Of estimates: by how much more than their own variance runs usually vary, and how sure that is. */
	double usual, usual_freedom;
};

static void put_row(struct work *w, const char *name, const char *module, enum frame_kind kind,
		    uint32_t node)
{
	w->diff->rows[w->diff->n++] = (struct diff_row){ name, module, kind, node, .p = 1 };
}

static int make_rows(struct work *w, struct functions *f)
{
	struct frame_tree *tree = w->diff->tree;
	uint32_t n = tree->n_nodes;

	if (w->opts->by == DIFF_BY_FUNCTION) {
		/* malloc, and the kernel's functions that handle a page fault, are shared by all
		 * callers: what changed is the caller. */
		if (sites_charge(tree, sites_kind(w->opts->after, w->opts->after_type)) < 0 ||
		    functions_make(tree, f) < 0)
			return -ENOMEM;
		n = f->n;
	}
	w->diff->rows = calloc(n + 1ul, sizeof(*w->diff->rows));
	w->row_of = malloc(tree->n_nodes * sizeof(*w->row_of));
	if (!w->diff->rows || !w->row_of)
		return -ENOMEM;
	memset(w->row_of, 0xff, tree->n_nodes * sizeof(*w->row_of));
	for (uint32_t i = 0; i < f->n; i++)
		put_row(w, f->rows[i].name, f->rows[i].module, f->rows[i].kind, 0);
	for (uint32_t i = 1; w->opts->by == DIFF_BY_STACK && i < n; i++) {
		if (!tree->sides[i].self[0] && !tree->sides[i].self[1])
			continue;
		w->row_of[i] = w->diff->n;
		put_row(w, tree->nodes[i].name, tree->nodes[i].module, tree->nodes[i].kind, i);
	}
	w->table = (struct row_table){ tree, f->n ? f->row_of : w->row_of, w->diff->n };
	for (int k = 0; k < 2; k++) {
		w->sides[k] = calloc(w->diff->n + 1ul, sizeof(**w->sides));
		if (!w->sides[k])
			return -ENOMEM;
	}
	return 0;
}

/* --- runs --- */

static uint32_t n_runs(const struct diff_opts *o, int k)
{
	return o->runs[k] ? o->n_runs[k] : 1;
}

static const struct profile *side_sum(const struct diff_opts *o, int k)
{
	return k ? o->after : o->before;
}

static const struct profile *side_run(const struct diff_opts *o, int k, uint32_t i)
{
	return o->runs[k] ? o->runs[k][i] : side_sum(o, k);
}

/* Of an empty run, which counts nothing: -1. */
static int run_type(const struct diff_opts *o, int k, uint32_t i)
{
	uint32_t type = k ? o->after_type : o->before_type;

	return profile_same_type(side_run(o, k, i), profile_type(side_sum(o, k), type));
}

static double positive_total(const struct profile *p, int type)
{
	double sum = 0;

	for (uint32_t i = 0; type >= 0 && i < profile_n_samples(p); i++)
		sum += fmax(0, (double)profile_sample(p, i).values[type]);
	return sum;
}

/* What a run is scaled by: to the mean of those after. 0: it cannot be. */
static double run_scale(const struct diff_opts *o, int k, uint32_t i, double want)
{
	const struct profile *p = side_run(o, k, i);
	double has = o->scale == DIFF_TOTALS ? positive_total(p, run_type(o, k, i))
					     : (double)profile_get_meta(p)->duration_ns;

	if (o->scale == DIFF_ABSOLUTE)
		return 1;
	return has > 0 ? want / has : 0;
}

/* The total or the duration that all are scaled to. */
static double wanted_scale(const struct diff_opts *o)
{
	double sum = 0;

	for (uint32_t i = 0; i < n_runs(o, 1); i++)
		sum += o->scale == DIFF_TOTALS
			       ? positive_total(side_run(o, 1, i), run_type(o, 1, i))
			       : (double)profile_get_meta(side_run(o, 1, i))->duration_ns;
	return sum / n_runs(o, 1);
}

double diff_run_scale(const struct diff_opts *opts, int side, uint32_t i)
{
	return run_scale(opts, side, i, wanted_scale(opts));
}

/* What is left of the error of a row when all of its profile is scaled to a given total. */
static double share_variance(const struct row_sum *row, const struct row_sum *all)
{
	double share = all->value > 0 ? row->value / all->value : 0;
	struct value_error rest = row->error;

	rest.v = fmax(0, rest.v * (1 - 2 * share) + share * share * all->error.v);
	rest.below = fabs(rest.below - share * all->error.below);
	rest.above = fabs(rest.above - share * all->error.above);
	for (int g = 0; g < ERROR_GROUPS; g++)
		rest.group[g] -= share * all->error.group[g];
	return value_error_variance(&rest);
}

/* The `i`th run of this side, Welford's way. */
static void add_run(struct side *s, const struct row_sum *sums[2], const struct row_sum *all,
		    uint32_t i, double scale, bool shares)
{
	for (int t = SELF; t <= TOTAL; t++) {
		double v = sums[t]->value * scale, off = v - s->mean[t];
		double variance = shares ? share_variance(sums[t], all)
					 : value_error_variance(&sums[t]->error);

		s->mean[t] += off / (i + 1);
		s->squares[t] += off * (v - s->mean[t]);
		s->variance[t] += (variance * scale * scale - s->variance[t]) / (i + 1);
		s->samples[t] += sums[t]->error.samples;
	}
	s->raw = sums[SELF]->value;
	s->raw_variance = value_error_variance(&sums[SELF]->error);
}

/* Of samples, what one more of them would add; of bursts, what one more call would. */
static double sample_weight(const struct row_sum *all)
{
	const struct value_error *e = &all->error;
	double each = e->samples > 0 ? all->value / e->samples : 0;

	if (value_error_has_groups(e))
		return each;
	return e->v > 0 ? fabs(e->vc / e->v) : 0;
}

static int take_run(struct work *w, int k, uint32_t i, double scale)
{
	const struct diff_opts *o = w->opts;
	const struct profile *p = side_run(o, k, i);
	int type = run_type(o, k, i);
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	_cleanup_(freep) struct row_sums *rows = calloc(w->diff->n + 1ul, sizeof(*rows));
	_cleanup_(freep) uint32_t *map = NULL;
	struct profile_sums of = { 0 };
	bool several = n_runs(o, 0) + n_runs(o, 1) > 2;
	int r = rows ? 0 : -ENOMEM;

	if (r == 0 && type >= 0) {
		r = frame_tree_build(p,
				     &(struct frame_tree_opts){
					     .type = (uint32_t)type,
					     .root_comm = o->root_comm,
					     .keep_samples = true,
				     },
				     &tree);
		if (r == 0 && !(map = calloc(tree->n_nodes, sizeof(*map))))
			r = -ENOMEM;
		if (r < 0)
			return r;
		frame_tree_map(tree, w->diff->tree, map);
		/* How many waits there are in a run, and how long, several runs show themselves. */
		r = row_sums_add(p, (uint32_t)type, several ? ERROR_OF_RUN : ERROR_OF_LAW, tree,
				 map, &w->table, rows, &of);
	}
	if (r < 0)
		return r;
	/* A wait weighs what it is long: that of another function says nothing. */
	if (sites_kind(side_sum(o, k), k ? o->after_type : o->before_type) != SITE_WAIT)
		w->weight[k] = fmax(w->weight[k], sample_weight(&of.all));
	rows[w->diff->n] = (struct row_sums){ of.all, of.all };
	w->diff->estimated |= of.estimated || profile_about(p, ABOUT_ESTIMATE, 0);
	w->on_cpu |= of.on_cpu;
	if (of.groups && (!w->groups[k] || of.groups < w->groups[k]))
		w->groups[k] = of.groups;
	for (uint32_t n = 0; n <= w->diff->n; n++)
		add_run(&w->sides[k][n],
			(const struct row_sum *[]){ &rows[n].self, &rows[n].total }, &of.all, i,
			scale, o->scale == DIFF_TOTALS && (several || of.groups) && n < w->diff->n);
	w->diff->raw_total[k] += of.all.value / n_runs(o, k);
	return 0;
}

static int find_scales(struct work *w)
{
	const struct diff_opts *o = w->opts;
	double want = wanted_scale(o);

	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i < n_runs(o, k); i++) {
			double scale = run_scale(o, k, i, want);

			if (scale <= 0)
				return -EDOM;
			w->mean_scale[k] += scale / n_runs(o, k);
		}
	w->diff->scale = w->mean_scale[0];
	/* Sums of unequal numbers of runs are drawn as if they were of as many. */
	w->diff->tree_scale = w->mean_scale[0] * n_runs(o, 1) / n_runs(o, 0);
	return 0;
}

static int take_runs(struct work *w)
{
	const struct diff_opts *o = w->opts;
	double want = wanted_scale(o);
	int r = 0;

	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i < n_runs(o, k) && r == 0; i++)
			r = take_run(w, k, i, run_scale(o, k, i, want));
	return r;
}

/* --- tests --- */

/* Squares of deviations between the runs of both sides, over the variance of the estimates. */
static double run_ratio(const struct work *w, uint32_t row, double freedom)
{
	double squares = 0, variance = 0;

	for (int k = 0; k < 2; k++) {
		const struct side *s = &w->sides[k][row];

		if (w->diff->n_runs[k] < 2)
			continue;
		if (s->variance[SELF] <= 0 ||
		    s->mean[SELF] * s->mean[SELF] < SPREAD_SAMPLES * s->variance[SELF])
			return 0;
		squares += s->squares[SELF];
		variance += s->variance[SELF] * (w->diff->n_runs[k] - 1) / freedom;
	}
	return variance > 0 ? squares / freedom / variance : 0;
}

/*
 * How much runs vary is hardly known of one function in three runs, but quite well of all functions: their
 * variances, as multiples of those of the estimates, are taken to be drawn from a scaled inverse chi-squared
 * distribution, whose parameters follow from the mean and the variance of their logarithms (Smyth, "Linear
 * models and empirical Bayes methods", 2004, section 6.2).
 */
static void find_usual(struct work *w)
{
	double freedom = w->diff->n_runs[0] + w->diff->n_runs[1] - 2.0, sum = 0, squares = 0, mean,
	       rest;
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->diff->n; i++) {
		double ratio = run_ratio(w, i, freedom), e;

		if (ratio <= 0)
			continue;
		e = log(ratio) - digamma(freedom / 2) + log(freedom / 2);
		sum += e;
		squares += e * e;
		n++;
	}
	if (n < USUAL_FUNCTIONS)
		return;
	mean = sum / n;
	rest = (squares - sum * mean) / (n - 1) - trigamma(freedom / 2);
	w->usual_freedom = USUAL_MAX;
	if (rest > 0)
		w->usual_freedom = fmin(USUAL_MAX, 2 * trigamma_inverse(rest));
	w->diff->moderated = true;
	w->usual = exp(mean + digamma(w->usual_freedom / 2) - log(w->usual_freedom / 2));
}

/* The variance of one of several runs of a side. */
static double run_variance(const struct work *w, const struct side *s, uint32_t n, int what,
			   double *ret_freedom)
{
	double d0 = s->variance[what] > 0 ? w->usual_freedom : 0;

	*ret_freedom = d0 + n - 1;
	return fmax(s->variance[what],
		    (d0 * w->usual * s->variance[what] + s->squares[what]) / *ret_freedom);
}

/* The variance of the mean of a side, and its degrees of freedom (INFINITY: it is known). */
static double mean_variance(const struct work *w, uint32_t row, int k, int what,
			    double *ret_freedom)
{
	const struct side *s = &w->sides[k][row], *other = &w->sides[!k][row];
	uint32_t n = w->diff->n_runs[k], n_other = w->diff->n_runs[!k];
	double variance = s->variance[what];

	*ret_freedom = w->groups[k] ? fmax(1, w->groups[k] - 1) : INFINITY;
	if (n > 1) {
		variance = run_variance(w, s, n, what, ret_freedom);
	} else if (n_other > 1) {
		double ratio = other->mean[what] > 0 ? s->mean[what] / other->mean[what] : 1;

		variance = fmax(variance,
				ratio * ratio * run_variance(w, other, n_other, what, ret_freedom));
	}
	return variance / n;
}

/*
 * A side with few samples of a row, or none, does not know its own variance: it is no less than that of one
 * sample, and, if nothing has changed, than that of the mean of both sides.
 */
static double least_variance(const struct work *w, uint32_t row, int k, int what, bool unchanged)
{
	const struct side *s = &w->sides[k][row];
	double weight = w->weight[k] * w->mean_scale[k];
	double mean = (w->sides[0][row].mean[what] + w->sides[1][row].mean[what]) / 2;

	if (s->samples[what] >= FEW_SAMPLES || mean <= 0)
		return 0;
	return weight * (unchanged ? mean : weight) / w->diff->n_runs[k];
}

/* Of the difference, by Welch and Satterthwaite. `unchanged`: as if there were none. */
static double difference_variance(const struct work *w, uint32_t row, int what, bool unchanged,
				  double *ret_freedom)
{
	double sum = 0, squares = 0;

	for (int k = 0; k < 2; k++) {
		double freedom, v = fmax(mean_variance(w, row, k, what, &freedom),
					 least_variance(w, row, k, what, unchanged));

		sum += v;
		squares += v * v / freedom;
	}
	*ret_freedom = squares > 0 ? sum * sum / squares : INFINITY;
	return sum;
}

static double difference(const struct work *w, uint32_t row, int what)
{
	return w->sides[1][row].mean[what] - w->sides[0][row].mean[what];
}

static bool is_normal(double freedom)
{
	return freedom > 1e6;
}

static double t_test(double z, double freedom)
{
	z = fabs(z);
	return is_normal(freedom) ? erfc(z / sqrt(2)) : 2 * student_t_tail(z, freedom);
}

static double noise_of(const struct work *w, uint32_t row, int what)
{
	double freedom, variance = difference_variance(w, row, what, false, &freedom);

	if (variance <= 0)
		return 0;
	return sqrt(variance) * (is_normal(freedom) ? Z95 : student_t_quantile(0.975, freedom));
}

/* Sample counts of each side, all with the side's mean weight. */
struct counts {
	double a, b;         /* of the row    */
	double all_a, all_b; /* of all        */
};

static bool count_samples(const struct work *w, uint32_t i, double spread, struct counts *c)
{
	const struct side *a = &w->sides[0][i], *b = &w->sides[1][i];
	bool certain = a->raw_variance + b->raw_variance <= 0;
	/* Of blocks that both are certain of there is nothing that a sampler has missed. */
	bool few = !certain || a->samples[SELF] <= 0 || b->samples[SELF] <= 0;
	double value = a->raw + b->raw, weight;

	if (value <= 0)
		return false;
	weight = (a->raw_variance + b->raw_variance) / value;
	for (int k = 0; k < 2 && few; k++)
		if (w->sides[k][i].samples[SELF] < FEW_SAMPLES)
			weight = fmax(weight, w->weight[k]);
	weight *= spread;
	if (weight <= 0)
		return false;
	c->a = a->raw / weight;
	c->b = b->raw / weight;
	c->all_a = w->sides[0][w->diff->n].raw / weight;
	c->all_b = w->sides[1][w->diff->n].raw / weight;
	return true;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts; `part` of the values are below what it returns. */
static double quantile(double *values, uint32_t n, double part)
{
	qsort(values, n, sizeof(*values), compare_doubles);
	return values[(uint32_t)((n - 1) * part)];
}

static bool has_say(const struct work *w, uint32_t i, struct counts *c)
{
	return count_samples(w, i, 1, c) && c->a >= SPREAD_SAMPLES && c->b >= SPREAD_SAMPLES;
}

/*
 * How much more the rows spread around the common change than chance explains. Around that, not
 * around the totals: one large change moves every share. By the quartile: it still describes the
 * others if half of the rows have changed.
 */
static int find_spread(struct work *w)
{
	_cleanup_(freep) double *values = calloc(w->diff->n + 1ul, sizeof(*values));
	struct counts c;
	uint32_t n = 0;
	double p, off, spread;

	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->diff->n; i++)
		if (has_say(w, i, &c))
			values[n++] = c.b / (c.a + c.b);
	if (n < SPREAD_FUNCTIONS)
		return 0;
	p = quantile(values, n, 0.5);
	n = 0;
	for (uint32_t i = 0; i < w->diff->n; i++) {
		if (!has_say(w, i, &c))
			continue;
		off = c.b - (c.a + c.b) * p;
		values[n++] = off * off / ((c.a + c.b) * p * (1 - p));
	}
	spread = quantile(values, n, 0.25) / QUARTILE_CHI2;
	w->diff->spread = fmin(fmax(1, spread), SPREAD_MAX);
	return 0;
}

static void test_counts(struct work *w, uint32_t i)
{
	struct diff_row *row = &w->diff->rows[i];
	double exposure = w->diff->scale / (1 + w->diff->scale);
	double shares, by_share, by_value;
	struct counts c;

	if (!count_samples(w, i, w->diff->spread, &c)) {
		if (w->sides[0][i].samples[SELF] > 0 && w->sides[1][i].samples[SELF] > 0) {
			w->diff->n_tested++;
			row->p = w->sides[0][i].mean[SELF] == w->sides[1][i].mean[SELF];
		}
		return;
	}
	w->diff->n_tested++;
	if (c.all_a <= 0 || c.all_b <= 0) {
		row->p = count_test(c.a, c.b, exposure, 0);
		return;
	}
	shares = c.all_b / (c.all_a + c.all_b);
	by_share = count_test(c.a, c.b, shares, (c.a + c.b) / (c.all_a + c.all_b));
	if (w->opts->scale == DIFF_TOTALS) {
		row->p = by_share;
		return;
	}
	row->p = by_value = count_test(c.a, c.b, exposure, 0);
	/* Time also depends on the machine's load. */
	if (!w->on_cpu)
		return;
	row->p = fmax(by_share, by_value);
	if ((c.b > (c.a + c.b) * shares) != (c.b > (c.a + c.b) * exposure))
		row->p = 1;
	row->as_the_rest = by_value < FALSE_DISCOVERY / w->diff->n;
}

/* Student's t, whether the variance is that between bursts or between runs. */
static void test_means(struct work *w, uint32_t i)
{
	double freedom,
		variance = difference_variance(w, i, SELF, true, &freedom) * w->diff->spread;
	double by = difference(w, i, SELF);

	if (w->sides[0][i].mean[SELF] <= 0 && w->sides[1][i].mean[SELF] <= 0)
		return;
	w->diff->n_tested++;
	if (variance > 0)
		w->diff->rows[i].p = t_test(by / sqrt(variance), freedom);
	else /* counted on one side, and in no burst on the other: it may have been between them */
		w->diff->rows[i].p = by == 0 || w->diff->noise == DIFF_BURSTS;
}

/* Benjamini and Hochberg: the largest p below its rank's share of the rate, and all below it. */
static int mark_changed(struct work *w)
{
	struct diff *d = w->diff;
	bool counted = d->noise == DIFF_COUNTED;
	_cleanup_(freep) double *p = calloc(d->n + 1ul, sizeof(*p));
	double largest = fmax(d->total[0], d->total[1]), limit = -1;
	uint32_t n = 0;

	if (!p)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->n; i++)
		p[n++] = d->rows[i].p;
	qsort(p, n, sizeof(*p), compare_doubles);
	for (uint32_t i = 0; i < d->n_tested && !counted; i++)
		if (p[i] <= FALSE_DISCOVERY * (i + 1) / d->n_tested)
			limit = p[i];
	for (uint32_t i = 0; i < d->n; i++) {
		struct diff_row *row = &d->rows[i];

		row->changed =
			fabs(row->self[1] - row->self[0]) >= w->opts->least_share * largest &&
			row->self[1] != row->self[0] && (counted || row->p <= limit);
		row->as_the_rest &= !row->changed;
		d->n_changed += row->changed;
	}
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	double dx = fabs(x->self[1] - x->self[0]), dy = fabs(y->self[1] - y->self[0]);

	if (x->changed != y->changed)
		return x->changed ? -1 : 1;
	if (dx != dy)
		return dx > dy ? -1 : 1;
	return strcmp(x->name, y->name) ?: strcmp(x->module, y->module) ?:
	       (x->node > y->node) - (x->node < y->node);
}

/* --- all of it --- */

static void set_rows(struct work *w)
{
	struct diff *d = w->diff;

	for (uint32_t i = 0; i <= d->n; i++) {
		struct diff_row all = { 0 }, *row = i < d->n ? &d->rows[i] : &all;

		for (int k = 0; k < 2; k++) {
			row->self[k] = w->sides[k][i].mean[SELF];
			row->total[k] = w->sides[k][i].mean[TOTAL];
		}
		row->self_noise = noise_of(w, i, SELF) * sqrt(d->spread);
		row->total_noise = noise_of(w, i, TOTAL) * sqrt(d->spread);
		if (i < d->n)
			continue;
		memcpy(d->total, all.total, sizeof(d->total));
		d->total_noise = all.total_noise;
	}
}

static int work(struct work *w, struct functions *f)
{
	struct diff *d = w->diff;
	int r = find_scales(w);

	if (r < 0)
		return r;
	r = frame_tree_build(w->opts->after,
			     &(struct frame_tree_opts){
				     .type = w->opts->after_type,
				     .before = w->opts->before,
				     .before_type = w->opts->before_type,
				     .scale = { d->tree_scale, 1 },
				     .root_comm = w->opts->root_comm,
			     },
			     &d->tree);
	if (r == 0)
		r = make_rows(w, f);
	if (r == 0)
		r = take_runs(w);
	if (r < 0)
		return r;
	d->noise = d->n_runs[0] + d->n_runs[1] > 2 ? DIFF_RUNS
		   : w->groups[0] || w->groups[1]  ? DIFF_BURSTS
		   : d->estimated                  ? DIFF_SAMPLES
						   : DIFF_COUNTED;
	if ((d->noise == DIFF_SAMPLES || d->noise == DIFF_BURSTS) && find_spread(w) < 0)
		return -ENOMEM;
	if (d->noise == DIFF_RUNS && d->estimated)
		find_usual(w);
	set_rows(w);
	for (uint32_t i = 0; i < d->n && d->noise != DIFF_COUNTED; i++)
		(d->noise == DIFF_SAMPLES ? test_counts : test_means)(w, i);
	if (mark_changed(w) < 0)
		return -ENOMEM;
	if (d->n)
		qsort(d->rows, d->n, sizeof(*d->rows), compare_rows);
	return 0;
}

int diff_make(const struct diff_opts *opts, struct diff *diff)
{
	_cleanup_(functions_fini) struct functions f = { 0 };
	struct work w = { .opts = opts, .diff = diff };
	int r;

	*diff = (struct diff){ .spread = 1,
			       .scale = 1,
			       .tree_scale = 1,
			       .n_runs = { n_runs(opts, 0), n_runs(opts, 1) } };
	r = work(&w, &f);
	free(w.row_of);
	free(w.sides[0]);
	free(w.sides[1]);
	return r;
}

void diff_fini(struct diff *diff)
{
	frame_tree_free(diff->tree);
	free(diff->rows);
	*diff = (struct diff){ 0 };
}
