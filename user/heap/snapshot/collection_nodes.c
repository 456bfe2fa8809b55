/* Collections of nodes that refer to each other; collection.h has their layouts. */
#include "heap/snapshot/collection.h"

enum { RED = 0, BLACK = 1 };

/* --- maps and sets --- */

struct tree_node {
	uint64_t colour, parent, left, right;
};

/* false: no block begins at `addr` that has room for a node of a tree. */
static bool read_node(const struct collection_memory *m, uint64_t addr, uint32_t *ret_block,
		      struct tree_node *ret_node)
{
	uint64_t w[4];

	*ret_block = collection_block(m, addr, sizeof(w));
	if (*ret_block == BLOCK_NONE)
		return false;
	collection_words(m, addr, w, 4);
	*ret_node = (struct tree_node){ w[0], w[1], w[2], w[3] };
	return (uint32_t)w[0] <= BLACK;
}

/* `at` is the header's parent, which is the root; the header itself is a word before. */
static bool match_map(const struct collection_memory *m, const uint64_t w[COLLECTION_WORDS],
		      uint64_t at, uint32_t to, struct collection *c)
{
	struct tree_node root;
	uint32_t block;

	if (!w[4] || w[4] > m->n_blocks || (uint32_t)w[0] != RED || collection_size(m, to) < 32 ||
	    !read_node(m, w[1], &block, &root) || root.parent != at - 8 ||
	    (uint32_t)root.colour != BLACK || collection_block(m, w[2], 32) == BLOCK_NONE ||
	    collection_block(m, w[3], 32) == BLOCK_NONE)
		return false;
	c->elements = w[4];
	c->live = collection_size(m, to);
	return true;
}

/* The node with the least key below `addr`, whose parent is `parent`. 0: it is no tree. */
static uint64_t least(const struct collection_memory *m, uint64_t addr, uint64_t parent,
		      uint64_t *steps)
{
	for (;;) {
		struct tree_node node;
		uint32_t block;

		if (!*steps || !collection_step(m) || !read_node(m, addr, &block, &node) ||
		    node.parent != parent)
			return 0;
		--*steps;
		if (!node.left)
			return addr;
		parent = addr;
		addr = node.left;
	}
}

/* The next node in the order of keys; the header behind the last. 0: it is no tree. */
static uint64_t next(const struct collection_memory *m, uint64_t addr, const struct tree_node *at,
		     uint64_t header, uint64_t *steps)
{
	struct tree_node node = *at;
	uint32_t block;

	if (node.right)
		return least(m, node.right, addr, steps);
	while (*steps && collection_step(m)) {
		uint64_t parent = node.parent;

		--*steps;
		if (parent == header)
			return header;
		if (!read_node(m, parent, &block, &node))
			return 0;
		if (node.left == addr)
			return parent;
		if (node.right != addr)
			return 0;
		addr = parent;
	}
	return 0;
}

static bool walk_map(const struct collection_memory *m, const struct collection *c,
		     collection_block_fn fn, void *ctx)
{
	/* Each edge is gone down once and up once. */
	uint64_t header = c->at - 8, steps = 3 * c->elements + 3, n = 0;
	uint64_t addr = least(m, m->blocks[c->table].addr, header, &steps);

	while (addr && addr != header && n < c->elements) {
		struct tree_node node;
		uint32_t block;

		if (!read_node(m, addr, &block, &node))
			return false;
		fn(ctx, block, COLLECTION_NODE);
		n++;
		addr = next(m, addr, &node, header, &steps);
	}
	return addr == header && n == c->elements;
}

const struct collection_shape collection_map = { match_map, walk_map };

/* --- lists --- */

/*
 * A list's nodes and its header look alike, so the ring is walked from any of them, once: the header is the one that no block
 * begins at, or whose third word is the number of the others.
 */
static bool match_list(const struct collection_memory *m, const uint64_t w[COLLECTION_WORDS],
		       uint64_t at, uint32_t to, struct collection *c)
{
	uint64_t addr = w[1], n = 0, header = 0, count = 0, others = 0, before;
	uint64_t node[3];

	collection_words(m, addr, node, 2);
	if (node[1] != at || m->visited[to])
		return false;
	before = at;
	do {
		uint32_t block = collection_block(m, addr, 24);

		collection_words(m, addr, node, 3);
		if (node[1] != before || n > m->n_blocks + 1)
			return false;
		if (block == BLOCK_NONE) {
			if (others++)
				return false;
			header = addr;
			count = node[2];
		} else {
			m->visited[block] = 1;
		}
		n++;
		before = addr;
		addr = node[0];
	} while (addr != w[1]);
	/* All of them begin blocks: the one that has the count. */
	for (uint64_t i = 0; !others && !header && i < n; i++) {
		collection_words(m, addr, node, 3);
		if (node[2] == n - 1) {
			header = addr;
			count = node[2];
		}
		addr = node[0];
	}
	if (!header || n < 2 || count != n - 1)
		return false;
	collection_words(m, header, node, 1);
	c->at = header;
	c->table = collection_block(m, node[0], 24);
	c->elements = count;
	return c->table != BLOCK_NONE;
}

static bool walk_list(const struct collection_memory *m, const struct collection *c,
		      collection_block_fn fn, void *ctx)
{
	uint64_t addr = m->blocks[c->table].addr, n;

	for (n = 0; addr != c->at && n < c->elements; n++) {
		uint32_t block = collection_block(m, addr, 16);

		if (block == BLOCK_NONE)
			return false;
		fn(ctx, block, COLLECTION_NODE);
		collection_words(m, addr, &addr, 1);
	}
	return addr == c->at && n == c->elements;
}

