#include "heap/python/python_heap.h"

#include <string.h>

/* Offsets in objects, the same in 3.8 to 3.14 where nothing else is said. */
enum {
	HEAD = 8, /* its class, which is a reference, too */
	OB_SIZE = 16,
	STR_POINTERS = 40, /* what a str has of other forms of its text */
	LIST_ITEMS = 24,
	DICT_VALUES = 40,
	SET_TABLE = 40,
	SET_OWN_TABLE = 64,
	SET_OWN_END = 192,
	DEQUE_LEFT = 24,
	DEQUE_RIGHT = 32,
	DEQUE_NEXT = 520, /* of a block: behind its 64 items */
	WEAKREF_CALLBACK = 24,
	MEMORYVIEW_BUFFER = 24,
	GC_HEAD = 16,
	FRAME_BACK = 24, /* up to 3.10: f_back */
	FRAME_LOCALS_END =
		64, /* up to 3.10: f_valuestack; f_stacktop (3.9) or f_stackdepth (3.10) */
	FRAME_STACK_9 = 72,
	FRAME_STACK_10 = 80,
	FRAME_GENERATOR_9 = 96,
	FRAME_GENERATOR_10 = 88,
	FRAME_INNER = 24, /* from 3.11 on: f_frame */
	MANAGED_WEAK_LIST = -32,
	MANAGED_VALUES_11 = -32,
	MANAGED_DICT = -24,
};

#define STR_COMPACT (1u << 5)
#define STR_ASCII   (1u << 6)

struct emit {
	const struct python_heap *h;
	uint64_t block, end;
	exact_edge_fn fn;
	void *ctx;
};

static void put(const struct emit *e, uint64_t addr, uint64_t to)
{
	if (to)
		e->fn(e->ctx, to, (uint32_t)(addr - e->block));
}

/* The word at `addr`, as a reference. */
static void put_at(const struct emit *e, uint64_t addr)
{
	if (addr >= e->block && addr + 8 <= e->end)
		put(e, addr, python_word(e->h, addr));
}

/* Each word of [from, end) at a distance of `step` bytes. */
static void range(const struct emit *e, uint64_t from, uint64_t end, uint64_t step)
{
	uint64_t n;

	if (end > e->end)
		end = e->end;
	for (uint64_t addr = from; addr + 8 <= end;) {
		const uint8_t *bytes = copy_bytes(e->h->copy, addr, &n);
		uint64_t steps;

		if (n > end - addr)
			n = end - addr;
		steps = n / step + (n % step >= 8);
		if (!steps)
			return;
		/* What was never touched has no references. */
		for (uint64_t i = 0; bytes && i < steps; i++) {
			uint64_t word;

			memcpy(&word, bytes + i * step, 8);
			put(e, addr + i * step, word);
		}
		addr += steps * step;
	}
}

/* The words of an object from offset `from` on, but for the list of its weak references. */
static void plain(const struct emit *e, const struct python_class *c, uint64_t object,
		  uint64_t from, uint64_t size)
{
	uint64_t weak = c->weak_list;

	if (weak >= from && weak < size) {
		range(e, object + from, object + weak, 8);
		from = weak + 8;
	}
	range(e, object + from, object + size, 8);
}

static uint64_t with_items(const struct emit *e, const struct python_class *c, uint64_t object)
{
	int64_t n = c->item_size ? (int64_t)python_word(e->h, object + OB_SIZE) : 0;

	n = n < 0 ? -n : n;
	if (n > UINT32_MAX)
		return e->end - object;
	return (c->size + (uint64_t)n * c->item_size + 7) & ~7ULL;
}

/* --- frames --- */

uint64_t python_frame_end(const struct python_heap *h, uint64_t frame)
{
	const struct python_version *v = h->version;
	uint64_t locals = frame + v->iframe_locals, code, top;

	if (v->minor >= 14) {
		top = python_word(h, frame + v->iframe_top);
		if (top >= locals && top - locals < 1 << 20)
			return top;
	} else {
		int32_t n = (int32_t)python_half(h, frame + v->iframe_top);

		if (n >= 0 && n < 1 << 17)
			return locals + 8 * (uint64_t)n;
	}
	code = python_word(h, frame + v->iframe_code) & ~3ULL;
	return locals + 8ULL * (python_half(h, code + v->code_locals) % (1 << 16) +
				python_half(h, code + v->code_stack) % (1 << 16));
}

