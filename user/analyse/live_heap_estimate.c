/*
 * live_heap_estimate(): sums over the blocks that are kept, their division among rows, and the same without each group.
 */
#include "analyse/live_heap_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	FULL = LIVE_GROUPS + 1, /* which estimate: of all groups, or without one                */
	POOL = 32,     /* blocks in use, and ends, that a pool of classes has at least      */
	FIT_STEPS = 6, /* halvings of a factor's logarithm                                 */
	FIT_ERRORS = 3,
};

/* The relative error of how what was reused is divided among the rows of a pool, in simulated programs. */
#define MODEL 0.05

/*
 * The same of what a row then has, in real programs: where a leak has nearly all of its class, and all groups of bursts agree
 * that it has all, it was 1 to 10 % too large in eight runs of tests/targets/live_truth.c (busy machine, 1.5 s).
 */
#define MODEL_LIVE 0.05
#define NEARLY_ALL 0.8

static struct cell *cell_of(struct live_heap *h, uint32_t row, uint32_t class)
{
	struct cell like = { .key = { row, class } }, *c;

	HASH_FIND(hh, h->cells, &like.key, sizeof(like.key), c);
	if (c)
		return c;
	c = hash_new(h->cells, key, &like.key);
	if (c) {
		c->next = h->by_class[class];
		h->by_class[class] = c;
	}
	return c;
}

static uint32_t group_of(const struct live_heap *h, uint32_t row, uint32_t burst, double weight)
{
	(void)h;
	if (row == LIVE_BEFORE && weight <= 1)
		return LIVE_NO_GROUP;
	return (uint32_t)(live_mixed(burst) % LIVE_GROUPS);
}

/* Ends whose weights are known by now become sums. */
static int settle_ends(struct live_heap *h)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < h->n_ended; i++) {
		const struct ended e = h->ended[i];
		double w = e.row == LIVE_BEFORE ? 1 : live_heap_weight_of(h, e.burst, e.thread);
		struct cell *c;

		if (w <= 0) {
			h->ended[left++] = e;
			continue;
		}
		if (e.before)
			continue;
		w *= (double)e.mult;
		c = cell_of(h, e.row, e.class);
		if (!c)
			return -ENOMEM;
		c->n_ends++;
		c->ends += w;
	}
	h->n_ended = left;
	return 0;
}

static int sum_in_use(struct live_heap *h)
{
	double mean = live_heap_mean_weight(h);
	struct cell *c;
	struct kept *k;

	for (c = h->cells; c; c = c->hh.next) {
		memset(c->in_use, 0, sizeof(c->in_use));
		memset(c->bytes, 0, sizeof(c->bytes));
		c->blocks = c->old = c->plain = 0;
		c->v = c->vc = 0;
		c->seen = 0;
	}
	for (k = h->kept; k; k = k->hh.next) {
		double w = (double)k->weight, size = (double)k->size, x;
		uint32_t g;

		if (w <= 0)
			k->weight = (float)(w = live_heap_weight_of(h, k->burst, k->thread));
		if (w <= 0)
			w = mean;
		if (k->born_ns > h->at_ns)
			continue;
		if (k->row != LIVE_BEFORE)
			w = fmax(1, w * h->scale) * live_heap_kept_for(h, k->size);
		c = cell_of(h, k->row, live_class_of(k->usable));
		if (!c)
			return -ENOMEM;
		g = group_of(h, k->row, k->burst, w);
		x = w * size;
		c->in_use[g] += w * 8 * k->usable;
		c->blocks += w;
		c->plain += k->row == LIVE_BEFORE
				    ? x
				    : size * (double)k->then * live_heap_kept_for(h, k->size);
		c->bytes[g] += x;
		if (h->at_ns - k->born_ns >= h->age_ns)
			c->old += k->row == LIVE_BEFORE ? w : live_heap_kept_for(h, k->size);
		c->seen++;
		if (g != LIVE_NO_GROUP) {
			c->v += x * (x - size);
			c->vc += x * (x - size) * (x - size / 2);
		}
	}
	return 0;
}

