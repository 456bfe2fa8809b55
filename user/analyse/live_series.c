#include "analyse/live_series_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	for (struct live_series_entry *e = b->entries; e; e = e->hh.next)
		free(e->ages);
	hash_free(b->entries);
	free(b);
}

static struct live_series_entry *find_entry(const struct live_series *b, uint32_t image,
					    stack_id stack)
{
	struct live_series_entry *e, key = { .key = { image, stack.ix } };

	HASH_FIND(hh, b->entries, &key.key, sizeof(key.key), e);
	return e;
}

static struct live_series_row *find(const struct live_series *b, uint32_t image, stack_id stack)
{
	struct live_series_entry *e = find_entry(b, image, stack);

	return e ? &e->row : NULL;
}

/* Its series becomes part of OTHER's. */
static void move_to_other(struct live_series *b, struct live_series_entry *e)
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
	free(e->ages);
	free(e);
	b->n--;
}

static int add_row(struct live_series *b, uint32_t image, stack_id stack, bool allocates,
		   struct live_series_row **ret_row)
{
	struct live_series_entry *e, key = { .key = { image, stack.ix } };

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
	struct live_series_entry *e, *next;

	HASH_ITER (hh, b->entries, e, next)
		if (e->row.image == image)
			e->row.live = 0;
}

/* Every other moment goes. */
static void thin(struct live_series *b)
{
	struct live_series_entry *e, *next;

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
	const struct live_series_row *x = &(*(struct live_series_entry *const *)a)->row,
				     *y = &(*(struct live_series_entry *const *)b)->row;

	if (x->live != y->live)
		return x->live < y->live ? -1 : 1;
	return (x->stack.ix > y->stack.ix) - (x->stack.ix < y->stack.ix);
}

/* Who makes room for new ones until the next tick: those that are new themselves have had one to grow. */
static void find_spare(struct live_series *b)
{
	struct live_series_entry *all[LIVE_SERIES_MAX], *e, *next;
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
	struct live_series_entry *e, *next;
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

bool live_series_held_grew(const struct live_series *b, double *ret_bytes)
{
	if (!b->n_times || b->held[0] <= 0)
		return false;
	*ret_bytes = b->held_now - b->held[0];
	return true;
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

void live_series_by_age(struct live_series *b)
{
	b->by_age = true;
}

int live_series_survival(struct live_series *b, uint32_t image, stack_id stack,
			 const struct survival *ages)
{
	struct live_series_entry *e = find_entry(b, image, stack);

	if (!e)
		return 0;
	if (!e->ages)
		e->ages = calloc(1, sizeof(*e->ages));
	if (!e->ages)
		return -ENOMEM;
	survival_add(e->ages, ages);
	return 0;
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

	for (const struct live_series_entry *e = b->entries; e; e = e->hh.next)
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

	for (struct live_series_entry *e = b->entries; e; e = e->hh.next) {
		e->row.bytes[i] = (int64_t)fmin((double)e->row.bytes[i], b->held[i]);
		sum[e->shrunk] += fmax(0, (double)e->row.bytes[i]);
	}
	if (sum[0] + sum[1] <= b->held[i])
		return;
	part[1] = sum[1] > 0 ? fmax(0, b->held[i] - sum[0]) / sum[1] : 0;
	part[0] = sum[0] > 0 ? fmin(1, b->held[i] / sum[0]) : 0;
	for (struct live_series_entry *e = b->entries; e; e = e->hh.next)
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

	for (struct live_series_entry *e = b->entries; e; e = e->hh.next) {
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
	for (struct live_series_entry *e = b->entries; e; e = e->hh.next)
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
	struct live_series_entry *e, *next;
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
	struct live_series_entry *e, *next;

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
	struct live_series_entry *row, *next;
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
