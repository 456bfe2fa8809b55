#include "unwind/publish.h"

#include "unwind/publish_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The last unit of the pool holds the table of files that have none: one page, one row, which says
 * so. Returns how many units are left.
 */
static uint32_t make_stub(struct publish *p)
{
	uint32_t units = p->mem.n_words / MS_SPAN_WORDS;
	uint32_t *words;

	if (!units)
		return 0;
	p->stub = (units - 1) * MS_SPAN_WORDS;
	words = p->mem.pool + p->stub;
	words[0] = 0;
	words[1] = 1;
	words[2] = ms_row(0, MS_RULE_IX_NONE);
	return units - 1;
}

int publish_new(const struct publish_mem *mem, const struct space_sink *sink,
		struct publish **ret_publish, struct err *e)
{
	_cleanup_(publish_freep) struct publish *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_set(e, -ENOMEM, "out of memory for unwind tables");
	p->mem = *mem;
	p->sink = *sink;
	if (mem->n_words > PUBLISH_WORDS_MAX || !mem->n_tables)
		return err_set(e, -EINVAL, "unwind tables: a pool of %u words is not possible",
			       mem->n_words);
	p->tables = calloc(mem->n_tables, sizeof(*p->tables));
	r = p->tables ? pool_init(&p->pool, make_stub(p)) : -ENOMEM;
	if (r == 0)
		r = shared_rules_init(&p->rules, mem->rules, mem->n_rules, mem->rule_stride);
	if (r < 0)
		return err_set(e, r, "cannot set up unwind tables: %s", strerror(-r));
	*ret_publish = TAKE_PTR(p);
	return 0;
}

void publish_free(struct publish *p)
{
	if (!p)
		return;
	publish_spaces_fini(p);
	for (uint32_t i = 0; i < p->n_tables; i++) {
		if (p->tables[i].key.len)
			HASH_DELETE(hh, p->by_key, &p->tables[i]);
		free(p->tables[i].rules);
	}
	free(p->tables);
	shared_rules_fini(&p->rules);
	pool_fini(&p->pool);
	free(p);
}

const struct publish_mem *publish_memory(const struct publish *p)
{
	return &p->mem;
}

/* --- numbers --- */

static struct table *find_table(const struct publish *p, const struct publish_key *key)
{
	struct table *t;

	HASH_FIND(hh, p->by_key, key->bytes, key->len, t);
	return t;
}

uint32_t publish_table_find(const struct publish *p, const struct publish_key *key)
{
	struct table *t = find_table(p, key);

	return t ? (uint32_t)(t - p->tables) : PUBLISH_NO_TABLE;
}

static struct ms_table *shared(const struct publish *p, const struct table *t)
{
	return &p->mem.tables[t - p->tables];
}

static uint32_t last_use(const struct publish *p, const struct table *t)
{
	return __atomic_load_n(&shared(p, t)->used, __ATOMIC_RELAXED);
}

static void evict(struct publish *p, struct table *t, uint64_t now_ns)
{
	__atomic_store_n(&shared(p, t)->n_pages, 0, __ATOMIC_RELEASE);
	pool_give_back(&p->pool, t->at, now_ns);
	for (uint32_t i = 0; i < t->n_rules; i++)
		shared_rules_put(&p->rules, t->rules[i], now_ns);
	free(TAKE_PTR(t->rules));
	t->n_rules = 0;
	t->state = PUBLISH_EVICTED;
	t->idle_ns = now_ns;
	t->evictions++;
	p->stats.evictions++;
	p->stats.evicted_in_use += t->refs != 0;
	p->stats.tables--;
	p->stats.rows -= t->n_rows;
}

/* A number whose file nobody maps: free for another, or on its way there. NULL: none now. */
static struct table *take_number(struct publish *p, uint64_t now_ns)
{
	struct table *idle = NULL, *least = NULL;

	if (p->n_tables < p->mem.n_tables)
		return &p->tables[p->n_tables++];
	for (uint32_t i = 0; i < p->n_tables; i++) {
		struct table *t = &p->tables[i];

		if (t->refs)
			continue;
		if (t->state == PUBLISH_RESIDENT) {
			if (!least || last_use(p, t) < last_use(p, least))
				least = t;
		} else if (t->idle_ns + MS_POOL_GRACE_NS <= now_ns &&
			   (!idle || t->idle_ns < idle->idle_ns)) {
			idle = t;
		}
	}
	if (idle) {
		HASH_DELETE(hh, p->by_key, idle);
		shared(p, idle)->n_pages = 0; /* a stub */
	} else if (least) {
		evict(p, least, now_ns);
	}
	return idle;
}

