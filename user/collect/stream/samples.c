#include "collect/stream/samples.h"

#include "base/hash.h"
#include "collect/probes/samplers.h"
#include "collect/wire.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The same record within this time is the same event: probed twice, where one file is mapped under
 * two names. */
#define TWIN_NS 1000000

/*
 * Blocks by class are grouped by the span of time in which they were allocated. A free states when
 * its block was allocated, by a clock that may lag some ms behind and was read after the sample was
 * reported.
 */
#define SPAN_SHIFT   26 /* 67 ms */
#define SAME_TIME_NS 50000000

/* A thread that has not allocated a buffer for so long is forgotten, where there are so many that count. */
#define COUNTING_MAX 4096
#define COUNTING_NS  60000000000ULL

struct row {
	struct ms_total_key key;
	struct samples_row row;
	UT_hash_handle hh;
};

struct block {
	struct ms_block_key key;
	struct row *row;
	struct block *older; /* of the same key: by class; only the youngest is in the table */
	uint64_t size, weight, time_ns;
	UT_hash_handle hh;
};

/* A thread that counts what it allocates. */
struct counting {
	struct {
		struct ms_proc proc;
		uint32_t tid, pad;
	} key;
	uint64_t counter; /* at its last sample                                     */
	uint64_t buffer;  /* bytes of its present one; 0: unknown                    */
	uint64_t carried; /* bytes before large objects, for its next sample        */
	uint64_t time_ns; /* of its last sample                                     */
	UT_hash_handle hh;
};

struct samples {
	struct row *rows;
	struct counting *counting;
	bool counts; /* there was a sample of such a thread */
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

/* `b`, which is not in the table. */
static void block_end(struct samples *s, struct block *b)
{
	s->n_blocks--;
	s->live_bytes -= (int64_t)b->weight;
	free(b);
}

/* `b` and all older ones of its key. */
static void block_drop(struct samples *s, struct block *b)
{
	HASH_DEL(s->blocks, b);
	while (b) {
		struct block *older = b->older;

		block_end(s, b);
		b = older;
	}
}

void samples_free(struct samples *s)
{
	struct block *b, *next;

	if (!s)
		return;
	HASH_ITER (hh, s->blocks, b, next)
		block_drop(s, b);
	hash_free(s->rows);
	hash_free(s->counting);
	free(s);
}

static struct row *row_get(struct samples *s, const struct ms_sample_rec *rec)
{
	struct ms_total_key key = wire_alloc_key(&rec->proc, &rec->user, rec->tid, rec->as_gen);
	struct row *r = hash_get(s->rows, key, &key);

	if (r)
		r->row.key = (const struct event_key *)&r->key;
	return r;
}

static struct block *block_find(struct samples *s, const struct ms_block_key *key)
{
	struct block *b;

	HASH_FIND(hh, s->blocks, key, sizeof(*key), b);
	return b;
}

/* `weight`: of the record, in bytes. */
static int block_add(struct samples *s, const struct ms_block_key *key, struct row *row,
		     const struct ms_sample_rec *rec, uint64_t weight)
{
	struct block *b, *old = block_find(s, key);

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
			     .older = old,
			     .size = rec->size,
			     .weight = weight,
			     .time_ns = rec->time_ns };
	if (old)
		HASH_DEL(s->blocks, old);
	HASH_ADD(hh, s->blocks, key, sizeof(b->key), b);
	if (!hash_added(b)) {
		while (b->older) {
			struct block *next = b->older->older;

			block_end(s, b->older);
			b->older = next;
		}
		free(b);
		return -ENOMEM;
	}
	s->n_blocks++;
	s->live_bytes += (int64_t)b->weight;
	return 0;
}

/* A block that is small against the rate has a weight of the rate and half its own size. */
static void learn_rate(struct samples *s, const struct ms_sample_rec *rec, uint64_t weight)
{
	double share = (double)rec->size / (double)weight;

	if (rec->weigh == MS_WEIGH_COUNTER) {
		s->counts = true;
		return;
	}
	if (rec->weigh == MS_WEIGH_RATE) {
		s->stats.rate = (double)rec->weight;
		return;
	}
	if (s->stats.rate > 0 && share >= s->smallest)
		return;
	s->smallest = share;
	s->stats.rate = (double)weight - (double)rec->size / 2;
}

