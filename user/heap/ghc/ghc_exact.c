/* GHC among the runtimes of a snapshot (heap/snapshot/exact.h): finds its heap, walks it, names what is in it. */
#include "base/cleanup.h"
#include "base/hash.h"
#include "heap/ghc/images.h"
#include "heap/ghc/types.h"
#include "heap/ghc/walk.h"
#include "heap/snapshot/exact.h"
#include "proc/peek.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <sys/user.h>
#endif

enum {
	STABLE_MAX = 1 << 20,
	STABLE_MIN = 64,       /* entries of a table that is new; it doubles          */
	C_STACK_MAX = 1 << 16, /* bytes of a thread's C stack that are searched      */
	ROOT_NAME_MAX = 128,
};

struct state {
	struct copy *copy;
	struct ghc_images images;
	struct ghc g;
	struct ghc_space space;
	struct ghc_walk walk;
	char **names;      /* of each root */
	uint64_t *threads; /* roots, sorted */
	uint32_t n_threads;
	bool stable_known;
	char said[192];           /* of its memory */
	uint64_t bad, bad_frames; /* of the walk */
};

static void state_close(void *ctx)
{
	struct state *s = ctx;

	for (uint64_t i = 0; s->names && i < s->walk.n_roots; i++)
		free(s->names[i]);
	free(s->names);
	free(s->threads);
	ghc_walk_fini(&s->walk);
	ghc_fini(&s->g);
	ghc_images_close(&s->images);
	free(s);
}

static void state_closep(struct state **s)
{
	if (*s)
		state_close(*s);
}

/* --- memory --- */

static const uint8_t *piece(void *ctx, uint64_t addr, uint64_t *ret_len)
{
	struct state *s = ctx;

	return copy_bytes(s->copy, addr, ret_len);
}

/* Of the copy, or of what it leaves out, for that does not change. */
static bool read_any(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct state *s = ctx;
	const struct heap_memory *mem = copy_memory(s->copy);

	return mem->read(mem->ctx, addr, buf, len) || peek(s->images.pid, addr, buf, len);
}

static uint64_t word(struct ghc *g, uint64_t addr)
{
	uint64_t w;

	return ghc_word(g, addr, &w) ? w : 0;
}

/*
 * A mapping that begins with a megablock, and all that lies right behind it: what is in use of the 1 TiB that GHC
 * reserves.
 */
static bool find_heap(struct state *s)
{
	const struct heap_memory *mem = copy_memory(s->copy);
	struct ghc *g = &s->g;

	for (uint32_t i = 0; i < mem->n_maps; i++) {
		const struct heap_map *m = &mem->maps[i];

		if (m->kind != HEAP_MAP_ANON || m->start % GHC_MBLOCK ||
		    m->end - m->start < GHC_MBLOCK)
			continue;
		g->begin = m->start;
		g->end = m->end;
		g->len = 0;
		if (!ghc_is_mblock(g, m->start))
			continue;
		for (uint32_t k = i + 1;
		     k < mem->n_maps && mem->maps[k].start == mem->maps[k - 1].end; k++)
			if (mem->maps[k].kind == HEAP_MAP_ANON)
				g->end = mem->maps[k].end;
		return true;
	}
	return false;
}

/* --- roots --- */

#if defined(__x86_64__)
static uint64_t reg(const struct stopped_thread *t, size_t offset)
{
	return offset / 8 < t->n_regs ? t->regs[offset / 8] : 0;
}
#define REG(t, name) reg(t, offsetof(struct user_regs_struct, name))

/* A word of a C function's frames that is the stack pointer which Haskell code had when it called C. */
static uint64_t sp_on_c_stack(struct state *s, const struct stopped_thread *t, uint64_t from,
			      uint64_t end)
{
	uint64_t found = 0;

	for (uint64_t at = t->sp & ~7ULL; at < t->sp + C_STACK_MAX; at += 8) {
		uint64_t w;

		if (!read_any(s, at, &w, 8))
			break;
		if (w >= from && w < end && w % 8 == 0 && (!found || w < found) &&
		    ghc_frames_sound(&s->g, w, end))
			found = w;
	}
	return found;
}