int publish_table(struct publish *p, const struct publish_key *key, uint64_t now_ns,
		  uint32_t *ret_table)
{
	struct table *t;

	if (!key->len || key->len > PUBLISH_KEY_MAX)
		return -EINVAL;
	t = find_table(p, key);
	if (!t) {
		t = take_number(p, now_ns);
		if (!t) {
			p->stats.no_number++;
			return -ENOSPC;
		}
		*t = (struct table){ .key = *key, .idle_ns = now_ns };
		HASH_ADD_KEYPTR(hh, p->by_key, t->key.bytes, t->key.len, t);
		if (!hash_added(t)) {
			t->key.len = 0;
			return -ENOMEM;
		}
	}
	*ret_table = (uint32_t)(t - p->tables);
	return 0;
}

enum publish_state publish_table_state(const struct publish *p, uint32_t table)
{
	return table < p->n_tables ? p->tables[table].state : PUBLISH_ABSENT;
}

uint32_t publish_table_evictions(const struct publish *p, uint32_t table)
{
	return table < p->n_tables ? p->tables[table].evictions : 0;
}

/* Walks find that the file has no rows, and need not ask for them again. */
static void publish_stub(struct publish *p, struct table *t, enum publish_state state)
{
	struct ms_table *out = shared(p, t);

	t->state = state;
	if (!p->mem.n_words)
		return;
	*out = (struct ms_table){ .dir = p->stub, .rows = p->stub + 2 };
	__atomic_store_n(&out->n_pages, 1, __ATOMIC_RELEASE);
}

void publish_table_none(struct publish *p, uint32_t table)
{
	if (table < p->n_tables && p->tables[table].state != PUBLISH_RESIDENT)
		publish_stub(p, &p->tables[table], PUBLISH_NO_ROWS);
}

void publish_table_ref(struct publish *p, uint32_t table)
{
	p->tables[table].refs++;
}

void publish_table_unref(struct publish *p, uint32_t table, uint64_t now_ns)
{
	struct table *t = &p->tables[table];

	if (--t->refs == 0)
		t->idle_ns = now_ns;
}

/* --- room --- */

#define IN_USE_S      2ULL
#define COST_REFERRED (1ULL << 32) /* what processes refer to is dearer than all else */

static uint64_t cost_of(void *ctx, uint32_t owner)
{
	const struct publish *p = ctx;
	const struct table *t = &p->tables[owner];

	return (t->refs ? COST_REFERRED : 0) + last_use(p, t) + 1;
}

/*
 * May all tables of a window go? Those in use by walks stay even for one that is needed: a stack
 * through both would never be walked, and they would drive each other out for ever.
 */
static bool may_go(const struct publish *p, uint32_t from, uint32_t to, bool needed,
		   uint64_t now_ns)
{
	for (uint32_t i = from; i < to; i++) {
		const struct table *t = &p->tables[p->pool.extents[i].owner];

		if (p->pool.extents[i].use == POOL_TABLE && t->refs &&
		    (!needed || last_use(p, t) + IN_USE_S > now_ns / 1000000000))
			return false;
	}
	return true;
}

int publish_take(struct publish *p, enum pool_use use, uint32_t owner, uint32_t units, bool needed,
		 uint64_t now_ns, uint32_t *ret_at)
{
	uint32_t from, to;
	bool waits;
	int r;

	pool_reap(&p->pool, now_ns);
	r = pool_take(&p->pool, use, owner, units, ret_at);
	if (r != -ENOSPC)
		return r;
	r = pool_window(&p->pool, units, cost_of, p, &from, &to, &waits);
	if (r == 0 && waits)
		return -EAGAIN;
	if (r == 0 && !may_go(p, from, to, needed, now_ns))
		r = -ENOSPC;
	if (r < 0) {
		p->stats.no_room++;
		return r;
	}
	for (uint32_t i = from; i < to; i++)
		if (p->pool.extents[i].use == POOL_TABLE)
			evict(p, &p->tables[p->pool.extents[i].owner], now_ns);
	return -EAGAIN;
}

/* --- tables --- */

/* Table-local numbers of rules → everybody's; *ret_lost: those for which there was no room. */
static uint32_t *map_rules(struct publish *p, const struct unwind_table *t, uint64_t now_ns)
{
	uint32_t *map = malloc((t->n_rules ? t->n_rules : 1) * sizeof(*map));

	for (uint32_t i = 0; map && i < t->n_rules; i++)
		shared_rules_get(&p->rules, &t->rules[i], now_ns, &map[i]);
	return map;
}

