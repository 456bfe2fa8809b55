#include "analyse/live_fates.h"

#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/*
 * What a class of which little is known borrows: so many ends of its row's, in all and for each age, at the rate of its
 * row; so many addresses taken by anybody who allocates in the class; such a part of one reuse seen in a burst; and
 * the fate of so many blocks of its row. MISSED_ERROR is the error of the share of ends that are missed, about. By trial
 * in simulated programs (tests/unit/analyse/live_heap_estimate.c) and live ones (tests/targets/live_truth.c).
 */
#define ROW_ENDS     2.0
#define ROW_AGE_ENDS 0.2
#define CLASS_NEXT   0.5
#define AGAIN_SEEN   0.3
#define ROW_BLOCKS   100.0
#define MISSED_ERROR 0.1

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
	double alive[LIVE_AGES + 1];
	double blocks[LIVE_AGES],
		known[LIVE_AGES]; /* sums over classes: that live; whose end would be seen */
};

/* What all rows of a class come to: who takes its addresses. */
struct class_fates {
	double unseen[LIVE_AGES + 1], made; /* sums over blocks made */
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
 * hand-outs were seen times `weight` as there were. AGAIN_SEEN of one, in the share of all, comes on top: of a class
 * whose addresses a leak takes, none may have been seen.
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

		all[i].again = (float)((own + AGAIN_SEEN * weight * share) /
				       (own + (double)all[i].gone + AGAIN_SEEN * weight));
	}
}

struct missing {
	double share[LIVE_AGES + 1], sum[LIVE_AGES + 1];
};

/*
 * The probability that a block's end goes unseen for so long: its address was handed out again, which was not seen,
 * and the block that came next was not seen to end either. Who comes next is known from ends that were seen, and
 * CLASS_NEXT times more it is anybody who allocates in the class: where a row leaks, it takes addresses that are not
 * seen to be handed out again, so that ends that were seen do not show it. `ret->sum`: its integral up to each age.
 */