/* The bytes that a sample represents; 0: unknown, or implausible. */
static uint64_t weight_of(const struct ms_sample_rec *rec)
{
	double size = (double)rec->size, rate = (double)rec->weight, bytes;

	if (!rec->size || !rec->weight || rec->weight > INT64_MAX / 2 || rec->size > INT64_MAX / 2)
		return 0;
	if (rec->weigh != MS_WEIGH_RATE)
		return rec->weight;
	/* A rate of one byte is every block (Go's MemProfileRate, jemalloc's lg_prof_sample of 0). */
	bytes = ldexp(rec->weight == 1 ? size : size / -expm1(-size / rate), rec->shift & 15);
	return bytes < (double)(INT64_MAX / 2) ? (uint64_t)llround(bytes) : 0;
}

/* Of a sample of a thread that counts; 0 and *ret_oom: out of memory. */
static uint64_t weight_since(struct samples *s, const struct ms_sample_rec *rec, bool *ret_oom)
{
	uint64_t since, buffer;
	struct counting *c, want;

	if (!rec->size || rec->size > INT64_MAX / 2 || rec->weight > INT64_MAX / 2)
		return 0;
	memset(&want, 0, sizeof(want));
	want.key.proc = rec->proc;
	want.key.tid = rec->tid;
	HASH_FIND(hh, s->counting, &want.key, sizeof(want.key), c);
	buffer = rec->addr > rec->size ? rec->addr - rec->size : c ? c->buffer : 0;
	if (!c || rec->weight < c->counter) { /* or another one has its number now */
		if (!c)
			c = hash_new(s->counting, key, &want.key);
		*ret_oom = !c;
		if (!c)
			return 0;
		since = rec->weight <= buffer ? rec->weight : buffer / 2 + rec->size;
		c->carried = 0;
	} else {
		since = rec->weight - c->counter + c->carried;
	}
	if (since < rec->size)
		since = rec->size;
	c->carried = buffer && rec->size >= buffer ? since - rec->size : 0;
	c->counter = rec->weight;
	c->buffer = buffer;
	c->time_ns = rec->time_ns;
	return since - c->carried;
}

static bool is_twin(const struct block *b, const struct ms_sample_rec *rec, uint64_t weight)
{
	return b->size == rec->size && b->weight == weight && b->row->key.tid == rec->tid &&
	       rec->time_ns - b->time_ns < TWIN_NS;
}

static bool by_class(const struct ms_sample_rec *rec)
{
	return rec->source && samplers[rec->source - 1].by_class;
}

static uint64_t class_addr(const struct ms_sample_rec *rec, uint64_t span)
{
	return rec->addr ^ ((rec->size ^ span << 32) * 0x9e3779b97f4a7c15);
}

static int take_alloc(struct samples *s, struct ms_block_key *key, const struct ms_sample_rec *rec)
{
	bool counts = rec->weigh == MS_WEIGH_COUNTER, oom = false;
	uint64_t weight = counts ? weight_since(s, rec, &oom) : weight_of(rec);
	struct block *old;
	struct row *row;

	if (!weight)
		return oom ? -ENOMEM : 0;
	if (by_class(rec))
		key->addr = class_addr(rec, rec->time_ns >> SPAN_SHIFT);
	old = block_find(s, key);
	if (old && !by_class(rec)) {
		if (is_twin(old, rec, weight))
			return 0;
		s->stats.reused++;
		block_drop(s, old);
	}
	row = row_get(s, rec);
	if (!row)
		return -ENOMEM;
	estimate_add(&row->row.alloc, rec->size, weight);
	estimate_add(&s->stats.alloc, rec->size, weight);
	learn_rate(s, rec, weight);
	s->stats.by_source |= 1ULL << (rec->source & 63);
	if (rec->what == MS_SAMPLE_ALLOC)
		return block_add(s, key, row, rec, weight);
	if (rec->source)
		s->stats.unreported++;
	else
		s->stats.untracked++;
	return 0;
}

/* Among those allocated in that span of time, the one nearest in time, and the distance. */
static void nearest_in(struct samples *s, struct ms_block_key *key, const struct ms_sample_rec *rec,
		       uint64_t span, struct block **nearest, uint64_t *off_ns)
{
	key->addr = class_addr(rec, span);
	for (struct block *b = block_find(s, key); b; b = b->older) {
		uint64_t off = b->time_ns > rec->weight ? b->time_ns - rec->weight
							: rec->weight - b->time_ns;

		if (off >= *off_ns)
			continue;
		*nearest = b;
		*off_ns = off;
	}
}

