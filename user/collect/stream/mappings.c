#include "collect/stream/mappings.h"
#include "base/grow.h"
#include "collect/wire.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct row {
	struct ms_total_key key;
	struct mappings_row row;
	UT_hash_handle hh;
};

/* A mapping that was made, as long as some of it remains. */
struct mapping {
	struct row *row;
	uint64_t bytes;
};

struct range {
	uint64_t from, to;
	uint64_t made_ns;
	struct mapping *of;
};

/* The ranges of a process image: in order, without overlap. */
struct space {
	struct ms_proc proc;
	struct range *ranges;
	uint32_t n, cap;
	UT_hash_handle hh;
};

struct mappings {
	struct row *rows;
	struct space *spaces;
	uint64_t n_ranges, max_ranges;
	struct mappings_stats stats;
};

/* Ranges taken out of a space in one go. */
struct pieces {
	struct range *piece;
	uint32_t n, cap;
};

struct mappings *mappings_new(uint64_t max_bytes)
{
	struct mappings *m = calloc(1, sizeof(*m));

	/* A mapping of one range; twice the room of an array that has just grown. */
	if (m)
		m->max_ranges =
			max_bytes / (2 * sizeof(struct range) + sizeof(struct mapping) + 16);
	return m;
}

/* --- sums --- */

static struct mappings_sum *kind_sum(struct mappings *m, const struct mapping *of)
{
	return &m->stats.by[of->row->key.memory];
}

/* `bytes` of the mapping are unmapped; with the last of them it ends. */
static void leave(struct mappings *m, struct mapping *of, uint64_t bytes)
{
	struct mappings_sum *sums[2] = { &of->row->row.sum, kind_sum(m, of) };

	of->bytes -= bytes;
	for (int i = 0; i < 2; i++) {
		sums[i]->live_bytes -= bytes;
		sums[i]->live -= !of->bytes;
	}
	if (!of->bytes)
		free(of);
}

static void give_back(struct mappings *m, struct mapping *of, uint64_t bytes)
{
	of->row->row.sum.gone_bytes += bytes;
	kind_sum(m, of)->gone_bytes += bytes;
	leave(m, of, bytes);
}

static struct row *row_get(struct mappings *m, const struct ms_mapping_rec *rec, uint8_t memory)
{
	struct ms_total_key key = wire_alloc_key(&rec->proc, &rec->user, rec->tid, rec->as_gen);
	struct row *r;

	key.memory = memory;
	r = hash_get(m->rows, key, &key);
	if (r)
		r->row.key = (const struct event_key *)&r->key;
	if (r && !r->row.cgroup_id)
		r->row.cgroup_id = rec->cgroup_id;
	return r;
}

/* --- ranges of a space --- */

static struct space *space_find(struct mappings *m, const struct ms_proc *proc)
{
	struct space *s;

	HASH_FIND(hh, m->spaces, proc, sizeof(*proc), s);
	return s;
}

