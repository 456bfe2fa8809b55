/*
 * live_series_leaks() and its like: which rows grow, by the shape of their series or, of estimates, by the ages of their
 * blocks.
 */
#include "analyse/live_series_parts.h"

#include <math.h>

#define LINE_OF_WALK 1.2 /* of the variance of its ends' difference                       */
#define ENDED_PART   0.5 /* of the time: what has stayed for longer has stopped                */
#define AGE_ERROR    1000

/* How many blocks had been made `age_s` before the last moment. */
static double made_before(const struct live_series *b, const struct live_series_row *row,
			  double age_s)
{
	double t = b->times[b->n_times - 1] - age_s;

	for (uint32_t i = 1; i < b->n_times; i++) {
		double width = b->times[i] - b->times[i - 1], x;

		if (b->times[i] < t || width <= 0)
			continue;
		x = t <= b->times[i - 1] ? 0 : (t - b->times[i - 1]) / width;
		return (double)row->made_by[i - 1] +
		       x * (double)(row->made_by[i] - row->made_by[i - 1]);
	}
	return 0;
}

static double least_kb(const struct live_series *b)
{
	double span = b->n_times ? b->times[b->n_times - 1] - b->times[0] : 0;

	return fmax(LIVE_SERIES_LEAST_KB * 60 / fmax(span, 60), LIVE_SERIES_FLOOR_KB);
}

/* Half the interval that a line through a random walk has, of its slope. */
static double part_of(const struct live_series_row *row, double grown, double half2)
{
	double level = (double)row->live;

	return sqrt(LINE_OF_WALK * half2 * fmax(1, level / grown)) / level;
}

/* By the error of what was estimated: without what is in common, which cannot make a leak of nothing, or with it. */
static void widen(const struct live_series_row *row, double lasts, bool common,
		  struct series_line *l)
{
	const struct live_series_error *e = &row->error;
	double grown = l->slope * lasts * 1024, below, above;

	if (row->live <= 0 || grown <= 0)
		return;
	below = common ? e->below / (double)row->live : 0;
	above = common ? e->above / (double)row->live : 0;
	l->slope_low = l->slope - hypot(l->slope - l->slope_low,
					l->slope * hypot(part_of(row, grown, e->low2), below));
	l->slope_high = l->slope + hypot(l->slope_high - l->slope,
					 l->slope * hypot(part_of(row, grown, e->high2), above));
}

/*
 * A random walk looks as if it had pieces: where the last may rise as all does, the line is that through all.
 * Growth by little must be sure.
 */
static void take_line(const struct live_series_row *row, struct trend_shape *c)
{
	struct series_line tail = c->tail;
	double lasts;

	widen(row, c->span_s - c->since_s, false, &tail);
	if (row->error.low2 > 0 && c->all.slope >= tail.slope_low &&
	    c->all.slope <= tail.slope_high) {
		c->since_s = 0;
		c->tail = tail = c->all;
		widen(row, c->span_s, false, &tail);
	}
	lasts = c->span_s - c->since_s;
	if (c->tail.slope * lasts < TREND_SHAPE_MIN_KB && tail.slope_low <= 0)
		c->kind = TREND_SHAPE_FLAT;
	widen(row, lasts, true, &c->tail);
	/* What is retained does not become less. */
	if (row->error.low2 > 0)
		c->tail.slope_low = fmax(c->tail.slope_low, 0);
}

/*
 * Has it stopped, or do estimates make it seem so? A short last piece that rises less than all does, by no more than a
 * random walk may, is no end of growth.
 */
static void take_on(const struct live_series_row *row, struct trend_shape *c)
{
	double lasts = c->span_s - c->since_s, grown = c->all.slope * lasts * 1024, half;
	struct series_line all = c->all;

	if (row->error.high2 <= 0 || row->live <= 0 || lasts > ENDED_PART * c->span_s ||
	    grown <= 0 || c->span_s * all.slope < c->matters)
		return;
	half = hypot(c->tail.slope_high - c->tail.slope,
		     all.slope * part_of(row, grown, row->error.high2));
	widen(row, c->span_s, false, &all);
	if (c->tail.slope + half < c->all.slope || all.slope_low <= 0)
		return;
	c->kind = TREND_SHAPE_GROWING;
	c->since_s = 0;
	c->tail = c->all;
}

static void shape_of(const struct live_series *b, const struct live_series_row *row,
		     struct leak *leak)
{
	struct point p[LIVE_SERIES_TICKS];

	for (uint32_t i = 0; i < b->n_times; i++)
		p[i] = (struct point){ b->times[i], (double)row->bytes[i] / 1024 };
	trend_shape_above(p, b->n_times, least_kb(b), &leak->shape);
	if (leak->shape.kind == TREND_SHAPE_SETTLED || leak->shape.kind == TREND_SHAPE_STEPPED)
		take_on(row, &leak->shape);
	if (leak->shape.kind == TREND_SHAPE_GROWING)
		take_line(row, &leak->shape);
	leak->row = row;
}

/* What is asked of all rows: how old blocks must be; and the level of tests, by ages. */
struct asked {
	double age_s, alpha;
};

static bool grows(const struct live_series *b, const struct live_series_entry *e,
		  const struct asked *asked, struct leak *leak)
{
	(void)asked;
	shape_of(b, &e->row, leak);
	leak->survived = 1;
	return leak->shape.kind == TREND_SHAPE_GROWING;
}

