/* Types of blocks by who allocated them: what debug info says that a call's result points to, where the size agrees. */
#include "heap/snapshot/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { GUESS_LEAST = 16 }; /* bytes of a type of which a multiple speaks for a guess */

/* Text alone may be overruled: a struct that begins with a name looks like one. */
static bool is_open(const struct types *t, uint32_t node)
{
	enum type_by by = t->type[t->of[node]].by;

	return by == TYPE_UNKNOWN || by == TYPE_TEXT;
}

static bool fits(uint64_t each, uint64_t bytes, bool is_guess)
{
	if (!each || bytes < each)
		return false;
	return !is_guess || bytes == each || (bytes % each == 0 && each >= GUESS_LEAST);
}

/* The type of that name, known that way; a new one where there is none. 0: out of memory. */
static uint32_t intern(struct types *t, const struct allocated_type *type, const char *suffix)
{
	enum type_by by = type->is_guess ? TYPE_DEBUG_SIZE : TYPE_DEBUG;
	char name[600];

	snprintf(name, sizeof(name), "%.590s%s", type->name, suffix);
	for (uint32_t i = t->n; i-- > 1;)
		if (t->type[i].by == by && strcmp(t->type[i].name, name) == 0)
			return i;
	return types_add(t, by, name, 0);
}

int types_set_allocated(struct snapshot *s, uint32_t node, struct allocated_type *type,
			uint64_t bytes)
{
	bool is_array;
	uint32_t *number;

	if (!is_open(&s->types, node) || !fits(type->each, bytes, type->is_guess))
		return 0;
	/* Of what is no multiple, one with something behind it: a flexible array member. */
	is_array = bytes > type->each && bytes % type->each == 0;
	number = is_array ? &type->several : &type->one;
	if (!*number)
		*number = intern(&s->types, type, is_array ? "[]" : "");
	if (!*number)
		return -ENOMEM;
	s->types.of[node] = *number;
	s->types.object[node] = 0;
	return 0;
}
