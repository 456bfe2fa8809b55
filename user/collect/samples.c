#include "collect/samples.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The same record within this time is the same event: probed twice, where one file is mapped under
 * two names. */
#define TWIN_NS 1000000

struct row {
	struct samples_row row;
	UT_hash_handle hh;
};

struct block {
	struct ms_block_key key;
	struct row *row;
	uint64_t size, weight, time_ns;
	UT_hash_handle hh;
};

struct samples {
	struct row *rows;
	struct block *blocks;
	uint64_t n_blocks, max_blocks;
	int64_t live_bytes;
	double smallest; /* share of its weight that the smallest sample was */
	struct samples_stats stats;
};

struct samples *samples_new(uint64_t max_bytes)
{
	struct samples *s = calloc(1, sizeof(*s));

	if (s)
		s->max_blocks = max_bytes / (sizeof(struct block) + sizeof(UT_hash_bucket));
	return s;
}

static void block_drop(struct samples *s, struct block *b)
{
	HASH_DEL(s->blocks, b);
	s->n_blocks--;
	s->live_bytes -= (int64_t)b->weight;
	free(b);
}

void samples_free(struct samples *s)
{
	struct block *b, *next_block;
	struct row *r, *next_row;

	if (!s)
		return;
	HASH_ITER (hh, s->blocks, b, next_block)
		block_drop(s, b);
	HASH_ITER (hh, s->rows, r, next_row) {
		HASH_DEL(s->rows, r);
		free(r);
	}
	free(s);
}

static struct row *row_get(struct samples *s, const struct ms_sample_rec *rec)
{
	struct ms_total_key key;
	struct row *r;

	memset(&key, 0, sizeof(key));
	key.proc = rec->proc;
	key.user = rec->user;
	key.tid = rec->tid;
	key.as_gen = rec->as_gen;
	key.source = MS_ALLOC;
	key.state = MS_ALLOCATED;
	HASH_FIND(hh, s->rows, &key, sizeof(key), r);
	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->row.key = key;
	HASH_ADD(hh, s->rows, row.key, sizeof(key), r);
	if (hash_added(r))
		return r;
	free(r);
	return NULL;
}

static struct block *block_find(struct samples *s, const struct ms_block_key *key)
{
	struct block *b;

	HASH_FIND(hh, s->blocks, key, sizeof(*key), b);
	return b;
}

static int block_add(struct samples *s, const struct ms_block_key *key, struct row *row,
		     const struct ms_sample_rec *rec)
{
	struct block *b;

	if (s->n_blocks >= s->max_blocks) {
		s->stats.full++;
		s->stats.untracked++;
		return 0;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	*b = (struct block){ .key = *key,
			     .row = row,
			     .size = rec->size,
			     .weight = rec->weight,
			     .time_ns = rec->time_ns };
	HASH_ADD(hh, s->blocks, key, sizeof(b->key), b);
	if (!hash_added(b)) {
		free(b);
		return -ENOMEM;
	}
	s->n_blocks++;
	s->live_bytes += (int64_t)b->weight;
	return 0;
}

/* A block that is small against the rate has a weight of the rate and half its own size. */
static void learn_rate(struct samples *s, const struct ms_sample_rec *rec)
{
	double share = (double)rec->size / (double)rec->weight;

	if (s->stats.rate > 0 && share >= s->smallest)
		return;
	s->smallest = share;
	s->stats.rate = (double)rec->weight - (double)rec->size / 2;
}

static bool is_twin(const struct block *b, const struct ms_sample_rec *rec)
{
	return b->size == rec->size && b->weight == rec->weight &&
	       b->row->row.key.tid == rec->tid && rec->time_ns - b->time_ns < TWIN_NS;
}

static int take_alloc(struct samples *s, const struct ms_block_key *key,
		      const struct ms_sample_rec *rec)
{
	struct block *old = block_find(s, key);
	struct row *row;

	/* A weight of nothing says nothing; one beyond reason is no sampler's. */
	if (!rec->size || !rec->weight || rec->weight > INT64_MAX / 2 || rec->size > INT64_MAX / 2)
		return 0;
	if (old && is_twin(old, rec))
		return 0;
	if (old) {
		s->stats.reused++;
		block_drop(s, old);
	}
	row = row_get(s, rec);
	if (!row)
		return -ENOMEM;
	estimate_add(&row->row.alloc, rec->size, rec->weight);
	estimate_add(&s->stats.alloc, rec->size, rec->weight);
	learn_rate(s, rec);
	if (rec->what == MS_SAMPLE_ALLOC)
		return block_add(s, key, row, rec);
	s->stats.untracked++;
	return 0;
}

int samples_take(struct samples *s, const struct ms_sample_rec *rec)
{
	struct ms_block_key key;
	struct block *b;

	memset(&key, 0, sizeof(key));
	key.proc = rec->proc;
	key.addr = rec->addr;
	if (rec->what != MS_SAMPLE_FREE)
		return take_alloc(s, &key, rec);
	b = block_find(s, &key);
	if (b) {
		s->stats.frees++;
		block_drop(s, b);
	} else {
		s->stats.unknown_frees++;
	}
	return 0;
}

void samples_sweep(struct samples *s, bool (*gone)(void *ctx, const struct ms_proc *proc),
		   void *ctx)
{
	struct block *b, *next;

	HASH_ITER (hh, s->blocks, b, next) {
		if (!gone(ctx, &b->key.proc))
			continue;
		s->stats.ended++;
		s->stats.ended_bytes += (double)b->weight;
		block_drop(s, b);
	}
}

int64_t samples_live_bytes(const struct samples *s)
{
	return s->live_bytes;
}

int samples_each(struct samples *s, int (*fn)(void *ctx, const struct samples_row *row), void *ctx)
{
	struct block *b, *next_block;
	struct row *r, *next_row;

	HASH_ITER (hh, s->rows, r, next_row)
		memset(&r->row.live, 0, sizeof(r->row.live));
	HASH_ITER (hh, s->blocks, b, next_block)
		estimate_add(&b->row->row.live, b->size, b->weight);
	HASH_ITER (hh, s->rows, r, next_row) {
		int rc = fn(ctx, &r->row);

		if (rc < 0)
			return rc;
	}
	return 0;
}

void samples_stats(const struct samples *s, struct samples_stats *ret_stats)
{
	*ret_stats = s->stats;
}
