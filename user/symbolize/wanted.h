/*
 * The addresses asked for in one image, given out to whoever covers them: first come, first
 * served. Whoever wants the last to win gives out from the end. Linear in all, whatever the
 * ranges: an address that is taken is never looked at again.
 */
#ifndef MEMSCOPE_SYMBOLIZE_WANTED_H
#define MEMSCOPE_SYMBOLIZE_WANTED_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct wanted {
	const uint64_t *vaddrs;  /* ascending; borrowed                     */
	uint32_t n;
	uint32_t *owner;         /* 0: nobody's                             */
	uint32_t *next;          /* the first that is free, from here on    */
};

/* 0 or -ENOMEM. */
int wanted_init(struct wanted *w, const uint64_t *vaddrs, uint32_t n);
void wanted_fini(struct wanted *w);

/* The number of the first that is not below `vaddr`; n when all are. O(log n). */
uint32_t wanted_first(const struct wanted *w, uint64_t vaddr);
/* Does [start, start + size) hold any, free or not? */
bool wanted_any(const struct wanted *w, uint64_t start, uint64_t size);
/* Gives those of [start, start + size) that are free to `owner` (not 0). True when there was one. */
bool wanted_give(struct wanted *w, uint64_t start, uint64_t size, uint32_t owner);
/* 0: nobody's, or not asked for. O(log n). */
uint32_t wanted_owner(const struct wanted *w, uint64_t vaddr);

#endif
