#include "analyse/live_heap.h"

#include "analyse/live_divide.h"
#include "analyse/live_fates.h"
#include "base/hash.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	N_CLASSES = LIVE_CLASSES,
	SMALL_WORDS = 130, /* to 1,040 bytes each size has its class; then eight for a doubling */
	LARGE = 128 << 10, /* such a block may be used from somewhere in it on: it was aligned  */
	AROUND = 16,       /* bytes: what a block costs beside its size                         */
	FULL = LIVE_GROUPS +
	       1, /* which estimate: of all groups, or without one                     */
	NO_GROUP = LIVE_GROUPS,
	POOL = 32, /* blocks in use, and ends, that a pool of classes has at least      */
};

/* 97.5 % quantile of Student's distribution with LIVE_GROUPS - 1 degrees of freedom. */
#define T_GROUPS 2.131

/* The relative error of how what was reused is divided among the rows of a pool, in simulated programs. */
#define MODEL 0.05

#define LATELY 8 /* guesses: how much bursts cover changes over minutes, and each has its noise */

/* A block of which it is not known that it has ended. */
struct kept {
	uint64_t addr;
	uint64_t size, born_ns;
	uint32_t usable; /* words; by the look, else as expected              */
	uint32_t row, thread, burst;
	float u;      /* 0 … 1                                             */
	float weight; /* 0: not known yet                                  */
	float then;   /* what a call stood for, about, when it was seen    */
	bool looked;  /* `usable` is the look's                            */
	UT_hash_handle hh;
};

/* One that has ended, whose weight is not known yet. */
struct ended {
	uint32_t row, thread, burst;
	uint16_t class;
	bool before; /* only its making counts: it ended in its own burst  */
	float mult;
	double size;
};

/* A row's blocks of one class: sums of weights, by group; NO_GROUP is of certain ones. */
struct cell {
	struct {
		uint32_t row, class;
	} key;
	double in_use[LIVE_GROUPS + 1]; /* usable bytes */
	double blocks, old, plain, bytes[LIVE_GROUPS + 1];
	double reused; /* of in_use, but one group: that have ended, by live_fates.h    */
	double chance; /* variance of the others' sum: by which blocks were seen            */
	double unsure; /* variance of `reused`: which of them have ended                    */
	double ends;
	double one; /* variance of one block more or less, of those that may have ended */
	uint64_t seen;
	uint64_t n_ends;
	double v, vc;
	struct cell *next; /* of the same class                                  */
	UT_hash_handle hh;
};

struct settled {
	struct {
		uint32_t burst, thread;
	} key;
	double weight;
	UT_hash_handle hh;
};

/* Which of `fates` is of a row's blocks of a class. */
struct fate {
	struct {
		uint32_t row, class;
	} key;
	uint32_t at;
	UT_hash_handle hh;
};

struct live_heap {
	struct kept *kept;
	uint32_t max;
	struct cell *cells, *by_class[N_CLASSES];
	struct settled *settled;
	struct ended *ended;
	uint32_t n_ended, room_ended;
	double weights, n_weights;         /* of those that are known: their mean is the others' */
	double guessed, n_guessed, lately; /* lately: of the last guesses, about */
	uint32_t settled_to;               /* the last burst whose weights came                   */
	double threshold;
	uint64_t random;
	uint64_t at_ns, age_ns;
	uint64_t before_ns;       /* of the look before */
	bool sampled;             /* BEFORE: some of its blocks are not known */
	double in_use[N_CLASSES]; /* bytes, by the last look */
	struct live_estimate *rows;
	double *made;
	struct fate *fate_of;
	struct live_fates *fates;
	uint32_t n_fates, room_fates;
	double unit_ns;
	struct live_share *shares; /* of the pool being estimated, and where a row is among them */
	uint32_t *share_of;
	uint32_t n_rows;
	struct live_facts facts;
};

struct live_heap *live_heap_new(uint32_t max, uint64_t seed)
{
	struct live_heap *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->max = max > 64 ? max : 64;
	h->random = seed * 2 + 1;
	h->unit_ns = 1e9;
	return h;
}