static void write_rows(struct publish *p, uint32_t *to, const struct unwind_table *t,
		       const uint32_t *map)
{
	uint64_t bad = 0;

	for (uint32_t i = 0; i < t->n_rows; i++) {
		uint32_t local = t->rows[i] & MS_ROW_RULE_MASK;
		uint32_t rule = local < t->n_rules ? map[local] : MS_RULE_IX_BAD;

		bad += rule == MS_RULE_IX_BAD &&
		       (local >= t->n_rules || t->rules[local].kind != MS_RULE_BAD);
		to[i] = (t->rows[i] & ~MS_ROW_RULE_MASK) | rule;
	}
	p->stats.bad_rows += bad;
}

int publish_table_put(struct publish *p, uint32_t table, const struct unwind_table *t, bool needed,
		      uint64_t now_ns, struct err *e)
{
	uint64_t words = (uint64_t)t->n_pages + 1 + t->n_rows;
	struct table *own = table < p->n_tables ? &p->tables[table] : NULL;
	uint32_t at, *dir, *map;
	struct ms_table *out;
	int r;

	if (!own)
		return err_set(e, -EINVAL, "there is no unwind table %u", table);
	if (own->state == PUBLISH_RESIDENT)
		return 0;
	if (!t->n_pages || !t->n_rows)
		return err_set(e, -ENODATA, "an unwind table without rows");
	if (pool_units(words) > pool_largest(&p->pool)) {
		publish_stub(p, own, PUBLISH_REFUSED);
		p->stats.too_large++;
		return err_set(
			e, -EFBIG,
			"its unwind table of %.1f MiB is larger than the %.1f MiB there are for "
			"all: raise --mem",
			(double)words * 4 / 1048576,
			(double)pool_largest(&p->pool) * MS_SPAN_WORDS * 4 / 1048576);
	}
	r = publish_take(p, POOL_TABLE, table, pool_units(words), needed, now_ns, &at);
	if (r < 0)
		return err_set(e, r, "no room for an unwind table of %.1f MiB%s",
			       (double)words * 4 / 1048576,
			       r == -EAGAIN ? " before others have made way" : "");
	map = map_rules(p, t, now_ns);
	if (!map) {
		pool_give_back(&p->pool, at, now_ns);
		return err_set(e, -ENOMEM, "out of memory for an unwind table");
	}
	dir = p->mem.pool + (size_t)at * MS_SPAN_WORDS;
	write_rows(p, dir + t->n_pages + 1, t, map);
	for (uint32_t i = 0; i <= t->n_pages; i++)
		dir[i] = t->dir[i] < t->n_rows ? t->dir[i] : t->n_rows;
	out = shared(p, own);
	out->first_page = t->first_page;
	out->dir = at * MS_SPAN_WORDS;
	out->rows = out->dir + t->n_pages + 1;
	out->used = needed ? (uint32_t)(now_ns / 1000000000) : 0; /* never, so far */
	out->serial = ++p->serial;
	__atomic_store_n(&out->n_pages, t->n_pages, __ATOMIC_RELEASE);
	own->at = at;
	own->n_rows = t->n_rows;
	own->rules = map;
	own->n_rules = t->n_rules;
	own->state = PUBLISH_RESIDENT;
	p->stats.tables++;
	p->stats.rows += t->n_rows;
	return 0;
}

/* --- the rest --- */

void publish_tick(struct publish *p, uint64_t now_ns)
{
	pool_reap(&p->pool, now_ns);
	publish_spaces_tick(p, now_ns);
}

static uint64_t bytes_of(const struct publish *p, enum pool_use use)
{
	return (uint64_t)p->pool.used[use] * MS_SPAN_WORDS * sizeof(uint32_t);
}

void publish_stats(const struct publish *p, struct publish_stats *ret_stats)
{
	struct publish_stats s = p->stats;

	s.pool_bytes = (uint64_t)p->mem.n_words * sizeof(uint32_t);
	s.table_bytes = bytes_of(p, POOL_TABLE);
	s.span_bytes = bytes_of(p, POOL_SPANS);
	s.waiting_bytes = bytes_of(p, POOL_WAITS);
	s.tables_known = p->n_tables;
	s.rules = p->rules.n;
	*ret_stats = s;
}
