#include "heap/snapshot/select.h"

#include "heap/snapshot/query.h"

#include <errno.h>
#include <string.h>

/* Names of types may have any characters: what as a whole is one needs no quotes. */
static bool is_type(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 1; i < s->types.n; i++)
		if (query_is_named(s->types.type[i].name, name))
			return true;
	return false;
}

/* A text alone, without quotes: it may have any characters. */
static bool is_text(const char *what)
{
	return strncmp(what, "text:", 5) == 0 && what[5] && !strpbrk(what + 5, "\"'()") &&
	       !strstr(what, " and ") && !strstr(what, " or ");
}

static int find(const struct snapshot *s, const char *what, uint8_t **ret_set, struct err *e)
{
	const char *name = strncmp(what, "type:", 5) == 0 ? what + 5 : what;
	struct query of_type = { .kind = QUERY_COMPARE, .field = QUERY_TYPE, .text = (char *)name };
	_cleanup_(query_freep) struct query *q = NULL;
	int r;

	if (*name && is_type(s, name))
		return query_objects(&of_type, s, ret_set, e);
	if (is_text(what)) {
		of_type.kind = QUERY_HAS_TEXT;
		of_type.text = (char *)what + strlen("text:");
		return query_objects(&of_type, s, ret_set, e);
	}
	r = query_parse(what, &q, e);
	return r < 0 ? r : query_objects(q, s, ret_set, e);
}

int select_objects(const struct snapshot *s, const char *what, uint32_t **ret_objects,
		   uint64_t *ret_n, struct err *e)
{
	_cleanup_(freep) uint8_t *set = NULL;
	_cleanup_(freep) uint32_t *objects = calloc(s->blocks.n + 1, sizeof(*objects));
	int r = objects ? find(s, what, &set, e) : err_set(e, -ENOMEM, "out of memory");

	if (r < 0)
		return r;
	*ret_n = 0;
	for (uint32_t i = 0; i < s->blocks.n; i++)
		if (set[i])
			objects[(*ret_n)++] = i;
	*ret_objects = TAKE_PTR(objects);
	return 0;
}
