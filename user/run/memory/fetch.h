/*
 * A page fetched again and again by a thread of its own, so that a slow server holds up nobody (net/http_client.h). No proxy;
 * 4 MiB and 5 seconds at most.
 */
#ifndef MEMSCOPE_RUN_MEMORY_FETCH_H
#define MEMSCOPE_RUN_MEMORY_FETCH_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdint.h>

struct fetch;

/* -EOPNOTSUPP: there is no libcurl here; -EINVAL: it cannot take this address. */
int fetch_new(const char *url, struct fetch **ret_fetch, struct err *e);
/* Waits until what is being fetched has come, or is given up. */
void fetch_free(struct fetch *f);
DEFINE_CLEANUP(struct fetch *, fetch_freep, fetch_free)

/* Fetches it once more; does nothing while it is being fetched. */
void fetch_ask(struct fetch *f);
/* What has come since the last call, and when (ns since the Epoch); the caller frees it. NULL: nothing. */
char *fetch_take(struct fetch *f, int64_t *ret_wall_ns);

struct fetch_stats {
	uint64_t fetched, failed;
	char why[256]; /* the last that failed; "" */
};
void fetch_stats(struct fetch *f, struct fetch_stats *ret_stats);

#endif
