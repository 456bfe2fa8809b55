#include "import/censuses.h"

#include "base/grow.h"
#include "base/hash.h"
#include "model/about.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { MEAN, PEAK, LAST, AREA, N_CENSUS_TYPES, SAMPLES = N_CENSUS_TYPES, CPU, N_TYPES };

static const struct value_type types[N_TYPES] = {
	[MEAN] = { "mean_space", "bytes" },  [PEAK] = { "peak_space", "bytes" },
	[LAST] = { "inuse_space", "bytes" }, [AREA] = { "space_time", "byte-milliseconds" },
	[SAMPLES] = { "samples", "count" },  [CPU] = { "cpu", "nanoseconds" },
};

/* However far apart two censuses are, or say that they are. */
enum { BINS_MAX = 1 << 16 };

struct census_part {
	uint64_t key;
	uint32_t ix;
	bool held;         /* among censuses.held                                              */
	int64_t now, last; /* in the open census, and in the one before it                   */
	int64_t peak;      /* in the census of peak_census                                   */
	uint64_t peak_census;
	int64_t ticks;
	long double area;   /* byte × ms, below the line so far                               */
	int64_t area_given; /* of it, what bins have                                          */
	UT_hash_handle hh;
};

void censuses_init(struct censuses *l, uint64_t bin_ns)
{
	*l = (struct censuses){ .bin_ns = bin_ns ? bin_ns : SAMPLE_TIMES_FINE_NS };
}

void censuses_fini(struct censuses *l)
{
	hash_free(l->parts);
	free(l->order);
	free(l->held);
	sample_times_free(l->times);
}

static struct census_part *part_of(struct censuses *l, uint64_t key)
{
	struct census_part *p;

	HASH_FIND(hh, l->parts, &key, sizeof(key), p);
	if (p)
		return p;
	if (!GROW(l->order, l->n, l->cap) || !(p = hash_new(l->parts, key, &key)))
		return NULL;
	p->ix = l->n;
	p->peak_census = UINT64_MAX;
	l->order[l->n++] = p;
	return p;
}

static int times_make(struct censuses *l)
{
	static const uint32_t both[] = { 0, 1 };

	if (!l->times)
		l->times = sample_times_new(both, 2, l->bin_ns, SAMPLE_TIMES_MAX);
	return l->times ? 0 : -ENOMEM;
}

static int64_t add_up(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void censuses_begin(struct censuses *l, uint64_t ns)
{
	for (uint32_t i = 0; i < l->n_held && l->open; i++)
		l->held[i]->now = 0;
	l->open = true;
	l->total = 0;
	l->now_ns = ns > l->last_ns ? ns : l->last_ns;
}

int censuses_add(struct censuses *l, uint64_t key, int64_t bytes)
{
	struct census_part *p;

	if (!l->open || bytes <= 0)
		return 0;
	p = part_of(l, key);
	if (!p)
		return -ENOMEM;
	if (!p->held) {
		if (!GROW(l->held, l->n_held, l->cap_held))
			return -ENOMEM;
		l->held[l->n_held++] = p;
		p->held = true;
	}
	p->now = add_up(p->now, bytes);
	l->total = add_up(l->total, bytes);
	return 0;
}

/* The area from `from` to `to` below a part's line between the last census and this one, bin by bin. */
static int add_area(struct censuses *l, struct census_part *p)
{
	uint64_t from = l->last_ns, to = l->now_ns;
	long double slope, low;

	if (to == from || (!p->last && !p->now))
		return 0;
	slope = ((long double)p->now - p->last) / (to - from);
	low = p->last;
	for (uint64_t at = from; at < to;) {
		uint64_t width = sample_times_bin_ns(l->times), rest = width - at % width;
		uint64_t end = rest < to - at ? at + rest : to;
		long double begin_level = low + slope * (at - from), end_level, whole;
		int64_t values[SAMPLE_TIMES_TYPES] = { 0 };
		int r;

		end_level = low + slope * (end - from);
		p->area += (begin_level + end_level) / 2 * (end - at) / 1e6L;
		whole = p->area < INT64_MAX - 1 ? p->area + .5L : INT64_MAX;
		values[0] = (int64_t)whole - p->area_given;
		p->area_given += values[0];
		r = values[0] ? sample_times_add(l->times, p->ix, at, values) : 0;
		if (r < 0)
			return r;
		at = end;
	}
	return 0;
}

int censuses_end(struct censuses *l)
{
	bool peak = l->total > l->peak_total;
	uint32_t n = 0;

	if (!l->open)
		return 0;
	if (times_make(l) < 0)
		return -ENOMEM;
	sample_times_reach(l->times, l->now_ns, BINS_MAX);
	l->open = false;
	if (peak) {
		l->peak_total = l->total;
		l->peak_ns = l->now_ns;
		l->peak_census = l->n_censuses;
	}
	for (uint32_t i = 0; i < l->n_held; i++) {
		struct census_part *p = l->held[i];

		if (add_area(l, p) < 0)
			return -ENOMEM;
		if (peak) {
			p->peak = p->now;
			p->peak_census = l->n_censuses;
		}
		p->last = p->now;
		p->now = 0;
		p->held = p->last > 0;
		if (p->held)
			l->held[n++] = p;
	}
	l->n_held = n;
	l->last_ns = l->now_ns;
	l->n_censuses++;
	return 0;
}

int censuses_tick(struct censuses *l, uint64_t key, uint64_t ns)
{
	const int64_t values[SAMPLE_TIMES_TYPES] = { 0, 1 };
	struct census_part *p = part_of(l, key);

	if (!p || times_make(l) < 0)
		return -ENOMEM;
	p->ticks++;
	l->n_ticks++;
	return sample_times_add(l->times, p->ix, ns, values);
}

/* --- the profile ------------------------------------------------------------------------------ */

/* What the store has of both, as the profile's types are numbered. */
static int take_times(struct censuses *l, uint32_t first, uint32_t n, const uint32_t *of,
		      struct sample_times **ret)
{
	_cleanup_(sample_times_freep) struct sample_times *times =
		sample_times_new(of, n, sample_times_bin_ns(l->times), SAMPLE_TIMES_MAX);

	if (!times)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++) {
		struct sample_time_reader at = sample_times_read(l->times, i);
		struct sample_time entry;

		while (sample_times_next(&at, &entry))
			if (sample_times_add(times, i, entry.bin * sample_times_bin_ns(l->times),
					     entry.values + first) < 0)
				return -ENOMEM;
	}
	*ret = TAKE_PTR(times);
	return 0;
}

