#include "analyse/live_fates.h"

#include <math.h>

/* Which age; and how much of it has passed, in units. */
static uint32_t age_of(double units, double *ret_passed)
{
	uint32_t age = 0;
	double from = 0, width = 1;

	while (age + 1 < LIVE_AGES && units >= from + width) {
		from += width;
		width = age ? 2 * width : 1;
		age++;
	}
	*ret_passed = units - from;
	return age;
}

static double age_width(uint32_t age)
{
	return age < 2 ? 1 : (double)(1u << (age - 1));
}

static double age_begin(uint32_t age)
{
	return age < 2 ? age : (double)(1u << (age - 1));
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
}

/* Counts of the most frequent (Misra and
 * Gries, Sci. Comput. Program. 2, 1982). */
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

/* The probability that a block's end went unseen for so long: it was not seen when its address was handed
 * out again, and the block that came next was not seen to end either. */
static double missed(const struct live_fates *rows, double weight, const struct live_fates *fates,
		     double units)
{
	double sum = 0, n = 0;

	for (uint32_t i = 0; i < LIVE_NEXT; i++) {
		if (!fates->n_next[i])
			continue;
		n += fates->n_next[i];
		sum += fates->n_next[i] * share_at(rows[fates->next[i]].unseen, units);
	}
	return n > 0 ? (1 - 1 / fmax(weight, 1)) * sum / n : 0;
}

/*
 * Blocks whose end was not seen are those that have not ended, and those that ended at some age and were
 * missed since:
 *
 *   unseen(a) = alive(a) + sum over ages b before a of (alive(b-) - alive(b)) missed(a - b)
 *
 * solved for `alive`, age by age.
 */
static void solve(const struct live_fates *rows, double weight, struct live_fates *fates)
{
	fates->alive[0] = 1;
	for (uint32_t age = 1; age <= LIVE_AGES; age++) {
		double at = age_begin(age), sum = 0, last, before = (double)fates->alive[age - 1],
		       x;

		if (fates->watched[age - 1] <= 0) { /* no block is so old */
			fates->alive[age] = fates->alive[age - 1];
			continue;
		}
		for (uint32_t i = 1; i < age; i++)
			sum += (double)(fates->alive[i - 1] - fates->alive[i]) *
			       missed(rows, weight, fates,
				      at - age_begin(i - 1) - age_width(i - 1) / 2);
		last = missed(rows, weight, fates, age_width(age - 1) / 2);
		x = ((double)fates->unseen[age] - sum - before * last) / (1 - last);
		fates->alive[age] = (float)fmax(0, fmin(x, before));
	}
}

uint64_t live_mixed(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* Of the normal distribution; the same for the same two. */
static double deviate(uint64_t a, uint64_t b)
{
	uint64_t x = live_mixed(a * 0x9e3779b97f4a7c15ULL + b + 1), y = live_mixed(x + 1);

	return sqrt(-2 * log((double)((x >> 11) + 1) * 0x1p-53)) *
	       cos(2 * M_PI * (double)(y >> 11) * 0x1p-53);
}

void live_fates_sum(struct live_fates *rows, uint32_t n, double weight, uint32_t chance,
		    uint32_t parts)
{
	for (uint32_t row = 0; row < n; row++) {
		struct live_fates *f = &rows[row];
		double sum = 0, ends = 0, by = 1;

		for (uint32_t age = 0; age < LIVE_AGES; age++)
			ends += (double)f->ends[age];
		if (chance && ends > 0)
			by = fmax(0, 1 + deviate(row, chance - 1) / sqrt(parts * ends));
		f->unseen[0] = 1;
		for (uint32_t age = 0; age < LIVE_AGES; age++) {
			if (f->watched[age] > 0)
				sum += (double)f->ends[age] / (double)f->watched[age] *
				       age_width(age) * by;
			f->unseen[age + 1] = (float)exp(-sum);
		}
	}
	for (uint32_t row = 0; row < n; row++)
		solve(rows, weight, &rows[row]);
}

double live_fates_ended(const struct live_fates *f, double units)
{
	double unseen = share_at(f->unseen, units);

	return unseen > 0 ? 1 - fmin(1, share_at(f->alive, units) / unseen) : 0;
}