static void missed(const struct live_fates *all, double weight, const struct live_fates *f,
		   const struct class_fates *class, struct missing *ret)
{
	double factor = (double)f->again * (1 - 1 / fmax(weight, 1));
	double n = class->made > 0 ? CLASS_NEXT : 0;

	for (uint32_t i = 0; i < LIVE_NEXT; i++)
		n += f->n_next[i];
	for (uint32_t age = 0; age <= LIVE_AGES; age++) {
		double sum = class->made > 0 ? CLASS_NEXT * class->unseen[age] / class->made : 0;

		for (uint32_t i = 0; i < LIVE_NEXT; i++)
			if (f->n_next[i])
				sum += f->n_next[i] * (double)all[f->next[i]].unseen[age];
		ret->share[age] = n > 0 ? factor * sum / n : 0;
		ret->sum[age] = age ? ret->sum[age - 1] +
						age_width(age - 1) *
							(ret->share[age - 1] + ret->share[age]) / 2
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

/* Of ended blocks, by `alive` of their ages, those that were missed until `age` begins but for the last age's. */
static double missed_before(const struct missing *m, const double *alive, uint32_t age)
{
	double sum = 0, to, from = integral(m->share, m->sum, begins[age]);

	for (uint32_t i = 1; i < age; i++, from = to) {
		to = integral(m->share, m->sum, begins[age] - begins[i]);
		sum += (alive[i - 1] - alive[i]) * (from - to) / age_width(i - 1);
	}
	return sum;
}

static double missed_last(const struct missing *m, uint32_t age)
{
	return integral(m->share, m->sum, age_width(age - 1)) / age_width(age - 1);
}

/*
 * So many blocks says a class how others of that age end: those that were watched, fewer where most ends are
 * missed (`last`), since an error of MISSED_ERROR in what is missed weighs most there.
 */
static double blocks_at(const struct live_fates *f, uint32_t age, double last)
{
	double blocks = (double)f->watched[age - 1] / age_width(age - 1);

	return blocks / (1 + blocks * MISSED_ERROR * MISSED_ERROR / (1 - last));
}

/*
 * Blocks whose end was not seen are those that have not ended, and those that ended at some age and were
 * missed since:
 *
 *   unseen(a) = alive(a) + sum over ages b before a of (alive(b-) - alive(b)) missed(a - b)
 *
 * solved for `alive`, age by age; within an age, they end at any time of it. Of a row, over all its classes: what is
 * missed is each class's own, and a class in which nearly all is missed says next to nothing.
 */
static void solve_rows(const struct live_fates *all, uint32_t n, const struct missing *missing,
		       struct row_fates *rows, uint32_t n_rows)
{
	for (uint32_t i = 0; i < n_rows; i++)
		rows[i].alive[0] = 1;
	for (uint32_t age = 1; age <= LIVE_AGES; age++) {
		for (uint32_t i = 0; i < n; i++) {
			struct row_fates *row = &rows[all[i].row];
			double last = missed_last(&missing[i], age), before = row->alive[age - 1];
			double blocks = blocks_at(&all[i], age, last);

			if (blocks <= 0)
				continue;
			row->blocks[age - 1] +=
				blocks *
				((double)all[i].unseen[age] -
				 missed_before(&missing[i], row->alive, age) - before * last);
			row->known[age - 1] += blocks * (1 - last);
		}
		for (uint32_t i = 0; i < n_rows; i++) {
			double before = rows[i].alive[age - 1], x = before;

			if (rows[i].known[age - 1] > 0)
				x = rows[i].blocks[age - 1] / rows[i].known[age - 1];
			rows[i].alive[age] = fmax(0, fmin(x, before));
		}
	}
}

/*
 * The same of one class: its own blocks, and ROW_BLOCKS of its row's. Where a leak takes most addresses of a class, blocks of
 * others look as if they had never ended there; the row's other classes show that they do.
 */
static void solve(struct live_fates *f, const struct missing *m, const struct row_fates *row)
{
	double alive[LIVE_AGES + 1] = { 1 };

	f->alive[0] = 1;
	for (uint32_t age = 1; age <= LIVE_AGES; age++) {
		double last = missed_last(m, age), blocks = blocks_at(f, age, last);
		double before = alive[age - 1], x = before,
		       rate = row->alive[age - 1] > 0 ? row->alive[age] / row->alive[age - 1] : 0;

		if (blocks > 0)
			x = (blocks * ((double)f->unseen[age] - missed_before(m, alive, age) -
				       before * last) +
			     ROW_BLOCKS * before * rate) /
			    (blocks * (1 - last) + ROW_BLOCKS);
		alive[age] = fmax(0, fmin(x, before));
		f->alive[age] = (float)alive[age];
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

static void sum_classes(const struct live_fates *all, uint32_t n, struct class_fates *classes)
{
	for (uint32_t i = 0; i < n; i++) {
		struct class_fates *class = &classes[all[i].class];
		double made = (double)all[i].made;

		class->made += made;
		for (uint32_t age = 0; age <= LIVE_AGES && made > 0; age++)
			class->unseen[age] += made * (double)all[i].unseen[age];
	}
}

int live_fates_sum(struct live_fates *all, uint32_t n, double weight, uint32_t chance,
		   uint32_t parts)
{
	_cleanup_(freep) struct row_fates *rows = NULL;
	_cleanup_(freep) struct missing *missing = NULL;
	_cleanup_(freep) struct class_fates *classes = NULL;
	uint32_t n_rows = 0, n_classes = 0;

	for (uint32_t i = 0; i < n; i++) {
		n_rows = n_rows > all[i].row ? n_rows : all[i].row + 1;
		n_classes = n_classes > all[i].class ? n_classes : all[i].class + 1;
	}
	rows = calloc((size_t)n_rows + 1, sizeof(*rows));
	missing = calloc((size_t)n + 1, sizeof(*missing));
	classes = calloc((size_t)n_classes + 1, sizeof(*classes));
	if (!rows || !missing || !classes)
		return -ENOMEM;
	sum_rows(all, n, rows);
	for (uint32_t i = 0; i < n; i++)
		sum_unseen(&all[i], &rows[all[i].row], i, chance, parts);
	sum_again(all, n, weight);
	sum_classes(all, n, classes);
	for (uint32_t i = 0; i < n; i++)
		missed(all, weight, &all[i], &classes[all[i].class], &missing[i]);
	solve_rows(all, n, missing, rows, n_rows);
	for (uint32_t i = 0; i < n; i++)
		solve(&all[i], &missing[i], &rows[all[i].row]);
	return 0;
}

double live_fates_ended(const struct live_fates *f, double units)
{
	double unseen = share_at(f->unseen, units);

	return unseen > 0 ? 1 - fmin(1, share_at(f->alive, units) / unseen) : 0;
}
