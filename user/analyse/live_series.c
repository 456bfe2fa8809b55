#include "analyse/live_series.h"

#include "base/hash.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_OF_WALK 1.2 /* of the variance of its ends' difference */
#define ENDED_PART   0.5 /* of the time: what has stayed for longer has stopped */

struct entry {
	struct {
		uint32_t image, stack;
	} key;
	struct live_series_row row;
	bool shrunk;   /* live_series_settle() */
	double before; /* … the sum of its series */
	UT_hash_handle hh;
};

struct live_series {
	struct entry *entries;
	uint32_t n;
	struct entry *spare[LIVE_SERIES_SPARE]; /* the one with the least last */
	uint32_t n_spare;
	struct live_series_moved moved;
	struct live_series_row other;
	double times[LIVE_SERIES_TICKS];
	double held[LIVE_SERIES_TICKS], held_now; /* live_series_held(); 0: not known */
	uint32_t n_times, stride;
	uint64_t ticks;
};

struct live_series *live_series_new(void)
{
	struct live_series *b = calloc(1, sizeof(*b));

	if (b)
		b->stride = 1;
	return b;
}

void live_series_free(struct live_series *b)
{
	if (!b)
		return;
	hash_free(b->entries);
	free(b);
}

static struct live_series_row *find(const struct live_series *b, uint32_t image, stack_id stack)
{
	struct entry *e, key = { .key = { image, stack.ix } };

	HASH_FIND(hh, b->entries, &key.key, sizeof(key.key), e);
	return e ? &e->row : NULL;
}

/* Its series becomes part of OTHER's. */
static void move_to_other(struct live_series *b, struct entry *e)
{
	struct live_series_row *to = &b->other;

	b->moved.rows++;
	b->moved.bytes += e->row.live > 0 ? (uint64_t)e->row.live : 0;
	to->live += e->row.live;
	to->made += e->row.made;
	to->area += e->row.area;
	for (uint32_t i = 0; i < b->n_times; i++) {
		to->bytes[i] += e->row.bytes[i];
		to->made_by[i] += e->row.made_by[i];
	}
	HASH_DEL(b->entries, e);
	free(e);
	b->n--;
}

static int add_row(struct live_series *b, uint32_t image, stack_id stack, bool allocates,
		   struct live_series_row **ret_row)
{
	struct entry *e, key = { .key = { image, stack.ix } };

	/* What is freed of a stack without a row was allocated when it was in OTHER, or had one. */
	if (!allocates || (b->n == LIVE_SERIES_MAX && !b->n_spare)) {
		*ret_row = &b->other;
		return 0;
	}
	if (b->n == LIVE_SERIES_MAX)
		move_to_other(b, b->spare[--b->n_spare]);
	e = hash_new(b->entries, key, &key.key);
	if (!e)
		return -ENOMEM;
	e->row.image = image;
	e->row.stack = stack;
	b->n++;
	*ret_row = &e->row;
	return 0;
}

int live_series_add(struct live_series *b, uint32_t image, stack_id stack, int64_t blocks,
		    int64_t bytes)
{
	struct live_series_row *row = find(b, image, stack);
	int r = row ? 0 : add_row(b, image, stack, blocks > 0 || bytes > 0, &row);

	if (r < 0)
		return r;
	row->live += bytes;
	if (blocks > 0)
		row->made += (uint64_t)blocks;
	return 0;
}

void live_series_drop(struct live_series *b, uint32_t image)
{
	struct entry *e, *next;

	HASH_ITER (hh, b->entries, e, next)
		if (e->row.image == image)
			e->row.live = 0;
}

/* Every other moment goes. */
static void thin(struct live_series *b)
{
	struct entry *e, *next;

	for (uint32_t i = 0; i < LIVE_SERIES_TICKS / 2; i++) {
		b->times[i] = b->times[2 * i];
		b->held[i] = b->held[2 * i];
		b->other.bytes[i] = b->other.bytes[2 * i];
	}
	HASH_ITER (hh, b->entries, e, next) {
		for (uint32_t i = 0; i < LIVE_SERIES_TICKS / 2; i++) {
			e->row.bytes[i] = e->row.bytes[2 * i];
			e->row.made_by[i] = e->row.made_by[2 * i];
		}
	}
	b->n_times = LIVE_SERIES_TICKS / 2;
	b->stride *= 2;
}

static void note(struct live_series_row *row, uint32_t at)
{
	row->bytes[at] = row->live;
	row->made_by[at] = row->made;
}

static int by_live(const void *a, const void *b)
{
	const struct live_series_row *x = &(*(struct entry *const *)a)->row,
				     *y = &(*(struct entry *const *)b)->row;

	if (x->live != y->live)
		return x->live < y->live ? -1 : 1;
	return (x->stack.ix > y->stack.ix) - (x->stack.ix < y->stack.ix);
}

