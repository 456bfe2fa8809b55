#include "render/html/page_details.h"

#include "analyse/series_mates.h"
#include "analyse/site_stats.h"
#include "analyse/sites.h"
#include "base/hash.h"
#include "model/alloc_site.h"
#include "render/html/packed.h"
#include "render/html/page_data.h"
#include "render/html/page_names.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* What came of a stack's blocks, in all processes. */
struct stack_fates {
	uint32_t stack;
	uint32_t seen; /* the last site that it was added to, + 1 */
	double objects, temporary, freed, life_ns, live_bytes;
	UT_hash_handle hh;
};

struct site {
	uint32_t node;
	struct stack_fates fates;
	struct site_stats stats;
	struct interval interval; /* of the integral; equal ends: it was counted */
	double variance, weight;  /* of the integral; NAN: it was counted        */
	uint32_t first_row, n_rows;
	struct series_mate mate;
};

static int fates_make(const struct profile *sites, struct stack_fates **ret_fates)
{
	for (uint32_t i = 0; sites && i < profile_n_samples(sites); i++) {
		struct profile_sample s = profile_sample(sites, i);
		struct stack_fates *f = hash_get(*ret_fates, stack, &s.stack.ix);

		if (!f)
			return -ENOMEM;
		f->objects += (double)s.values[SITE_OBJECTS];
		f->temporary += (double)s.values[SITE_TEMPORARY];
		f->freed += (double)s.values[SITE_FREED];
		f->life_ns += (double)s.values[SITE_LIFE_NS];
		f->live_bytes += (double)s.values[SITE_LIVE_BYTES];
	}
	return 0;
}

static void fates_free(struct stack_fates **fates)
{
	hash_free(*fates);
}

/* Once for each stack of a site, of which threads have samples of their own. */
static void add_fates(struct stack_fates *all, stack_id stack, uint32_t site,
		      struct stack_fates *to)
{
	struct stack_fates *f;

	HASH_FIND(hh, all, &stack.ix, sizeof(stack.ix), f);
	if (!f || f->seen == site + 1)
		return;
	f->seen = site + 1;
	to->objects += f->objects;
	to->temporary += f->temporary;
	to->freed += f->freed;
	to->life_ns += f->life_ns;
	to->live_bytes += f->live_bytes;
}

/* Values a second, a point a bin, at its middle. */
struct bins {
	struct point *points;
	double *span_s;
	uint32_t n;
};

static int bins_make(const struct page_times *at, double seconds, struct bins *b)
{
	double width = (double)at->bin_ns / 1e9;
	uint64_t own = sample_times_n_bins(at->times) * sample_times_bin_ns(at->times);

	b->n = (uint32_t)((own + at->bin_ns - 1) / at->bin_ns);
	if (seconds > b->n * width)
		b->n = (uint32_t)fmin(ceil(seconds / width), 1 << 20);
	b->points = calloc(b->n, sizeof(*b->points));
	b->span_s = calloc(b->n, sizeof(*b->span_s));
	if (!b->points || !b->span_s)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n; i++) {
		double from = i * width, to = fmin((i + 1) * width, seconds);

		/* A run that says it ended before is not believed. */
		b->span_s[i] = to - from > width / 100 ? to - from : width;
		b->points[i].t = from + b->span_s[i] / 2;
	}
	return 0;
}

static void bins_fini(struct bins *b)
{
	free(b->points);
	free(b->span_s);
}

/* Values a second of samples rows[0 … n - 1]. */
static void fill(const struct page_times *at, const struct page_row *rows, uint32_t n,
		 struct bins *b)
{
	uint64_t own_ns = sample_times_bin_ns(at->times);

	for (uint32_t i = 0; i < b->n; i++)
		b->points[i].y = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct sample_time_reader read = sample_times_read(at->times, rows[i].sample);
		struct sample_time entry;

		while (sample_times_next(&read, &entry))
			if (entry.bin * own_ns / at->bin_ns < b->n)
				b->points[entry.bin * own_ns / at->bin_ns].y +=
					(double)entry.values[0];
	}
	for (uint32_t i = 0; i < b->n; i++)
		b->points[i].y /= b->span_s[i];
}