void live_heap_free(struct live_heap *h)
{
	if (!h)
		return;
	hash_free(h->kept);
	hash_free(h->cells);
	hash_free(h->fate_of);
	hash_free(h->settled);
	free(h->ended);
	free(h->rows);
	free(h->made);
	free(h->fates);
	free(h->shares);
	free(h->share_of);
	free(h);
}

/* 0 < … <= 1 */
static double random_part(struct live_heap *h)
{
	h->random += 0x9e3779b97f4a7c15ULL;
	return (double)((live_mixed(h->random) >> 40) + 1) * 0x1p-24;
}

uint32_t live_class_of(uint64_t words)
{
	uint32_t bits = 0, class;

	if (words < SMALL_WORDS)
		return (uint32_t)words;
	while (words >> bits >= 16)
		bits++;
	class = SMALL_WORDS + (bits - 4) * 8 + (uint32_t)(words >> bits) - 8;
	return class < N_CLASSES ? class : N_CLASSES - 1;
}

static uint32_t words_of(uint64_t bytes)
{
	return bytes / 8 < UINT32_MAX ? (uint32_t)(bytes / 8) : UINT32_MAX;
}

static int rows_for(struct live_heap *h, uint32_t row)
{
	uint32_t n = h->n_rows ? h->n_rows : 64;
	struct live_estimate *rows;
	struct live_share *shares;
	uint32_t *share_of;
	double *made;

	if (row < h->n_rows)
		return 0;
	while (n <= row)
		n *= 2;
	rows = reallocarray(h->rows, n, sizeof(*rows));
	if (rows)
		h->rows = rows;
	made = reallocarray(h->made, n, sizeof(*made));
	if (made)
		h->made = made;
	shares = reallocarray(h->shares, n, sizeof(*shares));
	if (shares)
		h->shares = shares;
	share_of = reallocarray(h->share_of, n, sizeof(*share_of));
	if (share_of)
		h->share_of = share_of;
	if (!rows || !made || !shares || !share_of)
		return -ENOMEM;
	memset(share_of + h->n_rows, 0, (n - h->n_rows) * sizeof(*share_of));
	memset(rows + h->n_rows, 0, (n - h->n_rows) * sizeof(*rows));
	memset(made + h->n_rows, 0, (n - h->n_rows) * sizeof(*made));
	h->n_rows = n;
	return 0;
}

static struct cell *cell_of(struct live_heap *h, uint32_t row, uint32_t class)
{
	struct cell like = { .key = { row, class } }, *c;

	HASH_FIND(hh, h->cells, &like.key, sizeof(like.key), c);
	if (c)
		return c;
	c = hash_new(h->cells, key, &like.key);
	if (c) {
		c->next = h->by_class[class];
		h->by_class[class] = c;
	}
	return c;
}

/* By how much one that was kept weighs more, because others were not. */
static double kept_for(const struct live_heap *h, uint64_t size)
{
	double large = (double)size + AROUND;

	return h->threshold > large ? h->threshold / large : 1;
}

static double mean_weight(const struct live_heap *h)
{
	if (h->n_weights > 0)
		return h->weights / h->n_weights;
	return h->n_guessed > 0 ? h->guessed / h->n_guessed : 1;
}

static double units_of(const struct live_heap *h, const struct kept *k, uint64_t at_ns)
{
	return at_ns > k->born_ns ? (double)(at_ns - k->born_ns) / h->unit_ns : 0;
}

/* Those of a row's blocks of a class. NULL: out of memory. */
static struct live_fates *fates_of(struct live_heap *h, uint32_t row, uint32_t class)
{
	struct fate like = { .key = { row, class } }, *f;

	HASH_FIND(hh, h->fate_of, &like.key, sizeof(like.key), f);
	if (f)
		return &h->fates[f->at];
	if (h->n_fates == h->room_fates) {
		uint32_t room = h->room_fates ? 2 * h->room_fates : 64;
		struct live_fates *more = reallocarray(h->fates, room, sizeof(*more));

		if (!more)
			return NULL;
		h->fates = more;
		h->room_fates = room;
	}
	f = hash_new(h->fate_of, key, &like.key);
	if (!f)
		return NULL;
	f->at = h->n_fates++;
	h->fates[f->at] = (struct live_fates){ .row = row, .class = class };
	return &h->fates[f->at];
}

