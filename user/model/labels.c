#include "model/tables.h"

#include <string.h>

/* A label without padding, so that sets compare as bytes. The order of fields is the sort order. */
struct label_key {
	uint32_t key, str, unit;
	uint32_t num_hi, num_lo;
};

static int label_key_cmp(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct label_key)); /* any total order will do */
}

/* `labels` as sorted keys without repetition; returns how many are left. */
static uint32_t normalize(const struct label *labels, uint32_t n, struct label_key *keys)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		keys[i].key = labels[i].key.ix;
		keys[i].str = labels[i].str.ix;
		keys[i].unit = labels[i].unit.ix;
		keys[i].num_hi = (uint32_t)((uint64_t)labels[i].num >> 32);
		keys[i].num_lo = (uint32_t)labels[i].num;
	}
	qsort(keys, n, sizeof(*keys), label_key_cmp);
	for (uint32_t i = 0; i < n; i++)
		if (!kept || label_key_cmp(&keys[kept - 1], &keys[i]))
			keys[kept++] = keys[i];
	return kept;
}

/* One of those that were forgotten, with room for `n` labels; NULL: there is none. */
static struct labels_entry *take_free(struct dict *d, uint32_t n)
{
	struct labels_entry *entry;

	if (n >= FREE_SETS || !d->free_sets[n])
		return NULL;
	entry = chunks_at(&d->label_sets, d->free_sets[n]);
	d->free_sets[n] = entry->next_free;
	d->n_free--;
	entry->is_free = false;
	return entry;
}

static struct labels_entry *new_entry(struct dict *d, uint32_t n)
{
	struct label_key *keys = dict_got(d, arena_alloc(&d->arena, n * sizeof(*keys)));
	struct label *labels = dict_got(d, arena_alloc(&d->arena, n * sizeof(*labels)));
	struct labels_entry *entry;

	entry = keys && labels ? dict_got(d, chunks_add(&d->label_sets)) : NULL;
	if (!entry)
		return NULL;
	entry->labels = labels;
	entry->hh.key = keys;
	entry->ix = d->label_sets.n - 1;
	return entry;
}

/* Nobody finds it any more; its room is for another set of as many labels. */
static void free_entry(struct dict *d, struct labels_entry *entry, uint32_t n)
{
	entry->n = 0;
	entry->is_free = true;
	entry->next_free = d->free_sets[n];
	d->free_sets[n] = entry->ix;
	d->n_free++;
}

static struct labels_entry *add_set(struct dict *d, const struct label_key *keys, uint32_t n)
{
	struct labels_entry *entry = take_free(d, n);
	struct label_key *copy;
	struct label *labels;

	if (!entry)
		entry = new_entry(d, n);
	if (!entry)
		return NULL;
	copy = (void *)entry->hh.key;
	labels = (struct label *)entry->labels;
	for (uint32_t i = 0; i < n; i++) {
		labels[i] = (struct label){
			.key = { keys[i].key },
			.str = { keys[i].str },
			.unit = { keys[i].unit },
			.num = (int64_t)((uint64_t)keys[i].num_hi << 32 | keys[i].num_lo),
		};
	}
	memcpy(copy, keys, n * sizeof(*copy));
	entry->n = n;
	HASH_ADD_KEYPTR(hh, d->by_labels, copy, n * sizeof(*copy), entry);
	if (!hash_added(entry)) {
		if (n < FREE_SETS)
			free_entry(d, entry, n);
		d->oom = true;
		return NULL;
	}
	return entry;
}

uint32_t dict_labels_sweep(struct dict *d)
{
	uint32_t n_sets = d->label_sets.n, freed = 0;
	_cleanup_(freep) uint64_t *bits = calloc(n_sets / 64 + 1ul, sizeof(*bits));
	struct id_marks used = { bits, n_sets };

	if (!bits)
		return 0;
	for (const struct dict_user *user = d->users; user; user = user->next)
		user->mark(user, &used);
	for (uint32_t i = 1; i < n_sets; i++) {
		struct labels_entry *entry = chunks_at(&d->label_sets, i);

		if (entry->is_free || entry->n >= FREE_SETS || (bits[i / 64] >> i % 64 & 1))
			continue;
		HASH_DELETE(hh, d->by_labels, entry);
		free_entry(d, entry, entry->n);
		freed++;
	}
	d->swept += freed > 0;
	return freed;
}

uint32_t dict_labels_swept(const struct dict *d)
{
	return d->swept;
}

labels_id dict_labels(struct dict *d, const struct label *labels, uint32_t n)
{
	_cleanup_(freep) struct label_key *keys = NULL;
	struct labels_entry *entry;

	if (!n)
		return (labels_id){ 0 };
	if (n > INT32_MAX / sizeof(*labels))
		keys = dict_got(d, NULL);
	else
		keys = dict_got(d, calloc(n, sizeof(*keys)));
	if (!keys)
		return (labels_id){ 0 };
	n = normalize(labels, n, keys);
	HASH_FIND(hh, d->by_labels, keys, n * sizeof(*keys), entry);
	if (!entry)
		entry = add_set(d, keys, n);
	return (labels_id){ entry ? entry->ix : 0 };
}

uint32_t dict_labels_count(const struct dict *d)
{
	return d->label_sets.n - d->n_free;
}

const struct label *dict_labels_get(const struct dict *d, labels_id id, uint32_t *ret_n)
{
	const struct labels_entry *entry = chunks_at(&d->label_sets, id.ix);

	*ret_n = entry->n;
	return entry->labels;
}

const struct label *dict_label_find(const struct dict *d, labels_id id, const char *key)
{
	const struct labels_entry *entry = chunks_at(&d->label_sets, id.ix);

	for (uint32_t i = 0; i < entry->n; i++)
		if (!strcmp(dict_str(d, entry->labels[i].key), key))
			return &entry->labels[i];
	return NULL;
}

bool label_is_reserved(const char *key)
{
	static const char *const keys[] = { "pid",      "comm",      "tid",          "thread",
					    "memory",   "container", "container_id", "cgroup",
					    "ns_pid",   "waker",     "waker_pid",    "pod",
					    "namespace" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}
