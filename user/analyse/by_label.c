#include "analyse/by_label.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pair {
	uint32_t key, value; /* of the dict's strings */
};

struct entry {
	struct pair pair;
	struct label_share share;
	UT_hash_handle hh;
};

/* `type` by its name; `at` in struct label_share. */
static int take(struct entry **table, const struct profile *p, const char *type_name, size_t at)
{
	const struct dict *d = p ? profile_dict(p) : NULL;
	int type = p ? profile_find_type(p, type_name) : -1;

	for (uint32_t i = 0; type >= 0 && i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		uint32_t n;
		const struct label *l = dict_labels_get(d, s.labels, &n);

		for (uint32_t k = 0; k < n; k++) {
			struct pair pair = { l[k].key.ix, l[k].str.ix };
			struct entry *e;
			int64_t *field;

			if (!l[k].str.ix || label_is_reserved(dict_str(d, l[k].key)))
				continue;
			e = hash_get(*table, pair, &pair);
			if (!e)
				return -ENOMEM;
			e->share.value = dict_str(d, l[k].str);
			field = (int64_t *)((char *)&e->share + at);
			*field = add_saturating(*field, s.values[type]);
		}
	}
	return 0;
}

static int by_share(const struct label_share *x, const struct label_share *y)
{
	int r = (y->samples > x->samples) - (y->samples < x->samples);

	return r ? r : (y->blocked_ns > x->blocked_ns) - (y->blocked_ns < x->blocked_ns);
}

/* Of one key together, the largest first. */
static int by_key(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
	int r = (x->pair.key > y->pair.key) - (x->pair.key < y->pair.key);

	r = r ? r : by_share(&x->share, &y->share);
	return r ? r : strcmp(x->share.value, y->share.value);
}

static int by_row(const void *a, const void *b)
{
	const struct label_row *x = a, *y = b;
	int r = (y->samples > x->samples) - (y->samples < x->samples);

	r = r ? r : (y->blocked_ns > x->blocked_ns) - (y->blocked_ns < x->blocked_ns);
	r = r ? r : (x->values > y->values) - (x->values < y->values);
	return r ? r : strcmp(x->key, y->key);
}

/* Rows of entries that are sorted by key; as many as there are entries at most. */
static uint32_t sum_up(const struct dict *d, struct entry *const *all, uint32_t n,
		       struct label_row *rows)
{
	uint32_t n_rows = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct label_row *row;

		if (i == 0 || all[i - 1]->pair.key != all[i]->pair.key)
			rows[n_rows++].key = dict_str(d, (string_id){ all[i]->pair.key });
		row = &rows[n_rows - 1];
		row->values++;
		row->samples = add_saturating(row->samples, all[i]->share.samples);
		row->blocked_ns = add_saturating(row->blocked_ns, all[i]->share.blocked_ns);
		if (row->n_top < LABEL_TOP)
			row->top[row->n_top++] = all[i]->share;
	}
	return n_rows;
}

int by_label(const struct profile *oncpu, const struct profile *offcpu, struct label_row *out,
	     uint32_t cap)
{
	_cleanup_(freep) struct entry **all = NULL;
	_cleanup_(freep) struct label_row *rows = NULL;
	struct entry *table = NULL;
	uint32_t n = 0, n_rows = 0;
	int r;

	r = take(&table, oncpu, "samples", offsetof(struct label_share, samples));
	if (r == 0)
		r = take(&table, offcpu, "blocked/nanoseconds",
			 offsetof(struct label_share, blocked_ns));
	if (r == 0) {
		all = calloc(HASH_COUNT(table) + 1, sizeof(struct entry *));
		rows = calloc(HASH_COUNT(table) + 1, sizeof(*rows));
		r = all && rows ? 0 : -ENOMEM;
	}
	for (struct entry *e = r == 0 ? table : NULL; e; e = e->hh.next)
		all[n++] = e;
	if (n) {
		qsort(all, n, sizeof(struct entry *), by_key);
		n_rows = sum_up(profile_dict(oncpu ? oncpu : offcpu), all, n, rows);
		qsort(rows, n_rows, sizeof(*rows), by_row);
		n_rows = n_rows < cap ? n_rows : cap;
		memcpy(out, rows, n_rows * sizeof(*rows));
	}
	hash_free(table);
	return r < 0 ? r : (int)n_rows;
}
