/*
 * Unwind tables and processes' spans in memory that walks could read, for the tests of who publishes them.
 */
#ifndef MEMSCOPE_TESTS_PUBLISH_FIXTURE_H
#define MEMSCOPE_TESTS_PUBLISH_FIXTURE_H

#include "unwind/publish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEC 1000000000ULL

enum { N_TABLES = 16, N_RULES = 64, N_PIDS = 64 };

struct fixture {
	struct publish_mem mem;
	struct publish *p;
	struct ms_space entry[N_PIDS];
	bool put[N_PIDS];
	bool refuse; /* the map of entries is full */
	uint64_t now;
};

static inline int put_entry(void *ctx, uint32_t pid, const struct ms_space *space)
{
	struct fixture *f = ctx;

	if (f->refuse)
		return -E2BIG;
	f->entry[pid] = *space;
	f->put[pid] = true;
	return 0;
}

static inline void drop_entry(void *ctx, uint32_t pid)
{
	struct fixture *f = ctx;

	f->put[pid] = false;
}

static inline struct fixture *begin(uint32_t n_words)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct space_sink sink = { put_entry, drop_entry, f };

	f->mem = (struct publish_mem){
		.pool = calloc(n_words ? n_words : 1, 4),
		.n_words = n_words,
		.tables = calloc(N_TABLES, sizeof(struct ms_table)),
		.n_tables = N_TABLES,
		.rules = calloc(N_RULES, 48),
		.n_rules = N_RULES,
		.rule_stride = 48,
	};
	f->now = 100 * SEC;
	assert_int_equal(publish_new(&f->mem, &sink, &f->p, NULL), 0);
	return f;
}

static inline void end(struct fixture *f)
{
	publish_free(f->p);
	free(f->mem.pool);
	free(f->mem.tables);
	free(f->mem.rules);
	free(f);
}

static inline struct publish_key key_of(uint32_t n)
{
	struct publish_key key = { .len = sizeof(n) };

	memcpy(key.bytes, &n, sizeof(n));
	return key;
}

static inline uint32_t number(struct fixture *f, uint32_t file)
{
	struct publish_key key = key_of(file);
	uint32_t ix;

	return publish_table(f->p, &key, f->now, &ix) == 0 ? ix : PUBLISH_NO_TABLE;
}

/* A table of its own: `n_rows` rows on one page, all of one rule, which `seed` chooses. */
static inline int give_if(struct fixture *f, uint32_t table, uint32_t n_rows, uint32_t seed, bool needed)
{
	struct unwind_table t = { .first_page = seed, .n_pages = 1, .n_rows = n_rows };
	uint32_t dir[2] = { 0, n_rows };
	struct ms_rule rule = { .kind = MS_RULE_REG, .off = (int32_t)seed };
	int r;

	t.dir = dir;
	t.rows = calloc(n_rows ? n_rows : 1, 4);
	for (uint32_t i = 0; i < n_rows; i++)
		t.rows[i] = ms_row(i, 0);
	t.rules = &rule;
	t.n_rules = 1;
	r = publish_table_put(f->p, table, &t, needed, f->now, NULL);
	free(t.rows);
	return r;
}

static inline int give(struct fixture *f, uint32_t table, uint32_t n_rows, uint32_t seed)
{
	return give_if(f, table, n_rows, seed, true);
}

static inline const struct ms_rule *rule_at(struct fixture *f, uint32_t ix)
{
	return (const struct ms_rule *)((char *)f->mem.rules + ix * f->mem.rule_stride);
}

/* Is what a walk finds there the table that give() was called with? */
static inline bool is_whole(struct fixture *f, uint32_t table, uint32_t n_rows, uint32_t seed)
{
	const struct ms_table *t = &f->mem.tables[table];
	const uint32_t *pool = f->mem.pool;

	if (t->n_pages != 1 || t->first_page != seed || t->rows + n_rows > f->mem.n_words)
		return false;
	if (pool[t->dir] != 0 || pool[t->dir + 1] != n_rows)
		return false;
	for (uint32_t i = 0; i < n_rows; i++) {
		uint32_t row = pool[t->rows + i];

		if (row >> MS_ROW_RULE_BITS != (i & 0xfff) ||
		    rule_at(f, row & MS_ROW_RULE_MASK)->off != (int32_t)seed)
			return false;
	}
	return true;
}

static inline int put_space(struct fixture *f, uint32_t pid, uint32_t gen, const struct ms_span *s,
		     uint32_t n)
{
	struct ms_proc proc = { .tgid = pid, .start_ns = pid, .exec_id = 1 };

	return publish_space_put(f->p, &proc, gen, s, n, false, f->now);
}

static inline int put_one(struct fixture *f, uint32_t pid, uint32_t table)
{
	struct ms_span s = { .start = 0x1000, .end = 0x2000, .table = table };

	return put_space(f, pid, 0, &s, 1);
}

static inline const struct ms_span *span(struct fixture *f, uint32_t pid, uint32_t i)
{
	const void *at = f->mem.pool + f->entry[pid].spans + i * MS_SPAN_WORDS;

	return at;
}

static inline struct publish_stats stats(struct fixture *f)
{
	struct publish_stats s;

	publish_stats(f->p, &s);
	return s;
}

#endif
