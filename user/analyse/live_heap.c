#include "analyse/live_heap.h"

#include "analyse/live_heap_parts.h"
#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	SMALL_WORDS = 130, /* to 1,040 bytes each size has its class; then eight for a doubling */
	LARGE = 128 << 10, /* such a block may be used from somewhere in it on: it was aligned  */
	AROUND = 16,       /* bytes: what a block costs beside its size                         */
	LATELY =
		8, /* guesses: how much bursts cover changes over minutes, and each has its noise */
};

struct live_heap *live_heap_new(uint32_t max, uint64_t seed)
{
	struct live_heap *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->max = max > 64 ? max : 64;
	h->random = seed * 2 + 1;
	h->unit_ns = 1e9;
	h->scale = 1;
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
	live_heap_free_moments(h);
	free(h->late);
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
	return class < LIVE_CLASSES ? class : LIVE_CLASSES - 1;
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

/* By how much one that was kept weighs more, because others were not. */
double live_heap_kept_for(const struct live_heap *h, uint64_t size)
{
	double large = (double)size + AROUND;

	return h->threshold > large ? h->threshold / large : 1;
}

double live_heap_rank(const struct kept *k)
{
	return ((double)k->size + AROUND) / (double)k->u;
}

double live_heap_mean_weight(const struct live_heap *h)
{
	if (h->n_weights > 0)
		return h->weights / h->n_weights;
	return h->guessed.calls > 0 ? h->guessed.stand_for / h->guessed.calls : 1;
}

double live_heap_units_of(const struct live_heap *h, const struct kept *k, uint64_t at_ns)
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
	if (!GROW(h->fates, h->n_fates, h->room_fates))
		return NULL;
	f = hash_new(h->fate_of, key, &like.key);
	if (!f)
		return NULL;
	f->at = h->n_fates++;
	h->fates[f->at] = (struct live_fates){ .row = row, .class = class };
	return &h->fates[f->at];
}

struct live_fates *live_heap_fates_of(struct live_heap *h, const struct kept *k)
{
	return fates_of(h, k->row, live_class_of(k->usable));
}

double live_heap_lives(const struct live_heap *h, const struct kept *k)
{
	struct fate like = { .key = { k->row, live_class_of(k->usable) } }, *f;

	HASH_FIND(hh, h->fate_of, &like.key, sizeof(like.key), f);
	return f ? 1 - live_fates_ended(&h->fates[f->at], live_heap_units_of(h, k, h->at_ns)) : 1;
}

/* Its end was seen in a burst, as its address was handed out to a block of `next`; -1: not so. */
static int seen_to_end(struct live_heap *h, const struct kept *k, uint64_t at_ns, int64_t next)
{
	struct live_fates *f, *to = NULL;

	if (next >= 0) /* first: it may move the others */
		to = fates_of(h, (uint32_t)next, live_class_of(k->usable));
	if (next >= 0 && !to)
		return -ENOMEM;
	f = live_heap_fates_of(h, k);
	if (!f)
		return -ENOMEM;
	/* It may have been the newest, and have moved `to`. */
	if (next >= 0)
		to = fates_of(h, (uint32_t)next, live_class_of(k->usable));
	live_fates_seen(f, live_heap_units_of(h, k, at_ns));
	if (live_heap_note_late(h, k, at_ns) < 0)
		return -ENOMEM;
	if (to)
		live_fates_next(f, (uint32_t)(to - h->fates));
	return 0;
}

/* A look found it gone, which was there at the look before, or is younger. */
static int found_gone(struct live_heap *h, const struct kept *k)
{
	struct live_fates *f = live_heap_fates_of(h, k);

	if (!f)
		return -ENOMEM;
	live_fates_gone(f, live_heap_units_of(h, k, h->before_ns),
			live_heap_units_of(h, k, h->at_ns), random_part(h));
	return live_heap_note_late(h, k, h->at_ns);
}

/* An end. Its weight may be known later. `own`: in its own burst. */
static int note_end(struct live_heap *h, const struct kept *k, bool own)
{
	struct ended *e;

	if (!GROW(h->ended, h->n_ended, h->room_ended))
		return -ENOMEM;
	e = &h->ended[h->n_ended++];
	*e = (struct ended){
		.row = k->row,
		.thread = k->thread,
		.burst = k->burst,
		.class = (uint16_t)live_class_of(k->usable),
		.before = own,
		.mult = (float)(k->row == LIVE_BEFORE ? k->weight : live_heap_kept_for(h, k->size)),
		.size = (double)k->size
	};
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
			ranks[n++] = live_heap_rank(k);
	if (!n)
		return 0;
	qsort(ranks, n, sizeof(*ranks), by_rank);
	h->threshold = ranks[n / 2];
	HASH_ITER (hh, h->kept, k, next)
		if (k->row != LIVE_BEFORE && live_heap_rank(k) < h->threshold)
			drop(h, k);
	return 0;
}

int live_heap_begin(struct live_heap *h, const struct live_look *look)
{
	double part = look->n > h->max / 2 ? (double)h->max / 2 / (double)look->n : 1;
	double one_in = fmax(look->one_in, 1) / part;

	if (rows_for(h, LIVE_BEFORE) < 0 || live_heap_note_moment(h, look->at_ns) < 0)
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
	k->then = (float)(h->lately.calls > 0 ? h->lately.stand_for / h->lately.calls : 1);
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

/* One with few calls, because its program hardly ran, says little of what others' stand for. */
void live_heap_guess(struct live_heap *h, double calls, double stand_for)
{
	double part = h->guessed.calls > 0 ? 1.0 / LATELY : 1;

	h->n_bursts++;
	h->guessed.calls += calls;
	h->guessed.stand_for += fmax(calls, stand_for);
	h->lately.calls += (calls - h->lately.calls) * part;
	h->lately.stand_for += (fmax(calls, stand_for) - h->lately.stand_for) * part;
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
double live_heap_weight_of(const struct live_heap *h, uint32_t burst, uint32_t thread)
{
	struct settled like = { .key = { burst, thread } }, *s;

	HASH_FIND(hh, h->settled, &like.key, sizeof(like.key), s);
	if (s)
		return s->weight;
	return burst <= h->settled_to ? live_heap_mean_weight(h) : 0; /* its record came late */
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

	for (uint32_t class = 0; class < LIVE_CLASSES; class ++)
		h->in_use[class] = look->class_words ? 8 * (double)look->class_words[class] : 0;
	for (uint64_t i = 0; i < look->n && !look->class_words; i++) {
		uint32_t class = live_class_of(words_of(look->blocks[i].bytes));

		h->in_use[class] += 8 * (double)words_of(look->blocks[i].bytes);
	}
	h->facts.in_use = 0;
	for (uint32_t class = 0; class < LIVE_CLASSES; class ++)
		h->facts.in_use += (uint64_t)h->in_use[class];
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
	return live_heap_estimate(h, false) < 0 ? -ENOMEM : live_heap_note_moment(h, look->at_ns);
}

/* --- what is known now --- */

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

void live_heap_facts(const struct live_heap *h, struct live_facts *ret_facts)
{
	*ret_facts = h->facts;
}
