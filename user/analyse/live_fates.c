#include "analyse/live_fates.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* So many ends of the row at its own rate, in all and for each age, that a class is taken to have had besides its
 * own; and so many addresses that were handed out next as on average of the row. */
#define ROW_ENDS     2.0
#define ROW_AGE_ENDS 0.2
#define ROW_NEXT     0.5

/* Where each age begins, in units: so fine that shares of blocks are about straight lines in between, where
 * addresses come again within a unit as well as after a thousand. */
static const double begins[LIVE_AGES + 1] = {
	0,  0.25, 0.5, 0.75, 1,  1.5, 2,   3,   4,   6,    8,    12,  16,
	24, 32,   48,  64,   96, 128, 192, 256, 512, 1024, 8192, 1e9,
};

/* Which age; and how much of it has passed, in units. */
static uint32_t age_of(double units, double *ret_passed)
{
	uint32_t low = 0, high = LIVE_AGES - 1;

	while (low < high) {
		uint32_t mid = (low + high + 1) / 2;

		if (begins[mid] <= units)
			low = mid;
		else
			high = mid - 1;
	}
	*ret_passed = units - begins[low];
	return low;
}

static double age_width(uint32_t age)
{
	return begins[age + 1] - begins[age];
}

static uint32_t watch(struct live_fates *f, double units, float sign)
{
	double passed;
	uint32_t age = age_of(units, &passed);

	for (uint32_t i = 0; i < age; i++)
		f->watched[i] += sign * (float)age_width(i);
	f->watched[age] += sign * (float)passed;
	return age;
}

void live_fates_watched(struct live_fates *f, double units, int sign)
{
	watch(f, units, (float)sign);
}

void live_fates_seen(struct live_fates *f, double units)
{
	f->ends[watch(f, units, 1)]++;
	f->reused++;
}

/* Counts of the most frequent (Misra and Gries, Sci. Comput. Program. 2, 1982). */
void live_fates_next(struct live_fates *fates, uint32_t next)
{
	uint32_t least = 0;

	for (uint32_t i = 0; i < LIVE_NEXT; i++) {
		if (fates->n_next[i] && fates->next[i] == next) {
			fates->n_next[i]++;
			return;
		}
		if (fates->n_next[i] < fates->n_next[least])
			least = i;
	}
	if (!fates->n_next[least]) {
		fates->next[least] = next;
		fates->n_next[least] = 1;
		return;
	}
	for (uint32_t i = 0; i < LIVE_NEXT; i++)
		fates->n_next[i]--;
}

/* `shares` at begins of ages, in between. */
static double share_at(const float *shares, double units)
{
	double passed;
	uint32_t age = age_of(units, &passed);
	double x = fmin(passed / age_width(age), 1);

	return (double)shares[age] * (1 - x) + (double)shares[age + 1] * x;
}

void live_fates_gone(struct live_fates *f, double from, double to, double part)
{
	double at_from = share_at(f->alive, from), at_to = share_at(f->alive, to);
	double want = at_from - part * (at_from - at_to), low = from, high = to;

	for (int i = 0; i < 20 && at_from - at_to > 1e-3 * at_from; i++) {
		double mid = (low + high) / 2;

		if (share_at(f->alive, mid) > want)
			low = mid;
		else
			high = mid;
	}
	if (low > from || high < to)
		f->ends[watch(f, (low + high) / 2, 1)]++;
	else
		f->ends[watch(f, from + part * (to - from), 1)]++;
	f->gone++;
}

/* What all classes of a row come to. */
struct row_fates {
	double ends[LIVE_AGES], watched[LIVE_AGES];
	double next_unseen[LIVE_AGES + 1], n_next; /* sums over who came next */
};

static double rate_of(const struct row_fates *row, uint32_t age)
{
	return row->watched[age] > 0 ? row->ends[age] / row->watched[age] : 0;
}

/* Ends seen in a unit of time, at that age. `ratio`: how many the class has had, of those that its row lets expect. */
static double hazard_of(const struct live_fates *f, const struct row_fates *row, uint32_t age,
			double ratio)
{
	double prior = ratio * rate_of(row, age);

	if (prior > 0)
		return ((double)f->ends[age] + ROW_AGE_ENDS) /
		       ((double)f->watched[age] + ROW_AGE_ENDS / prior);
	return f->watched[age] > 0 ? (double)f->ends[age] / (double)f->watched[age] : 0;
}

/* Of the normal distribution; the same for the same two. */
static double deviate(uint64_t a, uint64_t b)
{
	uint64_t x = live_mixed(a * 0x9e3779b97f4a7c15ULL + b + 1), y = live_mixed(x + 1);

	return sqrt(-2 * log((double)((x >> 11) + 1) * 0x1p-53)) *
	       cos(2 * M_PI * (double)(y >> 11) * 0x1p-53);
}

static void sum_unseen(struct live_fates *f, const struct row_fates *row, uint64_t no,
		       uint32_t chance, uint32_t parts)
{
	double sum = 0, ends = 0, expected = 0, by = 1;

	for (uint32_t age = 0; age < LIVE_AGES; age++) {
		ends += (double)f->ends[age];
		expected += (double)f->watched[age] * rate_of(row, age);
	}
	if (chance && ends > 0)
		by = fmax(0, 1 + deviate(no, chance - 1) / sqrt(parts * ends));
	f->unseen[0] = 1;
	for (uint32_t age = 0; age < LIVE_AGES; age++) {
		sum += age_width(age) * by *
		       hazard_of(f, row, age, (ends + ROW_ENDS) / (expected + ROW_ENDS));
		f->unseen[age + 1] = (float)exp(-sum);
	}
}