/* Over all groups, or all but one: scaled up, for the others stand for it too. */
static double sum_of(const double *groups, uint32_t without)
{
	double sum = 0;

	for (uint32_t g = 0; g < LIVE_GROUPS; g++)
		if (g != without)
			sum += groups[g];
	if (without < LIVE_GROUPS)
		sum *= (double)LIVE_GROUPS / (LIVE_GROUPS - 1);
	return sum + groups[LIVE_NO_GROUP];
}

/* What a row's cell comes to, of what the row comes to in its pool. */
static void add_cell(struct live_heap *h, const struct cell *c, const struct live_share *s,
		     uint32_t without, double ended)
{
	struct live_estimate *est = &h->rows[c->key.row];
	double bytes = sum_of(c->bytes, without);
	double part = s->in_use > 0 ? s->live / s->in_use : 0;
	double lives = s->in_use > 0 ? s->not_reused / s->in_use : 0; /* of what was seen of it */

	bytes *= part;
	if (without < LIVE_GROUPS) {
		est->without[without] += bytes;
		return;
	}
	est->seen += c->seen;
	est->blocks += c->blocks * part;
	est->plain += c->plain * lives;
	est->bytes += bytes;
	est->v += c->v;
	est->vc += c->vc;
	est->ends += c->ends;
	est->power += (double)c->seen * ended;
	est->old_blocks += c->old * lives;
}

/*
 * What leaving out groups does not show, of the variance of a pool's rows. What is taken in all is known; of whom
 * is not. Of blocks that are all known (BEFORE), it is chance which of them have ended. A row whose blocks end may have a
 * block more or less that lives, and all groups agree on none where it has few. What these have more, others have less.
 */
static void add_model(struct live_heap *h, uint32_t n, double in_use, double reused)
{
	double known = 0, others = 0, least = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct live_share *s = &h->shares[i];

		if (s->row == LIVE_BEFORE)
			known += h->sampled ? 0 : s->chance;
		else
			others += s->chance + s->unsure;
		s->least = fmax(0, s->one - s->chance - s->unsure);
		least += s->least;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct live_share *s = &h->shares[i];
		double v = pow(MODEL * fmin(s->reused, reused - s->reused), 2);

		if (reused > 0 && s->row != LIVE_BEFORE && s->live > NEARLY_ALL * in_use)
			v += pow(MODEL_LIVE * s->live, 2);
		if (s->row == LIVE_BEFORE)
			v += known;
		else if (others > 0)
			v += (known + least - s->least) * pow((s->chance + s->unsure) / others, 2);
		v += s->least;
		h->rows[s->row].most += in_use;
		if (s->in_use > 0)
			h->rows[s->row].model += v * pow(s->bytes / s->in_use, 2);
	}
}

/* What is in use in the pool, and not of BEFORE, against what its rows come to. */
static void fit_weights(struct live_heap *h, uint32_t n, double in_use)
{
	double own = 0, reused = 0, one = 0, v = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct live_share *s = &h->shares[i];

		if (s->row == LIVE_BEFORE) {
			in_use -= s->live;
			continue;
		}
		own += s->live;
		reused += s->reused;
		one = fmax(one, s->one);
		v += s->chance + s->unsure;
	}
	v += one + pow(MODEL * reused, 2);
	if (own <= 0 || v <= 0)
		return;
	h->fit.left += (in_use - own) * own / v;
	h->fit.v += own * own / v;
}

