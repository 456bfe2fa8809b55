/*
 * Objects of C++ classes that have virtual functions: the first word points to a vtable, the word before that to the class's
 * type_info, and two words before is the offset to the top of the object, which is 0 where its block begins (Itanium C++ ABI,
 * 2.5.2). A type_info is itself an object of one of three classes of libstdc++ or libc++abi (2.9.5), whose type_info has a
 * known name: that distinguishes a vtable from words that look like one. Without RTTI there are no names.
 *
 * An array of them with destructors has their number before its first (2.7): "Session[]".
 */
#include "heap/snapshot/type_way.h"

#include "base/hash.h"
#include "elf/demangle_cell.h"

#include <stdio.h>

/* In a block of GiB there are 10^8 sizes that an object of two could have, and each is looked at. */
enum { ARRAY_SIZES_MAX = 1 << 12 };

/* A vtable that was looked at. */
struct seen {
	uint64_t at;
	uint32_t type, array; /* of one, and of several; 0: it is none, or none was seen */
	UT_hash_handle hh;
};

struct cxx {
	struct seen *table;
	struct demangler names;
};

/* The name in a type_info, mangled. */
static bool name_of(struct type_finder *f, uint64_t info, char name[TYPE_TEXT_MAX])
{
	uint64_t text;

	return type_word(f, info + 8, &text) && type_text(f, text, name);
}

/* Is the class of this type_info one of those that type_infos of classes have? */
static bool is_info(struct type_finder *f, uint64_t info)
{
	static const char *const classes[] = { "N10__cxxabiv117__class_type_infoE",
					       "N10__cxxabiv120__si_class_type_infoE",
					       "N10__cxxabiv121__vmi_class_type_infoE" };
	char name[TYPE_TEXT_MAX];
	uint64_t vtable, of;

	if (!type_word(f, info, &vtable) || !type_word(f, vtable - 8, &of) || !name_of(f, of, name))
		return false;
	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
		if (strcmp(name, classes[i]) == 0)
			return true;
	return false;
}

static uint32_t find_type(struct type_finder *f, struct cxx *cxx, uint64_t vtable, bool array)
{
	char name[TYPE_TEXT_MAX], mangled[TYPE_TEXT_MAX + 4], out[DEMANGLE_OUT_MAX];
	uint64_t info, top;
	const unsigned ended = cxx->names.ended;
	const char *plain;
	bool shown, asked;

	if (!type_word(f, vtable - 8, &info) || !type_word(f, vtable - 16, &top) || top ||
	    !is_info(f, info) || !name_of(f, info, name))
		return 0;
	/* A type is no symbol: "_ZTS" makes one of it, whose name begins "typeinfo name for ". */
	snprintf(mangled, sizeof(mangled), "_ZTS%s", name[0] == '*' ? name + 1 : name);
	shown = demangler_ask(&cxx->names, mangled, strlen(mangled), out) &&
		strncmp(out, "typeinfo name for ", 18) == 0;
	asked = cxx->names.ended == ended && demangler_answers(&cxx->names);
	if (!shown && asked)
		return 0;
	/* Where nobody answered it is named as it is. */
	if (!shown)
		snprintf(out, sizeof(out), "typeinfo name for %s",
			 name[0] == '*' ? name + 1 : name);
	plain = out + 18;
	if (array && strlen(plain) + 2 < sizeof(out) - 18)
		strcat(out, "[]");
	return type_add(f, TYPE_RTTI, plain, vtable);
}

/* No image's: of a heap of small objects nearly each has another address there, and all of them would be remembered. */
static bool is_heap(const struct type_finder *f, uint64_t at)
{
	const struct heap_map *m = heap_map_of(copy_memory(f->copy), at);

	return m &&
	       (m->kind == HEAP_MAP_ANON || m->kind == HEAP_MAP_BRK || m->kind == HEAP_MAP_STACK);
}

/* NULL: out of memory, or it cannot be one. */
static struct seen *see(struct type_finder *f, struct cxx *cxx, uint64_t at)
{
	struct seen *seen;

	HASH_FIND(hh, cxx->table, &at, sizeof(at), seen);
	if (seen || is_heap(f, at))
		return seen;
	seen = hash_new(cxx->table, at, &at);
	if (seen)
		seen->type = find_type(f, cxx, at, false);
	else
		f->oom = true;
	return seen;
}

/* Do as many objects of one class as the first word says lie behind it, the last at the same distance as the second? */
static bool is_array(struct type_finder *f, uint32_t node, uint64_t n, uint64_t vtable)
{
	const struct heap_block *b = &f->blocks->rows[node];
	uint64_t words = n ? (b->words - 1ULL) / n : 0, word;

	/* What the allocator has added at the end is a quarter at most. */
	for (uint32_t i = 0;
	     i < ARRAY_SIZES_MAX && words && n * words + 1 + 2 >= b->words - b->words / 4;
	     i++, words--) {
		if (n == 1 ||
		    (type_word(f, b->addr + 8 + 8 * words, &word) && word == vtable &&
		     type_word(f, b->addr + 8 + 8 * words * (n - 1), &word) && word == vtable))
			return true;
	}
	return false;
}

static void look(struct type_finder *f, void *ctx, uint32_t node, const uint64_t words[TYPE_WORDS])
{
	struct seen *seen;

	if (type_is_address(words[0])) {
		seen = see(f, ctx, words[0]);
		if (seen && seen->type) {
			type_set(f, node, seen->type, 0);
			return;
		}
	}
	if (f->oom || !words[0] || words[0] >= f->blocks->rows[node].words ||
	    !type_is_address(words[1]))
		return;
	seen = see(f, ctx, words[1]);
	if (!seen || !seen->type || !is_array(f, node, words[0], words[1]))
		return;
	if (!seen->array)
		seen->array = find_type(f, ctx, words[1], true);
	type_set(f, node, seen->array, 0);
}

void types_of_cxx(struct type_finder *f)
{
	struct cxx cxx = { NULL, DEMANGLER };

	type_each_unknown(f, look, &cxx);
	demangler_end(&cxx.names);
	hash_free(cxx.table);
}