static void put_survived(const struct live_series *b, double age_s, struct leak *leak)
{
	double made = made_before(b, leak->row, age_s);

	leak->age_s = age_s;
	leak->survived = made > 0 ? (double)leak->row->old / made : 0;
	if (leak->survived > 1)
		leak->survived = 1; /* between two ticks */
}

/*
 * The line is that of the ages, whose interval is a factor, as is that of what all weights have in common: they are
 * independent, so that squares of their logarithms add up.
 */
static void put_age_line(const struct live_series *b, const struct live_series_row *row,
			 const struct survival_verdict *v, struct trend_shape *c)
{
	double live = fmax(1, (double)row->live), below = fmin(row->error.below, live);
	double above = row->error.above;

	c->kind = TREND_SHAPE_GROWING;
	c->since_s = b->n_times ? fmax(0, v->since_s - b->times[0]) : 0;
	c->tail = c->all;
	c->tail.slope = v->slope / 1024;
	c->tail.slope_low =
		c->tail.slope * exp(-hypot(log(v->slope / v->low), log(live / (live - below))));
	c->tail.slope_high =
		c->tail.slope * exp(hypot(log(v->high / v->slope), log((live + above) / live)));
}

static bool leaks_by_age(const struct live_series *b, const struct live_series_entry *e,
			 const struct asked *asked, struct leak *leak)
{
	struct survival_verdict v;

	shape_of(b, &e->row, leak);
	put_survived(b, asked->age_s, leak);
	if (!e->ages)
		return false;
	survival_verdict(e->ages, asked->alpha, &v);
	if (v.says != SURVIVAL_LEAKS)
		return false;
	put_age_line(b, &e->row, &v, &leak->shape);
	leak->sampled = v.blocks;
	leak->ended = v.ended;
	leak->sampled_age_s = e->ages->span_s * SURVIVAL_YOUNG / SURVIVAL_PARTS;
	return leak->survived >= LEAK_SURVIVAL && leak->shape.tail.slope_low > 0;
}

static bool leaks(const struct live_series *b, const struct live_series_entry *e,
		  const struct asked *asked, struct leak *leak)
{
	if (b->by_age)
		return leaks_by_age(b, e, asked, leak);
	if (!grows(b, e, asked, leak))
		return false;
	put_survived(b, asked->age_s, leak);
	return leak->survived >= LEAK_SURVIVAL;
}

static bool stopped(const struct live_series *b, const struct live_series_entry *e,
		    const struct asked *asked, struct leak *leak)
{
	const struct trend_shape *c = &leak->shape;

	if (b->by_age && leaks_by_age(b, e, asked, leak))
		return false;
	shape_of(b, &e->row, leak);
	put_survived(b, asked->age_s, leak);
	return (c->kind == TREND_SHAPE_SETTLED || c->kind == TREND_SHAPE_STEPPED) &&
	       c->changed >= c->matters && (double)e->row.live >= c->changed * 1024 / 2;
}

static bool by_slope(const struct leak *a, const struct leak *b)
{
	return a->shape.tail.slope > b->shape.tail.slope;
}

static bool by_rise(const struct leak *a, const struct leak *b)
{
	return a->shape.changed > b->shape.changed;
}

/* What is smaller at the end than what matters at all cannot have grown by it. */
static bool matters(const struct live_series *b, const struct live_series_entry *e)
{
	return (double)e->row.live >= least_kb(b) * 1024;
}

/* An error of one in AGE_ERROR for all together that may leak. */
static double age_alpha(const struct live_series *b, double age_s)
{
	double n = 0;

	for (const struct live_series_entry *e = b->entries; e; e = e->hh.next) {
		struct leak leak = { .row = &e->row };

		if (!e->ages || !matters(b, e))
			continue;
		put_survived(b, age_s, &leak);
		n += leak.survived >= LEAK_SURVIVAL;
	}
	return 1 / (AGE_ERROR * fmax(1, n));
}

/* At most `cap` of those that `is`, in the order of `before`. */
static uint32_t find_rows(const struct live_series *b, double age_s,
			  bool (*is)(const struct live_series *b, const struct live_series_entry *e,
				     const struct asked *asked, struct leak *leak),
			  bool (*before)(const struct leak *a, const struct leak *b),
			  struct leak *ret, uint32_t cap)
{
	struct asked asked = { .age_s = age_s };
	struct live_series_entry *e, *next;
	uint32_t n = 0;

	if (b->n_times < (b->by_age ? 1 : TREND_SHAPE_POINTS))
		return 0;
	if (b->by_age)
		asked.alpha = age_alpha(b, age_s);
	HASH_ITER (hh, b->entries, e, next) {
		struct leak leak = { 0 };
		uint32_t at;

		if (!matters(b, e) || !is(b, e, &asked, &leak))
			continue;
		for (at = n; at > 0 && before(&leak, &ret[at - 1]); at--)
			if (at < cap)
				ret[at] = ret[at - 1];
		if (at < cap)
			ret[at] = leak;
		if (n < cap)
			n++;
	}
	return n;
}

uint32_t live_series_leaks(const struct live_series *b, double age_s, struct leak *ret_leaks,
			   uint32_t cap)
{
	return find_rows(b, age_s, leaks, by_slope, ret_leaks, cap);
}

uint32_t live_series_growing(const struct live_series *b, struct leak *ret_rows, uint32_t cap)
{
	return find_rows(b, 0, grows, by_slope, ret_rows, cap);
}

uint32_t live_series_stopped(const struct live_series *b, double age_s, struct leak *ret_rows,
			     uint32_t cap)
{
	return find_rows(b, age_s, stopped, by_rise, ret_rows, cap);
}