/* Globals and builtins are borrowed. From 3.14 on words with a low bit are. */
static void inner_frame(const struct emit *e, uint64_t frame, bool cleared)
{
	const struct python_version *v = e->h->version;
	uint64_t end;

	put_at(e, frame + v->iframe_code);
	if (cleared)
		return;
	put_at(e, frame + v->iframe_function);
	put_at(e, frame + (v->minor == 11 ? 24 : 40)); /* f_locals, frame_obj */
	put_at(e, frame + (v->minor == 11 ? 40 : 48));
	end = python_frame_end(e->h, frame);
	range(e, frame + v->iframe_locals, end, 8);
}

static void old_frame(const struct emit *e, uint64_t object)
{
	const struct python_version *v = e->h->version;
	uint64_t borrowed = v->minor == 9 ? FRAME_GENERATOR_9 : FRAME_GENERATOR_10,
		 locals = object + v->frame_locals,
		 stack = python_word(e->h, object + FRAME_LOCALS_END), top = e->end;

	range(e, object + 24, object + FRAME_LOCALS_END, 8);
	range(e, object + FRAME_STACK_10 - (v->minor == 10 ? 8 : 0), object + borrowed, 8);
	if (stack < locals || stack > e->end)
		return;
	range(e, locals, stack, 8);
	if (v->minor == 9) {
		uint64_t said = python_word(e->h, object + FRAME_STACK_9);

		top = said >= stack && said <= e->end ? said : e->end;
	} else {
		int32_t depth = (int32_t)python_half(e->h, object + FRAME_STACK_10);

		if (depth >= 0)
			top = stack + 8 * (uint64_t)depth;
	}
	range(e, stack, top, 8);
}

static void frame_object(const struct emit *e, uint64_t object)
{
	const struct python_version *v = e->h->version;
	uint64_t inner = object + v->frame_inline;

	if (!v->frame_inline) {
		old_frame(e, object);
		return;
	}
	put_at(e, object + 16);
	range(e, object + FRAME_INNER + 8, inner, 8);
	if (python_word(e->h, object + FRAME_INNER) == inner)
		inner_frame(e, inner, false);
}

static void generator(const struct emit *e, const struct python_class *c, uint64_t object)
{
	const struct python_version *v = e->h->version;
	int8_t state;

	plain(e, c, object, HEAD, v->generator_borrowed);
	plain(e, c, object, v->generator_borrowed + 8,
	      v->generator_frame ? v->generator_frame : c->size);
	if (!v->generator_frame)
		return;
	state = (int8_t)python_half(e->h, object + v->generator_state);
	if (state <= 0 || v->minor > 11)
		inner_frame(e, object + v->generator_frame, state > 0);
}

/* --- objects --- */

static void managed_dict(const struct emit *e, const struct python_class *c, uint64_t object)
{
	uint32_t minor = e->h->version->minor;
	uint64_t word = python_word(e->h, object + MANAGED_DICT);

	if (minor == 11)
		put_at(e, object + MANAGED_VALUES_11);
	/* 3.12: values, with a low bit, or a dict */
	put(e, object + MANAGED_DICT, minor == 12 && word & 1 ? word + 1 : word);
	if (c->inline_values) {
		uint64_t at = object + c->size;
		uint32_t head = python_half(e->h, at);

		if (head >> 24) /* valid */
			range(e, at + 8, at + 8 + 8 * (uint64_t)(head & 0xff), 8);
	}
}

static void str(const struct emit *e, const struct python_class *c, uint64_t object)
{
	uint64_t size = c->own;
	uint32_t state = python_half(e->h, object + PYTHON_STR_STATE);

	if (!(state & STR_COMPACT))
		range(e, object + STR_POINTERS, object + size, 8);
	else if (!(state & STR_ASCII))
		range(e, object + STR_POINTERS, object + size - 8, 8);
	else if (e->h->version->minor < 12)
		put_at(e, object + STR_POINTERS);
}

/* The part of it that is the same in objects of its subclasses. */
static void own_part(const struct emit *e, const struct python_class *c, uint64_t object)
{
	switch (c->shape) {
	case PYTHON_STR:
		str(e, c, object);
		break;
	case PYTHON_LIST:
		put_at(e, object + LIST_ITEMS);
		break;
	case PYTHON_DICT:
		put_at(e, object + PYTHON_MA_KEYS);
		put_at(e, object + DICT_VALUES);
		break;
	case PYTHON_SET:
		/* Once it has a larger one, its own has what was there before. */
		if (python_word(e->h, object + SET_TABLE) == object + SET_OWN_TABLE)
			range(e, object + SET_OWN_TABLE, object + SET_OWN_END, 16);
		else
			put_at(e, object + SET_TABLE);
		break;
	case PYTHON_DEQUE:
		put_at(e, object + DEQUE_LEFT);
		put_at(e, object + DEQUE_RIGHT);
		break;
	case PYTHON_MEMORYVIEW: /* the object that it is of is its buffer's */
		put_at(e, object + MEMORYVIEW_BUFFER);
		break;
	case PYTHON_WEAKREF:
		put_at(e, object + WEAKREF_CALLBACK);
		break;
	default:
		break;
	}
}