static int set_meta(struct profile *p, const struct censuses *l, const struct censuses_made *how)
{
	struct profile_meta meta =
		how->meta ? *how->meta : (struct profile_meta){ .period_type = { "", "" } };
	_cleanup_(freep) const char **comments = NULL;
	char peak[64];
	size_t n = 0;

	while (meta.comments && meta.comments[n])
		n++;
	comments = calloc(n + 2, sizeof(*comments));
	if (!comments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		comments[i] = meta.comments[i];
	snprintf(peak, sizeof(peak), "%s%.6f s after the start", about_prefix(ABOUT_PEAK),
		 (double)l->peak_ns / 1e9);
	if (l->n_censuses)
		comments[n] = peak;
	meta.comments = comments;
	meta.duration_ns = (int64_t)(how->end_ns < INT64_MAX ? how->end_ns : INT64_MAX);
	return profile_set_meta(p, &meta);
}

static int add_part(struct profile *profile, const struct censuses *l, const struct census_part *p,
		    const struct censuses_made *how, bool heap)
{
	int64_t all[N_TYPES] = { 0 };
	uint32_t sample;
	int r;

	/* What rounding took is at most half of a unit. */
	all[AREA] = p->area_given;
	all[MEAN] = how->end_ns ? (int64_t)(p->area * 1e6L / how->end_ns + .5L) : 0;
	all[PEAK] = p->peak_census == l->peak_census ? p->peak : 0;
	all[LAST] = p->last;
	all[SAMPLES] = p->ticks;
	if (__builtin_mul_overflow(p->ticks, (int64_t)how->tick_ns, &all[CPU]))
		all[CPU] = INT64_MAX;
	r = profile_add_to(profile, how->stack_of(how->ctx, p->key), how->labels,
			   heap ? all : all + SAMPLES, &sample);
	return r < 0 ? r : sample == p->ix ? 0 : -EEXIST;
}

/* Nothing is held at the end. */
static int fall(struct censuses *l, uint64_t end_ns)
{
	_cleanup_(freep) int64_t *last = calloc(l->n ? l->n : 1, sizeof(*last));
	uint64_t n_censuses = l->n_censuses;
	int r;

	if (!last)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++)
		last[i] = l->order[i]->last;
	censuses_begin(l, end_ns);
	r = censuses_end(l);
	for (uint32_t i = 0; i < l->n; i++)
		l->order[i]->last = last[i];
	l->n_censuses = n_censuses;
	return r;
}

int censuses_finish(struct censuses *l, struct dict *d, const struct censuses_made *how,
		    struct profile **ret_profile)
{
	static const uint32_t of_both[] = { AREA, SAMPLES }, of_samples[] = { 0 };
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct sample_times *times = NULL;
	bool heap = l->n_censuses > 0 || !l->n_ticks;
	struct censuses_made made = *how;
	int r = 0;

	censuses_begin(l, l->last_ns); /* what is open is dropped */
	l->open = false;
	made.end_ns = made.end_ns > l->last_ns ? made.end_ns : l->last_ns;
	if (how->whole && l->n_held)
		r = fall(l, made.end_ns);
	p = profile_new(d, heap ? types : types + SAMPLES,
			heap && !l->n_ticks ? N_CENSUS_TYPES
			: heap              ? N_TYPES
					    : N_TYPES - SAMPLES);
	if (!p || r < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n && r == 0; i++)
		r = add_part(p, l, l->order[i], &made, heap);
	if (r == 0 && l->times)
		r = take_times(l, heap ? 0 : 1, heap && l->n_ticks ? 2 : 1,
			       heap ? of_both : of_samples, &times);
	if (times)
		profile_set_times(p, times);
	if (r == 0)
		r = set_meta(p, l, &made);
	if (r < 0)
		return r;
	*ret_profile = TAKE_PTR(p);
	return 0;
}