static struct live_fates *fates_of_block(struct live_heap *h, const struct kept *k)
{
	return fates_of(h, k->row, live_class_of(k->usable));
}

/* Its end was seen in a burst, as its address was handed out to a block of `next`; -1: not so. */
static int seen_to_end(struct live_heap *h, const struct kept *k, uint64_t at_ns, int64_t next)
{
	struct live_fates *f, *to = NULL;

	if (next >= 0) /* first: it may move the others */
		to = fates_of(h, (uint32_t)next, live_class_of(k->usable));
	if (next >= 0 && !to)
		return -ENOMEM;
	f = fates_of_block(h, k);
	if (!f)
		return -ENOMEM;
	/* It may have been the newest, and have moved `to`. */
	if (next >= 0)
		to = fates_of(h, (uint32_t)next, live_class_of(k->usable));
	live_fates_seen(f, units_of(h, k, at_ns));
	if (to)
		live_fates_next(f, (uint32_t)(to - h->fates));
	return 0;
}

/* A look found it gone, which was there at the look before, or is younger. */
static int found_gone(struct live_heap *h, const struct kept *k)
{
	struct live_fates *f = fates_of_block(h, k);

	if (!f)
		return -ENOMEM;
	live_fates_gone(f, units_of(h, k, h->before_ns), units_of(h, k, h->at_ns), random_part(h));
	return 0;
}

static int sum_fates(struct live_heap *h, uint32_t without)
{
	const struct kept *k;
	int r = 0;

	for (k = h->kept; k; k = k->hh.next) {
		struct live_fates *f = fates_of_block(h, k);

		if (!f)
			return -ENOMEM;
		live_fates_watched(f, units_of(h, k, h->at_ns), 1);
	}
	/* Each group has its part of the chance in how many ends were seen. */
	r = live_fates_sum(h->fates, h->n_fates, mean_weight(h),
			   without < LIVE_GROUPS ? without + 1 : 0, LIVE_GROUPS - 1);
	for (k = h->kept; k; k = k->hh.next)
		live_fates_watched(fates_of_block(h, k), units_of(h, k, h->at_ns), -1);
	return r;
}

