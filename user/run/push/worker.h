/*
 * The process that sends what waits for one store, oldest first, one request at a time. It is begun before the run's programs
 * are loaded, when there is little to be copied, holds nothing of the kernel's and no capability, and works at the lowest priority; what
 * it has to tell is in push_stats and in sentences. One process at a time sends from a spool, whoever began it.
 */
#ifndef MEMSCOPE_RUN_PUSH_WORKER_H
#define MEMSCOPE_RUN_PUSH_WORKER_H

#include "run/push.h"
#include "run/push/protocol.h"

/* Can it be asked at all? Is answered by a process of its own, so that nobody else has the library in memory. */
int push_worker_check(const struct push_config *cfg, struct push_store *s, struct err *e);
/* Sets worker and wake of the store. */
int push_worker_start(const struct push_config *cfg, struct push_store *s, struct err *e);
/*
 * What is not sent within `wait_ns` from now stays in the spool; nothing is waited for where the store does not answer. 0: after the
 * request that is under way, at most two seconds.
 */
void push_worker_stop(struct push_store *s, uint64_t wait_ns);
/* Has it ended? Waits for that until CLOCK_MONOTONIC `until_ns`, and then kills it. `until_ns` 0: does not wait, nor kill. */
bool push_worker_ended(struct push_store *s, uint64_t until_ns);

/* "Authorization: Bearer …" of the first line of a file; of one like USER:PASSWORD "Authorization: Basic …". */
int push_authorization(const char *file, char *out, size_t cap, struct err *e);

/* What a worker does about one request, which is all that it knows of the store; for tests with a clock of their own. */
struct push_attempts {
	char suspect[64];   /* an entry at which the store failed …                     */
	uint32_t failures;  /* … so often                                               */
};
enum push_next { PUSH_NEXT_ENTRY, PUSH_NEXT_SKIP, PUSH_NEXT_WAIT };
enum { PUSH_FAILURES = 5 };
/*
 * After `verdict` on the entry `name`. SKIP: the store failed at it PUSH_FAILURES times; the next one is tried. Where that is taken,
 * *ret_drop is the one that was skipped: it is this one's fault.
 */
enum push_next push_attempt(struct push_attempts *a, const char *name, enum push_verdict verdict,
			    const char **ret_drop);

#endif
