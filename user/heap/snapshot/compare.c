#include "heap/snapshot/compare.h"

#include "base/hash.h"
#include "heap/snapshot/exact.h"

#include <errno.h>
#include <string.h>

enum { FIRST, LAST };

/* A type by its name: those of several snapshots, and several of one name, are one. */
struct named {
	const char *name;
	uint32_t row;
	UT_hash_handle hh;
};

struct comparison {
	const struct snapshot *const *s;
	uint32_t n;
	uint32_t *row_of[2]; /* of the first's and the last's types */
	uint64_t *
		bytes; /* of each row: in the snapshot that is looked at, while always_more is found */
	struct named *named;
	struct compare *c;
};

/* --- types by name --- */

const char *compare_type_name(const struct types *types, uint32_t type)
{
	enum type_by by = types->type[type].by;

	return types->type[by == TYPE_DEBUG || by == TYPE_DEBUG_SIZE ? 0 : type].name;
}

static int row_named(struct comparison *m, const char *name, uint32_t *ret_row)
{
	struct named *found;

	HASH_FIND(hh, m->named, name, strlen(name), found);
	if (!found) {
		found = calloc(1, sizeof(*found));
		if (!found)
			return -ENOMEM;
		found->name = name;
		found->row = HASH_COUNT(m->named);
		HASH_ADD_KEYPTR(hh, m->named, found->name, strlen(name), found);
		if (!hash_added(found)) {
			free(found);
			return -ENOMEM;
		}
	}
	*ret_row = found->row;
	return 0;
}

static int add_types(struct comparison *m, const struct snapshot *s, uint32_t *row_of)
{
	uint32_t row;

	for (uint32_t i = 0; i < s->types.n; i++) {
		if (row_named(m, compare_type_name(&s->types, i), &row) < 0)
			return -ENOMEM;
		if (row_of)
			row_of[i] = row;
	}
	return 0;
}

static int find_types(struct comparison *m)
{
	const struct snapshot *ends[2] = { m->s[0], m->s[m->n - 1] };

	for (int i = 0; i < 2; i++) {
		m->row_of[i] = calloc(ends[i]->types.n + 1ul, sizeof(*m->row_of[i]));
		if (!m->row_of[i] || add_types(m, ends[i], m->row_of[i]) < 0)
			return -ENOMEM;
	}
	for (uint32_t i = 1; i + 1 < m->n; i++)
		if (add_types(m, m->s[i], NULL) < 0)
			return -ENOMEM;
	m->c->n = HASH_COUNT(m->named);
	m->c->rows = calloc(m->c->n + 1ul, sizeof(*m->c->rows));
	m->bytes = calloc(m->c->n + 1ul, sizeof(*m->bytes));
	m->c->came = calloc(ends[LAST]->blocks.n + 1, 1);
	if (!m->c->rows || !m->bytes || !m->c->came)
		return -ENOMEM;
	for (const struct named *t = m->named; t; t = t->hh.next)
		m->c->rows[t->row].name = t->name;
	return 0;
}

/* --- sums --- */

static void add_up(struct comparison *m)
{
	for (int k = 0; k < 2; k++) {
		const struct snapshot *s = k == FIRST ? m->s[0] : m->s[m->n - 1];

		for (uint32_t i = 0; i < s->blocks.n; i++) {
			struct compare_row *row = &m->c->rows[m->row_of[k][s->types.of[i]]];

			row->objects[k]++;
			row->bytes[k] += snapshot_bytes(s, i);
			row->moves |= s->exact && exact_brought(s->exact, i);
		}
	}
}

/* Of one step: rows that do not have more bytes than they had in m->bytes are not always more. */
static int step(struct comparison *m, const struct snapshot *s)
{
	_cleanup_(freep) uint64_t *now = calloc(m->c->n + 1ul, sizeof(*now));
	uint32_t row = 0;

	if (!now)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->types.n; i++)
		if (row_named(m, compare_type_name(&s->types, i), &row) == 0)
			now[row] += s->types.type[i].bytes;
	for (uint32_t i = 0; i < m->c->n; i++)
		m->c->rows[i].always_more &= now[i] > m->bytes[i];
	memcpy(m->bytes, now, m->c->n * sizeof(*now));
	return 0;
}

static int find_always_more(struct comparison *m)
{
	int r = step(m, m->s[0]);

	for (uint32_t i = 0; i < m->c->n; i++)
		m->c->rows[i].always_more = true;
	for (uint32_t i = 1; i < m->n && r == 0; i++)
		r = step(m, m->s[i]);
	return r;
}

/* --- objects --- */

static bool is_same(const struct comparison *m, uint32_t i, uint32_t k)
{
	const struct snapshot *a = m->s[0], *b = m->s[m->n - 1];

	return a->blocks.rows[i].addr == b->blocks.rows[k].addr &&
	       a->blocks.rows[i].words == b->blocks.rows[k].words &&
	       m->row_of[FIRST][a->types.of[i]] == m->row_of[LAST][b->types.of[k]];
}

static void is_gone(struct comparison *m, uint32_t i)
{
	const struct snapshot *s = m->s[0];
	struct compare_row *row = &m->c->rows[m->row_of[FIRST][s->types.of[i]]];

	row->gone++;
	row->gone_bytes += snapshot_bytes(s, i);
}

static void has_come(struct comparison *m, uint32_t k)
{
	const struct snapshot *s = m->s[m->n - 1];
	struct compare_row *row = &m->c->rows[m->row_of[LAST][s->types.of[k]]];

	row->came++;
	row->came_bytes += snapshot_bytes(s, k);
	m->c->came[k] = !row->moves;
}

/* Both are sorted by address. */
static void match(struct comparison *m)
{
	const struct heap_blocks *a = &m->s[0]->blocks, *b = &m->s[m->n - 1]->blocks;
	uint32_t i = 0, k = 0;

	while (i < a->n || k < b->n) {
		if (k == b->n || (i < a->n && a->rows[i].addr < b->rows[k].addr)) {
			is_gone(m, i++);
		} else if (i == a->n || b->rows[k].addr < a->rows[i].addr) {
			has_come(m, k++);
		} else {
			if (!is_same(m, i, k)) {
				is_gone(m, i);
				has_come(m, k);
			}
			i++;
			k++;
		}
	}
}

static int by_growth(const void *a, const void *b)
{
	const struct compare_row *x = a, *y = b;
	int64_t p = (int64_t)(x->bytes[LAST] - x->bytes[FIRST]),
		q = (int64_t)(y->bytes[LAST] - y->bytes[FIRST]);

	return p != q ? (p < q ? 1 : -1) : strcmp(x->name, y->name);
}

int compare_snapshots(const struct snapshot *const *s, uint32_t n, struct compare *ret_compare)
{
	struct comparison m = { .s = s, .n = n, .c = ret_compare };
	int r;

	*ret_compare = (struct compare){ 0 };
	r = find_types(&m);
	if (r == 0)
		add_up(&m);
	if (r == 0)
		r = find_always_more(&m);
	if (r == 0) {
		match(&m);
		qsort(ret_compare->rows, ret_compare->n, sizeof(*ret_compare->rows), by_growth);
	} else {
		compare_fini(ret_compare);
	}
	free(m.row_of[FIRST]);
	free(m.row_of[LAST]);
	free(m.bytes);
	hash_free(m.named);
	return r;
}

void compare_fini(struct compare *c)
{
	free(c->rows);
	free(c->came);
	*c = (struct compare){ 0 };
}
