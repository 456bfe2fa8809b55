#include "heap/ghc/ghc.h"

enum { THUNK_HEADER = 16, STATIC_WORDS_MAX = 1 << 24 };

static uint64_t word(struct ghc *g, uint64_t addr)
{
	uint64_t w;

	return ghc_word(g, addr, &w) ? w : 0;
}

static uint32_t low_half(uint64_t w)
{
	return (uint32_t)w;
}

/* Of those that are not laid out by their info table alone. */
static uint64_t words_of(struct ghc *g, uint64_t addr, const struct ghc_info *i)
{
	switch (i->type) {
	case GHC_THUNK:
	case GHC_THUNK_1_0:
	case GHC_THUNK_0_1:
	case GHC_THUNK_2_0:
	case GHC_THUNK_1_1:
	case GHC_THUNK_0_2:
		return 2 + (uint64_t)i->ptrs + i->nptrs;
	case GHC_THUNK_STATIC:
	case GHC_IND_STATIC:
	case GHC_MVAR_CLEAN:
	case GHC_MVAR_DIRTY:
		return 4;
	case GHC_THUNK_SELECTOR:
	case GHC_TVAR:
		return 3;
	case GHC_BCO:
		return word(g, addr + 32) >> 32;
	case GHC_AP:
		return 4 + (word(g, addr + 16) >> 32);
	case GHC_PAP:
		return 3 + (word(g, addr + 8) >> 32);
	case GHC_AP_STACK:
		return 4 + word(g, addr + 16);
	case GHC_IND:
	case GHC_BLACKHOLE:
	case GHC_MUT_VAR_CLEAN:
	case GHC_MUT_VAR_DIRTY:
	case GHC_WHITEHOLE:
		return 2;
	case GHC_BLOCKING_QUEUE:
		return 5;
	case GHC_ARR_WORDS:
		return 2 + word(g, addr + 8) / 8 + (word(g, addr + 8) % 8 != 0);
	case GHC_MUT_ARR_PTRS_CLEAN:
	case GHC_MUT_ARR_PTRS_DIRTY:
	case GHC_MUT_ARR_PTRS_FROZEN_DIRTY:
	case GHC_MUT_ARR_PTRS_FROZEN_CLEAN:
		return 3 + word(g, addr + 16);
	case GHC_SMALL_MUT_ARR_PTRS_CLEAN:
	case GHC_SMALL_MUT_ARR_PTRS_DIRTY:
	case GHC_SMALL_MUT_ARR_PTRS_FROZEN_DIRTY:
	case GHC_SMALL_MUT_ARR_PTRS_FROZEN_CLEAN:
		return 2 + word(g, addr + 8);
	case GHC_WEAK:
		return 6;
	case GHC_TSO:
		return g->layout->tso_words;
	case GHC_STACK:
		return 3 + (uint64_t)low_half(word(g, addr + GHC_STACK_SIZE));
	case GHC_TREC_CHUNK:
		return 3 + GHC_TREC_ENTRIES * (g->threaded ? 4 : 3);
	case GHC_COMPACT_NFDATA:
		return 10;
	case GHC_CONTINUATION:
		return 4 + word(g, addr + 24);
	case GHC_RET_BCO:
	case GHC_RET_SMALL:
	case GHC_RET_BIG:
	case GHC_RET_FUN:
	case GHC_UPDATE_FRAME:
	case GHC_CATCH_FRAME:
	case GHC_UNDERFLOW_FRAME:
	case GHC_STOP_FRAME:
	case GHC_ATOMICALLY_FRAME:
	case GHC_CATCH_RETRY_FRAME:
	case GHC_CATCH_STM_FRAME:
		return 0;
	default: /* constructors, functions, PRIM, MUT_PRIM */
		return 1 + (uint64_t)i->ptrs + i->nptrs;
	}
}

