/*
 * A heap of GHC's as anyone may have written it, code and static objects, too: the walk ends, and the objects that it finds lie in
 * the heap, each apart.
 *
 *   { op:1 offset:2 word:8 }…   op & 3: in which stretch of memory, 8 * offset into it; op >> 2 & 3: what the word counts from:
 *                               0, the heap's objects, an info pointer of the code, the static objects
 */
#include "base/bytes.h"
#include "ghc_fixture.h"
#include "heap/ghc/source_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Descriptors, objects, code, static objects with a generation among them. */
static const uint64_t places[] = { GHC_AT, GHC_AT + GHC_HEAP_FROM, GHC_CODE, GHC_STATIC };

static bool put_word(struct ghc_fixture *f, struct bytes *in)
{
	static const uint64_t from[] = { 0, GHC_AT + GHC_HEAP_FROM, GHC_CODE, GHC_STATIC };
	uint16_t offset;
	uint64_t word;
	uint8_t op;

	if (bytes_u8(in, &op) < 0 || bytes_u16(in, &offset) < 0 || bytes_u64(in, &word) < 0)
		return false;
	ghc_put(f, places[op & 3] + 8ULL * offset, word + from[op >> 2 & 3], 8);
	return true;
}

static void count_word(void *ctx, uint64_t word, uint32_t at, enum ghc_word what)
{
	(void)word;
	(void)at;
	(void)what;
	++*(uint64_t *)ctx;
}

static void check(struct ghc_fixture *f, const struct ghc_walk *w)
{
	uint64_t end = f->g.begin, words = 0;

	for (uint64_t i = 0; i < w->n; i++) {
		const struct ghc_object *o = &w->objects[i];
		struct ghc_closure c = { o->addr, f->g.infos.rows[o->info], o->words };

		if (o->addr < end || !o->words || o->words > (f->g.end - o->addr) / 8)
			abort();
		end = o->addr + 8ULL * o->words;
		ghc_closure_words(&f->g, &c, true, count_word, &words);
	}
}

static bool any(void *ctx, uint64_t info)
{
	(void)ctx;
	return info != 0;
}

static void on_source(void *ctx, uint64_t info, const struct ghc_source *s)
{
	(void)ctx;
	(void)info;
	if (strlen(s->label) + strlen(s->module) + strlen(s->position) > 3ul * GHC_SOURCE_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = bytes_of(data, len);
	struct ghc_space space = { 0 };
	struct ghc_fixture f;
	struct ghc_walk w;
	char name[256];

	ghc_fixture_init(&f);
	for (uint64_t i = GHC_FIRST_BLOCK; i < 256; i++)
		ghc_put(&f, GHC_AT + 64 * i, GHC_AT + 4096 * i, 8);
	while (put_word(&f, &in))
		;
	ghc_space_read(&f.g, &space);
	space.gens[7] = GHC_STATIC;
	if (ghc_walk_begin(&w, &f.g, &space) < 0)
		abort();
	ghc_walk_root(&w, GHC_ROOT_STABLE, GHC_AT + GHC_HEAP_FROM, 1);
	f.g.running[f.g.n_running++] =
		(struct ghc_running){ GHC_AT + GHC_HEAP_FROM, GHC_AT + GHC_HEAP_FROM + 32 };
	if (ghc_walk_finish(&w) < 0)
		abort();
	check(&f, &w);
	for (uint32_t i = 0; i < f.g.infos.n; i++)
		if (ghc_constr_name(&f.g, f.g.infos.rows[i].at, name, sizeof(name)) && !*name)
			abort();
	ghc_source_map_read(&f.g, GHC_STATIC + GHC_STATIC_LEN / 2, any, on_source, NULL);
	ghc_walk_fini(&w);
	ghc_fixture_fini(&f);
	return 0;
}
