#include "heap/snapshot/collection.h"

#include <string.h>

/* Of a chunk: an element, or as many as 512 bytes have. Strings have shorter texts in themselves. */
enum { DEQUE_CHUNK_MAX = 1 << 20, STRING_LOCAL = 15 };

/* --- memory --- */

void collection_words(const struct collection_memory *m, uint64_t addr, uint64_t *words, uint32_t n)
{
	uint64_t len;
	const uint8_t *bytes = addr % 8 ? NULL : m->bytes(m->ctx, addr, &len);

	memset(words, 0, n * 8);
	if (bytes)
		memcpy(words, bytes, len < n * 8 ? len : n * 8);
}

uint32_t collection_block(const struct collection_memory *m, uint64_t addr, uint64_t least)
{
	uint32_t offset, block = block_index_find(m->index, addr, &offset);

	return block != BLOCK_NONE && !offset && collection_size(m, block) >= least ? block
										    : BLOCK_NONE;
}

/* --- vectors --- */

static bool match_vector(const struct collection_memory *m, const uint64_t w[COLLECTION_WORDS],
			 uint64_t at, uint32_t to, struct collection *c)
{
	uint64_t begin = w[1], end = w[2], limit = w[3];

	(void)at;
	/* A FILE of the C library has its buffer's address twice before the end of what is written. */
	if (begin > end || end > limit || limit == begin || w[0] == begin ||
	    !collection_fits(limit - begin, collection_size(m, to)))
		return false;
	c->elements = (end - begin) / 8;
	c->live = end - begin;
	return true;
}

/* --- strings --- */

/* Of `length` letters, with room for `capacity` and the NUL. */
static bool is_string(const struct collection_memory *m, uint64_t addr, uint64_t length,
		      uint64_t capacity, uint32_t to)
{
	const uint8_t *bytes;
	uint64_t len;

	if (capacity <= STRING_LOCAL || length > capacity || capacity >= collection_size(m, to) ||
	    !collection_fits(capacity + 1, collection_size(m, to)))
		return false;
	bytes = m->bytes(m->ctx, addr, &len);
	/* Text has a byte other than 0 where it begins. */
	return bytes && len > length && !bytes[length] && (!length || bytes[0]);
}

static bool match_string(const struct collection_memory *m, const uint64_t w[COLLECTION_WORDS],
			 uint64_t at, uint32_t to, struct collection *c)
{
	uint64_t length = w[2], room = 0;

	if (!is_string(m, w[1], w[2], w[3], to)) {
		length = w[0];
		if (at >= 16)
			collection_words(m, at - 16, &room, 1);
		/* libc++: the lowest bit says that it is no short one; room for the NUL is counted, in steps of 16. */
		if (room % 16 != 1 || !is_string(m, w[1], length, room - 2, to))
			return false;
	}
	c->elements = length;
	c->live = length + 1;
	return true;
}

static bool walk_buffer(const struct collection_memory *m, const struct collection *c,
			collection_block_fn fn, void *ctx)
{
	(void)m;
	fn(ctx, c->table, COLLECTION_BUFFER);
	return true;
}

/* --- deques --- */

/* Of the first and the last chunk: where the map has them. */
struct deque {
	uint64_t first_node, last_node, chunk;
};

/* w from the map's address on: map size cur first last node cur first last node */
static bool read_deque(const uint64_t *w, uint64_t room, struct deque *d)
{
	const uint64_t *start = w + 2, *finish = w + 6;
	uint64_t map = w[0], size = w[1];

	d->chunk = start[2] - start[1];
	d->first_node = start[3];
	d->last_node = finish[3];
	return size >= 8 && size <= room / 8 && d->chunk && d->chunk <= DEQUE_CHUNK_MAX &&
	       finish[2] - finish[1] == d->chunk && start[0] >= start[1] && start[0] < start[2] &&
	       finish[0] >= finish[1] && finish[0] < finish[2] && d->first_node >= map &&
	       d->last_node >= d->first_node && d->last_node < map + 8 * size &&
	       (d->first_node - map) % 8 == 0 && (d->last_node - map) % 8 == 0;
}

