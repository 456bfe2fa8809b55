/* HashMap and HashSet of Rust (hashbrown/src/raw/mod.rs); collection.h has their layout. */
#include "heap/snapshot/collection.h"

enum {
	GROUP_MIN = 8, /* of control bytes that are looked at together: 16 with SSE2 */
	GROUP_MAX = 16,
	EMPTY = 0xff,
	DELETED = 0x80,
};

struct table {
	uint64_t ctrl, buckets, room, items;
};

/* From 1.65 on (0.12.3 of hashbrown) the mask is behind the address, before that before it. */
static bool read_table(const uint64_t w[COLLECTION_WORDS], int form, struct table *t)
{
	*t = form == 0 ? (struct table){ w[1], w[2] + 1, w[3], w[4] }
		       : (struct table){ w[1], w[0] + 1, w[2], w[3] };
	return t->buckets >= 4 && t->buckets <= 1ULL << 32 && !(t->buckets & (t->buckets - 1)) &&
	       t->items && t->items + t->room <= t->buckets - t->buckets / 8;
}

/* A control byte is 7 bits of a hash, or says that there is none. */
static bool counts(const struct collection_memory *m, const uint8_t *ctrl, const struct table *t)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < t->buckets; i++) {
		if (i % 8 == 0 && !collection_step(m))
			return false;
		if (!(ctrl[i] & 0x80))
			n++;
		else if (ctrl[i] != EMPTY && ctrl[i] != DELETED)
			return false;
	}
	/* The first group stands behind the last once more. */
	for (uint64_t i = 0; i < GROUP_MIN && t->buckets >= GROUP_MAX; i++)
		if (ctrl[t->buckets + i] != ctrl[i])
			return false;
	return n == t->items;
}

static bool is_table(const struct collection_memory *m, const struct table *t, uint32_t to,
		     struct collection *c)
{
	uint64_t off = t->ctrl - m->blocks[to].addr, each = off / t->buckets, len;
	const uint8_t *ctrl;

	if (!each || off - each * t->buckets >= GROUP_MAX ||
	    !collection_fits(off + t->buckets + GROUP_MIN, collection_size(m, to)))
		return false;
	ctrl = m->bytes(m->ctx, t->ctrl, &len);
	if (!ctrl || len < t->buckets + GROUP_MIN || !counts(m, ctrl, t))
		return false;
	c->elements = t->items;
	c->unused = off - each * t->buckets;
	c->live = off;
	return true;
}

static bool match(const struct collection_memory *m, const uint64_t w[COLLECTION_WORDS],
		  uint64_t at, uint32_t to, struct collection *c)
{
	(void)at;
	for (int form = 0; form < 2; form++) {
		struct table t;

		if (read_table(w, form, &t) && is_table(m, &t, to, c))
			return true;
	}
	return false;
}

static bool walk(const struct collection_memory *m, const struct collection *c,
		 collection_block_fn fn, void *ctx)
{
	(void)m;
	fn(ctx, c->table, COLLECTION_TABLE);
	return true;
}

const struct collection_shape collection_hashbrown = { match, walk };
