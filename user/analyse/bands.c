#include "analyse/bands.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	struct {
		uint32_t image, stack;
	} key;
	struct band band;
	UT_hash_handle hh;
};

struct bands {
	struct entry *entries;
	uint32_t n;
	struct band other;
	double times[BANDS_TICKS];
	uint32_t n_times, stride;
	uint64_t ticks;
};

struct bands *bands_new(void)
{
	struct bands *b = calloc(1, sizeof(*b));

	if (b)
		b->stride = 1;
	return b;
}

void bands_free(struct bands *b)
{
	if (!b)
		return;
	hash_free(b->entries);
	free(b);
}

static struct band *find(const struct bands *b, uint32_t image, stack_id stack)
{
	struct entry *e, key = { .key = { image, stack.ix } };

	HASH_FIND(hh, b->entries, &key.key, sizeof(key.key), e);
	return e ? &e->band : NULL;
}

static int add_band(struct bands *b, uint32_t image, stack_id stack, struct band **ret_band)
{
	struct entry *e, key = { .key = { image, stack.ix } };

	if (b->n == BANDS_MAX) {
		*ret_band = &b->other;
		return 0;
	}
	e = hash_new(b->entries, key, &key.key);
	if (!e)
		return -ENOMEM;
	e->band.image = image;
	e->band.stack = stack;
	b->n++;
	*ret_band = &e->band;
	return 0;
}

int bands_add(struct bands *b, uint32_t image, stack_id stack, int64_t blocks, int64_t bytes)
{
	struct band *band = find(b, image, stack);
	int r = band ? 0 : add_band(b, image, stack, &band);

	if (r < 0)
		return r;
	band->live += bytes;
	if (blocks > 0)
		band->made += (uint64_t)blocks;
	return 0;
}

void bands_drop(struct bands *b, uint32_t image)
{
	struct entry *e, *next;

	HASH_ITER (hh, b->entries, e, next)
		if (e->band.image == image)
			e->band.live = 0;
}

/* Every other moment goes. */
static void thin(struct bands *b)
{
	struct entry *e, *next;

	for (uint32_t i = 0; i < BANDS_TICKS / 2; i++) {
		b->times[i] = b->times[2 * i];
		b->other.bytes[i] = b->other.bytes[2 * i];
	}
	HASH_ITER (hh, b->entries, e, next) {
		for (uint32_t i = 0; i < BANDS_TICKS / 2; i++) {
			e->band.bytes[i] = e->band.bytes[2 * i];
			e->band.made_by[i] = e->band.made_by[2 * i];
		}
	}
	b->n_times = BANDS_TICKS / 2;
	b->stride *= 2;
}

static void note(struct band *band, uint32_t at)
{
	band->bytes[at] = band->live;
	band->made_by[at] = band->made;
}

void bands_tick(struct bands *b, double t_s)
{
	struct entry *e, *next;
	bool kept = b->ticks++ % b->stride == 0;

	if (kept && b->n_times == BANDS_TICKS) {
		thin(b);
		kept = (b->ticks - 1) % b->stride == 0;
	}
	HASH_ITER (hh, b->entries, e, next) {
		e->band.area += (double)e->band.live;
		if (kept)
			note(&e->band, b->n_times);
	}
	if (kept) {
		note(&b->other, b->n_times);
		b->times[b->n_times++] = t_s;
	}
}

void bands_old(struct bands *b, uint32_t image, stack_id stack)
{
	struct band *band = find(b, image, stack);

	if (band)
		band->old++;
}

uint32_t bands_times(const struct bands *b, const double **ret_times)
{
	*ret_times = b->times;
	return b->n_times;
}

static int by_area(const void *a, const void *b)
{
	const struct band *x = *(const struct band *const *)a, *y = *(const struct band *const *)b;

	if (x->area != y->area)
		return x->area < y->area ? 1 : -1;
	return (x->stack.ix > y->stack.ix) - (x->stack.ix < y->stack.ix);
}

uint32_t bands_rank(const struct bands *b, const struct band **ret_bands, uint32_t cap)
{
	const struct band *all[BANDS_MAX];
	struct entry *e, *next;
	uint32_t n = 0;

	HASH_ITER (hh, b->entries, e, next)
		if (e->band.area > 0)
			all[n++] = &e->band;
	qsort(all, n, sizeof(all[0]), by_area);
	if (n > cap)
		n = cap;
	memcpy(ret_bands, all, n * sizeof(all[0]));
	return n;
}

int64_t bands_other(const struct bands *b, const struct band *const *shown, uint32_t n, uint32_t i)
{
	int64_t sum = b->other.bytes[i];
	struct entry *e, *next;

	HASH_ITER (hh, b->entries, e, next)
		sum += e->band.bytes[i];
	for (uint32_t k = 0; k < n; k++)
		sum -= shown[k]->bytes[i];
	return sum;
}

/* --- leaks --- */

/* How many blocks had been made `age_s` before the last moment. */
static double made_before(const struct bands *b, const struct band *band, double age_s)
{
	double t = b->times[b->n_times - 1] - age_s;

	for (uint32_t i = 1; i < b->n_times; i++) {
		double width = b->times[i] - b->times[i - 1], x;

		if (b->times[i] < t || width <= 0)
			continue;
		x = t <= b->times[i - 1] ? 0 : (t - b->times[i - 1]) / width;
		return (double)band->made_by[i - 1] +
		       x * (double)(band->made_by[i] - band->made_by[i - 1]);
	}
	return 0;
}

static bool judge(const struct bands *b, const struct band *band, double age_s, struct leak *leak)
{
	struct point p[BANDS_TICKS];
	double made;

	for (uint32_t i = 0; i < b->n_times; i++)
		p[i] = (struct point){ b->times[i], (double)band->bytes[i] / 1024 };
	course_of(p, b->n_times, &leak->course);
	if (leak->course.kind != COURSE_GROWING)
		return false;
	made = made_before(b, band, age_s);
	leak->band = band;
	leak->age_s = age_s;
	leak->survived = made > 0 ? (double)band->old / made : 0;
	if (leak->survived > 1)
		leak->survived = 1; /* between two ticks */
	return leak->survived >= LEAK_SURVIVAL;
}

uint32_t bands_leaks(const struct bands *b, double age_s, struct leak *ret_leaks, uint32_t cap)
{
	struct entry *e, *next;
	uint32_t n = 0;

	if (b->n_times < COURSE_POINTS)
		return 0;
	HASH_ITER (hh, b->entries, e, next) {
		struct leak leak;
		uint32_t at;

		/* What is smaller at the end than what matters at all cannot have grown by it. */
		if (e->band.live < COURSE_MIN_KB * 1024 || !judge(b, &e->band, age_s, &leak))
			continue;
		for (at = n; at > 0 && ret_leaks[at - 1].course.tail.slope < leak.course.tail.slope;
		     at--)
			if (at < cap)
				ret_leaks[at] = ret_leaks[at - 1];
		if (at < cap)
			ret_leaks[at] = leak;
		if (n < cap)
			n++;
	}
	return n;
}
