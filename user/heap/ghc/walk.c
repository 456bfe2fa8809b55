#include "heap/ghc/walk.h"

#include <errno.h>
#include <stdlib.h>

enum { LISTS_MAX = 1 << 23, SLOTS_MIN = 4096, LOOKED_MOST = 8 /* times the words of the heap */ };

static uint64_t word(struct ghc *g, uint64_t addr)
{
	uint64_t w;

	return ghc_word(g, addr, &w) ? w : 0;
}

/* Room for one more. */
static bool room_for(struct ghc_walk *w, void **rows, uint64_t n, uint64_t *room, size_t bytes)
{
	uint64_t more = *room ? 2 * *room : 1024;
	void *grown;

	if (n < *room)
		return true;
	grown = reallocarray(*rows, more, bytes);
	w->g->oom |= !grown;
	if (!grown)
		return false;
	*rows = grown;
	*room = more;
	return true;
}

#define ROOM(w, rows, n, room)                                                                     \
	room_for(w, (void **)&(w)->rows, (w)->n, &(w)->room, sizeof(*(w)->rows))

void ghc_walk_root(struct ghc_walk *w, enum ghc_root_kind kind, uint64_t addr, uint64_t at)
{
	if (ROOM(w, roots, n_roots, roots_room))
		w->roots[w->n_roots++] = (struct ghc_root){ addr & ~7ULL, at, kind };
}

/* --- threads and weak pointers --- */

static void add_threads(struct ghc_walk *w, uint64_t tso)
{
	struct ghc_closure c;

	for (; ghc_in_heap(w->g, tso) && w->listed < LISTS_MAX; w->listed++) {
		if (!ghc_closure_at(w->g, tso, &c))
			return;
		if (c.info.type != GHC_TSO) {
			w->g->bad++;
			return;
		}
		ghc_walk_root(w, GHC_ROOT_THREAD, tso, word(w->g, tso + GHC_TSO_ID));
		tso = word(w->g, tso + GHC_TSO_GLOBAL_LINK);
	}
}

/* Static keys are always alive, and what they keep. */
static void add_weaks(struct ghc_walk *w, uint64_t weak)
{
	struct ghc_closure c;

	for (; ghc_in_heap(w->g, weak) && w->listed < LISTS_MAX; w->listed++) {
		uint64_t key = word(w->g, weak + GHC_WEAK_KEY) & ~7ULL;

		if (!ghc_closure_at(w->g, weak, &c))
			return;
		if (c.info.type == GHC_WEAK && ghc_in_heap(w->g, key)) {
			if (!ROOM(w, weaks, n_weaks, weaks_room))
				return;
			w->weaks[w->n_weaks++] = (struct ghc_weak){ key, weak };
		} else if (c.info.type == GHC_WEAK) {
			ghc_walk_root(w, GHC_ROOT_WEAK, weak, key);
		} else if (!ghc_is_constr(c.info.type)) { /* one that is dead */
			w->g->bad++;
			return;
		}
		weak = word(w->g, weak + GHC_WEAK_LINK);
	}
}

static int by_key(const void *a, const void *b)
{
	const struct ghc_weak *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->weak > y->weak) - (x->weak < y->weak);
}