/* R1 to R6: what they have is what they had been loaded with last, which need not be a pointer. */
static void add_registers(struct state *s, const struct stopped_thread *t)
{
	const uint64_t regs[] = { REG(t, rbx), REG(t, r14), REG(t, rsi),
				  REG(t, rdi), REG(t, r8),  REG(t, r9) };

	for (size_t i = 0; i < sizeof(regs) / sizeof(*regs); i++)
		if (ghc_looks_like_pointer(&s->g, regs[i]))
			ghc_walk_root(&s->walk, GHC_ROOT_REGISTER, regs[i], i + 1);
}

/*
 * The thread of the kernel's that runs a capability, by its pthread_t, which a Task begins with and which is its thread pointer;
 * others that ran it before still have its address in r13. Without threads there is one, the process's first.
 */
static const struct stopped_thread *runner_of(struct state *s, uint64_t cap)
{
	uint64_t id = word(&s->g, word(&s->g, cap + GHC_CAP_TASK));
	const struct stopped_thread *threads;
	uint32_t n;

	threads = copy_threads(s->copy, &n);
	for (uint32_t i = 0; i < n; i++)
		if (s->g.threaded ? threads[i].tp == id : threads[i].tid == s->images.pid)
			return &threads[i];
	return NULL;
}

/* What Haskell code still needs after a call of C that is no safe one is in no frame of its own, but where C functions keep it. */
static void add_foreign(struct state *s, const struct stopped_thread *t)
{
	uint64_t w;

	for (uint32_t i = 0; i < t->n_regs; i++)
		if (ghc_looks_like_pointer(&s->g, t->regs[i]))
			ghc_walk_root(&s->walk, GHC_ROOT_FOREIGN, t->regs[i], i);
	for (uint64_t at = t->sp & ~7ULL; at < t->sp + C_STACK_MAX && read_any(s, at, &w, 8);
	     at += 8)
		if (ghc_looks_like_pointer(&s->g, w))
			ghc_walk_root(&s->walk, GHC_ROOT_FOREIGN, w, at);
}

/*
 * Where the frames begin of the thread that runs on a capability: its stack pointer is in a register (Sp is rbp), not in its
 * stack object. If it has called C, that has left the register as it was, or saved it somewhere. 0: nowhere.
 */
static uint64_t find_sp(struct state *s, uint64_t cap, uint64_t from, uint64_t end)
{
	const struct stopped_thread *t = runner_of(s, cap);
	uint64_t sp;

	if (!t)
		return 0;
	sp = REG(t, rbp);
	if (sp % 8 || sp < from || sp >= end) {
		add_foreign(s, t);
		return sp_on_c_stack(s, t, from, end);
	}
	if (ghc_images_is_own(&s->images, t->pc))
		add_registers(s, t);
	else
		add_foreign(s, t);
	return sp;
}

static void add_running(struct state *s, uint64_t cap)
{
	struct ghc *g = &s->g;
	uint64_t tso = word(g, cap + GHC_CAP_REGS + GHC_REG_TSO), stack, from, end, sp;

	if (!(word(g, cap + GHC_CAP_IN_HASKELL) & 0xff) || !ghc_in_heap(g, tso) ||
	    g->n_running == GHC_RUNNING_MAX)
		return;
	stack = word(g, tso + GHC_TSO_STACK);
	from = stack + GHC_STACK_WORDS;
	end = from + 8 * (word(g, stack + GHC_STACK_SIZE) & UINT32_MAX);
	sp = find_sp(s, cap, from, end);
	/* Else whatever in the stack looks like a pointer is one. */
	g->running[g->n_running++] = (struct ghc_running){ stack, sp ? sp : from };
}
#else
static void add_running(struct state *s, uint64_t cap)
{
	(void)s;
	(void)cap;
}
#endif

/* A table of words, one a stable pointer; those that are free are a list, in it. */
static void add_stable(struct state *s)
{
	uint64_t at = ghc_images_variable(&s->images, "stable_ptr_table"), table, n;

	if (!at)
		return;
	s->stable_known = true;
	table = word(&s->g, at);
	/* As the C library has it, which says how large the block is: 64 entries, or that doubled. */
	n = table ? (word(&s->g, table - 8) & ~7ULL) / 8 : 0;
	if (n < STABLE_MIN || n > STABLE_MAX)
		n = STABLE_MIN;
	for (uint64_t size = STABLE_MIN; table && size <= STABLE_MAX; size *= 2)
		if (2 * size > n) {
			n = size;
			break;
		}
	for (uint64_t i = 1; table && i < n; i++) {
		uint64_t w = word(&s->g, table + 8 * i);

		if (w && (w < table || w >= table + 8 * n))
			ghc_walk_root(&s->walk, GHC_ROOT_STABLE, w, i);
	}
}

