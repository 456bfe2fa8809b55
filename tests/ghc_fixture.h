/* A heap of GHC's made by hand: one megablock, and code with info tables, in two stretches of memory. */
#ifndef TESTS_GHC_FIXTURE_H
#define TESTS_GHC_FIXTURE_H

#include "heap/ghc/walk.h"

#include <stdlib.h>
#include <string.h>

#define GHC_AT     0x4200000000ULL
#define GHC_CODE   0x400000ULL
#define GHC_STATIC 0x500000ULL

enum { GHC_LEN = GHC_MBLOCK, GHC_CODE_LEN = 8192, GHC_STATIC_LEN = 8192, GHC_HEAP_FROM = 0x10000 };

struct ghc_fixture {
	uint8_t *heap, *code, *data;
	struct heap_range range;
	uint64_t next_info, next_static, next;
	struct ghc g;
};

static inline const uint8_t *ghc_fixture_piece(void *ctx, uint64_t addr, uint64_t *ret_len)
{
	struct ghc_fixture *f = ctx;

	if (addr < GHC_AT || addr >= GHC_AT + GHC_LEN) {
		*ret_len = 0;
		return NULL;
	}
	*ret_len = GHC_AT + GHC_LEN - addr;
	return f->heap + (addr - GHC_AT);
}

static inline uint8_t *ghc_fixture_at(struct ghc_fixture *f, uint64_t addr, uint64_t len)
{
	if (addr >= GHC_CODE && addr < GHC_CODE + GHC_CODE_LEN && len <= GHC_CODE + GHC_CODE_LEN - addr)
		return f->code + (addr - GHC_CODE);
	if (addr >= GHC_STATIC && addr < GHC_STATIC + GHC_STATIC_LEN && len <= GHC_STATIC + GHC_STATIC_LEN - addr)
		return f->data + (addr - GHC_STATIC);
	if (addr >= GHC_AT && addr < GHC_AT + GHC_LEN && len <= GHC_AT + GHC_LEN - addr)
		return f->heap + (addr - GHC_AT);
	return NULL;
}

static inline bool ghc_fixture_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const uint8_t *at = ghc_fixture_at(ctx, addr, len);

	if (at)
		memcpy(buf, at, len);
	return at != NULL;
}

static inline void ghc_put(struct ghc_fixture *f, uint64_t addr, uint64_t value, size_t bytes)
{
	uint8_t *at = ghc_fixture_at(f, addr, bytes);

	if (at)
		memcpy(at, &value, bytes);
}

static inline void ghc_fixture_init(struct ghc_fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->heap = calloc(1, GHC_LEN);
	f->code = calloc(1, GHC_CODE_LEN);
	f->data = calloc(1, GHC_STATIC_LEN);
	if (!f->heap || !f->code || !f->data)
		abort();
	f->range = (struct heap_range){ GHC_CODE, GHC_CODE + GHC_CODE_LEN };
	f->next_info = GHC_CODE + 64;
	f->next_static = GHC_STATIC;
	f->next = GHC_AT + GHC_HEAP_FROM;
	f->g = (struct ghc){ .layout = ghc_layout_of(GHC_TESTED_VERSION),
			     .mem = { ghc_fixture_piece, ghc_fixture_read, f },
			     .begin = GHC_AT,
			     .end = GHC_AT + GHC_LEN,
			     .code = &f->range,
			     .n_code = 1 };
}

static inline void ghc_fixture_fini(struct ghc_fixture *f)
{
	ghc_fini(&f->g);
	free(f->heap);
	free(f->code);
	free(f->data);
}

/* The info pointer of a new info table. `srt`: the address of a static closure; 0: none. */
static inline uint64_t ghc_info(struct ghc_fixture *f, enum ghc_type type, uint64_t layout, uint64_t srt)
{
	uint64_t at = f->next_info;

	f->next_info += 64;
	ghc_put(f, at - 16, layout, 8);
	ghc_put(f, at - 8, type, 4);
	ghc_put(f, at - 4, srt ? (uint32_t)(srt - at) : 0, 4);
	return at;
}

static inline uint64_t ghc_fun_info(struct ghc_fixture *f, enum ghc_type type, uint64_t layout, uint32_t fun_type,
				    uint64_t bitmap)
{
	uint64_t at = ghc_info(f, type, layout, 0);

	ghc_put(f, at - 24, fun_type, 4);
	ghc_put(f, at - 32, bitmap, 8);
	return at;
}

/* Behind the one before: its words. */
static inline uint64_t ghc_put_closure(struct ghc_fixture *f, const uint64_t *words, size_t n)
{
	uint64_t at = f->next;

	for (size_t i = 0; i < n; i++)
		ghc_put(f, at + 8 * i, words[i], 8);
	f->next += 8 * n;
	return at;
}

static inline uint64_t ghc_put_static(struct ghc_fixture *f, const uint64_t *words, size_t n)
{
	uint64_t at = f->next_static;

	for (size_t i = 0; i < n; i++)
		ghc_put(f, at + 8 * i, words[i], 8);
	f->next_static += 8 * n;
	return at;
}

#define GHC_CLOSURE(f, ...)                                                                        \
	ghc_put_closure(f, (const uint64_t[]){ __VA_ARGS__ },                                      \
			sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8)
#define GHC_PUT_STATIC(f, ...)                                                                     \
	ghc_put_static(f, (const uint64_t[]){ __VA_ARGS__ },                                       \
		       sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8)
#define GHC_SIZES(ptrs, nptrs) ((uint64_t)(ptrs) | (uint64_t)(nptrs) << 32)

#endif
