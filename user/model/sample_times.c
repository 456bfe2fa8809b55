#include "model/sample_times.h"

#include "base/saturate.h"

#include <errno.h>
#include <string.h>

struct run {
	struct sample_time *entries;
	uint32_t n, cap;
};

struct sample_times {
	uint64_t bin_ns, first_ns;
	uint32_t types[SAMPLE_TIMES_TYPES], n_types;
	uint32_t max;
	uint64_t n_entries;
	uint32_t n_bins;
	struct run *runs; /* by sample */
	uint32_t n_runs, cap_runs;
};

struct sample_times *sample_times_new(const uint32_t *types, uint32_t n, uint64_t bin_ns,
				      uint32_t max)
{
	struct sample_times *t;

	if (!n || n > SAMPLE_TIMES_TYPES || !bin_ns)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	memcpy(t->types, types, n * sizeof(*types));
	t->n_types = n;
	t->bin_ns = t->first_ns = bin_ns;
	t->max = max;
	return t;
}

void sample_times_clear(struct sample_times *t)
{
	for (uint32_t i = 0; i < t->n_runs; i++)
		free(t->runs[i].entries);
	free(t->runs);
	t->runs = NULL;
	t->n_runs = t->cap_runs = t->n_bins = 0;
	t->n_entries = 0;
	t->bin_ns = t->first_ns;
}

void sample_times_free(struct sample_times *t)
{
	if (!t)
		return;
	sample_times_clear(t);
	free(t);
}

uint32_t sample_times_n_types(const struct sample_times *t)
{
	return t->n_types;
}

uint32_t sample_times_type(const struct sample_times *t, uint32_t i)
{
	return t->types[i];
}

uint64_t sample_times_bin_ns(const struct sample_times *t)
{
	return t->bin_ns;
}

uint32_t sample_times_n_bins(const struct sample_times *t)
{
	return t->n_bins;
}

uint32_t sample_times_n_samples(const struct sample_times *t)
{
	return t->n_runs;
}

uint64_t sample_times_n_entries(const struct sample_times *t)
{
	return t->n_entries;
}

uint32_t sample_times_count(const struct sample_times *t, uint32_t sample)
{
	return sample < t->n_runs ? t->runs[sample].n : 0;
}

struct sample_time_reader sample_times_read(const struct sample_times *t, uint32_t sample)
{
	return (struct sample_time_reader){ t, sample, 0 };
}

bool sample_times_next(struct sample_time_reader *at, struct sample_time *ret_entry)
{
	if (at->next >= sample_times_count(at->times, at->sample))
		return false;
	*ret_entry = at->times->runs[at->sample].entries[at->next++];
	return true;
}

/* --- adding ----------------------------------------------------------------------------------- */

static void join_run(struct run *run)
{
	struct sample_time *e = run->entries;
	uint32_t n = 0;

	for (uint32_t i = 0; i < run->n; i++) {
		uint32_t bin = e[i].bin / 2;

		if (n && e[n - 1].bin == bin) {
			for (int k = 0; k < SAMPLE_TIMES_TYPES; k++)
				e[n - 1].values[k] =
					add_saturating(e[n - 1].values[k], e[i].values[k]);
			continue;
		}
		e[n] = e[i];
		e[n++].bin = bin;
	}
	run->n = n;
	if (n <= run->cap / 4) {
		struct sample_time *less = realloc(e, n * sizeof(*e));

		if (less) { /* else it stays as large as it is */
			run->entries = less;
			run->cap = n;
		}
	}
}

/* Bins in pairs become one. */
static void join(struct sample_times *t)
{
	t->n_entries = 0;
	for (uint32_t i = 0; i < t->n_runs; i++) {
		if (t->runs[i].n)
			join_run(&t->runs[i]);
		t->n_entries += t->runs[i].n;
	}
	t->bin_ns *= 2;
	t->n_bins = (t->n_bins + 1) / 2;
}

void sample_times_reach(struct sample_times *t, uint64_t ns, uint32_t max)
{
	while (ns / t->bin_ns >= max)
		join(t);
}