static bool match_deque(const struct collection_memory *m, const uint64_t w[COLLECTION_WORDS],
			uint64_t at, uint32_t to, struct collection *c)
{
	struct deque d;
	uint64_t first, last;

	(void)at;
	if (!read_deque(w + 1, collection_size(m, to), &d))
		return false;
	collection_words(m, d.first_node, &first, 1);
	collection_words(m, d.last_node, &last, 1);
	if (first != w[4] || last != w[8])
		return false;
	c->unused = d.first_node - w[1];
	c->live = d.last_node + 8 - w[1];
	c->elements = first == last ? (w[7] - w[3]) / 8
				    : ((d.last_node - d.first_node) / 8 * d.chunk - (w[3] - first) +
				       (w[7] - last)) /
					      8;
	return true;
}

static bool walk_deque(const struct collection_memory *m, const struct collection *c,
		       collection_block_fn fn, void *ctx)
{
	uint64_t w[COLLECTION_WORDS - 1];
	struct deque d;

	collection_words(m, c->at, w, COLLECTION_WORDS - 1);
	if (!read_deque(w, collection_size(m, c->table), &d))
		return false;
	fn(ctx, c->table, COLLECTION_TABLE);
	for (uint64_t node = d.first_node; node <= d.last_node; node += 8) {
		uint64_t chunk;
		uint32_t block;

		collection_words(m, node, &chunk, 1);
		block = collection_block(m, chunk, d.chunk);
		if (block == BLOCK_NONE || !collection_step(m))
			return false;
		fn(ctx, block, COLLECTION_BUFFER);
	}
	return true;
}

/* --- all --- */

static const struct collection_shape deque = { match_deque, walk_deque },
				     string = { match_string, walk_buffer },
				     vector = { match_vector, walk_buffer };

static const struct collection_shape *const shapes[COLLECTION_KINDS] = {
	[COLLECTION_MAP] = &collection_map,
	[COLLECTION_LIST] = &collection_list,
	[COLLECTION_DEQUE] = &deque,
	[COLLECTION_UNORDERED] = &collection_unordered,
	[COLLECTION_DICT] = &collection_dict,
	[COLLECTION_LIBCXX_MAP] = &collection_libcxx_map,
	[COLLECTION_LIBCXX_DEQUE] = &collection_libcxx_deque,
	[COLLECTION_HASHBROWN] = &collection_hashbrown,
	[COLLECTION_STRING] = &string,
	[COLLECTION_VECTOR] = &vector,
};

/* Hash tables of Rust alone are referred to by an address in their block. */
static bool is_where(enum collection_kind kind, bool begins)
{
	return begins != (kind == COLLECTION_HASHBROWN);
}

struct sum {
	const struct collection_memory *m;
	struct collection *c;
};

static void add_block(void *ctx, uint32_t block, enum collection_part part)
{
	struct sum *s = ctx;

	(void)part;
	s->c->blocks++;
	s->c->bytes += collection_size(s->m, block);
}

bool collection_at(const struct collection_memory *m, uint64_t at, uint32_t to, bool counted,
		   struct collection *ret_collection)
{
	uint64_t w[COLLECTION_WORDS];
	uint32_t offset;

	if (at < 8 || at % 8 || (m->steps && !*m->steps))
		return false;
	collection_words(m, at - 8, w, 1);
	collection_words(m, at, w + 1, COLLECTION_WORDS - 1);
	for (int kind = counted ? 0 : COLLECTION_STRING;
	     kind < (counted ? COLLECTION_STRING : COLLECTION_KINDS); kind++) {
		struct collection c = { .kind = (uint8_t)kind, .at = at, .table = to };
		struct sum sum = { m, &c };

		if (!is_where(kind, w[1] == m->blocks[to].addr) ||
		    !shapes[kind]->match(m, w, at, to, &c) ||
		    !shapes[kind]->walk(m, &c, add_block, &sum))
			continue;
		c.in = block_index_find(m->index, c.at, &offset);
		*ret_collection = c;
		return true;
	}
	return false;
}

void collection_each(const struct collection_memory *m, const struct collection *c,
		     collection_block_fn fn, void *ctx)
{
	shapes[c->kind]->walk(m, c, fn, ctx);
}
