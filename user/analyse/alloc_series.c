#include "analyse/alloc_series.h"

#include "base/hash.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	uint32_t stack;
	struct alloc_series_row row;
	UT_hash_handle hh;
};

struct alloc_series {
	struct entry *entries;
	struct alloc_series_row other;
	double times[ALLOC_SERIES_TICKS];
	uint32_t n_times, stride;
	uint64_t ticks;
	bool ended;
};

struct alloc_series *alloc_series_new(void)
{
	struct alloc_series *s = calloc(1, sizeof(*s));

	if (s)
		s->stride = 1;
	return s;
}

void alloc_series_free(struct alloc_series *s)
{
	if (!s)
		return;
	hash_free(s->entries);
	free(s);
}

/* NULL: out of memory. */
static struct alloc_series_row *row_of(struct alloc_series *s, const stack_id *stack)
{
	struct entry *e;

	if (!stack)
		return &s->other;
	HASH_FIND(hh, s->entries, &stack->ix, sizeof(stack->ix), e);
	if (!e && HASH_COUNT(s->entries) >= ALLOC_SERIES_MAX)
		return &s->other;
	if (!e) {
		e = hash_new(s->entries, stack, &stack->ix);
		if (!e)
			return NULL;
		e->row.stack = *stack;
	}
	return &e->row;
}

/* The last interval that begins at `t_s` or before; n_times: the open one. */
static uint32_t interval_of(const struct alloc_series *s, double t_s)
{
	uint32_t low = 0, high = s->n_times;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (s->times[mid] <= t_s)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void put(struct alloc_series *s, struct alloc_series_row *row, uint32_t at, double bytes)
{
	if (at == s->n_times && s->ended && at > 0)
		at--; /* of the last moment */
	if (at == s->n_times)
		row->open += bytes;
	else
		row->bytes[at] += bytes;
}

int alloc_series_add(struct alloc_series *s, const stack_id *stack, double bytes, double from_s,
		     double to_s)
{
	struct alloc_series_row *row = row_of(s, stack);
	uint32_t last = interval_of(s, to_s);
	double left = bytes;

	if (!row)
		return -ENOMEM;
	row->all += bytes;
	if (from_s < 0)
		from_s = 0;
	for (uint32_t i = interval_of(s, from_s); i < last && to_s > from_s; i++) {
		double begin = i ? s->times[i - 1] : 0, part;

		if (begin < from_s)
			begin = from_s;
		part = bytes * (s->times[i] - begin) / (to_s - from_s);
		put(s, row, i, part);
		left -= part;
	}
	put(s, row, last, left);
	return 0;
}

static void halve(struct alloc_series_row *row)
{
	for (uint32_t i = 0; i < ALLOC_SERIES_TICKS / 2; i++)
		row->bytes[i] = row->bytes[2 * i] + row->bytes[2 * i + 1];
	memset(row->bytes + ALLOC_SERIES_TICKS / 2, 0, sizeof(row->bytes) / 2);
}

/* Each two neighbours become one. */
static void thin(struct alloc_series *s)
{
	struct entry *e, *next;

	for (uint32_t i = 0; i < ALLOC_SERIES_TICKS / 2; i++)
		s->times[i] = s->times[2 * i + 1];
	HASH_ITER (hh, s->entries, e, next)
		halve(&e->row);
	halve(&s->other);
	s->n_times = ALLOC_SERIES_TICKS / 2;
	s->stride *= 2;
}

static void close_interval(struct alloc_series *s, double t_s)
{
	struct entry *e, *next;

	if (s->n_times == ALLOC_SERIES_TICKS)
		thin(s);
	HASH_ITER (hh, s->entries, e, next) {
		e->row.bytes[s->n_times] = e->row.open;
		e->row.open = 0;
	}
	s->other.bytes[s->n_times] = s->other.open;
	s->other.open = 0;
	s->times[s->n_times++] = t_s;
}

void alloc_series_tick(struct alloc_series *s, double t_s)
{
	if (++s->ticks % s->stride == 0)
		close_interval(s, t_s);
}

void alloc_series_end(struct alloc_series *s, double t_s)
{
	if (!s->n_times || t_s > s->times[s->n_times - 1])
		close_interval(s, t_s);
	s->ended = true;
}

uint32_t alloc_series_times(const struct alloc_series *s, const double **ret_times)
{
	*ret_times = s->times;
	return s->n_times;
}

static int by_bytes(const void *a, const void *b)
{
	const struct alloc_series_row *x = *(const struct alloc_series_row *const *)a,
				      *y = *(const struct alloc_series_row *const *)b;

	if (x->all != y->all)
		return x->all < y->all ? 1 : -1;
	return (x->stack.ix > y->stack.ix) - (x->stack.ix < y->stack.ix);
}

uint32_t alloc_series_rank(const struct alloc_series *s, const struct alloc_series_row **ret_rows,
			   uint32_t cap)
{
	const struct alloc_series_row *all[ALLOC_SERIES_MAX];
	struct entry *e, *next;
	uint32_t n = 0;

	HASH_ITER (hh, s->entries, e, next)
		if (e->row.all > 0)
			all[n++] = &e->row;
	qsort(all, n, sizeof(all[0]), by_bytes);
	if (n > cap)
		n = cap;
	memcpy(ret_rows, all, n * sizeof(all[0]));
	return n;
}

double alloc_series_other(const struct alloc_series *s, const struct alloc_series_row *const *shown,
			  uint32_t n, uint32_t i)
{
	double sum = s->other.bytes[i];
	struct entry *e, *next;

	HASH_ITER (hh, s->entries, e, next)
		sum += e->row.bytes[i];
	for (uint32_t k = 0; k < n; k++)
		sum -= shown[k]->bytes[i];
	return sum > 0 ? sum : 0;
}
