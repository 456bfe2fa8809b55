#include "heap/snapshot/scan.h"

#include "heap/snapshot/mappings.h"
#include "heap/snapshot/words.h"

#include "base/large.h"
#include "heap/glibc.h"
#include "heap/snapshot/exact.h"

#include <errno.h>
#include <string.h>

enum {
	GLIBC_BEHIND_BINS = 56, /* binmap, next, … max_system_mem               */
	ALLOCATOR_STACK = 1024, /* bytes that functions of an allocator have there */
};

/* References to CPython's objects have exactly their address. */
static bool begins_at(const struct snapshot *s, uint32_t node, uint32_t offset)
{
	return s->types.type[s->types.of[node]].by != TYPE_CPYTHON ||
	       offset == s->types.object[node];
}

/* The block that a word refers to; BLOCK_NONE. */
static uint32_t target_of(const struct snapshot *s, uint64_t word)
{
	uint32_t offset, to = block_index_find(s->index, word, &offset);

	if (to == BLOCK_NONE || exact_brought(s->exact, to))
		return BLOCK_NONE;
	return begins_at(s, to, offset) ? to : BLOCK_NONE;
}

/* --- references from block to block --- */

struct edges {
	struct snapshot *s;
	uint32_t from;
	bool count;
};

static void add_edge(struct edges *e, uint32_t to, uint32_t at)
{
	if (to == BLOCK_NONE || to == e->from)
		return;
	if (e->count)
		graph_count(e->s->graph, e->from);
	else
		graph_add(e->s->graph, e->from, to, at);
}

static void on_reference(void *ctx, uint64_t addr, uint64_t word)
{
	struct edges *e = ctx;

	add_edge(e, target_of(e->s, word), (uint32_t)(addr - e->s->blocks.rows[e->from].addr));
}

static void on_exact_edge(void *ctx, uint64_t to, uint32_t at)
{
	struct edges *e = ctx;
	const struct snapshot *s = e->s;
	uint32_t offset, node = block_index_find(s->index, to, &offset);

	e->s->words++;
	if (node != BLOCK_NONE && begins_at(s, node, offset))
		add_edge(e, node, at);
}

static void pass(struct edges *e)
{
	for (e->from = 0; e->from < e->s->blocks.n; e->from++) {
		uint64_t addr = e->s->blocks.rows[e->from].addr;

		if (!exact_edges(e->s->exact, e->s, e->from, on_exact_edge, e))
			e->s->words +=
				words_each(e->s->copy, addr, addr + snapshot_bytes(e->s, e->from),
					   on_reference, e);
	}
}

int scan_references(struct snapshot *s)
{
	struct edges e = { .s = s, .count = true };

	s->graph = graph_new((uint32_t)s->blocks.n);
	if (!s->graph)
		return -ENOMEM;
	pass(&e);
	if (graph_lay_out(s->graph) < 0)
		return -ENOMEM;
	e.count = false;
	s->words = 0;
	pass(&e);
	graph_finish(s->graph);
	s->reverse = graph_reversed(s->graph);
	return s->reverse ? 0 : -ENOMEM;
}

/* --- roots --- */

struct roots {
	struct snapshot *s;
	uint8_t kind;
	uint32_t thread;
	const struct stopped_thread *of; /* while its words are looked at */
	struct heap_range own;           /* variables of an allocator; 0: none */
	uint64_t room;
	bool oom;
};

static void add_root(struct roots *r, uint32_t node, uint64_t addr, const char *name)
{
	struct snapshot *s = r->s;

	if (r->oom)
		return;
	if (!GROW_LARGE(s->roots, s->n_roots, r->room)) {
		r->oom = true;
		return;
	}
	s->roots[s->n_roots++] = (struct snapshot_root){ node, r->kind, r->thread, addr, name };
}

static void on_root(void *ctx, uint64_t addr, uint64_t word)
{
	struct roots *r = ctx;
	uint32_t node = target_of(r->s, word);

	if (node != BLOCK_NONE)
		add_root(r, node, addr, NULL);
}

static void scan_range(struct roots *r, uint64_t from, uint64_t end)
{
	r->s->words += words_each(r->s->copy, from, end, on_root, r);
}

static void on_exact_root(void *ctx, const struct exact_root *root)
{
	struct roots *r = ctx;
	uint32_t offset, node = block_index_find(r->s->index, root->addr, &offset);

	r->kind = root->kind;
	if (node != BLOCK_NONE)
		add_root(r, node, root->at, root->name);
}

static void add_modules(struct roots *r)
{
	const struct types *t = &r->s->types;

	r->kind = SNAPSHOT_ROOT_MODULE;
	for (uint32_t i = 0; i < r->s->blocks.n; i++)
		if (t->type[t->of[i]].by == TYPE_CPYTHON &&
		    strcmp(t->type[t->of[i]].name, "module") == 0)
			add_root(r, i, r->s->blocks.rows[i].addr + t->object[i], NULL);
}

/*
 * glibc knows a block by its chunk, 16 bytes before it: in the middle of malloc() or free() that may be all that a thread has of a block.
 */
static uint32_t block_of_chunk(const struct snapshot *s, uint64_t word)
{
	uint32_t offset,
		to = word % 16 ? BLOCK_NONE : block_index_find(s->index, word + 16, &offset);
	const struct heap_owner *owner;

	if (to == BLOCK_NONE || offset)
		return BLOCK_NONE;
	owner = heap_blocks_owner(&s->blocks, s->blocks.rows[to].owner);
	return owner->allocator && strcmp(owner->allocator, "glibc") == 0 ? to : BLOCK_NONE;
}