static void object_edges(const struct emit *e, const struct python_class *c, uint64_t object)
{
	uint32_t spec = e->h->version->spec_cache;

	if (c->managed_dict)
		managed_dict(e, c, object);
	switch (c->shape) {
	case PYTHON_ATOM:
		break;
	case PYTHON_PLAIN:
		plain(e, c, object, HEAD, with_items(e, c, object));
		break;
	case PYTHON_TYPE: /* what it has cached is borrowed */
		plain(e, c, object, HEAD, spec ? spec : c->size);
		if (spec)
			plain(e, c, object, e->h->version->type_size, c->size);
		break;
	case PYTHON_CODE:
		plain(e, c, object, HEAD, c->size);
		break;
	case PYTHON_FRAME:
		frame_object(e, object);
		break;
	case PYTHON_GENERATOR:
		generator(e, c, object);
		break;
	default:
		put_at(e, object + HEAD);
		own_part(e, c, object);
		plain(e, c, object, c->own, c->size);
	}
}

/* --- tables --- */

static void table(const struct emit *e, enum python_table kind, uint64_t from, uint32_t live)
{
	struct python_keys keys;

	switch (kind) {
	case PYTHON_DICT_KEYS:
		if (!python_keys_of(e->h, from, &keys))
			return;
		range(e, keys.entries + keys.key, keys.entries + keys.n * keys.bytes, keys.bytes);
		if (keys.value)
			range(e, keys.entries + keys.value, keys.entries + keys.n * keys.bytes,
			      keys.bytes);
		break;
	case PYTHON_SET_ENTRIES:
		range(e, from, from + 8ULL * live, 16);
		break;
	case PYTHON_DEQUE_BLOCK:
		range(e, from, from + 8ULL * live, 8);
		/* The last one's link is what was there before. */
		if (from + 8ULL * live == e->block + DEQUE_NEXT)
			put_at(e, e->block + DEQUE_NEXT);
		break;
	default:
		range(e, from, from + 8ULL * live, 8);
	}
}

static bool is_type(const struct python_heap *h, uint64_t addr)
{
	uint32_t low = 0, high = h->n_types;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (h->type_at[mid] < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < h->n_types && h->type_at[low] == addr;
}

/*
 * Freed objects are kept to be used again: lists, tuples, dicts, and frames up to 3.10. They still have what they had; of their words
 * only links to other such objects mean anything. One whose count has just become zero looks the same, but the thread that frees what it
 * has works with it: it is scanned.
 */
static bool free_object(const struct emit *e, bool in_work)
{
	for (uint64_t object = e->block; object <= e->block + GC_HEAD; object += GC_HEAD) {
		uint64_t n;

		if (object + 2 * HEAD > e->end || python_word(e->h, object) ||
		    !is_type(e->h, python_word(e->h, object + HEAD)))
			continue;
		if (in_work)
			return false;
		for (uint64_t at = object + 2 * HEAD; at + 8 <= e->end; at += 8) {
			const uint8_t *to = copy_bytes(e->h->copy, python_word(e->h, at), &n);
			uint64_t count;

			if (!to || n < 8)
				continue;
			memcpy(&count, to, 8);
			if (!count)
				put_at(e, at);
		}
		return true;
	}
	return false;
}

bool python_edges(void *state, const struct snapshot *s, uint32_t node, exact_edge_fn fn, void *ctx)
{
	const struct python_heap *h = state;
	const struct python_class *c;
	struct emit e = { .h = h, .fn = fn, .ctx = ctx };

	if (!h->ready)
		return false;
	e.block = s->blocks.rows[node].addr;
	e.end = e.block + snapshot_bytes(s, node);
	if (h->table[node]) {
		table(&e, h->table[node], e.block + 8ULL * h->begin[node], h->live[node]);
		return true;
	}
	c = python_class_of(h, s, node);
	if (!c)
		return free_object(&e, h->in_work[node]);
	object_edges(&e, c, python_object(s, node));
	return true;
}
