/*
 * What a call of a burst stands for whose returns were traced, where tracing returns takes so much of a busy
 * thread's time that the amounts could not be estimated from it (analyse/bursts.h: what is left of a burst is
 * then a small difference of large numbers).
 *
 * Bursts alternate there. In one, only entries are traced, and the calls of each thread are estimated from it.
 * In the next one, returns are traced too, and which blocks were made is learned from it alone. Over some
 * bursts together, of each thread:
 *
 *   weight of a call = calls estimated from the bursts without returns / calls seen in those with them
 *
 * a ratio estimator, whose bias is about one part in the number of calls (Cochran, Sampling Techniques, 1977,
 * 6.8). Threads that were in bursts of one kind alone, because they lived only briefly, are taken together; if
 * there are none in those with returns, what is estimated of the others goes to the next bursts.
 */
#ifndef MEMSCOPE_ANALYSE_BURST_MATCH_H
#define MEMSCOPE_ANALYSE_BURST_MATCH_H

#include "base/cleanup.h"

#include <stdint.h>
#include <sys/types.h>

struct burst_match;

/* NULL: out of memory. */
struct burst_match *burst_match_new(void);
void burst_match_free(struct burst_match *m);
DEFINE_CLEANUP(struct burst_match *, burst_match_freep, burst_match_free)

/* So many calls of a thread of process `pid` were seen in burst `no`, with their returns. 0 or -ENOMEM. */
int burst_match_seen(struct burst_match *m, uint32_t no, uint32_t thread, pid_t pid,
		     uint64_t calls);
/* The thread is estimated to have made so many more, by a burst without returns. 0 or -ENOMEM. */
int burst_match_estimated(struct burst_match *m, uint32_t thread, double calls);

/* What calls of `thread` in burst `no` stand for: 1 at least. */
typedef void (*burst_match_fn)(void *ctx, uint32_t no, uint32_t thread, pid_t pid, double weight);
/* Of all calls seen in bursts up to number `to`, which leave it. 0 or -ENOMEM. */
int burst_match_settle(struct burst_match *m, uint32_t to, burst_match_fn fn, void *ctx);

#endif
