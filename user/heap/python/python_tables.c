#include "heap/python/python_heap.h"

#include <errno.h>
#include <string.h>

/* Offsets in objects, the same in 3.8 to 3.14. */
enum {
	OB_SIZE = 16,
	LIST_ITEMS = 24,
	DICT_VALUES = 40,
	SET_MASK = 32,
	SET_TABLE = 40,
	SET_OWN_TABLE = 64,
	DEQUE_LEFT = 24,
	DEQUE_LEFT_INDEX = 40,
	DEQUE_ITEMS = 64, /* in a block: a link, items, a link */
	DEQUE_BLOCKS_MAX = 1 << 24,
	STR_POINTERS = 40,       /* lengths among them */
	MANAGED_VALUES_11 = -32, /* from the object */
	MANAGED_DICT = -24,
};

#define STR_COMPACT (1u << 5)
#define STR_ASCII   (1u << 6)

struct marks {
	struct python_heap *h;
	const struct snapshot *s;
};

/*
 * The block that a table is in. What refers to it is an object, so that the block's own first words, which may look like an
 * object (a list of a number and a type), do not count.
 */
static uint32_t block_of(const struct marks *m, uint64_t addr, uint32_t *ret_words)
{
	uint32_t offset, node = addr ? block_index_find(m->s->index, addr, &offset) : BLOCK_NONE;

	if (node == BLOCK_NONE || addr % 8)
		return BLOCK_NONE;
	*ret_words = offset / 8;
	return node;
}

/* `live` words from `addr` on are in use, or as many as there are. false: there is no block, or it is marked. */
static bool mark(const struct marks *m, uint64_t addr, enum python_table table, uint64_t live)
{
	uint32_t begin, node = block_of(m, addr, &begin), words;

	if (node == BLOCK_NONE || begin > UINT8_MAX || m->h->table[node])
		return false;
	words = m->s->blocks.rows[node].words - begin;
	m->h->table[node] = (uint8_t)table;
	m->h->begin[node] = (uint8_t)begin;
	m->h->live[node] = live < words ? (uint32_t)live : words;
	return true;
}

static void mark_keys(const struct marks *m, uint64_t at)
{
	uint32_t begin, node = block_of(m, at, &begin);
	struct python_keys keys;
	uint64_t end;

	if (node == BLOCK_NONE || begin || !python_keys_of(m->h, at, &keys))
		return;
	end = m->s->blocks.rows[node].addr + snapshot_bytes(m->s, node);
	if (keys.entries < end && keys.n <= (end - keys.entries) / keys.bytes)
		mark(m, at, PYTHON_DICT_KEYS, m->s->blocks.rows[node].words);
}

/* `values`: of a dict, or of an instance; `keys`: those that they belong to. */
static void mark_values(const struct marks *m, uint64_t values, uint64_t at)
{
	struct python_keys keys;

	if (!values || !python_keys_of(m->h, at, &keys))
		return;
	if (m->h->version->minor < 13)
		mark(m, values, PYTHON_DICT_VALUES, keys.n);
	else if (!(python_half(m->h, values) >> 16 & 0xff)) /* they are no part of an object */
		mark(m, values + 8, PYTHON_DICT_VALUES, (uint8_t)python_half(m->h, values));
}

static void mark_deque(const struct marks *m, uint64_t object)
{
	uint64_t block = python_word(m->h, object + DEQUE_LEFT),
		 left = python_word(m->h, object + DEQUE_LEFT_INDEX),
		 n = python_word(m->h, object + OB_SIZE);

	for (int i = 0; i < DEQUE_BLOCKS_MAX && block && left < DEQUE_ITEMS; i++) {
		uint64_t here = n < DEQUE_ITEMS - left ? n : DEQUE_ITEMS - left;

		if (!mark(m, block + 8 * (1 + left), PYTHON_DEQUE_BLOCK, here))
			break;
		n -= here;
		left = 0;
		if (!n)
			break;
		block = python_word(m->h, block + 8 * (1 + DEQUE_ITEMS));
	}
}

static void mark_set(const struct marks *m, uint64_t object)
{
	uint64_t table = python_word(m->h, object + SET_TABLE),
		 mask = python_word(m->h, object + SET_MASK);

	if (table != object + SET_OWN_TABLE && !(mask & (mask + 1)) && mask < UINT32_MAX / 2)
		mark(m, table, PYTHON_SET_ENTRIES, 2 * (mask + 1));
}

/* The text of a str whose class is Python code's, and the forms of others' text: they refer to nothing. */
static void mark_text(const struct marks *m, const struct python_class *c, uint64_t object)
{
	uint32_t state = python_half(m->h, object + PYTHON_STR_STATE);
	uint64_t end = state & STR_COMPACT ? c->own - 8 : c->own;

	if (state & STR_COMPACT && state & STR_ASCII)
		return;
	for (uint64_t at = STR_POINTERS; at < end; at += 8)
		mark(m, python_word(m->h, object + at), PYTHON_STR_TEXT, 0);
}

static void mark_managed(const struct marks *m, const struct python_class *c, uint64_t object)
{
	uint64_t word;

	if (m->h->version->minor == 11) {
		mark_values(m, python_word(m->h, object + MANAGED_VALUES_11), c->shared_keys);
	} else if (m->h->version->minor == 12) {
		word = python_word(m->h, object + MANAGED_DICT);
		if (word & 1)
			mark_values(m, word + 1, c->shared_keys);
	}
}

static void look_at(const struct marks *m, uint32_t node)
{
	const struct python_class *c = python_class_of(m->h, m->s, node);
	uint64_t object;

	if (!c)
		return;
	object = python_object(m->s, node);
	if (c->managed_dict)
		mark_managed(m, c, object);
	switch (c->shape) {
	case PYTHON_LIST:
		mark(m, python_word(m->h, object + LIST_ITEMS), PYTHON_LIST_ITEMS,
		     python_word(m->h, object + OB_SIZE));
		break;
	case PYTHON_DICT:
		mark_keys(m, python_word(m->h, object + PYTHON_MA_KEYS));
		mark_values(m, python_word(m->h, object + DICT_VALUES),
			    python_word(m->h, object + PYTHON_MA_KEYS));
		break;
	case PYTHON_STR:
		mark_text(m, c, object);
		break;
	case PYTHON_SET:
		mark_set(m, object);
		break;
	case PYTHON_DEQUE:
		mark_deque(m, object);
		break;
	default:
		break;
	}
}

int python_tables_find(struct python_heap *h, const struct snapshot *s)
{
	struct marks m = { h, s };

	h->table = calloc(s->blocks.n + 1, sizeof(*h->table));
	h->begin = calloc(s->blocks.n + 1, sizeof(*h->begin));
	h->live = calloc(s->blocks.n + 1, sizeof(*h->live));
	if (!h->table || !h->begin || !h->live)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->n_classes; i++)
		if (h->classes[i].shape != PYTHON_NOT && h->classes[i].shared_keys)
			mark_keys(&m, h->classes[i].shared_keys);
	for (uint32_t i = 0; i < s->blocks.n; i++)
		look_at(&m, i);
	return 0;
}