/* Takes `b` out from among those of its key. */
static void block_unlink(struct samples *s, struct block *b)
{
	struct block *young = block_find(s, &b->key);

	if (young != b) {
		while (young->older != b)
			young = young->older;
		young->older = b->older;
		return;
	}
	HASH_DEL(s->blocks, b);
	if (!b->older)
		return;
	young = b->older;
	HASH_ADD(hh, s->blocks, key, sizeof(young->key), young);
	if (hash_added(young))
		return;
	while (young) { /* out of memory: they cannot be followed further */
		struct block *older = young->older;

		block_end(s, young);
		young = older;
	}
}

static struct block *find_freed(struct samples *s, struct ms_block_key *key,
				const struct ms_sample_rec *rec)
{
	uint64_t off_ns = SAME_TIME_NS, span = rec->weight >> SPAN_SHIFT;
	struct block *b;

	if (by_class(rec)) {
		b = NULL;
		nearest_in(s, key, rec, span, &b, &off_ns);
		nearest_in(s, key, rec, span + 1, &b, &off_ns);
		nearest_in(s, key, rec, span - 1, &b, &off_ns);
		return b;
	}
	b = block_find(s, key);
	if (b || !rec->source || !samplers[rec->source - 1].header)
		return b;
	key->addr += samplers[rec->source - 1].header;
	return block_find(s, key);
}

int samples_take(struct samples *s, const void *record)
{
	const struct ms_sample_rec *rec = record;
	struct ms_block_key key;
	struct block *b;

	if (rec->source > n_samplers)
		return 0;
	memset(&key, 0, sizeof(key));
	key.proc = rec->proc;
	key.addr = rec->addr;
	if (rec->what != MS_SAMPLE_FREE)
		return take_alloc(s, &key, rec);
	b = find_freed(s, &key, rec);
	if (b) {
		s->stats.frees++;
		block_unlink(s, b);
		block_end(s, b);
	} else {
		s->stats.unknown_frees++;
	}
	return 0;
}

static void sweep_counting(struct samples *s, bool (*gone)(void *ctx, const struct proc_id *proc),
			   void *ctx)
{
	bool many = HASH_COUNT(s->counting) > COUNTING_MAX;
	struct counting *c, *next;
	uint64_t newest = 0;

	HASH_ITER (hh, s->counting, c, next)
		if (c->time_ns > newest)
			newest = c->time_ns;
	HASH_ITER (hh, s->counting, c, next) {
		struct proc_id id = wire_id(&c->key.proc);

		if (!gone(ctx, &id) && !(many && newest - c->time_ns > COUNTING_NS))
			continue;
		HASH_DEL(s->counting, c);
		free(c);
	}
}

void samples_sweep(struct samples *s, bool (*gone)(void *ctx, const struct proc_id *proc),
		   void *ctx)
{
	struct block *b, *next;

	sweep_counting(s, gone, ctx);
	HASH_ITER (hh, s->blocks, b, next) {
		struct proc_id id = wire_id(&b->key.proc);

		if (!gone(ctx, &id))
			continue;
		for (struct block *each = b; each; each = each->older) {
			s->stats.ended++;
			s->stats.ended_bytes += (double)each->weight;
		}
		block_drop(s, b);
	}
}

int64_t samples_live_bytes(const struct samples *s)
{
	return s->live_bytes;
}

void samples_each_live(struct samples *s,
		       void (*fn)(void *ctx, const struct samples_row *row, uint64_t born_ns,
				  uint64_t bytes),
		       void *ctx)
{
	struct block *b, *next;

	HASH_ITER (hh, s->blocks, b, next)
		for (struct block *each = b; each; each = each->older)
			fn(ctx, &each->row->row, each->time_ns, each->weight);
}

int samples_each(struct samples *s, int (*fn)(void *ctx, struct samples_row *row), void *ctx)
{
	struct block *b, *next_block;
	struct row *r, *next_row;

	HASH_ITER (hh, s->rows, r, next_row)
		memset(&r->row.live, 0, sizeof(r->row.live));
	HASH_ITER (hh, s->blocks, b, next_block)
		for (struct block *each = b; each; each = each->older)
			estimate_add(&each->row->row.live, each->size, each->weight);
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
	/* Buffers have sizes of their own. */
	if (s->counts && s->stats.alloc.samples)
		ret_stats->rate = s->stats.alloc.bytes / (double)s->stats.alloc.samples;
}
