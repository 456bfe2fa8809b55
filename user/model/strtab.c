#include "model/tables.h"

#include <string.h>

string_id dict_string(struct dict *d, const char *s)
{
	return dict_string_n(d, s, strlen(s));
}

string_id dict_string_n(struct dict *d, const char *s, size_t len)
{
	struct str_entry *entry;
	const char *copy;
	unsigned hash;

	len = len ? strnlen(s, len) : 0;
	if (!len)
		return (string_id){ 0 };
	if (len > INT32_MAX) { /* uthash counts key bytes in an unsigned */
		d->oom = true;
		return (string_id){ 0 };
	}
	HASH_VALUE(s, len, hash);
	HASH_FIND_BYHASHVALUE(hh, d->by_text, s, len, hash, entry);
	if (entry)
		return (string_id){ entry->ix };
	copy = dict_got(d, arena_strndup(&d->arena, s, len));
	entry = copy ? dict_got(d, chunks_add(&d->strings)) : NULL;
	if (!entry)
		return (string_id){ 0 };
	entry->ix = d->strings.n - 1;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, d->by_text, copy, len, hash, entry);
	if (!hash_added(entry)) {
		chunks_drop(&d->strings);
		d->oom = true;
		return (string_id){ 0 };
	}
	return (string_id){ entry->ix };
}

const char *dict_str(const struct dict *d, string_id id)
{
	const struct str_entry *entry = chunks_at(&d->strings, id.ix);

	return id.ix ? entry->hh.key : "";
}

uint32_t dict_string_count(const struct dict *d)
{
	return d->strings.n - 1;
}
