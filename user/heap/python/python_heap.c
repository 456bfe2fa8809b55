#include "heap/python/python_heap.h"

#include "base/large.h"
#include "heap/snapshot/words.h"

#include <errno.h>
#include <string.h>

static const char *const table_names[] = {
	[PYTHON_DICT_KEYS] = "dict (keys)",     [PYTHON_DICT_VALUES] = "dict (values)",
	[PYTHON_LIST_ITEMS] = "list (items)",   [PYTHON_SET_ENTRIES] = "set (entries)",
	[PYTHON_DEQUE_BLOCK] = "deque (items)", [PYTHON_STR_TEXT] = "str (text)",
};

_Static_assert(sizeof(table_names) / sizeof(*table_names) == PYTHON_TABLES, "a name each");

static int open_heap(struct copy *copy, pid_t pid, void **ret_state, struct err *e)
{
	struct python_heap *h = calloc(1, sizeof(*h));

	if (!h)
		return err_set(e, -ENOMEM, "out of memory");
	h->copy = copy;
	gc_python_find(pid, &h->found);
	for (uint32_t i = 0; i < h->found.n; i++)
		h->collecting |= python_half(h, h->found.state[i] + GC_PYTHON_COLLECTING) == 1;
	*ret_state = h;
	return 0;
}

static void close_heap(void *state)
{
	struct python_heap *h = state;

	free(h->classes);
	free(h->type_at);
	free(h->table);
	free(h->begin);
	free(h->live);
	free(h->in_work);
	for (uint32_t i = 0; i < h->n_names; i++)
		free(h->names[i]);
	free(h->names);
	free(h);
}

/* Tables get a type of their own. */
static int name_tables(const struct python_heap *h, struct snapshot *s)
{
	uint32_t type[PYTHON_TABLES] = { 0 };

	for (uint32_t i = 1; i < PYTHON_TABLES; i++) {
		type[i] = types_add(&s->types, TYPE_CPYTHON_TABLE, table_names[i], 0);
		if (!type[i])
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->blocks.n; i++) {
		struct type *from = &s->types.type[s->types.of[i]],
			    *to = &s->types.type[type[h->table[i]]];

		if (!h->table[i])
			continue;
		s->types.of[i] = type[h->table[i]];
		s->types.object[i] = 0;
		to->blocks++;
		to->bytes += snapshot_bytes(s, i);
		from->blocks--;
		from->bytes -= snapshot_bytes(s, i);
	}
	return 0;
}

/* Items of containers, letters of a str, bytes. */
static int find_lengths(const struct python_heap *h, struct snapshot *s)
{
	s->lengths = large_alloc(s->blocks.n + 1, sizeof(*s->lengths));
	for (uint32_t i = 0; s->lengths && i < s->blocks.n; i++) {
		const struct python_class *c = python_class_of(h, s, i);
		uint64_t n = c && c->length ? python_word(h, python_object(s, i) + c->length)
					    : SNAPSHOT_NO_LENGTH;

		/* What is more was no such object. */
		s->lengths[i] = n < SNAPSHOT_NO_LENGTH ? (uint32_t)n : SNAPSHOT_NO_LENGTH;
	}
	return s->lengths ? 0 : -ENOMEM;
}

struct at_work {
	const struct python_heap *h;
	const struct snapshot *s;
};

static void on_thread_word(void *ctx, enum thread_word kind, uint64_t at, uint64_t word)
{
	const struct at_work *w = ctx;
	uint32_t offset, node = block_index_find(w->s->index, word, &offset);

	(void)kind;
	(void)at;
	if (node != BLOCK_NONE)
		w->h->in_work[node] = true;
}

/* Which blocks functions work with at this moment. */
static int find_in_work(struct python_heap *h, const struct snapshot *s)
{
	struct at_work w = { h, s };
	uint32_t n;
	const struct stopped_thread *t = copy_threads(s->copy, &n);

	h->in_work = calloc(s->blocks.n + 1, sizeof(*h->in_work));
	for (uint32_t i = 0; h->in_work && i < n; i++)
		thread_words(s, &t[i], on_thread_word, &w);
	return h->in_work ? 0 : -ENOMEM;
}

static int prepare(void *state, struct snapshot *s)
{
	struct python_heap *h = state;
	int r = python_classes_find(h, s);

	if (r == 0)
		r = python_tables_find(h, s);
	if (r == 0)
		r = name_tables(h, s);
	if (r == 0)
		r = find_lengths(h, s);
	if (r == 0)
		r = find_in_work(h, s);
	h->ready = r == 0;
	return r == -ENOENT ? 0 : r;
}

void python_interpreters(const struct exact *x, struct heap_found *found)
{
	_Static_assert((int)GC_PYTHON_INTERPRETERS <= (int)HEAP_PY_INTERPRETERS, "room for all");

	for (uint32_t i = 0; i < x->n; i++) {
		const struct python_heap *h = x->state[i];

		if (x->runtime[i] != &python_runtime)
			continue;
		found->n_py_interp = h->found.n;
		memcpy(found->py_interp, h->found.interp, h->found.n * sizeof(*h->found.interp));
	}
}

static void python_caveats(void *state, exact_say_fn fn, void *ctx)
{
	const struct python_heap *h = state;

	if (h->found.free_threaded)
		fn(ctx,
		   "this CPython was built without a global lock (free-threaded): how it lays out objects is not known, so its blocks have no type, "
		   "and what only its objects refer to may seem lost");
	if (h->collecting)
		fn(ctx,
		   "CPython's garbage collector was at work at that moment: garbage that it was about to free is among the objects");
}

const struct exact_runtime python_runtime = {
	.name = "CPython",
	.open = open_heap,
	.close = close_heap,
	.prepare = prepare,
	.edges = python_edges,
	.roots = python_roots,
	.caveats = python_caveats,
};