/* One site: its samples are rows[0 … n - 1]. */
static void look(const struct profile *p, const struct page_times *at, const struct page_row *rows,
		 uint32_t n, const struct profile_sums *all, struct bins *b, struct site *ret_site)
{
	uint32_t type = sample_times_type(at->times, 0);
	struct row_sum sum = { 0 };
	double variance;

	fill(at, rows, n, b);
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = profile_sample(p, rows[i].sample);
		struct value_error error;

		row_sum_add(&sum, (double)s.values[type],
			    sample_error(p, &s, type, ERROR_OF_RUN, &error) ? &error : NULL);
	}
	ret_site->node = rows->site;
	site_stats(b->points, b->span_s, b->n, &ret_site->stats);
	ret_site->interval = row_interval(&sum, all);
	variance = value_error_variance(&sum.error);
	ret_site->variance = variance > 0 ? variance : NAN;
	ret_site->weight = sum.error.v > 0 ? sum.error.vc / sum.error.v : NAN;
}

static int by_integral(const void *a, const void *b)
{
	const struct site *x = a, *y = b;
	double i = x->stats.integral, j = y->stats.integral;

	return i != j ? (i < j ? 1 : -1) : (x->node > y->node) - (x->node < y->node);
}

/* A 32-bit float, little-endian; what is infinite or unknown is NaN. */
static void put_float(struct strbuf *out, double x)
{
	float f = isfinite(x) ? (float)x : NAN;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	strbuf_add(out, &bits, sizeof(bits));
}

static double column(const struct site *s, enum page_detail_column c)
{
	switch (c) {
	case PAGE_DETAIL_INTEGRAL:
		return s->stats.integral;
	case PAGE_DETAIL_LOW:
		return s->interval.low;
	case PAGE_DETAIL_HIGH:
		return s->interval.high;
	case PAGE_DETAIL_MEAN:
		return s->stats.mean;
	case PAGE_DETAIL_DEVIATION:
		return s->stats.deviation;
	case PAGE_DETAIL_INTERCEPT:
		return s->stats.intercept;
	case PAGE_DETAIL_SLOPE:
		return s->stats.slope;
	case PAGE_DETAIL_SLOPE_LOW:
		return s->stats.slope_low;
	case PAGE_DETAIL_SLOPE_HIGH:
		return s->stats.slope_high;
	case PAGE_DETAIL_R2:
		return s->stats.r2;
	case PAGE_DETAIL_FIRST:
		return s->stats.first_s;
	case PAGE_DETAIL_LAST:
		return s->stats.last_s;
	case PAGE_DETAIL_TEMPORARY:
		return s->fates.objects > 0 ? s->fates.temporary / s->fates.objects : NAN;
	case PAGE_DETAIL_LIFETIME:
		return s->fates.freed > 0 ? s->fates.life_ns / s->fates.freed : NAN;
	case PAGE_DETAIL_LIVE:
		return s->fates.objects > 0 ? s->fates.live_bytes : NAN;
	case PAGE_DETAIL_VARIANCE:
		return s->variance;
	case PAGE_DETAIL_WEIGHT:
		return s->weight;
	case PAGE_DETAIL_BURST_FROM:
		return s->stats.burst_from_s;
	case PAGE_DETAIL_BURST_TO:
		return s->stats.burst_to_s;
	case PAGE_DETAIL_MATE:
		return s->mate.mate == NO_MATE ? NAN : s->mate.mate;
	case PAGE_DETAIL_MATE_R:
		return s->mate.mate == NO_MATE ? NAN : s->mate.r;
	case PAGE_DETAIL_WAIT:
	case PAGE_DETAIL_ROLE:
	case N_PAGE_DETAIL_COLUMNS:
		break;
	}
	return NAN;
}

/* The function that each site's value belongs to, and what a wait is for. */
struct askers {
	struct page_names names;
	uint32_t *function, *module;
	float *wait, *role;
	bool waits;
};

