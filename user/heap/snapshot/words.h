/*
 * The words of a copy: of a stretch of memory, and those that a stopped thread works with.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_WORDS_H
#define MEMSCOPE_HEAP_SNAPSHOT_WORDS_H

#include "heap/snapshot/snapshot.h"

#include <string.h>

typedef void (*word_fn)(void *ctx, uint64_t addr, uint64_t word);

/* Each word of [from, end) that was ever written, but for zeros. Returns how many were looked at. */
static inline uint64_t words_each(struct copy *copy, uint64_t from, uint64_t end, word_fn fn, void *ctx)
{
	uint64_t n = 0;

	for (uint64_t addr = (from + 7) & ~7ULL, len; addr + 8 <= end; addr += len) {
		const uint8_t *bytes = copy_bytes(copy, addr, &len);

		if (len > end - addr)
			len = end - addr;
		len -= len % 8;
		if (!len)
			break;
		for (uint64_t i = 0; bytes && i < len; i += 8) {
			uint64_t word;

			memcpy(&word, bytes + i, 8);
			if (word)
				fn(ctx, addr + i, word);
		}
		n += len / 8;
	}
	return n;
}

enum thread_word {
	THREAD_WORD_REGISTER, /* `at`: its number; from STOP_REGS_MAX on of words of the floating-point ones */
	THREAD_WORD_STACK,    /* from the stack pointer, and what may lie below it, to where its TLS begins   */
	THREAD_WORD_TLS,      /* behind it, in the same mapping                                             */
};

typedef void (*thread_word_fn)(void *ctx, enum thread_word kind, uint64_t at, uint64_t word);

/*
 * Each word but for zeros. Floating-point registers, in which compilers move pointers two and more at a time, count while the
 * thread computes: across a system call none of them is kept, and what they have is what was there before. A stack that is a
 * block (a coroutine's) ends with the block. Returns how many were looked at.
 */
uint64_t thread_words(const struct snapshot *s, const struct stopped_thread *t, thread_word_fn fn, void *ctx);
/*
 * Is the mapping the stack of a thread that runs on another one now: in a handler of signals, or a coroutine? Where on it that
 * thread will go on is not known.
 */
bool thread_left_stack(const struct snapshot *s, const struct heap_map *m);

#endif
