/*
 * Objects of CPython: the block begins with one (behind what its garbage collector keeps there): the word that should be its
 * type is one, whose own type is a type in turn, and the type's flags say that its objects lie so in a block.
 */
#include "heap/snapshot/type_way.h"

#include "base/hash.h"
#include "heap/snapshot/python.h"

#include <stdio.h>

enum { STEPS_MAX = 4, SEEN_MAX = 1 << 16 };

#define PY_IS_TYPE  (1ULL << 31) /* Py_TPFLAGS_TYPE_SUBCLASS: its objects are types */
#define PY_HAVE_GC  (1ULL << 14)
#define PY_HEAPTYPE (1ULL << 9)
#define PY_PREHEADER                                                                               \
	(3ULL << 3) /* Py_TPFLAGS_MANAGED_WEAKREF, …_DICT: two words before the collector's */
#define PY_REFCOUNT_MAX (1ULL << 40)
#define PY_REFCOUNT_FEW (1ULL << 16)

/* An address that was looked at as a type. */
struct seen {
	uint64_t at;
	uint32_t type; /* 0: it is none */
	uint64_t flags;
	UT_hash_handle hh;
};

/* Is it a type? Its type is one, too, and so on up to one that is its own. */
static bool is_type(struct type_finder *f, uint64_t at)
{
	for (int i = 0; i < STEPS_MAX; i++) {
		uint64_t of, flags;

		if (!type_word(f, at + PYTHON_OB_TYPE, &of) ||
		    !type_word(f, of + PYTHON_TP_FLAGS, &flags) || !(flags & PY_IS_TYPE))
			return false;
		if (of == at)
			return true;
		at = of;
	}
	return false;
}

/* A class made by Python code has its module in its dict. */
static bool put_module(struct type_finder *f, uint64_t at, const char *name,
		       char full[TYPE_TEXT_MAX + PYTHON_TEXT_MAX])
{
	struct python_memory mem = { type_read, f };
	char module[PYTHON_TEXT_MAX];
	uint64_t dict;

	if (!type_word(f, at + PYTHON_TP_DICT, &dict) || !dict ||
	    !python_str(&mem, python_dict_get(&mem, dict, "__module__"), module) ||
	    strcmp(module, "builtins") == 0)
		return false;
	snprintf(full, TYPE_TEXT_MAX + PYTHON_TEXT_MAX, "%s.%s", module, name);
	return true;
}

static uint32_t find_type(struct type_finder *f, uint64_t at, uint64_t *ret_flags)
{
	char name[TYPE_TEXT_MAX], full[TYPE_TEXT_MAX + PYTHON_TEXT_MAX];
	uint64_t text;

	if (!is_type(f, at) || !type_word(f, at + PYTHON_TP_FLAGS, ret_flags) ||
	    !type_word(f, at + PYTHON_TP_NAME, &text) || !type_text(f, text, name))
		return 0;
	if (*ret_flags & PY_HEAPTYPE && !strchr(name, '.') && put_module(f, at, name, full))
		return type_add(f, TYPE_CPYTHON, full, at);
	return type_add(f, TYPE_CPYTHON, name, at);
}

static const struct seen *see(struct type_finder *f, struct seen **table, uint64_t at)
{
	struct seen *seen;

	HASH_FIND(hh, *table, &at, sizeof(at), seen);
	if (seen)
		return seen;
	/* Types are not so many. What else there is is looked at again, and not remembered. */
	if (HASH_COUNT(*table) >= SEEN_MAX && !is_type(f, at))
		return NULL;
	seen = hash_new(*table, at, &at);
	if (seen)
		seen->type = find_type(f, at, &seen->flags);
	else
		f->oom = true;
	return seen;
}

/* How many words are before an object of this type in its block. */
static uint32_t words_before(uint64_t flags)
{
	return flags & PY_HAVE_GC ? flags & PY_PREHEADER ? 4 : 2 : 0;
}

/* Where the heap has low addresses, as that of a program at a fixed address, such a word may be a pointer. */
static bool is_refcount(const struct type_finder *f, uint64_t word)
{
	return word && word < PY_REFCOUNT_MAX &&
	       (word < PY_REFCOUNT_FEW || word % 8 || !heap_map_of(copy_memory(f->copy), word));
}

static void look(struct type_finder *f, void *ctx, uint32_t node, const uint64_t words[TYPE_WORDS])
{
	for (uint32_t before = 0; before <= 4; before += 2) {
		const struct seen *seen;

		if (!type_is_address(words[before + 1]) || !is_refcount(f, words[before]) ||
		    before + 2 > f->blocks->rows[node].words)
			continue;
		seen = see(f, ctx, words[before + 1]);
		if (seen && seen->type && words_before(seen->flags) == before) {
			type_set(f, node, seen->type, (uint8_t)(8 * before));
			return;
		}
	}
}

void types_of_python(struct type_finder *f)
{
	struct seen *table = NULL;

	type_each_unknown(f, look, &table);
	hash_free(table);
}
