/*
 * The addresses asked for in one image, each owned by the first range that covers it. To let the
 * last range win, start from the end. Linear in all, whatever the ranges: an owned address is not
 * visited again.
 */
#ifndef MEMSCOPE_SYMBOLIZE_WANTED_H
#define MEMSCOPE_SYMBOLIZE_WANTED_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct wanted {
	const uint64_t *vaddrs;  /* ascending; borrowed                     */
	uint32_t n;
	uint32_t *owner;         /* 0: no owner                             */
	uint32_t *next;          /* the first that is free, from here on    */
};

/* 0 or -ENOMEM. */
int wanted_init(struct wanted *w, const uint64_t *vaddrs, uint32_t n);
void wanted_fini(struct wanted *w);

/* The number of the first that is not below `vaddr`; n when all are. O(log n). */
uint32_t wanted_first(const struct wanted *w, uint64_t vaddr);
/* Does [start, start + size) hold any, free or not? */
bool wanted_any(const struct wanted *w, uint64_t start, uint64_t size);
/* Makes `owner` (not 0) the owner of the free ones in [start, start + size). True when there was
 * one. */
bool wanted_give(struct wanted *w, uint64_t start, uint64_t size, uint32_t owner);
/* 0: no owner, or not asked for. O(log n). */
uint32_t wanted_owner(const struct wanted *w, uint64_t vaddr);

#endif
