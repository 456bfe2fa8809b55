/*
 * A process's memory made of bytes at one place, for what reads the runtimes of languages: tests and the fuzzers fill it.
 */
#ifndef MEMSCOPE_TESTS_FAKE_PROCESS_H
#define MEMSCOPE_TESTS_FAKE_PROCESS_H

#include "lang/lang.h"

#include <string.h>

struct fake_process {
	uint64_t start; /* address of the first of `bytes` */
	uint8_t *bytes; /* borrowed */
	size_t len;
	struct lang_memory mem;
	uint64_t reads;
	/* Before the read with this number, 8 bytes at `change_at` become `change_to`. */
	uint64_t change, change_to;
	uint32_t change_at;
	uint32_t hole, hole_len; /* not mapped */
};

/* Nothing is where 8 bytes would not fit. */
static inline void fake_process_put(struct fake_process *f, uint32_t off, uint64_t value, size_t len)
{
	if (off <= f->len - 8)
		memcpy(f->bytes + off, &value, len);
}

static inline bool fake_process_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct fake_process *f = ctx;
	uint64_t off = addr - f->start;

	if (++f->reads == f->change)
		fake_process_put(f, f->change_at, f->change_to, 8);
	if (off > f->len || len > f->len - off ||
	    (f->hole_len && off < f->hole + f->hole_len && off + len > f->hole))
		return false;
	memcpy(buf, f->bytes + off, len);
	return true;
}

static inline void fake_process_init(struct fake_process *f, uint64_t start, uint8_t *bytes, size_t len)
{
	*f = (struct fake_process){ .start = start, .bytes = bytes, .len = len, .mem = { fake_process_read, f } };
}

#endif
