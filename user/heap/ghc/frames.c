/*
 * Frames of stacks: a return address, which is an info pointer, and words that a bitmap describes, in which a set bit is no
 * pointer.
 *
 *   RET_SMALL and the run-time system's own   up to 58 words, the bitmap is in the info table: size in its lowest 6 bits
 *   RET_BIG       a bitmap of any size, which the info table has the offset of
 *   RET_FUN       a function and its arguments, by the function's bitmap: [info][size][function][arguments …]
 *   RET_BCO       byte code and what it needs, by its bitmap: [info][BCO][words …]
 */
#include "heap/ghc/ghc.h"

enum {
	SKIP_MAX = 64,
	SMALL_BITS = 6,
	BCO_BITMAP = 40,
	FRAME_WORDS_MAX = 1 << 20,
	ARG_PATTERN_FIRST = 3
};

/* enum of rts/storage/FunTypes.h: what arguments are, one letter a word. */
static const char *pattern_of(uint32_t fun_type)
{
	static const char *const patterns[] = {
		"",    "N",   "P",   "N",    "N",     "N",      "NN",      "NNNN",     "NNNNNNNN",
		"NN",  "NP",  "PN",  "PP",   "NNN",   "NNP",    "NPN",     "NPP",      "PNN",
		"PNP", "PPN", "PPP", "PPPP", "PPPPP", "PPPPPP", "PPPPPPP", "PPPPPPPP",
	};
	uint32_t i = fun_type - ARG_PATTERN_FIRST;

	return i < sizeof(patterns) / sizeof(*patterns) ? patterns[i] : NULL;
}

bool ghc_large_bits(struct ghc *g, uint64_t at, struct ghc_bits *ret_bits)
{
	uint64_t size;

	if (!ghc_word(g, at, &size) || size > FRAME_WORDS_MAX)
		return false;
	*ret_bits = (struct ghc_bits){ .size = size, .large = at + 8 };
	return true;
}

static struct ghc_bits small_bits(uint64_t bitmap)
{
	return (struct ghc_bits){ .size = bitmap & ((1 << SMALL_BITS) - 1),
				  .small = bitmap >> SMALL_BITS };
}

bool ghc_bit_is_pointer(struct ghc *g, const struct ghc_bits *bits, uint64_t bit)
{
	uint64_t w;

	if (bit >= bits->size)
		return false;
	if (!bits->large)
		return bit < 64 && !(bits->small >> bit & 1);
	return ghc_word(g, bits->large + bit / 64 * 8, &w) && !(w >> bit % 64 & 1);
}

bool ghc_fun_bits(struct ghc *g, uint64_t fun, struct ghc_bits *ret_bits)
{
	const struct ghc_info *i;
	const char *pattern;
	uint64_t at;

	if (!ghc_word(g, fun, &at))
		return false;
	i = ghc_info_of(g, at);
	if (i && i->type == GHC_BCO)
		return ghc_large_bits(g, fun + BCO_BITMAP, ret_bits);
	if (!i || !ghc_is_fun(i->type))
		return false;
	if (i->fun_type == 0) {
		*ret_bits = small_bits(i->fun_bitmap);
		return true;
	}
	if (i->fun_type == 1)
		return ghc_large_bits(g, at + (uint64_t)(int64_t)(int32_t)i->fun_bitmap, ret_bits);
	pattern = pattern_of(i->fun_type);
	if (!pattern)
		return false;
	*ret_bits = (struct ghc_bits){ 0 };
	for (; pattern[ret_bits->size]; ret_bits->size++)
		ret_bits->small |= (uint64_t)(pattern[ret_bits->size] != 'P') << ret_bits->size;
	return true;
}

struct frame {
	struct ghc_info info;
	struct ghc_bits bits;
	uint64_t head;     /* words before those that the bitmap describes */
	uint64_t pointers; /* … of which this one is a pointer; 0: none      */
};

static bool is_small(enum ghc_type t)
{
	return t == GHC_RET_SMALL || (t >= GHC_UPDATE_FRAME && t <= GHC_STOP_FRAME) ||
	       (t >= GHC_ATOMICALLY_FRAME && t <= GHC_CATCH_STM_FRAME);
}