bool ghc_closure_at(struct ghc *g, uint64_t addr, struct ghc_closure *ret_closure)
{
	const struct ghc_info *i;
	uint64_t at, most;

	if (addr % 8 || !ghc_word(g, addr, &at)) {
		g->bad++;
		return false;
	}
	if (at & 1 && ghc_in_heap(g, addr)) {
		g->forwarded++;
		return false;
	}
	i = ghc_info_of(g, at);
	if (!i)
		return false;
	*ret_closure = (struct ghc_closure){ addr, *i, 0 };
	if (i->type != GHC_INVALID)
		ret_closure->words = words_of(g, addr, i);
	most = ghc_in_heap(g, addr) ? (g->end - addr) / 8 : STATIC_WORDS_MAX;
	if (!ret_closure->words || ret_closure->words > most) {
		g->bad++;
		return false;
	}
	return true;
}

bool ghc_looks_like_pointer(struct ghc *g, uint64_t w)
{
	uint64_t bad = g->bad, forwarded = g->forwarded;
	struct ghc_closure c;
	bool is = ghc_in_heap(g, w) && ghc_closure_at(g, w & ~7ULL, &c);

	g->bad = bad;
	g->forwarded = forwarded;
	return is;
}

/* --- the words of a closure --- */

struct put {
	struct ghc *g;
	uint64_t addr, words;
	bool data;
	ghc_word_fn fn;
	void *ctx;
};

static void pointers(const struct put *p, uint64_t from, uint64_t n)
{
	for (uint64_t i = from / 8; n && i < p->words; i++, n--)
		p->fn(p->ctx, word(p->g, p->addr + 8 * i), (uint32_t)(8 * i), GHC_POINTER);
}

static void data(const struct put *p, uint64_t from, uint64_t n)
{
	for (uint64_t i = from / 8; p->data && n && i < p->words; i++, n--) {
		uint64_t w = word(p->g, p->addr + 8 * i);

		if (w)
			p->fn(p->ctx, w, (uint32_t)(8 * i), GHC_DATA);
	}
}

/* The arguments that a function was applied to, by what it says of them. */
static void arguments(const struct put *p, uint64_t fun, uint64_t from, uint64_t n)
{
	struct ghc_bits bits;

	if (!ghc_fun_bits(p->g, fun & ~7ULL, &bits)) {
		p->g->bad_frames++;
		return;
	}
	for (uint64_t i = 0; i < n && from / 8 + i < p->words; i++)
		if (ghc_bit_is_pointer(p->g, &bits, i))
			pointers(p, from + 8 * i, 1);
		else
			data(p, from + 8 * i, 1);
}

/* The chunks of a transaction: entries of a TVar, the value it had, the one it gets, and with threads a count. */
static void entries(const struct put *p)
{
	uint64_t stride = p->g->threaded ? 4 : 3, n = word(p->g, p->addr + 16);

	pointers(p, 8, 1);
	for (uint64_t i = 0; i < n && i < GHC_TREC_ENTRIES; i++)
		pointers(p, 24 + 8 * stride * i, 3);
}

static void thread(const struct put *p)
{
	uint64_t why = word(p->g, p->addr + GHC_TSO_BLOCK_INFO);

	pointers(p, GHC_TSO_LINK, 1);
	pointers(p, GHC_TSO_STACK, 1);
	/* What it waits for, if that is a closure: it may be a file's number, or a time. */
	if (ghc_looks_like_pointer(p->g, why))
		pointers(p, GHC_TSO_BLOCK_INFO, 1);
	pointers(p, GHC_TSO_TREC, 1);
	for (size_t i = 0; i < sizeof(p->g->layout->tso_pointers); i++)
		if (p->g->layout->tso_pointers[i])
			pointers(p, p->g->layout->tso_pointers[i], 1);
}

static void stack(const struct put *p)
{
	uint64_t sp = word(p->g, p->addr + GHC_STACK_SP), end = p->addr + 8 * p->words;

	for (uint32_t i = 0; i < p->g->n_running; i++)
		if (p->g->running[i].stack == p->addr)
			sp = p->g->running[i].sp;
	if (sp % 8 || sp < p->addr + GHC_STACK_WORDS || sp > end) {
		p->g->bad_frames++;
		return;
	}
	ghc_frames(p->g, p->addr, sp, end, p->fn, p->ctx);
}

