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
	uint32_t hash, ix;
	struct id_at at;

	len = len ? strnlen(s, len) : 0;
	if (!len)
		return (string_id){ 0 };
	if (len > INT32_MAX) {
		d->oom = true;
		return (string_id){ 0 };
	}
	hash = hash_bytes(s, len);
	at = id_index_begin(&d->by_text, hash);
	while (id_index_next(&at, &ix)) {
		entry = chunks_at(&d->strings, ix);
		if (entry->len == len && !memcmp(entry->text, s, len))
			return (string_id){ ix };
	}
	copy = dict_got(d, arena_strndup(&d->arena, s, len));
	entry = copy ? dict_got(d, chunks_add(&d->strings)) : NULL;
	if (!entry)
		return (string_id){ 0 };
	*entry = (struct str_entry){ copy, (uint32_t)len };
	if (id_index_add(&d->by_text, hash, d->strings.n - 1) < 0) {
		chunks_drop(&d->strings);
		d->oom = true;
		return (string_id){ 0 };
	}
	return (string_id){ d->strings.n - 1 };
}

const char *dict_str(const struct dict *d, string_id id)
{
	const struct str_entry *entry = chunks_at(&d->strings, id.ix);

	return id.ix ? entry->text : "";
}

uint32_t dict_string_count(const struct dict *d)
{
	return d->strings.n - 1;
}