/*
 * Of the addresses of ended blocks, those that were handed out again before a look could find them free: as many
 * hand-outs were seen times `weight` as there were. 2 of the share among all come on top.
 */
static void sum_again(struct live_fates *all, uint32_t n, double weight)
{
	double reused = 0, gone = 0, share;

	for (uint32_t i = 0; i < n; i++) {
		reused += weight * (double)all[i].reused;
		gone += (double)all[i].gone;
	}
	share = reused + gone > 0 ? reused / (reused + gone) : 1;
	for (uint32_t i = 0; i < n; i++) {
		double own = weight * (double)all[i].reused;

		all[i].again = (float)((own + 2 * share) / (own + (double)all[i].gone + 2));
	}
}

/* The probability that a block's end goes unseen for so long: its address was handed out again, which was not seen,
 * and the block that came next was not seen to end either. `ret_sum`: its integral up to each age. */
static void missed(const struct live_fates *all, double weight, const struct live_fates *f,
		   const struct row_fates *row, double ret_share[LIVE_AGES + 1],
		   double ret_sum[LIVE_AGES + 1])
{
	double factor = (double)f->again * (1 - 1 / fmax(weight, 1));
	double n = row->n_next > 0 ? ROW_NEXT : 0;

	for (uint32_t i = 0; i < LIVE_NEXT; i++)
		n += f->n_next[i];
	for (uint32_t age = 0; age <= LIVE_AGES; age++) {
		double sum = row->n_next > 0 ? ROW_NEXT * row->next_unseen[age] / row->n_next : 0;

		for (uint32_t i = 0; i < LIVE_NEXT; i++)
			if (f->n_next[i])
				sum += f->n_next[i] * (double)all[f->next[i]].unseen[age];
		ret_share[age] = n > 0 ? factor * sum / n : 0;
		ret_sum[age] =
			age ? ret_sum[age - 1] + age_width(age - 1) *
							 (ret_share[age - 1] + ret_share[age]) / 2
			    : 0;
	}
}

/* The integral up to `units`. */
static double integral(const double *share, const double *sum, double units)
{
	double passed;
	uint32_t age = age_of(units, &passed);

	return sum[age] +
	       passed * (share[age] + (share[age + 1] - share[age]) * passed / age_width(age) / 2);
}

/*
 * Blocks whose end was not seen are those that have not ended, and those that ended at some age and were
 * missed since:
 *
 *   unseen(a) = alive(a) + sum over ages b before a of (alive(b-) - alive(b)) missed(a - b)
 *
 * solved for `alive`, age by age; within an age, they end at any time of it.
 */
static void solve(const struct live_fates *all, double weight, struct live_fates *f,
		  const struct row_fates *row)
{
	double share[LIVE_AGES + 1], sums[LIVE_AGES + 1];

	missed(all, weight, f, row, share, sums);
	f->alive[0] = 1;
	for (uint32_t age = 1; age <= LIVE_AGES; age++) {
		double sum = 0, last, before = (double)f->alive[age - 1], x;

		if (f->watched[age - 1] <= 0) { /* no block is so old */
			f->alive[age] = f->alive[age - 1];
			continue;
		}
		for (uint32_t i = 1; i < age; i++)
			sum += (double)(f->alive[i - 1] - f->alive[i]) *
			       (integral(share, sums, begins[age] - begins[i - 1]) -
				integral(share, sums, begins[age] - begins[i])) /
			       age_width(i - 1);
		last = integral(share, sums, age_width(age - 1)) / age_width(age - 1);
		x = ((double)f->unseen[age] - sum - before * last) / (1 - last);
		f->alive[age] = (float)fmax(0, fmin(x, before));
	}
}

uint64_t live_mixed(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static void sum_rows(const struct live_fates *all, uint32_t n, struct row_fates *rows)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t age = 0; age < LIVE_AGES; age++) {
			rows[all[i].row].ends[age] += (double)all[i].ends[age];
			rows[all[i].row].watched[age] += (double)all[i].watched[age];
		}
}

static void sum_next(const struct live_fates *all, uint32_t n, struct row_fates *rows)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < LIVE_NEXT; k++) {
			struct row_fates *row = &rows[all[i].row];
			double times = all[i].n_next[k];

			row->n_next += times;
			for (uint32_t age = 0; age <= LIVE_AGES && times > 0; age++)
				row->next_unseen[age] +=
					times * (double)all[all[i].next[k]].unseen[age];
		}
}

int live_fates_sum(struct live_fates *all, uint32_t n, double weight, uint32_t chance,
		   uint32_t parts)
{
	_cleanup_(freep) struct row_fates *rows = NULL;
	uint32_t n_rows = 0;

	for (uint32_t i = 0; i < n; i++)
		if (n_rows <= all[i].row)
			n_rows = all[i].row + 1;
	rows = calloc((size_t)n_rows + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	sum_rows(all, n, rows);
	for (uint32_t i = 0; i < n; i++)
		sum_unseen(&all[i], &rows[all[i].row], i, chance, parts);
	sum_again(all, n, weight);
	sum_next(all, n, rows);
	for (uint32_t i = 0; i < n; i++)
		solve(all, weight, &all[i], &rows[all[i].row]);
	return 0;
}

double live_fates_ended(const struct live_fates *f, double units)
{
	double unseen = share_at(f->unseen, units);

	return unseen > 0 ? 1 - fmin(1, share_at(f->alive, units) / unseen) : 0;
}