static int by_root(const void *a, const void *b)
{
	const struct ghc_root *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* In order, each once: lists may have been met from several places. */
static void sort_lists(struct ghc_walk *w)
{
	uint64_t n = 0;

	if (w->n_roots)
		qsort(w->roots, w->n_roots, sizeof(*w->roots), by_root);
	for (uint64_t i = 0; i < w->n_roots; i++)
		if (!n || by_root(&w->roots[n - 1], &w->roots[i]) != 0)
			w->roots[n++] = w->roots[i];
	w->n_roots = n;
	n = 0;
	if (w->n_weaks)
		qsort(w->weaks, w->n_weaks, sizeof(*w->weaks), by_key);
	for (uint64_t i = 0; i < w->n_weaks; i++)
		if (!n || by_key(&w->weaks[n - 1], &w->weaks[i]) != 0)
			w->weaks[n++] = w->weaks[i];
	w->n_weaks = n;
}

int ghc_walk_begin(struct ghc_walk *w, struct ghc *g, const struct ghc_space *s)
{
	*w = (struct ghc_walk){ .g = g, .n_slots = SLOTS_MIN };
	w->marks = calloc((g->end - g->begin) / (8 * 64) + 1, sizeof(*w->marks));
	w->statics = calloc(w->n_slots, sizeof(*w->statics));
	if (!w->marks || !w->statics)
		return -ENOMEM;
	for (uint32_t i = 0; i < GHC_GENS_MAX; i++)
		if (s->gens[i]) {
			add_threads(w, word(g, s->gens[i] + GHC_GEN_THREADS));
			add_weaks(w, word(g, s->gens[i] + GHC_GEN_WEAK));
		}
	for (uint32_t i = 0; i < s->n_caps; i++)
		add_weaks(w, word(g, s->caps[i] + GHC_CAP_WEAK));
	for (uint32_t i = 0; i < s->n_lists; i++) {
		const struct ghc_info *info = ghc_info_of(g, word(g, s->lists[i]));

		if (info && info->type == GHC_TSO)
			add_threads(w, s->lists[i]);
		else
			add_weaks(w, s->lists[i]);
	}
	sort_lists(w);
	return g->oom ? -ENOMEM : 0;
}

/* --- reaching --- */

static void push_object(struct ghc_walk *w, uint64_t addr)
{
	uint64_t bit = (addr - w->g->begin) / 8;
	struct ghc_closure c;

	if (w->marks[bit / 64] >> bit % 64 & 1)
		return;
	w->marks[bit / 64] |= 1ULL << bit % 64;
	if (!ghc_closure_at(w->g, addr, &c) || !ROOM(w, objects, n, room))
		return;
	w->objects[w->n++] =
		(struct ghc_object){ addr, c.words < UINT32_MAX ? (uint32_t)c.words : UINT32_MAX,
				     (uint32_t)(ghc_info_of(w->g, c.info.at) - w->g->infos.rows),
				     w->guessing };
}

/* Of the set of static ones: false, it was there. */
static bool see(uint64_t *slots, uint64_t n_slots, uint64_t addr)
{
	uint64_t mask = n_slots - 1, i = (addr * 0x9e3779b97f4a7c15ULL) >> 20 & mask;

	for (; slots[i]; i = (i + 1) & mask)
		if (slots[i] == addr)
			return false;
	slots[i] = addr;
	return true;
}

static bool grow_statics(struct ghc_walk *w)
{
	uint64_t n = 2 * w->n_slots, *more = calloc(n, sizeof(*more));

	w->g->oom |= !more;
	if (!more)
		return false;
	for (uint64_t i = 0; i < w->n_slots; i++)
		if (w->statics[i])
			see(more, n, w->statics[i]);
	free(w->statics);
	w->statics = more;
	w->n_slots = n;
	return true;
}

static void push_static(struct ghc_walk *w, uint64_t addr)
{
	if (!addr || (2 * w->n_seen >= w->n_slots && !grow_statics(w)) ||
	    !see(w->statics, w->n_slots, addr))
		return;
	w->n_seen++;
	if (ROOM(w, queue, n_queue, queue_room))
		w->queue[w->n_queue++] = addr;
}

static void push(struct ghc_walk *w, uint64_t pointer)
{
	uint64_t addr = pointer & ~7ULL;

	if (ghc_in_heap(w->g, addr))
		push_object(w, addr);
	else
		push_static(w, addr);
}

static void push_guess(struct ghc_walk *w, uint64_t pointer)
{
	if (ROOM(w, guesses, n_guesses, guesses_room))
		w->guesses[w->n_guesses++] = pointer;
}

static void on_word(void *ctx, uint64_t pointer, uint32_t at, enum ghc_word what)
{
	(void)at;
	if (what == GHC_GUESS)
		push_guess(ctx, pointer);
	else if (what != GHC_DATA)
		push(ctx, pointer);
}

/* An evaluated CAF is an indirection to its value. */
static void look_at_static(struct ghc_walk *w, uint64_t addr)
{
	struct ghc_closure c;
	uint64_t value;

	if (!ghc_closure_at(w->g, addr, &c))
		return;
	w->n_static++;
	if (c.info.type == GHC_IND_STATIC) {
		value = word(w->g, addr + 8);
		if (ghc_in_heap(w->g, value))
			ghc_walk_root(w, GHC_ROOT_CAF, value, addr);
	}
	/* A function's fields, if it has any, are its SRT's (GHC's notes on "The [FUN] optimisation"). */
	ghc_closure_words(w->g, &c, false, on_word, w);
}

static void look_at_object(struct ghc_walk *w, struct ghc_object o)
{
	struct ghc_closure c = { o.addr, w->g->infos.rows[o.info], o.words };

	/* Objects that lie in others are dropped in the end. */
	w->looked_words += o.words;
	if (w->looked_words / LOOKED_MOST > (w->g->end - w->g->begin) / 8) {
		w->g->bad++;
		return;
	}
	ghc_closure_words(w->g, &c, false, on_word, w);
	if (w->n_weaks)
		ghc_walk_weaks(w, o.addr, on_word, w);
}

static int by_address(const void *a, const void *b)
{
	const struct ghc_object *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static bool overlap(const struct ghc_object *a, const struct ghc_object *b)
{
	return b->addr < a->addr + 8 * (uint64_t)a->words;
}

/* Nothing begins in another: what is said to do so is no object. What is guessed gives way to what is known. */
static void drop_overlapping(struct ghc_walk *w)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < w->n; i++) {
		const struct ghc_object o = w->objects[i];

		while (n && !o.guessed && w->objects[n - 1].guessed &&
		       overlap(&w->objects[n - 1], &o))
			n--;
		if (n && overlap(&w->objects[n - 1], &o))
			w->g->bad += !o.guessed;
		else
			w->objects[n++] = o;
	}
	w->n = n;
}