/* Is there room for `more`? With two for each sample, joining always makes some in the end. */
static bool has_room(const struct sample_times *t, uint64_t more)
{
	uint64_t max = t->max > 2ull * t->n_runs ? t->max : 2ull * t->n_runs;

	return t->n_entries + more <= max;
}

static struct run *run_of(struct sample_times *t, uint32_t sample)
{
	if (sample >= t->cap_runs) {
		uint64_t cap = t->cap_runs ? t->cap_runs : 64;
		struct run *more;

		while (cap <= sample)
			cap *= 2;
		more = reallocarray(t->runs, cap, sizeof(*more));
		if (!more)
			return NULL;
		memset(more + t->cap_runs, 0, (cap - t->cap_runs) * sizeof(*more));
		t->runs = more;
		t->cap_runs = (uint32_t)cap;
	}
	if (sample >= t->n_runs)
		t->n_runs = sample + 1;
	return &t->runs[sample];
}

/* Where `bin` is, or is to be. Mostly that is the end. */
static uint32_t find(const struct run *run, uint32_t bin)
{
	uint32_t low = 0, high = run->n;

	if (!high || run->entries[high - 1].bin < bin)
		return high;
	if (run->entries[high - 1].bin == bin)
		return high - 1;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (run->entries[mid].bin < bin)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int add(struct sample_times *t, uint32_t sample, uint32_t bin, const int64_t *values)
{
	struct run *run = run_of(t, sample);
	struct sample_time *e;
	uint32_t at;

	if (!run)
		return -ENOMEM;
	at = find(run, bin);
	if (at == run->n || run->entries[at].bin != bin) {
		if (run->n == run->cap) {
			uint32_t cap = run->cap ? run->cap + run->cap / 2 + 1 : 1;

			e = reallocarray(run->entries, cap, sizeof(*e));
			if (!e)
				return -ENOMEM;
			run->entries = e;
			run->cap = cap;
		}
		e = run->entries + at;
		memmove(e + 1, e, (run->n - at) * sizeof(*e));
		*e = (struct sample_time){ .bin = bin };
		run->n++;
		t->n_entries++;
	}
	for (uint32_t i = 0; i < t->n_types; i++)
		run->entries[at].values[i] = add_saturating(run->entries[at].values[i], values[i]);
	if (bin >= t->n_bins)
		t->n_bins = bin + 1;
	return 0;
}

/* The bin of a moment, of which numbers do not run out. */
static uint32_t bin_at(struct sample_times *t, uint64_t ns)
{
	while (ns / t->bin_ns >= UINT32_MAX)
		join(t);
	return (uint32_t)(ns / t->bin_ns);
}

int sample_times_add(struct sample_times *t, uint32_t sample, uint64_t ns, const int64_t *values)
{
	int r = add(t, sample, bin_at(t, ns), values);

	while (r == 0 && !has_room(t, 0))
		join(t);
	return r;
}

/* The part of `value` in the first `part` of `whole` ns. */
static int64_t share(int64_t value, uint64_t part, uint64_t whole)
{
	return (int64_t)((__int128)value * part / whole);
}

int sample_times_add_span(struct sample_times *t, uint32_t sample, uint64_t from_ns, uint64_t to_ns,
			  const int64_t *values)
{
	uint64_t whole = to_ns - from_ns, end;
	int64_t before[SAMPLE_TIMES_TYPES] = { 0 };
	int r = 0;

	if (to_ns <= from_ns + 1)
		return sample_times_add(t, sample, from_ns, values);
	bin_at(t, to_ns);
	while (!has_room(t, (to_ns - 1) / t->bin_ns - from_ns / t->bin_ns) &&
	       (to_ns - 1) / t->bin_ns > from_ns / t->bin_ns)
		join(t);
	for (uint64_t at = from_ns; at < to_ns && r == 0; at = end) {
		int64_t part[SAMPLE_TIMES_TYPES];

		end = (at / t->bin_ns + 1) * t->bin_ns;
		end = end < to_ns ? end : to_ns;
		for (uint32_t i = 0; i < t->n_types; i++) {
			int64_t so_far = share(values[i], end - from_ns, whole);

			part[i] = so_far - before[i];
			before[i] = so_far;
		}
		r = add(t, sample, (uint32_t)(at / t->bin_ns), part);
	}
	while (r == 0 && !has_room(t, 0))
		join(t);
	return r;
}

/* --- totals ----------------------------------------------------------------------------------- */

/* One type of a run, which has an entry. */
static void fit(struct run *run, uint32_t type, int64_t total)
{
	__int128 sum = 0, so_far = 0;
	int64_t given = 0;

	for (uint32_t i = 0; i < run->n; i++) {
		if (run->entries[i].values[type] < 0)
			run->entries[i].values[type] = 0;
		sum += run->entries[i].values[type];
	}
	if (!sum) {
		run->entries[run->n - 1].values[type] = total;
		return;
	}
	if (sum == total)
		return;
	for (uint32_t i = 0; i < run->n; i++) {
		int64_t now;

		so_far += run->entries[i].values[type];
		/* 126 bits have the product, unless values are at their most. */
		now = sum <= INT64_MAX
			      ? (int64_t)(so_far * total / sum)
			      : (int64_t)((long double)total * ((long double)so_far / sum));
		run->entries[i].values[type] = now - given;
		given = now;
	}
}

int sample_times_copy(const struct sample_times *t, uint32_t sample, uint32_t from, uint32_t to,
		      struct sample_times *into, uint32_t to_sample)
{
	struct sample_time_reader at = sample_times_read(t, sample);
	struct sample_time entry;
	int r = 0;

	while (r == 0 && sample_times_next(&at, &entry) && entry.bin < to)
		if (entry.bin >= from)
			r = sample_times_add(into, to_sample, (entry.bin - from) * t->bin_ns,
					     entry.values);
	return r;
}

int sample_times_fit(struct sample_times *t, uint32_t sample, const int64_t *totals, uint32_t bin)
{
	static const int64_t nothing[SAMPLE_TIMES_TYPES];
	bool any = false;

	for (uint32_t i = 0; i < t->n_types; i++)
		any |= totals[i] != 0;
	if (!sample_times_count(t, sample)) {
		int r = any ? add(t, sample, bin, nothing) : 0;

		if (!any || r < 0)
			return r;
	}
	for (uint32_t i = 0; i < t->n_types; i++)
		fit(&t->runs[sample], i, totals[i]);
	return 0;
}

void sample_times_sum(const struct sample_times *t, uint32_t sample, uint32_t from, uint32_t to,
		      int64_t ret_values[SAMPLE_TIMES_TYPES])
{
	memset(ret_values, 0, SAMPLE_TIMES_TYPES * sizeof(*ret_values));
	if (sample >= t->n_runs)
		return;
	for (uint32_t i = find(&t->runs[sample], from); i < t->runs[sample].n; i++) {
		const struct sample_time *e = &t->runs[sample].entries[i];

		if (e->bin >= to)
			break;
		for (int k = 0; k < SAMPLE_TIMES_TYPES; k++)
			ret_values[k] = add_saturating(ret_values[k], e->values[k]);
	}
}

/* --- in the order of time --------------------------------------------------------------------- */

struct place {
	uint32_t sample, entry;
};

int sample_times_in_order(const struct sample_times *t,
			  int (*fn)(void *ctx, uint32_t sample, const struct sample_time *entry),
			  void *ctx)
{
	_cleanup_(freep) uint64_t *begin = calloc(t->n_bins + 1ul, sizeof(*begin));
	_cleanup_(freep) struct place *places = calloc(t->n_entries + 1, sizeof(*places));
	int r = 0;

	if (!begin || !places)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_runs; i++)
		for (uint32_t k = 0; k < t->runs[i].n; k++)
			begin[t->runs[i].entries[k].bin + 1ul]++;
	for (uint32_t b = 0; b < t->n_bins; b++)
		begin[b + 1ul] += begin[b];
	for (uint32_t i = 0; i < t->n_runs; i++)
		for (uint32_t k = 0; k < t->runs[i].n; k++)
			places[begin[t->runs[i].entries[k].bin]++] = (struct place){ i, k };
	for (uint64_t i = 0; i < t->n_entries && r == 0; i++)
		r = fn(ctx, places[i].sample, &t->runs[places[i].sample].entries[places[i].entry]);
	return r;
}
