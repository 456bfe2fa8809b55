#include "model/tables.h"

static bool has_range(const struct module *m)
{
	return m->limit > m->start;
}

/* `to` covers `from` as well. */
static void widen(struct module *to, const struct module *from)
{
	if (!has_range(from))
		return;
	if (!has_range(to)) {
		to->start = from->start;
		to->limit = from->limit;
		to->file_off = from->file_off;
		return;
	}
	if (from->start < to->start) {
		to->start = from->start;
		to->file_off = from->file_off;
	}
	if (from->limit > to->limit)
		to->limit = from->limit;
}

module_id dict_module(struct dict *d, const struct module *m)
{
	struct module_key key = {
		.dev = m->dev,
		.ino = m->ino,
		.kind = (uint32_t)m->kind,
		.path = m->path.ix,
		.build_id = m->build_id.ix,
	};
	struct module_entry *entry;

	if (m->kind == MODULE_NONE && !m->path.ix)
		return (module_id){ 0 };
	HASH_FIND(hh, d->by_identity, &key, sizeof(key), entry);
	if (entry) {
		widen(&entry->module, m);
		return (module_id){ entry->ix };
	}
	entry = dict_got(d, chunks_add(&d->modules));
	if (!entry)
		return (module_id){ 0 };
	entry->key = key;
	entry->module = *m;
	entry->ix = d->modules.n - 1;
	HASH_ADD(hh, d->by_identity, key, sizeof(key), entry);
	if (!hash_added(entry)) {
		chunks_drop(&d->modules);
		d->oom = true;
		return (module_id){ 0 };
	}
	return (module_id){ entry->ix };
}

const struct module *dict_module_get(const struct dict *d, module_id id)
{
	const struct module_entry *entry = chunks_at(&d->modules, id.ix);

	return &entry->module;
}

void dict_module_learn(struct dict *d, module_id id, const struct module *m)
{
	struct module_entry *entry = chunks_at(&d->modules, id.ix);
	struct module *known = &entry->module;

	if (!id.ix)
		return;
	if (!known->path.ix)
		known->path = m->path;
	if (!known->build_id.ix)
		known->build_id = m->build_id;
	if (!known->dev && !known->ino) {
		known->dev = m->dev;
		known->ino = m->ino;
	}
	if (!has_range(known))
		widen(known, m);
}

uint32_t dict_module_count(const struct dict *d)
{
	return d->modules.n - 1;
}