/* Who makes room for new ones until the next tick: those that are new themselves have had one to grow. */
static void find_spare(struct live_series *b)
{
	struct entry *all[LIVE_SERIES_MAX], *e, *next;
	uint32_t n = 0;

	b->n_spare = 0;
	if (b->n < LIVE_SERIES_MAX)
		return;
	HASH_ITER (hh, b->entries, e, next)
		all[n++] = e;
	qsort(all, n, sizeof(all[0]), by_live);
	for (uint32_t i = LIVE_SERIES_SPARE; i-- > 0;)
		b->spare[b->n_spare++] = all[i];
}

void live_series_tick(struct live_series *b, double t_s)
{
	struct entry *e, *next;
	bool kept = b->ticks++ % b->stride == 0;

	if (kept && b->n_times == LIVE_SERIES_TICKS) {
		thin(b);
		kept = (b->ticks - 1) % b->stride == 0;
	}
	HASH_ITER (hh, b->entries, e, next) {
		e->row.area += (double)e->row.live;
		if (kept)
			note(&e->row, b->n_times);
	}
	if (kept) {
		note(&b->other, b->n_times);
		b->held[b->n_times] = b->held_now;
		b->times[b->n_times++] = t_s;
	}
	find_spare(b);
}

void live_series_held(struct live_series *b, double bytes)
{
	b->held_now = bytes;
}

void live_series_old(struct live_series *b, uint32_t image, stack_id stack, uint64_t blocks)
{
	struct live_series_row *row = find(b, image, stack);

	if (row)
		row->old += blocks;
}

void live_series_final(struct live_series *b, uint32_t image, stack_id stack, double bytes)
{
	struct live_series_row *row = find(b, image, stack);

	if (row)
		row->final += bytes;
}

void live_series_error(struct live_series *b, uint32_t image, stack_id stack,
		       const struct live_series_error *error)
{
	struct live_series_row *row = find(b, image, stack);

	if (!row)
		return;
	row->error.low2 += error->low2;
	row->error.high2 += error->high2;
	row->error.below += error->below;
	row->error.above += error->above;
}

/* Has the row less than half of its most at the end? Then what that is in bytes says little of the rest. */
static bool has_shrunk(const struct live_series *b, const struct live_series_row *row)
{
	for (uint32_t i = 0; i < b->n_times; i++)
		if (row->live < row->bytes[i] / 2)
			return true;
	return false;
}

/* What one unit of all rows together is in bytes. */
static double common_unit(const struct live_series *b)
{
	double bytes = 0, units = 0;

	for (const struct entry *e = b->entries; e; e = e->hh.next)
		if (e->row.live > 0 && e->row.final > 0) {
			bytes += e->row.final;
			units += (double)e->row.live;
		}
	return units > 0 ? bytes / units : 1;
}

/* No more than is held in all, from those first that have shrunk. */
static void fit_moment(struct live_series *b, uint32_t i)
{
	double sum[2] = { 0 }, part[2] = { 1, 1 };

	for (struct entry *e = b->entries; e; e = e->hh.next) {
		e->row.bytes[i] = (int64_t)fmin((double)e->row.bytes[i], b->held[i]);
		sum[e->shrunk] += fmax(0, (double)e->row.bytes[i]);
	}
	if (sum[0] + sum[1] <= b->held[i])
		return;
	part[1] = sum[1] > 0 ? fmax(0, b->held[i] - sum[0]) / sum[1] : 0;
	part[0] = sum[0] > 0 ? fmin(1, b->held[i] / sum[0]) : 0;
	for (struct entry *e = b->entries; e; e = e->hh.next)
		e->row.bytes[i] = (int64_t)((double)e->row.bytes[i] * part[e->shrunk]);
}

static double sum_of(const struct live_series *b, const struct live_series_row *row)
{
	double sum = 0;

	for (uint32_t i = 0; i < b->n_times; i++)
		sum += (double)row->bytes[i];
	return sum;
}

void live_series_settle(struct live_series *b)
{
	double common = common_unit(b);

	for (struct entry *e = b->entries; e; e = e->hh.next) {
		double by = common;

		e->shrunk = has_shrunk(b, &e->row);
		if (!e->shrunk && e->row.final > 0 && e->row.live > 0)
			by = e->row.final / (double)e->row.live;
		e->before = sum_of(b, &e->row);
		for (uint32_t i = 0; i < b->n_times; i++)
			e->row.bytes[i] = (int64_t)fmax(0, (double)e->row.bytes[i] * by);
		e->row.live = llround(e->row.final > 0 ? e->row.final
						       : fmax(0, (double)e->row.live * by));
	}
	for (uint32_t i = 0; i < b->n_times; i++)
		if (b->held[i] > 0)
			fit_moment(b, i);
	for (struct entry *e = b->entries; e; e = e->hh.next)
		e->row.area *= e->before > 0 ? sum_of(b, &e->row) / e->before : 0;
}

struct live_series_moved live_series_moved(const struct live_series *b)
{
	return b->moved;
}

uint32_t live_series_times(const struct live_series *b, const double **ret_times)
{
	*ret_times = b->times;
	return b->n_times;
}