static void on_thread_word(void *ctx, enum thread_word kind, uint64_t at, uint64_t word)
{
	static const uint8_t kinds[] = { [THREAD_WORD_REGISTER] = SNAPSHOT_ROOT_REGISTER,
					 [THREAD_WORD_STACK] = SNAPSHOT_ROOT_STACK,
					 [THREAD_WORD_TLS] = SNAPSHOT_ROOT_TLS };
	struct roots *r = ctx;
	uint32_t chunk = BLOCK_NONE;

	r->kind = kinds[kind];
	on_root(r, at, word);
	if (!r->of->in_call && (kind == THREAD_WORD_REGISTER ||
				(kind == THREAD_WORD_STACK && at - r->of->sp < ALLOCATOR_STACK)))
		chunk = block_of_chunk(r->s, word);
	if (chunk != BLOCK_NONE)
		add_root(r, chunk, at, NULL);
}

static void scan_thread(struct roots *r, const struct stopped_thread *t)
{
	r->of = t;
	r->s->words += thread_words(r->s, t, on_thread_word, r);
}

/*
 * Where an allocator's part of a mapping begins: the page of its first block, or its end. What is mapped right behind an
 * image's variables is one mapping with them.
 */
static uint64_t end_of_own(const struct snapshot *s, const struct heap_map *m)
{
	uint64_t i = heap_blocks_find(&s->blocks, m->start);

	if (i && s->blocks.rows[i - 1].addr + snapshot_bytes(s, (uint32_t)i - 1) > m->start)
		return m->start;
	if (i == s->blocks.n || s->blocks.rows[i].addr >= m->end)
		return m->end;
	return s->blocks.rows[i].addr & ~(uint64_t)(HEAP_PAGE - 1);
}

static bool has_tls(const struct snapshot *s, const struct heap_map *m)
{
	uint32_t n;
	const struct stopped_thread *t = copy_threads(s->copy, &n);

	for (uint32_t i = 0; i < n; i++)
		if (t[i].tp >= m->start && t[i].tp < m->end)
			return true;
	return false;
}

/* A mapping that is an object itself: what is in it refers to others already. */
static bool is_object(struct roots *r, const struct heap_map *m)
{
	uint64_t i = heap_blocks_find(&r->s->blocks, m->start);

	if (i == r->s->blocks.n || r->s->blocks.rows[i].addr != m->start ||
	    !mappings_has(&r->s->blocks, i))
		return false;
	r->kind = SNAPSHOT_ROOT_MAPPING;
	add_root(r, (uint32_t)i, m->start, NULL);
	return true;
}

static void scan_map(struct roots *r, const struct heap_map *m, bool owned)
{
	uint64_t end = end_of_own(r->s, m);

	if (is_object(r, m))
		return;
	switch (m->kind) {
	case HEAP_MAP_DATA:
	case HEAP_MAP_ZEROED:
		r->kind = SNAPSHOT_ROOT_GLOBAL;
		break;
	case HEAP_MAP_ANON:
		r->kind = has_tls(r->s, m) ? SNAPSHOT_ROOT_TLS : SNAPSHOT_ROOT_MAPPING;
		if (r->kind == SNAPSHOT_ROOT_MAPPING && (owned || end < m->end))
			return;
		break;
	case HEAP_MAP_STACK: /* others were looked at with their threads */
		if (!thread_left_stack(r->s, m))
			return;
		r->kind = SNAPSHOT_ROOT_STACK;
		break;
	default: /* what is left of [heap] is free */
		return;
	}
	/* What glibc notes of its own blocks lies among the C library's variables. */
	if (r->own.from >= m->start && r->own.end <= end) {
		scan_range(r, m->start, r->own.from);
		scan_range(r, r->own.end, end);
		return;
	}
	scan_range(r, m->start, end);
}

static int by_node(const void *a, const void *b)
{
	const struct snapshot_root *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Its main arena: lists of free chunks, whose addresses lie in the last word of the blocks before them. */
static struct heap_range variables_of_glibc(const struct heap_memory *mem)
{
	struct glibc_layout layout;
	struct glibc_arena main;

	if (glibc_find(mem, &layout, &main) < 0)
		return (struct heap_range){ 0 };
	return (struct heap_range){ main.addr, main.addr + layout.bins + 2 * GLIBC_BINS * 8ULL +
						       GLIBC_BEHIND_BINS };
}

int scan_sort_roots(struct snapshot *s)
{
	struct graph_root *roots = large_alloc(s->n_roots + 1, sizeof(*roots));

	if (!roots)
		return -ENOMEM;
	if (s->n_roots)
		qsort(s->roots, s->n_roots, sizeof(*s->roots), by_node);
	for (uint64_t i = 0; i < s->n_roots; i++)
		roots[i] = (struct graph_root){ s->roots[i].node, s->roots[i].kind };
	large_free(s->graph_roots);
	s->graph_roots = roots;
	return 0;
}

int scan_roots(struct snapshot *s, const bool *owned)
{
	const struct heap_memory *mem = copy_memory(s->copy);
	struct roots r = { .s = s };
	uint32_t n;
	const struct stopped_thread *threads = copy_threads(s->copy, &n);

	r.own = variables_of_glibc(mem);
	exact_roots(s->exact, s, on_exact_root, &r);
	add_modules(&r);
	for (r.thread = 0; r.thread < n; r.thread++)
		scan_thread(&r, &threads[r.thread]);
	r.thread = 0;
	for (uint32_t i = 0; i < mem->n_maps; i++)
		scan_map(&r, &mem->maps[i], owned[i]);
	return r.oom ? -ENOMEM : scan_sort_roots(s);
}
