#include "heap/snapshot/dups.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 4096 };

struct row {
	uint64_t hash;
	uint32_t node;
	bool text, zeros;
};

static bool is_zeros(const uint8_t *bytes, uint64_t n)
{
	return !n || (!bytes[0] && !memcmp(bytes, bytes + 1, n - 1));
}

/* How many bytes of a block count. A string of C ends with its first NUL: *ret_c. */
static uint64_t length_of(const struct snapshot *s, uint32_t node, bool *ret_text, bool *ret_c)
{
	const struct collection *c = collection_of_node(&s->collections, node);
	const struct type *type = &s->types.type[s->types.of[node]];
	uint64_t size = snapshot_bytes(s, node);
	uint32_t len;

	*ret_text = collection_text(&s->collections, node, &len);
	if (*ret_text)
		return len < size ? len : size;
	*ret_text = *ret_c = type->by == TYPE_TEXT && strcmp(type->name, "C string") == 0;
	return c && c->table == node && c->live < size ? c->live : size;
}

/* false: its contents are not known. */
static bool hash_block(const struct snapshot *s, uint32_t node, XXH3_state_t *state,
		       struct row *row)
{
	const struct heap_memory *mem = copy_memory(s->copy);
	uint64_t addr = s->blocks.rows[node].addr, len;
	bool is_c = false;
	uint8_t part[PART];

	*row = (struct row){ .node = node, .zeros = true };
	len = length_of(s, node, &row->text, &is_c);
	if (!len)
		return false; /* what is not in use is equal to nothing */
	XXH3_64bits_reset_withSeed(state, row->text ? 1 : snapshot_bytes(s, node));
	for (uint64_t at = 0, n, used; at < len; at += n) {
		n = len - at < PART ? len - at : PART;
		if (!mem->read(mem->ctx, addr + at, part, n))
			return false;
		used = is_c ? strnlen((const char *)part, n) : n;
		row->zeros &= is_zeros(part, used);
		XXH3_64bits_update(state, part, used);
		if (used < n)
			break;
	}
	row->zeros &= !row->text;
	row->hash = XXH3_64bits_digest(state);
	return true;
}

static int by_hash(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static int by_saved(const void *a, const void *b)
{
	const struct dup_group *x = a, *y = b;

	if (x->saved != y->saved)
		return x->saved < y->saved ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Rows of one hash. */
static void add(const struct snapshot *s, const struct row *rows, uint64_t n, struct dups *to)
{
	struct dup_group g = { rows->node, rows->text, rows->zeros, n, 0, 0 };
	uint64_t largest = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t bytes = snapshot_bytes(s, rows[i].node);

		g.bytes += bytes;
		largest = bytes > largest ? bytes : largest;
	}
	g.saved = g.bytes - largest;
	to->blocks += n - 1;
	to->saved += g.saved;
	to->rows[to->n++] = g;
}

static int gather(const struct snapshot *s, const struct row *rows, uint64_t n, struct dups *to)
{
	to->rows = calloc(n / 2 + 1, sizeof(*to->rows));
	if (!to->rows)
		return -ENOMEM;
	for (uint64_t i = 0, same; i < n; i += same) {
		for (same = 1; i + same < n && rows[i + same].hash == rows[i].hash;)
			same++;
		if (same > 1)
			add(s, rows + i, same, to);
	}
	qsort(to->rows, to->n, sizeof(*to->rows), by_saved);
	return 0;
}

int dups_find(const struct snapshot *s, struct dups *ret_dups)
{
	_cleanup_(freep) struct row *rows = calloc(s->blocks.n + 1, sizeof(*rows));
	XXH3_state_t *state = XXH3_createState();
	uint64_t n = 0;
	int r = rows && state ? 0 : -ENOMEM;

	*ret_dups = (struct dups){ 0 };
	for (uint32_t i = 0; r == 0 && i < s->blocks.n; i++)
		n += hash_block(s, i, state, &rows[n]);
	XXH3_freeState(state);
	ret_dups->looked_at = n;
	if (r == 0) {
		qsort(rows, n, sizeof(*rows), by_hash);
		r = gather(s, rows, n, ret_dups);
	}
	return r;
}

void dups_fini(struct dups *d)
{
	free(d->rows);
	*d = (struct dups){ 0 };
}
