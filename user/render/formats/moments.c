#include "render/formats/moments.h"

#include "model/over_time.h"
#include "model/sample_times.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static int64_t add_up(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t whole_bytes(double bytes)
{
	return bytes >= 9e18 ? INT64_MAX : bytes > 0 ? llround(bytes) : 0;
}

/* --- bins ------------------------------------------------------------------------------------- */

/* The last one may end with the run. */
static double bin_ms(const struct moments *m, uint32_t bin)
{
	double width = (double)sample_times_bin_ns(profile_times(m->p));
	double rest = (double)profile_get_meta(m->p)->duration_ns - bin * width;

	return (rest > width / 100 && rest < width ? rest : width) / 1e6;
}

static int64_t bin_bytes(const struct moments *m, const struct sample_time *entry)
{
	return whole_bytes((double)entry->values[m->which] / bin_ms(m, entry->bin));
}

static int64_t *bin_totals(const struct moments *m, uint32_t n)
{
	int64_t *sums = calloc(n, sizeof(*sums));

	for (uint32_t s = 0; sums && s < profile_n_samples(m->p); s++) {
		struct sample_time_reader at = sample_times_read(profile_times(m->p), s);
		struct sample_time entry;

		while (sample_times_next(&at, &entry))
			sums[entry.bin] = add_up(sums[entry.bin], bin_bytes(m, &entry));
	}
	return sums;
}

static int bin_profile(const struct moments *m, uint32_t bin, struct profile *to)
{
	for (uint32_t s = 0; s < profile_n_samples(m->p); s++) {
		struct sample_time_reader at = sample_times_read(profile_times(m->p), s);
		struct profile_sample sample = profile_sample(m->p, s);
		struct sample_time entry = { 0 };

		while (sample_times_next(&at, &entry) && entry.bin < bin)
			;
		if (entry.bin == bin) {
			int64_t bytes = bin_bytes(m, &entry);

			if (bytes && profile_add(to, sample.stack, sample.labels, &bytes) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/* --- rows of a table -------------------------------------------------------------------------- */

static int64_t cell(const struct time_table *t, uint32_t column, uint32_t row)
{
	return whole_bytes(t->columns[column].values[row]);
}

static int64_t *row_totals(const struct time_table *t)
{
	int64_t *sums = calloc(t->n_rows, sizeof(*sums));

	for (uint32_t r = 0; sums && r < t->n_rows; r++)
		for (uint32_t c = 0; c < t->n_columns; c++)
			sums[r] = add_up(sums[r], cell(t, c, r));
	return sums;
}

/* "main;load;malloc" */
static stack_id stack_of(struct dict *d, const char *name)
{
	stack_id stack = { 0 };

	for (;;) {
		size_t len = strcspn(name, ";");
		struct line line = { .function = dict_string_n(d, name, len) };

		if (len)
			stack = dict_stack_push(
				d, stack, dict_location_lines(d, (module_id){ 0 }, 0, &line, 1));
		if (!name[len])
			return stack;
		name += len + 1;
	}
}

static int row_profile(const struct moments *m, uint32_t row, struct profile *to)
{
	struct dict *d = profile_dict(m->p);

	for (uint32_t c = 0; c < m->table->n_columns; c++) {
		int64_t bytes = cell(m->table, c, row);

		if (bytes && profile_add(to, stack_of(d, m->table->columns[c].name),
					 (labels_id){ 0 }, &bytes) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- both ------------------------------------------------------------------------------------- */

static int64_t time_of(const struct moments *m, uint32_t row)
{
	double ns;

	if (m->table)
		ns = m->table->times_s[row] * 1e9 - (double)profile_get_meta(m->p)->time_ns;
	else
		ns = (double)row * (double)sample_times_bin_ns(profile_times(m->p)) +
		     bin_ms(m, row) * 1e6 / 2;
	return ns > 0 && ns < 9e18 ? (int64_t)ns : 0;
}

/* Of each stretch the row that held most, so that no peak is left out. */
static void choose(struct moments *m, const int64_t *totals, uint32_t n_rows)
{
	uint32_t step = (n_rows + MOMENTS_MAX - 1) / MOMENTS_MAX;

	for (uint32_t from = 0; from < n_rows; from += step) {
		uint32_t best = from, to = n_rows - from < step ? n_rows : from + step;

		for (uint32_t i = from; i < to; i++)
			if (totals[i] > totals[best])
				best = i;
		m->all[m->n++] = (struct moment){ time_of(m, best), totals[best], best };
	}
}

static const struct time_table *live_series(const struct profile *p)
{
	const struct over_time *o = profile_over_time(p);

	for (uint32_t i = 0; o && i < o->n_series; i++)
		if (strcmp(o->series[i].id, "live_series") == 0 && o->series[i].table->n_rows)
			return o->series[i].table;
	return NULL;
}

int moments_find(const struct profile *p, struct moments *ret)
{
	int type = profile_find_type(p, "space_time/byte-milliseconds");
	const struct sample_times *times = profile_times(p);
	_cleanup_(freep) int64_t *totals = NULL;
	uint32_t n_rows = 0;

	*ret = (struct moments){ .p = p, .which = SAMPLE_TIMES_TYPES };
	for (uint32_t i = 0; times && i < sample_times_n_types(times); i++)
		if ((int)sample_times_type(times, i) == type)
			ret->which = i;
	if (ret->which < SAMPLE_TIMES_TYPES)
		n_rows = sample_times_n_bins(times);
	else if ((ret->table = live_series(p)))
		n_rows = ret->table->n_rows;
	if (!n_rows)
		return 0;
	totals = ret->table ? row_totals(ret->table) : bin_totals(ret, n_rows);
	if (!totals)
		return -ENOMEM;
	choose(ret, totals, n_rows);
	return 0;
}

int moments_profile(const struct moments *m, uint32_t i, struct profile **ret_profile)
{
	const struct value_type bytes = { "inuse_space", "bytes" };
	_cleanup_(profile_freep) struct profile *p = profile_new(profile_dict(m->p), &bytes, 1);
	int r = p ? (m->table ? row_profile : bin_profile)(m, m->all[i].row, p) : -ENOMEM;

	if (r < 0 || dict_oom(profile_dict(m->p)))
		return -ENOMEM;
	*ret_profile = TAKE_PTR(p);
	return 0;
}
