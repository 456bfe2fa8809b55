/*
 * Which of many addresses of a process lie in blocks that are in use, and how large those are: one pass
 * over its allocators' structures (census.h) answers for all of them.
 *
 * The process goes on meanwhile: each answer is of some moment of the pass. An answer is
 *
 *   HEAP_IN_USE      a block that the program holds; in a thread's cache it is not, where the walker
 *                    separates those (glibc)
 *   HEAP_FREE        nothing in use is there
 *   HEAP_CANNOT_SAY  it lies in a part of a heap that could not be walked, or whose chunks did not add up
 *                    although they were read again; or the list of blocks was full, which makes
 *                    `incomplete`: then no answer is HEAP_FREE
 *
 * Which addresses those are may be said beforehand: then only their blocks are listed, and memory does not grow
 * with the heap. Where all blocks are asked for and there is no room for them, a sample of them is listed.
 */
#ifndef MEMSCOPE_HEAP_IN_USE_H
#define MEMSCOPE_HEAP_IN_USE_H

#include "base/cleanup.h"
#include "base/err.h"
#include "heap/census.h"

#include <sys/types.h>

/* What is to be listed: `max` blocks at most. */
struct heap_wanted {
	uint64_t max;
	const uint64_t *addrs;      /* the only ones that will be asked about, sorted; NULL: any */
	uint64_t n_addrs;
	bool sample;                /* about one block in `one_in` is enough where there are more than `max` */
	bool objects;               /* those of interpreters as well                        */
	uint32_t (*class_of)(uint64_t words); /* blocks.h; NULL                             */
	struct heap_found *found;   /* of the process, from one look to the next; NULL     */
};

struct heap_in_use {
	struct heap_blocks blocks;  /* those that are listed, by address                   */
	double one_in;              /* 1: all that are wanted; else a sample of them       */
	uint64_t live_bytes;        /* of all, listed or not                               */
	uint64_t unknown_bytes;     /* held by allocators, in use or not                   */
	uint64_t objects_bytes;     /* interpreters' objects in use, where they are not wanted */
	bool incomplete;
	bool cached;                /* blocks in caches of threads are among those in use   */
	bool glibc;                 /* all of them are glibc's                              */
	char allocators[96];        /* "glibc, jemalloc"; "": none that is known            */
};

/* Of memory; or of a live process, within `budget_ns` of this thread's CPU time.
 * *ret_in_use is the caller's to give to heap_in_use_fini(). -ESRCH, -EACCES, -EPERM, -ENOMEM. */
int heap_in_use_of(const struct heap_memory *mem, const struct heap_wanted *wanted,
		   struct heap_in_use *ret_in_use);
int heap_in_use_take(pid_t pid, int64_t budget_ns, const struct heap_wanted *wanted,
		     struct heap_in_use *ret_in_use, struct err *e);
void heap_in_use_fini(struct heap_in_use *u);

/* The answer for one address, O(log n); *ret_bytes is set to the usable bytes from there to the block's
 * end if it is in use. Blocks are used from their first byte on, but for large ones that were aligned. */
enum heap_answer heap_in_use_at(const struct heap_in_use *u, uint64_t addr, uint64_t *ret_bytes);

/* The usable size that a request for `size` bytes gets of these allocators, about. */
uint64_t heap_in_use_room(const struct heap_in_use *u, uint64_t size);

#endif
