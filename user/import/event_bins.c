#include "import/event_bins.h"

#include "model/over_time.h"

#include <errno.h>
#include <math.h>

struct event_bin {
	uint64_t last_ns;
	double values[EVENT_BINS_COLUMNS]; /* NAN: none */
};

void event_bins_init(struct event_bins *b, uint32_t n_columns, uint32_t counted)
{
	*b = (struct event_bins){ .bin_ns = 1000000, .n_columns = n_columns, .counted = counted };
}

void event_bins_fini(struct event_bins *b)
{
	free(b->bins);
}

static bool is_counted(const struct event_bins *b, uint32_t column)
{
	return b->counted >> column & 1;
}

static void put(const struct event_bins *b, struct event_bin *bin, uint32_t column, double value)
{
	double *v = &bin->values[column];

	if (isnan(*v))
		*v = value;
	else if (is_counted(b, column))
		*v += value;
	else
		*v = fmax(*v, value);
}

static void clear(const struct event_bins *b, struct event_bin *bin)
{
	bin->last_ns = 0;
	for (uint32_t c = 0; c < b->n_columns; c++)
		bin->values[c] = NAN;
}

static void join(struct event_bins *b)
{
	for (uint32_t i = 0; i < b->n_bins; i++) {
		struct event_bin from = b->bins[i], *to = &b->bins[i / 2];

		if (i % 2 == 0)
			clear(b, to);
		to->last_ns = to->last_ns > from.last_ns ? to->last_ns : from.last_ns;
		for (uint32_t c = 0; c < b->n_columns; c++)
			if (!isnan(from.values[c]))
				put(b, to, c, from.values[c]);
	}
	b->n_bins = (b->n_bins + 1) / 2;
	b->bin_ns *= 2;
}

static int reach(struct event_bins *b, uint64_t bin)
{
	if (bin >= b->cap_bins) {
		size_t cap = b->cap_bins ? b->cap_bins : 1024;
		struct event_bin *more;

		while (cap <= bin)
			cap *= 2;
		more = reallocarray(b->bins, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		b->bins = more;
		b->cap_bins = cap;
	}
	while (b->n_bins <= bin)
		clear(b, &b->bins[b->n_bins++]);
	return 0;
}

int event_bins_add(struct event_bins *b, uint32_t column, uint64_t ns, double value)
{
	struct event_bin *bin;

	while (ns / b->bin_ns >= EVENT_BINS_MAX)
		join(b);
	if (reach(b, ns / b->bin_ns) < 0)
		return -ENOMEM;
	bin = &b->bins[ns / b->bin_ns];
	bin->last_ns = bin->last_ns > ns ? bin->last_ns : ns;
	put(b, bin, column, value);
	return 0;
}

static bool has_any(const struct event_bins *b, uint32_t bin, const uint32_t *columns, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!isnan(b->bins[bin].values[columns[i]]))
			return true;
	return false;
}

/* Of `wanted` those that have a value. */
static uint32_t choose(const struct event_bins *b, const uint32_t *wanted, const char *const *names,
		       uint32_t n, uint32_t *columns, const char **chosen)
{
	uint32_t n_chosen = 0;

	for (uint32_t i = 0; i < n && n_chosen < EVENT_BINS_COLUMNS; i++) {
		uint32_t bin = 0;

		while (bin < b->n_bins && isnan(b->bins[bin].values[wanted[i]]))
			bin++;
		if (bin == b->n_bins)
			continue;
		columns[n_chosen] = wanted[i];
		chosen[n_chosen++] = names[i];
	}
	return n_chosen;
}

int event_bins_table(const struct event_bins *b, const uint32_t *wanted, const char *const *names,
		     uint32_t n, double begin_s, struct time_table **ret_table)
{
	uint32_t columns[EVENT_BINS_COLUMNS], rows = 0, row = 0;
	const char *chosen[EVENT_BINS_COLUMNS];
	double sums[EVENT_BINS_COLUMNS] = { 0 };
	struct time_table *t;

	*ret_table = NULL;
	n = choose(b, wanted, names, n, columns, chosen);
	for (uint32_t i = 0; i < b->n_bins; i++)
		rows += has_any(b, i, columns, n);
	if (!rows)
		return 0;
	t = time_table_new(chosen, n, rows);
	if (!t)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n_bins; i++) {
		if (!has_any(b, i, columns, n))
			continue;
		t->times_s[row] = begin_s + (double)b->bins[i].last_ns / 1e9;
		for (uint32_t c = 0; c < n; c++) {
			double v = b->bins[i].values[columns[c]];

			if (is_counted(b, columns[c]))
				v = sums[c] += isnan(v) ? 0 : v;
			t->columns[c].values[row] = v;
		}
		row++;
	}
	*ret_table = t;
	return 0;
}
