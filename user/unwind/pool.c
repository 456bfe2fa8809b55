#include "unwind/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPANS_SHARE 16 /* of the pool, kept from tables */

uint32_t pool_units(uint64_t words)
{
	uint64_t units = words / MS_SPAN_WORDS + (words % MS_SPAN_WORDS != 0);

	return units > UINT32_MAX / MS_SPAN_WORDS ? UINT32_MAX / MS_SPAN_WORDS : (uint32_t)units;
}

int pool_init(struct pool *p, uint32_t n_units)
{
	*p = (struct pool){ .ceiling = n_units - n_units / SPANS_SHARE,
			    .next_ready_ns = UINT64_MAX };
	p->cap = 64;
	p->extents = calloc(p->cap, sizeof(*p->extents));
	if (!p->extents)
		return -ENOMEM;
	if (n_units)
		p->extents[p->n++] = (struct pool_extent){ .len = n_units, .use = POOL_FREE };
	p->used[POOL_FREE] = n_units;
	return 0;
}

void pool_fini(struct pool *p)
{
	free(p->extents);
	*p = (struct pool){ 0 };
}

uint32_t pool_largest(const struct pool *p)
{
	return p->ceiling;
}

static uint32_t end_of(const struct pool_extent *x)
{
	return x->at + x->len;
}

/* What of a free extent a table may have: up to the ceiling. */
static uint32_t below_ceiling(const struct pool *p, const struct pool_extent *x)
{
	if (x->at >= p->ceiling)
		return 0;
	return end_of(x) > p->ceiling ? p->ceiling - x->at : x->len;
}

static uint32_t find_for_table(const struct pool *p, uint32_t len)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < p->n && p->extents[i].at < p->ceiling; i++)
		if (p->extents[i].use == POOL_FREE && below_ceiling(p, &p->extents[i]) >= len &&
		    (best == UINT32_MAX || p->extents[i].len < p->extents[best].len))
			best = i;
	return best;
}

static uint32_t find_for_spans(const struct pool *p, uint32_t len)
{
	for (uint32_t i = p->n; i-- > 0;)
		if (p->extents[i].use == POOL_FREE && p->extents[i].len >= len)
			return i;
	return UINT32_MAX;
}

static int reserve(struct pool *p)
{
	struct pool_extent *grown;

	if (p->n < p->cap)
		return 0;
	grown = reallocarray(p->extents, (size_t)p->cap * 2, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->extents = grown;
	p->cap *= 2;
	return 0;
}

/* Splits extent `i` so that its first part has `len` units. */
static void split(struct pool *p, uint32_t i, uint32_t len)
{
	struct pool_extent *x = &p->extents[i];

	memmove(x + 2, x + 1, (p->n - i - 1) * sizeof(*x));
	p->n++;
	x[1] = x[0];
	x[1].at += len;
	x[1].len -= len;
	x[0].len = len;
}

static void set_use(struct pool *p, struct pool_extent *x, enum pool_use use)
{
	p->used[x->use] -= x->len;
	p->used[use] += x->len;
	x->use = use;
}

int pool_take(struct pool *p, enum pool_use use, uint32_t owner, uint32_t len, uint32_t *ret_at)
{
	uint32_t i = use == POOL_TABLE ? find_for_table(p, len) : find_for_spans(p, len);
	struct pool_extent *x;

	if (i == UINT32_MAX)
		return -ENOSPC;
	if (reserve(p) < 0)
		return -ENOMEM;
	if (p->extents[i].len > len) {
		split(p, i, use == POOL_TABLE ? len : p->extents[i].len - len);
		i += use != POOL_TABLE;
	}
	x = &p->extents[i];
	set_use(p, x, use);
	x->owner = owner;
	*ret_at = x->at;
	return 0;
}

/* The extent that holds unit `at`. */
static uint32_t find(const struct pool *p, uint32_t at)
{
	uint32_t lo = 0, hi = p->n;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->extents[mid].at <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

void pool_give_back(struct pool *p, uint32_t at, uint64_t now_ns)
{
	struct pool_extent *x = &p->extents[find(p, at)];

	assert(x->at == at && (x->use == POOL_TABLE || x->use == POOL_SPANS));
	set_use(p, x, POOL_WAITS);
	x->ready_ns = now_ns + MS_POOL_GRACE_NS;
	if (x->ready_ns < p->next_ready_ns)
		p->next_ready_ns = x->ready_ns;
}

void pool_reap(struct pool *p, uint64_t now_ns)
{
	uint32_t n = 0;

	if (now_ns < p->next_ready_ns)
		return;
	p->next_ready_ns = UINT64_MAX;
	for (uint32_t i = 0; i < p->n; i++) {
		struct pool_extent *x = &p->extents[i], *last = n ? &p->extents[n - 1] : NULL;

		if (x->use == POOL_WAITS && x->ready_ns <= now_ns)
			set_use(p, x, POOL_FREE);
		else if (x->use == POOL_WAITS && x->ready_ns < p->next_ready_ns)
			p->next_ready_ns = x->ready_ns;
		if (last && last->use == POOL_FREE && x->use == POOL_FREE)
			last->len += x->len;
		else
			p->extents[n++] = *x;
	}
	p->n = n;
}

struct window {
	uint32_t from, to;
	uint64_t costliest, in_use;
};

/* The cheapest window that begins with extent `from` and is large enough; false: there is none. */
static bool window_at(const struct pool *p, uint32_t from, uint32_t len, pool_cost_fn cost,
		      void *ctx, struct window *ret)
{
	struct window w = { .from = from };
	uint64_t have = 0;

	for (w.to = from; have < len; w.to++) {
		const struct pool_extent *x = &p->extents[w.to];

		if (w.to == p->n || x->use == POOL_SPANS || x->at >= p->ceiling)
			return false;
		have += below_ceiling(p, x);
		if (x->use == POOL_TABLE) {
			uint64_t c = cost(ctx, x->owner);

			w.in_use += x->len;
			if (c > w.costliest)
				w.costliest = c;
		}
	}
	*ret = w;
	return true;
}

int pool_window(const struct pool *p, uint32_t len, pool_cost_fn cost, void *ctx,
		uint32_t *ret_from, uint32_t *ret_to, bool *ret_waits)
{
	struct window best = { 0 }, w;
	bool found = false;

	for (uint32_t i = 0; i < p->n; i++) {
		if (!window_at(p, i, len, cost, ctx, &w))
			continue;
		if (!found || w.costliest < best.costliest ||
		    (w.costliest == best.costliest && w.in_use < best.in_use))
			best = w;
		found = true;
	}
	if (!found)
		return -ENOSPC;
	*ret_from = best.from;
	*ret_to = best.to;
	*ret_waits = !best.in_use;
	return 0;
}