const struct collection_shape collection_list = { match_list, walk_list };

/* --- unordered_map, unordered_set and their multi-forms --- */

enum { BEFORE_BEGIN = 16, SINGLE_BUCKET = 48 };

static bool match_unordered(const struct collection_memory *m, const uint64_t w[COLLECTION_WORDS],
			    uint64_t at, uint32_t to, struct collection *c)
{
	uint64_t number = w[2], first = w[3], count = w[4], bucket = 0;
	uint32_t bits = (uint32_t)w[5];
	float load;

	__builtin_memcpy(&load, &bits, sizeof(load));
	if (number < 2 || !collection_fits(8 * number, collection_size(m, to)) ||
	    number > 1ULL << 40 || count > m->n_blocks || !(load > 0.01f && load < 1000) ||
	    (!count) != (!first) || (count && collection_block(m, first, 16) == BLOCK_NONE))
		return false;
	/* The bucket of the first node has the address of what is before it. */
	for (uint64_t i = 0; count && i < number && bucket != at + BEFORE_BEGIN; i++) {
		if (!collection_step(m))
			return false;
		collection_words(m, w[1] + 8 * i, &bucket, 1);
	}
	c->elements = count;
	c->live = 8 * number;
	return !count || bucket == at + BEFORE_BEGIN;
}

static bool walk_unordered(const struct collection_memory *m, const struct collection *c,
			   collection_block_fn fn, void *ctx)
{
	uint64_t addr, n;

	collection_words(m, c->at + BEFORE_BEGIN, &addr, 1);
	fn(ctx, c->table, COLLECTION_TABLE);
	for (n = 0; addr && n < c->elements; n++) {
		uint32_t block = collection_block(m, addr, 16);

		if (block == BLOCK_NONE || !collection_step(m))
			return false;
		fn(ctx, block, COLLECTION_NODE);
		collection_words(m, addr, &addr, 1);
	}
	return !addr && n == c->elements;
}

const struct collection_shape collection_unordered = { match_unordered, walk_unordered };

/* --- dicts of redis --- */

enum { ENTRY_NEXT = 16 }; /* of an entry: key, value, next */

struct dict {
	uint64_t table[2], size[2], used[2]; /* the second: while it is made larger or smaller */
};

/*
 * redis 7.0: { type, table[2], used[2], rehashidx, pauserehash: 2 bytes, exponents of the sizes: a byte each, 255: no table }; 4.0 to 6.2:
 * both tables in structs { table, size, size - 1, used }. dict.h of each. w[1] is the first table's address.
 */
static bool read_dict(const uint64_t w[COLLECTION_WORDS], struct dict *d)
{
	uint64_t exps = w[6] >> 16;

	if (w[2] > 1 && w[3] == w[2] - 1 && !(w[2] & w[3])) {
		*d = (struct dict){ { w[1], w[5] }, { w[2], w[6] }, { w[4], w[8] } };
		return d->table[1] ? d->size[1] && !(d->size[1] & (d->size[1] - 1)) : !d->used[1];
	}
	*d = (struct dict){ .table = { w[1], w[2] }, .used = { w[3], w[4] } };
	for (int i = 0; i < 2; i++, exps >>= 8)
		d->size[i] = (exps & 0xff) < 40 ? 1ULL << (exps & 0xff) : 0;
	return (w[5] == UINT64_MAX) == !d->table[1] && (d->table[1] || !d->used[1]);
}

static bool match_dict(const struct collection_memory *m, const uint64_t w[COLLECTION_WORDS],
		       uint64_t at, uint32_t to, struct collection *c)
{
	struct dict d;

	(void)at;
	if (!read_dict(w, &d) || !d.size[0] || d.used[0] > m->n_blocks || d.used[1] > m->n_blocks ||
	    !(d.used[0] + d.used[1]) || !collection_fits(8 * d.size[0], collection_size(m, to)))
		return false;
	c->elements = d.used[0] + d.used[1];
	c->live = 8 * d.size[0];
	return true;
}

/* Of one table; *n counts entries of all. */
static bool walk_table(const struct collection_memory *m, const struct collection *c,
		       uint32_t table, uint64_t size, uint64_t *n, collection_block_fn fn,
		       void *ctx)
{
	if (table == BLOCK_NONE)
		return false;
	fn(ctx, table, COLLECTION_TABLE);
	for (uint64_t i = 0; i < size; i++) {
		uint64_t addr;

		if (!collection_step(m))
			return false;
		for (collection_words(m, m->blocks[table].addr + 8 * i, &addr, 1); addr;
		     collection_words(m, addr + ENTRY_NEXT, &addr, 1)) {
			uint32_t block = collection_block(m, addr, ENTRY_NEXT + 8);

			if (block == BLOCK_NONE || (*n)++ == c->elements || !collection_step(m))
				return false;
			fn(ctx, block, COLLECTION_NODE);
		}
	}
	return true;
}

static bool walk_dict(const struct collection_memory *m, const struct collection *c,
		      collection_block_fn fn, void *ctx)
{
	uint64_t w[COLLECTION_WORDS], n = 0;
	struct dict d;

	collection_words(m, c->at - 8, w, COLLECTION_WORDS);
	if (!read_dict(w, &d))
		return false;
	if (!walk_table(m, c, c->table, d.size[0], &n, fn, ctx))
		return false;
	if (d.table[1] && !walk_table(m, c, collection_block(m, d.table[1], 8 * d.size[1]),
				      d.size[1], &n, fn, ctx))
		return false;
	return n == c->elements;
}

const struct collection_shape collection_dict = { match_dict, walk_dict };
