#include "model/tables.h"

#include <string.h>

/* The identity of a place without names is the first bytes of its struct location. */
enum { VADDR_KEY_LEN = offsetof(struct location, module) + sizeof(module_id) };

_Static_assert(offsetof(struct location, vaddr) == 0 && VADDR_KEY_LEN == 12, "key has no holes");

/* The identity of a place that came with names; kept in the arena, where its lines stay. */
struct named_key {
	uint64_t vaddr;
	uint32_t module, n_lines;
	struct line lines[];
};

_Static_assert(sizeof(struct line) == 20 && sizeof(struct named_key) == 16, "key has no holes");

static struct location_entry *add_location(struct dict *d, module_id module, uint64_t vaddr)
{
	struct location_entry *entry = dict_got(d, chunks_add(&d->locations));

	if (!entry)
		return NULL;
	entry->ix = d->locations.n - 1;
	entry->loc.module = module;
	entry->loc.vaddr = vaddr;
	return entry;
}

static location_id added(struct dict *d, const struct location_entry *entry)
{
	if (hash_added(entry))
		return (location_id){ entry->ix };
	chunks_drop(&d->locations);
	d->oom = true;
	return (location_id){ 0 };
}

location_id dict_location(struct dict *d, module_id module, uint64_t vaddr)
{
	struct location probe = { .vaddr = vaddr, .module = module };
	struct location_entry *entry;
	unsigned hash;

	HASH_VALUE(&probe, VADDR_KEY_LEN, hash);
	HASH_FIND_BYHASHVALUE(hh, d->by_vaddr, &probe, VADDR_KEY_LEN, hash, entry);
	if (entry)
		return (location_id){ entry->ix };
	entry = add_location(d, module, vaddr);
	if (!entry)
		return (location_id){ 0 };
	HASH_ADD_BYHASHVALUE(hh, d->by_vaddr, loc, VADDR_KEY_LEN, hash, entry);
	return added(d, entry);
}

location_id dict_location_lines(struct dict *d, module_id module, uint64_t vaddr,
				const struct line *lines, uint32_t n)
{
	_Alignas(struct named_key) char few[sizeof(struct named_key) + 4 * sizeof(struct line)];
	_cleanup_(freep) void *many = NULL;
	struct named_key *probe = (struct named_key *)few;
	struct location_entry *entry;
	struct named_key *key;
	size_t key_len;

	if (n > (INT32_MAX - sizeof(*key)) / sizeof(*lines)) {
		d->oom = true;
		return (location_id){ 0 };
	}
	key_len = sizeof(*key) + n * sizeof(*lines);
	if (key_len > sizeof(few)) {
		probe = many = dict_got(d, malloc(key_len));
		if (!many)
			return (location_id){ 0 };
	}
	probe->vaddr = vaddr;
	probe->module = module.ix;
	probe->n_lines = n;
	if (n)
		memcpy(probe->lines, lines, n * sizeof(*lines));

	HASH_FIND(hh, d->by_lines, probe, key_len, entry);
	if (entry)
		return (location_id){ entry->ix };
	key = dict_got(d, arena_alloc(&d->arena, key_len));
	entry = key ? add_location(d, module, vaddr) : NULL;
	if (!entry)
		return (location_id){ 0 };
	memcpy(key, probe, key_len);
	entry->loc.named = true;
	entry->loc.n_lines = n;
	entry->loc.lines = n ? key->lines : NULL;
	HASH_ADD_KEYPTR(hh, d->by_lines, key, key_len, entry);
	return added(d, entry);
}

const struct location *dict_location_get(const struct dict *d, location_id id)
{
	const struct location_entry *entry = chunks_at(&d->locations, id.ix);

	return &entry->loc;
}

void dict_location_name(struct dict *d, location_id id, const struct line *lines, uint32_t n)
{
	struct location_entry *entry = chunks_at(&d->locations, id.ix);
	struct line *copy = NULL;

	if (!id.ix)
		return;
	if (n) {
		copy = dict_got(d, arena_alloc(&d->arena, n * sizeof(*copy)));
		if (!copy)
			return;
		memcpy(copy, lines, n * sizeof(*copy));
	}
	entry->loc.lines = copy;
	entry->loc.n_lines = n;
	entry->loc.named = true;
	entry->loc.lines_unread = false;
}

void dict_location_name_unread(struct dict *d, location_id id, const struct line *lines, uint32_t n)
{
	struct location_entry *entry = chunks_at(&d->locations, id.ix);

	dict_location_name(d, id, lines, n);
	if (id.ix)
		entry->loc.lines_unread = entry->loc.named;
}

uint32_t dict_location_count(const struct dict *d)
{
	return d->locations.n - 1;
}
