/*
 * live_heap_survival(): the ages of blocks that are kept and of those that ended late, for survival_verdict.h.
 */
#include "analyse/live_heap_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A moment at which what is in use is known must be that much of the run before the end. */
#define SINCE_LEAST 0.15

static void free_moment(struct live_moment *m)
{
	free(m->rows);
	*m = (struct live_moment){ 0 };
}

/* Every other one goes. */
static void thin_moments(struct live_heap *h)
{
	for (uint32_t i = 0; i < LIVE_MOMENTS / 2; i++) {
		struct live_moment m = h->moments[2 * i];

		h->moments[2 * i] = (struct live_moment){ 0 };
		free_moment(&h->moments[i]);
		h->moments[i] = m;
	}
	for (uint32_t i = LIVE_MOMENTS / 2; i < LIVE_MOMENTS; i++)
		free_moment(&h->moments[i]);
	h->n_moments = LIVE_MOMENTS / 2;
	h->moment_stride *= 2;
}

void live_heap_free_moments(struct live_heap *h)
{
	for (uint32_t i = 0; i < h->n_moments; i++)
		free_moment(&h->moments[i]);
}

int live_heap_note_moment(struct live_heap *h, uint64_t at_ns)
{
	struct live_moment m = { at_ns, h->n_bursts, NULL, h->n_rows };
	bool kept;

	if (!h->n_looks) {
		h->moment_stride = 1;
		h->began_ns = at_ns;
	}
	if (h->n_moments == LIVE_MOMENTS && h->n_looks % h->moment_stride == 0)
		thin_moments(h);
	kept = h->n_looks++ % h->moment_stride == 0;
	if (!kept)
		return 0;
	m.rows = calloc(m.n_rows + 1ul, sizeof(*m.rows));
	if (!m.rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < m.n_rows; i++)
		m.rows[i] = (float)h->rows[i].bytes;
	h->moments[h->n_moments++] = m;
	return 0;
}

static double run_ns(const struct live_heap *h, uint64_t now_ns)
{
	return now_ns > h->began_ns ? (double)(now_ns - h->began_ns) : 0;
}

static double young_ns(const struct live_heap *h, uint64_t now_ns)
{
	return run_ns(h, now_ns) * SURVIVAL_YOUNG / SURVIVAL_PARTS;
}

static double age_ns(uint64_t born_ns, uint64_t at_ns)
{
	return at_ns > born_ns ? (double)(at_ns - born_ns) : 0;
}

/* Which were young as the run is long now, or would not have been kept, go; if all others are too many, half of them. */
static void prune(struct live_heap *h, uint64_t now_ns)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < h->n_late; i++)
		if (age_ns(h->late[i].born_ns, h->late[i].end_ns) >= young_ns(h, now_ns) &&
		    (double)h->late[i].rank >= h->threshold)
			h->late[left++] = h->late[i];
	h->n_late = left;
	for (uint32_t i = 0; left > h->max / 2 && 2 * i < left; i++) {
		h->late[i] = h->late[2 * i];
		h->late[i].stands_for *= 2;
		h->n_late = i + 1;
	}
}

int live_heap_note_late(struct live_heap *h, const struct kept *k, uint64_t end_ns)
{
	if (k->row == LIVE_BEFORE || age_ns(k->born_ns, end_ns) < young_ns(h, end_ns))
		return 0;
	if (h->n_late == h->room_late) {
		prune(h, end_ns);
		if (h->n_late > h->room_late / 2 || !h->room_late) {
			uint32_t room = h->room_late ? 2 * h->room_late : 256;
			struct live_late *more = reallocarray(h->late, room, sizeof(*more));

			if (!more)
				return -ENOMEM;
			h->late = more;
			h->room_late = room;
		}
	}
	h->late[h->n_late++] = (struct live_late){
		.row = k->row,
		.burst = k->burst,
		.born_ns = k->born_ns,
		.end_ns = end_ns,
		.rank = (float)live_heap_rank(k),
		.stands_for = 1,
	};
	return 0;
}

/* Bursts by then, between two moments. */
static double bursts_by(const struct live_heap *h, double at)
{
	double from = 0, to = run_ns(h, h->at_ns), bursts = 0, next = h->n_bursts, t;

	for (uint32_t i = 0; i < h->n_moments; i++) {
		t = run_ns(h, h->moments[i].at_ns);
		if (t > at) {
			to = t;
			next = h->moments[i].bursts;
			break;
		}
		from = t;
		bursts = h->moments[i].bursts;
	}
	return bursts + (to > from ? fmin(1, (at - from) / (to - from)) : 1) * (next - bursts);
}

