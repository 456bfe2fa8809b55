/*
 * Messages between memscope and a cell, over a stream socket: what it is (a number that both know), bytes, and descriptors. memscope
 * believes neither their lengths nor what is in them.
 */
#ifndef MEMSCOPE_BASE_CELL_TALK_H
#define MEMSCOPE_BASE_CELL_TALK_H

#include "base/bytes.h"
#include "base/cleanup.h"

enum { TALK_FDS_MAX = 3 };

struct talk {
	uint32_t what;
	char *data; /* `len` bytes, and a NUL behind them */
	size_t len;
	size_t mapped; /* bytes of memory of its own, 0: of the allocator's. What is large goes back whole */
	int fds[TALK_FDS_MAX]; /* -1: none; closed with it, unless they are taken */
};

void talk_fini(struct talk *t);

/* Waits until `until_ns` (CLOCK_MONOTONIC) at most. -ETIMEDOUT; -EPIPE: nobody is there; else of sendmsg(). */
int talk_send(int channel, uint32_t what, const void *data, size_t len, const int *fds, uint32_t n_fds, uint64_t until_ns);
/*
 * The next one. -EFBIG: it has more than `max_len` bytes; -EPIPE: nobody is there, or it ends within; -ETIMEDOUT; -ENOMEM. Without
 * `may_send_fds` descriptors that come are closed.
 */
int talk_take(int channel, size_t max_len, bool may_send_fds, uint64_t until_ns, struct talk *ret);

static inline struct bytes talk_bytes(const struct talk *t)
{
	return bytes_of(t->data, t->len);
}

#endif
