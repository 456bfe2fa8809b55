/*
 * How long a store that did not take something is left alone: a second, then twice as long each time, 5 minutes at most; of that
 * a part by chance, at least half, so that many hosts do not come back at once. Never less than the store asked for.
 */
#ifndef MEMSCOPE_RUN_PUSH_BACKOFF_H
#define MEMSCOPE_RUN_PUSH_BACKOFF_H

#include <stdint.h>

enum { BACKOFF_FIRST_MS = 1000, BACKOFF_MOST_MS = 300000, RETRY_AFTER_MOST_S = 3600 };

struct backoff {
	uint32_t failures; /* in a row */
};

/* After one more failure, ms. `chance`: any number; `retry_after_s`: what the store asked for, 0: nothing; an hour at most. */
uint64_t backoff_next_ms(struct backoff *b, uint32_t chance, uint64_t retry_after_s);

#endif
