/* Collections of libc++ that are laid out differently from libstdc++'s; collection.h has their layouts. */
#include "heap/snapshot/collection.h"

/* --- maps and sets (__tree) --- */

struct tree_node {
	uint64_t left, right, parent;
};

/* false: no block begins at `addr` that has room for a node of a tree. */
static bool read_node(const struct collection_memory *m, uint64_t addr, struct tree_node *ret_node)
{
	uint64_t w[4];

	if (collection_block(m, addr, 25) == BLOCK_NONE)
		return false;
	collection_words(m, addr, w, 4);
	*ret_node = (struct tree_node){ w[0], w[1], w[2] };
	return (uint8_t)w[3] <= 1; /* is it black? */
}

/* `at` is the end node, whose left one is the root; the first node stands before it. */
static bool match_map(const struct collection_memory *m, const uint64_t w[COLLECTION_WORDS],
		      uint64_t at, uint32_t to, struct collection *c)
{
	struct tree_node root;

	if (!w[2] || w[2] > m->n_blocks || collection_block(m, w[0], 25) == BLOCK_NONE ||
	    !read_node(m, w[1], &root) || root.parent != at)
		return false;
	c->elements = w[2];
	c->live = collection_size(m, to);
	return true;
}

/* The node with the least key below `addr`, whose parent is `parent`. 0: it is no tree. */
static uint64_t least(const struct collection_memory *m, uint64_t addr, uint64_t parent,
		      uint64_t *steps)
{
	for (;;) {
		struct tree_node node;

		if (!*steps || !collection_step(m) || !read_node(m, addr, &node) ||
		    node.parent != parent)
			return 0;
		--*steps;
		if (!node.left)
			return addr;
		parent = addr;
		addr = node.left;
	}
}

/* The next node in the order of keys; the end node behind the last. 0: it is no tree. */
static uint64_t next(const struct collection_memory *m, uint64_t addr, struct tree_node node,
		     uint64_t end, uint64_t *steps)
{
	if (node.right)
		return least(m, node.right, addr, steps);
	while (*steps && collection_step(m)) {
		uint64_t parent = node.parent;

		--*steps;
		if (parent == end)
			return end;
		if (!read_node(m, parent, &node))
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
	uint64_t steps = 3 * c->elements + 3, n = 0;
	uint64_t addr = least(m, m->blocks[c->table].addr, c->at, &steps);

	while (addr && addr != c->at && n < c->elements) {
		struct tree_node node;

		if (!read_node(m, addr, &node))
			return false;
		fn(ctx, collection_block(m, addr, 25), COLLECTION_NODE);
		n++;
		addr = next(m, addr, node, c->at, &steps);
	}
	return addr == c->at && n == c->elements;
}

const struct collection_shape collection_libcxx_map = { match_map, walk_map };

/* --- deques --- */

enum { CHUNK = 4096 }; /* bytes of at most 16 of them, or of as many as fit */

/* w[1]: the map, its part in use, its end; then where in the first chunk the first element is, and how many there are. */
static bool match_deque(const struct collection_memory *m, const uint64_t w[COLLECTION_WORDS],
			uint64_t at, uint32_t to, struct collection *c)
{
	uint64_t map = w[1], begin = w[2], end = w[3], limit = w[4], start = w[5], n = w[6];
	uint64_t chunks = (end - begin) / 8;

	(void)at;
	if (begin < map || begin % 8 || end <= begin || end % 8 || limit < end ||
	    !collection_fits(limit - map, collection_size(m, to)) || !n ||
	    start >= chunks * CHUNK || n > chunks * CHUNK)
		return false;
	c->elements = n;
	c->unused = begin - map;
	c->live = end - map;
	return true;
}

/* Chunks of one size, which as many elements fill. */
static bool walk_deque(const struct collection_memory *m, const struct collection *c,
		       collection_block_fn fn, void *ctx)
{
	uint64_t w[6], size = 0, each;

	collection_words(m, c->at, w, 6);
	for (uint64_t node = w[1]; node < w[2]; node += 8) {
		uint64_t chunk;
		uint32_t block;

		collection_words(m, node, &chunk, 1);
		block = collection_block(m, chunk, CHUNK / 2);
		if (block == BLOCK_NONE || !collection_step(m) ||
		    (size && collection_size(m, block) > size + 16))
			return false;
		size = size ? size : collection_size(m, block);
		fn(ctx, block, COLLECTION_BUFFER);
	}
	each = (w[2] - w[1]) / 8 * size / (w[4] + w[5]);
	fn(ctx, c->table, COLLECTION_TABLE);
	return size && each > 0;
}

const struct collection_shape collection_libcxx_deque = { match_deque, walk_deque };