static void put_frame(const struct live_heap *h, struct survival *s)
{
	double span = run_ns(h, h->at_ns);

	s->span_s = span / 1e9;
	for (uint32_t i = 0; i < SURVIVAL_PARTS; i++)
		s->bursts[i] = bursts_by(h, span * (i + 1) / SURVIVAL_PARTS) -
			       bursts_by(h, span * i / SURVIVAL_PARTS);
}

/* The first at which so much of the run was over. NULL: there is none, or it was too late. */
static const struct live_moment *moment_after(const struct live_heap *h, double part)
{
	double span = run_ns(h, h->at_ns);

	for (uint32_t i = 0; i < h->n_moments; i++)
		if (run_ns(h, h->moments[i].at_ns) >= part * span)
			return run_ns(h, h->moments[i].at_ns) <= (1 - SINCE_LEAST) * span
				       ? &h->moments[i]
				       : NULL;
	return NULL;
}

/* What a row made in a burst: how many blocks of those that count, and what those in use stand for. */
struct batch {
	struct {
		uint32_t row, burst;
	} key;
	double blocks, bytes;
	uint32_t part;
	UT_hash_handle hh;
};

static struct batch *batch_of(struct batch **batches, uint32_t row, uint32_t burst)
{
	struct batch like = { .key = { row, burst } }, *b, *all = *batches;

	HASH_FIND(hh, all, &like.key, sizeof(like.key), b);
	if (!b)
		b = hash_new(all, key, &like.key);
	*batches = all;
	return b;
}

static bool is_young(const struct live_heap *h, const struct kept *k)
{
	return age_ns(k->born_ns, h->at_ns) < young_ns(h, h->at_ns);
}

/* It ended, and counts. */
static bool is_late(const struct live_heap *h, const struct live_late *l)
{
	return age_ns(l->born_ns, l->end_ns) >= young_ns(h, h->at_ns) &&
	       (double)l->rank >= h->threshold;
}

static uint32_t part_of(const struct live_heap *h, uint64_t born_ns)
{
	return survival_part(age_ns(h->began_ns, born_ns), run_ns(h, h->at_ns));
}

static void add_kept(const struct live_heap *h, const struct kept *k,
		     const struct live_moment *const since[SURVIVAL_SINCE], struct batch *b,
		     struct survival *s)
{
	double w = k->weight > 0 ? (double)k->weight : live_heap_mean_weight(h);
	double lives = live_heap_lives(h, k), age = age_ns(k->born_ns, h->at_ns);
	double x = fmax(1, w) * live_heap_kept_for(h, k->size) * lives * (double)k->size;

	b->part = part_of(h, k->born_ns);
	b->bytes += x;
	s->bytes[b->part] += x;
	for (uint32_t m = 0; m < SURVIVAL_SINCE; m++)
		if (since[m] && k->born_ns > since[m]->at_ns)
			s->claim[m] += x;
	if (is_young(h, k))
		return;
	s->blocks += lives;
	s->stay[b->part] += lives / b->blocks;
	s->lived += lives / b->blocks * (age - young_ns(h, h->at_ns)) / run_ns(h, h->at_ns);
}

static void add_late(const struct live_heap *h, const struct live_late *l, const struct batch *b,
		     struct survival *s)
{
	double part = (double)l->stands_for / b->blocks;

	s->blocks_ended += (double)l->stands_for;
	s->gone[part_of(h, l->born_ns)] += part;
	s->ended += part;
	s->lived += part * (age_ns(l->born_ns, l->end_ns) - young_ns(h, h->at_ns)) /
		    run_ns(h, h->at_ns);
}

/*
 * Sums over blocks become what is estimated of the row; and what it has more than at each moment, by the estimates, which
 * add up to what is in use.
 */
