#include "analyse/trend_shape.h"

#include "base/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define PLAIN_WARNING_PERCENT 50
#define PLAIN_MONITOR_PERCENT 20
#define SAW_LEG               0.25 /* of the range: what counts as a fall or a rise                  */
#define SAW_FALLS             3
#define SAW_POINTS            2 /* of a leg, on average                                           */
#define SAW_HEIGHT            0.6 /* of the range: most legs' height; of noise it is less than half */
#define TAIL_PART             0.25 /* of the time: a last piece that decides the trend               */
#define JUMP_PART             0.6 /* of what it changed by                                          */
#define PAGE_KB               4
#define PASSAGE_POINTS        4
#define ONE_LINE_R2           0.9 /* a step within it leaves at most 0.75 */

struct plain_verdict plain_verdict(double first, double last)
{
	struct plain_verdict v = { .percent = first > 0 ? 100 * (last - first) / first : 0 };

	if (v.percent > PLAIN_WARNING_PERCENT)
		v.kind = PLAIN_WARNING;
	else if (v.percent >= PLAIN_MONITOR_PERCENT)
		v.kind = PLAIN_MONITOR;
	return v;
}

const char *plain_name(enum plain_kind k)
{
	return k == PLAIN_WARNING ? "warning" : k == PLAIN_MONITOR ? "monitor" : "healthy";
}

const char *plain_words(enum plain_kind k)
{
	return k == PLAIN_WARNING   ? "warning, potential leak"
	       : k == PLAIN_MONITOR ? "monitor closely"
				    : "healthy";
}