static void by_type(const struct put *p, const struct ghc_info *i)
{
	switch (i->type) {
	case GHC_THUNK:
	case GHC_THUNK_1_0:
	case GHC_THUNK_0_1:
	case GHC_THUNK_2_0:
	case GHC_THUNK_1_1:
	case GHC_THUNK_0_2:
		pointers(p, THUNK_HEADER, i->ptrs);
		data(p, THUNK_HEADER + 8ULL * i->ptrs, i->nptrs);
		break;
	case GHC_THUNK_STATIC:
		break;
	case GHC_THUNK_SELECTOR:
		pointers(p, 16, 1);
		break;
	case GHC_BCO:
		pointers(p, 8, 3);
		break;
	case GHC_AP:
		pointers(p, 24, 1);
		arguments(p, word(p->g, p->addr + 24), 32, p->words - 4);
		break;
	case GHC_PAP:
		pointers(p, 16, 1);
		arguments(p, word(p->g, p->addr + 16), 24, p->words - 3);
		break;
	case GHC_AP_STACK:
		pointers(p, 24, 1);
		ghc_frames(p->g, p->addr, p->addr + 32, p->addr + 8 * p->words, p->fn, p->ctx);
		break;
	case GHC_CONTINUATION:
		ghc_frames(p->g, p->addr, p->addr + 32, p->addr + 8 * p->words, p->fn, p->ctx);
		break;
	case GHC_IND:
	case GHC_IND_STATIC:
	case GHC_BLACKHOLE:
	case GHC_MUT_VAR_CLEAN:
	case GHC_MUT_VAR_DIRTY:
		pointers(p, 8, 1);
		break;
	case GHC_BLOCKING_QUEUE:
		pointers(p, 8, 4);
		break;
	case GHC_MVAR_CLEAN:
	case GHC_MVAR_DIRTY:
		pointers(p, 8, 3);
		break;
	case GHC_TVAR:
		pointers(p, 8, 2);
		break;
	case GHC_ARR_WORDS:
		data(p, 16, p->words - 2);
		break;
	case GHC_MUT_ARR_PTRS_CLEAN:
	case GHC_MUT_ARR_PTRS_DIRTY:
	case GHC_MUT_ARR_PTRS_FROZEN_DIRTY:
	case GHC_MUT_ARR_PTRS_FROZEN_CLEAN:
		pointers(p, 24, word(p->g, p->addr + 8));
		break;
	case GHC_SMALL_MUT_ARR_PTRS_CLEAN:
	case GHC_SMALL_MUT_ARR_PTRS_DIRTY:
	case GHC_SMALL_MUT_ARR_PTRS_FROZEN_DIRTY:
	case GHC_SMALL_MUT_ARR_PTRS_FROZEN_CLEAN:
		pointers(p, 16, word(p->g, p->addr + 8));
		break;
	case GHC_WEAK: /* its key it does not keep; what it keeps, its key does (walk.c) */
		pointers(p, GHC_WEAK_CFINALIZERS, 1);
		pointers(p, GHC_WEAK_VALUE, 2);
		break;
	case GHC_TSO:
		thread(p);
		break;
	case GHC_STACK:
		stack(p);
		break;
	case GHC_TREC_CHUNK:
		entries(p);
		break;
	case GHC_COMPACT_NFDATA:
	case GHC_WHITEHOLE:
		break;
	default:
		pointers(p, 8, i->ptrs);
		data(p, 8 + 8ULL * i->ptrs, i->nptrs);
	}
}

void ghc_closure_words(struct ghc *g, const struct ghc_closure *c, bool with_data, ghc_word_fn fn,
		       void *ctx)
{
	const struct put p = { g, c->addr, c->words, with_data, fn, ctx };

	if (c->info.srt && (ghc_is_fun(c->info.type) || ghc_is_thunk(c->info.type)))
		fn(ctx, c->info.srt, 0, GHC_SRT);
	by_type(&p, &c->info);
}