static int askers_make(const struct profile *p, uint32_t type, const struct page_row *rows,
		       const struct site *sites, uint32_t n, struct askers *a)
{
	enum site_kind kind = sites_kind(p, type);

	a->waits = kind == SITE_WAIT;
	a->function = calloc(n + 1ul, sizeof(*a->function));
	a->module = calloc(n + 1ul, sizeof(*a->module));
	a->wait = calloc(n + 1ul, sizeof(*a->wait));
	a->role = calloc(n + 1ul, sizeof(*a->role));
	if (!a->function || !a->module || !a->wait || !a->role)
		return -ENOMEM;
	page_name_number(&a->names, "");
	for (uint32_t i = 0; i < n; i++) {
		stack_id stack = profile_sample(p, rows[sites[i].first_row].sample).stack;
		struct site_row row = { .function = "", .module = "" };
		int r = kind == SITE_NONE   ? 0
			: kind == SITE_WAIT ? site_of_wait_stack(profile_dict(p), stack, &row)
					    : site_of_stack(profile_dict(p), stack, &row);

		if (r < 0)
			return r;
		a->function[i] = page_name_number(&a->names, row.function);
		a->module[i] = page_name_number(&a->names, row.module);
		a->wait[i] = a->waits ? (float)row.wait : NAN;
		a->role[i] = a->waits ? (float)row.role : NAN;
	}
	return a->names.oom ? -ENOMEM : 0;
}

static void askers_fini(struct askers *a)
{
	page_names_fini(&a->names);
	free(a->function);
	free(a->module);
	free(a->wait);
	free(a->role);
}

static void put(const struct site *sites, const struct askers *a, uint32_t n, struct strbuf *out)
{
	packed_number(out, PAGE_DETAIL_VERSION);
	packed_number(out, a->names.n);
	strbuf_add(out, a->names.bytes.s ? a->names.bytes.s : "", a->names.bytes.len);
	packed_number(out, n);
	for (uint32_t i = 0; i < n; i++)
		packed_number(out, sites[i].node);
	for (uint32_t i = 0; i < n; i++)
		packed_number(out, a->function[i]);
	for (uint32_t i = 0; i < n; i++)
		packed_number(out, a->module[i]);
	for (int c = 0; c < N_PAGE_DETAIL_COLUMNS; c++)
		for (uint32_t i = 0; i < n; i++)
			put_float(out, c == PAGE_DETAIL_WAIT ? a->wait[i]
				       : c == PAGE_DETAIL_ROLE
					       ? a->role[i]
					       : column(&sites[i], (enum page_detail_column)c));
}

/* Not of what is known for stretches between bursts alone: there all have the same shape. */
static int find_mates(const struct page_times *at, const struct page_row *rows, struct bins *b,
		      struct site *sites, uint32_t n)
{
	uint32_t most = n < PAGE_DETAIL_MATES ? n : PAGE_DETAIL_MATES;
	_cleanup_(freep) double *values = calloc((size_t)most * b->n + 1, sizeof(*values));
	struct series_mate mates[PAGE_DETAIL_MATES];
	int r;

	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < most; i++) {
		fill(at, rows + sites[i].first_row, sites[i].n_rows, b);
		for (uint32_t k = 0; k < b->n; k++)
			values[(size_t)i * b->n + k] = b->points[k].y;
	}
	r = series_mates(values, most, b->n, mates);
	for (uint32_t i = 0; r == 0 && i < most; i++)
		sites[i].mate = mates[i];
	return r;
}

/* Of all of the profile; what an interval is a part of. */
static int sum_all(const struct profile *p, uint32_t type, struct profile_sums *ret_sums)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	_cleanup_(freep) uint32_t *row_of = NULL;
	struct row_table table = { 0 };
	int r = frame_tree_build(p, &(struct frame_tree_opts){ .type = type, .keep_samples = true },
				 &tree);

	if (r < 0)
		return r;
	row_of = malloc(tree->n_nodes * sizeof(*row_of));
	if (!row_of)
		return -ENOMEM;
	memset(row_of, 0xff, tree->n_nodes * sizeof(*row_of));
	table = (struct row_table){ tree, row_of, 0 };
	return row_sums_add(p, type, ERROR_OF_RUN, tree, NULL, &table, NULL, ret_sums);
}

int page_details_total(const struct profile *p, uint32_t type, double *ret_value,
		       struct interval *ret_interval)
{
	struct profile_sums all = { 0 };
	int r = sum_all(p, type, &all);

