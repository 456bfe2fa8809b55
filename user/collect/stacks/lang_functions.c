#include "collect/stacks/lang_functions.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { KNOWN_MAX = 32768, UNNAMED_MAX = 8192 };

/* Without holes: they are compared as bytes. */
struct function_key {
	struct proc_id id;
	uint64_t function;
};

struct lang_function {
	struct function_key key;
	struct line line;
	UT_hash_handle hh;
};

struct unnamed_key {
	struct function_key of;
	uint64_t number;
};

struct lang_unnamed {
	struct unnamed_key key;
	uint64_t words[2];
	uint32_t tries;
	location_id location;
	UT_hash_handle hh;
};

static struct function_key key_of(const struct proc_id *id, uint64_t function)
{
	struct function_key key;

	memset(&key, 0, sizeof(key));
	key.id = *id;
	key.function = function;
	return key;
}

static struct lang_function *known(const struct lang_functions *f, const struct function_key *key)
{
	struct lang_function *found;

	HASH_FIND(hh, f->known, key, sizeof(*key), found);
	return found;
}

static void name(struct dict *d, location_id location, const struct line *of, uint32_t number)
{
	struct line line = *of;

	line.line = number;
	dict_location_name(d, location, &line, 1);
}

uint32_t lang_functions_learn(struct lang_functions *f, struct dict *d, const struct proc_id *id,
			      uint64_t key, const struct line *line)
{
	struct function_key of = key_of(id, key);
	struct lang_unnamed *u, *next;
	struct lang_function *new;
	uint32_t n = 0;

	if (known(f, &of))
		return 0;
	if (HASH_COUNT(f->known) >= KNOWN_MAX)
		hash_free(f->known);
	new = hash_new(f->known, key, &of);
	if (new)
		new->line = *line;
	HASH_ITER (hh, f->unnamed, u, next) {
		if (memcmp(&u->key.of, &of, sizeof(of)) != 0)
			continue;
		name(d, u->location, line, (uint32_t)u->key.number);
		HASH_DEL(f->unnamed, u);
		free(u);
		n++;
	}
	return n;
}

/* A location of its own, which is named as `gone` is for the time being. */
static location_id unnamed(struct dict *d, const struct unnamed_key *key, module_id module,
			   location_id gone)
{
	const struct location *named = dict_location_get(d, gone);
	struct line apart[3];
	location_id location;

	/* By these it is found, and by nothing else. */
	memset(apart, 0, sizeof(apart));
	_Static_assert(sizeof(*key) <= sizeof(apart), "a key fits");
	memcpy(apart, key, sizeof(*key));
	location = dict_location_lines(d, module, 0, apart, 3);
	dict_location_name(d, location, named->lines, named->n_lines);
	return location;
}

bool lang_functions_find(struct lang_functions *f, struct dict *d, const struct lang_freed *frame,
			 module_id module, location_id gone, location_id *ret_location)
{
	struct unnamed_key of = { key_of(&frame->id, frame->key), frame->number };
	struct lang_function *function = known(f, &of.of);
	struct lang_unnamed *u;

	if (function) {
		struct line line = function->line;

		line.line = frame->number;
		*ret_location = dict_location_lines(d, module, 0, &line, 1);
		return true;
	}
	HASH_FIND(hh, f->unnamed, &of, sizeof(of), u);
	if (!u && HASH_COUNT(f->unnamed) < UNNAMED_MAX) {
		u = hash_new(f->unnamed, key, &of);
		if (u) {
			u->location = unnamed(d, &of, module, gone);
			memcpy(u->words, frame->words, sizeof(u->words));
		}
	}
	*ret_location = u ? u->location : gone;
	return false;
}

uint32_t lang_functions_again(struct lang_functions *f, struct lang_freed *out, uint32_t cap)
{
	struct lang_unnamed *u, *next;
	uint32_t n = 0;

	HASH_ITER (hh, f->unnamed, u, next) {
		if (n == cap)
			break;
		if (u->tries++ >= LANG_FREED_TRIES)
			continue;
		out[n++] = (struct lang_freed){ .id = u->key.of.id,
						.key = u->key.of.function,
						.words = { u->words[0], u->words[1] },
						.number = (uint32_t)u->key.number };
	}
	return n;
}

void lang_functions_free(struct lang_functions *f)
{
	hash_free(f->known);
	hash_free(f->unnamed);
}
