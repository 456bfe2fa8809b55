#include "heap/snapshot/type_way.h"

#include "base/large.h"
#include "heap/snapshot/snapshot.h"
#include "proc/peek.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The first that names a block is believed. */
static const struct {
	type_way find;
	bool linked; /* needs to know who refers to whom */
} ways[] = {
	{ types_of_python, false },     { types_of_cxx, false },    { types_of_rust, true },
	{ types_of_collections, true }, { types_of_members, true }, { types_of_text, true },
};

const char *type_by_name(enum type_by by)
{
	static const char *const words[TYPE_WAYS] = {
		[TYPE_UNKNOWN] = "",
		[TYPE_CPYTHON] = "class",
		[TYPE_RTTI] = "RTTI",
		[TYPE_CPYTHON_TABLE] = "class",
		[TYPE_GHC] = "GHC",
		[TYPE_COUNTED] = "counted",
		[TYPE_SHAPE] = "shape",
		[TYPE_TEXT] = "content",
		[TYPE_RUST] = "vtable",
		[TYPE_DEBUG] = "debug info",
		[TYPE_DEBUG_SIZE] = "debug info, by size",
		[TYPE_MEMBER] = "member",
	};

	return words[by];
}

/* --- memory --- */

bool type_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct type_finder *f = ctx;
	const struct heap_memory *mem = copy_memory(f->copy);

	return mem->read(mem->ctx, addr, buf, len) || peek(f->pid, addr, buf, len);
}

bool type_word(struct type_finder *f, uint64_t addr, uint64_t *ret)
{
	return addr % 8 == 0 && type_read(f, addr, ret, 8);
}

bool type_text(struct type_finder *f, uint64_t addr, char text[TYPE_TEXT_MAX])
{
	size_t n = 0;

	/* No further than to the end of a page at a time: what is behind may not be there. */
	while (n < TYPE_TEXT_MAX) {
		size_t part = HEAP_PAGE - (addr + n) % HEAP_PAGE;

		if (part > TYPE_TEXT_MAX - n)
			part = TYPE_TEXT_MAX - n;
		if (!type_read(f, addr + n, text + n, part))
			return false;
		for (size_t end = n + part; n < end; n++) {
			if (!text[n])
				return n > 0;
			if ((uint8_t)text[n] < 0x20 || text[n] == 0x7f)
				return false;
		}
	}
	return false;
}

bool type_is_text(const uint8_t *bytes, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if ((bytes[i] < 0x20 && bytes[i] != '\t' && bytes[i] != '\n' && bytes[i] != '\r') ||
		    bytes[i] == 0x7f)
			return false;
	return true;
}

/* --- the table --- */

int types_init(struct types *t)
{
	*t = (struct types){ .room = 256 };
	t->type = calloc(t->room, sizeof(*t->type));
	if (!t->type)
		return -ENOMEM;
	types_add(t, TYPE_UNKNOWN, "(unknown)", 0);
	return t->n ? 0 : -ENOMEM;
}

uint32_t types_add(struct types *t, enum type_by by, const char *name, uint64_t at)
{
	char *copy = strdup(name);

	if (t->n == t->room) {
		uint32_t room = 2 * t->room;
		struct type *more = reallocarray(t->type, room, sizeof(*more));

		if (more) {
			t->type = more;
			t->room = room;
		}
	}
	if (!copy || t->n == t->room) {
		free(copy);
		return 0;
	}
	t->type[t->n] = (struct type){ by, copy, at, 0, 0 };
	return t->n++;
}

uint32_t type_add(struct type_finder *f, enum type_by by, const char *name, uint64_t at)
{
	uint32_t type = types_add(f->t, by, name, at);

	f->oom |= !type;
	return type;
}

void type_set(struct type_finder *f, uint32_t node, uint32_t type, uint8_t object)
{
	f->t->of[node] = type;
	f->t->object[node] = object;
}

/* --- blocks --- */

void type_each_unknown(struct type_finder *f,
		       void (*look)(struct type_finder *f, void *ctx, uint32_t node,
				    const uint64_t words[TYPE_WORDS]),
		       void *ctx)
{
	for (uint32_t i = 0; i < f->blocks->n && !f->oom; i++) {
		uint64_t words[TYPE_WORDS] = { 0 }, n, bytes;
		const uint8_t *at;

		if (f->t->of[i])
			continue;
		at = copy_bytes(f->copy, f->blocks->rows[i].addr, &n);
		if (!at)
			continue;
		bytes = 8 * (uint64_t)f->blocks->rows[i].words;
		n = n < bytes ? n : bytes;
		memcpy(words, at, n < sizeof(words) ? n : sizeof(words));
		look(f, ctx, i, words);
	}
}

void types_count(struct types *t, const struct heap_blocks *blocks)
{
	for (uint32_t i = 0; i < t->n; i++)
		t->type[i].blocks = t->type[i].bytes = 0;
	for (uint32_t i = 0; i < blocks->n; i++) {
		t->type[t->of[i]].blocks++;
		t->type[t->of[i]].bytes += 8 * (uint64_t)blocks->rows[i].words;
	}
}

static int find(struct type_finder *f)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways) && !f->oom; i++)
		if (ways[i].linked == !!f->s)
			ways[i].find(f);
	if (f->oom)
		return -ENOMEM;
	types_count(f->t, f->blocks);
	return 0;
}

int types_find(struct types *t, struct copy *copy, const struct heap_blocks *blocks,
	       const uint32_t *known, pid_t pid)
{
	struct type_finder f = { copy, blocks, pid, t, NULL, false };

	t->of = large_alloc(blocks->n + 1, sizeof(*t->of));
	t->object = large_alloc(blocks->n + 1, 1);
	if (!t->of || !t->object)
		return -ENOMEM;
	if (known)
		memcpy(t->of, known, blocks->n * sizeof(*known));
	return find(&f);
}

int types_find_linked(struct snapshot *s, pid_t pid)
{
	struct type_finder f = { s->copy, &s->blocks, pid, &s->types, s, false };

	if (!s->collections.of)
		s->collections.of = large_alloc(s->blocks.n + 1, sizeof(*s->collections.of));
	return s->collections.of ? find(&f) : -ENOMEM;
}

void types_fini(struct types *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free((char *)t->type[i].name);
	free(t->type);
	large_free(t->of);
	large_free(t->object);
	*t = (struct types){ 0 };
}