/* The first that ends after `addr`. */
static uint32_t range_find(const struct space *s, uint64_t addr)
{
	uint32_t lo = 0, hi = s->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->ranges[mid].to <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Before number `at`. -ENOMEM. */
static int range_insert(struct mappings *m, struct space *s, uint32_t at, const struct range *range)
{
	if (!GROW(s->ranges, s->n, s->cap))
		return -ENOMEM;
	memmove(&s->ranges[at + 1], &s->ranges[at], (s->n - at) * sizeof(*s->ranges));
	s->ranges[at] = *range;
	s->n++;
	m->n_ranges++;
	return 0;
}

/* Moves the piece to `to`, or ends it if that is NULL. */
static int take_piece(struct mappings *m, const struct range *r, uint64_t from, uint64_t to,
		      struct pieces *pieces)
{
	if (!pieces) {
		give_back(m, r->of, to - from);
		return 0;
	}
	if (!GROW(pieces->piece, pieces->n, pieces->cap))
		return -ENOMEM;
	pieces->piece[pieces->n++] = (struct range){ from, to, r->made_ns, r->of };
	return 0;
}

/* Range number `at` loses its middle. */
static int cut_middle(struct mappings *m, struct space *s, uint32_t at, uint64_t from, uint64_t to,
		      struct pieces *pieces)
{
	struct range behind = s->ranges[at];
	int r;

	behind.from = to;
	r = range_insert(m, s, at + 1, &behind);
	if (r == 0)
		r = take_piece(m, &s->ranges[at], from, to, pieces);
	s->ranges[at].to = from;
	return r;
}

/*
 * [from, to) leaves the space, as far as it was made up to `made_ns`: into `pieces`, or ended if
 * that is NULL. -ENOMEM: the space is no longer exact.
 */
static int cut(struct mappings *m, struct space *s, uint64_t from, uint64_t to, uint64_t made_ns,
	       struct pieces *pieces)
{
	uint32_t at = range_find(s, from), kept = at;
	int r = 0;

	if (at < s->n && s->ranges[at].from < from && s->ranges[at].to > to)
		return s->ranges[at].made_ns > made_ns ? 0 : cut_middle(m, s, at, from, to, pieces);
	for (; at < s->n && s->ranges[at].from < to; at++) {
		struct range *range = &s->ranges[at];
		uint64_t lo = range->from > from ? range->from : from;
		uint64_t hi = range->to < to ? range->to : to;

		if (range->made_ns > made_ns) {
			s->ranges[kept++] = *range;
			continue;
		}
		if (r == 0)
			r = take_piece(m, range, lo, hi, pieces);
		if (range->from < lo)
			range->to = lo;
		else
			range->from = hi;
		if (range->from < range->to)
			s->ranges[kept++] = *range;
	}
	if (kept == at)
		return r;
	memmove(&s->ranges[kept], &s->ranges[at], (s->n - at) * sizeof(*s->ranges));
	m->n_ranges -= at - kept;
	s->n -= at - kept;
	return r;
}

/* --- records --- */

/* [from, to) is new, of `memory`, made by the call of `rec`. */
static int make(struct mappings *m, struct space *s, const struct ms_mapping_rec *rec,
		uint64_t from, uint64_t to, uint8_t memory)
{
	struct range range = { from, to, rec->time_ns, NULL };
	struct row *row = row_get(m, rec, memory);
	bool followed;
	int r = cut(m, s, from, to, UINT64_MAX, NULL);

	if (!row || r < 0)
		return -ENOMEM;
	range.of = calloc(1, sizeof(*range.of));
	if (!range.of)
		return -ENOMEM;
	range.of->row = row;
	range.of->bytes = to - from;
	for (int i = 0; i < 2; i++) {
		struct mappings_sum *sum = i ? kind_sum(m, range.of) : &row->row.sum;

		sum->made++;
		sum->made_bytes += to - from;
		sum->live++;
		sum->live_bytes += to - from;
	}
	followed = m->n_ranges < m->max_ranges;
	m->stats.full += !followed;
	if (followed)
		r = range_insert(m, s, range_find(s, from), &range);
	if (!followed || r < 0)
		leave(m, range.of, to - from);
	return r;
}

/* The kind of memory that ends at `addr`, and grows there. */
static uint8_t kind_before(const struct space *s, uint64_t addr)
{
	uint32_t at = range_find(s, addr - 1);

	return at < s->n && s->ranges[at].from < addr ? s->ranges[at].of->row->key.memory
						      : MS_MEMORY_ANON;
}

/* The pieces, which were at `from`, are at `to` now. */
static int put_pieces(struct mappings *m, struct space *s, const struct pieces *pieces,
		      uint64_t from, uint64_t to, uint64_t now_ns)
{
	int r = 0;

	for (uint32_t i = 0; i < pieces->n; i++) {
		struct range range = pieces->piece[i];

		range.from = range.from - from + to;
		range.to = range.to - from + to;
		range.made_ns = now_ns;
		if (r == 0)
			r = range_insert(m, s, range_find(s, range.from), &range);
		if (r < 0)
			leave(m, range.of, range.to - range.from);
	}
	return r;
}

static int take_moved(struct mappings *m, struct space *s, const struct ms_mapping_rec *rec)
{
	uint64_t common = rec->len < rec->old_len ? rec->len : rec->old_len;
	struct pieces pieces = { 0 };
	int r = 0;

	if (rec->len < rec->old_len)
		r = cut(m, s, rec->old_addr + common, rec->old_addr + rec->old_len, rec->began_ns,
			NULL);
	if (r == 0 && rec->addr != rec->old_addr) {
		r = cut(m, s, rec->old_addr, rec->old_addr + common, rec->began_ns, &pieces);
		if (r == 0)
			r = cut(m, s, rec->addr, rec->addr + rec->len, UINT64_MAX, NULL);
		if (r == 0)
			r = put_pieces(m, s, &pieces, rec->old_addr, rec->addr, rec->time_ns);
		free(pieces.piece);
	}
	if (r == 0 && rec->len > common)
		r = make(m, s, rec, rec->addr + common, rec->addr + rec->len,
			 kind_before(s, rec->addr + common));
	return r;
}

/* A sane range: sums of lengths and addresses stay far from overflow. */
static bool is_range(uint64_t addr, uint64_t len)
{
	return addr < 1ULL << 62 && len < 1ULL << 62;
}

int mappings_take(struct mappings *m, const void *record)
{
	const struct ms_mapping_rec *rec = record;
	struct space *s;

	if (!is_range(rec->addr, rec->len) || !is_range(rec->old_addr, rec->old_len) ||
	    rec->what >= MS_N_MAPPING_WHATS || rec->memory >= MS_N_MEMORY_KINDS)
		return 0;
	if (rec->what == MS_MAPPING_GONE) {
		s = space_find(m, &rec->proc);
		return s ? cut(m, s, rec->old_addr, rec->old_addr + rec->old_len, rec->began_ns,
			       NULL)
			 : 0;
	}
	if (!rec->len)
		return 0;
	s = hash_get(m->spaces, proc, &rec->proc);
	if (!s)
		return -ENOMEM;
	if (rec->what == MS_MAPPING_MOVED)
		return take_moved(m, s, rec);
	return make(m, s, rec, rec->addr, rec->addr + rec->len,
		    rec->what == MS_MAPPING_MADE ? rec->memory : kind_before(s, rec->old_addr + 1));
}

static void space_end(struct mappings *m, struct space *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t bytes = s->ranges[i].to - s->ranges[i].from;

		m->stats.ended_bytes += bytes;
		leave(m, s->ranges[i].of, bytes);
	}
	m->n_ranges -= s->n;
	HASH_DEL(m->spaces, s);
	free(s->ranges);
	free(s);
}

void mappings_sweep(struct mappings *m, bool (*gone)(void *ctx, const struct proc_id *proc),
		    void *ctx)
{
	struct space *s, *next;

	HASH_ITER (hh, m->spaces, s, next) {
		struct proc_id id = wire_id(&s->proc);

		if (gone(ctx, &id))
			space_end(m, s);
	}
}

int mappings_each(struct mappings *m, int (*fn)(void *ctx, const struct mappings_row *row),
		  void *ctx)
{
	struct row *r, *next;
	int rc;

	HASH_ITER (hh, m->rows, r, next) {
		rc = fn(ctx, &r->row);
		if (rc < 0)
			return rc;
	}
	return 0;
}

void mappings_stats(const struct mappings *m, struct mappings_stats *ret_stats)
{
	*ret_stats = m->stats;
}

void mappings_free(struct mappings *m)
{
	struct space *s, *next;

	if (!m)
		return;
	HASH_ITER (hh, m->spaces, s, next)
		space_end(m, s);
	hash_free(m->rows);
	free(m);
}
