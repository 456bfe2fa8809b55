/*
 * What CPython keeps objects by besides modules: the frames of its threads. From 3.11 on they are no objects and lie in memory of
 * no allocator, so that their locals would seem lost.
 *
 *   interpreter  one of the runtime's list (heap/gc/), or a word of an image's variables refers to it; the first thread of its list
 *                refers back
 *   thread       prev:8 next:8 interp:8 …, and its frame: an object up to 3.10, of _PyInterpreterFrame later; 3.11 and 3.12 by way
 *                of a struct on the C stack
 */
#include "heap/python/python_heap.h"

#include "base/grow.h"
#include "heap/snapshot/words.h"

#include <stdio.h>
#include <string.h>

enum {
	THREAD_NEXT = 8,
	THREAD_INTERP = 16,
	THREADS_MAX = 1 << 16,
	FRAMES_MAX = 1 << 16,
	WORDS_MAX = 1 << 24, /* of frames, in all */
	INTERPRETERS_MAX = 64,
	TUPLE_LENGTH = 16,
	TUPLE_ITEMS = 24,
	LOCALS_MAX = 1 << 16,
	/* Up to 3.10, in a frame object and in a code object. */
	OLD_BACK = 24,
	OLD_CODE = 32,
	OLD_LOCALS_END = 64,
	OLD_VARNAMES = 72,
	OLD_FREEVARS = 80,
	OLD_CELLVARS = 88,
};

struct frames {
	struct python_heap *h;
	const struct snapshot *s;
	exact_root_fn fn;
	void *ctx;
	uint64_t *words; /* looked at so far */
	uint64_t seen[INTERPRETERS_MAX];
	uint32_t n_seen;
};

static bool text_at(const struct python_heap *h, uint64_t at, char text[PYTHON_TEXT_MAX])
{
	const struct heap_memory *mem = copy_memory(h->copy);
	struct python_memory python = { mem->read, mem->ctx };

	return at && python_str(&python, at, text);
}

static bool is_code(const struct frames *f, uint64_t at)
{
	uint32_t offset, node = at ? block_index_find(f->s->index, at, &offset) : BLOCK_NONE;
	const struct python_class *c =
		node == BLOCK_NONE ? NULL : python_class_of(f->h, f->s, node);

	return c && c->shape == PYTHON_CODE && python_object(f->s, node) == at;
}

void python_function(const struct python_heap *h, uint64_t code, char text[PYTHON_FUNCTION_MAX])
{
	const struct python_version *v = h->version;
	char name[PYTHON_TEXT_MAX] = "?", file[PYTHON_TEXT_MAX] = "?";
	const char *slash;

	text_at(h, python_word(h, code + v->code_name), name);
	text_at(h, python_word(h, code + v->code_file), file);
	slash = strrchr(file, '/');
	snprintf(text, PYTHON_FUNCTION_MAX, "%s (%s:%u)", name, slash ? slash + 1 : file,
		 python_half(h, code + v->code_line));
}

/* The name lives as long as the state. */
static void add_root(const struct frames *f, uint64_t addr, uint64_t at, const char *name)
{
	struct python_heap *h = f->h;

	if (!GROW(h->names, h->n_names, h->room))
		return;
	h->names[h->n_names] = strdup(name);
	if (h->names[h->n_names])
		f->fn(f->ctx, &(struct exact_root){ addr, at, h->names[h->n_names++],
						    SNAPSHOT_ROOT_FRAME });
}

static uint64_t items_of(const struct python_heap *h, uint64_t tuple)
{
	uint64_t n = tuple ? python_word(h, tuple + TUPLE_LENGTH) : 0;

	return n < LOCALS_MAX ? n : 0;
}

/* From 3.11 on their names are in one tuple, before in those of locals, cells and free variables. */
bool python_local(const struct python_heap *h, uint64_t code, uint64_t i,
		  char text[PYTHON_TEXT_MAX])
{
	const struct python_version *v = h->version;
	const uint16_t old[] = { OLD_VARNAMES, OLD_CELLVARS, OLD_FREEVARS },
		       *at = v->code_names ? &v->code_names : old;

	for (uint32_t k = 0; k < (v->code_names ? 1 : 3); k++) {
		uint64_t tuple = python_word(h, code + at[k]), n = items_of(h, tuple);

		if (i < n)
			return text_at(h, python_word(h, tuple + TUPLE_ITEMS + 8 * i), text);
		i -= n;
	}
	return false;
}