static int by_area(const void *a, const void *b)
{
	const struct live_series_row *x = *(const struct live_series_row *const *)a,
				     *y = *(const struct live_series_row *const *)b;

	if (x->area != y->area)
		return x->area < y->area ? 1 : -1;
	return (x->stack.ix > y->stack.ix) - (x->stack.ix < y->stack.ix);
}

uint32_t live_series_rank(const struct live_series *b, const struct live_series_row **ret_rows,
			  uint32_t cap)
{
	const struct live_series_row *all[LIVE_SERIES_MAX];
	struct entry *e, *next;
	uint32_t n = 0;

	HASH_ITER (hh, b->entries, e, next)
		if (e->row.area > 0)
			all[n++] = &e->row;
	qsort(all, n, sizeof(all[0]), by_area);
	if (n > cap)
		n = cap;
	memcpy(ret_rows, all, n * sizeof(all[0]));
	return n;
}

int64_t live_series_other(const struct live_series *b, const struct live_series_row *const *shown,
			  uint32_t n, uint32_t i)
{
	int64_t sum = b->other.bytes[i];
	struct entry *e, *next;

	HASH_ITER (hh, b->entries, e, next)
		sum += e->row.bytes[i];
	for (uint32_t k = 0; k < n; k++)
		sum -= shown[k]->bytes[i];
	return sum;
}

/* --- the peak --- */

/*
 * Of what a row held at moment `i`. The part of it that its error is grows with what it holds as a random walk does. Of one
 * that holds nothing at the end nothing is known of its error: it may be off by all of it, where others' are estimates.
 */
static void add_error_at(const struct live_series_row *row, uint32_t i,
			 struct live_series_error *to)
{
	double part = row->live > 0 ? (double)row->bytes[i] / (double)row->live : 0;
	double lost = row->live > 0 ? 0 : (double)row->bytes[i];

	to->low2 += row->error.low2 * fmax(part, part * part) + lost * lost;
	to->high2 += row->error.high2 * fmax(part, part * part) + lost * lost;
	to->below += row->error.below * part;
	to->above += row->error.above * part;
}

bool live_series_peak(const struct live_series *b, struct live_series_peak *ret_peak)
{
	struct live_series_error e = { 0 };
	struct live_series_peak peak = { 0 };
	bool estimated = false;
	struct entry *row, *next;
	uint32_t at = 0;

	for (uint32_t i = 0; i < b->n_times; i++) {
		double sum = b->held[i] > 0 ? b->held[i] : (double)live_series_other(b, NULL, 0, i);

		if (sum > peak.bytes) {
			at = i;
			peak.bytes = sum;
		}
	}
	if (peak.bytes <= 0)
		return false;
	HASH_ITER (hh, b->entries, row, next) {
		estimated |= row->row.error.high2 > 0;
		add_error_at(&row->row, at, &e);
	}
	peak.t_s = b->times[at];
	peak.low = peak.high = peak.bytes;
	peak.held = b->held[at] > 0;
	if (estimated && !peak.held) {
		peak.low = fmax(0, peak.bytes - hypot(sqrt(e.low2), e.below));
		peak.high = peak.bytes + hypot(sqrt(e.high2), e.above);
	}
	*ret_peak = peak;
	return true;
}

/* --- leaks --- */

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

static bool grows(const struct live_series *b, const struct live_series_row *row, double age_s,
		  struct leak *leak)
{
	(void)age_s;
	shape_of(b, row, leak);
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

static bool leaks(const struct live_series *b, const struct live_series_row *row, double age_s,
		  struct leak *leak)
{
	if (!grows(b, row, age_s, leak))
		return false;
	put_survived(b, age_s, leak);
	return leak->survived >= LEAK_SURVIVAL;
}

static bool stopped(const struct live_series *b, const struct live_series_row *row, double age_s,
		    struct leak *leak)
{
	const struct trend_shape *c = &leak->shape;

	shape_of(b, row, leak);
	put_survived(b, age_s, leak);
	return (c->kind == TREND_SHAPE_SETTLED || c->kind == TREND_SHAPE_STEPPED) &&
	       c->changed >= c->matters && (double)row->live >= c->changed * 1024 / 2;
}

static bool by_slope(const struct leak *a, const struct leak *b)
{
	return a->shape.tail.slope > b->shape.tail.slope;
}

static bool by_rise(const struct leak *a, const struct leak *b)
{
	return a->shape.changed > b->shape.changed;
}

/* At most `cap` of those that `is`, in the order of `before`. */
static uint32_t find_rows(const struct live_series *b, double age_s,
			  bool (*is)(const struct live_series *b, const struct live_series_row *row,
				     double age_s, struct leak *leak),
			  bool (*before)(const struct leak *a, const struct leak *b),
			  struct leak *ret, uint32_t cap)
{
	struct entry *e, *next;
	uint32_t n = 0;

	if (b->n_times < TREND_SHAPE_POINTS)
		return 0;
	HASH_ITER (hh, b->entries, e, next) {
		struct leak leak = { 0 };
		uint32_t at;

		/* What is smaller at the end than what matters at all cannot have grown by it. */
		if ((double)e->row.live < least_kb(b) * 1024 || !is(b, &e->row, age_s, &leak))
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
