#include "analyse/diff.h"

#include "analyse/beta.h"
#include "analyse/functions.h"
#include "analyse/sites.h"

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
};

/* --- variances --- */

/* "alloc_space" → "alloc_objects" and back; -1 where it is neither. */
static int find_pair(const struct profile *p, uint32_t type, bool *ret_is_bytes)
{
	static const char *const pairs[][2] = {
		{ "alloc_objects/count", "alloc_space/bytes" },
		{ "inuse_objects/count", "inuse_space/bytes" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		int objects = profile_find_type(p, pairs[i][0]);
		int space = profile_find_type(p, pairs[i][1]);

		if (objects < 0 || space < 0)
			continue;
		*ret_is_bytes = (uint32_t)space == type;
		if (*ret_is_bytes)
			return objects;
		if ((uint32_t)objects == type)
			return space;
	}
	return -1;
}

/* The count beside "blocked/nanoseconds", -1 where `type` is no time of waits. */
static int find_waits(const struct profile *p, uint32_t type)
{
	static const char *const waits[][2] = {
		{ "blocked/nanoseconds", "blocked/count" },
		{ "runnable/nanoseconds", "runnable/count" },
	};

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (profile_find_type(p, waits[i][0]) == (int)type)
			return profile_find_type(p, waits[i][1]);
	return -1;
}

double sample_variance(const struct profile *p, const struct profile_sample *s, uint32_t type)
{
	int samples = profile_find_type(p, "samples/count"), pair;
	double value = (double)s->values[type], objects, bytes, chance, mean;
	bool is_bytes;

	if (samples >= 0)
		return s->values[samples] > 0 ? value * value / (double)s->values[samples] : 0;
	/* Each wait is measured, but how many there are in a run, and how long, is chance. */
	if (find_waits(p, type) >= 0)
		return value * value / fmax(1, (double)s->values[find_waits(p, type)]);
	if (profile_get_meta(p)->period <= 1)
		return 0;
	pair = find_pair(p, type, &is_bytes);
	if (pair < 0) /* growth: each sample represents one period */
		return strcmp(profile_type(p, type)->unit, profile_get_meta(p)->period_type.unit) ==
				       0
			       ? fabs(value) * (double)profile_get_meta(p)->period
			       : 0;
	bytes = is_bytes ? value : (double)s->values[pair];
	objects = is_bytes ? (double)s->values[pair] : value;
	if (bytes <= 0 || objects <= 0)
		return 0;
	mean = bytes / objects;
	chance = -expm1(-mean / (double)profile_get_meta(p)->period);
	return objects * (1 - chance) / chance * (is_bytes ? mean * mean : 1);
}

double binomial_tail(double n, double k, double p)
{
	if (k <= 0)
		return 1;
	return k > n ? 0 : beta_inc(k, n - k + 1, p);
}

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

struct work {
	const struct diff_opts *opts;
	struct diff *diff;
	struct frame_sides *sides; /* of each row, not scaled */
};

static void put_row(struct work *w, const char *name, const char *module, enum frame_kind kind,
		    uint32_t node, const struct frame_sides *s)
{
	struct diff *d = w->diff;
	double scale[2] = { d->scale, 1 };
	struct diff_row row = { name, module, kind, node, .p = 1 };
	double noise[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		row.self[i] = (double)s->self[i] * scale[i];
		row.total[i] = (double)s->total[i] * scale[i];
		noise[0] += s->self_variance[i] * scale[i] * scale[i];
		noise[1] += s->total_variance[i] * scale[i] * scale[i];
	}
	row.self_noise = Z95 * sqrt(noise[0]);
	row.total_noise = Z95 * sqrt(noise[1]);
	w->sides[d->n] = *s;
	d->rows[d->n++] = row;
}

static int make_rows(struct work *w)
{
	const struct frame_tree *tree = w->diff->tree;
	_cleanup_(functions_fini) struct functions f = { 0 };
	uint32_t n = tree->n_nodes;

	if (w->opts->by == DIFF_BY_FUNCTION) {
		if (functions_make(tree, &f) < 0)
			return -ENOMEM;
		n = f.n;
	}
	w->diff->rows = calloc(n + 1ul, sizeof(*w->diff->rows));
	w->sides = calloc(n + 1ul, sizeof(*w->sides));
	if (!w->diff->rows || !w->sides)
		return -ENOMEM;
	for (uint32_t i = 0; i < f.n; i++)
		put_row(w, f.rows[i].name, f.rows[i].module, f.rows[i].kind, 0, &f.rows[i].sides);
	for (uint32_t i = 1; w->opts->by == DIFF_BY_STACK && i < n; i++)
		if (tree->nodes[i].self)
			put_row(w, tree->nodes[i].name, tree->nodes[i].module, tree->nodes[i].kind,
				i, &tree->sides[i]);
	return 0;
}

/* Sample counts of each side, all with the side's mean weight. */
struct counts {
	double a, b;         /* of the row    */
	double all_a, all_b; /* of all        */
};

static bool count_samples(const struct work *w, uint32_t i, double spread, struct counts *c)
{
	const struct frame_sides *s = &w->sides[i], *all = &w->diff->tree->sides[0];
	double value = (double)s->self[0] + (double)s->self[1], weight;

	if (value <= 0)
		return false;
	weight = (s->self_variance[0] + s->self_variance[1]) / value * spread;
	if (weight <= 0)
		return false;
	c->a = (double)s->self[0] / weight;
	c->b = (double)s->self[1] / weight;
	c->all_a = (double)all->total[0] / weight;
	c->all_b = (double)all->total[1] / weight;
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

/* The p-value of one row, and whether its differences agree in direction. */
static void test_row(struct work *w, uint32_t i)
{
	struct diff_row *row = &w->diff->rows[i];
	double exposure = w->diff->scale / (1 + w->diff->scale);
	double shares, by_share, by_value;
	struct counts c;

	if (!count_samples(w, i, w->diff->spread, &c))
		return;
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
	/* Bytes are exact; time also depends on the machine's load. */
	if (profile_find_type(w->opts->after, "samples/count") < 0)
		return;
	row->p = fmax(by_share, by_value);
	if ((c.b > (c.a + c.b) * shares) != (c.b > (c.a + c.b) * exposure))
		row->p = 1;
	row->as_the_rest = by_value < FALSE_DISCOVERY / w->diff->n;
}

/* Benjamini and Hochberg: the largest p below its rank's share of the rate, and all below it. */
static int mark_changed(struct work *w)
{
	struct diff *d = w->diff;
	_cleanup_(freep) double *p = calloc(d->n + 1ul, sizeof(*p));
	double largest = fmax(d->total[0], d->total[1]), limit = -1;
	uint32_t n = 0;

	if (!p)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->n; i++)
		p[n++] = d->rows[i].p;
	qsort(p, n, sizeof(*p), compare_doubles);
	for (uint32_t i = 0; i < n && !d->exact; i++)
		if (p[i] <= FALSE_DISCOVERY * (i + 1) / n)
			limit = p[i];
	for (uint32_t i = 0; i < d->n; i++) {
		struct diff_row *row = &d->rows[i];

		row->changed =
			fabs(row->self[1] - row->self[0]) >= w->opts->least_share * largest &&
			row->self[1] != row->self[0] && (d->exact || row->p <= limit);
		row->as_the_rest &= !row->changed;
		d->n_changed += row->changed;
		row->self_noise *= sqrt(d->spread);
		row->total_noise *= sqrt(d->spread);
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

static double positive_total(const struct profile *p, uint32_t type)
{
	double sum = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++)
		sum += fmax(0, (double)profile_sample(p, i).values[type]);
	return sum;
}

static int find_scale(const struct diff_opts *opts, struct diff *diff)
{
	int64_t before_ns = profile_get_meta(opts->before)->duration_ns;
	int64_t after_ns = profile_get_meta(opts->after)->duration_ns;

	diff->raw_total[0] = positive_total(opts->before, opts->before_type);
	diff->raw_total[1] = positive_total(opts->after, opts->after_type);
	diff->scale = 1;
	if (opts->scale == DIFF_TOTALS) {
		if (diff->raw_total[0] <= 0 || diff->raw_total[1] <= 0)
			return -EDOM;
		diff->scale = diff->raw_total[1] / diff->raw_total[0];
	} else if (opts->scale == DIFF_SECONDS) {
		if (before_ns <= 0 || after_ns <= 0)
			return -EDOM;
		diff->scale = (double)after_ns / (double)before_ns;
	}
	diff->total[0] = diff->raw_total[0] * diff->scale;
	diff->total[1] = diff->raw_total[1];
	return 0;
}

static int work(struct work *w)
{
	struct diff *d = w->diff;
	const struct frame_sides *all;
	int r;

	r = find_scale(w->opts, d);
	if (r < 0)
		return r;
	r = frame_tree_build(w->opts->after,
			     &(struct frame_tree_opts){
				     .type = w->opts->after_type,
				     .before = w->opts->before,
				     .before_type = w->opts->before_type,
				     .scale = { d->scale, 1 },
				     .variance = sample_variance,
				     .root_comm = w->opts->root_comm,
			     },
			     &d->tree);
	/* malloc, and the kernel's functions that handle a page fault, are shared by all callers:
	 * what changed is the caller. */
	if (r == 0 && w->opts->by == DIFF_BY_FUNCTION)
		sites_charge(d->tree, sites_kind(w->opts->after, w->opts->after_type));
	if (r == 0)
		r = make_rows(w);
	if (r < 0)
		return r;
	all = &d->tree->sides[0];
	d->exact = all->total_variance[0] + all->total_variance[1] <= 0;
	if (!d->exact && find_spread(w) < 0)
		return -ENOMEM;
	d->total_noise =
		Z95 * sqrt((all->total_variance[0] * d->scale * d->scale + all->total_variance[1]) *
			   d->spread);
	for (uint32_t i = 0; i < d->n; i++)
		test_row(w, i);
	if (mark_changed(w) < 0)
		return -ENOMEM;
	if (d->n)
		qsort(d->rows, d->n, sizeof(*d->rows), compare_rows);
	return 0;
}

int diff_make(const struct diff_opts *opts, struct diff *diff)
{
	struct work w = { opts, diff, NULL };
	int r;

	*diff = (struct diff){ .spread = 1, .scale = 1 };
	r = work(&w);
	free(w.sides);
	return r;
}

void diff_fini(struct diff *diff)
{
	frame_tree_free(diff->tree);
	free(diff->rows);
	*diff = (struct diff){ 0 };
}