/* --- opening --- */

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int note_threads(struct state *s)
{
	s->threads = calloc(s->walk.n_roots + 1, sizeof(*s->threads));
	if (!s->threads)
		return -ENOMEM;
	for (uint64_t i = 0; i < s->walk.n_roots; i++)
		if (s->walk.roots[i].kind == GHC_ROOT_THREAD)
			s->threads[s->n_threads++] = s->walk.roots[i].addr;
	if (s->n_threads)
		qsort(s->threads, s->n_threads, sizeof(*s->threads), by_number);
	return 0;
}

static bool is_thread(const struct state *s, uint64_t addr)
{
	if (!s->n_threads || addr < s->threads[0] || addr > s->threads[s->n_threads - 1])
		return false;
	return bsearch(&addr, s->threads, s->n_threads, sizeof(addr), by_number);
}

/* Is a thread in code of the program, its run-time system among it? */
static bool is_at_work(const struct state *s)
{
	uint32_t n;
	const struct stopped_thread *t = copy_threads(s->copy, &n);

	for (uint32_t i = 0; i < n; i++)
		if (ghc_images_is_own(&s->images, t[i].pc))
			return true;
	return false;
}

/* Does a capability run Haskell? Then no collection is under way, but for one that moves nothing. */
static bool in_haskell(struct state *s)
{
	for (uint32_t i = 0; i < s->space.n_caps; i++)
		if (word(&s->g, s->space.caps[i] + GHC_CAP_IN_HASKELL) & 0xff &&
		    word(&s->g, s->space.caps[i] + GHC_CAP_REGS + GHC_REG_TSO))
			return true;
	return false;
}

/*
 * While the nonmoving collector marks, beside the program, the generations' lists of threads and weak pointers are in variables
 * of its own, which stripped programs have no names of. No other words of an image are the addresses of such objects, but for
 * what capabilities have in hand.
 */
static void find_lists(struct state *s)
{
	const struct heap_memory *mem = copy_memory(s->copy);

	for (uint32_t i = 0; i < mem->n_maps; i++) {
		const struct heap_map *m = &mem->maps[i];
		uint64_t len;

		if (m->kind != HEAP_MAP_DATA && m->kind != HEAP_MAP_ZEROED)
			continue;
		for (uint64_t addr = m->start; addr < m->end; addr += len) {
			const uint8_t *bytes = copy_bytes(s->copy, addr, &len);

			if (len > m->end - addr)
				len = m->end - addr;
			if (!len)
				break;
			for (uint64_t k = 0; bytes && k + 8 <= len; k += 8) {
				uint64_t w;

				memcpy(&w, bytes + k, 8);
				if (ghc_in_heap(&s->g, w))
					ghc_space_list(&s->g, &s->space, w);
			}
		}
	}
}

static int collecting(pid_t pid, struct err *e)
{
	return err_set(
		e, -EAGAIN,
		"process %d: its garbage collector was at work each time its memory was copied; try again",
		(int)pid);
}

static int ghc_open(struct copy *copy, pid_t pid, void **ret_state, struct err *e)
{
	_cleanup_(state_closep) struct state *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->copy = copy;
	s->g.mem = (struct ghc_memory){ piece, read_any, s };
	s->images.pid = pid;
	if (!find_heap(s))
		return -ENOENT;
	r = ghc_images_open(pid, &s->images);
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	s->g.code = s->images.code;
	s->g.n_code = s->images.n;
	s->g.layout = ghc_layout_of(s->images.version ? s->images.version : GHC_TESTED_VERSION);
	if (!s->g.layout || !ghc_space_read(&s->g, &s->space))
		return -ENOENT;
	if (s->space.nonmoving)
		find_lists(s);
	if (!in_haskell(s) && (s->space.collecting || (s->space.perhaps && is_at_work(s))))
		return collecting(pid, e);
	r = ghc_walk_begin(&s->walk, &s->g, &s->space);
	for (uint32_t i = 0; r == 0 && i < s->space.n_caps; i++)
		add_running(s, s->space.caps[i]);
	if (r == 0)
		add_stable(s);
	if (r == 0)
		r = ghc_walk_finish(&s->walk);
	if (r < 0)
		return r;
	if (s->g.forwarded)
		return collecting(pid, e);
	r = note_threads(s);
	if (r < 0)
		return r;
	s->bad = s->g.bad;
	s->bad_frames = s->g.bad_frames;
	*ret_state = TAKE_PTR(s);
	return 0;
}

