/*
 * The processes that a log over days is about: those that were named and, when one of them has ended,
 * the one that comes in its place.
 *
 * A process is known by its full command line (as pgrep -f sees it), or by the pattern it was asked
 * for with. Of several that have it, the one that started first is meant: a server's children and
 * its helpers often carry the same. Its end is told by a descriptor (pidfd), so a pid that is used
 * again is not taken for it.
 */
#ifndef MEMSCOPE_RUN_FOLLOW_H
#define MEMSCOPE_RUN_FOLLOW_H

#include "base/cleanup.h"
#include "base/err.h"

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

struct follow;

struct follow *follow_new(void); /* NULL: out of memory */
void follow_free(struct follow *f);
DEFINE_CLEANUP(struct follow *, follow_freep, follow_free)

/*
 * Adds a process that runs; `pattern` (may be NULL, is borrowed): how to find the one after it.
 * -ESRCH: it is gone. -ENOMEM, -EMFILE.
 */
int follow_add(struct follow *f, pid_t pid, const char *pattern, struct err *e);

/* How many were named, and how many of them run. */
uint32_t follow_count(const struct follow *f);
uint32_t follow_running(const struct follow *f);

/* For poll(2): readable when the process has ended. Returns how many, at most follow_count(). */
uint32_t follow_poll(const struct follow *f, struct pollfd *fds);

/* What happened to one; `name` as in its command line. Lives until the function returns. */
typedef void (*follow_fn)(void *ctx, pid_t pid, const char *name);

/* Calls `ended` for those that have ended since. */
void follow_check(struct follow *f, follow_fn ended, void *ctx);
/* Looks for those that come in the place of ended ones; calls `began` for each found. */
void follow_search(struct follow *f, follow_fn began, void *ctx);

#endif