/* The classes from `from` to before `end` together, of all groups or without one. */
static void estimate_pool(struct live_heap *h, uint32_t from, uint32_t end, uint32_t without)
{
	struct live_share *shares = h->shares;
	double live = 0, ends = 0, blocks = 0, in_use = 0, reused = 0;
	uint32_t n = 0;

	for (uint32_t class = from; class < end; class ++) {
		in_use += h->in_use[class];
		for (struct cell *c = h->by_class[class]; c; c = c->next) {
			uint32_t at = h->share_of[c->key.row];

			if (at >= n || shares[at].row != c->key.row) {
				at = h->share_of[c->key.row] = n++;
				shares[at] = (struct live_share){ .row = c->key.row };
			}
			shares[at].in_use += sum_of(c->in_use, without);
			shares[at].reused += c->reused;
			shares[at].chance += c->chance;
			shares[at].unsure += c->unsure;
			shares[at].one = fmax(shares[at].one, c->one);
			shares[at].bytes += sum_of(c->bytes, without);
			ends += c->ends;
			blocks += c->blocks;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		shares[i].live = shares[i].in_use - shares[i].reused;
		live += shares[i].live;
		reused += shares[i].reused;
	}
	if (without == FULL)
		fit_weights(h, n, in_use);
	live_divide(shares, n, live - in_use);
	if (without == FULL)
		add_model(h, n, in_use, reused);
	for (uint32_t class = from; class < end; class ++)
		for (struct cell *c = h->by_class[class]; c; c = c->next)
			add_cell(h, c, &shares[h->share_of[c->key.row]], without,
				 ends + blocks > 0 ? ends / (ends + blocks) : 0);
}

/* How far a pool that begins with class `from` goes: until chance no longer decides what it says. */
static uint32_t pool_end(const struct live_heap *h, uint32_t from)
{
	uint64_t seen = 0, ends = 0, rest = 0;
	uint32_t class = from, end;

	for (; class < LIVE_CLASSES && (seen < POOL || ends < POOL); class ++)
		for (const struct cell *c = h->by_class[class]; c; c = c->next) {
			seen += c->seen;
			ends += c->n_ends;
		}
	end = class;
	for (; class < LIVE_CLASSES; class ++)
		for (const struct cell *c = h->by_class[class]; c; c = c->next)
			rest += c->seen < c->n_ends ? c->seen : c->n_ends;
	return rest < POOL ? LIVE_CLASSES : end;
}

static int sum_fates(struct live_heap *h, uint32_t without)
{
	const struct kept *k;
	int r = 0;

	for (k = h->kept; k; k = k->hh.next) {
		struct live_fates *f = live_heap_fates_of(h, k);

		if (!f)
			return -ENOMEM;
		live_fates_watched(f, live_heap_units_of(h, k, h->at_ns), 1);
	}
	/* Each group has its part of the chance in how many ends were seen. */
	r = live_fates_sum(h->fates, h->n_fates, fmax(1, live_heap_mean_weight(h) * h->scale),
			   without < LIVE_GROUPS ? without + 1 : 0, LIVE_GROUPS - 1);
	for (k = h->kept; k; k = k->hh.next)
		live_fates_watched(live_heap_fates_of(h, k), live_heap_units_of(h, k, h->at_ns),
				   -1);
	return r;
}

/*
 * Which of those in use are others', over all groups or all but one. A block of which no end was seen, which
 * has ended with the probability p and stands for w, adds w (1 - p) to the estimate, and to what there is
 * 1 - p on average, and so do the w - 1 that it stands for: hence the variances.
 */
static int sum_reused(struct live_heap *h, uint32_t without)
{
	double scale = without < LIVE_GROUPS ? (double)LIVE_GROUPS / (LIVE_GROUPS - 1) : 1;
	double mean = live_heap_mean_weight(h);
	struct cell *c;

	if (sum_fates(h, without) < 0)
		return -ENOMEM;
	for (c = h->cells; c; c = c->hh.next)
		c->reused = c->chance = c->unsure = c->one = 0;
	for (const struct kept *k = h->kept; k; k = k->hh.next) {
		double w = k->weight > 0 ? (double)k->weight : mean, p, size = 8.0 * k->usable;
		uint32_t g;

		if (k->born_ns > h->at_ns)
			continue;
		if (k->row != LIVE_BEFORE)
			w = fmax(1, w * h->scale) * live_heap_kept_for(h, k->size);
		g = group_of(h, k->row, k->burst, w);
		if (g == without)
			continue;
		p = live_fates_ended(live_heap_fates_of(h, k), live_heap_units_of(h, k, h->at_ns));
		c = cell_of(h, k->row, live_class_of(k->usable));
		if (!c)
			return -ENOMEM;
		c->reused += w * size * p * (g < LIVE_GROUPS ? scale : 1);
		if (p > 0 && k->row != LIVE_BEFORE)
			c->one = fmax(c->one, w * w * size * size);
		c->unsure += w * w * size * size * p * (1 - p);
		c->chance +=
			size * size * fmax(0, (1 - p) * (1 - p) * (w * w - 2 * w) + w * (1 - p));
	}
	return 0;
}

static int estimate_all(struct live_heap *h, uint32_t without)
{
	if (sum_reused(h, without) < 0)
		return -ENOMEM;
	for (uint32_t from = 0, end; from < LIVE_CLASSES; from = end) {
		end = pool_end(h, from);
		estimate_pool(h, from, end, without);
	}
	return 0;
}

int live_heap_estimate(struct live_heap *h, bool intervals)
{
	if (settle_ends(h) < 0 || sum_in_use(h) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->n_rows; i++)
		h->rows[i] = (struct live_estimate){ 0 };
	for (uint32_t g = intervals ? 0 : FULL; g <= FULL; g++)
		if (g != LIVE_NO_GROUP && estimate_all(h, g) < 0)
			return -ENOMEM;
	for (uint32_t i = 0; i < h->n_rows; i++)
		h->rows[i].if_low = h->rows[i].if_high = h->rows[i].bytes;
	hash_free(h->settled); /* whoever waited for one has it */
	h->facts.blocks = HASH_COUNT(h->kept);
	h->facts.threshold = h->threshold;
	return 0;
}

/* What rows would come to, into bytes[]. */
static int estimate_scaled(struct live_heap *h, double scale, double *ret_bytes)
{
	int r;

	for (uint32_t i = 0; i < h->n_rows; i++)
		h->rows[i] = (struct live_estimate){ 0 };
	h->scale = scale;
	r = sum_in_use(h);
	r = r < 0 ? r : estimate_all(h, FULL);
	h->scale = 1;
	for (uint32_t i = 0; i < h->n_rows; i++)
		ret_bytes[i] = h->rows[i].bytes;
	return r;
}

/* By how many standard errors what is in use is more than all rows, with such weights. */
static int surplus(struct live_heap *h, double scale, double *bytes, double *ret_errors)
{
	int r;

	h->fit.left = h->fit.v = 0;
	r = estimate_scaled(h, scale, bytes);
	*ret_errors = h->fit.v > 0 ? h->fit.left / sqrt(h->fit.v) : 0;
	return r;
}

/*
 * From 1 towards `to`: the last scale of weights whose rows add up to what is in use, within FIT_ERRORS standard errors.
 * The smaller weights are, the less they come to.
 */
static int scale_that_fits(struct live_heap *h, double to, double *bytes, double *ret_scale)
{
	double fits = 1, sign = to < 1 ? 1 : -1, errors;
	int r = surplus(h, to, bytes, &errors);

	for (int i = 0; r == 0 && i < FIT_STEPS && (i > 0 || errors * sign > FIT_ERRORS); i++) {
		double between = sqrt(fits * to);

		r = surplus(h, between, bytes, &errors);
		if (errors * sign > FIT_ERRORS)
			to = between;
		else
			fits = between;
	}
	*ret_scale = to;
	return r;
}

int live_heap_weights_may_be(struct live_heap *h, double low, double high)
{
	_cleanup_(freep) struct live_estimate *rows = calloc(h->n_rows + 1ul, sizeof(*rows));
	_cleanup_(freep) double *lows = calloc(h->n_rows + 1ul, sizeof(*lows));
	_cleanup_(freep) double *highs = calloc(h->n_rows + 1ul, sizeof(*highs));
	int r;

	if (!rows || !lows || !highs)
		return -ENOMEM;
	if (h->n_rows)
		memcpy(rows, h->rows, h->n_rows * sizeof(*rows));
	r = scale_that_fits(h, low, lows, &low);
	r = r < 0 ? r : scale_that_fits(h, high, highs, &high);
	r = r < 0 ? r : estimate_scaled(h, low, lows);
	r = r < 0 ? r : estimate_scaled(h, high, highs);
	for (uint32_t i = 0; i < h->n_rows; i++) {
		h->rows[i] = rows[i];
		h->rows[i].if_low = lows[i];
		h->rows[i].if_high = highs[i];
	}
	return r;
}
