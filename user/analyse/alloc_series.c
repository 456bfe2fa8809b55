#include "analyse/alloc_series.h"

#include "base/hash.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	uint32_t stack, at; /* at: in the heap */
	struct alloc_series_row row;
	UT_hash_handle hh;
};

struct alloc_series {
	struct entry *entries;
	struct entry *heap[ALLOC_SERIES_MAX]; /* the one with the least first */
	struct alloc_series_moved moved;
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

static double rank_of(const struct entry *e)
{
	return e->row.all + e->row.before;
}

static void set(struct alloc_series *s, uint32_t at, struct entry *e)
{
	s->heap[at] = e;
	e->at = at;
}

/* It has more than before. */
static void sink(struct alloc_series *s, struct entry *e)
{
	uint32_t n = HASH_COUNT(s->entries), at = e->at;

	for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && rank_of(s->heap[child + 1]) < rank_of(s->heap[child]))
			child++;
		if (rank_of(s->heap[child]) >= rank_of(e))
			break;
		set(s, at, s->heap[child]);
	}
	set(s, at, e);
}

/* A new one has nothing yet, or what the one had whose place it takes. */
static void rise(struct alloc_series *s, struct entry *e, uint32_t at)
{
	for (; at > 0 && rank_of(s->heap[(at - 1) / 2]) > rank_of(e); at = (at - 1) / 2)
		set(s, at, s->heap[(at - 1) / 2]);
	set(s, at, e);
}

/* The row with the least becomes part of OTHER, and is another stack's. */
static struct entry *replace_least(struct alloc_series *s, const stack_id *stack)
{
	struct entry *e = s->heap[0];
	double rank = rank_of(e);

	s->moved.rows++;
	s->moved.bytes += e->row.all;
	s->other.all += e->row.all;
	s->other.open += e->row.open;
	for (uint32_t i = 0; i < s->n_times; i++)
		s->other.bytes[i] += e->row.bytes[i];
	HASH_DEL(s->entries, e);
	e->stack = stack->ix;
	e->row = (struct alloc_series_row){ .stack = *stack, .before = rank };
	HASH_ADD(hh, s->entries, stack, sizeof(e->stack), e);
	return e;
}

/* NULL: out of memory. */
static struct entry *entry_of(struct alloc_series *s, const stack_id *stack)
{
	struct entry *e;

	HASH_FIND(hh, s->entries, &stack->ix, sizeof(stack->ix), e);
	if (e)
		return e;
	if (HASH_COUNT(s->entries) >= ALLOC_SERIES_MAX) {
		e = replace_least(s, stack);
		return hash_added(e) ? e : NULL;
	}
	e = hash_new(s->entries, stack, &stack->ix);
	if (!e)
		return NULL;
	e->row.stack = *stack;
	rise(s, e, HASH_COUNT(s->entries) - 1);
	return e;
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
	struct entry *e = stack ? entry_of(s, stack) : NULL;
	struct alloc_series_row *row = e ? &e->row : &s->other;
	uint32_t last = interval_of(s, to_s);
	double left = bytes;

	if (stack && !e)
		return -ENOMEM;
	row->all += bytes;
	if (e)
		sink(s, e);
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

struct alloc_series_moved alloc_series_moved(const struct alloc_series *s)
{
	return s->moved;
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