/* Each local of a frame and each value on its stack, as a root. */
static void take_values(const struct frames *f, uint64_t code, uint64_t locals, uint64_t end)
{
	char function[PYTHON_FUNCTION_MAX], local[PYTHON_TEXT_MAX], text[2 * PYTHON_FUNCTION_MAX];

	python_function(f->h, code, function);
	for (uint64_t at = locals; at + 8 <= end && (*f->words)++ < WORDS_MAX; at += 8) {
		uint64_t word = python_word(f->h, at) & ~3ULL;

		if (!word)
			continue;
		if (python_local(f->h, code, (at - locals) / 8, local))
			snprintf(text, sizeof(text), "%s: %s", function, local);
		else
			snprintf(text, sizeof(text), "%s", function);
		add_root(f, word, at, text);
	}
}

/* What it refers to besides. */
static void take_others(const struct frames *f, uint64_t frame, uint64_t code)
{
	const struct python_version *v = f->h->version;
	const uint64_t at[] = { frame + v->iframe_function, frame + v->iframe_code,
				frame + (v->minor == 11 ? 24 : 40),
				frame + (v->minor == 11 ? 40 : 48) };
	char function[PYTHON_FUNCTION_MAX];

	python_function(f->h, code, function);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		if (python_word(f->h, at[i]) && (*f->words)++ < WORDS_MAX)
			add_root(f, python_word(f->h, at[i]) & ~3ULL, at[i], function);
}

/* Up to 3.10: an object, which refers to the one that called it. What it holds is its own as well. */
static void take_old_frames(const struct frames *f, uint64_t frame)
{
	const struct python_version *v = f->h->version;
	char function[PYTHON_FUNCTION_MAX];

	for (int i = 0; i < FRAMES_MAX && frame && (*f->words)++ < WORDS_MAX; i++) {
		uint64_t code = python_word(f->h, frame + OLD_CODE);

		if (!is_code(f, code))
			return;
		python_function(f->h, code, function);
		add_root(f, frame, frame, function);
		take_values(f, code, frame + v->frame_locals,
			    python_word(f->h, frame + OLD_LOCALS_END));
		frame = python_word(f->h, frame + OLD_BACK);
	}
}

static void take_thread(const struct frames *f, uint64_t thread)
{
	const struct python_version *v = f->h->version;
	uint64_t frame = python_word(f->h, thread + v->thread_frame);

	if (v->frame_locals) {
		take_old_frames(f, frame);
		return;
	}
	if (v->minor < 13)
		frame = python_word(f->h, frame + v->cframe_frame);
	for (int i = 0; i < FRAMES_MAX && frame && (*f->words)++ < WORDS_MAX; i++) {
		uint64_t code = python_word(f->h, frame + v->iframe_code) & ~3ULL;

		if (is_code(f, code)) {
			take_values(f, code, frame + v->iframe_locals,
				    python_frame_end(f->h, frame));
			take_others(f, frame, code);
		}
		frame = python_word(f->h, frame + (v->minor == 11 ? 48 : 8));
	}
}

static void take_interpreter(struct frames *f, uint64_t interp)
{
	uint64_t thread = python_word(f->h, interp + f->h->version->interp_threads);

	for (uint32_t i = 0; i < f->n_seen; i++)
		if (f->seen[i] == interp)
			return;
	if (f->n_seen == INTERPRETERS_MAX)
		return;
	f->seen[f->n_seen++] = interp;
	for (int i = 0; i < THREADS_MAX && thread && (*f->words)++ < WORDS_MAX; i++) {
		if (python_word(f->h, thread + THREAD_INTERP) != interp)
			break;
		take_thread(f, thread);
		thread = python_word(f->h, thread + THREAD_NEXT);
	}
}

/* Its first thread has none before it, and refers back to it. */
static bool is_interpreter(const struct frames *f, uint64_t word)
{
	uint64_t thread;

	if (word % 8 || word < HEAP_PAGE || !heap_map_of(copy_memory(f->h->copy), word))
		return false;
	thread = python_word(f->h, word + f->h->version->interp_threads);
	return thread && python_word(f->h, thread + THREAD_INTERP) == word &&
	       !python_word(f->h, thread);
}

static void on_word(void *ctx, uint64_t addr, uint64_t word)
{
	(void)addr;
	if (is_interpreter(ctx, word))
		take_interpreter(ctx, word);
}

void python_roots(void *state, const struct snapshot *s, exact_root_fn fn, void *ctx)
{
	struct python_heap *h = state;
	const struct heap_memory *mem = copy_memory(h->copy);
	uint64_t words = 0;
	struct frames f = { .h = h, .s = s, .fn = fn, .ctx = ctx, .words = &words };

	if (!h->ready || !h->version->thread_frame)
		return;
	for (uint32_t i = 0; i < h->found.n; i++)
		if (is_interpreter(&f, h->found.interp[i]))
			take_interpreter(&f, h->found.interp[i]);
	for (uint32_t i = 0; i < mem->n_maps; i++)
		if (mem->maps[i].kind == HEAP_MAP_DATA || mem->maps[i].kind == HEAP_MAP_ZEROED)
			words_each(h->copy, mem->maps[i].start, mem->maps[i].end, on_word, &f);
}