/* An end. Its weight may be known later. `own`: in its own burst. */
static int note_end(struct live_heap *h, const struct kept *k, bool own)
{
	struct ended *e;

	if (h->n_ended == h->room_ended) {
		uint32_t room = h->room_ended ? 2 * h->room_ended : 1024;
		struct ended *more = reallocarray(h->ended, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		h->ended = more;
		h->room_ended = room;
	}
	e = &h->ended[h->n_ended++];
	*e = (struct ended){ .row = k->row,
			     .thread = k->thread,
			     .burst = k->burst,
			     .class = (uint16_t)live_class_of(k->usable),
			     .before = own,
			     .mult = (float)(k->row == LIVE_BEFORE ? k->weight
								   : kept_for(h, k->size)),
			     .size = (double)k->size };
	return 0;
}

static void drop(struct live_heap *h, struct kept *k)
{
	HASH_DEL(h->kept, k);
	free(k);
}

static struct kept *kept_at(const struct live_heap *h, uint64_t addr)
{
	struct kept *k;

	HASH_FIND(hh, h->kept, &addr, sizeof(addr), k);
	return k;
}

static int by_rank(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Half of the blocks go: those of the lowest (size + AROUND) / u. */
static int thin(struct live_heap *h)
{
	uint32_t n = 0, all = HASH_COUNT(h->kept);
	_cleanup_(freep) double *ranks = calloc(all + 1, sizeof(*ranks));
	struct kept *k, *next;

	if (!ranks)
		return -ENOMEM;
	for (k = h->kept; k; k = k->hh.next)
		if (k->row != LIVE_BEFORE)
			ranks[n++] = ((double)k->size + AROUND) / (double)k->u;
	if (!n)
		return 0;
	qsort(ranks, n, sizeof(*ranks), by_rank);
	h->threshold = ranks[n / 2];
	HASH_ITER (hh, h->kept, k, next)
		if (k->row != LIVE_BEFORE &&
		    ((double)k->size + AROUND) / (double)k->u < h->threshold)
			drop(h, k);
	return 0;
}

int live_heap_begin(struct live_heap *h, const struct live_look *look)
{
	double part = look->n > h->max / 2 ? (double)h->max / 2 / (double)look->n : 1;
	double one_in = fmax(look->one_in, 1) / part;

	if (rows_for(h, LIVE_BEFORE) < 0)
		return -ENOMEM;
	h->sampled |= one_in > 1;
	for (uint64_t i = 0; i < look->n; i++) {
		const struct live_block *b = &look->blocks[i];
		struct kept *k;

		if ((part < 1 && random_part(h) > part) || kept_at(h, b->addr))
			continue;
		k = hash_new(h->kept, addr, &b->addr);
		if (!k)
			return -ENOMEM;
		k->size = b->bytes;
		k->usable = words_of(b->bytes);
		k->looked = true;
		k->born_ns = look->at_ns;
		k->weight = (float)one_in;
		k->burst = one_in > 1 ? (uint32_t)(random_part(h) * 1e6) : 0;
		k->u = 1;
	}
	return 0;
}

int live_heap_seen(struct live_heap *h, const struct live_seen *seen)
{
	struct kept *k = kept_at(h, seen->addr);
	uint64_t usable = seen->room > seen->size ? seen->room : seen->size;
	struct live_fates *f;
	double u = random_part(h);
	int r = 0;

	h->facts.seen++;
	if (k) {
		bool own = k->row != LIVE_BEFORE && k->burst == seen->burst;

		h->facts.reused++;
		if (!own)
			r = seen_to_end(h, k, seen->born_ns, seen->row);
		r = r < 0 ? r : note_end(h, k, own);
		drop(h, k);
	}
	if (r < 0 || rows_for(h, seen->row) < 0)
		return -ENOMEM;
	h->made[seen->row]++;
	f = fates_of(h, seen->row, live_class_of(words_of(usable)));
	if (!f)
		return -ENOMEM;
	f->made++;
	if (((double)seen->size + AROUND) / u < h->threshold)
		return 0;
	if (HASH_COUNT(h->kept) >= h->max && thin(h) < 0)
		return -ENOMEM;
	if (((double)seen->size + AROUND) / u < h->threshold)
		return 0;
	k = hash_new(h->kept, addr, &seen->addr);
	if (!k)
		return -ENOMEM;
	k->size = seen->size;
	k->born_ns = seen->born_ns;
	k->usable = words_of(usable);
	k->row = seen->row;
	k->thread = seen->thread;
	k->burst = seen->burst;
	k->u = (float)u;
	k->then = (float)(h->lately > 0 ? h->lately : 1);
	return 0;
}

void live_heap_freed(struct live_heap *h, uint64_t addr, uint64_t at_ns)
{
	struct kept *k = kept_at(h, addr);

	if (!k)
		return;
	h->facts.freed++;
	seen_to_end(h, k, at_ns, -1);
	note_end(h, k, false);
	drop(h, k);
}

void live_heap_guess(struct live_heap *h, double weight)
{
	h->guessed += weight;
	h->n_guessed++;
	h->lately += (weight - h->lately) / (h->lately > 0 ? LATELY : 1);
}

int live_heap_weigh(struct live_heap *h, uint32_t burst, uint32_t thread, double weight)
{
	struct settled like = { .key = { burst, thread } }, *s;

	HASH_FIND(hh, h->settled, &like.key, sizeof(like.key), s);
	if (!s)
		s = hash_new(h->settled, key, &like.key);
	if (!s)
		return -ENOMEM;
	s->weight = weight;
	if (h->settled_to < burst)
		h->settled_to = burst;
	h->weights += weight;
	h->n_weights++;
	return 0;
}

/* 0: not known yet. */
static double weight_of(const struct live_heap *h, uint32_t burst, uint32_t thread)
{
	struct settled like = { .key = { burst, thread } }, *s;

	HASH_FIND(hh, h->settled, &like.key, sizeof(like.key), s);
	if (s)
		return s->weight;
	return burst <= h->settled_to ? mean_weight(h) : 0; /* its record came late */
}

/* --- a look ----------------------------------------------------------------------------------- */

static bool is_unknown(const struct live_look *look, uint64_t addr)
{
	for (uint32_t i = 0; i < look->n_unknown; i++)
		if (addr >= look->unknown[i].from && addr < look->unknown[i].end)
			return true;
	return false;
}

/* The block that `addr` is in, NULL: none. */
static const struct live_block *block_of(const struct live_look *look, uint64_t addr)
{
	uint64_t low = 0, high = look->n;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (look->blocks[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || addr - look->blocks[low - 1].addr >= look->blocks[low - 1].bytes)
		return NULL;
	return &look->blocks[low - 1];
}

/* Is it still the block that was seen, as far as the look can say? */
static bool is_there(struct kept *k, const struct live_block *b)
{
	uint64_t rest = b ? b->addr + b->bytes - k->addr : 0;

	if (!b || (b->addr != k->addr && b->bytes < LARGE) || rest < k->size)
		return false;
	if (k->looked)
		return words_of(rest) == k->usable;
	/* More than an allocator rounds up by. */
	if (b->addr == k->addr && rest > 2 * (k->size + 64) && rest < LARGE)
		return false;
	k->usable = words_of(rest);
	k->looked = true;
	return true;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int live_heap_addrs(const struct live_heap *h, uint64_t **ret_addrs, uint64_t *ret_n)
{
	uint64_t *addrs = calloc((size_t)HASH_COUNT(h->kept) + 1, sizeof(*addrs)), n = 0;

	if (!addrs)
		return -ENOMEM;
	for (const struct kept *k = h->kept; k; k = k->hh.next)
		addrs[n++] = k->addr;
	qsort(addrs, n, sizeof(*addrs), by_address);
	*ret_addrs = addrs;
	*ret_n = n;
	return 0;
}

int live_heap_look(struct live_heap *h, const struct live_look *look)
{
	struct kept *k, *next;

	for (uint32_t class = 0; class < N_CLASSES; class ++)
		h->in_use[class] = look->class_words ? 8 * (double)look->class_words[class] : 0;
	for (uint64_t i = 0; i < look->n && !look->class_words; i++) {
		uint32_t class = live_class_of(words_of(look->blocks[i].bytes));

		h->in_use[class] += 8 * (double)words_of(look->blocks[i].bytes);
	}
	h->before_ns = h->at_ns;
	h->at_ns = look->at_ns;
	HASH_ITER (hh, h->kept, k, next) {
		/* Made while the look was under way. */
		if (k->born_ns > look->at_ns)
			continue;
		if (is_there(k, block_of(look, k->addr)))
			continue;
		if (is_unknown(look, k->addr)) {
			h->facts.unknown++;
			continue;
		}
		h->facts.gone++;
		if (found_gone(h, k) < 0 || note_end(h, k, false) < 0)
			return -ENOMEM;
		drop(h, k);
	}
	return live_heap_estimate(h, false);
}

/* --- estimates -------------------------------------------------------------------------------- */

static uint32_t group_of(const struct live_heap *h, uint32_t row, uint32_t burst, double weight)
{
	(void)h;
	if (row == LIVE_BEFORE && weight <= 1)
		return NO_GROUP;
	return (uint32_t)(live_mixed(burst) % LIVE_GROUPS);
}

/* Ends whose weights are known by now become sums. */
static int settle_ends(struct live_heap *h)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < h->n_ended; i++) {
		const struct ended e = h->ended[i];
		double w = e.row == LIVE_BEFORE ? 1 : weight_of(h, e.burst, e.thread);
		struct cell *c;

		if (w <= 0) {
			h->ended[left++] = e;
			continue;
		}
		if (e.before)
			continue;
		w *= (double)e.mult;
		c = cell_of(h, e.row, e.class);
		if (!c)
			return -ENOMEM;
		c->n_ends++;
		c->ends += w;
	}
	h->n_ended = left;
	return 0;
}

static int sum_in_use(struct live_heap *h)
{
	double mean = mean_weight(h);
	struct cell *c;
	struct kept *k;

	for (c = h->cells; c; c = c->hh.next) {
		memset(c->in_use, 0, sizeof(c->in_use));
		memset(c->bytes, 0, sizeof(c->bytes));
		c->blocks = c->old = c->plain = 0;
		c->v = c->vc = 0;
		c->seen = 0;
	}
	for (k = h->kept; k; k = k->hh.next) {
		double w = (double)k->weight, size = (double)k->size, x;
		uint32_t g;

		if (w <= 0)
			k->weight = (float)(w = weight_of(h, k->burst, k->thread));
		if (w <= 0)
			w = mean;
		if (k->born_ns > h->at_ns)
			continue;
		if (k->row != LIVE_BEFORE)
			w *= kept_for(h, k->size);
		c = cell_of(h, k->row, live_class_of(k->usable));
		if (!c)
			return -ENOMEM;
		g = group_of(h, k->row, k->burst, w);
		x = w * size;
		c->in_use[g] += w * 8 * k->usable;
		c->blocks += w;
		c->plain +=
			k->row == LIVE_BEFORE ? x : size * (double)k->then * kept_for(h, k->size);
		c->bytes[g] += x;
		if (h->at_ns - k->born_ns >= h->age_ns)
			c->old += k->row == LIVE_BEFORE ? w : kept_for(h, k->size);
		c->seen++;
		if (g != NO_GROUP) {
			c->v += x * (x - size);
			c->vc += x * (x - size) * (x - size / 2);
		}
	}
	return 0;
}

/* Over all groups, or all but one: scaled up, for the others stand for it too. */
static double sum_of(const double *groups, uint32_t without)
{
	double sum = 0;

	for (uint32_t g = 0; g < LIVE_GROUPS; g++)
		if (g != without)
			sum += groups[g];
	if (without < LIVE_GROUPS)
		sum *= (double)LIVE_GROUPS / (LIVE_GROUPS - 1);
	return sum + groups[NO_GROUP];
}

/* What a row's cell comes to, of what the row comes to in its pool. */
static void add_cell(struct live_heap *h, const struct cell *c, const struct live_share *s,
		     uint32_t without, double ended)
{
	struct live_estimate *est = &h->rows[c->key.row];
	double bytes = sum_of(c->bytes, without);
	double part = s->in_use > 0 ? s->live / s->in_use : 0;
	double lives = s->in_use > 0 ? s->not_reused / s->in_use : 0; /* of what was seen of it */

	bytes *= part;
	if (without < LIVE_GROUPS) {
		est->without[without] += bytes;
		return;
	}
	est->seen += c->seen;
	est->blocks += c->blocks * part;
	est->plain += c->plain * lives;
	est->bytes += bytes;
	est->v += c->v;
	est->vc += c->vc;
	est->ends += c->ends;
	est->power += (double)c->seen * ended;
	est->old_blocks += c->old * lives;
}

/*
 * What leaving out groups does not show, of the variance of a pool's rows. What is taken in all is known; of whom
 * is not. Of blocks that are all known (BEFORE), it is chance which of them have ended. A row whose blocks end may have a
 * block more or less that lives, and all groups agree on none where it has few. What these have more, others have less.
 */
static void add_model(struct live_heap *h, uint32_t n, double in_use, double reused)
{
	double known = 0, others = 0, least = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct live_share *s = &h->shares[i];

		if (s->row == LIVE_BEFORE)
			known += h->sampled ? 0 : s->chance;
		else
			others += s->chance + s->unsure;
		s->least = fmax(0, s->one - s->chance - s->unsure);
		least += s->least;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct live_share *s = &h->shares[i];
		double v = pow(MODEL * fmin(s->reused, reused - s->reused), 2);

		if (s->row == LIVE_BEFORE)
			v += known;
		else if (others > 0)
			v += (known + least - s->least) * pow((s->chance + s->unsure) / others, 2);
		v += s->least;
		h->rows[s->row].most += in_use;
		if (s->in_use > 0)
			h->rows[s->row].model += v * pow(s->bytes / s->in_use, 2);
	}
}

/* The classes from `from` to before `end` together, of all groups or without one. */
static void estimate_pool(struct live_heap *h, uint32_t from, uint32_t end, uint32_t without)
{
	struct live_share *shares = h->shares;
	double live = 0, ends = 0, blocks = 0, in_use = 0, reused = 0;
	uint32_t n = 0;

	for (uint32_t class = from; class < end; class ++) {
		in_use += h->in_use[class];
		for (struct cell *c = h->by_class[class]; c; c = c->next) {
			uint32_t at = h->share_of[c->key.row];

			if (at >= n || shares[at].row != c->key.row) {
				at = h->share_of[c->key.row] = n++;
				shares[at] = (struct live_share){ .row = c->key.row };
			}
			shares[at].in_use += sum_of(c->in_use, without);
			shares[at].reused += c->reused;
			shares[at].chance += c->chance;
			shares[at].unsure += c->unsure;
			shares[at].one = fmax(shares[at].one, c->one);
			shares[at].bytes += sum_of(c->bytes, without);
			ends += c->ends;
			blocks += c->blocks;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		shares[i].live = shares[i].in_use - shares[i].reused;
		live += shares[i].live;
		reused += shares[i].reused;
	}
	live_divide(shares, n, live - in_use);
	if (without == FULL)
		add_model(h, n, in_use, reused);
	for (uint32_t class = from; class < end; class ++)
		for (struct cell *c = h->by_class[class]; c; c = c->next)
			add_cell(h, c, &shares[h->share_of[c->key.row]], without,
				 ends + blocks > 0 ? ends / (ends + blocks) : 0);
}

/* How far a pool that begins with class `from` goes: until chance no longer decides what it says. */
static uint32_t pool_end(const struct live_heap *h, uint32_t from)
{
	uint64_t seen = 0, ends = 0, rest = 0;
	uint32_t class = from, end;

	for (; class < N_CLASSES && (seen < POOL || ends < POOL); class ++)
		for (const struct cell *c = h->by_class[class]; c; c = c->next) {
			seen += c->seen;
			ends += c->n_ends;
		}
	end = class;
	for (; class < N_CLASSES; class ++)
		for (const struct cell *c = h->by_class[class]; c; c = c->next)
			rest += c->seen < c->n_ends ? c->seen : c->n_ends;
	return rest < POOL ? N_CLASSES : end;
}

/*
 * Which of those in use are others', over all groups or all but one. A block of which no end was seen, which
 * has ended with the probability p and stands for w, adds w (1 - p) to the estimate, and to what there is
 * 1 - p on average, and so do the w - 1 that it stands for: hence the variances.
 */
static int sum_reused(struct live_heap *h, uint32_t without)
{
	double scale = without < LIVE_GROUPS ? (double)LIVE_GROUPS / (LIVE_GROUPS - 1) : 1;
	double mean = mean_weight(h);
	struct cell *c;

	if (sum_fates(h, without) < 0)
		return -ENOMEM;
	for (c = h->cells; c; c = c->hh.next)
		c->reused = c->chance = c->unsure = c->one = 0;
	for (const struct kept *k = h->kept; k; k = k->hh.next) {
		double w = k->weight > 0 ? (double)k->weight : mean, p, size = 8.0 * k->usable;
		uint32_t g;

		if (k->born_ns > h->at_ns)
			continue;
		if (k->row != LIVE_BEFORE)
			w *= kept_for(h, k->size);
		g = group_of(h, k->row, k->burst, w);
		if (g == without)
			continue;
		p = live_fates_ended(fates_of_block(h, k), units_of(h, k, h->at_ns));
		c = cell_of(h, k->row, live_class_of(k->usable));
		if (!c)
			return -ENOMEM;
		c->reused += w * size * p * (g < LIVE_GROUPS ? scale : 1);
		if (p > 0 && k->row != LIVE_BEFORE)
			c->one = fmax(c->one, w * w * size * size);
		c->unsure += w * w * size * size * p * (1 - p);
		c->chance +=
			size * size * fmax(0, (1 - p) * (1 - p) * (w * w - 2 * w) + w * (1 - p));
	}
	return 0;
}

int live_heap_estimate(struct live_heap *h, bool intervals)
{
	if (settle_ends(h) < 0 || sum_in_use(h) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->n_rows; i++)
		h->rows[i] = (struct live_estimate){ 0 };
	for (uint32_t g = intervals ? 0 : FULL; g <= FULL; g++) {
		if (g == NO_GROUP)
			continue;
		if (sum_reused(h, g) < 0)
			return -ENOMEM;
		for (uint32_t from = 0, end; from < N_CLASSES; from = end) {
			end = pool_end(h, from);
			estimate_pool(h, from, end, g);
		}
	}
	hash_free(h->settled); /* whoever waited for one has it */
	h->facts.blocks = HASH_COUNT(h->kept);
	h->facts.threshold = h->threshold;
	return 0;
}

const struct live_estimate *live_heap_row(const struct live_heap *h, uint32_t row)
{
	static const struct live_estimate none;

	return row < h->n_rows ? &h->rows[row] : &none;
}

double live_heap_made(const struct live_heap *h, uint32_t row)
{
	return row < h->n_rows ? h->made[row] : 0;
}

void live_heap_unit(struct live_heap *h, uint64_t unit_ns)
{
	h->unit_ns = (double)unit_ns;
}

void live_heap_age(struct live_heap *h, uint64_t age_ns)
{
	h->age_ns = age_ns;
}

void live_estimate_merge(struct live_estimate *to, const struct live_estimate *from)
{
	to->seen += from->seen;
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	to->plain += from->plain;
	to->old_blocks += from->old_blocks;
	for (int g = 0; g < LIVE_GROUPS; g++)
		to->without[g] += from->without[g];
	to->v += from->v;
	to->vc += from->vc;
	to->model += from->model;
	to->most += from->most;
	to->power += from->power;
	to->ends += from->ends;
}

/* As model/estimate.h, which takes in that the variance grows with what is estimated; the variance
 * itself is the jackknife's. */
struct interval live_interval(const struct live_estimate *est)
{
	struct interval i = { est->bytes, est->bytes };
	double mean = 0, v = 0, c, half;

	for (int g = 0; g < LIVE_GROUPS; g++)
		mean += est->without[g] / LIVE_GROUPS;
	for (int g = 0; g < LIVE_GROUPS; g++)
		v += (est->without[g] - mean) * (est->without[g] - mean);
	v = v * (LIVE_GROUPS - 1.0) / LIVE_GROUPS + est->model;
	if (v > 0) {
		/* What is known of pools takes from the skew, as it does from the variance; less than a
		 * third of that is more than the jackknife's own chance. */
		c = est->v > 0 ? est->vc / est->v * fmin(1, 3 * v / est->v) : 0;
		half = sqrt(T_GROUPS * T_GROUPS * c * c / 4 + v);
		i.low += T_GROUPS * (T_GROUPS * c / 2 - half);
		i.high += T_GROUPS * (T_GROUPS * c / 2 + half);
	}
	i.low = fmax(i.low, 0);
	i.high = fmin(i.high, fmax(est->most, est->bytes));
	return i;
}

static struct value_error scaled(const struct value_error *e, double by)
{
	struct value_error out = { .samples = e->samples,
				   .unseen = e->unseen * by,
				   .v = e->v * by * by,
				   .vc = e->vc * by * by * by };

	for (int g = 0; g < ERROR_GROUPS; g++)
		out.group[g] = e->group[g] * by;
	return out;
}

void live_errors(const struct live_estimate *est, struct value_error *ret_blocks,
		 struct value_error *ret_bytes)
{
	struct value_error e = { .samples = (double)est->seen,
				 .unseen = est->bytes,
				 .v = est->model };
	double mean = 0;

	_Static_assert((int)LIVE_GROUPS == (int)ERROR_GROUPS, "groups of bursts");
	for (int g = 0; g < LIVE_GROUPS; g++)
		mean += est->without[g] / LIVE_GROUPS;
	/* The squares add up to the jackknife's variance. */
	for (int g = 0; g < LIVE_GROUPS; g++)
		e.group[g] = (mean - est->without[g]) * sqrt((LIVE_GROUPS - 1.0) / LIVE_GROUPS);
	*ret_bytes = e;
	*ret_blocks = scaled(&e, est->bytes > 0 ? est->blocks / est->bytes : 0);
}

void live_heap_facts(const struct live_heap *h, struct live_facts *ret_facts)
{
	*ret_facts = h->facts;
}
