#include "heap/python/python_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* PyTypeObject (Include/cpython/object.h), the same in all versions. */
enum {
	TP_BASICSIZE = 32,
	TP_ITEMSIZE = 40,
	TP_WEAKLISTOFFSET = 208,
	TP_BASE = 256,
	TP_DICTOFFSET = 288,
	BASES_MAX = 64,
	OB_SIZE = 16, /* of a dict: ma_used, of a str: length */
	SET_USED = 24,
	DICT_SIZE = 48, /* PyDictObject, PyListObject */
	LIST_SIZE = 40,
	SIZE_MAX_BYTES = 1 << 20,
};

#define INLINE_VALUES (1ULL << 2)
#define MANAGED_DICT  (1ULL << 4)
#define HEAP_TYPE     (1ULL << 9)
#define LONG          (1ULL << 24)
#define LIST          (1ULL << 25)
#define TUPLE         (1ULL << 26)
#define BYTES         (1ULL << 27)
#define UNICODE       (1ULL << 28)
#define DICT          (1ULL << 29)
#define TYPE          (1ULL << 31)

/*
 * Compiled from the headers of 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0; 3.8's heap types have the same size as 3.9's and
 * their keys 8 bytes later. 3.14 is after its source, and untested.
 */
static const struct python_version versions[] = {
	{ .type_size = 880,
	  .minor = 9,
	  .shared_keys = 864,
	  .generator_borrowed = 88,
	  .frame_locals = 360,
	  .code_file = 104,
	  .code_name = 112,
	  .code_line = 40,
	  .interp_threads = 8,
	  .thread_frame = 24 },
	{ .type_size = 888,
	  .minor = 10,
	  .shared_keys = 872,
	  .generator_borrowed = 80,
	  .frame_locals = 352,
	  .code_file = 104,
	  .code_name = 112,
	  .code_line = 40,
	  .interp_threads = 8,
	  .thread_frame = 24 },
	{ .type_size = 904,
	  .minor = 11,
	  .shared_keys = 872,
	  .spec_cache = 896,
	  .frame_inline = 48,
	  .generator_frame = 80,
	  .generator_borrowed = 56,
	  .generator_state = 75,
	  .iframe_locals = 72,
	  .iframe_top = 64,
	  .iframe_code = 32,
	  .code_locals = 76,
	  .code_stack = 68,
	  .code_names = 96,
	  .code_file = 112,
	  .code_name = 128,
	  .code_line = 72,
	  .interp_threads = 16,
	  .thread_frame = 56,
	  .cframe_frame = 8 },
	{ .type_size = 920,
	  .minor = 12,
	  .shared_keys = 880,
	  .spec_cache = 904,
	  .frame_inline = 48,
	  .generator_frame = 72,
	  .generator_state = 67,
	  .generator_borrowed = 48,
	  .iframe_locals = 72,
	  .iframe_top = 64,
	  .iframe_function = 16,
	  .code_locals = 72,
	  .code_stack = 64,
	  .code_names = 96,
	  .code_file = 112,
	  .code_name = 128,
	  .code_line = 68,
	  .interp_threads = 72,
	  .thread_frame = 56 },
	{ .type_size = 928,
	  .minor = 13,
	  .shared_keys = 880,
	  .spec_cache = 904,
	  .frame_inline = 64,
	  .generator_frame = 72,
	  .generator_state = 67,
	  .generator_borrowed = 48,
	  .iframe_locals = 72,
	  .iframe_top = 64,
	  .iframe_function = 16,
	  .code_locals = 72,
	  .code_stack = 64,
	  .code_names = 96,
	  .code_file = 112,
	  .code_name = 128,
	  .code_line = 68,
	  .interp_threads = 7344,
	  .thread_frame = 72 },
	{ .type_size = 936,
	  .minor = 14,
	  .shared_keys = 880,
	  .spec_cache = 904,
	  .frame_inline = 72,
	  .generator_frame = 72,
	  .generator_state = 67,
	  .generator_borrowed = 48,
	  .iframe_locals = 80,
	  .iframe_top = 64,
	  .iframe_function = 16,
	  .code_locals = 72,
	  .code_stack = 64,
	  .code_names = 96,
	  .code_file = 112,
	  .code_name = 128,
	  .code_line = 68 },
};