/* --- objects --- */

static int ghc_objects(void *ctx, struct types *types, exact_object_fn fn, void *fn_ctx)
{
	struct state *s = ctx;
	int r = ghc_types_name(&s->walk, &s->images, types);

	for (uint64_t i = 0; r == 0 && i < s->walk.n; i++) {
		const struct ghc_object *o = &s->walk.objects[i];

		fn(fn_ctx, o->addr, 8 * (uint64_t)o->words, s->g.infos.rows[o->info].use);
	}
	return r;
}

/* --- edges --- */

struct edges {
	const struct state *s;
	exact_edge_fn fn;
	void *ctx;
};

/*
 * A pointer to a static object is none in the graph, for those are roots; nor is one to a thread, which keeps what it needs by
 * itself, not because somebody knows it. What is no pointer may be one of native code's.
 */
static void on_word(void *ctx, uint64_t w, uint32_t at, enum ghc_word what)
{
	const struct edges *e = ctx;
	bool in_heap = ghc_in_heap(&e->s->g, w);

	if ((what == GHC_POINTER || what == GHC_GUESS) && in_heap && !is_thread(e->s, w & ~7ULL))
		e->fn(e->ctx, w & ~7ULL, at);
	else if (what == GHC_DATA && !in_heap)
		e->fn(e->ctx, w, at);
}

static bool ghc_edges(void *ctx, const struct snapshot *snapshot, uint32_t node, exact_edge_fn fn,
		      void *fn_ctx)
{
	struct state *s = ctx;
	struct edges e = { s, fn, fn_ctx };
	uint64_t addr = snapshot->blocks.rows[node].addr;
	struct ghc_closure c;

	if (!ghc_closure_at(&s->g, addr, &c))
		return true;
	ghc_closure_words(&s->g, &c, true, on_word, &e);
	if (s->walk.n_weaks)
		ghc_walk_weaks(&s->walk, addr, on_word, &e);
	return true;
}

/* --- roots, and what is its own --- */

static bool ghc_owns(void *ctx, const struct heap_map *map)
{
	struct state *s = ctx;

	return map->start < s->g.end && map->end > s->g.begin;
}

static enum snapshot_root_kind kind_of(enum ghc_root_kind kind)
{
	switch (kind) {
	case GHC_ROOT_CAF:
		return SNAPSHOT_ROOT_CAF;
	case GHC_ROOT_THREAD:
		return SNAPSHOT_ROOT_GREEN;
	case GHC_ROOT_REGISTER:
	case GHC_ROOT_FOREIGN:
		return SNAPSHOT_ROOT_REGISTER;
	default:
		return SNAPSHOT_ROOT_STABLE;
	}
}

static char *root_text(const struct ghc_root *root)
{
	char text[ROOT_NAME_MAX];

	switch (root->kind) {
	case GHC_ROOT_THREAD:
		snprintf(text, sizeof(text), "%llu of Haskell", (unsigned long long)root->at);
		break;
	case GHC_ROOT_STABLE:
		snprintf(text, sizeof(text), "%llu", (unsigned long long)root->at);
		break;
	case GHC_ROOT_REGISTER:
		snprintf(text, sizeof(text), "R%llu", (unsigned long long)root->at);
		break;
	case GHC_ROOT_FOREIGN:
		snprintf(text, sizeof(text), "or the stack of C code that Haskell has called");
		break;
	case GHC_ROOT_WEAK:
		snprintf(text, sizeof(text), "of a weak pointer whose key is static");
		break;
	default:
		return NULL;
	}
	return strdup(text);
}

/* CAFs by the code that made their values, which they keep. */
struct caf {
	uint64_t code, root;
};

struct caf_names {
	struct state *s;
	const struct caf *cafs;
};

static void on_caf_name(void *ctx, uint32_t i, const char *name)
{
	struct caf_names *n = ctx;

	n->s->names[n->cafs[i].root] = strdup(name);
}