/* How far what is reached has been looked at. */
struct progress {
	uint64_t roots, objects, statics;
};

static void reach(struct ghc_walk *w, struct progress *p)
{
	while (!w->g->oom &&
	       (p->roots < w->n_roots || p->objects < w->n || p->statics < w->n_queue)) {
		if (p->statics < w->n_queue)
			look_at_static(w, w->queue[p->statics++]);
		else if (p->objects < w->n)
			look_at_object(w, w->objects[p->objects++]);
		else if (w->roots[p->roots].kind == GHC_ROOT_REGISTER ||
			 w->roots[p->roots].kind == GHC_ROOT_FOREIGN)
			push_guess(w, w->roots[p->roots++].addr);
		else
			push(w, w->roots[p->roots++].addr);
	}
}

int ghc_walk_finish(struct ghc_walk *w)
{
	struct progress p = { 0 };
	uint64_t bad, frames, forwarded;

	reach(w, &p);
	bad = w->g->bad;
	frames = w->g->bad_frames;
	forwarded = w->g->forwarded;
	w->guessing = true;
	for (uint64_t i = 0; i < w->n_guesses && !w->g->oom; i++) {
		push(w, w->guesses[i]);
		reach(w, &p);
	}
	w->g->bad = bad;
	w->g->bad_frames = frames;
	w->g->forwarded = forwarded;
	if (w->g->oom)
		return -ENOMEM;
	if (w->n)
		qsort(w->objects, w->n, sizeof(*w->objects), by_address);
	drop_overlapping(w);
	return w->g->oom ? -ENOMEM : 0;
}

void ghc_walk_fini(struct ghc_walk *w)
{
	free(w->objects);
	free(w->roots);
	free(w->weaks);
	free(w->marks);
	free(w->statics);
	free(w->queue);
	free(w->guesses);
	*w = (struct ghc_walk){ 0 };
}

const struct ghc_object *ghc_walk_object(const struct ghc_walk *w, uint64_t addr)
{
	uint64_t low = 0, high = w->n;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (w->objects[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < w->n && w->objects[low].addr == addr ? &w->objects[low] : NULL;
}

void ghc_walk_weaks(const struct ghc_walk *w, uint64_t key, ghc_word_fn fn, void *ctx)
{
	uint64_t low = 0, high = w->n_weaks;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (w->weaks[mid].key < key)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < w->n_weaks && w->weaks[low].key == key; low++)
		fn(ctx, w->weaks[low].weak, 0, GHC_POINTER);
}