/* Classes of C by their names; those that flags tell are not here. `heap`: from some version on it is a heap type. */
static const struct {
	const char *name;
	enum python_shape shape;
	bool heap;
} known[] = {
	{ "float", PYTHON_ATOM, false },
	{ "complex", PYTHON_ATOM, false },
	{ "set", PYTHON_SET, false },
	{ "frozenset", PYTHON_SET, false },
	{ "collections.deque", PYTHON_DEQUE, true },
	{ "weakref", PYTHON_WEAKREF, false },
	{ "weakref.ReferenceType", PYTHON_WEAKREF, false },
	{ "weakproxy", PYTHON_WEAKREF, false },
	{ "weakref.ProxyType", PYTHON_WEAKREF, false },
	{ "weakcallableproxy", PYTHON_WEAKREF, false },
	{ "weakref.CallableProxyType", PYTHON_WEAKREF, false },
	{ "memoryview", PYTHON_MEMORYVIEW, false },
	{ "code", PYTHON_CODE, false },
	{ "frame", PYTHON_FRAME, false },
	{ "generator", PYTHON_GENERATOR, false },
	{ "coroutine", PYTHON_GENERATOR, false },
	{ "async_generator", PYTHON_GENERATOR, false },
};

/* --- memory --- */

uint64_t python_word(const struct python_heap *h, uint64_t addr)
{
	const uint8_t *bytes;
	uint64_t word, n;

	if (addr % 8)
		return 0;
	bytes = copy_bytes(h->copy, addr, &n);
	if (!bytes || n < 8)
		return 0;
	memcpy(&word, bytes, 8);
	return word;
}

uint32_t python_half(const struct python_heap *h, uint64_t addr)
{
	return (uint32_t)(python_word(h, addr & ~7ULL) >> 8 * (addr % 8));
}

uint64_t python_object(const struct snapshot *s, uint32_t node)
{
	return s->blocks.rows[node].addr + s->types.object[node];
}

const struct python_class *python_class_of(const struct python_heap *h, const struct snapshot *s,
					   uint32_t node)
{
	uint32_t type = s->types.of[node];

	return type < h->n_classes && h->classes[type].shape != PYTHON_NOT ? &h->classes[type]
									   : NULL;
}

bool python_keys_of(const struct python_heap *h, uint64_t keys, struct python_keys *ret_keys)
{
	const struct heap_memory *mem = copy_memory(h->copy);
	struct python_memory python = { mem->read, mem->ctx };

	return python_keys(&python, keys, ret_keys);
}

/* --- classes --- */

static enum python_shape shape_by_flags(uint64_t flags)
{
	if (flags & TYPE)
		return PYTHON_TYPE;
	if (flags & DICT)
		return PYTHON_DICT;
	if (flags & LIST)
		return PYTHON_LIST;
	if (flags & UNICODE)
		return PYTHON_STR;
	if (flags & (LONG | BYTES) && !(flags & HEAP_TYPE))
		return PYTHON_ATOM;
	return PYTHON_PLAIN;
}

static uint64_t flags_of(const struct python_heap *h, uint64_t type)
{
	return python_word(h, type + PYTHON_TP_FLAGS);
}

/* The name of a class of C, which may be in read-only memory of an image: only types' own rows have it. */
static enum python_shape shape_by_name(const struct python_heap *h, const struct snapshot *s,
				       uint64_t at)
{
	for (uint32_t i = 1; i < s->types.n; i++) {
		const struct type *t = &s->types.type[i];

		if (t->by != TYPE_CPYTHON || t->at != at)
			continue;
		for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
			if (strcmp(t->name, known[k].name) == 0 &&
			    (known[k].heap || !(flags_of(h, at) & HEAP_TYPE)))
				return known[k].shape;
		return PYTHON_PLAIN;
	}
	return PYTHON_PLAIN;
}