static int by_code(const void *a, const void *b)
{
	const struct caf *x = a, *y = b;

	if (x->code != y->code)
		return x->code < y->code ? -1 : 1;
	return (x->root > y->root) - (x->root < y->root);
}

static void name_cafs(struct state *s)
{
	_cleanup_(freep) struct caf *cafs = calloc(s->walk.n_roots + 1, sizeof(*cafs));
	_cleanup_(freep) uint64_t *addrs = calloc(s->walk.n_roots + 1, sizeof(*addrs));
	struct caf_names names = { s, cafs };
	uint32_t n = 0;

	for (uint64_t i = 0; cafs && addrs && i < s->walk.n_roots; i++)
		if (s->walk.roots[i].kind == GHC_ROOT_CAF)
			cafs[n++] =
				(struct caf){ word(&s->g, s->walk.roots[i].at + GHC_CAF_CODE), i };
	if (n)
		qsort(cafs, n, sizeof(*cafs), by_code);
	for (uint32_t i = 0; i < n; i++)
		addrs[i] = cafs[i].code;
	if (n)
		ghc_images_names(&s->images, addrs, n, on_caf_name, &names);
}

static void ghc_roots(void *ctx, const struct snapshot *snapshot, exact_root_fn fn, void *fn_ctx)
{
	struct state *s = ctx;

	(void)snapshot;
	s->names = calloc(s->walk.n_roots + 1, sizeof(*s->names));
	if (s->names)
		name_cafs(s);
	for (uint64_t i = 0; i < s->walk.n_roots; i++) {
		const struct ghc_root *root = &s->walk.roots[i];

		if (s->names && !s->names[i])
			s->names[i] = root_text(root);
		fn(fn_ctx,
		   &(struct exact_root){ root->addr, root->at, s->names ? s->names[i] : NULL,
					 kind_of(root->kind) });
	}
}

static void ghc_use(void *ctx, struct heap_use *use)
{
	struct state *s = ctx;
	const struct ghc_space *space = &s->space;
	uint32_t all = 0, old = 0;

	for (uint32_t i = 0; i < GHC_GENS_MAX; i++) {
		all += space->collections[i];
		old = space->gens[i] ? i : old;
	}
	snprintf(
		s->said, sizeof(s->said),
		"collected %u times, %u of them with the oldest generation; what is neither reached nor free is garbage until the next time, or the nursery",
		all, space->collections[old]);
	use->arenas = space->n_caps;
	use->free.bytes = space->free_blocks * GHC_BLOCK;
	use->metadata.bytes = (space->mblocks * GHC_FIRST_BLOCK + space->own) * (uint64_t)GHC_BLOCK;
	use->caveat = s->said;
}

static void ghc_caveats(void *ctx, exact_say_fn fn, void *fn_ctx)
{
	const struct state *s = ctx;
	uint32_t version = s->images.version;
	char text[256];

	if (!version) {
		fn(fn_ctx,
		   "GHC's version is not known: its objects are read as 9.0.2 lays them out");
	} else if (!s->g.layout->tested) {
		snprintf(
			text, sizeof(text),
			"GHC %u.%u.%u: how it lays out objects is known from its sources, and was never tried with a program",
			version >> 16, version >> 8 & 0xff, version & 0xff);
		fn(fn_ctx, text);
	}
	if (!s->stable_known)
		fn(fn_ctx,
		   "stable pointers are not known, for the program is stripped: what only native code refers to is missing");
	if (s->bad) {
		snprintf(text, sizeof(text),
			 "%llu references lead to nothing that GHC made: they are left out",
			 (unsigned long long)s->bad);
		fn(fn_ctx, text);
	}
	if (s->bad_frames) {
		snprintf(
			text, sizeof(text),
			"the frames of %llu stacks could not all be read: what looks like a reference there is taken for one",
			(unsigned long long)s->bad_frames);
		fn(fn_ctx, text);
	}
}

const struct exact_runtime exact_ghc = {
	.name = "GHC",
	.open = ghc_open,
	.close = state_close,
	.objects = ghc_objects,
	.owns = ghc_owns,
	.edges = ghc_edges,
	.roots = ghc_roots,
	.use = ghc_use,
	.caveats = ghc_caveats,
};
