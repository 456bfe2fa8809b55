/* What names stacks by their hash, for old_stacks.c: user stacks alone, as those of the kernel are few. */
#ifndef MEMSCOPE_COLLECT_STREAM_STACKS_IN_USE_H
#define MEMSCOPE_COLLECT_STREAM_STACKS_IN_USE_H

#include "collect/stream/drain.h"
#include "collect/stream/ingest.h"
#include "collect/stream/wakers.h"
#include "collect/wire.h"

typedef void (*stack_hash_fn)(void *ctx, const struct ms_hash *user);

/* Those that the kernel keeps of threads: of waits, and of sites of waits. 0 or -errno. */
int drain_stacks_in_use(struct drain *d, stack_hash_fn fn, void *ctx);
/* The kernel sends this stack again when it next sees it. */
void drain_send_again(const struct drain *d, const struct ms_hash *stack);

/* Forgets records of who ended waits, as ingest_age_stacks() does stacks, and before it: each names one. */
uint32_t wakers_age(struct wakers *w, uint32_t calls, stack_hash_fn again, void *ctx);
/* Those of who ended waits. */
void wakers_stacks_in_use(const struct wakers *w, stack_hash_fn fn, void *ctx);

void ingest_stack_used(struct ingest *in, const struct ms_hash *user);
/*
 * Forgets the stacks that the last call handed to `again`, if they were not used since; then hands over those that were not used since
 * `calls` calls. Returns how many it forgot.
 */
uint32_t ingest_age_stacks(struct ingest *in, uint32_t calls, stack_hash_fn again, void *ctx);

#endif