static uint32_t size_at(const struct python_heap *h, uint64_t addr)
{
	uint64_t size = python_word(h, addr);

	return size < SIZE_MAX_BYTES ? (uint32_t)size : 0;
}

static uint64_t shared_keys(const struct python_heap *h, uint64_t type)
{
	struct python_keys keys;
	uint64_t at = 0;

	if (!(flags_of(h, type) & HEAP_TYPE))
		return 0;
	/* 3.8 has them where 3.9 has the module. */
	for (uint32_t i = 0; i < (h->version->minor == 9 ? 2 : 1); i++) {
		at = python_word(h, type + h->version->shared_keys + 8 * i);
		if (at && python_keys_of(h, at, &keys) && !keys.value)
			return at;
		/* Up to 3.10 they look as others do. */
		if (at && h->version->minor <= 10 && python_keys_of(h, at, &keys))
			return at;
	}
	return 0;
}

static void read_class(struct python_heap *h, const struct snapshot *s, uint64_t at,
		       struct python_class *c)
{
	uint64_t flags = flags_of(h, at), base = at;

	*c = (struct python_class){ .shape = shape_by_flags(flags) };
	c->size = c->own = size_at(h, at + TP_BASICSIZE);
	c->item_size = size_at(h, at + TP_ITEMSIZE);
	c->weak_list = size_at(h, at + TP_WEAKLISTOFFSET);
	c->dict = (int64_t)python_word(h, at + TP_DICTOFFSET);
	c->managed_dict = h->version->minor >= 11 && flags & MANAGED_DICT;
	c->inline_values = h->version->minor >= 13 && flags & INLINE_VALUES;
	c->shared_keys = shared_keys(h, at);
	if (flags & (LIST | TUPLE | BYTES | UNICODE | DICT))
		c->length = OB_SIZE;
	if (c->shape == PYTHON_DICT || c->shape == PYTHON_LIST)
		c->own = c->shape == PYTHON_DICT ? DICT_SIZE : LIST_SIZE;
	if (c->shape == PYTHON_STR)
		c->own = h->version->minor < 12 ? PYTHON_STR_SIZE_8 : PYTHON_STR_SIZE_12;
	for (int i = 0; i < BASES_MAX && base && c->shape == PYTHON_PLAIN; i++) {
		c->shape = shape_by_name(h, s, base);
		if (c->shape != PYTHON_PLAIN)
			c->own = size_at(h, base + TP_BASICSIZE);
		if (c->shape == PYTHON_SET || c->shape == PYTHON_DEQUE)
			c->length = c->shape == PYTHON_SET ? SET_USED : OB_SIZE;
		base = python_word(h, base + TP_BASE);
	}
}

static const struct python_version *find_version(const struct python_heap *h,
						 const struct snapshot *s)
{
	for (uint32_t i = 1; i < s->types.n; i++) {
		const struct type *t = &s->types.type[i];

		if (t->by != TYPE_CPYTHON || strcmp(t->name, "type") != 0 ||
		    python_word(h, t->at + PYTHON_OB_TYPE) != t->at)
			continue;
		for (size_t k = 0; k < sizeof(versions) / sizeof(*versions); k++)
			if (python_word(h, t->at + TP_BASICSIZE) == versions[k].type_size)
				return &versions[k];
	}
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int python_classes_find(struct python_heap *h, const struct snapshot *s)
{
	h->version = find_version(h, s);
	if (!h->version)
		return -ENOENT;
	h->classes = calloc(s->types.n, sizeof(*h->classes));
	h->type_at = calloc(s->types.n, sizeof(*h->type_at));
	if (!h->classes || !h->type_at)
		return -ENOMEM;
	h->n_classes = s->types.n;
	for (uint32_t i = 0; i < s->types.n; i++) {
		if (s->types.type[i].by == TYPE_CPYTHON) {
			read_class(h, s, s->types.type[i].at, &h->classes[i]);
			h->type_at[h->n_types++] = s->types.type[i].at;
		} else {
			h->classes[i].shape = PYTHON_NOT;
		}
	}
	qsort(h->type_at, h->n_types, sizeof(*h->type_at), by_address);
	return 0;
}