	if (r < 0)
		return r;
	*ret_value = all.all.value;
	*ret_interval = row_interval(&all.all, &all);
	return 0;
}

static int by_site(const void *a, const void *b)
{
	const struct page_row *x = a, *y = b;

	return x->site != y->site ? (x->site > y->site ? 1 : -1)
				  : (x->sample > y->sample) - (x->sample < y->sample);
}

int page_details_encode(const struct profile *p, const struct page_times *at, double seconds,
			const struct page_row *all_rows, const struct profile *sites_of,
			struct strbuf *out, uint32_t *ret_sites, bool *ret_bursts)
{
	uint32_t n_rows = profile_n_samples(p), n = 0;
	_cleanup_(freep) struct site *sites = calloc(n_rows ? n_rows : 1, sizeof(*sites));
	_cleanup_(freep) struct page_row *rows = calloc(n_rows ? n_rows : 1, sizeof(*rows));
	_cleanup_(bins_fini) struct bins b = { 0 };
	_cleanup_(fates_free) struct stack_fates *fates = NULL;
	_cleanup_(askers_fini) struct askers askers = { 0 };
	struct profile_sums all = { 0 };

	if (!sites || !rows || fates_make(sites_of, &fates) < 0 || bins_make(at, seconds, &b) < 0 ||
	    sum_all(p, sample_times_type(at->times, 0), &all) < 0)
		return -ENOMEM;
	memcpy(rows, all_rows, n_rows * sizeof(*rows));
	qsort(rows, n_rows, sizeof(*rows), by_site);
	for (uint32_t i = 0; i < n_rows;) {
		uint32_t end = i + 1;

		while (end < n_rows && rows[end].site == rows[i].site)
			end++;
		for (uint32_t k = i; fates && k < end; k++)
			add_fates(fates, profile_sample(p, rows[k].sample).stack, n,
				  &sites[n].fates);
		sites[n].first_row = i;
		sites[n].n_rows = end - i;
		sites[n].mate.mate = NO_MATE;
		look(p, at, rows + i, end - i, &all, &b, &sites[n++]);
		i = end;
	}
	qsort(sites, n, sizeof(*sites), by_integral);
	if (!all.groups && find_mates(at, rows, &b, sites, n) < 0)
		return -ENOMEM;
	*ret_sites = n;
	n = n < PAGE_DETAIL_ROWS ? n : PAGE_DETAIL_ROWS;
	if (askers_make(p, sample_times_type(at->times, 0), rows, sites, n, &askers) < 0)
		return -ENOMEM;
	put(sites, &askers, n, out);
	*ret_bursts = all.groups > 0;
	return strbuf_oom(out) ? -ENOMEM : 0;
}

static void add_number(struct strbuf *out, const char *key, double x, bool last)
{
	if (isfinite(x))
		strbuf_printf(out, "\"%s\":%.9g%s", key, x, last ? "" : ",");
	else
		strbuf_printf(out, "\"%s\":null%s", key, last ? "" : ",");
}

void page_details_json(struct strbuf *out, const struct time_table *t, const double *values,
		       double started_s)
{
	struct point *p = calloc(t->n_rows ? t->n_rows : 1, sizeof(*p));
	double *span_s = calloc(t->n_rows ? t->n_rows : 1, sizeof(*span_s));
	struct site_stats s = { 0 };
	uint32_t n = 0;

	out->oom |= !p || !span_s;
	for (uint32_t i = 0; p && span_s && i < t->n_rows; i++)
		if (!isnan(values[i]))
			p[n++] = (struct point){ t->times_s[i] - started_s, values[i] };
	if (n) {
		site_stats_spans(p, n, span_s);
		site_stats(p, span_s, n, &s);
	}
	add_number(out, "integral", s.integral, false);
	add_number(out, "mean", s.mean, false);
	add_number(out, "deviation", s.deviation, false);
	add_number(out, "intercept", s.intercept, false);
	add_number(out, "slope", s.slope, false);
	add_number(out, "slope_low", s.slope_low, false);
	add_number(out, "slope_high", s.slope_high, false);
	add_number(out, "r2", s.r2, false);
	add_number(out, "first", s.first_s, false);
	add_number(out, "last", s.last_s, true);
	free(p);
	free(span_s);
}
