/*
 * A child process works on copies of its parent's pages. What it allocates, the allocator takes from what the parent had freed, in
 * small pieces between what is in use: each piece is a page to be copied, and lists of them are walked. A thread allocates from
 * a heap of its own.
 */
#ifndef MEMSCOPE_BASE_FRESH_HEAP_H
#define MEMSCOPE_BASE_FRESH_HEAP_H

/* In a child that has one thread: calls `fn`, which may end the process, with such a heap; without one where no thread can be had. */
void with_fresh_heap(void (*fn)(void *ctx), void *ctx);

#endif