static bool read_frame(struct ghc *g, uint64_t sp, struct frame *f)
{
	const struct ghc_info *info;
	uint64_t at, size, fun;

	if (!ghc_word(g, sp, &at))
		return false;
	info = ghc_info_of(g, at);
	if (!info)
		return false;
	*f = (struct frame){ .info = *info, .head = 1 };
	if (is_small(f->info.type)) {
		f->bits = small_bits(f->info.layout);
		return true;
	}
	switch (f->info.type) {
	case GHC_RET_BIG:
		return ghc_large_bits(g, at + (uint64_t)(int64_t)(int32_t)f->info.layout, &f->bits);
	case GHC_RET_FUN:
		f->head = 3;
		f->pointers = 2;
		if (!ghc_word(g, sp + 8, &size) || !ghc_word(g, sp + 16, &fun) ||
		    size > FRAME_WORDS_MAX || !ghc_fun_bits(g, fun & ~7ULL, &f->bits))
			return false;
		/* As many as were passed: fewer than the function takes, or more. */
		f->bits.size = size < f->bits.size ? size : f->bits.size;
		f->head += size - f->bits.size;
		return true;
	case GHC_RET_BCO:
		f->head = 2;
		f->pointers = 1;
		return ghc_word(g, sp + 8, &fun) &&
		       ghc_large_bits(g, (fun & ~7ULL) + BCO_BITMAP, &f->bits);
	default:
		return false;
	}
}

static void frame_words(struct ghc *g, uint64_t base, uint64_t sp, const struct frame *f,
			enum ghc_word what, ghc_word_fn fn, void *ctx)
{
	/* Of RET_FUN the words that no bitmap describes are behind the others. */
	uint64_t first = f->info.type == GHC_RET_FUN ? 3 : f->head, w;

	if (f->info.srt)
		fn(ctx, f->info.srt, (uint32_t)(sp - base), GHC_SRT);
	if (f->pointers && ghc_word(g, sp + 8 * f->pointers, &w))
		fn(ctx, w, (uint32_t)(sp + 8 * f->pointers - base), what);
	for (uint64_t i = 0; i < f->bits.size; i++) {
		uint64_t at = sp + 8 * (first + i);

		if (ghc_bit_is_pointer(g, &f->bits, i) && ghc_word(g, at, &w))
			fn(ctx, w, (uint32_t)(at - base), what);
	}
}

/* Code that runs may be about to write the frame at the top of its stack, word by word: what is there may be left from before. */
static enum ghc_word top_words(const struct ghc *g, uint64_t sp)
{
	for (uint32_t i = 0; i < g->n_running; i++)
		if (g->running[i].sp == sp)
			return GHC_GUESS;
	return GHC_POINTER;
}

static uint64_t words_of(const struct frame *f)
{
	return f->head + f->bits.size;
}

/* Where there are no frames that can be read, or not yet: what looks like a pointer is one. */
static void guess(struct ghc *g, uint64_t base, uint64_t from, uint64_t end, ghc_word_fn fn,
		  void *ctx)
{
	uint64_t w;

	for (; from + 8 <= end; from += 8)
		if (ghc_word(g, from, &w) && ghc_looks_like_pointer(g, w))
			fn(ctx, w, (uint32_t)(from - base), GHC_GUESS);
}

bool ghc_frames_sound(struct ghc *g, uint64_t sp, uint64_t end)
{
	struct frame f;

	while (sp + 8 <= end) {
		if (!read_frame(g, sp, &f) || words_of(&f) > (end - sp) / 8)
			return false;
		sp += 8 * words_of(&f);
	}
	return sp == end;
}

/* A function that has just been entered has its arguments there, and frames behind them: where those begin; 0: nowhere. */
static uint64_t skip(struct ghc *g, uint64_t sp, uint64_t end)
{
	for (uint64_t i = 1; i <= SKIP_MAX && sp + 8 * i < end; i++)
		if (ghc_frames_sound(g, sp + 8 * i, end))
			return sp + 8 * i;
	return 0;
}

void ghc_frames(struct ghc *g, uint64_t base, uint64_t sp, uint64_t end, ghc_word_fn fn, void *ctx)
{
	enum ghc_word what = top_words(g, sp);
	struct frame f;

	while (sp + 8 <= end) {
		if (!read_frame(g, sp, &f) || words_of(&f) > (end - sp) / 8) {
			uint64_t next = skip(g, sp, end);

			g->bad_frames += !next;
			guess(g, base, sp, next ? next : end, fn, ctx);
			if (!next)
				return;
			sp = next;
			continue;
		}
		frame_words(g, base, sp, &f, what, fn, ctx);
		what = GHC_POINTER;
		sp += 8 * words_of(&f);
	}
}