const char *trend_shape_name(enum trend_shape_kind k)
{
	static const char *const names[N_TREND_SHAPES] = {
		[TREND_SHAPE_SHORT] = "short",       [TREND_SHAPE_FLAT] = "flat",
		[TREND_SHAPE_SETTLED] = "settled",   [TREND_SHAPE_STEPPED] = "stepped",
		[TREND_SHAPE_SAWTOOTH] = "sawtooth", [TREND_SHAPE_SHRINKING] = "shrinking",
		[TREND_SHAPE_GROWING] = "growing",
	};

	return k < N_TREND_SHAPES ? names[k] : "unknown";
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(const struct point *p, uint32_t n)
{
	double y[SERIES_POINTS];

	for (uint32_t i = 0; i < n; i++)
		y[i] = p[i].y;
	qsort(y, n, sizeof(y[0]), by_size);
	return n % 2 ? y[n / 2] : (y[n / 2 - 1] + y[n / 2]) / 2;
}

/*
 * The turning points of a curve, without ups and downs of less than `leg`: each is the highest or
 * the lowest of its time. Returns how many; *ret_low says whether the first is a low one.
 */
static uint32_t turns(const struct point *p, uint32_t n, double leg, uint32_t *ret_at,
		      bool *ret_low)
{
	uint32_t low = 0, high = 0, k = 0;
	int going = 0; /* 1: up since the last low */

	for (uint32_t i = 1; i < n; i++) {
		if (p[i].y < p[low].y)
			low = i;
		if (p[i].y > p[high].y)
			high = i;
		if (going <= 0 && p[i].y - p[low].y >= leg) {
			if (k == 0)
				*ret_low = true;
			ret_at[k++] = low;
			going = 1;
			high = i;
		} else if (going >= 0 && p[high].y - p[i].y >= leg) {
			if (k == 0)
				*ret_low = false;
			ret_at[k++] = high;
			going = -1;
			low = i;
		}
		if (going > 0)
			low = i;
		else if (going < 0)
			high = i;
	}
	return k;
}

/* Half of the legs between turning points are at least so long. */
static double median_leg(const struct point *p, const uint32_t *at, uint32_t k)
{
	double legs[SERIES_POINTS];

	for (uint32_t i = 1; i < k; i++)
		legs[i - 1] = fabs(p[at[i]].y - p[at[i - 1]].y);
	qsort(legs, k - 1, sizeof(legs[0]), by_size);
	return legs[(k - 1) / 2];
}

/* A sawtooth, around any line: sets the kind, and whether its low points rise. */
static bool is_saw(struct trend_shape *c, const struct point *p, uint32_t n)
{
	struct point beside[SERIES_POINTS], lows[SERIES_POINTS];
	uint32_t at[SERIES_POINTS], k, n_low = 0;
	struct series_facts f;
	struct series_line line;
	bool low = false;
	double range, rise;

	series_line(p, n, &line);
	for (uint32_t i = 0; i < n; i++) {
		beside[i] = p[i];
		beside[i].y -= line.slope * (p[i].t - p[0].t);
	}
	series_facts(beside, n, &f);
	range = f.max - f.min;
	if (range < c->matters)
		return false;
	k = turns(beside, n, SAW_LEG * range, at, &low);
	c->falls = k / 2 + (k % 2 && !low);
	if (c->falls < SAW_FALLS || at[k - 1] - at[0] < SAW_POINTS * (k - 1) ||
	    median_leg(beside, at, k) < SAW_HEIGHT * range) {
		c->falls = 0;
		return false;
	}
	for (uint32_t i = low ? 0 : 1; i < k; i += 2)
		lows[n_low++] = p[at[i]];
	c->kind = TREND_SHAPE_SAWTOOTH;
	series_line(lows, n_low, &c->tail);
	rise = c->tail.slope * (lows[n_low - 1].t - lows[0].t);
	if (fabs(rise) < fmax(c->matters, SAW_LEG * range))
		return true;
	if (c->tail.slope_low > 0 || c->tail.slope_high < 0) {
		c->kind = rise > 0 ? TREND_SHAPE_GROWING : TREND_SHAPE_SHRINKING;
		c->since_s = lows[0].t - p[0].t;
	}
	return true;
}

/*
 * Does the line through the last piece decide the trend? It must be long enough, rise or fall by an
 * amount that matters, with an interval that excludes 0, and its later half must do so, too, at no
 * less than a third of the rate: what settles slows down.
 */
static bool goes_on(const struct trend_shape *c, const struct point *p, uint32_t n, double span)
{
	const struct series_line *l = &c->tail;
	struct series_line later;
	double lasts = p[n - 1].t - p[0].t;

	if (lasts < TAIL_PART * span || fabs(l->slope) * lasts < c->matters ||
	    (l->slope_low <= 0 && l->slope_high >= 0))
		return false;
	series_line(p + n / 2, n - n / 2, &later);
	return later.slope * l->slope > 0 && fabs(later.slope) >= fabs(l->slope) / 3;
}

/* A piece that is only the transition between two others: after thinning, a point may be the mean
 * of parts of both. */
static bool is_passage(const uint32_t *begin, uint32_t i, uint32_t k, uint32_t n)
{
	uint32_t points = begin[i + 1] - begin[i];

	return i > 0 && i + 1 < k && points <= PASSAGE_POINTS && points * 10 < n;
}

/* Between the end of the line through one piece and the begin of the line through another. */
static double jump_between(const struct point *p, const uint32_t *begin, uint32_t i, uint32_t j)
{
	struct series_line before, after;

	series_line(p + begin[i], begin[i + 1] - begin[i], &before);
	series_line(p + begin[j], begin[j + 1] - begin[j], &after);
	return after.at - (before.at + before.slope * (p[begin[i + 1] - 1].t - p[begin[i]].t));
}

/* c->jump, c->changes_s; returns the sum of the jumps. */
static double find_jumps(struct trend_shape *c, const struct point *p, const uint32_t *begin,
			 uint32_t k)
{
	double sum = 0;

	for (uint32_t i = 0, j; i + 1 < k; i = j) {
		double jump;

		j = i + 1;
		if (is_passage(begin, j, k, begin[k]) && !is_passage(begin, j + 1, k, begin[k]))
			j++;
		jump = jump_between(p, begin, i, j);
		c->changes_s[c->n_changes++] = p[begin[i + 1]].t - p[0].t;
		sum += jump;
		if (fabs(jump) > fabs(c->jump)) {
			c->jump = jump;
			c->jump_s = p[begin[i + 1]].t - p[0].t;
		}
	}
	return sum;
}

static void judge_pieces(struct trend_shape *c, const struct point *p, uint32_t n)
{
	uint32_t begin[SERIES_PIECES + 1], k = series_pieces(p, n, PAGE_KB, begin), last = k - 1;
	double span = p[n - 1].t - p[0].t, jumps;
	struct series_line first;

	begin[k] = n;
	jumps = find_jumps(c, p, begin, k);
	series_line(p, begin[1], &first);
	series_line(p + begin[last], n - begin[last], &c->tail);
	c->changed = c->tail.at + c->tail.slope * (p[n - 1].t - p[begin[last]].t) - first.at;
	/* Several pieces may be one line with correlated noise. */
	while (last > 0 && p[n - 1].t - p[begin[last]].t < TAIL_PART * span)
		last--;
	if (last < k - 1)
		series_line(p + begin[last], n - begin[last], &c->tail);
	c->since_s = p[begin[last]].t - p[0].t;
	if (goes_on(c, p + begin[last], n - begin[last], span) &&
	    (last == k - 1 || c->tail.r2 >= ONE_LINE_R2)) {
		c->kind = c->tail.slope > 0 ? TREND_SHAPE_GROWING : TREND_SHAPE_SHRINKING;
		return;
	}
	c->since_s = p[begin[k - 1]].t - p[0].t;
	if (fabs(c->changed) < c->matters)
		c->kind = TREND_SHAPE_FLAT;
	else if (jumps * c->changed > 0 && fabs(jumps) >= JUMP_PART * fabs(c->changed))
		c->kind = TREND_SHAPE_STEPPED;
	else
		c->kind = c->changed > 0 ? TREND_SHAPE_SETTLED : TREND_SHAPE_SHRINKING;
}

void trend_shape_of(const struct point *p, uint32_t n, struct trend_shape *ret_shape)
{
	trend_shape_above(p, n, TREND_SHAPE_MIN_KB, ret_shape);
}

void trend_shape_above(const struct point *all, uint32_t n_all, double least_kb,
		       struct trend_shape *ret_shape)
{
	struct trend_shape c = { .kind = TREND_SHAPE_SHORT };
	struct point p[SERIES_POINTS];
	struct series_facts f;
	uint32_t n;

	if (n_all > 0) {
		series_line(all, n_all, &c.all);
		c.span_s = all[n_all - 1].t - all[0].t;
		n = series_thin(all, n_all, p, SERIES_POINTS);
		series_facts(p, n, &f);
		c.matters = fmax(TREND_SHAPE_PART * median(p, n), least_kb);
		if (n < TREND_SHAPE_POINTS || p[n - 1].t <= p[0].t)
			c.kind = TREND_SHAPE_SHORT;
		else if (f.max - f.min < c.matters)
			c.kind = TREND_SHAPE_FLAT;
		else if (!is_saw(&c, p, n))
			judge_pieces(&c, p, n);
	}
	*ret_shape = c;
}

/* --- in words --- */

static struct unit_text kb(double v)
{
	return unit_bytes((int64_t)llround(v * 1024));
}

static struct unit_range interval(const struct series_line *l, double per)
{
	return unit_bytes_range(llround(l->slope_low * per * 1024),
				llround(l->slope_high * per * 1024), false);
}

static struct unit_text seconds(double s)
{
	struct unit_text t;

	if (s >= 2 * 86400)
		snprintf(t.s, sizeof(t.s), "%.1f days", s / 86400);
	else if (s >= 2 * 3600)
		snprintf(t.s, sizeof(t.s), "%.1f hours", s / 3600);
	else if (s >= 120)
		snprintf(t.s, sizeof(t.s), "%.0f minutes", s / 60);
	else
		snprintf(t.s, sizeof(t.s), "%.0f seconds", s);
	return t;
}

/* The change per minute, hour or day: the unit closest to the time watched. */
static const char *rate_unit(double span_s, double *ret_seconds)
{
	*ret_seconds = span_s < 7200 ? 60 : span_s < 2 * 86400 ? 3600 : 86400;
	return span_s < 7200 ? "a minute" : span_s < 2 * 86400 ? "an hour" : "a day";
}

void trend_shape_reason(const struct trend_shape *c, char *buf, uint32_t size)
{
	double per;
	const char *unit = rate_unit(c->span_s, &per);
	const struct series_line *l = &c->tail;

	switch (c->kind) {
	case TREND_SHAPE_GROWING:
	case TREND_SHAPE_SHRINKING:
		if (c->falls >= SAW_FALLS)
			snprintf(buf, size,
				 "it fell %u times, and its low points %s by %s %s (95 %% interval "
				 "%s)",
				 c->falls, l->slope > 0 ? "rose" : "sank",
				 kb(fabs(l->slope) * per).s, unit, interval(l, per).s);
		else
			snprintf(buf, size, "it %s by %s %s (95 %% interval %s) %s%s%s",
				 l->slope > 0 ? "grew" : "shrank", kb(fabs(l->slope) * per).s, unit,
				 interval(l, per).s, c->since_s > 0 ? "since " : "throughout",
				 c->since_s > 0 ? seconds(c->since_s).s : "",
				 c->since_s > 0 ? " after the start" : "");
		break;
	case TREND_SHAPE_SETTLED:
		if (c->n_changes == 0)
			snprintf(buf, size, "it rose by %s, more and more slowly",
				 kb(c->changed).s);
		else
			snprintf(buf, size,
				 "it rose by %s and has been level since %s after the start",
				 kb(c->changed).s, seconds(c->since_s).s);
		break;
	case TREND_SHAPE_STEPPED:
		snprintf(buf, size, "it jumped %s by %s, %s after the start, and stayed there",
			 c->jump > 0 ? "up" : "down", kb(fabs(c->jump)).s, seconds(c->jump_s).s);
		break;
	case TREND_SHAPE_SAWTOOTH:
		snprintf(buf, size, "it fell %u times and returned to its earlier level", c->falls);
		break;
	case TREND_SHAPE_FLAT:
		snprintf(buf, size, "it changed by less than %s, or only for a while",
			 kb(c->matters).s);
		break;
	case TREND_SHAPE_SHORT:
	case N_TREND_SHAPES:
		snprintf(buf, size, "%u points are too few to judge (%u are needed)", c->all.n,
			 TREND_SHAPE_POINTS);
		break;
	}
}
