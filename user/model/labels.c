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

static struct labels_entry *add_set(struct dict *d, const struct label_key *keys, uint32_t n)
{
	struct label_key *copy = dict_got(d, arena_alloc(&d->arena, n * sizeof(*copy)));
	struct label *labels = dict_got(d, arena_alloc(&d->arena, n * sizeof(*labels)));
	struct labels_entry *entry;

	entry = copy && labels ? dict_got(d, chunks_add(&d->label_sets)) : NULL;
	if (!entry)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		labels[i] = (struct label){
			.key = { keys[i].key },
			.str = { keys[i].str },
			.unit = { keys[i].unit },
			.num = (int64_t)((uint64_t)keys[i].num_hi << 32 | keys[i].num_lo),
		};
	}
	memcpy(copy, keys, n * sizeof(*copy));
	entry->labels = labels;
	entry->n = n;
	entry->ix = d->label_sets.n - 1;
	HASH_ADD_KEYPTR(hh, d->by_labels, copy, n * sizeof(*copy), entry);
	if (!hash_added(entry)) {
		chunks_drop(&d->label_sets);
		d->oom = true;
		return NULL;
	}
	return entry;
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
