/*
 * Memory of a Go program that a test writes itself, with the functions of go_image.h: runtime.allgs, goroutines, their
 * stacks, and the words for waits. All of it lies at GO_BASE:
 *
 *   0       runtime.allgs          0x800   runtime.waitReasonStrings, and its texts
 *   0x1000  the table of pointers  0x2000  goroutines, 0x200 bytes each
 *   0x4000  stacks, 0x400 bytes each
 */
#ifndef MEMSCOPE_TESTS_GOROUTINES_IMAGE_H
#define MEMSCOPE_TESTS_GOROUTINES_IMAGE_H

#include "lang/goroutines_parts.h"
#include "unit/elf/go_image.h"

#include <stdlib.h>

#define GO_BASE 0xc000000000ULL
#define GO_SIZE 0x8000

enum { AT_REASONS = 0x800, AT_TABLE = 0x1000, AT_G = 0x2000, AT_STACKS = 0x4000, REASON_IO = 2, REASON_SLEEP = 3 };

struct go_memory_image {
	uint8_t bytes[GO_SIZE];
	uint64_t reads;
	void (*after)(struct go_memory_image *im); /* each read; NULL: nothing */
};

static struct code_image go_code;

static inline void go_image_read(void *ctx, struct go_piece *pieces, uint32_t n)
{
	struct go_memory_image *im = ctx;

	im->reads++;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t off = pieces[i].addr - GO_BASE;

		pieces[i].there = pieces[i].addr >= GO_BASE && off <= GO_SIZE && pieces[i].len <= GO_SIZE - off;
		if (pieces[i].there)
			memcpy(pieces[i].to, im->bytes + off, pieces[i].len);
	}
	if (im->after)
		im->after(im);
}

static inline bool go_image_place(void *ctx, uint64_t vaddr, struct go_place *ret)
{
	static struct gopclntab *tab; /* each program here has the same */
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;

	(void)ctx;
	if (!tab && (elf_file_open_memory(go_code.bytes, go_code.len, "image", &elf, NULL) < 0 || gopclntab_open(elf, &tab, NULL) < 0))
		return false;
	*ret = go_place_read(tab, vaddr);
	return true;
}

static inline void go_image_put(struct go_memory_image *im, uint64_t off, uint64_t word)
{
	memcpy(im->bytes + off, &word, sizeof(word));
}

static inline void go_image_reason(struct go_memory_image *im, uint32_t i, const char *text)
{
	uint64_t at = AT_REASONS + 0x200 + 64 * (uint64_t)i;

	strcpy((char *)im->bytes + at, text);
	go_image_put(im, AT_REASONS + 16 * (uint64_t)i, GO_BASE + at);
	go_image_put(im, AT_REASONS + 16 * (uint64_t)i + 8, strlen(text));
}

/* A program as Go 1.19 has it, whose main goroutine runs main.main; free it. */
static inline struct go_program *go_image_program(void)
{
	struct go_program *p = calloc(1, sizeof(*p));

	code_init(&go_code);
	go_put(&go_code, 0xfffffff0, CODE_TEXT);
	code_finish(&go_code);
	p->version = 0x011308;
	p->layout = (struct goroutine_layout){ 56, 64, 112, 120, 144, 152, 168, 176, 189, 312, 24, 32, true };
	p->main = CODE_TEXT;
	p->allgs[p->n_allgs++] = GO_BASE;
	p->reasons[p->n_reasons++] = GO_BASE + AT_REASONS;
	return p;
}

/* Goroutine `i` (from 0) with two calls of main.main on its stack, in state `state` for reason `reason`. */
static inline void go_image_goroutine(struct go_memory_image *im, uint32_t i, uint32_t state, uint8_t reason)
{
	uint64_t g = AT_G + 0x200 * (uint64_t)i, stack = AT_STACKS + 0x400 * (uint64_t)i, sp = stack + 0x300;

	go_image_put(im, AT_TABLE + 8 * (uint64_t)i, GO_BASE + g);
	go_image_put(im, g, GO_BASE + stack);
	go_image_put(im, g + 8, GO_BASE + stack + 0x400);
	go_image_put(im, g + 56, GO_BASE + sp);
	go_image_put(im, g + 64, CODE_TEXT + 0x10);
	go_image_put(im, g + 144, state);
	go_image_put(im, g + 152, i + 1);
	im->bytes[g + 176] = reason;
	im->bytes[g + 189] = 7;
	go_image_put(im, g + 312, CODE_TEXT);
	go_image_put(im, sp + 24, CODE_TEXT + 0x20);
	go_image_put(im, sp + 32 + 24, CODE_TEXT + GO_FUNC_BYTES + 1); /* runtime.goexit */
}

static inline void go_image_fill(struct go_memory_image *im, uint32_t n)
{
	memset(im, 0, sizeof(*im));
	go_image_put(im, 0, GO_BASE + AT_TABLE);
	go_image_put(im, 8, n);
	go_image_put(im, 16, n + 8);
	go_image_reason(im, 0, "");
	go_image_reason(im, 1, "GC assist marking");
	go_image_reason(im, REASON_IO, "IO wait");
	go_image_reason(im, REASON_SLEEP, "sleep");
	for (uint32_t i = 0; i < n && i < 16; i++)
		go_image_goroutine(im, i, GOROUTINE_WAITING, REASON_SLEEP);
}

#endif
