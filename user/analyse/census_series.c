#include "analyse/census_series.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct census_series {
	struct census_row rows[CENSUS_TYPES];
	struct census_row all;
	int64_t wall_ns[CENSUS_TIMES];
	uint32_t n_rows, n_times;
	uint64_t n_added, every; /* censuses so far; one of `every` stays */
	bool is_passing;         /* the last one is kept only until the next one */
};

struct census_series *census_series_new(void)
{
	struct census_series *s = calloc(1, sizeof(*s));

	if (s)
		s->every = 1;
	return s;
}

void census_series_free(struct census_series *s)
{
	free(s);
}

static void halve_row(struct census_row *row)
{
	for (uint32_t i = 0; i < CENSUS_TIMES / 2; i++) {
		row->bytes[i] = row->bytes[2 * i];
		row->objects[i] = row->objects[2 * i];
	}
}

static void halve(struct census_series *s)
{
	for (uint32_t i = 0; i < s->n_rows; i++)
		halve_row(&s->rows[i]);
	halve_row(&s->all);
	for (uint32_t i = 0; i < CENSUS_TIMES / 2; i++)
		s->wall_ns[i] = s->wall_ns[2 * i];
	s->n_times = CENSUS_TIMES / 2;
	s->every *= 2;
}

/* NULL: all others have had more. */
static struct census_row *row_of(struct census_series *s, const struct census_count *type)
{
	struct census_row *least = &s->rows[0];

	for (uint32_t i = 0; i < s->n_rows; i++) {
		if (strcmp(s->rows[i].name, type->name) == 0)
			return &s->rows[i];
		if (s->rows[i].most < least->most)
			least = &s->rows[i];
	}
	if (s->n_rows < CENSUS_TYPES)
		least = &s->rows[s->n_rows++];
	else if (least->most >= type->bytes)
		return NULL;
	memset(least, 0, sizeof(*least));
	snprintf(least->name, sizeof(least->name), "%s", type->name);
	return least;
}

static void put(struct census_row *row, uint32_t at, const struct census_count *count)
{
	row->bytes[at] = count->bytes;
	row->objects[at] = count->objects;
	if (count->bytes > row->most)
		row->most = count->bytes;
}

/* The place of one more, in which no row has anything. */
static uint32_t next_place(struct census_series *s)
{
	static const struct census_count none;
	uint32_t at;

	if (s->is_passing)
		s->n_times--;
	else if (s->n_times == CENSUS_TIMES)
		halve(s);
	s->is_passing = s->n_added++ % s->every != 0;
	at = s->n_times++;
	for (uint32_t i = 0; i < s->n_rows; i++)
		put(&s->rows[i], at, &none);
	return at;
}

void census_series_add(struct census_series *s, int64_t wall_ns, const struct census_count *types,
		       uint32_t n, const struct census_count *all)
{
	uint32_t at = next_place(s);

	s->wall_ns[at] = wall_ns;
	put(&s->all, at, all);
	for (uint32_t i = 0; i < n; i++) {
		struct census_row *row = row_of(s, &types[i]);

		if (row)
			put(row, at, &types[i]);
	}
}

uint32_t census_series_times(const struct census_series *s, const int64_t **ret_wall_ns)
{
	*ret_wall_ns = s->wall_ns;
	return s->n_times;
}

static double area(const struct census_series *s, const struct census_row *row)
{
	double sum = 0;

	for (uint32_t i = 0; i < s->n_times; i++)
		sum += (double)row->bytes[i];
	return sum;
}

static double growth(const struct census_series *s, const struct census_row *row)
{
	return s->n_times ? (double)row->bytes[s->n_times - 1] - (double)row->bytes[0] : 0;
}

/* At most `cap` rows of which there is something, the most first. */
static uint32_t select_rows(const struct census_series *s,
			    double (*of)(const struct census_series *, const struct census_row *),
			    const struct census_row **ret_rows, uint32_t cap)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_rows && cap; i++) {
		double value = of(s, &s->rows[i]);
		uint32_t at = n;

		if (value <= 0 || (n == cap && of(s, ret_rows[n - 1]) >= value))
			continue;
		if (n < cap)
			n++;
		else
			at--;
		for (; at > 0 && of(s, ret_rows[at - 1]) < value; at--)
			ret_rows[at] = ret_rows[at - 1];
		ret_rows[at] = &s->rows[i];
	}
	return n;
}

uint32_t census_series_rank(const struct census_series *s, const struct census_row **ret_rows,
			    uint32_t cap)
{
	return select_rows(s, area, ret_rows, cap);
}

uint32_t census_series_grown(const struct census_series *s, const struct census_row **ret_rows,
			     uint32_t cap)
{
	return select_rows(s, growth, ret_rows, cap);
}

struct census_count census_series_other(const struct census_series *s,
					const struct census_row *const *shown, uint32_t n,
					uint32_t i)
{
	struct census_count rest = { .bytes = s->all.bytes[i], .objects = s->all.objects[i] };

	for (uint32_t k = 0; k < n; k++) {
		rest.bytes -= shown[k]->bytes[i];
		rest.objects -= shown[k]->objects[i];
	}
	return rest;
}