static void settle(const struct live_heap *h, uint32_t row,
		   const struct live_moment *const since[SURVIVAL_SINCE], struct survival *s)
{
	double sum = 0, by;

	for (uint32_t i = 0; i < SURVIVAL_PARTS; i++)
		sum += s->bytes[i];
	by = sum > 0 ? h->rows[row].bytes / sum : 0;
	for (uint32_t i = 0; i < SURVIVAL_PARTS; i++) {
		s->bytes[i] *= by;
		s->squares[i] *= by * by;
	}
	for (uint32_t m = 0; m < SURVIVAL_SINCE; m++) {
		s->claim[m] *= by;
		if (since[m])
			s->room[m] = h->rows[row].bytes -
				     (row < since[m]->n_rows ? (double)since[m]->rows[row] : 0);
	}
}

/* Rows with fewer blocks in use say nothing: most have none, and there may be many thousands. */
static int find_slots(const struct live_heap *h, struct live_ages *ages)
{
	_cleanup_(freep) uint32_t *blocks = calloc(h->n_rows + 1ul, sizeof(*blocks));
	uint32_t n = 0;

	ages->slot_of = calloc(h->n_rows + 1ul, sizeof(*ages->slot_of));
	if (!blocks || !ages->slot_of)
		return -ENOMEM;
	for (const struct kept *k = h->kept; k; k = k->hh.next)
		if (k->row != LIVE_BEFORE && k->born_ns <= h->at_ns)
			blocks[k->row]++;
	for (uint32_t i = 0; i < h->n_rows; i++)
		ages->slot_of[i] = blocks[i] >= SURVIVAL_LEAST ? ++n : 0;
	ages->n_rows = h->n_rows;
	ages->slots = calloc(n + 1ul, sizeof(*ages->slots));
	return ages->slots ? 0 : -ENOMEM;
}

static struct survival *slot(const struct live_ages *ages, uint32_t row)
{
	return row < ages->n_rows && ages->slot_of[row] ? &ages->slots[ages->slot_of[row]] : NULL;
}

const struct survival *live_ages_of(const struct live_ages *ages, uint32_t row)
{
	return slot(ages, row);
}

void live_ages_fini(struct live_ages *ages)
{
	free(ages->slot_of);
	free(ages->slots);
	*ages = (struct live_ages){ 0 };
}

static int add_blocks(const struct live_heap *h, struct live_ages *ages,
		      const struct live_moment *const since[SURVIVAL_SINCE])
{
	struct batch *batches = NULL, *b = NULL;
	const struct kept *k;
	struct survival *s;
	bool ok = true;

	for (k = h->kept; k && ok; k = k->hh.next)
		if (k->born_ns <= h->at_ns && slot(ages, k->row)) {
			ok = (b = batch_of(&batches, k->row, k->burst));
			if (ok && !is_young(h, k))
				b->blocks++;
		}
	for (uint32_t i = 0; i < h->n_late && ok; i++)
		if (is_late(h, &h->late[i]) && slot(ages, h->late[i].row)) {
			ok = (b = batch_of(&batches, h->late[i].row, h->late[i].burst));
			if (ok)
				b->blocks += (double)h->late[i].stands_for;
		}
	for (k = h->kept; k && ok; k = k->hh.next)
		if (k->born_ns <= h->at_ns && (s = slot(ages, k->row)))
			add_kept(h, k, since, batch_of(&batches, k->row, k->burst), s);
	for (uint32_t i = 0; i < h->n_late && ok; i++)
		if (is_late(h, &h->late[i]) && (s = slot(ages, h->late[i].row)))
			add_late(h, &h->late[i],
				 batch_of(&batches, h->late[i].row, h->late[i].burst), s);
	for (b = batches; b && ok; b = b->hh.next)
		slot(ages, b->key.row)->squares[b->part] += b->bytes * b->bytes;
	hash_free(batches);
	return ok ? 0 : -ENOMEM;
}

int live_heap_survival(const struct live_heap *h, struct live_ages *ages)
{
	const struct live_moment *since[SURVIVAL_SINCE];
	struct survival frame = { .looked = true }, *s;

	live_ages_fini(ages);
	if (find_slots(h, ages) < 0)
		return -ENOMEM;
	put_frame(h, &frame);
	for (uint32_t m = 0; m < SURVIVAL_SINCE; m++) {
		since[m] = moment_after(h, survival_moment(m));
		frame.looked &= since[m] != NULL;
	}
	for (uint32_t i = 0; i < h->n_rows; i++)
		if ((s = slot(ages, i)))
			*s = frame;
	if (add_blocks(h, ages, since) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->n_rows; i++)
		if ((s = slot(ages, i)))
			settle(h, i, since, s);
	return 0;
}
